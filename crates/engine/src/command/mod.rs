//! What can be asked of the engine.

pub(crate) mod limits;
pub(crate) mod refusal;

use core::time::Duration;

use serde_json::{Map, Value};

use crate::bridge::{BridgeCall, CallVerdict, Caller};
use crate::delivery::{Approved, ChangeFact, ChangeRef, Finding, Grounds, HookContext, Readied, Workspace};
use crate::effects::action::ActionRequest;
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::hook_point::HookPoint;
use crate::evaluation::validation::RuleResult;
use crate::evaluation::{Judging, NewCheckpoint, NewHook, NewSeries};
use crate::log::id::{Digest, EffectId, Epoch, HookId, OwnerName, RunId, Seq, SeriesId, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::fault::Fault;
use crate::session::own_words::OwnWords;
use crate::session::promise::Promise;
use crate::session::usage::Usage;
use crate::session::{Ending, GateAnswer, Terms, Work};
use crate::task::note::NoteKind;
use crate::task::resolution::Resolution;
use crate::task::{EdgeKind, Priority, ReportRequest};
use crate::workflow::StepEnd;

/// By what right a command is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// A person, or a script of theirs.
    Person,
    /// Whoever holds the lease of this epoch.
    Holder(Epoch),
    /// A person who overrides the rules; the event says so.
    Forced,
}

/// Who asks, when, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub by: String,
    pub at: Timestamp,
    pub authority: Authority,
    /// The agent turn from inside which the command comes.
    pub run: Option<RunId>,
    /// The hook from inside which it comes.
    pub via: Option<EffectId>,
}

/// A task to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    pub goal: String,
    pub body: Option<String>,
    pub deliverables: Vec<String>,
    pub labels: Vec<String>,
    pub priority: Priority,
    pub kind: Option<TypeName>,
    /// It ends with a report, and without a change.
    pub report: Option<ReportRequest>,
    pub depends_on: Vec<TaskId>,
    /// The task that it was spawned by.
    pub parent: Option<TaskId>,
}

/// A session to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    pub name: SessionName,
    /// The task to work on.
    pub task: Option<TaskId>,
    /// What is to be done: it becomes a task.
    pub goal: Option<String>,
    pub work: Work,
    pub grounds: Grounds,
    /// The configuration that it works with, as it was read.
    pub config: String,
    /// What the protected files hold.
    pub protected: Option<String>,
    pub agent: String,
    pub terms: Terms,
    pub owner: OwnerName,
    pub nonce: u64,
    /// Whether it goes on with no conversation of a session before.
    pub fresh: bool,
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    pub output: String,
    pub promise: Option<Promise>,
    /// Why its COMPLETE tag does not count, where it has one in the wrong place.
    pub uncounted: Option<&'static str>,
    /// It left processes behind.
    pub leaky: bool,
    /// The file that has all of what it wrote.
    pub record: Option<String>,
    /// What it has used, where the agent tells.
    pub usage: Usage,
    /// What has changed in the directory of the work, where that is known.
    pub tree: Option<Digest>,
}

/// Why an agent did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failing {
    pub error: String,
    pub fault: Fault,
    /// The file that has all of what it wrote.
    pub record: Option<String>,
    pub usage: Usage,
    /// It left processes behind.
    pub leaky: bool,
}

impl Failing {
    /// What is known of it is its error.
    pub fn of(error: impl Into<String>) -> Self {
        Self { error: error.into(), ..Self::default() }
    }
}

