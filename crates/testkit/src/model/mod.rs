//! A model of the engine: the expected outcome of a history, computed in another way.
//!
//! The engine keeps counts and indexes and moves one row at a time. The model keeps as little as possible and recomputes
//! everything else on each query. It is slow and plain, and shares no rule with the engine: if the two disagree, one of them
//! is wrong.
//!
//! The tasks that sessions claim and leave follow from the sessions' decisions: `session_tasks`.
//!
//! Not here: the built-in limits, which small histories hardly ever reach. A comparison ends there.

mod agents;
mod delivery;
mod dependencies;
mod series;
mod session_tasks;

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{
    ActionRequest, Authority, Command, CommandOrigin, DeletionMode, EdgeKind, EffectId, Epoch, Event, EventRecord,
    NewTask, SessionName, TaskId, TaskPriority, TaskResolution, TaskState, Timestamp,
};

use crate::effects::{LoggedEffect, read_pending_effects};
use crate::hook_actions::requested_actions;
use crate::sessions::{SessionOracle, read_sessions};
use crate::workflow_steps::read_workflow_progress;
use dependencies::wait;
use series::SeriesRecord;

/// The phase of a task. Whether a waiting task is ready follows from the other tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Active,
    Submitted,
    Completed,
    /// Blocked by a person, or by the failure of a dependency.
    Blocked(Option<TaskId>),
    NeedsContinuation,
    Failed,
    Deleted,
}

#[derive(Debug, Clone)]
struct Node {
    phase: Phase,
    priority: TaskPriority,
    labels: BTreeSet<String>,
    lease: Option<Lease>,
    epoch: u64,
    /// Whether the last session with the task worked in the project's own directory.
    in_place: bool,
    driven: SeriesRecord,
}

/// The whole state of the model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    tasks: BTreeMap<TaskId, Node>,
    edges: BTreeSet<(TaskId, EdgeKind, TaskId)>,
}

/// A task as the model knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state: TaskState,
    pub blocked_by: Option<TaskId>,
    pub open: usize,
    pub priority: TaskPriority,
    pub lease: Option<Lease>,
    /// The number of stop hooks, the iteration of the series, and the number of checkpoints.
    pub driven: (usize, Option<u32>, u32),
}

/// The epoch and the end of a lease. The lease of a session has no end.
pub type Lease = (Epoch, Option<Timestamp>);

const ALIVE: [TaskState; 8] = [Created, Ready, Active, Submitted, Completed, Blocked, NeedsContinuation, Failed];

use TaskState::{Active, Blocked, Completed, Created, Deleted, Failed, NeedsContinuation, Ready, Submitted};

impl Model {
    /// Applies a command and returns whether the model accepts it. A refused command changes nothing.
    pub fn apply_command(&mut self, origin: &CommandOrigin, command: &Command, log: &[EventRecord]) -> bool {
        let mut after = self.clone();
        let mut attempt = Attempt { model: &mut after, origin, log, hook: false, completed: Vec::new() };
        let accepted = attempt.is_from_a_running_hook(command)
            && !attempt.is_an_agents_override(command)
            && !attempt.is_against_what_an_agent_is_held_to(command)
            && attempt.command(command).is_some();
        if accepted {
            attempt.review();
            after.update_waiting_tasks();
            after.stop_driving();
            *self = after;
        }
        accepted
    }

    /// Applies the actions of hooks that ended after position `from`, each with the last hook of its event. The session oracle
    /// determines which hooks end with a command; the model determines the outcome of their actions.
    pub fn apply_hook_actions(&mut self, origin: &CommandOrigin, command: &Command, log: &[EventRecord], from: usize) {
        let mut completed = Vec::new();
        for place in from..log.len() {
            let Event::HookFinished(finished) = &log[place].envelope.event else {
                if session_tasks::is_of_a_session(command, &log[from..=place]) {
                    self.follow(origin, &log[..=place], &mut completed);
                }
                continue;
            };
            let (seq, log) = (finished.effect.seq, &log[..=place]);
            let asked = requested_actions(log, seq);
            if asked.is_empty() || read_pending_effects(log).iter().any(|(id, due)| id.seq == seq && due.turn.is_none())
            {
                continue;
            }
            for action in asked {
                let mut after = self.clone();
                let mut attempt = Attempt { model: &mut after, origin, log, hook: true, completed: Vec::new() };
                if attempt.action(&action).is_some() {
                    completed.append(&mut attempt.completed);
                    after.update_waiting_tasks();
                    after.stop_driving();
                    *self = after;
                }
            }
        }
        Attempt { model: self, origin, log, hook: true, completed }.review();
        self.stop_driving();
    }

