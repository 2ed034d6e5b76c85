//! The rules of Windlass.
//!
//! ```text
//! command ──► decide(view, rules, origin, command) ──► events ──► apply(view, event) ──► row changes
//!                      │                                  ▲
//!                      └── pure hooks of each event ──────┘   in the same commit
//! ```
//!
//! Invariants:
//! - This crate does no I/O, reads no clock and draws no random numbers: time, ids and look-ups are inputs.
//! - Events record decisions. `apply` folds them and never decides again.
//! - A task changes its state through an event of its own, along the table in [`MOVES`].
//!
//! Not here: the storage of events (`store`), the execution of work (`runner`), the display (`cli`).

mod apply;
mod bridge;
mod command;
mod decide;
mod delivery;
mod effects;
mod evaluation;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod log;
mod session;
mod task;
mod view;
pub mod workflow;

pub use apply::{ApplyError, apply};
pub use bridge::{BridgeCall, CallRuling, CallVerdict, Caller, Conversation, Objector};
pub use command::limits::Limits;
pub use command::refusal::Refusal;
pub use command::{Answer, Authority, Command, Deletion, Failing, HookReport, NewSession, NewTask, Origin, TaskPatch};
pub use decide::{
    Decided, Effects, Entry, HookScope, PlannedHook, Rules, Trusted, ValidationScope, WORKFLOW, decide, hooks_for_call,
};
pub use delivery::{
    Approved, Broken, ChangeFact, ChangeRef, Finding, Gate, Grounds, HookContext, HookEnd, Pipeline, Readied, Remedy,
    Stage, Stalled, TaskChange, Why, WorkDone, Workspace,
};
pub use effects::action::{Action, ActionRequest, TaskAction};
pub use effects::hook_batch::{HookBatch, HookEffect};
pub use effects::hook_outcome::{HookClass, HookOutcome, OnFailure};
pub use effects::hook_point::{HookPoint, UnknownHookPoint};
pub use effects::outbox::{EffectKind, PendingEffect, Recovery};
pub use effects::registry::{Handler, Hook, HookFault, Registry, RegistryError};
pub use effects::situation::{Situation, hook_data};
pub use evaluation::ruling::{Rule, RuleAction, Ruling, Undefined, judge};
pub use evaluation::validation;
pub use evaluation::{
    AgentContext, Asked, CheckpointRef, Drive, Evaluated, Guard, HookDecision, HookRef, Judged, Judging, NewCheckpoint,
    NewHook, NewSeries, REGISTERED, Registered, RuleText, RulesText, SeenPromise, Series, Signal, StopHook, StopRuling,
    Trigger, VALIDATION, evaluate,
};
pub use log::config_text::ConfigText;
pub use log::encoding::{DecodeError, FORMAT, Upcast, decode, decode_with, encode, encode_into};
pub use log::event::{Cause, Envelope, Event, Metadata, Node, Record, payload};
pub use log::event_type::EventType;
pub use log::id::{
    CheckpointId, CommitId, ConfigDigest, Digest, EdgeId, EffectId, Epoch, FactType, HookId, OwnerName, ParseIdError,
    RunId, Seq, SeriesId, SessionName, TaskId, TypeName,
};
pub use log::time::{Timestamp, in_words};
pub use session::fault::Fault;
pub use session::own_words::OwnWords;
pub use session::promise::{Promise, explain_uncounted, find_promise, find_promises, last_line};
pub use session::prompt::{Earlier, Note, Prompt, Remark, ReportBrief};
pub use session::usage::{Cost, Usage};
pub use session::voice::Voice;
pub use session::watch::Watch;
pub use session::{
    Blocker, Closing, Completion, Decision, Ending, GateAnswer, Hold, Leave, Lost, Next, OnRetryLimit, Opening, Phase,
    Piece, Purpose, Session, Step, Terms, Turn, Verdict, Wanted, Work,
};
pub use task::graph::{awaited, waiters};
pub use task::note::{Memo, NoteKind, Said};
pub use task::resolution::{Answered, Resolution};
pub use task::review::{Judgement, Objection, Review, Unfit};
pub use task::transitions::{Field, MOVES, Move};
pub use task::types::Types;
pub use task::{Blocked, Claim, Edge, EdgeKind, Lease, Priority, ReportRequest, State, Taken, Task, TaskConversation};
pub use view::draft::Draft;
pub use view::memory::Memory;
pub use view::{Change, Direction, Looked, Scope, View, ViewError};
