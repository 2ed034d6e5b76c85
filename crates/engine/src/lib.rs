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
//! - A task changes its state through an event of its own, along the table in [`TASK_TRANSITIONS`].
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
pub use bridge::{BridgeCall, CallRuling, CallVerdict, BridgeCaller, BridgeConversation, ObjectingHook};
pub use command::limits::EngineLimits;
pub use command::refusal::Refusal;
pub use command::{TurnAnswer, Authority, Command, DeletionMode, TurnFailureReport, HookReport, NewSession, NewTask, CommandOrigin, TaskPatch};
pub use decide::{
    UncommittedEvents, HookPlan, CommitEntry, HookScope, PlannedHook, EngineRules, ConfigTrust, ValidationScope, WORKFLOW_HOOK_PREFIX, decide, hooks_for_call,
};
pub use delivery::{
    ChangeApproval, GateFailure, ChangeFact, ChangeRef, GateFinding, DeliveryGate, WorkspaceMode, HookMetadata, GateHookEnd, DeliveryPipeline, SubmissionCheck, GateRemedy,
    DeliveryStage, StalledWork, TaskChange, GateFailureKind, SubmittedWork, Workspace,
};
pub use effects::action::{HookAction, ActionRequest, TaskAction};
pub use effects::hook_batch::{HookBatch, HookEffect};
pub use effects::hook_outcome::{HookClass, HookOutcome, HookFailurePolicy};
pub use effects::hook_point::{HookPoint, UnknownHookPoint};
pub use effects::outbox::{EffectKind, PendingEffect, RecoveryAction};
pub use effects::registry::{PureHookHandler, PureHook, PureHookError, HookRegistry, RegistryError};
pub use effects::event_context::{EventContext, hook_event_data};
pub use evaluation::ruling::{DecisionRule, RuleAction, RuleDecision, UndefinedPolicy, evaluate_rules};
pub use evaluation::validation;
pub use evaluation::{
    AgentContext, EvaluationPurpose, CheckpointRef, EvaluationState, EvaluationOutcome, SeriesGuard, HookDecision, StopHookRef, IterationJudgement, EvaluationFindings, NewCheckpoint,
    NewStopHook, NewIterationSeries, REGISTERED_HOOKS_NAME, RegisteredStopHook, StopRuleText, StopRulesText, DetectedPromise, IterationSeries, SeriesSignal, StopHook, StopRuling,
    CheckpointTrigger, VALIDATION_RULES_NAME, evaluate_stop_hooks,
};
pub use log::config_text::ConfigText;
pub use log::encoding::{DecodeError, CURRENT_FORMAT, FormatUpcast, decode_event, decode_event_with, encode_event, encode_event_into};
pub use log::event::{EventCause, EventEnvelope, Event, EventMetadata, EventSubject, EventRecord, payload};
pub use log::event_type::EventType;
pub use log::id::{
    CheckpointId, CommitId, ConfigDigest, Digest, EdgeId, EffectId, Epoch, FactType, HookId, OwnerName, ParseIdError,
    RunId, Seq, SeriesId, SessionName, TaskId, TypeName,
};
pub use log::time::{Timestamp, duration_in_words};
pub use session::turn_failure::TurnFailure;
pub use session::output_fingerprint::OutputFingerprint;
pub use session::promise::{Promise, explain_uncounted_claim, find_promise, find_promises, last_line_without_claim};
pub use session::prompt::{EarlierIteration, FeedbackItem, PromptInputs, PromptNote, ReportBrief};
pub use session::usage::{UsdCost, AgentUsage};
pub use session::message_author::MessageAuthor;
pub use session::guard_state::GuardState;
pub use session::{
    BlockingHook, SessionEnd, CompletionMode, GateDecision, SessionEndKind, GateAnswer, TaskHold, TaskExit, LostTask, AfterIteration, RetryLimitAction, ConversationStart, SessionPhase,
    FeedbackRef, TurnPurpose, Session, SessionStep, SessionTerms, AgentTurn, GateVerdict, NextAction, WorkSource,
};
pub use task::graph::{awaited_tasks, waiting_tasks};
pub use task::note::{NoteIndex, NoteKind, IterationNoteRef};
pub use task::resolution::{PendingAnswer, TaskResolution};
pub use task::review::{ReviewJudgement, ReviewFinding, ReviewRequest, ReviewAnswerError};
pub use task::transitions::{StateField, TASK_TRANSITIONS, TaskTransition};
pub use task::types::TaskTypes;
pub use task::{BlockDetails, CompletionClaim, TaskEdge, EdgeKind, Lease, TaskPriority, ReportRequest, TaskState, TaskTakeover, Task, TaskConversation};
pub use view::draft::Draft;
pub use view::memory::MemoryView;
pub use view::{RowChange, EdgeDirection, ViewResult, DecisionScope, StateView, ViewError};
