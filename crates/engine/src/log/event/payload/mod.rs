//! The payload of each event. Names that hooks or scripts may already use never change.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bridge::CallRuling;
use crate::delivery::{
    ChangeApproval, DeliveryGate, GateFailureKind, GateRemedy, HookMetadata, SubmittedWork, Workspace, WorkspaceMode,
};
use crate::effects::action::ActionRequest;
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::hook_point::HookPoint;
use crate::evaluation::decision_rule::RuleAction;
use crate::evaluation::validation::{RuleResult, ValidationRule};
use crate::evaluation::{CheckpointTrigger, SeriesGuard, SeriesSignal, StopHook};
use crate::log::id::{
    ConfigDigest, Digest, EdgeId, EffectId, Epoch, FactType, HookId, OwnerName, RunId, Seq, SeriesId, SessionName,
    TaskId, TypeName,
};
use crate::log::time::Timestamp;
use crate::session::message_author::MessageAuthor;
use crate::session::output_fingerprint::OutputFingerprint;
use crate::session::promise::Promise;
use crate::session::usage::AgentUsage;
use crate::session::{SessionEndKind, SessionTerms, WorkSource};
use crate::task::note::NoteKind;
use crate::task::resolution::TaskResolution;
use crate::task::{BlockDetails, CompletionClaim, EdgeKind, ReportRequest, TaskPriority, TaskState};

pub use crate::delivery::ChangeRef as ChangeOpened;

fn is_none_yet(count: &u32) -> bool {
    *count == 0
}

/// Declares payload structs with the same derives and field naming.
macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty,)* })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[$attr])* pub $field: $type,)*
        }
    )+};
}

mod turns;
mod workflow;

pub use turns::*;
pub use workflow::*;