/// What came of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReport {
    pub outcome: HookOutcome,
    /// For people: why it is no success.
    pub message: Option<String>,
    /// For the agent.
    pub feedback: Option<String>,
    /// What it has said by itself, where the agent is told something else, or not all of it.
    pub own: Option<Box<OwnWords>>,
    /// How long it ran.
    pub took: Option<Duration>,
    /// The file that has all of what it wrote.
    pub record: Option<String>,
    /// What it asks for.
    pub actions: Vec<ActionRequest>,
    /// What it ran for, as the record of its failure tells it.
    pub event: Option<Value>,
    /// What it has told about itself.
    pub context: HookContext,
    /// What it has done about the change of its task.
    pub change: Option<ChangeFact>,
    /// What of that change gatekeepers have approved.
    pub approved: Option<Approved>,
    /// What agents have used that it asked.
    pub used: Usage,
    /// The last commit of the work, where it has moved that.
    pub head: Option<String>,
    /// Whoever it was to ask could not be started.
    pub unstarted: bool,
    /// What the validation rules came to that it looked at.
    pub results: Vec<RuleResult>,
    /// What a checkpoint is to keep, which a hook asks for that has the agent continue.
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
            context: HookContext::new(),
            change: None,
            approved: None,
            used: Usage::default(),
            head: None,
            unstarted: false,
            results: Vec::new(),
            checkpoint: None,
        }
    }
}

/// What is to change about a task; an empty body or type takes it away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskPatch {
    pub goal: Option<String>,
    pub body: Option<String>,
    pub deliverables: Option<Vec<String>>,
    /// These instead of the present ones.
    pub labels: Option<Vec<String>>,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
    pub priority: Option<Priority>,
    pub kind: Option<Option<TypeName>>,
}

/// What becomes of the tasks that wait for a deleted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// If there are any, nothing is deleted.
    Alone,
    /// They are deleted too.
    Cascade,
    /// They are blocked, with the reason.
    BlockDependents,
}

