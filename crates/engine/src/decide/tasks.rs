//! Commands about one task.

use std::collections::BTreeSet;

use serde_json::Value;

use super::DecisionContext;
use crate::command::limits::{
    EngineLimits, check_json_value, check_labels, check_nonblank_text, check_text_list, check_text_size,
};
use crate::command::refusal::Refusal;
use crate::command::{Authority, DeletionMode, NewTask, TaskPatch};
use crate::delivery::WorkspaceMode;
use crate::log::event::{Event, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Epoch, OwnerName, SessionName, TaskId};
use crate::log::time::Timestamp;
use crate::task::graph::{awaited_tasks, waiting_tasks};
use crate::task::note::NoteKind;
use crate::task::transitions::TaskTransition;
use crate::task::{BlockDetails, CompletionClaim, EdgeKind, Lease, Task, TaskState};
use crate::view::{EdgeDirection, StateView};

impl DecisionContext<'_, '_> {
    pub(super) fn create_task(&mut self, new: &NewTask) -> Result<TaskId, Refusal> {
        check_nonblank_text("the goal", &new.goal, EngineLimits::GOAL_BYTES)?;
        check_text_size("the body", new.body.as_deref().unwrap_or_default(), EngineLimits::BODY_BYTES)?;
        check_text_list(
            "a deliverable",
            &new.deliverables,
            EngineLimits::DELIVERABLE_COUNT,
            EngineLimits::DELIVERABLE_BYTES,
        )?;
        check_labels(&new.labels)?;
        new.kind.as_ref().map_or(Ok(()), |kind| self.rules.types.check_type_exists(kind))?;
        if new.depends_on.len() > EngineLimits::DEPENDENCY_COUNT {
            return Err(Refusal::invalid_input(
                "a task",
                format!("may wait for at most {} others", Limits::DEPENDENCIES),
            ));
        }
        let id = TaskId(self.draft.last_task_id()?.map_or(1, |last| last.0 + 1));
        let mut depends_on: BTreeSet<_> = new.depends_on.iter().copied().collect();
        let reviewed = new.report.as_ref().and_then(|report| report.reviews);
        for other in depends_on.iter().chain(&new.parent).chain(&reviewed) {
            if self.require_task(*other)?.state == TaskState::Deleted {
                return Err(Refusal::LinkToDeleted { from: id, to: *other });
            }
        }
        // A review can only begin after the reviewed work is done.
        if let Some(reviewed) = reviewed
            && self.require_task(reviewed)?.state != TaskState::Completed
        {
            depends_on.insert(reviewed);
        }
        self.emit_event(
            EventSubject::Task(id),
            payload::TaskCreated {
                goal: new.goal.clone(),
                body: new.body.clone().filter(|body| !body.is_empty()),
                deliverables: new.deliverables.clone(),
                labels: deduplicate_labels(&new.labels),
                priority: new.priority,
                kind: new.kind.clone(),
                report: new.report.clone(),
            },
        )?;
        let edges = depends_on.into_iter().map(|other| (EdgeKind::DependsOn, other));
        for (kind, other) in edges.chain(new.parent.map(|parent| (EdgeKind::SpawnedBy, parent))) {
            self.emit_edge(id, kind, other)?;
        }
        self.settle_task_state(id)?;
        Ok(id)
    }