payloads! {
    TaskCreated {
        goal: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        deliverables: Vec<String>,
        labels: Vec<String>,
        priority: TaskPriority,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<TypeName>,
        /// Set when the task ends with a report instead of a change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<ReportRequest>,
    }
    /// All dependencies of the task are completed.
    TaskReady {}
    /// The task has an open dependency again.
    TaskWaiting {}
    TaskClaimed {
        owner: OwnerName,
        epoch: Epoch,
        /// The end of the lease. Without it, the lease lasts as long as the session holds the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// The session that works on the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionName>,
        /// The session ends its work on the task with a report instead of a change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        report: bool,
    }
    LeaseExpired {
        owner: OwnerName,
        epoch: Epoch,
        /// The last holder was silent. It may wake up, and its agent may go on in the worktree.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    }
    TaskStarted {
        context: Value,
    }
    /// The changed fields. An empty body or type removes the old one.
    TaskUpdated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deliverables: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<TaskPriority>,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    }
    /// The task has a worktree.
    WorkspaceOpened {
        workspace: Workspace,
        /// The worktree existed before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reused: bool,
    }
    /// The work is about to be submitted, if the hooks let it pass.
    SubmissionStarted {
        run: RunId,
        /// The submitted work, if it lies in a worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<SubmittedWork>,
        /// The number of times that the agent has fixed it.
        #[serde(default, skip_serializing_if = "is_none_yet")]
        remediations: u32,
        /// The stop hooks judge the work again: they judged it on another base, or other hooks did, of another
        /// configuration or agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rejudged: bool,
    }
    TaskSubmitted {}
    /// The work is about to be accepted, if the hooks let it pass.
    MergeStarted {
        run: RunId,
        /// The work to merge, if it was submitted before and only this gate could not be asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<SubmittedWork>,
    }
    /// A gate did not let the work pass.
    PipelineFailed {
        run: RunId,
        gate: DeliveryGate,
        hook: String,
        why: GateFailureKind,
        reason: String,
        /// Feedback for the agent that fixes it, unless a hook has given some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        remedy: GateRemedy,
        /// The number of this attempt to fix the work, or of this rejection, and the limit.
        count: u32,
        most: u32,
    }
    /// A gate rejected the work. The task is open again.
    TaskRejected {
        by: String,
        reason: String,
    }
    ChangeMerged {
        /// The commit that contains the change in the base.
        commit: String,
        /// How Windlass found the change there, if it was merged outside Windlass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<String>,
    }
    TaskCompleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        artifacts: Vec<String>,
    }
    TaskUnblocked {}
    /// A person has decided how the task goes on.
    TaskAnswered {
        answer: TaskResolution,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The stop hooks that are ignored once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignores: Vec<String>,
    }
    TaskNeedsContinuation {
        reason: String,
    }
    /// The owner gave the task back.
    TaskReleased {
        reason: String,
    }
    TaskFailed {
        reason: String,
    }
    TaskReopened {
        from: TaskState,
        reason: String,
    }
    TaskDeleted {
        edges_removed: Vec<EdgeId>,
    }
    DependencyAdded {
        from_id: TaskId,
        to_id: TaskId,
        edge_type: EdgeKind,
    }
    DependencyRemoved {
        edge_id: EdgeId,
        from_id: TaskId,
        to_id: TaskId,
    }
    DependencySatisfied {
        dependent_task_id: TaskId,
        completed_task_id: TaskId,
    }
    AgentMetrics {
        goal: String,
        labels: Vec<String>,
        priority: TaskPriority,
        /// `null` for a task that was completed without a start, or when the clock went backwards.
        duration_ms: Option<i64>,
        deliverables: Vec<String>,
    }
    AutoLabelSuggestion {
        labels: Vec<String>,
        keywords: Vec<String>,
    }
    /// A fact of the project's own type. It changes no state.
    FactLogged {
        #[serde(rename = "type")]
        kind: FactType,
        data: Map<String, Value>,
    }
    /// A person or an agent leaves a note for the next agent or person on the task.
    NoteAdded {
        kind: NoteKind,
        text: String,
    }
    /// The text behind a digest, so that the log alone explains a decision.
    ConfigRecorded {
        digest: ConfigDigest,
        text: String,
    }
    SessionStarted {
        config: ConfigDigest,
        /// The content of the protected files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protected: Option<ConfigDigest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "WorkSource::is_given")]
        work: WorkSource,
        /// The place of the work.
        #[serde(rename = "grounds", default, skip_serializing_if = "WorkspaceMode::is_in_place")]
        workspace_mode: WorkspaceMode,
        agent: String,
        terms: SessionTerms,
        owner: OwnerName,
        nonce: u64,
        /// Feedback that no turn has carried stays with the task when the session leaves it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_feedback: bool,
        /// The session continues no earlier conversation.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fresh: bool,
    }
    /// Another process runs the session from now on.
    SessionResumed {
        owner: OwnerName,
        terms: SessionTerms,
    }
    /// A person, a hook or a process has asked the session to end.
    SessionStopping {
        ending: SessionEndKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The commits that the message to the person names, as full ids.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
    }
    SessionEnded {
        ending: SessionEndKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The number of completed tasks whose work no hook checked.
        #[serde(default, skip_serializing_if = "is_none_yet")]
        unchecked: u32,
    }
    /// A message to the agent of a session, which gets it as feedback.
    MessageAdded {
        /// The name of the person, the hook or the agent.
        source: String,
        text: String,
        voice: MessageAuthor,
    }
    FeedbackQueued {
        /// The hook, person or agent that the feedback comes from.
        source: String,
        text: String,
        #[serde(default, skip_serializing_if = "MessageAuthor::is_hook")]
        voice: MessageAuthor,
        /// A short reason why the hook blocks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The fingerprint of the hook's own output, if the text differs from it or is only a part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<OutputFingerprint>,
        /// The feedback is about this iteration only: the next one gets its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        passing: bool,
    }
    FeedbackDelivered {
        run: RunId,
        feedback: Vec<Seq>,
    }
    /// A stop hook decides from now on when the work on a task may stop.
    HookRegistered {
        hook: StopHook,
        enabled: bool,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    }
    HooksCleared {
        hooks: Vec<HookId>,
    }
    /// A registered stop hook is switched on or off.
    HookSwitched {
        hook: HookId,
        enabled: bool,
    }
    /// The registered stop hooks were evaluated.
    HookEvaluated {
        /// `None` at the gate of a session, which has its own iterations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        series: Option<SeriesId>,
        iteration: u32,
        /// The hook that decided; `None` if no hook is registered and enabled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        action: RuleAction,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_prompt: Option<String>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
        /// The results of the validation rules.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<RuleResult>,
    }
    /// An agent starts a series of iterations of its own.
    SeriesStarted {
        max_iterations: u32,
        completion_promises: Vec<Promise>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        validation_rules: Vec<ValidationRule>,
        circuit_breaker_threshold: u32,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
    }
    /// The evaluation of an iteration of a series.
    ValidationFinished {
        series: SeriesId,
        iteration: u32,
        passed: bool,
        signal: SeriesSignal,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<RuleResult>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        promises: Vec<Promise>,
        /// The hook that decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The guard that ends the series.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guard: Option<SeriesGuard>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        feedback: Vec<String>,
        /// The end of the agent's output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files_modified: Vec<String>,
        /// The digest of the failures and the work, if something failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alike: Option<Digest>,
    }
    SeriesAdvanced {
        series: SeriesId,
        iteration: u32,
    }
    SeriesEnded {
        series: SeriesId,
        iteration: u32,
        promise: Promise,
    }
    CheckpointCreated {
        sequence: u32,
        trigger: CheckpointTrigger,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        execution_phase: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        execution_step: Option<u64>,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        agent_context: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft_content: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft_type: Option<String>,
        /// The size of the full draft, if the draft was cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft_bytes: Option<u64>,
        expires_at: Timestamp,
        /// The series in progress.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        series: Option<SeriesId>,
    }
    /// An agent's own hook system has called Windlass.
    BridgeCalled {
        agent: String,
        conversation: String,
        point: HookPoint,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// A short description of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// A person has spoken since the agent was last sent back.
        anew: bool,
        /// The number of send-backs since then.
        retries: u32,
    }
    /// The answer to a call of an agent's hook system.
    BridgeAnswered {
        agent: String,
        conversation: String,
        point: HookPoint,
        ruling: CallRuling,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The hooks that block.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hooks: Vec<String>,
        /// The number of send-backs since a person last spoke, including this one.
        retries: u32,
        max_retries: u32,
        /// The reason why the agent may go on although hooks block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        let_go: Option<String>,
        /// Other text for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
    }
    HookStarted {
        #[serde(rename = "debt")]
        effect: EffectId,
        hook: String,
        owner: OwnerName,
        /// Above 1 when an interrupted run is repeated or a failed one is retried.
        attempt: u32,
        /// How the attempt before it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    }
    /// An attempt has failed, and the next one starts after a wait. Nothing of the hook runs until then.
    HookRetrying {
        #[serde(rename = "debt")]
        effect: EffectId,
        hook: String,
        /// The attempt that failed.
        attempt: u32,
        error: String,
    }
    HookFinished {
        #[serde(rename = "debt")]
        effect: EffectId,
        hook: String,
        outcome: HookOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The feedback for the agent, if there is no session to deliver it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        /// The duration of the run, if the hook ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The file with the full output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        /// The requested actions. They run after the last hook of the event.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        actions: Vec<ActionRequest>,
        /// Values that the hook has published, by name.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        context: HookMetadata,
        /// The approvals of the gatekeepers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved: Option<ChangeApproval>,
        /// The usage of the agents that the hook asked.
        #[serde(default, skip_serializing_if = "AgentUsage::is_nothing")]
        used: AgentUsage,
        /// The last commit of the work, if the hook has moved it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// The agent or program that the hook was to ask could not be started.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unstarted: bool,
        /// The results of the validation rules that the hook evaluated.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<RuleResult>,
    }
    HookError {
        hook_name: String,
        error: String,
        /// The event that the hook belongs to, without its position.
        original_event: Value,
        /// The effect that the hook ran for, if it ran.
        #[serde(rename = "debt", default, skip_serializing_if = "Option::is_none")]
        effect: Option<EffectId>,
    }
    ActionError {
        action_type: String,
        error: String,
        payload: Value,
    }
}

/// The payload is the row itself.
pub type TaskBlocked = BlockDetails;
pub type CompletionClaimed = CompletionClaim;
