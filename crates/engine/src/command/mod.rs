//! The commands of the engine.

pub(crate) mod limits;
pub(crate) mod refusal;

use core::time::Duration;

use serde_json::{Map, Value};

use crate::bridge::{BridgeCall, BridgeCaller, CallVerdict};
use crate::delivery::{
    ChangeApproval, ChangeFact, ChangeRef, GateFinding, HookMetadata, SubmissionCheck, Workspace, WorkspaceMode,
};
use crate::effects::action::ActionRequest;
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::hook_point::HookPoint;
use crate::evaluation::validation::RuleResult;
use crate::evaluation::{EvaluationFindings, NewCheckpoint, NewIterationSeries, NewStopHook};
use crate::log::id::{Digest, EffectId, Epoch, HookId, OwnerName, RunId, Seq, SeriesId, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::output_fingerprint::OutputFingerprint;
use crate::session::promise::Promise;
use crate::session::turn_failure::TurnFailure;
use crate::session::usage::AgentUsage;
use crate::session::{GateAnswer, SessionEndKind, SessionTerms, WorkSource};
use crate::task::note::NoteKind;
use crate::task::resolution::TaskResolution;
use crate::task::{EdgeKind, ReportRequest, TaskPriority};
use crate::workflow::StepReport;

/// The right by which a command is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// A person, or a person's script.
    Person,
    /// The holder of the lease of this epoch.
    Holder(Epoch),
    /// A person who overrides the rules; the event says so.
    Forced,
}

/// The caller, the time, and the agent turn or hook that a command comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOrigin {
    pub by: String,
    pub at: Timestamp,
    pub authority: Authority,
    /// The agent turn that the command comes from.
    pub run: Option<RunId>,
    /// The hook that the command comes from.
    pub via: Option<EffectId>,
}

/// A task to create.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    pub goal: String,
    pub body: Option<String>,
    pub deliverables: Vec<String>,
    pub labels: Vec<String>,
    pub priority: TaskPriority,
    pub kind: Option<TypeName>,
    /// It ends with a report, and without a change.
    pub report: Option<ReportRequest>,
    pub depends_on: Vec<TaskId>,
    /// The task that spawned it.
    pub parent: Option<TaskId>,
}

/// A session to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    pub name: SessionName,
    pub task: Option<TaskId>,
    /// The goal, which becomes a task.
    pub goal: Option<String>,
    pub work: WorkSource,
    pub workspace_mode: WorkspaceMode,
    /// The source text of its configuration.
    pub config: String,
    /// The contents of the protected files.
    pub protected: Option<String>,
    pub agent: String,
    pub terms: SessionTerms,
    pub owner: OwnerName,
    pub nonce: u64,
    /// Whether it ignores conversations of earlier sessions.
    pub fresh: bool,
}

/// The answer of an agent to a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnAnswer {
    pub output: String,
    pub promise: Option<Promise>,
    /// Why its COMPLETE tag does not count, if the tag is in the wrong place.
    pub uncounted: Option<&'static str>,
    /// It left processes behind.
    pub leaky: bool,
    /// The file with its complete output.
    pub record: Option<String>,
    /// Its usage, if the agent reports it.
    pub usage: AgentUsage,
    /// A digest of the changes in the working directory, if known.
    pub tree: Option<Digest>,
}

/// The failure of an agent's turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnFailureReport {
    pub error: String,
    pub fault: TurnFailure,
    /// The file with its complete output.
    pub record: Option<String>,
    pub usage: AgentUsage,
    /// It left processes behind.
    pub leaky: bool,
}

impl TurnFailureReport {
    /// Returns a report that knows the error alone.
    pub fn from_error(error: impl Into<String>) -> Self {
        Self { error: error.into(), ..Self::default() }
    }
}

