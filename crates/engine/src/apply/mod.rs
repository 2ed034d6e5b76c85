//! Folds an event into row changes.
//!
//! Invariants:
//! - Total and deterministic: the same view and record give the same changes, today and at every replay.
//! - An event that the rules could not have decided is refused with both sides named, so a replay checks the log.
//! - Every row that an event concerns gets the event's position as its version; this always includes the task that it names, and the
//!   session that it names once that is over.

mod bridge;
mod effects;
mod error;
mod evaluation;
mod pipeline;
mod sessions;
mod workflow;

use crate::evaluation::EvaluationState;
use crate::log::event::{Event, EventEnvelope, payload};
use crate::log::id::{EdgeId, Epoch, Seq, SessionName, TaskId};
use crate::session::usage::AgentUsage;
use crate::session::{Session, is_claimable_after_loss};
use crate::task::graph::{awaited_tasks, waiting_tasks};
use crate::task::note::{IterationNoteRef, NoteIndex, NoteKind};
use crate::task::resolution::{PendingAnswer, TaskResolution};
use crate::task::transitions::TaskTransition;
use crate::task::{Lease, ReportRequest, Task, TaskEdge, TaskState, TaskTakeover};
use crate::view::{EdgeDirection, RowChange, StateView};

pub use error::ApplyError;

type FoldResult = Result<Vec<RowChange>, ApplyError>;

/// Returns the row changes that an event makes.
pub fn apply(view: &dyn StateView, seq: Seq, envelope: &EventEnvelope) -> FoldResult {
    EventFold { view, seq, envelope }.fold_changes()
}

struct EventFold<'a> {
    view: &'a dyn StateView,
    seq: Seq,
    envelope: &'a EventEnvelope,
}

fn put_task(task: Task) -> RowChange {
    RowChange::PutTask(Box::new(task))
}

