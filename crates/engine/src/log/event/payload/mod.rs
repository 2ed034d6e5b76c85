//! What each event says. Names that a hook or a script may already know are kept as they are.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bridge::CallRuling;
use crate::delivery::{Approved, Gate, Grounds, HookContext, Remedy, Why, WorkDone, Workspace};
use crate::effects::action::ActionRequest;
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::hook_point::HookPoint;
use crate::evaluation::ruling::RuleAction;
use crate::evaluation::validation::{RuleResult, ValidationRule};
use crate::evaluation::{Guard, Signal, StopHook, Trigger};
use crate::log::id::{
    ConfigDigest, Digest, EdgeId, EffectId, Epoch, FactType, HookId, OwnerName, RunId, Seq, SeriesId, SessionName,
    TaskId, TypeName,
};
use crate::log::time::Timestamp;
use crate::session::own_words::OwnWords;
use crate::session::promise::Promise;
use crate::session::usage::Usage;
use crate::session::voice::Voice;
use crate::session::{Ending, Terms, Work};
use crate::task::note::NoteKind;
use crate::task::resolution::Resolution;
use crate::task::{Blocked, Claim, EdgeKind, Priority, ReportRequest, State};

pub use crate::delivery::ChangeRef as ChangeOpened;

fn is_none_yet(count: &u32) -> bool {
    *count == 0
}

