//! A model of the engine: the expected outcome of a history, computed in another way.
//!
//! The engine stores counts and indexes and changes one row at a time. The model stores as little as possible and recomputes
//! all other values on each query. It is slow and simple, and shares no rule with the engine: if the two disagree, one of them
//! is wrong.
//!
//! The tasks that sessions claim and leave follow from the sessions' decisions: `session_tasks`.
//!
//! Not here: the built-in limits, which small histories rarely reach. A comparison ends at a limit.

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
use dependencies::waiting_pair;
use series::SeriesRecord;

/// The phase of a task. Whether a waiting task is ready follows from the other tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskPhase {
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
struct ModelTask {
    phase: TaskPhase,
    priority: TaskPriority,
    labels: BTreeSet<String>,
    lease: Option<Lease>,
    epoch: u64,
    /// Whether the last session with the task worked in the project's own directory.
    in_place: bool,
    series_record: SeriesRecord,
}

/// The whole state of the model.
#[derive(Debug, Clone, Default)]
pub struct EngineModel {
    tasks: BTreeMap<TaskId, ModelTask>,
    edges: BTreeSet<(TaskId, EdgeKind, TaskId)>,
}

/// A task as the model knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTaskRow {
    pub state: TaskState,
    pub blocked_by: Option<TaskId>,
    pub open: usize,
    pub priority: TaskPriority,
    pub lease: Option<Lease>,
    /// The number of stop hooks, the iteration of the series, and the number of checkpoints.
    pub series_counts: (usize, Option<u32>, u32),
}

/// The epoch and the end of a lease. The lease of a session has no end.
pub type Lease = (Epoch, Option<Timestamp>);

const LIVING_STATES: [TaskState; 8] =
    [Created, Ready, Active, Submitted, Completed, Blocked, NeedsContinuation, Failed];

use TaskState::{Active, Blocked, Completed, Created, Deleted, Failed, NeedsContinuation, Ready, Submitted};

impl EngineModel {
    /// Applies a command and returns whether the model accepts it. A refused command changes nothing.
    pub fn apply_command(&mut self, origin: &CommandOrigin, command: &Command, log: &[EventRecord]) -> bool {
        let mut after = self.clone();
        let mut attempt = CommandAttempt { model: &mut after, origin, log, hook: false, completed: Vec::new() };
        let accepted = attempt.has_running_hook(command)
            && !attempt.is_agent_override(command)
            && !attempt.violates_agent_limits(command)
            && attempt.run_command(command).is_some();
        if accepted {
            attempt.create_reviews();
            after.update_waiting_tasks();
            after.end_finished_series();
            *self = after;
        }
        accepted
    }

    /// Applies the actions of hooks that ended after position `from`, each with the last hook of its event. The session oracle
    /// determines which hooks end with a command; the model determines the outcome of their actions.
    pub fn apply_hook_actions(&mut self, origin: &CommandOrigin, command: &Command, log: &[EventRecord], from: usize) {
        let mut completed = Vec::new();
        for index in from..log.len() {
            let Event::HookFinished(finished) = &log[index].envelope.event else {
                if session_tasks::is_session_event(command, &log[from..=index]) {
                    self.apply_session_event(origin, &log[..=index], &mut completed);
                }
                continue;
            };
            let (seq, log) = (finished.effect.seq, &log[..=index]);
            let actions = requested_actions(log, seq);
            if actions.is_empty()
                || read_pending_effects(log).iter().any(|(id, pending)| id.seq == seq && pending.turn.is_none())
            {
                continue;
            }
            for action in actions {
                let mut after = self.clone();
                let mut attempt = CommandAttempt { model: &mut after, origin, log, hook: true, completed: Vec::new() };
                if attempt.run_action(&action).is_some() {
                    completed.append(&mut attempt.completed);
                    after.update_waiting_tasks();
                    after.end_finished_series();
                    *self = after;
                }
            }
        }
        CommandAttempt { model: self, origin, log, hook: true, completed }.create_reviews();
        self.end_finished_series();
    }

