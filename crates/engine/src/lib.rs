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
pub use bridge::{BlockingBridgeHook, BridgeCall, BridgeCaller, BridgeConversation, CallRuling, CallVerdict};
pub use command::limits::EngineLimits;
pub use command::refusal::Refusal;
pub use command::{
    Authority, Command, CommandOrigin, DeletionMode, HookReport, NewSession, NewTask, TaskPatch, TurnAnswer,
    TurnFailureReport,
};
pub use decide::{
    CommitEntry, ConfigTrust, EngineRules, HookPlan, HookScope, PlannedHook, UncommittedEvents, ValidationScope,
    WORKFLOW_HOOK_PREFIX, decide, hooks_for_call,
};
pub use delivery::{
    ChangeApproval, ChangeFact, ChangeRef, DeliveryGate, DeliveryPipeline, DeliveryStage, GateFailure, GateFailureKind,
    GateFinding, GateHookEnd, GateRemedy, HookMetadata, StalledWork, SubmissionCheck, SubmittedWork, TaskChange,
    Workspace, WorkspaceMode,
};
pub use effects::action::{ActionRequest, HookAction, TaskAction};
pub use effects::event_context::{EventContext, hook_event_data};
pub use effects::hook_batch::{HookBatch, HookEffect};
pub use effects::hook_outcome::{HookClass, HookFailurePolicy, HookOutcome};
pub use effects::hook_point::{HookPoint, UnknownHookPoint};
pub use effects::outbox::{EffectKind, PendingEffect, RecoveryAction};
pub use effects::registry::{HookRegistry, PureHook, PureHookError, PureHookHandler, RegistryError};
pub use evaluation::decision_rule::{DecisionRule, RuleAction, RuleDecision, UndefinedPolicy, evaluate_rules};
pub use evaluation::validation;
pub use evaluation::{
    AgentContext, CheckpointRef, CheckpointTrigger, DetectedPromise, EvaluationFindings, EvaluationOutcome,
    EvaluationPurpose, EvaluationState, HookDecision, IterationJudgement, IterationSeries, NewCheckpoint,
    NewIterationSeries, NewStopHook, REGISTERED_HOOKS_NAME, RegisteredStopHook, RuleListSource, RuleSource,
    SeriesGuard, SeriesSignal, StopHook, StopHookRef, StopRuling, VALIDATION_RULES_NAME, evaluate_stop_hooks,
};
pub use log::config_text::ConfigText;
pub use log::encoding::{
    CURRENT_FORMAT, DecodeError, FormatUpcast, decode_event, decode_event_with, encode_event, encode_event_into,
};
pub use log::event::{Event, EventCause, EventEnvelope, EventMetadata, EventRecord, EventSubject, payload};
pub use log::event_type::EventType;
pub use log::id::{
    CheckpointId, CommitId, ConfigDigest, Digest, EdgeId, EffectId, Epoch, FactType, HookId, OwnerName, ParseIdError,
    RunId, Seq, SeriesId, SessionName, TaskId, TypeName,
};
pub use log::time::{Timestamp, duration_in_words};
pub use session::guard_state::GuardState;
pub use session::message_author::MessageAuthor;
pub use session::output_fingerprint::OutputFingerprint;
pub use session::promise::{Promise, explain_uncounted_claim, find_promise, find_promises, last_line_without_claim};
pub use session::prompt::{EarlierIteration, FeedbackItem, PromptInputs, PromptNote, ReportBrief};
pub use session::turn_failure::TurnFailure;
pub use session::usage::{AgentUsage, UsdCost};
pub use session::{
    AfterIteration, AgentTurn, BlockingHook, CompletionMode, ConversationStart, FeedbackRef, GateAnswer, GateDecision,
    GateVerdict, LostTask, NextAction, RetryLimitAction, Session, SessionEnd, SessionEndKind, SessionPhase,
    SessionStep, SessionTerms, TaskExit, TaskHold, TurnPurpose, WorkSource,
};
pub use task::graph::{awaited_tasks, waiting_tasks};
pub use task::note::{IterationNoteRef, NoteIndex, NoteKind};
pub use task::resolution::{PendingAnswer, TaskResolution};
pub use task::review::{ReviewAnswerError, ReviewFinding, ReviewJudgement, ReviewRequest};
pub use task::transitions::{StateField, TASK_TRANSITIONS, TaskTransition};
pub use task::types::TaskTypes;
pub use task::{
    BlockDetails, CompletionClaim, EdgeKind, Lease, ReportRequest, Task, TaskConversation, TaskEdge, TaskPriority,
    TaskState, TaskTakeover,
};
pub use view::draft::Draft;
pub use view::memory::MemoryView;
pub use view::{DecisionScope, EdgeDirection, RowChange, StateView, ViewError, ViewResult};