    pub fn rows(&self) -> BTreeMap<TaskId, Row> {
        let row = |(id, node): (&TaskId, &Node)| {
            let blocked_by = if let Phase::Blocked(by) = node.phase { by } else { None };
            let (priority, lease) = (node.priority, node.lease);
            let SeriesRecord { hooks, series, checkpoints } = &node.driven;
            let driven = (hooks.len(), series.as_ref().map(|turns| turns.iteration), *checkpoints);
            (*id, Row { state: self.state(*id), blocked_by, open: self.open(*id).len(), priority, lease, driven })
        };
        self.tasks.iter().map(row).collect()
    }

    pub fn edges(&self) -> &BTreeSet<(TaskId, EdgeKind, TaskId)> {
        &self.edges
    }

    fn state(&self, id: TaskId) -> TaskState {
        match self.tasks[&id].phase {
            Phase::Waiting if self.open(id).is_empty() => Ready,
            Phase::Waiting => Created,
            Phase::Active => Active,
            Phase::Submitted => Submitted,
            Phase::Completed => Completed,
            Phase::Blocked(_) => Blocked,
            Phase::NeedsContinuation => NeedsContinuation,
            Phase::Failed => Failed,
            Phase::Deleted => Deleted,
        }
    }

    fn add(&mut self, priority: TaskPriority, labels: BTreeSet<String>) -> TaskId {
        let id = TaskId(self.tasks.len() as u64 + 1);
        self.tasks.insert(
            id,
            Node {
                phase: Phase::Waiting,
                priority,
                labels,
                lease: None,
                epoch: 0,
                in_place: false,
                driven: SeriesRecord::default(),
            },
        );
        id
    }
}

/// A command in progress. `None` as a result means that it is refused.
struct Attempt<'a> {
    model: &'a mut Model,
    origin: &'a CommandOrigin,
    log: &'a [EventRecord],
    /// Whether a hook requested the action. A holder of the task prevents it, and it has no force.
    hook: bool,
    /// The completed tasks. Their reviews are created at the end.
    completed: Vec<TaskId>,
}