impl EventFold<'_> {
    fn fold_changes(&self) -> FoldResult {
        let mut changes = self.fold_event()?;
        if let Some(id) = self.envelope.node.task_id()
            && !changes.iter().any(|change| matches!(change, RowChange::PutTask(task) if task.id == id))
        {
            changes.push(put_task(self.require_event_task()?));
        }
        self.touch_ended_session(&mut changes)?;
        if let Some(owed) = &self.envelope.metadata.owes {
            self.enqueue_hooks(owed, &mut changes)?;
        }
        if let Some(via) = self.envelope.metadata.via {
            self.charge_share(via, &mut changes)?;
        }
        Ok(changes)
    }

    /// Records that the session's runner was active. Events of others, such as an agent's claim, do not count.
    fn record_loop_activity(&self, session: &mut Session) {
        let of_the_loop = match &self.envelope.event {
            Event::FeedbackQueued(queued) => queued.voice.is_hook(),
            Event::SessionStopping(_) | Event::GateAnswered(_) | Event::CompletionClaimed(_) => false,
            _ => self.envelope.session.is_some(),
        };
        if of_the_loop {
            session.watch.advance_clock(self.envelope.timestamp);
        }
    }

    /// Marks the row of an ended session as changed by an event that names the session.
    fn touch_ended_session(&self, changes: &mut Vec<RowChange>) -> Result<(), ApplyError> {
        let Some(name) = &self.envelope.session else { return Ok(()) };
        let puts = |change: &RowChange| matches!(change, RowChange::PutSession(session) if session.name == *name);
        if changes.iter().any(puts) {
            return Ok(());
        }
        if let Some(session) = self.view.find_session(name)?.filter(Session::is_over) {
            changes.push(RowChange::PutSession(Box::new(Session { version: self.seq, ..session })));
        }
        Ok(())
    }

    fn fold_event(&self) -> FoldResult {
        match &self.envelope.event {
            Event::TaskCreated(created) => self.fold_task_created(created),
            Event::TaskReady(_) | Event::TaskWaiting(_) | Event::TaskStarted(_) => self.move_task(|_| {}),
            // A person or hook that unblocks the task has seen the findings.
            Event::TaskUnblocked(_) => self.move_task(|task| task.rejections = 0),
            Event::WorkspaceOpened(opened) => self.fold_workspace_opened(opened),
            Event::SubmissionStarted(started) => self.fold_submission_started(started),
            Event::TaskSubmitted(_) => self.fold_task_submitted(),
            Event::MergeStarted(started) => self.fold_merge_started(started),
            Event::PipelineFailed(failed) => self.fold_pipeline_failed(failed),
            Event::TaskRejected(rejected) => self.move_task(|task| task.reason = Some(rejected.reason.clone())),
            Event::ChangeOpened(change) => self.fold_change_opened(change),
            Event::ChangeMerged(merged) => self.fold_change_merged(merged),
            Event::TaskClaimed(claimed) => self.fold_task_claimed(claimed),
            Event::LeaseExpired(expired) => self.fold_lease_expired(expired),
            Event::TaskUpdated(patch) => self.fold_task_updated(patch),
            Event::CompletionClaimed(claim) => self.fold_completion_claimed(claim),
            Event::TaskCompleted(completed) => self.fold_task_completed(completed),
            Event::TaskBlocked(blocked) => self.move_task(|task| task.blocked = Some(blocked.clone())),
            Event::TaskNeedsContinuation(left) => self.fold_needs_continuation(&left.reason),
            Event::TaskReleased(payload::TaskReleased { reason })
            | Event::TaskFailed(payload::TaskFailed { reason }) => {
                self.move_task(|task| task.reason = Some(reason.clone()))
            }
            Event::TaskAnswered(answered) => self.fold_task_answered(answered),
            Event::TaskReopened(_) => self.fold_task_reopened(),
            Event::TaskDeleted(deleted) => self.fold_task_deleted(&deleted.edges_removed),
            Event::DependencyAdded(added) => self.fold_edge_added(added),
            Event::DependencyRemoved(removed) => self.fold_edge_removed(removed.edge_id),
            Event::NoteAdded(note) => self.fold_note_added(note.kind),
            Event::DependencySatisfied(_)
            | Event::AgentMetrics(_)
            | Event::AutoLabelSuggestion(_)
            | Event::FactLogged(_)
            | Event::MessageAdded(_)
            | Event::HookError(_)
            | Event::ActionError(_) => Ok(Vec::new()),
            Event::ConfigRecorded(config) => {
                Ok(vec![RowChange::PutConfig { digest: config.digest, text: config.text.clone() }])
            }
            Event::SessionStarted(started) => self.fold_session_started(started),
            Event::SessionResumed(resumed) => self.fold_session_resumed(resumed),
            Event::SessionStopping(stopping) => self.fold_session_stopping(stopping),
            Event::SessionEnded(ended) => self.fold_session_ended(ended.ending),
            Event::IterationStarted(started) => self.fold_iteration_started(&started.run),
            Event::TurnStarted(started) => self.fold_turn_started(started),
            Event::ConversationOpened(opened) => self.fold_conversation_opened(opened),
            Event::TurnFinished(finished) => self.fold_turn_finished(finished),
            Event::PromiseDetected(detected) => self.fold_promise_detected(detected),
            Event::GateDecided(decided) => self.fold_gate_decided(decided),
            Event::GateAnswered(answered) => self.fold_gate_answered(answered),
            Event::IterationCompleted(completed) => self.fold_iteration_completed(&completed.run),
            Event::IterationFailed(failed) => self.fold_iteration_failed(failed),
            Event::IterationInterrupted(interrupted) => self.fold_iteration_interrupted(interrupted),
            Event::IterationPostponed(postponed) => self.fold_iteration_postponed(postponed),
            Event::DeliveryFinished(payload::DeliveryFinished { run, .. })
            | Event::DeliveryFailed(payload::DeliveryFailed { run, .. })
            | Event::DeliveryInterrupted(payload::DeliveryInterrupted { run }) => self.fold_delivery_ended(run),
            Event::FeedbackQueued(queued) => self.fold_feedback_queued(queued),
            Event::FeedbackDelivered(delivered) => self.fold_feedback_delivered(delivered),
            Event::HookRegistered(registered) => self.fold_hook_registered(registered),
            Event::HooksCleared(cleared) => self.fold_hooks_cleared(cleared),
            Event::HookSwitched(switched) => self.fold_hook_switched(switched),
            Event::HookEvaluated(evaluated) => self.fold_hook_evaluated(evaluated),
            Event::SeriesStarted(started) => self.fold_series_started(started),
            Event::ValidationFinished(finished) => self.fold_validation_finished(finished),
            Event::SeriesAdvanced(advanced) => self.fold_series_advanced(advanced),
            Event::SeriesEnded(ended) => self.fold_series_ended(ended),
            Event::CheckpointCreated(created) => self.fold_checkpoint_created(created),
            Event::BridgeCalled(called) => self.fold_bridge_called(called),
            Event::BridgeAnswered(answered) => self.fold_bridge_answered(answered),
            Event::WorkflowTriggered(_) => Ok(Vec::new()),
            Event::WorkflowStarted(started) => self.fold_workflow_started(started),
            Event::WorkflowStepStarted(started) => self.fold_workflow_step_started(started),
            Event::WorkflowStepFinished(finished) => self.fold_workflow_step_finished(finished),
            Event::WorkflowCompleted(completed) => self.fold_workflow_ended(completed.effect, None),
            Event::WorkflowFailed(failed) => self.fold_workflow_ended(failed.effect, Some(&failed.error)),
            Event::HookStarted(started) => self.fold_hook_started(started),
            Event::HookRetrying(retrying) => self.fold_hook_retrying(retrying),
            Event::HookFinished(finished) => self.fold_hook_finished(finished),
        }
    }

    // Tasks.

    fn fold_task_created(&self, created: &payload::TaskCreated) -> FoldResult {
        let id = self.event_task_id()?;
        let last = self.view.last_task_id()?;
        if id.0 != last.map_or(1, |last| last.0 + 1) {
            return Err(self.unfit_event_error(format!("the next task after {last:?} is not {id}")));
        }
        let at = self.envelope.timestamp;
        let created = created.clone();
        Ok(vec![put_task(Task {
            id,
            goal: created.goal,
            body: created.body,
            deliverables: created.deliverables,
            labels: created.labels,
            priority: created.priority,
            kind: created.kind,
            report: created.report,
            state: TaskState::Created,
            open_dependencies: 0,
            result: None,
            artifacts: Vec::new(),
            blocked: None,
            reason: None,
            claim: None,
            answer: None,
            undelivered_messages: Vec::new(),
            undelivered_feedback: Vec::new(),
            conversation: None,
            lease: None,
            workspace: None,
            former_workspaces: Vec::new(),
            taken: None,
            change: None,
            findings: Vec::new(),
            rejections: 0,
            rejected: None,
            approved: None,
            stalled: None,
            in_place: false,
            memo: NoteIndex::default(),
            used: AgentUsage::default(),
            evaluation: EvaluationState::default(),
            epoch: Epoch(0),
            created_at: at,
            updated_at: at,
            started_at: None,
            completed_at: None,
            version: self.seq,
            last_event: self.seq,
        })])
    }

    fn fold_task_claimed(&self, claimed: &payload::TaskClaimed) -> FoldResult {
        let task = self.require_event_task()?;
        if !task.state.is_claimable() || task.lease.is_some() || claimed.epoch <= task.epoch {
            return Err(self.unfit_event_error(format!("{} is {} at epoch {}", task.id, task.state, task.epoch)));
        }
        let mut changes = match &claimed.session {
            Some(name) => self.take_up_task(name, claimed)?,
            None => Vec::new(),
        };
        let claimant = claimed.session.as_ref().map(|name| self.view.find_session(name)).transpose()?.flatten();
        let in_place = match &claimed.session {
            Some(_) => claimant.as_ref().is_some_and(|session| session.workspace_mode.is_in_place()),
            None => task.in_place,
        };
        // The session gets the findings as feedback in the same commit.
        let session_keeps = claimant.is_some_and(|session| session.keeps_feedback);
        let payload::TaskClaimed { owner, epoch, until, session, report } = claimed.clone();
        // The task's type may ask for a report as long as the task is claimed.
        let by_type = report.then_some(ReportRequest { by_type: true, ..ReportRequest::default() });
        let report = task.report.filter(|report| !report.by_type).or(by_type);
        // A session gets the answer as feedback; a person who works by hand reads it with the task.
        let answer = task.answer.filter(|_| session.is_none());
        let (undelivered_messages, undelivered_feedback) = if session.is_none() {
            (task.undelivered_messages, task.undelivered_feedback)
        } else {
            (Vec::new(), Vec::new())
        };
        let findings = if session_keeps { Vec::new() } else { task.findings };
        let lease = Lease { owner, epoch, until, session };
        let taken = task.taken.and_then(|taken| taken.claimed_by(&lease));
        changes.push(put_task(Task {
            lease: Some(lease),
            epoch,
            answer,
            undelivered_messages,
            undelivered_feedback,
            findings,
            taken,
            in_place,
            report,
            ..task
        }));
        Ok(changes)
    }

    fn fold_lease_expired(&self, expired: &payload::LeaseExpired) -> FoldResult {
        let held = self.require_event_task()?.lease.map(|lease| lease.epoch);
        if held != Some(expired.epoch) {
            return Err(self.unfit_event_error(format!("epoch {} does not hold the task", expired.epoch)));
        }
        self.move_task(|task| {
            // The former holder may still be at work in its worktree, so the next holder gets another one.
            if expired.silent {
                task.former_workspaces.extend(task.workspace.take());
            }
        })
    }

    fn fold_task_updated(&self, patch: &payload::TaskUpdated) -> FoldResult {
        let kind = match patch.kind.as_deref() {
            Some("") | None => None,
            Some(name) => Some(name.parse().map_err(|error| self.unfit_event_error(format!("{error}")))?),
        };
        self.change_task(|task| {
            let patch = patch.clone();
            // The work was judged against the former text.
            if patch.goal.is_some() || patch.body.is_some() || patch.deliverables.is_some() || patch.kind.is_some() {
                task.stalled = None;
            }
            task.goal = patch.goal.unwrap_or(std::mem::take(&mut task.goal));
            task.deliverables = patch.deliverables.unwrap_or(std::mem::take(&mut task.deliverables));
            task.labels = patch.labels.unwrap_or(std::mem::take(&mut task.labels));
            task.priority = patch.priority.unwrap_or(task.priority);
            if let Some(body) = patch.body {
                task.body = Some(body).filter(|body| !body.is_empty());
            }
            if patch.kind.is_some() {
                task.kind = kind;
            }
        })
    }

    fn fold_note_added(&self, kind: NoteKind) -> FoldResult {
        let iteration = self.build_summary_ref(true);
        self.change_task(|task| match (kind, iteration) {
            (NoteKind::Summary, Some(said)) => task.memo.add_iteration_note(said),
            _ => task.memo.add_note_event(self.seq),
        })
    }

    /// Returns a reference to this event as the latest text of an iteration.
    fn build_summary_ref(&self, summary: bool) -> Option<IterationNoteRef> {
        let (session, iteration) = (self.envelope.session.clone()?, self.envelope.iteration?);
        Some(IterationNoteRef { session, iteration, at: self.seq, summary })
    }

    fn fold_task_completed(&self, completed: &payload::TaskCompleted) -> FoldResult {
        let mut changes = self.move_task(|task| {
            task.result.clone_from(&completed.result);
            task.artifacts.clone_from(&completed.artifacts);
        })?;
        self.recount_waiters(&mut changes, |open| open.checked_sub(1))?;
        Ok(changes)
    }

    /// Approval and rejection leave no answer on the task: the event that ends the task records them.
    fn fold_task_answered(&self, answered: &payload::TaskAnswered) -> FoldResult {
        let task = self.require_event_task()?;
        // A session may ask a person about the task that it holds.
        let held = task.lease.as_ref().is_some_and(|lease| lease.session.is_some());
        let rejected = held && task.state == TaskState::Active && answered.answer == TaskResolution::Reject;
        if !rejected && !answered.answer.applies_to_state(task.state) {
            return Err(self.unfit_event_error(format!("{} is {}", task.id, task.state)));
        }
        self.change_task(|task| {
            let (by, text) = (self.envelope.metadata.triggered_by.clone(), answered.text.clone());
            let said = PendingAnswer { by, text, ignores: answered.ignores.clone() };
            task.stalled = None;
            let goes_on = !matches!(answered.answer, TaskResolution::Approve | TaskResolution::Reject);
            task.answer = Some(said).filter(|said| goes_on && (said.text.is_some() || !said.ignores.is_empty()));
        })
    }

    fn fold_task_reopened(&self) -> FoldResult {
        let was = self.require_event_task()?.state;
        let mut changes = self.move_task(|_| {})?;
        if was == TaskState::Completed {
            self.recount_waiters(&mut changes, |open| open.checked_add(1))?;
        }
        Ok(changes)
    }

    fn fold_task_deleted(&self, removed: &[EdgeId]) -> FoldResult {
        let task = self.require_event_task()?;
        let mut edges = self.view.find_edges(task.id, EdgeDirection::From)?;
        edges.extend(self.view.find_edges(task.id, EdgeDirection::To)?);
        edges.sort_unstable_by_key(|edge| edge.id);
        if !edges.iter().map(|edge| edge.id).eq(removed.iter().copied()) {
            return Err(self.unfit_event_error("it does not name the edges of the task".to_owned()));
        }
        let mut others: Vec<_> = edges.iter().flat_map(|edge| [edge.from_id, edge.to_id]).collect();
        others.sort_unstable();
        others.dedup();
        let waiting = if task.state == TaskState::Completed { Vec::new() } else { waiting_tasks(self.view, task.id)? };
        let mut changes = self.move_task(|task| task.open_dependencies = 0)?;
        for id in others.into_iter().filter(|id| *id != task.id) {
            let mut other = self.require_task(id)?;
            if waiting.contains(&id) {
                other.open_dependencies = self.recount_dependencies(&other, |open| open.checked_sub(1))?;
            }
            changes.push(put_task(Task { version: self.seq, ..other }));
        }
        changes.extend(edges.iter().map(|edge| RowChange::DropEdge(edge.id)));
        Ok(changes)
    }

    /// Recounts the open dependencies of the tasks that wait for this one.
    fn recount_waiters(&self, changes: &mut Vec<RowChange>, count: fn(u32) -> Option<u32>) -> Result<(), ApplyError> {
        for id in waiting_tasks(self.view, self.event_task_id()?)? {
            let mut waiter = self.require_task(id)?;
            waiter.open_dependencies = self.recount_dependencies(&waiter, count)?;
            changes.push(put_task(Task { version: self.seq, ..waiter }));
        }
        Ok(())
    }

    fn recount_dependencies(&self, task: &Task, count: fn(u32) -> Option<u32>) -> Result<u32, ApplyError> {
        count(task.open_dependencies).ok_or_else(|| {
            self.unfit_event_error(format!("{} has {} open dependencies", task.id, task.open_dependencies))
        })
    }

    // Edges.

    fn fold_edge_added(&self, added: &payload::DependencyAdded) -> FoldResult {
        let edge =
            TaskEdge { id: EdgeId(self.seq.0), from_id: added.from_id, to_id: added.to_id, kind: added.edge_type };
        let same = |other: &TaskEdge| (other.to_id, other.kind) == (edge.to_id, edge.kind);
        if edge.from_id == edge.to_id || self.view.find_edges(edge.from_id, EdgeDirection::From)?.iter().any(same) {
            return Err(
                self.unfit_event_error(format!("{} {} {} cannot be added", edge.from_id, edge.kind, edge.to_id))
            );
        }
        let mut changes = vec![RowChange::PutEdge(edge)];
        let counts = match edge.waiting_pair() {
            Some((waiter, target)) => {
                let open = self.require_task(target)?.state != TaskState::Completed;
                (open && !awaited_tasks(self.view, waiter)?.contains(&target)).then_some(waiter)
            }
            None => None,
        };
        changes.extend(self.update_edge_ends(edge, counts, |open| open.checked_add(1))?);
        Ok(changes)
    }

    fn fold_edge_removed(&self, id: EdgeId) -> FoldResult {
        let edges = self.view.find_edges(self.event_task_id()?, EdgeDirection::From)?;
        let Some(edge) = edges.into_iter().find(|edge| edge.id == id) else {
            return Err(self.unfit_event_error(format!("there is no edge {id}")));
        };
        let mut changes = vec![RowChange::DropEdge(id)];
        let counts = match edge.waiting_pair() {
            Some((waiter, target)) => {
                let open = self.require_task(target)?.state != TaskState::Completed;
                let last = self.count_waiting_edges(waiter, target)? == 1;
                (open && last).then_some(waiter)
            }
            None => None,
        };
        changes.extend(self.update_edge_ends(edge, counts, |open| open.checked_sub(1))?);
        Ok(changes)
    }

    /// Returns how many edges make one task wait for another.
    fn count_waiting_edges(&self, waiter: TaskId, target: TaskId) -> Result<usize, ApplyError> {
        let mut edges = self.view.find_edges(waiter, EdgeDirection::From)?;
        edges.extend(self.view.find_edges(waiter, EdgeDirection::To)?);
        Ok(edges.iter().filter(|edge| edge.waiting_pair() == Some((waiter, target))).count())
    }

    /// Updates both ends of an edge. One of them may need a new count of its dependencies.
    fn update_edge_ends(&self, edge: TaskEdge, counts: Option<TaskId>, count: fn(u32) -> Option<u32>) -> FoldResult {
        [edge.from_id, edge.to_id]
            .into_iter()
            .map(|id| {
                let mut task =
                    if id == self.event_task_id()? { self.require_event_task()? } else { self.require_task(id)? };
                if counts == Some(id) {
                    task.open_dependencies = self.recount_dependencies(&task, count)?;
                }
                Ok(put_task(Task { version: self.seq, ..task }))
            })
            .collect()
    }

    // Shared helpers.

    fn event_task_id(&self) -> Result<TaskId, ApplyError> {
        self.envelope.node.task_id().ok_or_else(|| self.unfit_event_error("it names no task".to_owned()))
    }

    fn require_task(&self, id: TaskId) -> Result<Task, ApplyError> {
        self.view.find_task(id)?.ok_or_else(|| self.unfit_event_error(format!("there is no task {id}")))
    }

    /// Returns the task of this event, with this event as its latest.
    fn require_event_task(&self) -> Result<Task, ApplyError> {
        let task = self.require_task(self.event_task_id()?)?;
        Ok(Task { version: self.seq, last_event: self.seq, updated_at: self.envelope.timestamp, ..task })
    }

    /// Changes the task of this event and keeps its state.
    fn change_task(&self, change: impl FnOnce(&mut Task)) -> FoldResult {
        let mut task = self.require_event_task()?;
        change(&mut task);
        Ok(vec![put_task(task)])
    }

    /// Moves the task of this event along the table of transitions.
    fn move_task(&self, change: impl FnOnce(&mut Task)) -> FoldResult {
        let row = TaskTransition::for_event_type(self.envelope.event.kind()).expect("only moves are folded as moves");
        let mut task = self.require_event_task()?;
        if !row.allows_from(task.state, self.envelope.metadata.forced) {
            return Err(self.unfit_event_error(format!("{} is {}", task.id, task.state)));
        }
        let held = task.lease.as_ref().and_then(|lease| Some((lease.session.clone()?, lease.epoch)));
        row.apply_to_task(&mut task, self.envelope.timestamp);
        change(&mut task);
        let Some((name, epoch)) = held.filter(|_| task.lease.is_none()) else { return Ok(vec![put_task(task)]) };
        let itself = self.is_decided_by_session(&name);
        let (id, state) = (task.id, task.state);
        if !itself && is_claimable_after_loss(state) {
            task.taken = Some(TaskTakeover { from: name.clone(), epoch, by: None });
        }
        task.conversation = self.view.find_session(&name)?.and_then(|session| session.resumable_conversation());
        let mut changes = vec![put_task(task)];
        let mut undelivered_feedback = Vec::new();
        self.change_named_session(&name, &mut changes, |session| {
            undelivered_feedback = session.release_task(id, state, itself)
        })?;
        if let Some(RowChange::PutTask(task)) = changes.first_mut() {
            task.keep_undelivered_feedback(undelivered_feedback);
        }
        Ok(changes)
    }

    /// Returns whether the session itself decided this event.
    fn is_decided_by_session(&self, name: &SessionName) -> bool {
        let metadata = &self.envelope.metadata;
        self.envelope.session.as_ref() == Some(name) && metadata.depth == 0 && !metadata.forced
    }

    fn unfit_event_error(&self, why: String) -> ApplyError {
        ApplyError::InvalidEvent { seq: self.seq, event: self.envelope.event.kind(), why }
    }
}