/// The result of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReport {
    pub outcome: HookOutcome,
    /// For people: why it did not succeed.
    pub message: Option<String>,
    /// For the agent.
    pub feedback: Option<String>,
    /// The hook's own output, where the feedback is another text or only a part of it.
    pub own: Option<Box<OutputFingerprint>>,
    /// How long it ran.
    pub took: Option<Duration>,
    /// The file with its complete output.
    pub record: Option<String>,
    /// The actions that it asks for.
    pub actions: Vec<ActionRequest>,
    /// The event that it ran for, as the record of its failure shows it.
    pub event: Option<Value>,
    /// The metadata that it reports about itself.
    pub context: HookMetadata,
    /// Its effect on the change of its task.
    pub change: Option<ChangeFact>,
    /// The part of that change that gatekeepers have approved.
    pub approved: Option<ChangeApproval>,
    /// The usage of the agents that it asked.
    pub used: AgentUsage,
    /// The last commit of the work, if the hook has moved it.
    pub head: Option<String>,
    /// The program or agent that it asks could not be started.
    pub unstarted: bool,
    /// The results of the validation rules that it evaluated.
    pub results: Vec<RuleResult>,
    /// The contents of the checkpoint that a hook asks for when it answers `continue`.
    pub checkpoint: Option<Value>,
}

impl From<HookOutcome> for HookReport {
    fn from(outcome: HookOutcome) -> Self {
        Self {
            outcome,
            message: None,
            feedback: None,
            own: None,
            took: None,
            record: None,
            actions: Vec::new(),
            event: None,
            context: HookMetadata::new(),
            change: None,
            approved: None,
            used: AgentUsage::default(),
            head: None,
            unstarted: false,
            results: Vec::new(),
            checkpoint: None,
        }
    }
}

/// Changes to a task. An empty body or type removes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskPatch {
    pub goal: Option<String>,
    pub body: Option<String>,
    pub deliverables: Option<Vec<String>>,
    /// Replaces the present labels.
    pub labels: Option<Vec<String>>,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
    pub priority: Option<TaskPriority>,
    pub kind: Option<Option<TypeName>>,
}

/// How a deletion treats the tasks that wait for the deleted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionMode {
    /// Such tasks prevent the deletion.
    Alone,
    /// Deletes them too.
    Cascade,
    /// Blocks them, with the reason.
    BlockDependents,
}

