//! The rules of Windlass.
//!
//! ```text
//! command ──► decide(view, rules, origin, command) ──► events ──► apply(view, event) ──► row changes
//!                      │                                  ▲
//!                      └── pure hooks of each event ──────┘   in the same commit
//! ```
//!
//! Invariants:
//! - Nothing here does I/O, reads a clock, or draws a random number: time, ids and look-ups are inputs.
//! - Events record decisions. `apply` folds them and never decides again.
//! - A task changes its state through an event of its own, along the table in [`MOVES`].
//!
//! Not here: where events are kept (`store`), how work is done (`runner`), how anything is shown (`cli`).

mod action;
mod apply;
mod bridge;
mod builtins;
mod command;
mod config_text;
mod debt;
mod decide;
mod draft;
mod drive;
mod encoding;
mod event;
mod fault;
mod graph;
mod guards;
mod hook_point;
mod id;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod limits;
mod memory;
mod moves;
mod note;
mod pipeline;
mod promise;
mod prompt;
mod refusal;
mod registry;
mod resolution;
mod review;
mod ruling;
mod session;
mod situation;
mod task;
mod time;
mod types;
mod usage;
pub mod validation;
mod value_names;
mod view;
mod voice;
mod watch;
pub mod workflow;

pub use action::{Action, ActionRequest, TaskAction};
pub use apply::{ApplyError, apply};
pub use bridge::{Call, CallRuling, CallVerdict, Caller, Conversation, Objector};
pub use command::{Answer, Authority, Command, Deletion, Failing, HookReport, NewSession, NewTask, Origin, TaskPatch};
pub use config_text::ConfigText;
pub use debt::{Debt, Effect, HookClass, HookOutcome, OnFailure, Owed, OwedHook, Recovery};
pub use decide::{
    Decided, Effects, Entry, Planned, PlannedFor, Rules, Trusted, ValidationScope, WORKFLOW, decide, would_owe,
};
pub use draft::Draft;
pub use drive::{
    AgentContext, Asked, CheckpointRef, Drive, Evaluated, Guard, HookDecision, HookRef, Judged, Judging, NewCheckpoint,
    NewHook, NewSeries, REGISTERED, Registered, RuleText, RulesText, SeenPromise, Series, Signal, StopHook, StopRuling,
    Trigger, VALIDATION, evaluate,
};
pub use encoding::{DecodeError, FORMAT, Upcast, decode, decode_with, encode, encode_into};
pub use event::{Cause, Envelope, Event, EventType, Metadata, Node, Record, payload};
pub use fault::Fault;
pub use graph::{awaited, waiters};
pub use hook_point::{HookPoint, UnknownHookPoint};
pub use id::{
    CheckpointId, CommitId, ConfigDigest, DebtId, Digest, EdgeId, Epoch, FactType, HookId, OwnerName, ParseIdError,
    RunId, Seq, SeriesId, SessionName, TaskId, TypeName,
};
pub use limits::Limits;
pub use memory::Memory;
pub use moves::{Field, MOVES, Move};
pub use note::{Memo, NoteKind, Said};
pub use pipeline::{
    Approved, Broken, ChangeFact, ChangeRef, Finding, Gate, Grounds, HookContext, HookEnd, Pipeline, Readied, Remedy,
    Stage, Stalled, TaskChange, Why, WorkDone, Workspace,
};
pub use promise::{Promise, explain_uncounted, find_promise, find_promises, last_line};
pub use prompt::{Earlier, Note, Prompt, Remark, ReportBrief};
pub use refusal::Refusal;
pub use registry::{Handler, Hook, HookFault, Registry, RegistryError};
pub use resolution::{Answered, Resolution};
pub use review::{Judgement, Objection, Review, Unfit};
pub use ruling::{Rule, RuleAction, Ruling, Undefined, judge};
pub use session::{
    Blocker, Closing, Completion, Decision, Ending, GateAnswer, Hold, Leave, Lost, Next, OnRetryLimit, Opening, Phase,
    Piece, Purpose, Session, Step, Terms, Turn, Verdict, Wanted, Work,
};
pub use situation::{Situation, hook_data};
pub use task::{Blocked, Claim, Edge, EdgeKind, Lease, Priority, ReportRequest, State, Taken, Task, TaskConversation};
pub use time::{Timestamp, in_words};
pub use types::Types;
pub use usage::{Cost, Usage};
pub use view::{Change, Direction, Looked, Scope, View, ViewError};
pub use voice::Voice;
pub use watch::{OwnWords, Watch};
