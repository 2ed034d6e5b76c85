//! Random histories: sequences of commands over a small graph.
//!
//! A step describes a command, partly relative to the state at its time ("the second effect", "the current turn", "the
//! holder of the task"), so that most steps have an effect, also after shrinking. [`HistoryStep::resolve`] returns the command.
//! Every view of the same history resolves a step to the same command.
//!
//! Invariant: a step is plain data. The same history gives the same commands, in every store.

use windlass_engine::{
    ActionRequest, AgentUsage, Authority, BridgeCaller, CallVerdict, ChangeFact, Command, CommandOrigin, Digest,
    EdgeDirection, EdgeKind, EffectId, EffectKind, Epoch, GateAnswer, HookOutcome, HookPoint, HookReport, NextAction,
    OwnerName, PendingEffect, Promise, RunId, SessionEndKind, SessionName, SessionStep, StateView, SubmissionCheck,
    TaskId, Timestamp, TurnAnswer, TurnFailure, TurnFailureReport, UsdCost, ViewResult,
};

use crate::delivery::sample_workspace;
use crate::series_steps::SeriesStep;
use crate::workflow_steps::{WorkflowStepAction, is_workflow, workflow_command};

pub use crate::steps::{arbitrary_step, gate_histories, histories, session_histories, stall_histories};

/// The number of tasks that the commands of a history name. Later tasks exist, but no command names them.
pub const NAMED_TASKS: u64 = 8;

/// The authority of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepAuthority {
    Person,
    Forced,
    /// The current holder of the task, or a person if there is none.
    Holder,
    /// The previous holder of the task.
    FormerHolder,
}

/// A turn of a session, relative to the state at the time of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnReference {
    /// The current turn, or the next one.
    Current(SessionName),
    /// The previous turn.
    Previous(SessionName),
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAction {
    /// A command that does not depend on the state.
    Fixed(Command),
    /// Claims a task for this many milliseconds.
    ClaimTask {
        id: Option<TaskId>,
        owner: OwnerName,
        lease: i64,
    },
    /// Removes one of the edges that begin at a task.
    RemoveSomeEdge {
        from: TaskId,
        nth: usize,
    },
    /// Opens a conversation with this number. The flag says whether it replaces another one.
    OpenConversation(TurnReference, u8, bool),
    FinishTurn(TurnReference, Option<Promise>),
    FailTurn(TurnReference),
    /// Reports a rate limit, with the wait in milliseconds if the agent knows it.
    PostponeTurn(TurnReference, Option<i64>),
    InterruptTurn(TurnReference),
    /// Resumes a session under another owner.
    ResumeSession {
        name: SessionName,
        owner: OwnerName,
        max_iterations: Option<u32>,
    },
    /// Declares the task done, from inside the turn of a session.
    DeclareTaskDone(SessionName),
    /// The command that a session waits for.
    ContinueSession(SessionName, OutsideReply),
    /// A command of a self-driving agent.
    CommandSeries(TaskId, SeriesStep),
    /// Answers the last event as if it were a bridge call.
    AnswerCall {
        caller: BridgeCaller,
        point: HookPoint,
        verdict: CallVerdict,
    },
    /// Expires the lease of the current or the previous holder.
    ExpireLease {
        id: TaskId,
        late: bool,
    },
    /// A command about one of the effects.
    PendingEffect {
        nth: usize,
        step: EffectStep,
    },
}

/// The answers of the outside world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideReply {
    pub outcome: HookOutcome,
    pub feedback: Option<String>,
    pub promise: Option<Promise>,
    /// The agent does not answer at all.
    pub fails: bool,
    pub actions: Vec<ActionRequest>,
    /// The answer of a person.
    pub gate_answer: GateAnswer,
    /// The work of the agent.
    pub submission: SubmissionCheck,
    /// The report of a hook about the change of its task.
    pub change: Option<ChangeFact>,
    /// The new head of work that a hook has moved.
    pub head: Option<String>,
    /// Whether the agent of a hook could not be started.
    pub unstarted: bool,
}

/// A command about an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectStep {
    BeginByOwner,
    BeginBy(OwnerName),
    /// Waits for a retry.
    Rest,
    /// Retries the effect.
    Retry,
    Finish(Box<OutsideReply>),
    Recover(OwnerName),
    /// A step of a workflow.
    WorkflowStep(WorkflowStepAction),
}