impl Attempt<'_> {
    fn command(&mut self, command: &Command) -> Option<()> {
        use Command as C;
        match command {
            C::CreateTask(new) => self.create(new),
            C::UpdateTask { id, patch } => {
                (self.state(*id)? != Deleted || self.forced()).then_some(())?;
                let node = self.node(*id)?;
                node.priority = patch.priority.unwrap_or(node.priority);
                node.labels = agents::labels(node, patch);
                Some(())
            }
            C::ClaimTask { id, until, .. } => self.claim(*id, *until),
            C::StartTask { id, .. } => {
                self.may_start(*id).then_some(())?;
                self.leave_state(*id, &[Ready, NeedsContinuation], &[Created, Blocked])?.phase = Phase::Active;
                Some(())
            }
            C::SubmitTask { id } => {
                self.leave_state(*id, &[Active], &[])?.phase = Phase::Submitted;
                Some(())
            }
            C::CompleteTask { id, .. } => self.complete(*id),
            C::BlockTask { id, .. } => {
                let from = [Created, Ready, Active, Submitted, NeedsContinuation];
                self.release_task(*id, &from, &[], Phase::Blocked(None))
            }
            C::UnblockTask { id } => self.release_task(*id, &[Blocked], &[], Phase::Waiting),
            C::AnswerTask { id, answer, .. } => self.answer(*id, *answer),
            C::NeedContinuation { id, .. } => {
                self.release_task(*id, &[Active, Submitted], &[], Phase::NeedsContinuation)
            }
            C::ReleaseTask { id, .. } => {
                self.release_task(*id, &[Active, Submitted, NeedsContinuation], &[], Phase::Waiting)
            }
            C::FailTask { id, .. } => {
                let from = [Ready, Active, Submitted, NeedsContinuation, Blocked];
                self.release_task(*id, &from, &[Created], Phase::Failed)
            }
            C::ReopenTask { id, .. } => {
                self.release_task(*id, &[Failed], &[Completed, Deleted], Phase::Waiting)?;
                self.node(*id)?.driven.hooks.clear();
                self.model.free_waiters(*id);
                Some(())
            }
            C::DeleteTask { id, deletion } => self.delete(*id, *deletion),
            C::AddEdge { from, kind, to } => self.add_edge(*from, *kind, *to),
            C::RemoveEdge { from, kind, to } => self.remove_edge(*from, *kind, *to),
            C::AddNote { task: Some(id), .. } => self.state(*id).map(drop),
            C::AddNote { task: None, .. } => self.session_around()?.task.map(drop),
            C::TriggerWorkflow { task, .. } => task.map_or(Some(()), |id| self.state(id).map(drop)),
            C::OpenWorkspace { .. }
            | C::LeaveToPerson { .. }
            | C::SubmitWork { .. }
            | C::RecordMerge { .. }
            | C::ExpireLease { .. } => self.deliver(command),
            C::RegisterHook { .. }
            | C::ClearHooks { .. }
            | C::SwitchHook { .. }
            | C::StartSeries { .. }
            | C::JudgeSeries { .. }
            | C::AdvanceSeries { .. }
            | C::CompleteSeries { .. }
            | C::CreateCheckpoint { .. } => self.drive(command),
            other => self.session_or_effect(other),
        }
    }

    /// Applies an answer, which is another transition on behalf of a person.
    fn answer(&mut self, id: TaskId, answer: TaskResolution) -> Option<()> {
        (self.origin.run.is_none() && self.origin.via.is_none()).then_some(())?;
        let why = String::new;
        match (answer, self.state(id)?) {
            (TaskResolution::Approve, Blocked | NeedsContinuation | Failed) => self.complete(id),
            (TaskResolution::Reject, Blocked | NeedsContinuation) => {
                self.command(&Command::FailTask { id, reason: why() })
            }
            (_, Blocked) => self.command(&Command::UnblockTask { id }),
            (TaskResolution::Retry, Failed) => self.command(&Command::ReopenTask { id, reason: why() }),
            (TaskResolution::Continue | TaskResolution::Retry, NeedsContinuation) => {
                self.leave_state(id, &[NeedsContinuation], &[]).map(drop)
            }
            _ => None,
        }
    }

    fn create(&mut self, new: &NewTask) -> Option<()> {
        for other in new.depends_on.iter().chain(&new.parent) {
            (self.state(*other)? != Deleted).then_some(())?;
        }
        let id = self.model.add(new.priority, new.labels.iter().cloned().collect());
        self.model.edges.extend(new.depends_on.iter().map(|other| (id, EdgeKind::DependsOn, *other)));
        self.model.edges.extend(new.parent.map(|parent| (id, EdgeKind::SpawnedBy, parent)));
        Some(())
    }

    fn claim(&mut self, id: Option<TaskId>, until: Timestamp) -> Option<()> {
        (until > self.origin.at).then_some(())?;
        for node in self.model.tasks.values_mut() {
            if node.lease.is_some_and(|(_, until)| until.is_some_and(|until| until < self.origin.at)) {
                (node.lease, node.phase) = (None, Phase::Waiting);
            }
        }
        self.model.block_unreachable_waiters();
        let claimable =
            |(id, row): (TaskId, Row)| matches!(row.state, Ready | NeedsContinuation).then_some((row.priority, id));
        let next = self.model.rows().into_iter().filter_map(claimable).min().map(|(_, id)| id);
        let node = self.leave_state(id.or(next)?, &[Ready, NeedsContinuation], &[])?;
        node.epoch += 1;
        (node.phase, node.lease) = (Phase::Active, Some((Epoch(node.epoch), Some(until))));
        Some(())
    }

    fn complete(&mut self, id: TaskId) -> Option<()> {
        let from = [Ready, Active, Submitted, NeedsContinuation];
        if !self.hook
            && let Some(run) = &self.origin.run
            && let Some(session) = self.session(&run.session)
        {
            (session.turn.as_ref() == Some(run) && from.contains(&self.state(id)?)).then_some(())?;
            // For a task that the own session holds, the command is a claim and changes no state. A session's lease has no end.
            let authority = self.origin.authority;
            if let Some((epoch, until)) = self.node(id)?.lease
                && (until.is_none() || authority != Authority::Holder(epoch))
            {
                return (until.is_none() && session.holds() && session.task == Some(id)).then_some(());
            }
            (!self.is_gated(id)).then_some(())?;
        }
        self.release_task(id, &from, &[Created, Blocked, Failed], Phase::Completed)?;
        self.model.free_waiters(id);
        self.completed.push(id);
        Some(())
    }

    /// Creates the reviews of tasks that agents have completed.
    fn review(&mut self) {
        for id in std::mem::take(&mut self.completed) {
            let Node { priority, mut labels, .. } = self.model.tasks[&id].clone();
            if labels.contains("agent") && labels.insert("review".to_owned()) {
                let review = self.model.add(priority, labels);
                self.model.edges.insert((review, EdgeKind::SpawnedBy, id));
            }
        }
    }

    /// Returns whether the command's hook still runs, if there is one. Commands that are not about tasks need no running hook.
    fn is_from_a_running_hook(&self, command: &Command) -> bool {
        let runs = |via| self.due(via).is_some_and(|due| due.begun > 0 && due.turn.is_none());
        !is_about_tasks(command) || self.origin.via.is_none_or(runs)
    }

    /// Returns whether an agent tries to override the rules, which only a person may do, or a person's hook outside of sessions.
    fn is_an_agents_override(&self, command: &Command) -> bool {
        let own_word = matches!(command, Command::CompleteTask { .. }) && self.origin.via.is_none();
        self.session_around().is_some() && self.forced() && is_about_tasks(command) && !own_word
    }

    /// Applies one of the actions that histories contain.
    fn action(&mut self, action: &ActionRequest) -> Option<()> {
        let said = &action.payload;
        let task = |name: &str| said[name].as_str().map(|id| id.parse().expect("histories name tasks"));
        match (action.kind.as_str(), said["action"].as_str()) {
            ("createTask", _) => self.create(&NewTask {
                priority: u8::try_from(said["priority"].as_u64()?).ok()?.try_into().ok()?,
                parent: task("parentTaskId"),
                ..NewTask::default()
            }),
            ("update_task", Some("set-labels" | "addLabels")) => {
                let id = task("taskId")?;
                (self.state(id)? != Deleted).then_some(())?;
                let node = self.node(id)?;
                if said["action"] == "set-labels" {
                    node.labels.clear();
                }
                node.labels.insert("agent".to_owned());
                Some(())
            }
            ("update_task", Some(change)) => {
                let (id, why) = (task("taskId")?, String::new);
                let command = match change {
                    "start" => Command::StartTask { id, context: serde_json::Value::Null },
                    "complete" => Command::CompleteTask { id, result: None, artifacts: vec![] },
                    "block" => Command::BlockTask { id, reason: why(), required_knowledge: vec![] },
                    "unblock" => Command::UnblockTask { id },
                    // The graph decides whether a task is ready.
                    _ => return None,
                };
                self.command(&command)
            }
            _ => None,
        }
    }

    fn delete(&mut self, id: TaskId, deletion: DeletionMode) -> Option<()> {
        let state = self.state(id)?;
        let doomed = match deletion {
            DeletionMode::Cascade => self.model.open_above(id),
            DeletionMode::Alone | DeletionMode::BlockDependents => BTreeSet::from([id]),
        };
        let mut waiting = self.model.waiters(id);
        // A completed task has no waiters.
        waiting.retain(|waiter| state != Completed && self.model.state(*waiter) != Completed);
        (deletion != DeletionMode::Alone || waiting.is_empty()).then_some(())?;
        for doomed in &doomed {
            self.release_task(*doomed, &ALIVE, &[], Phase::Deleted)?;
        }
        for waiter in waiting.into_iter().filter(|_| deletion == DeletionMode::BlockDependents) {
            let node = self.node(waiter)?;
            if matches!(node.phase, Phase::Waiting | Phase::NeedsContinuation) {
                node.phase = Phase::Blocked(Some(id));
            }
        }
        self.model.edges.retain(|(from, _, to)| !doomed.contains(from) && !doomed.contains(to));
        Some(())
    }

    fn add_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Option<()> {
        let linked = self.state(from)? != Deleted && self.state(to)? != Deleted && from != to;
        linked.then_some(())?;
        self.model.edges.insert((from, kind, to));
        let circle = self.model.waits().iter().any(|(waiter, awaited)| self.model.above(*waiter).contains(awaited));
        (!circle).then_some(())?;
        if let Some((waiter, awaited)) =
            wait(from, kind, to).filter(|(_, awaited)| self.model.state(*awaited) != Failed)
        {
            self.model.free(waiter, awaited);
        }
        Some(())
    }

    fn remove_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Option<()> {
        self.model.edges.remove(&(from, kind, to)).then_some(())?;
        if let Some((waiter, awaited)) = wait(from, kind, to) {
            self.model.free(waiter, awaited);
        }
        Some(())
    }

    /// Checks the authority for a command about a session or an effect. Their state comes from the log.
    fn session_or_effect(&mut self, command: &Command) -> Option<()> {
        use Command as C;
        match command {
            C::Call(_) => Some(()),
            C::AnswerCall { at, .. } => (at.0 > 0).then_some(()),
            C::StartSession(new) => {
                let free = new.task.is_none_or(|task| self.model.clone().may_be_taken(task, self.origin.at));
                (free && self.session(&new.name).is_none()).then_some(())
            }
            C::ResumeSession { name, dead, .. } => {
                let session = self.session(name)?;
                (!session.is_over() && session.owner == *dead).then_some(())
            }
            C::StopSession { name, .. } => {
                let session = self.session(name)?;
                (session.ended.is_none() && session.stopping.is_none()).then_some(())
            }
            C::CancelSession { name, .. } => {
                (self.origin.run.is_none() || self.origin.via.is_some()).then_some(())?;
                let session = self.session(name)?;
                (session.ended.is_none() && session.stopping.is_none()).then_some(())
            }
            C::AdvanceSession { name } => {
                let session = self.session(name)?;
                let skips =
                    session.skipped_hook().and_then(|skipped| self.due(skipped)).is_some_and(|due| due.begun == 0);
                (skips || session.may_advance(self.origin.at)).then_some(())
            }
            C::AnswerGate { session, .. } => {
                let person = self.origin.run.is_none() && self.origin.via.is_none();
                (person && self.session(session)?.asks()).then_some(())
            }
            C::Say { session, .. } => {
                let session = self.session(session)?;
                session.ended.is_none().then_some(())
            }
            C::OpenConversation { run, .. }
            | C::FinishTurn { run, .. }
            | C::FailTurn { run, .. }
            | C::PostponeTurn { run, .. }
            | C::InterruptTurn { run, .. } => (self.session(&run.session)?.turn.as_ref() == Some(run)).then_some(()),
            C::BeginEffect { effect, owner } => {
                let due = self.due(*effect)?;
                let session = due.session.and_then(|name| self.session(&name));
                let in_vain = session.is_some_and(|session| session.is_hook_needless(*effect));
                (due.begun == 0 && due.owner == *owner && !in_vain).then_some(())
            }
            C::FinishEffect { effect, owner, .. }
            | C::RestEffect { effect, owner, .. }
            | C::RetryEffect { effect, owner, .. } => {
                let due = self.due(*effect)?;
                let rests_again = due.rests && matches!(command, C::RestEffect { .. });
                (due.begun > 0 && due.turn.is_none() && due.owner == *owner && !rests_again).then_some(())
            }
            C::StartWorkflow { effect, owner, .. } => {
                let due = self.due(*effect)?;
                let is_ours = due.begun > 0 && due.turn.is_none() && due.owner == *owner;
                (is_ours && !read_workflow_progress(self.log, *effect).has_started).then_some(())
            }
            C::BeginStep { effect, owner, .. } => {
                let (due, come) = (self.due(*effect)?, read_workflow_progress(self.log, *effect));
                (due.owner == *owner && come.next.is_some() && !come.is_under_way).then_some(())
            }
            C::EndStep { effect, owner, .. } | C::AbandonWorkflow { effect, owner, .. } => {
                (self.due(*effect)?.owner == *owner && read_workflow_progress(self.log, *effect).next.is_some())
                    .then_some(())
            }
            C::RecoverEffect { effect, dead, owner } => {
                let due = self.due(*effect)?;
                // A turn is recovered together with its session.
                let resumed =
                    due.turn.is_none_or(|run| self.session(&run.session).is_some_and(|it| it.owner == *owner));
                (due.owner == *dead && resumed).then_some(())
            }
            _ => unreachable!("the other commands are about tasks"),
        }
    }

    /// Returns the session inside which the command was given: that of its hook, else that of its turn.
    fn session_around(&self) -> Option<SessionOracle> {
        let of_hook = |via| self.due(via).and_then(|due| due.session);
        let named = match self.origin.via {
            Some(via) => of_hook(via),
            None => self.origin.run.as_ref().map(|run| run.session.clone()),
        };
        self.session(&named?)
    }

    fn session(&self, name: &SessionName) -> Option<SessionOracle> {
        read_sessions(self.log).remove(name)
    }

    fn due(&self, effect: EffectId) -> Option<LoggedEffect> {
        read_pending_effects(self.log).remove(&effect)
    }

    fn forced(&self) -> bool {
        !self.hook && self.origin.authority == Authority::Forced
    }

    fn state(&self, id: TaskId) -> Option<TaskState> {
        self.model.tasks.contains_key(&id).then(|| self.model.state(id))
    }

    fn node(&mut self, id: TaskId) -> Option<&mut Node> {
        self.model.tasks.get_mut(&id)
    }

    /// Returns the task if the origin of the command may move it out of its state.
    fn leave_state(&mut self, id: TaskId, from: &[TaskState], forced_from: &[TaskState]) -> Option<&mut Node> {
        let state = self.state(id)?;
        let forced = self.forced();
        let (authority, hook) = (self.origin.authority, self.hook);
        let node = self.node(id)?;
        let may = match authority {
            _ if hook => node.lease.is_none(),
            Authority::Forced => true,
            Authority::Person => node.lease.is_none(),
            // A session's lease has no end, and no other holder has it.
            Authority::Holder(epoch) => node.lease.is_some_and(|(held, until)| held == epoch && until.is_some()),
        };
        (may && (from.contains(&state) || forced && forced_from.contains(&state))).then_some(node)
    }

    /// Moves a task to a phase without a holder.
    fn release_task(&mut self, id: TaskId, from: &[TaskState], forced_from: &[TaskState], phase: Phase) -> Option<()> {
        let node = self.leave_state(id, from, forced_from)?;
        (node.phase, node.lease) = (phase, None);
        Some(())
    }
}

/// Returns whether a command is about tasks, and not about the work of a session's runner.
fn is_about_tasks(command: &Command) -> bool {
    use Command as C;
    !matches!(
        command,
        C::ResumeSession { .. }
            | C::StopSession { .. }
            | C::AdvanceSession { .. }
            | C::OpenWorkspace { .. }
            | C::LeaveToPerson { .. }
            | C::SubmitWork { .. }
            | C::OpenConversation { .. }
            | C::FinishTurn { .. }
            | C::FailTurn { .. }
            | C::PostponeTurn { .. }
            | C::InterruptTurn { .. }
            | C::BeginEffect { .. }
            | C::RestEffect { .. }
            | C::RetryEffect { .. }
            | C::FinishEffect { .. }
            | C::StartWorkflow { .. }
            | C::BeginStep { .. }
            | C::EndStep { .. }
            | C::AbandonWorkflow { .. }
            | C::RecoverEffect { .. }
    )
}