    pub fn rows(&self) -> BTreeMap<TaskId, ModelTaskRow> {
        let row = |(id, node): (&TaskId, &ModelTask)| {
            let blocked_by = if let TaskPhase::Blocked(by) = node.phase { by } else { None };
            let (priority, lease) = (node.priority, node.lease);
            let SeriesRecord { hooks, series, checkpoints } = &node.series_record;
            let series_counts = (hooks.len(), series.as_ref().map(|turns| turns.iteration), *checkpoints);
            (
                *id,
                ModelTaskRow {
                    state: self.state(*id),
                    blocked_by,
                    open: self.open_dependencies(*id).len(),
                    priority,
                    lease,
                    series_counts,
                },
            )
        };
        self.tasks.iter().map(row).collect()
    }

    pub fn edges(&self) -> &BTreeSet<(TaskId, EdgeKind, TaskId)> {
        &self.edges
    }

    fn state(&self, id: TaskId) -> TaskState {
        match self.tasks[&id].phase {
            TaskPhase::Waiting if self.open_dependencies(id).is_empty() => Ready,
            TaskPhase::Waiting => Created,
            TaskPhase::Active => Active,
            TaskPhase::Submitted => Submitted,
            TaskPhase::Completed => Completed,
            TaskPhase::Blocked(_) => Blocked,
            TaskPhase::NeedsContinuation => NeedsContinuation,
            TaskPhase::Failed => Failed,
            TaskPhase::Deleted => Deleted,
        }
    }

    fn add_task(&mut self, priority: TaskPriority, labels: BTreeSet<String>) -> TaskId {
        let id = TaskId(self.tasks.len() as u64 + 1);
        self.tasks.insert(
            id,
            ModelTask {
                phase: TaskPhase::Waiting,
                priority,
                labels,
                lease: None,
                epoch: 0,
                in_place: false,
                series_record: SeriesRecord::default(),
            },
        );
        id
    }
}

/// A command in progress. `None` as a result means that it is refused.
struct CommandAttempt<'a> {
    model: &'a mut EngineModel,
    origin: &'a CommandOrigin,
    log: &'a [EventRecord],
    /// Whether a hook requested the action. A holder of the task prevents it, and it has no force.
    hook: bool,
    /// The completed tasks. Their reviews are created at the end.
    completed: Vec<TaskId>,
}