/// One command of a history, relative to the state at its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStep {
    /// Milliseconds since the previous step.
    pub after: i64,
    pub authority: StepAuthority,
    /// The turn inside which the command is given.
    pub inside: Option<TurnReference>,
    /// The hook inside which the command is given, by its index among the running ones.
    pub via: Option<usize>,
    pub action: StepAction,
}

impl From<StepAction> for HistoryStep {
    /// Returns a step of a person without a delay.
    fn from(action: StepAction) -> Self {
        Self { after: 1, authority: StepAuthority::Person, inside: None, via: None, action }
    }
}

impl HistoryStep {
    /// Returns the command and its origin in the current state.
    pub fn resolve(&self, view: &dyn StateView, at: Timestamp) -> ViewResult<(CommandOrigin, Command)> {
        let command = self.to_command(view, at)?;
        let task = task_of_command(&command).map(|id| view.find_task(id)).transpose()?.flatten();
        let lease = task.as_ref().and_then(|task| task.lease.as_ref());
        let authority = match self.authority {
            StepAuthority::Person => Authority::Person,
            StepAuthority::Forced => Authority::Forced,
            StepAuthority::Holder => lease.map_or(Authority::Person, |lease| Authority::Holder(lease.epoch)),
            StepAuthority::FormerHolder => {
                Authority::Holder(Epoch(task.map_or(0, |task| task.epoch.0.saturating_sub(1))))
            }
        };
        let own = match &self.action {
            StepAction::DeclareTaskDone(name) => Some(TurnReference::Current(name.clone())),
            _ => None,
        };
        let run = own.as_ref().or(self.inside.as_ref()).map(|turn| find_run(view, turn)).transpose()?;
        let via = self.via.map(|nth| running_hook(view, nth)).transpose()?.flatten();
        Ok((CommandOrigin { by: "ada".to_owned(), at, authority, run, via }, command))
    }

    fn to_command(&self, view: &dyn StateView, at: Timestamp) -> ViewResult<Command> {
        Ok(match &self.action {
            StepAction::Fixed(command) => command.clone(),
            StepAction::ClaimTask { id, owner, lease } => {
                Command::ClaimTask { id: *id, owner: owner.clone(), until: at.add_millis(*lease), agent: None }
            }
            StepAction::RemoveSomeEdge { from, nth } => {
                let edges = view.find_edges(*from, EdgeDirection::From)?;
                match edges.get(nth % edges.len().max(1)) {
                    Some(edge) => Command::RemoveEdge { from: *from, kind: edge.kind, to: edge.to_id },
                    None => Command::RemoveEdge { from: *from, kind: EdgeKind::DependsOn, to: TaskId(1) },
                }
            }
            StepAction::OpenConversation(turn, number, anew) => Command::OpenConversation {
                run: find_run(view, turn)?,
                conversation: format!("c{number}"),
                anew: anew.then(|| "it is gone".to_owned()),
            },
            StepAction::FinishTurn(turn, promise) => finish_turn(find_run(view, turn)?, *promise),
            StepAction::FailTurn(turn) => fail_turn(find_run(view, turn)?),
            StepAction::PostponeTurn(turn, wait) => {
                let until = wait.map(|wait| at.add_millis(wait));
                Command::PostponeTurn {
                    run: find_run(view, turn)?,
                    failing: TurnFailureReport::from_error("429"),
                    until,
                }
            }
            StepAction::InterruptTurn(turn) => Command::InterruptTurn {
                run: find_run(view, turn)?,
                record: None,
                usage: AgentUsage { output: 2, ..AgentUsage::default() },
            },
            StepAction::ResumeSession { name, owner: by, max_iterations } => Command::ResumeSession {
                name: name.clone(),
                dead: view.find_session(name)?.map_or_else(|| owner_name("w1"), |session| session.owner),
                owner: by.clone(),
                max_iterations: *max_iterations,
            },
            StepAction::DeclareTaskDone(name) => {
                let id = view.find_session(name)?.and_then(|session| session.task).unwrap_or(TaskId(1));
                Command::CompleteTask { id, result: Some("done".to_owned()), artifacts: vec![] }
            }
            StepAction::ContinueSession(name, answer) => next_session_command(view, name, answer)?,
            StepAction::CommandSeries(task, step) => step.to_command(view, *task)?,
            StepAction::AnswerCall { caller, point, verdict } => {
                let (caller, point, verdict) = (caller.clone(), point.clone(), Box::new(verdict.clone()));
                Command::AnswerCall { at: view.head_position()?, caller, point, verdict }
            }
            StepAction::ExpireLease { id, late } => {
                let epoch = view.find_task(*id)?.map_or(Epoch(0), |task| task.epoch);
                Command::ExpireLease { id: *id, epoch: Epoch(epoch.0.saturating_sub(u64::from(*late))) }
            }
            StepAction::PendingEffect { nth, step } => effect_command(view, *nth, step)?,
        })
    }
}

