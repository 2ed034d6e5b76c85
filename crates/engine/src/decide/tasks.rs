//! Commands about one task.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Deciding;
use crate::command::limits::{Limits, check_bytes, check_labels, check_list, check_text, check_value};
use crate::command::refusal::Refusal;
use crate::command::{Authority, Deletion, NewTask, TaskPatch};
use crate::delivery::Grounds;
use crate::log::event::{Event, Node, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Epoch, OwnerName, SessionName, TaskId};
use crate::log::time::Timestamp;
use crate::task::graph::{awaited, waiters};
use crate::task::note::NoteKind;
use crate::task::transitions::Move;
use crate::task::{Blocked, Claim, EdgeKind, Lease, State, Task};
use crate::view::{Direction, View};

impl Deciding<'_, '_> {
    pub(super) fn create(&mut self, new: &NewTask) -> Result<TaskId, Refusal> {
        check_text("the goal", &new.goal, Limits::GOAL)?;
        check_bytes("the body", new.body.as_deref().unwrap_or_default(), Limits::BODY)?;
        check_list("a deliverable", &new.deliverables, Limits::DELIVERABLES, Limits::DELIVERABLE)?;
        check_labels(&new.labels)?;
        new.kind.as_ref().map_or(Ok(()), |kind| self.rules.types.check(kind))?;
        if new.depends_on.len() > Limits::DEPENDENCIES {
            return Err(Refusal::invalid("a task", format!("may wait for at most {} others", Limits::DEPENDENCIES)));
        }
        let id = TaskId(self.draft.last_task()?.map_or(1, |last| last.0 + 1));
        let mut depends_on: BTreeSet<_> = new.depends_on.iter().copied().collect();
        let reviewed = new.report.as_ref().and_then(|report| report.reviews);
        for other in depends_on.iter().chain(&new.parent).chain(&reviewed) {
            if self.task(*other)?.state == State::Deleted {
                return Err(Refusal::LinkToDeleted { from: id, to: *other });
            }
        }
        // A review can only begin after the reviewed work is done.
        if let Some(reviewed) = reviewed
            && self.task(reviewed)?.state != State::Completed
        {
            depends_on.insert(reviewed);
        }
        self.emit(
            Node::Task(id),
            payload::TaskCreated {
                goal: new.goal.clone(),
                body: new.body.clone().filter(|body| !body.is_empty()),
                deliverables: new.deliverables.clone(),
                labels: without_repeats(&new.labels),
                priority: new.priority,
                kind: new.kind.clone(),
                report: new.report.clone(),
            },
        )?;
        let edges = depends_on.into_iter().map(|other| (EdgeKind::DependsOn, other));
        for (kind, other) in edges.chain(new.parent.map(|parent| (EdgeKind::SpawnedBy, parent))) {
            self.emit_edge(id, kind, other)?;
        }
        self.settle(id)?;
        Ok(id)
    }