    pub(super) fn update_task(&mut self, id: TaskId, patch: &TaskPatch) -> Result<(), Refusal> {
        let task = self.require_task(id)?;
        if task.state == TaskState::Deleted && !self.is_forced() {
            let from = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Deleted).collect();
            let event = EventType::TaskUpdated;
            return Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: true });
        }
        check_nonblank_text("the goal", patch.goal.as_ref().unwrap_or(&task.goal), EngineLimits::GOAL_BYTES)?;
        check_text_size("the body", patch.body.as_deref().unwrap_or_default(), EngineLimits::BODY_BYTES)?;
        let deliverables = patch.deliverables.as_deref().unwrap_or_default();
        check_text_list(
            "a deliverable",
            deliverables,
            EngineLimits::DELIVERABLE_COUNT,
            EngineLimits::DELIVERABLE_BYTES,
        )?;
        let labels = labels_after_patch(&task, patch);
        check_labels(&labels)?;
        if let Some(Some(kind)) = &patch.kind
            && task.kind.as_ref() != Some(kind)
        {
            self.rules.types.check_type_exists(kind)?;
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
        self.emit_event(EventSubject::Task(id), update)?;
        if other_work { self.announce_task_change(id) } else { Ok(()) }
    }

    pub(super) fn claim_task(
        &mut self,
        id: Option<TaskId>,
        owner: &OwnerName,
        until: Timestamp,
        agent: Option<&str>,
    ) -> Result<(), Refusal> {
        if until <= self.origin.at {
            return Err(Refusal::invalid_input("a lease", "has to end in the future"));
        }
        let agent = self.claiming_agent(agent)?;
        self.expire_due_leases()?;
        let id = match id {
            Some(id) => id,
            None => self
                .rules
                .types
                .next_task_for(&self.draft, agent.as_deref(), &[], WorkspaceMode::InPlace)?
                .ok_or(Refusal::NothingReady)?,
        };
        self.expire_lease_if_due(id)?;
        let task = self.require_claimable_task(id)?;
        agent.map_or(Ok(()), |agent| self.rules.types.check_agent_allowed(&task, &agent))?;
        self.check_lease_holder(&task)?;
        let epoch = Epoch(task.epoch.0 + 1);
        let (owner, until) = (owner.clone(), Some(until));
        self.emit_event(
            EventSubject::Task(id),
            payload::TaskClaimed { owner, epoch, until, session: None, report: false },
        )?;
        self.emit_event(EventSubject::Task(id), payload::TaskStarted { context: Value::Null }).map(drop)
    }

    /// Returns the agent that claims a task. Inside a session it is the session's agent, whatever name the command gives.
    fn claiming_agent(&self, said: Option<&str>) -> Result<Option<String>, Refusal> {
        let own = self.agent_of_turn()?;
        match (own, said) {
            (Some(own), Some(said)) if own != said => {
                Err(Refusal::invalid_input("the agent", format!("of this session is `{own}`, not `{said}`")))
            }
            (own, said) => Ok(own.or(said.map(str::to_owned))),
        }
    }

    /// Returns the agent of the session that the command comes from.
    pub(super) fn agent_of_turn(&self) -> Result<Option<String>, Refusal> {
        let Some(run) = &self.turn else { return Ok(None) };
        Ok(self.draft.find_session(&run.session)?.map(|session| session.agent))
    }

    /// Returns the task if it can be claimed.
    pub(super) fn require_claimable_task(&mut self, id: TaskId) -> Result<Task, Refusal> {
        let task = self.require_unwaiting_task(id)?;
        // An override may start a task; it does not make the task claimable.
        if task.state == TaskState::Created {
            return Err(Refusal::OpenDependencies { id, open: self.open_dependencies(id)? });
        }
        if !task.state.is_claimable() {
            let from = TaskState::ALL.into_iter().filter(|state| state.is_claimable()).collect();
            let event = EventType::TaskClaimed;
            return Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: false });
        }
        Ok(task)
    }

    pub(super) fn expire_lease_if_due(&mut self, id: TaskId) -> Result<(), Refusal> {
        let ran_out = |lease: &Lease| lease.until.is_some_and(|until| until < self.origin.at);
        match self.require_task(id)?.lease.is_some_and(|lease| ran_out(&lease)) {
            true => self.expire_task_lease(id),
            false => Ok(()),
        }
    }

    /// Expires leases that are due, so that their tasks are claimable again.
    pub(super) fn expire_due_leases(&mut self) -> Result<(), Refusal> {
        for _ in 0..EngineLimits::EXPIRED_LEASES_PER_CLAIM {
            let Some((_, id)) = self.draft.next_expired_lease(self.origin.at, None)? else { break };
            self.expire_task_lease(id)?;
        }
        Ok(())
    }

    fn expire_task_lease(&mut self, id: TaskId) -> Result<(), Refusal> {
        let Some(Lease { owner, epoch, .. }) = self.require_task(id)?.lease else { return Ok(()) };
        self.emit_event(EventSubject::Task(id), payload::LeaseExpired { owner, epoch, silent: false })?;
        self.settle_task_state(id)
    }

    pub(super) fn start_task(&mut self, id: TaskId, context: &Value) -> Result<(), Refusal> {
        check_json_value("the context", context)?;
        let task = self.require_unwaiting_task(id)?;
        if let Some(agent) = self.agent_of_turn()?.filter(|_| self.depth <= self.command_depth) {
            self.rules.types.check_agent_allowed(&task, &agent)?;
            self.require_movable_task(id, EventType::TaskStarted)?;
            self.refuse_gated_move("start", &task)?;
        }
        self.emit_simple_move(id, payload::TaskStarted { context: context.clone() })
    }

    /// Returns the task unless it still waits; then the refusal names the tasks that it waits for. A task that waits for
    /// nothing is made ready here, because the built-in hook that does so may be disabled.
    fn require_unwaiting_task(&mut self, id: TaskId) -> Result<Task, Refusal> {
        let task = self.require_task(id)?;
        match (task.state, task.open_dependencies) {
            (TaskState::Created, 0) => {
                self.settle_task_state(id)?;
                self.require_task(id)
            }
            (TaskState::Created, _) if !self.is_forced() => {
                Err(Refusal::OpenDependencies { id, open: self.open_dependencies(id)? })
            }
            _ => Ok(task),
        }
    }

    pub(super) fn complete_task(
        &mut self,
        id: TaskId,
        result: Option<&str>,
        artifacts: &[String],
    ) -> Result<(), Refusal> {
        check_text_size("the result", result.unwrap_or_default(), EngineLimits::RESULT_BYTES)?;
        check_text_list("an artifact", artifacts, EngineLimits::ARTIFACT_COUNT, EngineLimits::ARTIFACT_BYTES)?;
        let (result, artifacts) = (result.map(str::to_owned), artifacts.to_vec());
        if let Some(run) = self.running_turn()? {
            let task = self.require_task(id)?;
            let row = TaskTransition::for_event_type(EventType::TaskCompleted).expect("completing is a move");
            if !row.allows_from(task.state, false) {
                let (event, from) = (EventType::CompletionClaimed, row.from.to_vec());
                return Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: false });
            }
            match &task.lease {
                // The session judges its own work.
                Some(lease) if lease.session.as_ref() == Some(&run.session) => {
                    return self
                        .emit_event(EventSubject::Task(id), CompletionClaim { run, result, artifacts })
                        .map(drop);
                }
                Some(lease) if !self.holds_lease_by_hand(lease) => {
                    return Err(Refusal::Held { id, lease: Box::new(lease.clone()) });
                }
                _ => self.refuse_gated_move("complete", &task)?,
            }
        }
        self.require_unwaiting_task(id)?;
        self.require_movable_task(id, EventType::TaskCompleted)?;
        self.finish_task(id, payload::TaskCompleted { result, artifacts })
    }

    /// Returns whether the caller holds a lease that it claimed itself, outside every session.
    fn holds_lease_by_hand(&self, lease: &Lease) -> bool {
        lease.session.is_none() && self.origin.authority == Authority::Holder(lease.epoch)
    }

    /// Completes a task, and unblocks the tasks that its failure had blocked.
    pub(super) fn finish_task(&mut self, id: TaskId, completed: payload::TaskCompleted) -> Result<(), Refusal> {
        self.emit_event(EventSubject::Task(id), completed)?;
        for waiter in waiting_tasks(&self.draft, id)? {
            if self.unblock_after_dependency(waiter, id)? {
                self.block_if_dependency_failed(waiter)?;
            }
        }
        Ok(())
    }

    pub(super) fn block_task(&mut self, id: TaskId, reason: &str, needs: &[String]) -> Result<(), Refusal> {
        check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
        check_text_list(
            "a required piece of knowledge",
            needs,
            EngineLimits::DELIVERABLE_COUNT,
            EngineLimits::DELIVERABLE_BYTES,
        )?;
        let blocked = BlockDetails {
            reason: reason.to_owned(),
            required_knowledge: needs.to_vec(),
            by: None,
            hooks: vec![],
            commits: vec![],
        };
        self.require_movable_task(id, EventType::TaskBlocked)?;
        self.emit_event(EventSubject::Task(id), blocked).map(drop)
    }

    pub(super) fn unblock_task(&mut self, id: TaskId) -> Result<(), Refusal> {
        self.require_movable_task(id, EventType::TaskUnblocked)?;
        self.emit_event(EventSubject::Task(id), payload::TaskUnblocked {})?;
        self.settle_task_state(id)
    }

    pub(super) fn need_continuation(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
        self.emit_simple_move(id, payload::TaskNeedsContinuation { reason: reason.to_owned() })?;
        self.settle_task_state(id)
    }

    pub(super) fn release_task(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
        self.emit_simple_move(id, payload::TaskReleased { reason: reason.to_owned() })?;
        self.settle_task_state(id)
    }

    pub(super) fn fail_task(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
        self.emit_simple_move(id, payload::TaskFailed { reason: reason.to_owned() })?;
        self.block_open_waiters(id, &format!("its dependency {id} failed"))
    }

    pub(super) fn reopen_task(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
        let from = self.require_movable_task(id, EventType::TaskReopened)?.state;
        self.emit_event(EventSubject::Task(id), payload::TaskReopened { from, reason: reason.to_owned() })?;
        self.settle_task_state(id)?;
        for waiter in waiting_tasks(&self.draft, id)? {
            self.unblock_after_dependency(waiter, id)?;
            self.settle_task_state(waiter)?;
        }
        Ok(())
    }

    pub(super) fn delete_task(&mut self, id: TaskId, deletion: DeletionMode) -> Result<(), Refusal> {
        let mut doomed = vec![id];
        match deletion {
            DeletionMode::Alone => {
                let dependents = self.open_waiters(id)?;
                if !dependents.is_empty() {
                    return Err(Refusal::HasDependents { id, dependents });
                }
            }
            DeletionMode::Cascade => {
                let mut found = BTreeSet::from([id]);
                let mut next = 0;
                while next < doomed.len() {
                    let waiting = self.open_waiters(doomed[next])?;
                    doomed.extend(waiting.into_iter().filter(|waiter| found.insert(*waiter)));
                    next += 1;
                }
            }
            DeletionMode::BlockDependents => {}
        }
        for id in &doomed {
            self.require_movable_task(*id, EventType::TaskDeleted)?;
        }
        if deletion == DeletionMode::BlockDependents {
            self.block_open_waiters(id, &format!("its dependency {id} was deleted"))?;
        }
        // Waiters go first, so that no task ever waits for a deleted one.
        for id in doomed.into_iter().rev() {
            let mut edges = self.draft.find_edges(id, EdgeDirection::From)?;
            edges.extend(self.draft.find_edges(id, EdgeDirection::To)?);
            let mut edges_removed: Vec<_> = edges.iter().map(|edge| edge.id).collect();
            edges_removed.sort_unstable();
            self.emit_event(EventSubject::Task(id), payload::TaskDeleted { edges_removed })?;
        }
        Ok(())
    }

    pub(super) fn add_note(&mut self, task: Option<TaskId>, kind: NoteKind, text: &str) -> Result<(), Refusal> {
        check_nonblank_text("the note", text, EngineLimits::NOTE_BYTES)?;
        let of_session =
            |name: &SessionName| self.draft.find_session(name).map(|session| session.and_then(|it| it.task));
        let id = match (task, &self.session_scope) {
            (Some(id), _) => Some(id),
            (None, Some((name, _))) => of_session(name)?,
            (None, None) => None,
        };
        let id = id.ok_or_else(|| Refusal::invalid_input("a note", "belongs to a task, and none is named"))?;
        self.require_task(id)?;
        self.emit_event(EventSubject::Task(id), payload::NoteAdded { kind, text: text.to_owned() }).map(drop)
    }

    // Shared helpers.

    /// Emits a move that needs nothing but the permission of the transition table.
    pub(super) fn emit_simple_move(&mut self, id: TaskId, event: impl Into<Event>) -> Result<(), Refusal> {
        let event = event.into();
        self.require_movable_task(id, event.kind())?;
        self.emit_event(EventSubject::Task(id), event).map(drop)
    }

    /// Settles the state of a task: a created task that waits for nothing is ready, and one that waits for a failed task is
    /// blocked.
    pub(super) fn settle_task_state(&mut self, id: TaskId) -> Result<(), Refusal> {
        let task = self.require_task(id)?;
        if task.state != TaskState::Created && !task.state.is_claimable() {
            return Ok(());
        }
        if self.block_if_dependency_failed(id)? {
            return Ok(());
        }
        match (task.state, task.open_dependencies) {
            (TaskState::Created, 0) => self.emit_event(EventSubject::Task(id), payload::TaskReady {}).map(drop),
            (TaskState::Ready | TaskState::NeedsContinuation, 1..) => {
                self.emit_event(EventSubject::Task(id), payload::TaskWaiting {}).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes a task ready after its last dependency was completed.
    pub(super) fn make_task_ready(&mut self, id: TaskId, after: Option<TaskId>) -> Result<(), Refusal> {
        let task = self.require_task(id)?;
        if task.open_dependencies > 0 {
            return Err(Refusal::OpenDependencies { id, open: self.open_dependencies(id)? });
        }
        self.emit_simple_move(id, payload::TaskReady {})?;
        let satisfied = |completed_task_id| payload::DependencySatisfied { dependent_task_id: id, completed_task_id };
        after.map_or(Ok(()), |completed| self.emit_event(EventSubject::Task(id), satisfied(completed)).map(drop))
    }

    /// Unblocks a task that this dependency had blocked. Returns whether it had.
    pub(super) fn unblock_after_dependency(&mut self, id: TaskId, dependency: TaskId) -> Result<bool, Refusal> {
        let blocked = self.require_task(id)?.blocked.is_some_and(|blocked| blocked.by == Some(dependency));
        if blocked {
            self.emit_event(EventSubject::Task(id), payload::TaskUnblocked {})?;
        }
        Ok(blocked)
    }

    /// Blocks a task that waits for a failed one. Returns whether it does.
    fn block_if_dependency_failed(&mut self, id: TaskId) -> Result<bool, Refusal> {
        for other in awaited_tasks(&self.draft, id)? {
            if self.require_task(other)?.state == TaskState::Failed {
                self.block_by_dependency(id, other, &format!("its dependency {other} failed"))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn block_open_waiters(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        for waiter in self.open_waiters(id)? {
            let state = self.require_task(waiter)?.state;
            if state == TaskState::Created || state.is_claimable() {
                self.block_by_dependency(waiter, id, reason)?;
            }
        }
        Ok(())
    }

    fn block_by_dependency(&mut self, id: TaskId, by: TaskId, reason: &str) -> Result<(), Refusal> {
        let blocked = BlockDetails {
            reason: reason.to_owned(),
            required_knowledge: vec![],
            by: Some(by),
            hooks: vec![],
            commits: vec![],
        };
        self.emit_event(EventSubject::Task(id), blocked).map(drop)
    }

    /// Returns the tasks that a task waits for and that are not completed.
    fn open_dependencies(&self, id: TaskId) -> Result<Vec<TaskId>, Refusal> {
        let mut open = Vec::new();
        for other in awaited_tasks(&self.draft, id)? {
            if self.require_task(other)?.state != TaskState::Completed {
                open.push(other);
            }
        }
        Ok(open)
    }

    /// Returns the tasks that still wait for a task.
    fn open_waiters(&self, id: TaskId) -> Result<Vec<TaskId>, Refusal> {
        if self.require_task(id)?.state == TaskState::Completed {
            return Ok(Vec::new());
        }
        let mut open = Vec::new();
        for other in waiting_tasks(&self.draft, id)? {
            if self.require_task(other)?.state != TaskState::Completed {
                open.push(other);
            }
        }
        Ok(open)
    }
}

/// Returns the labels of a task after a change.
pub(super) fn labels_after_patch(task: &Task, patch: &TaskPatch) -> Vec<String> {
    let mut labels = patch.labels.clone().unwrap_or_else(|| task.labels.clone());
    labels.extend(patch.add_labels.iter().cloned());
    labels.retain(|label| !patch.remove_labels.contains(label));
    deduplicate_labels(&labels)
}

fn deduplicate_labels(labels: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    labels.iter().filter(|label| seen.insert(label.as_str())).cloned().collect()
}