/// Returns the existing task that a command is about.
fn task_of_command(command: &Command) -> Option<TaskId> {
    use Command as C;
    match command {
        C::UpdateTask { id, .. }
        | C::StartTask { id, .. }
        | C::SubmitTask { id }
        | C::CompleteTask { id, .. }
        | C::BlockTask { id, .. }
        | C::UnblockTask { id }
        | C::AnswerTask { id, .. }
        | C::NeedContinuation { id, .. }
        | C::ReleaseTask { id, .. }
        | C::FailTask { id, .. }
        | C::ReopenTask { id, .. }
        | C::DeleteTask { id, .. } => Some(*id),
        C::StartSeries { task, .. } | C::CompleteSeries { task, .. } => Some(*task),
        C::ClaimTask { id, .. } => *id,
        C::AddEdge { from, .. } | C::RemoveEdge { from, .. } => Some(*from),
        _ => None,
    }
}

/// The nonce of every session: the name and the number of a run identify it.
pub(crate) const SESSION_NONCE: u64 = 7;

fn find_run(view: &dyn StateView, turn: &TurnReference) -> ViewResult<RunId> {
    let (TurnReference::Current(name) | TurnReference::Previous(name)) = turn;
    let session = view.find_session(name)?;
    let running = session.as_ref().and_then(|session| session.current_turn()).map(|turn| turn.run.iteration);
    let last = running.unwrap_or_else(|| session.map_or(1, |session| session.iteration.max(1)));
    let iteration = if matches!(turn, TurnReference::Previous(_)) { last.saturating_sub(1) } else { last };
    Ok(RunId { session: name.clone(), iteration, nonce: SESSION_NONCE })
}

fn finish_turn(run: RunId, promise: Option<Promise>) -> Command {
    // Nothing ever changes, and every turn has the same usage.
    let (output, tree) = ("said".to_owned(), Some(Digest::of_bytes(b"change")));
    let usage = AgentUsage { input: 7, output: 3, cached: 1, cost: Some(UsdCost(100)) };
    // Sometimes the agent puts its tag in the wrong place.
    let uncounted = (promise.is_none() && run.iteration.is_multiple_of(3)).then_some("the tag does not count there");
    Command::FinishTurn { run, answer: TurnAnswer { output, promise, uncounted, usage, tree, ..TurnAnswer::default() } }
}

fn fail_turn(run: RunId) -> Command {
    Command::FailTurn {
        run,
        failing: TurnFailureReport {
            usage: AgentUsage { input: 5, ..AgentUsage::default() },
            fault: TurnFailure::OutOfTokens,
            ..TurnFailureReport::from_error("no room")
        },
    }
}