impl CommandAttempt<'_> {
    fn run_command(&mut self, command: &Command) -> Option<()> {
        use Command as C;
        match command {
            C::CreateTask(new) => self.create_task(new),
            C::UpdateTask { id, patch } => {
                (self.state(*id)? != Deleted || self.is_forced()).then_some(())?;
                let node = self.node(*id)?;
                node.priority = patch.priority.unwrap_or(node.priority);
                node.labels = agents::patched_labels(node, patch);
                Some(())
            }
            C::ClaimTask { id, until, .. } => self.claim_task(*id, *until),
            C::StartTask { id, .. } => {
                self.may_start(*id).then_some(())?;
                self.leave_state(*id, &[Ready, NeedsContinuation], &[Created, Blocked])?.phase = TaskPhase::Active;
                Some(())
            }
            C::SubmitTask { id } => {
                self.leave_state(*id, &[Active], &[])?.phase = TaskPhase::Submitted;
                Some(())
            }
            C::CompleteTask { id, .. } => self.complete_task(*id),
            C::BlockTask { id, .. } => {
                let from = [Created, Ready, Active, Submitted, NeedsContinuation];
                self.release_task(*id, &from, &[], TaskPhase::Blocked(None))
            }
            C::UnblockTask { id } => self.release_task(*id, &[Blocked], &[], TaskPhase::Waiting),
            C::AnswerTask { id, answer, .. } => self.answer_task(*id, *answer),
            C::NeedContinuation { id, .. } => {
                self.release_task(*id, &[Active, Submitted], &[], TaskPhase::NeedsContinuation)
            }
            C::ReleaseTask { id, .. } => {
                self.release_task(*id, &[Active, Submitted, NeedsContinuation], &[], TaskPhase::Waiting)
            }
            C::FailTask { id, .. } => {
                let from = [Ready, Active, Submitted, NeedsContinuation, Blocked];
                self.release_task(*id, &from, &[Created], TaskPhase::Failed)
            }
            C::ReopenTask { id, .. } => {
                self.release_task(*id, &[Failed], &[Completed, Deleted], TaskPhase::Waiting)?;
                self.node(*id)?.series_record.hooks.clear();
                self.model.free_waiters(*id);
                Some(())
            }
            C::DeleteTask { id, deletion } => self.delete_task(*id, *deletion),
            C::AddEdge { from, kind, to } => self.add_edge(*from, *kind, *to),
            C::RemoveEdge { from, kind, to } => self.remove_edge(*from, *kind, *to),
            C::AddNote { task: Some(id), .. } => self.state(*id).map(drop),
            C::AddNote { task: None, .. } => self.surrounding_session()?.task.map(drop),
            C::TriggerWorkflow { task, .. } => task.map_or(Some(()), |id| self.state(id).map(drop)),
            C::OpenWorkspace { .. }
            | C::LeaveToPerson { .. }
            | C::SubmitWork { .. }
            | C::RecordMerge { .. }
            | C::ExpireLease { .. } => self.run_delivery_command(command),
            C::RegisterHook { .. }
            | C::ClearHooks { .. }
            | C::SwitchHook { .. }
            | C::StartSeries { .. }
            | C::JudgeSeries { .. }
            | C::AdvanceSeries { .. }
            | C::CompleteSeries { .. }
            | C::CreateCheckpoint { .. } => self.run_series_command(command),
            other => self.check_session_or_effect(other),
        }
    }

    /// Applies an answer, which is another transition on behalf of a person.
    fn answer_task(&mut self, id: TaskId, answer: TaskResolution) -> Option<()> {
        (self.origin.run.is_none() && self.origin.via.is_none()).then_some(())?;
        let why = String::new;
        match (answer, self.state(id)?) {
            (TaskResolution::Approve, Blocked | NeedsContinuation | Failed) => self.complete_task(id),
            (TaskResolution::Reject, Blocked | NeedsContinuation) => {
                self.run_command(&Command::FailTask { id, reason: why() })
            }
            (_, Blocked) => self.run_command(&Command::UnblockTask { id }),
            (TaskResolution::Retry, Failed) => self.run_command(&Command::ReopenTask { id, reason: why() }),
            (TaskResolution::Continue | TaskResolution::Retry, NeedsContinuation) => {
                self.leave_state(id, &[NeedsContinuation], &[]).map(drop)
            }
            _ => None,
        }
    }

    fn create_task(&mut self, new: &NewTask) -> Option<()> {
        for other in new.depends_on.iter().chain(&new.parent) {
            (self.state(*other)? != Deleted).then_some(())?;
        }
        let id = self.model.add_task(new.priority, new.labels.iter().cloned().collect());
        self.model.edges.extend(new.depends_on.iter().map(|other| (id, EdgeKind::DependsOn, *other)));
        self.model.edges.extend(new.parent.map(|parent| (id, EdgeKind::SpawnedBy, parent)));
        Some(())
    }

    fn claim_task(&mut self, id: Option<TaskId>, until: Timestamp) -> Option<()> {
        (until > self.origin.at).then_some(())?;
        for node in self.model.tasks.values_mut() {
            if node.lease.is_some_and(|(_, until)| until.is_some_and(|until| until < self.origin.at)) {
                (node.lease, node.phase) = (None, TaskPhase::Waiting);
            }
        }
        self.model.block_unreachable_waiters();
        let claimable = |(id, row): (TaskId, ModelTaskRow)| {
            matches!(row.state, Ready | NeedsContinuation).then_some((row.priority, id))
        };
        let next = self.model.rows().into_iter().filter_map(claimable).min().map(|(_, id)| id);
        let node = self.leave_state(id.or(next)?, &[Ready, NeedsContinuation], &[])?;
        node.epoch += 1;
        (node.phase, node.lease) = (TaskPhase::Active, Some((Epoch(node.epoch), Some(until))));
        Some(())
    }

    fn complete_task(&mut self, id: TaskId) -> Option<()> {
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
        self.release_task(id, &from, &[Created, Blocked, Failed], TaskPhase::Completed)?;
        self.model.free_waiters(id);
        self.completed.push(id);
        Some(())
    }

    /// Creates the reviews of tasks that agents have completed.
    fn create_reviews(&mut self) {
        for id in std::mem::take(&mut self.completed) {
            let ModelTask { priority, mut labels, .. } = self.model.tasks[&id].clone();
            if labels.contains("agent") && labels.insert("review".to_owned()) {
                let review = self.model.add_task(priority, labels);
                self.model.edges.insert((review, EdgeKind::SpawnedBy, id));
            }
        }
    }

    /// Returns whether the command's hook still runs, if there is one. Commands that are not about tasks need no running hook.
    fn has_running_hook(&self, command: &Command) -> bool {
        let runs = |via| self.find_effect(via).is_some_and(|pending| pending.attempts > 0 && pending.turn.is_none());
        !agents::is_about_tasks(command) || self.origin.via.is_none_or(runs)
    }

    /// Returns whether an agent tries to override the rules, which only a person may do, or a person's hook outside of sessions.
    fn is_agent_override(&self, command: &Command) -> bool {
        let own_word = matches!(command, Command::CompleteTask { .. }) && self.origin.via.is_none();
        self.surrounding_session().is_some() && self.is_forced() && agents::is_about_tasks(command) && !own_word
    }

    /// Applies one of the actions that histories contain.
    fn run_action(&mut self, action: &ActionRequest) -> Option<()> {
        let payload = &action.payload;
        let task = |name: &str| payload[name].as_str().map(|id| id.parse().expect("histories name tasks"));
        match (action.kind.as_str(), payload["action"].as_str()) {
            ("createTask", _) => self.create_task(&NewTask {
                priority: u8::try_from(payload["priority"].as_u64()?).ok()?.try_into().ok()?,
                parent: task("parentTaskId"),
                ..NewTask::default()
            }),
            ("update_task", Some("set-labels" | "addLabels")) => {
                let id = task("taskId")?;
                (self.state(id)? != Deleted).then_some(())?;
                let node = self.node(id)?;
                if payload["action"] == "set-labels" {
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
                self.run_command(&command)
            }
            _ => None,
        }
    }

    fn delete_task(&mut self, id: TaskId, deletion: DeletionMode) -> Option<()> {
        let state = self.state(id)?;
        let deleted = match deletion {
            DeletionMode::Cascade => self.model.open_tasks_waiting_on(id),
            DeletionMode::Alone | DeletionMode::BlockDependents => BTreeSet::from([id]),
        };
        let mut waiting = self.model.waiters(id);
        // A completed task has no waiters.
        waiting.retain(|waiter| state != Completed && self.model.state(*waiter) != Completed);
        (deletion != DeletionMode::Alone || waiting.is_empty()).then_some(())?;
        for deleted in &deleted {
            self.release_task(*deleted, &LIVING_STATES, &[], TaskPhase::Deleted)?;
        }
        for waiter in waiting.into_iter().filter(|_| deletion == DeletionMode::BlockDependents) {
            let node = self.node(waiter)?;
            if matches!(node.phase, TaskPhase::Waiting | TaskPhase::NeedsContinuation) {
                node.phase = TaskPhase::Blocked(Some(id));
            }
        }
        self.model.edges.retain(|(from, _, to)| !deleted.contains(from) && !deleted.contains(to));
        Some(())
    }

    fn add_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Option<()> {
        let linked = self.state(from)? != Deleted && self.state(to)? != Deleted && from != to;
        linked.then_some(())?;
        self.model.edges.insert((from, kind, to));
        let has_cycle = self
            .model
            .waiting_pairs()
            .iter()
            .any(|(waiter, awaited)| self.model.tasks_waiting_on(*waiter).contains(awaited));
        (!has_cycle).then_some(())?;
        if let Some((waiter, awaited)) =
            waiting_pair(from, kind, to).filter(|(_, awaited)| self.model.state(*awaited) != Failed)
        {
            self.model.unblock_waiter(waiter, awaited);
        }
        Some(())
    }

    fn remove_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Option<()> {
        self.model.edges.remove(&(from, kind, to)).then_some(())?;
        if let Some((waiter, awaited)) = waiting_pair(from, kind, to) {
            self.model.unblock_waiter(waiter, awaited);
        }
        Some(())
    }

    /// Checks the authority for a command about a session or an effect. Their state comes from the log.
    fn check_session_or_effect(&mut self, command: &Command) -> Option<()> {
        use Command as C;
        match command {
            C::Call(_) => Some(()),
            C::AnswerCall { at, .. } => (at.0 > 0).then_some(()),
            C::StartSession(new) => {
                let free = new.task.is_none_or(|task| self.model.clone().allows_session_claim(task, self.origin.at));
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
                let skips = session
                    .skipped_hook()
                    .and_then(|skipped| self.find_effect(skipped))
                    .is_some_and(|pending| pending.attempts == 0);
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
                let pending = self.find_effect(*effect)?;
                let session = pending.session.and_then(|name| self.session(&name));
                let in_vain = session.is_some_and(|session| session.is_hook_needless(*effect));
                (pending.attempts == 0 && pending.owner == *owner && !in_vain).then_some(())
            }
            C::FinishEffect { effect, owner, .. }
            | C::RestEffect { effect, owner, .. }
            | C::RetryEffect { effect, owner, .. } => {
                let pending = self.find_effect(*effect)?;
                let rests_again = pending.is_resting && matches!(command, C::RestEffect { .. });
                (pending.attempts > 0 && pending.turn.is_none() && pending.owner == *owner && !rests_again)
                    .then_some(())
            }
            C::StartWorkflow { effect, owner, .. } => {
                let pending = self.find_effect(*effect)?;
                let is_ours = pending.attempts > 0 && pending.turn.is_none() && pending.owner == *owner;
                (is_ours && !read_workflow_progress(self.log, *effect).has_started).then_some(())
            }
            C::BeginStep { effect, owner, .. } => {
                let (pending, progress) = (self.find_effect(*effect)?, read_workflow_progress(self.log, *effect));
                (pending.owner == *owner && progress.next.is_some() && !progress.is_under_way).then_some(())
            }
            C::EndStep { effect, owner, .. } | C::AbandonWorkflow { effect, owner, .. } => {
                (self.find_effect(*effect)?.owner == *owner && read_workflow_progress(self.log, *effect).next.is_some())
                    .then_some(())
            }
            C::RecoverEffect { effect, dead, owner } => {
                let pending = self.find_effect(*effect)?;
                // A turn is recovered together with its session.
                let resumed =
                    pending.turn.is_none_or(|run| self.session(&run.session).is_some_and(|it| it.owner == *owner));
                (pending.owner == *dead && resumed).then_some(())
            }
            _ => unreachable!("the other commands are about tasks"),
        }
    }

    /// Returns the session inside which the command was given: that of its hook, else that of its turn.
    fn surrounding_session(&self) -> Option<SessionOracle> {
        let of_hook = |via| self.find_effect(via).and_then(|pending| pending.session);
        let named = match self.origin.via {
            Some(via) => of_hook(via),
            None => self.origin.run.as_ref().map(|run| run.session.clone()),
        };
        self.session(&named?)
    }

    fn session(&self, name: &SessionName) -> Option<SessionOracle> {
        read_sessions(self.log).remove(name)
    }

    fn find_effect(&self, effect: EffectId) -> Option<LoggedEffect> {
        read_pending_effects(self.log).remove(&effect)
    }

    fn is_forced(&self) -> bool {
        !self.hook && self.origin.authority == Authority::Forced
    }

    fn state(&self, id: TaskId) -> Option<TaskState> {
        self.model.tasks.contains_key(&id).then(|| self.model.state(id))
    }

    fn node(&mut self, id: TaskId) -> Option<&mut ModelTask> {
        self.model.tasks.get_mut(&id)
    }

    /// Returns the task if the origin of the command may move it out of its state.
    fn leave_state(&mut self, id: TaskId, from: &[TaskState], forced_from: &[TaskState]) -> Option<&mut ModelTask> {
        let state = self.state(id)?;
        let forced = self.is_forced();
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
    fn release_task(
        &mut self,
        id: TaskId,
        from: &[TaskState],
        forced_from: &[TaskState],
        phase: TaskPhase,
    ) -> Option<()> {
        let node = self.leave_state(id, from, forced_from)?;
        (node.phase, node.lease) = (phase, None);
        Some(())
    }
}