/// Declares payload structs with the derives and the naming that all of them share.
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
        priority: Priority,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<TypeName>,
        /// It ends with a report, and without a change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<ReportRequest>,
    }
    /// Nothing is in its way any more.
    TaskReady {}
    /// A dependency is in its way again.
    TaskWaiting {}
    TaskClaimed {
        owner: OwnerName,
        epoch: Epoch,
        /// Without one the lease lasts as long as its session has the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// The session that works on it now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionName>,
        /// The session ends its work on it with a report, and without a change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        report: bool,
    }
    LeaseExpired {
        owner: OwnerName,
        epoch: Epoch,
        /// Whoever held it may wake up, and its agent go on in the worktree.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    }
    TaskStarted {
        context: Value,
    }
    /// What changed; an empty body or type takes it away.
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
        priority: Option<Priority>,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    }
    /// The task has a worktree to be worked on in.
    WorkspaceOpened {
        workspace: Workspace,
        /// It was there already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reused: bool,
    }
    /// The work is about to be submitted, if its hooks let it pass.
    SubmissionStarted {
        run: RunId,
        /// What is submitted, where it lies in a worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<WorkDone>,
        /// How often the agent has mended it before.
        #[serde(default, skip_serializing_if = "is_none_yet")]
        remediations: u32,
        /// The stop hooks judge it again: they judged it on another base, or were those of another configuration or agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rejudged: bool,
    }
    TaskSubmitted {}
    /// The work is about to be accepted, if its hooks let it pass.
    MergeStarted {
        run: RunId,
        /// What is merged, where it was submitted before and only this gate could not be asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<WorkDone>,
    }
    /// A gate did not let the work pass.
    PipelineFailed {
        run: RunId,
        gate: Gate,
        hook: String,
        why: Why,
        reason: String,
        /// For whoever mends it, where it was no hook that said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        remedy: Remedy,
        /// Which attempt to mend it, or which rejection, this is, and how many there may be.
        count: u32,
        most: u32,
    }
    /// It was judged, and is to be worked on again.
    TaskRejected {
        by: String,
        reason: String,
    }
    ChangeMerged {
        /// The commit that has it in the base.
        commit: String,
        /// How it was found there, where nobody here has merged it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<String>,
    }
    TaskCompleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        artifacts: Vec<String>,
    }
    TaskUnblocked {}
    /// A person has said how it goes on.
    TaskAnswered {
        answer: Resolution,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The stop hooks that are not counted once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignores: Vec<String>,
    }
    TaskNeedsContinuation {
        reason: String,
    }
    /// Given back by whoever worked on it.
    TaskReleased {
        reason: String,
    }
    TaskFailed {
        reason: String,
    }
    TaskReopened {
        from: State,
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
        priority: Priority,
        /// `null` for a task that was completed without having been started, or whose clock went backwards.
        duration_ms: Option<i64>,
        deliverables: Vec<String>,
    }
    AutoLabelSuggestion {
        labels: Vec<String>,
        keywords: Vec<String>,
    }
    /// A fact of the project's own. It bears no state.
    FactLogged {
        #[serde(rename = "type")]
        kind: FactType,
        data: Map<String, Value>,
    }
    /// Somebody leaves a word for whoever works on the task.
    NoteAdded {
        kind: NoteKind,
        text: String,
    }
    /// The text behind a digest, so that the log alone can explain a decision.
    ConfigRecorded {
        digest: ConfigDigest,
        text: String,
    }
    SessionStarted {
        config: ConfigDigest,
        /// What the protected files held.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protected: Option<ConfigDigest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "Work::is_given")]
        work: Work,
        /// Where the work is done.
        #[serde(default, skip_serializing_if = "Grounds::is_in_place")]
        grounds: Grounds,
        agent: String,
        terms: Terms,
        owner: OwnerName,
        nonce: u64,
        /// Feedback that no turn has carried stays with the task that the session leaves.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_feedback: bool,
        /// It goes on with no conversation of a session before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fresh: bool,
    }
    /// Somebody else goes on with it.
    SessionResumed {
        owner: OwnerName,
        terms: Terms,
    }
    /// Its end was asked for.
    SessionStopping {
        ending: Ending,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The commits that a person is told of with it, by their whole ids.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
    }
    SessionEnded {
        ending: Ending,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// How many tasks it has completed whose work nothing checked.
        #[serde(default, skip_serializing_if = "is_none_yet")]
        unchecked: u32,
    }
    /// Somebody speaks to the agent of a session, which gets it as feedback.
    MessageAdded {
        /// The person's name, or which hook or agent it was.
        source: String,
        text: String,
        voice: Voice,
    }
    FeedbackQueued {
        /// The hook that it comes from, or whoever says it.
        source: String,
        text: String,
        #[serde(default, skip_serializing_if = "Voice::is_hook")]
        voice: Voice,
        /// Why the hook blocks, in a few words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What the hook has said by itself, where the text was worded otherwise or is not all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<OwnWords>,
        /// It is about the present iteration: the next one has its own.
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
    /// A registered stop hook is asked from now on, or not asked any more.
    HookSwitched {
        hook: HookId,
        enabled: bool,
    }
    /// Registered stop hooks were asked.
    HookEvaluated {
        /// Nothing at the gate of a session, which has iterations of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        series: Option<SeriesId>,
        iteration: u32,
        /// Whose word it is; nobody's where none is registered and enabled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        action: RuleAction,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_prompt: Option<String>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
        /// What the validation rules said.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<RuleResult>,
    }
    /// An agent sets out on a series of iterations of its own.
    SeriesStarted {
        max_iterations: u32,
        completion_promises: Vec<Promise>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        validation_rules: Vec<ValidationRule>,
        circuit_breaker_threshold: u32,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
    }
    /// How an iteration of a series stands.
    ValidationFinished {
        series: SeriesId,
        iteration: u32,
        passed: bool,
        signal: Signal,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<RuleResult>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        promises: Vec<Promise>,
        /// The hook that decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// Why it does not go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guard: Option<Guard>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        feedback: Vec<String>,
        /// The end of what the agent said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files_modified: Vec<String>,
        /// What failed and what the work was, where something failed.
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
        trigger: Trigger,
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
        /// How many bytes the draft had, where it was cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft_bytes: Option<u64>,
        expires_at: Timestamp,
        /// The series that was under way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        series: Option<SeriesId>,
    }
    /// An agent's own hook system has called.
    BridgeCalled {
        agent: String,
        conversation: String,
        point: HookPoint,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// What it is about, in a few words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// A person has spoken since the agent was last sent back.
        anew: bool,
        /// How often it was sent back since then.
        retries: u32,
    }
    /// What it was answered.
    BridgeAnswered {
        agent: String,
        conversation: String,
        point: HookPoint,
        ruling: CallRuling,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who says no.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hooks: Vec<String>,
        /// How often the agent was sent back since a person last spoke, this time included.
        retries: u32,
        max_retries: u32,
        /// Why it was let go although hooks say no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        let_go: Option<String>,
        /// What else the agent was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
    }
    HookStarted {
        #[serde(rename = "debt")]
        effect: EffectId,
        hook: String,
        owner: OwnerName,
        /// Above 1 where an interrupted run is made good, or a failed one is tried again.
        attempt: u32,
        /// How the attempt before it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    }
    /// An attempt has failed, and the next one begins after a while. Nothing of the hook runs until then.
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
        /// What it would have told the agent, where no session is there to hear it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        /// How long it ran, where it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The file that has all of what it wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        /// What it asks for, to be carried out after the last hook of its event.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        actions: Vec<ActionRequest>,
        /// What it has told about itself, by names.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        context: HookContext,
        /// What gatekeepers have approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved: Option<Approved>,
        /// What agents have used that it asked.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        used: Usage,
        /// The last commit of the work, where it has moved that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// Whoever it was to ask could not be started.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unstarted: bool,
        /// What the validation rules came to that it looked at.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<RuleResult>,
    }
    HookError {
        hook_name: String,
        error: String,
        /// The event whose hook it was, but for its position.
        original_event: Value,
        /// What it ran for, if it has run.
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
pub type TaskBlocked = Blocked;
pub type CompletionClaimed = Claim;