impl Command {
    /// Returns the task that the command changes or moves. An agent may not do so with its own task.
    pub fn subject_task(&self) -> Option<TaskId> {
        match self {
            Self::UpdateTask { id, .. }
            | Self::ClaimTask { id: Some(id), .. }
            | Self::StartTask { id, .. }
            | Self::SubmitTask { id }
            | Self::CompleteTask { id, .. }
            | Self::CompleteSeries { task: id, .. }
            | Self::UnblockTask { id }
            | Self::ReleaseTask { id, .. }
            | Self::FailTask { id, .. }
            | Self::ReopenTask { id, .. }
            | Self::DeleteTask { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// Returns whether the command continues or ends work in progress. Such a command belongs to the runner of that work,
    /// even if a hook made the call: it is no consequence of the hook.
    pub(crate) fn is_runner_command(&self) -> bool {
        matches!(
            self,
            Self::ResumeSession { .. }
                | Self::StopSession { .. }
                | Self::AdvanceSession { .. }
                | Self::OpenWorkspace { .. }
                | Self::LeaveToPerson { .. }
                | Self::SubmitWork { .. }
                | Self::OpenConversation { .. }
                | Self::PostponeTurn { .. }
                | Self::FinishTurn { .. }
                | Self::FailTurn { .. }
                | Self::InterruptTurn { .. }
                | Self::BeginEffect { .. }
                | Self::RestEffect { .. }
                | Self::RetryEffect { .. }
                | Self::FinishEffect { .. }
                | Self::StartWorkflow { .. }
                | Self::BeginStep { .. }
                | Self::EndStep { .. }
                | Self::AbandonWorkflow { .. }
                | Self::RecoverEffect { .. }
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    CreateTask(NewTask),
    UpdateTask {
        id: TaskId,
        patch: TaskPatch,
    },
    /// Takes this task, or the next one, under a lease. A caller that names its agent gets only tasks for that agent. A
    /// person who names none may take any task by id, and is offered the tasks that are open to all.
    ClaimTask {
        id: Option<TaskId>,
        owner: OwnerName,
        until: Timestamp,
        agent: Option<String>,
    },
    StartTask {
        id: TaskId,
        context: Value,
    },
    SubmitTask {
        id: TaskId,
    },
    CompleteTask {
        id: TaskId,
        result: Option<String>,
        artifacts: Vec<String>,
    },
    BlockTask {
        id: TaskId,
        reason: String,
        required_knowledge: Vec<String>,
    },
    UnblockTask {
        id: TaskId,
    },
    /// Answers a task that waits for a person.
    AnswerTask {
        id: TaskId,
        answer: TaskResolution,
        text: Option<String>,
        /// The stop hooks that do not count once.
        ignores: Vec<String>,
        /// The approved work, if there is any that has no change yet.
        work: Option<ChangeRef>,
    },
    NeedContinuation {
        id: TaskId,
        reason: String,
    },
    ReleaseTask {
        id: TaskId,
        reason: String,
    },
    FailTask {
        id: TaskId,
        reason: String,
    },
    ReopenTask {
        id: TaskId,
        reason: String,
    },
    DeleteTask {
        id: TaskId,
        deletion: DeletionMode,
    },
    AddEdge {
        from: TaskId,
        kind: EdgeKind,
        to: TaskId,
    },
    RemoveEdge {
        from: TaskId,
        kind: EdgeKind,
        to: TaskId,
    },
    /// Leaves a note with a task; inside a session, with the task of the session.
    AddNote {
        task: Option<TaskId>,
        kind: NoteKind,
        text: String,
    },
    /// Registers a stop hook that decides from now on when the work on a task may stop.
    RegisterHook {
        task: TaskId,
        new: NewStopHook,
    },
    ClearHooks {
        task: TaskId,
        /// Only this one.
        hook: Option<HookId>,
    },
    /// Enables or disables a registered stop hook.
    SwitchHook {
        task: TaskId,
        hook: HookId,
        enabled: bool,
    },
    /// Starts a series of iterations and ends the one in progress.
    StartSeries {
        task: TaskId,
        new: NewIterationSeries,
    },
    /// Records an evaluation of the present iteration of a series.
    JudgeSeries {
        task: TaskId,
        series: SeriesId,
        judging: Box<EvaluationFindings>,
    },
    /// Records the results of a task's rules and hooks at the gate of its session.
    RecordRuling {
        task: TaskId,
        judging: Box<EvaluationFindings>,
    },
    AdvanceSeries {
        task: TaskId,
        series: SeriesId,
    },
    /// Ends a series with a promise: the task is completed or blocked.
    CompleteSeries {
        task: TaskId,
        series: SeriesId,
        promise: Promise,
    },
    CreateCheckpoint {
        task: TaskId,
        new: NewCheckpoint,
    },
    StartSession(NewSession),
    /// Resumes a session whose owner is dead. The command names that owner, so that only the first of several takeovers
    /// succeeds.
    ResumeSession {
        name: SessionName,
        dead: OwnerName,
        owner: OwnerName,
        /// Replaces the limit that the session started with.
        max_iterations: Option<u32>,
    },
    /// Stops a session: the turn in progress still has to end, and hooks that have not begun are skipped.
    StopSession {
        name: SessionName,
        ending: SessionEndKind,
        reason: Option<String>,
    },
    /// Sets the worktree of a session's task.
    OpenWorkspace {
        name: SessionName,
        workspace: Workspace,
        /// The worktree existed before.
        reused: bool,
        /// The contents of the protected files there, before an agent has worked.
        protected: Option<String>,
        /// Feedback for the agent: its work conflicts with the present base.
        feedback: Option<GateFinding>,
    },
    /// Leaves the task of a session to a person, before or instead of work on it.
    LeaveToPerson {
        name: SessionName,
        reason: String,
        /// The commits that the person is told about, by their full ids.
        commits: Vec<String>,
    },
    /// Submits the work, now that it is done.
    SubmitWork {
        name: SessionName,
        check: SubmissionCheck,
    },
    /// Records that a change is in its base.
    RecordMerge {
        id: TaskId,
        commit: String,
        /// How the change was found there, if it was merged outside Windlass.
        seen: Option<String>,
    },
    /// Takes a task away from a session whose runner has been silent for too long.
    ExpireLease {
        id: TaskId,
        epoch: Epoch,
    },
    /// Cancels a session from outside its loop. Its owner decides what follows.
    CancelSession {
        name: SessionName,
        reason: Option<String>,
    },
    /// Continues a session after an event from outside its loop.
    AdvanceSession {
        name: SessionName,
    },
    /// Sends a message to the agent of a session.
    Say {
        session: SessionName,
        text: String,
    },
    /// Records the conversation that the agent works in from now on.
    OpenConversation {
        run: RunId,
        conversation: String,
        /// Why it differs from the conversation before, if there was one.
        anew: Option<String>,
    },
    /// Answers a session whose stop hooks keep blocking. Its owner decides what follows.
    AnswerGate {
        session: SessionName,
        answer: GateAnswer,
        /// A message for the agent.
        text: Option<String>,
    },
    /// Records the agent's answer.
    FinishTurn {
        run: RunId,
        answer: TurnAnswer,
    },
    FailTurn {
        run: RunId,
        failing: TurnFailureReport,
    },
    /// Records that the agent hit a rate limit, and until when, if it knows.
    PostponeTurn {
        run: RunId,
        failing: TurnFailureReport,
        until: Option<Timestamp>,
    },
    /// Gives up a turn that was stopped.
    InterruptTurn {
        run: RunId,
        /// The file with the agent's output so far.
        record: Option<String>,
        usage: AgentUsage,
    },
    /// Records that a pending hook is about to run.
    BeginEffect {
        effect: EffectId,
        owner: OwnerName,
    },
    /// Records that a hook has failed and will be retried later.
    RestEffect {
        effect: EffectId,
        owner: OwnerName,
        /// How it failed.
        error: String,
    },
    /// Records that a failed hook is about to be retried.
    RetryEffect {
        effect: EffectId,
        owner: OwnerName,
        /// How it failed.
        after: String,
    },
    FinishEffect {
        effect: EffectId,
        owner: OwnerName,
        report: Box<HookReport>,
    },
    /// Triggers a workflow, optionally about a task.
    TriggerWorkflow {
        id: String,
        context: Map<String, Value>,
        task: Option<TaskId>,
    },
    /// Records that a pending workflow starts, with its definition and its first step.
    StartWorkflow {
        effect: EffectId,
        owner: OwnerName,
        workflow: String,
        digest: Digest,
        step: String,
        /// How many steps the definition has.
        steps: u32,
    },
    /// Records that a step is about to run programs.
    BeginStep {
        effect: EffectId,
        owner: OwnerName,
        step: String,
    },
    /// Ends a step, and changes the graph as it asks.
    EndStep {
        effect: EffectId,
        owner: OwnerName,
        end: Box<StepReport>,
    },
    /// Ends a workflow that cannot continue.
    AbandonWorkflow {
        effect: EffectId,
        owner: OwnerName,
        error: String,
    },
    /// A call of an agent's own hook system.
    Call(Box<BridgeCall>),
    /// Answers the call at a position.
    AnswerCall {
        at: Seq,
        caller: BridgeCaller,
        point: HookPoint,
        verdict: Box<CallVerdict>,
    },
    /// Takes over an effect whose owner is dead. The command names that owner, so that only the first of several takeovers
    /// succeeds.
    RecoverEffect {
        effect: EffectId,
        dead: OwnerName,
        owner: OwnerName,
    },
}