    pub(super) fn update(&mut self, id: TaskId, patch: &TaskPatch) -> Result<(), Refusal> {
        let task = self.task(id)?;
        if task.state == State::Deleted && !self.forced() {
            let from = State::ALL.into_iter().filter(|state| *state != State::Deleted).collect();
            let event = EventType::TaskUpdated;
            return Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: true });
        }
        check_text("the goal", patch.goal.as_ref().unwrap_or(&task.goal), Limits::GOAL)?;
        check_bytes("the body", patch.body.as_deref().unwrap_or_default(), Limits::BODY)?;
        let deliverables = patch.deliverables.as_deref().unwrap_or_default();
        check_list("a deliverable", deliverables, Limits::DELIVERABLES, Limits::DELIVERABLE)?;
        let labels = relabelled(&task, patch);
        check_labels(&labels)?;
        if let Some(Some(kind)) = &patch.kind
            && task.kind.as_ref() != Some(kind)
        {
            self.rules.types.check(kind)?;
        }
        let patch = patch.clone();
        let body = task.body.unwrap_or_default();
        let kind = task.kind.map(|kind| kind.to_string()).unwrap_or_default();
        let wanted_kind = patch.kind.map(|kind| kind.map(|kind| kind.to_string()).unwrap_or_default());
        // The event names only the fields that differ.
        let update = payload::TaskUpdated {
            goal: patch.goal.filter(|goal| *goal != task.goal),
            body: patch.body.filter(|wanted| *wanted != body),
            deliverables: patch.deliverables.filter(|wanted| *wanted != task.deliverables),
            labels: Some(labels).filter(|wanted| *wanted != task.labels),
            priority: patch.priority.filter(|wanted| *wanted != task.priority),
            kind: wanted_kind.filter(|wanted| *wanted != kind),
        };
        let nothing = payload::TaskUpdated {
            goal: None,
            body: None,
            deliverables: None,
            labels: None,
            priority: None,
            kind: None,
        };
        if update == nothing {
            return Ok(());
        }
        let other_work = update.goal.is_some() || update.body.is_some() || update.deliverables.is_some();
        self.emit(Node::Task(id), update)?;
        if other_work { self.tell_of_change(id) } else { Ok(()) }
    }

    pub(super) fn claim(
        &mut self,
        id: Option<TaskId>,
        owner: &OwnerName,
        until: Timestamp,
        agent: Option<&str>,
    ) -> Result<(), Refusal> {
        if until <= self.origin.at {
            return Err(Refusal::invalid("a lease", "has to end in the future"));
        }
        let agent = self.claiming_agent(agent)?;
        self.expire_leases()?;
        let id = match id {
            Some(id) => id,
            None => self
                .rules
                .types
                .next_for(&self.draft, agent.as_deref(), &[], Grounds::InPlace)?
                .ok_or(Refusal::NothingReady)?,
        };
        self.expire_if_due(id)?;
        let task = self.fit_to_claim(id)?;
        agent.map_or(Ok(()), |agent| self.rules.types.admit(&task, &agent))?;
        self.may_touch(&task)?;
        let epoch = Epoch(task.epoch.0 + 1);
        let (owner, until) = (owner.clone(), Some(until));
        self.emit(Node::Task(id), payload::TaskClaimed { owner, epoch, until, session: None, report: false })?;
        self.emit(Node::Task(id), payload::TaskStarted { context: Value::Null }).map(drop)
    }

    /// Returns the agent that claims a task. Inside a session it is the session's agent, whatever name the command gives.
    fn claiming_agent(&self, said: Option<&str>) -> Result<Option<String>, Refusal> {
        let own = self.agent_of_the_turn()?;
        match (own, said) {
            (Some(own), Some(said)) if own != said => {
                Err(Refusal::invalid("the agent", format!("of this session is `{own}`, not `{said}`")))
            }
            (own, said) => Ok(own.or(said.map(str::to_owned))),
        }
    }

    /// Returns the agent of the session that the command comes from.
    pub(super) fn agent_of_the_turn(&self) -> Result<Option<String>, Refusal> {
        let Some(run) = &self.turn else { return Ok(None) };
        Ok(self.draft.session(&run.session)?.map(|session| session.agent))
    }

    /// Returns the task if it can be claimed.
    pub(super) fn fit_to_claim(&mut self, id: TaskId) -> Result<Task, Refusal> {
        let task = self.without_wait(id)?;
        // An override may start a task; it does not make the task claimable.
        if task.state == State::Created {
            return Err(Refusal::OpenDependencies { id, open: self.open(id)? });
        }
        if !task.state.is_claimable() {
            let from = State::ALL.into_iter().filter(|state| state.is_claimable()).collect();
            let event = EventType::TaskClaimed;
            return Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: false });
        }
        Ok(task)
    }

    pub(super) fn expire_if_due(&mut self, id: TaskId) -> Result<(), Refusal> {
        let ran_out = |lease: &Lease| lease.until.is_some_and(|until| until < self.origin.at);
        match self.task(id)?.lease.is_some_and(|lease| ran_out(&lease)) {
            true => self.expire(id),
            false => Ok(()),
        }
    }

    /// Expires leases that are due, so that their tasks are claimable again.
    pub(super) fn expire_leases(&mut self) -> Result<(), Refusal> {
        for _ in 0..Limits::EXPIRED {
            let Some((_, id)) = self.draft.expired(self.origin.at, None)? else { break };
            self.expire(id)?;
        }
        Ok(())
    }

    fn expire(&mut self, id: TaskId) -> Result<(), Refusal> {
        let Some(Lease { owner, epoch, .. }) = self.task(id)?.lease else { return Ok(()) };
        self.emit(Node::Task(id), payload::LeaseExpired { owner, epoch, silent: false })?;
        self.settle(id)
    }

    pub(super) fn start(&mut self, id: TaskId, context: &Value) -> Result<(), Refusal> {
        check_value("the context", context)?;
        let task = self.without_wait(id)?;
        if let Some(agent) = self.agent_of_the_turn()?.filter(|_| self.depth <= self.base) {
            self.rules.types.admit(&task, &agent)?;
            self.movable(id, EventType::TaskStarted)?;
            self.refuse_gated_move("start", &task)?;
        }
        self.simple_move(id, payload::TaskStarted { context: context.clone() })
    }

    /// Returns the task unless it still waits; then the refusal names the tasks that it waits for. A task that waits for
    /// nothing is made ready here, because the built-in hook that does so may be disabled.
    fn without_wait(&mut self, id: TaskId) -> Result<Task, Refusal> {
        let task = self.task(id)?;
        match (task.state, task.open_dependencies) {
            (State::Created, 0) => {
                self.settle(id)?;
                self.task(id)
            }
            (State::Created, _) if !self.forced() => Err(Refusal::OpenDependencies { id, open: self.open(id)? }),
            _ => Ok(task),
        }
    }

    pub(super) fn complete(&mut self, id: TaskId, result: Option<&str>, artifacts: &[String]) -> Result<(), Refusal> {
        check_bytes("the result", result.unwrap_or_default(), Limits::RESULT)?;
        check_list("an artifact", artifacts, Limits::ARTIFACTS, Limits::ARTIFACT)?;
        let (result, artifacts) = (result.map(str::to_owned), artifacts.to_vec());
        if let Some(run) = self.running_turn()? {
            let task = self.task(id)?;
            let row = Move::on(EventType::TaskCompleted).expect("completing is a move");
            if !row.allows(task.state, false) {
                let (event, from) = (EventType::CompletionClaimed, row.from.to_vec());
                return Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: false });
            }
            match &task.lease {
                // The session judges its own work.
                Some(lease) if lease.session.as_ref() == Some(&run.session) => {
                    return self.emit(Node::Task(id), Claim { run, result, artifacts }).map(drop);
                }
                Some(lease) if !self.holds_by_hand(lease) => {
                    return Err(Refusal::Held { id, lease: Box::new(lease.clone()) });
                }
                _ => self.refuse_gated_move("complete", &task)?,
            }
        }
        self.without_wait(id)?;
        self.movable(id, EventType::TaskCompleted)?;
        self.finish_task(id, payload::TaskCompleted { result, artifacts })
    }

    /// Returns whether the caller holds a lease that it claimed itself, outside every session.
    fn holds_by_hand(&self, lease: &Lease) -> bool {
        lease.session.is_none() && self.origin.authority == Authority::Holder(lease.epoch)
    }

    /// Completes a task, and unblocks the tasks that its failure had blocked.
    pub(super) fn finish_task(&mut self, id: TaskId, completed: payload::TaskCompleted) -> Result<(), Refusal> {
        self.emit(Node::Task(id), completed)?;
        for waiter in waiters(&self.draft, id)? {
            if self.free(waiter, id)? {
                self.block_in_vain(waiter)?;
            }
        }
        Ok(())
    }

    pub(super) fn block(&mut self, id: TaskId, reason: &str, needs: &[String]) -> Result<(), Refusal> {
        check_text("the reason", reason, Limits::REASON)?;
        check_list("a required piece of knowledge", needs, Limits::DELIVERABLES, Limits::DELIVERABLE)?;
        let blocked = Blocked {
            reason: reason.to_owned(),
            required_knowledge: needs.to_vec(),
            by: None,
            hooks: vec![],
            commits: vec![],
        };
        self.movable(id, EventType::TaskBlocked)?;
        self.emit(Node::Task(id), blocked).map(drop)
    }

    pub(super) fn unblock(&mut self, id: TaskId) -> Result<(), Refusal> {
        self.movable(id, EventType::TaskUnblocked)?;
        self.emit(Node::Task(id), payload::TaskUnblocked {})?;
        self.settle(id)
    }

    pub(super) fn need_continuation(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_text("the reason", reason, Limits::REASON)?;
        self.simple_move(id, payload::TaskNeedsContinuation { reason: reason.to_owned() })?;
        self.settle(id)
    }

    pub(super) fn release(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_text("the reason", reason, Limits::REASON)?;
        self.simple_move(id, payload::TaskReleased { reason: reason.to_owned() })?;
        self.settle(id)
    }

    pub(super) fn fail(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_text("the reason", reason, Limits::REASON)?;
        self.simple_move(id, payload::TaskFailed { reason: reason.to_owned() })?;
        self.block_waiters(id, &format!("its dependency {id} failed"))
    }

    pub(super) fn reopen(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_text("the reason", reason, Limits::REASON)?;
        let from = self.movable(id, EventType::TaskReopened)?.state;
        self.emit(Node::Task(id), payload::TaskReopened { from, reason: reason.to_owned() })?;
        self.settle(id)?;
        for waiter in waiters(&self.draft, id)? {
            self.free(waiter, id)?;
            self.settle(waiter)?;
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, id: TaskId, deletion: Deletion) -> Result<(), Refusal> {
        let mut doomed = vec![id];
        match deletion {
            Deletion::Alone => {
                let dependents = self.open_waiters(id)?;
                if !dependents.is_empty() {
                    return Err(Refusal::HasDependents { id, dependents });
                }
            }
            Deletion::Cascade => {
                let mut found = BTreeSet::from([id]);
                let mut next = 0;
                while next < doomed.len() {
                    let waiting = self.open_waiters(doomed[next])?;
                    doomed.extend(waiting.into_iter().filter(|waiter| found.insert(*waiter)));
                    next += 1;
                }
            }
            Deletion::BlockDependents => {}
        }
        for id in &doomed {
            self.movable(*id, EventType::TaskDeleted)?;
        }
        if deletion == Deletion::BlockDependents {
            self.block_waiters(id, &format!("its dependency {id} was deleted"))?;
        }
        // Waiters go first, so that no task ever waits for a deleted one.
        for id in doomed.into_iter().rev() {
            let mut edges = self.draft.edges(id, Direction::From)?;
            edges.extend(self.draft.edges(id, Direction::To)?);
            let mut edges_removed: Vec<_> = edges.iter().map(|edge| edge.id).collect();
            edges_removed.sort_unstable();
            self.emit(Node::Task(id), payload::TaskDeleted { edges_removed })?;
        }
        Ok(())
    }

    pub(super) fn add_note(&mut self, task: Option<TaskId>, kind: NoteKind, text: &str) -> Result<(), Refusal> {
        check_text("the note", text, Limits::NOTE)?;
        let of_session = |name: &SessionName| self.draft.session(name).map(|session| session.and_then(|it| it.task));
        let id = match (task, &self.place) {
            (Some(id), _) => Some(id),
            (None, Some((name, _))) => of_session(name)?,
            (None, None) => None,
        };
        let id = id.ok_or_else(|| Refusal::invalid("a note", "belongs to a task, and none is named"))?;
        self.task(id)?;
        self.emit(Node::Task(id), payload::NoteAdded { kind, text: text.to_owned() }).map(drop)
    }

    // Shared helpers.

    /// Emits a move that needs nothing but the permission of the transition table.
    pub(super) fn simple_move(&mut self, id: TaskId, event: impl Into<Event>) -> Result<(), Refusal> {
        let event = event.into();
        self.movable(id, event.kind())?;
        self.emit(Node::Task(id), event).map(drop)
    }

    /// Settles the state of a task: a created task that waits for nothing is ready, and one that waits for a failed task is
    /// blocked.
    pub(super) fn settle(&mut self, id: TaskId) -> Result<(), Refusal> {
        let task = self.task(id)?;
        if task.state != State::Created && !task.state.is_claimable() {
            return Ok(());
        }
        if self.block_in_vain(id)? {
            return Ok(());
        }
        match (task.state, task.open_dependencies) {
            (State::Created, 0) => self.emit(Node::Task(id), payload::TaskReady {}).map(drop),
            (State::Ready | State::NeedsContinuation, 1..) => {
                self.emit(Node::Task(id), payload::TaskWaiting {}).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes a task ready after its last dependency was completed.
    pub(super) fn make_ready(&mut self, id: TaskId, after: Option<TaskId>) -> Result<(), Refusal> {
        let task = self.task(id)?;
        if task.open_dependencies > 0 {
            return Err(Refusal::OpenDependencies { id, open: self.open(id)? });
        }
        self.simple_move(id, payload::TaskReady {})?;
        let satisfied = |completed_task_id| payload::DependencySatisfied { dependent_task_id: id, completed_task_id };
        after.map_or(Ok(()), |completed| self.emit(Node::Task(id), satisfied(completed)).map(drop))
    }

    /// Unblocks a task that this dependency had blocked. Returns whether it had.
    pub(super) fn free(&mut self, id: TaskId, dependency: TaskId) -> Result<bool, Refusal> {
        let blocked = self.task(id)?.blocked.is_some_and(|blocked| blocked.by == Some(dependency));
        if blocked {
            self.emit(Node::Task(id), payload::TaskUnblocked {})?;
        }
        Ok(blocked)
    }

    /// Blocks a task that waits for a failed one. Returns whether it does.
    fn block_in_vain(&mut self, id: TaskId) -> Result<bool, Refusal> {
        for other in awaited(&self.draft, id)? {
            if self.task(other)?.state == State::Failed {
                self.block_by(id, other, &format!("its dependency {other} failed"))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn block_waiters(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        for waiter in self.open_waiters(id)? {
            let state = self.task(waiter)?.state;
            if state == State::Created || state.is_claimable() {
                self.block_by(waiter, id, reason)?;
            }
        }
        Ok(())
    }

    fn block_by(&mut self, id: TaskId, by: TaskId, reason: &str) -> Result<(), Refusal> {
        let blocked = Blocked {
            reason: reason.to_owned(),
            required_knowledge: vec![],
            by: Some(by),
            hooks: vec![],
            commits: vec![],
        };
        self.emit(Node::Task(id), blocked).map(drop)
    }

    /// Returns the tasks that a task waits for and that are not completed.
    fn open(&self, id: TaskId) -> Result<Vec<TaskId>, Refusal> {
        let mut open = Vec::new();
        for other in awaited(&self.draft, id)? {
            if self.task(other)?.state != State::Completed {
                open.push(other);
            }
        }
        Ok(open)
    }

    /// Returns the tasks that still wait for a task.
    fn open_waiters(&self, id: TaskId) -> Result<Vec<TaskId>, Refusal> {
        if self.task(id)?.state == State::Completed {
            return Ok(Vec::new());
        }
        let mut open = Vec::new();
        for other in waiters(&self.draft, id)? {
            if self.task(other)?.state != State::Completed {
                open.push(other);
            }
        }
        Ok(open)
    }
}

/// Returns the labels of a task after a change.
pub(super) fn relabelled(task: &Task, patch: &TaskPatch) -> Vec<String> {
    let mut labels = patch.labels.clone().unwrap_or_else(|| task.labels.clone());
    labels.extend(patch.add_labels.iter().cloned());
    labels.retain(|label| !patch.remove_labels.contains(label));
    without_repeats(&labels)
}

fn without_repeats(labels: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    labels.iter().filter(|label| seen.insert(label.as_str())).cloned().collect()
}