impl Command {
    /// The task that it changes or moves, which an agent may not do with its own.
    pub fn subject(&self) -> Option<TaskId> {
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

    /// Whether it does or ends what is under way already. Such work falls to whoever runs it, wherever that was called
    /// from: it is no more what a hook has led to than what it works on is.
    pub(crate) fn is_of_a_runner(&self) -> bool {
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
    /// Takes this task, or the next one, under a lease. Whoever says which agent it is gets only what that one may work
    /// on; a person who does not may take any task by name, and is offered those that are open to all.
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
    /// Says how a task goes on that waits for a person.
    AnswerTask {
        id: TaskId,
        answer: Resolution,
        text: Option<String>,
        /// The stop hooks that are not to be counted once.
        ignores: Vec<String>,
        /// The work that is approved, if there is any and nobody has seen it yet.
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
        deletion: Deletion,
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
    /// Leaves a word with a task; inside a session, with the task of that.
    AddNote {
        task: Option<TaskId>,
        kind: NoteKind,
        text: String,
    },
    /// Has a stop hook decide from now on when the work on a task may stop.
    RegisterHook {
        task: TaskId,
        new: NewHook,
    },
    ClearHooks {
        task: TaskId,
        /// Only this one.
        hook: Option<HookId>,
    },
    /// Says whether a registered stop hook is asked.
    SwitchHook {
        task: TaskId,
        hook: HookId,
        enabled: bool,
    },
    /// Sets out on a series of iterations; one that is under way is over with it.
    StartSeries {
        task: TaskId,
        new: NewSeries,
    },
    /// Says what was found out about the present iteration of a series.
    JudgeSeries {
        task: TaskId,
        series: SeriesId,
        judging: Box<Judging>,
    },
    /// Says what the rules and hooks of a task found at the gate of the session that works on it.
    RecordRuling {
        task: TaskId,
        judging: Box<Judging>,
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
    /// Goes on with a session whose owner is dead. It names that owner: if another was quicker, the session is in living
    /// hands.
    ResumeSession {
        name: SessionName,
        dead: OwnerName,
        owner: OwnerName,
        /// Instead of the number that it was started with.
        max_iterations: Option<u32>,
    },
    /// Asks for the end: the turn that runs has to be ended yet, hooks that have not begun are skipped.
    StopSession {
        name: SessionName,
        ending: Ending,
        reason: Option<String>,
    },
    /// Says where the task of a session is worked on from now on.
    OpenWorkspace {
        name: SessionName,
        workspace: Workspace,
        /// It was there already.
        reused: bool,
        /// What the protected files hold there, as long as nobody has worked.
        protected: Option<String>,
        /// What the agent has to know about it: its work does not go together with the present base.
        feedback: Option<Finding>,
    },
    /// Leaves the task of a session to a person, before or instead of work on it.
    LeaveToPerson {
        name: SessionName,
        reason: String,
        /// The commits that the person is told of, by their whole ids.
        commits: Vec<String>,
    },
    /// Says what there is to be submitted, now that the work is done.
    SubmitWork {
        name: SessionName,
        readied: Readied,
    },
    /// Says that a change is in its base.
    RecordMerge {
        id: TaskId,
        commit: String,
        /// How it was found there, where nobody here has merged it.
        seen: Option<String>,
    },
    /// Takes a task away from a session whose runner has not been heard of for too long.
    ExpireLease {
        id: TaskId,
        epoch: Epoch,
    },
    /// Asks for the end from outside the loop, whose owner has to be told. Whoever runs the session does what follows.
    CancelSession {
        name: SessionName,
        reason: Option<String>,
    },
    /// Decides what somebody outside the loop has made possible.
    AdvanceSession {
        name: SessionName,
    },
    /// Has something told to the agent of a session.
    Say {
        session: SessionName,
        text: String,
    },
    /// Says which conversation the agent works in from now on.
    OpenConversation {
        run: RunId,
        conversation: String,
        /// Why it is not the one before, where there was one.
        anew: Option<String>,
    },
    /// Says what is to happen where stop hooks do not let the agent go. Whoever runs the session does what follows.
    AnswerGate {
        session: SessionName,
        answer: GateAnswer,
        /// What else the agent is to hear.
        text: Option<String>,
    },
    /// Says what the agent answered.
    FinishTurn {
        run: RunId,
        answer: Answer,
    },
    FailTurn {
        run: RunId,
        failing: Failing,
    },
    /// Says that the agent was asked too often, and until when, if it knows.
    PostponeTurn {
        run: RunId,
        failing: Failing,
        until: Option<Timestamp>,
    },
    /// Gives a turn up that somebody had stopped.
    InterruptTurn {
        run: RunId,
        /// The file that has what the agent wrote until then.
        record: Option<String>,
        usage: Usage,
    },
    /// Says that an owed hook is about to run.
    BeginEffect {
        effect: EffectId,
        owner: OwnerName,
    },
    /// Says that a hook has failed and is tried again after a while.
    RestEffect {
        effect: EffectId,
        owner: OwnerName,
        /// How it failed.
        error: String,
    },
    /// Says that a hook that has failed is about to be tried again.
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
    /// Has a workflow be run, about a task perhaps.
    TriggerWorkflow {
        id: String,
        context: Map<String, Value>,
        task: Option<TaskId>,
    },
    /// Says that an owed workflow begins, with which definition and which step.
    StartWorkflow {
        effect: EffectId,
        owner: OwnerName,
        workflow: String,
        digest: Digest,
        step: String,
        /// How many steps the definition has.
        steps: u32,
    },
    /// Says that a step is about to run programs.
    BeginStep {
        effect: EffectId,
        owner: OwnerName,
        step: String,
    },
    /// Ends a step, and does what it wants of the graph.
    EndStep {
        effect: EffectId,
        owner: OwnerName,
        end: Box<StepEnd>,
    },
    /// Ends a workflow that cannot go on.
    AbandonWorkflow {
        effect: EffectId,
        owner: OwnerName,
        error: String,
    },
    /// An agent's own hook system calls.
    Call(Box<BridgeCall>),
    /// Answers the call at a position.
    AnswerCall {
        at: Seq,
        caller: Caller,
        point: HookPoint,
        verdict: Box<CallVerdict>,
    },
    /// Takes over an effect whose owner is dead. It names that owner: if another was quicker, the effect is in living hands.
    RecoverEffect {
        effect: EffectId,
        dead: OwnerName,
        owner: OwnerName,
    },
}