/// Returns the next command that a session wants. If it wants none, ends it.
fn next_session_command(view: &dyn StateView, name: &SessionName, answer: &OutsideReply) -> ViewResult<Command> {
    Ok(match view.find_session(name)?.map(|session| session.next_action()) {
        Some(NextAction::Hook(effect)) => match view.find_effect(effect)? {
            Some(effect) if effect.attempts == 0 && is_skipped(view, name)? => {
                Command::AdvanceSession { name: name.clone() }
            }
            Some(effect) if effect.attempts == 0 => Command::BeginEffect { effect: effect.id, owner: effect.owner },
            Some(effect) => finish_effect(effect.id, effect.owner, answer),
            None => unknown_effect(),
        },
        Some(NextAction::Turn(_)) => {
            let run = find_run(view, &TurnReference::Current(name.clone()))?;
            if answer.fails { fail_turn(run) } else { finish_turn(run, answer.promise) }
        }
        Some(NextAction::Answer) => {
            // Hooks with feedback come together with persons who have some.
            let text = answer.feedback.clone();
            Command::AnswerGate { session: name.clone(), answer: answer.gate_answer, text }
        }
        Some(NextAction::Workspace) if answer.fails => Command::LeaveToPerson {
            name: name.clone(),
            reason: "its dependencies do not go together".to_owned(),
            commits: vec![],
        },
        Some(NextAction::Workspace) => Command::OpenWorkspace {
            name: name.clone(),
            workspace: sample_workspace(),
            reused: false,
            protected: None,
            feedback: None,
        },
        Some(NextAction::Work) => Command::SubmitWork { name: name.clone(), check: answer.submission.clone() },
        Some(NextAction::Decision | NextAction::WaitUntil(_)) => Command::AdvanceSession { name: name.clone() },
        Some(NextAction::Nothing) | None => stop_session(name.clone(), SessionEndKind::Cancelled),
    })
}

/// Returns whether the loop would skip its next hook.
fn is_skipped(view: &dyn StateView, name: &SessionName) -> ViewResult<bool> {
    Ok(view.find_session(name)?.is_some_and(|session| matches!(session.next_step(), SessionStep::SkipHook(_))))
}

pub(crate) fn stop_session(name: SessionName, ending: SessionEndKind) -> Command {
    Command::StopSession { name, ending, reason: None }
}

fn finish_effect(effect: EffectId, owner: OwnerName, answer: &OutsideReply) -> Command {
    let (feedback, actions, change) = (answer.feedback.clone(), answer.actions.clone(), answer.change.clone());
    let (head, unstarted) = (answer.head.clone(), answer.unstarted);
    let report = HookReport { feedback, actions, change, head, unstarted, ..answer.outcome.into() };
    Command::FinishEffect { effect, owner, report: report.into() }
}

fn unknown_effect() -> Command {
    let effect = "1.0".parse().expect("a debt id");
    Command::RecoverEffect { effect, dead: owner_name("w1"), owner: owner_name("w2") }
}

fn pending_effects(view: &dyn StateView) -> ViewResult<Vec<PendingEffect>> {
    let mut effects = Vec::new();
    while let Some(effect) = view.next_pending_effect(effects.last().map(|effect: &PendingEffect| effect.id))? {
        effects.push(effect);
    }
    Ok(effects)
}

/// Returns one of the hooks that have begun.
fn running_hook(view: &dyn StateView, nth: usize) -> ViewResult<Option<EffectId>> {
    let is_running_hook = |effect: &PendingEffect| effect.attempts > 0 && matches!(effect.kind, EffectKind::Hook(_));
    let running: Vec<EffectId> =
        pending_effects(view)?.iter().filter(|effect| is_running_hook(effect)).map(|effect| effect.id).collect();
    Ok(running.get(nth % running.len().max(1)).copied())
}

fn effect_command(view: &dyn StateView, nth: usize, step: &EffectStep) -> ViewResult<Command> {
    let mut effects = pending_effects(view)?;
    if let EffectStep::WorkflowStep(_) = step
        && effects.iter().any(is_workflow)
    {
        effects.retain(is_workflow);
    }
    let Some(effect) = effects.get(nth % effects.len().max(1)) else { return Ok(unknown_effect()) };
    let (id, owner) = (effect.id, effect.owner.clone());
    Ok(match step {
        EffectStep::BeginByOwner => Command::BeginEffect { effect: id, owner },
        EffectStep::BeginBy(other) => Command::BeginEffect { effect: id, owner: other.clone() },
        EffectStep::Rest => Command::RestEffect { effect: id, owner, error: "exit 1".to_owned() },
        EffectStep::Retry => Command::RetryEffect { effect: id, owner, after: "exit 1".to_owned() },
        EffectStep::Finish(answer) => finish_effect(id, owner, answer),
        EffectStep::Recover(other) => Command::RecoverEffect { effect: id, dead: owner, owner: other.clone() },
        EffectStep::WorkflowStep(step) => workflow_command(effect, step),
    })
}

pub(crate) fn owner_name(name: &str) -> OwnerName {
    name.parse().expect("an owner's name")
}
