//! Folds an event into row changes.
//!
//! Invariants:
//! - Total and deterministic: the same view and record give the same changes, today and at every replay.
//! - An event that the rules could not have decided is refused with both sides named, so a replay checks the log.
//! - Every row that an event concerns gets the event's position as its version; this always includes the task that it names.

mod bridge;
mod effects;
mod error;
mod evaluation;
mod pipeline;
mod sessions;
mod workflow;

use crate::evaluation::Drive;
use crate::log::event::{Envelope, Event, payload};
use crate::log::id::{EdgeId, Epoch, Seq, SessionName, TaskId};
use crate::session::is_left_to_others;
use crate::session::usage::Usage;
use crate::task::graph::{awaited, waiters};
use crate::task::note::{Memo, NoteKind, Said};
use crate::task::resolution::{Answered, Resolution};
use crate::task::transitions::Move;
use crate::task::{Edge, Lease, ReportRequest, State, Taken, Task};
use crate::view::{Change, Direction, View};

pub use error::ApplyError;

type Changes = Result<Vec<Change>, ApplyError>;

/// Returns the row changes that an event makes.
pub fn apply(view: &dyn View, seq: Seq, envelope: &Envelope) -> Changes {
    Fold { view, seq, envelope }.changes()
}

struct Fold<'a> {
    view: &'a dyn View,
    seq: Seq,
    envelope: &'a Envelope,
}

fn put(task: Task) -> Change {
    Change::PutTask(Box::new(task))
}

impl Fold<'_> {
    fn changes(&self) -> Changes {
        let mut changes = self.event()?;
        if let Some(id) = self.envelope.node.task()
            && !changes.iter().any(|change| matches!(change, Change::PutTask(task) if task.id == id))
        {
            changes.push(put(self.own_task()?));
        }
        if let Some(owed) = &self.envelope.metadata.owes {
            self.enqueue(owed, &mut changes)?;
        }
        if let Some(via) = self.envelope.metadata.via {
            self.spend(via, &mut changes)?;
        }
        Ok(changes)
    }

    fn event(&self) -> Changes {
        match &self.envelope.event {
            Event::TaskCreated(created) => self.created(created),
            Event::TaskReady(_) | Event::TaskWaiting(_) | Event::TaskStarted(_) => self.moved(|_| {}),
            // A person or hook that unblocks the task has seen the findings.
            Event::TaskUnblocked(_) => self.moved(|task| task.rejections = 0),
            Event::WorkspaceOpened(opened) => self.workspace_opened(opened),
            Event::SubmissionStarted(started) => self.submission_started(started),
            Event::TaskSubmitted(_) => self.submitted(),
            Event::MergeStarted(started) => self.merge_started(started),
            Event::PipelineFailed(failed) => self.pipeline_failed(failed),
            Event::TaskRejected(rejected) => self.moved(|task| task.reason = Some(rejected.reason.clone())),
            Event::ChangeOpened(change) => self.change_opened(change),
            Event::ChangeMerged(merged) => self.change_merged(merged),
            Event::TaskClaimed(claimed) => self.claimed(claimed),
            Event::LeaseExpired(expired) => self.expired(expired),
            Event::TaskUpdated(patch) => self.updated(patch),
            Event::CompletionClaimed(claim) => self.claimed_done(claim),
            Event::TaskCompleted(completed) => self.completed(completed),
            Event::TaskBlocked(blocked) => self.moved(|task| task.blocked = Some(blocked.clone())),
            Event::TaskNeedsContinuation(left) => self.needs_continuation(&left.reason),
            Event::TaskReleased(payload::TaskReleased { reason })
            | Event::TaskFailed(payload::TaskFailed { reason }) => {
                self.moved(|task| task.reason = Some(reason.clone()))
            }
            Event::TaskAnswered(answered) => self.answered(answered),
            Event::TaskReopened(_) => self.reopened(),
            Event::TaskDeleted(deleted) => self.deleted(&deleted.edges_removed),
            Event::DependencyAdded(added) => self.edge_added(added),
            Event::DependencyRemoved(removed) => self.edge_removed(removed.edge_id),
            Event::NoteAdded(note) => self.noted(note.kind),
            Event::DependencySatisfied(_)
            | Event::AgentMetrics(_)
            | Event::AutoLabelSuggestion(_)
            | Event::FactLogged(_)
            | Event::MessageAdded(_)
            | Event::HookError(_)
            | Event::ActionError(_) => Ok(Vec::new()),
            Event::ConfigRecorded(config) => {
                Ok(vec![Change::PutConfig { digest: config.digest, text: config.text.clone() }])
            }
            Event::SessionStarted(started) => self.session_started(started),
            Event::SessionResumed(resumed) => self.session_resumed(resumed),
            Event::SessionStopping(stopping) => self.session_stopping(stopping),
            Event::SessionEnded(ended) => self.session_ended(ended.ending),
            Event::IterationStarted(started) => self.iteration_started(&started.run),
            Event::TurnStarted(started) => self.turn_started(started),
            Event::ConversationOpened(opened) => self.conversation_opened(opened),
            Event::TurnFinished(finished) => self.turn_finished(finished),
            Event::PromiseDetected(detected) => self.promise_detected(detected),
            Event::GateDecided(decided) => self.gate_decided(decided),
            Event::GateAnswered(answered) => self.gate_answered(answered),
            Event::IterationCompleted(completed) => self.iteration_completed(&completed.run),
            Event::IterationFailed(failed) => self.iteration_failed(failed),
            Event::IterationInterrupted(interrupted) => self.iteration_interrupted(interrupted),
            Event::IterationPostponed(postponed) => self.iteration_postponed(postponed),
            Event::DeliveryFinished(payload::DeliveryFinished { run, .. })
            | Event::DeliveryFailed(payload::DeliveryFailed { run, .. })
            | Event::DeliveryInterrupted(payload::DeliveryInterrupted { run }) => self.delivery_over(run),
            Event::FeedbackQueued(queued) => self.feedback_queued(queued),
            Event::FeedbackDelivered(delivered) => self.feedback_delivered(delivered),
            Event::HookRegistered(registered) => self.hook_registered(registered),
            Event::HooksCleared(cleared) => self.hooks_cleared(cleared),
            Event::HookSwitched(switched) => self.hook_switched(switched),
            Event::HookEvaluated(evaluated) => self.hook_evaluated(evaluated),
            Event::SeriesStarted(started) => self.series_started(started),
            Event::ValidationFinished(finished) => self.validation_finished(finished),
            Event::SeriesAdvanced(advanced) => self.series_advanced(advanced),
            Event::SeriesEnded(ended) => self.series_ended(ended),
            Event::CheckpointCreated(created) => self.checkpoint_created(created),
            Event::BridgeCalled(called) => self.bridge_called(called),
            Event::BridgeAnswered(answered) => self.bridge_answered(answered),
            Event::WorkflowTriggered(_) => Ok(Vec::new()),
            Event::WorkflowStarted(started) => self.workflow_started(started),
            Event::WorkflowStepStarted(started) => self.workflow_step_started(started),
            Event::WorkflowStepFinished(finished) => self.workflow_step_finished(finished),
            Event::WorkflowCompleted(completed) => self.workflow_ended(completed.effect, None),
            Event::WorkflowFailed(failed) => self.workflow_ended(failed.effect, Some(&failed.error)),
            Event::HookStarted(started) => self.hook_started(started),
            Event::HookRetrying(retrying) => self.hook_retrying(retrying),
            Event::HookFinished(finished) => self.hook_finished(finished),
        }
    }

    // Tasks.

    fn created(&self, created: &payload::TaskCreated) -> Changes {
        let id = self.node()?;
        let last = self.view.last_task()?;
        if id.0 != last.map_or(1, |last| last.0 + 1) {
            return Err(self.unfit(format!("the next task after {last:?} is not {id}")));
        }
        let at = self.envelope.timestamp;
        let created = created.clone();
        Ok(vec![put(Task {
            id,
            goal: created.goal,
            body: created.body,
            deliverables: created.deliverables,
            labels: created.labels,
            priority: created.priority,
            kind: created.kind,
            report: created.report,
            state: State::Created,
            open_dependencies: 0,
            result: None,
            artifacts: Vec::new(),
            blocked: None,
            reason: None,
            claim: None,
            answer: None,
            unsaid: Vec::new(),
            unheard: Vec::new(),
            conversation: None,
            lease: None,
            workspace: None,
            former: Vec::new(),
            taken: None,
            change: None,
            findings: Vec::new(),
            rejections: 0,
            rejected: None,
            approved: None,
            stalled: None,
            in_place: false,
            memo: Memo::default(),
            used: Usage::default(),
            drive: Drive::default(),
            epoch: Epoch(0),
            created_at: at,
            updated_at: at,
            started_at: None,
            completed_at: None,
            version: self.seq,
            last_event: self.seq,
        })])
    }

    fn claimed(&self, claimed: &payload::TaskClaimed) -> Changes {
        let task = self.own_task()?;
        if !task.state.is_claimable() || task.lease.is_some() || claimed.epoch <= task.epoch {
            return Err(self.unfit(format!("{} is {} at epoch {}", task.id, task.state, task.epoch)));
        }
        let mut changes = match &claimed.session {
            Some(name) => self.taken_up(name, claimed)?,
            None => Vec::new(),
        };
        let claimant = claimed.session.as_ref().map(|name| self.view.session(name)).transpose()?.flatten();
        let in_place = match &claimed.session {
            Some(_) => claimant.as_ref().is_some_and(|session| session.grounds.is_in_place()),
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
        let (unsaid, unheard) = if session.is_none() { (task.unsaid, task.unheard) } else { (Vec::new(), Vec::new()) };
        let findings = if session_keeps { Vec::new() } else { task.findings };
        let lease = Lease { owner, epoch, until, session };
        let taken = task.taken.and_then(|taken| taken.by(&lease));
        changes.push(put(Task {
            lease: Some(lease),
            epoch,
            answer,
            unsaid,
            unheard,
            findings,
            taken,
            in_place,
            report,
            ..task
        }));
        Ok(changes)
    }

    fn expired(&self, expired: &payload::LeaseExpired) -> Changes {
        let held = self.own_task()?.lease.map(|lease| lease.epoch);
        if held != Some(expired.epoch) {
            return Err(self.unfit(format!("epoch {} does not hold the task", expired.epoch)));
        }
        self.moved(|task| {
            // The former holder may still be at work in its worktree, so the next holder gets another one.
            if expired.silent {
                task.former.extend(task.workspace.take());
            }
        })
    }

    fn updated(&self, patch: &payload::TaskUpdated) -> Changes {
        let kind = match patch.kind.as_deref() {
            Some("") | None => None,
            Some(name) => Some(name.parse().map_err(|error| self.unfit(format!("{error}")))?),
        };
        self.touched(|task| {
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

    fn noted(&self, kind: NoteKind) -> Changes {
        let iteration = self.said(true);
        self.touched(|task| match (kind, iteration) {
            (NoteKind::Summary, Some(said)) => task.memo.said(said),
            _ => task.memo.note(self.seq),
        })
    }

    /// Returns a reference to this event as the latest text of an iteration.
    fn said(&self, summary: bool) -> Option<Said> {
        let (session, iteration) = (self.envelope.session.clone()?, self.envelope.iteration?);
        Some(Said { session, iteration, at: self.seq, summary })
    }

    fn completed(&self, completed: &payload::TaskCompleted) -> Changes {
        let mut changes = self.moved(|task| {
            task.result.clone_from(&completed.result);
            task.artifacts.clone_from(&completed.artifacts);
        })?;
        self.count_for_waiters(&mut changes, |open| open.checked_sub(1))?;
        Ok(changes)
    }

    /// Approval and rejection leave no answer on the task: the event that ends the task records them.
    fn answered(&self, answered: &payload::TaskAnswered) -> Changes {
        let task = self.own_task()?;
        // A session may ask a person about the task that it holds.
        let held = task.lease.as_ref().is_some_and(|lease| lease.session.is_some());
        let rejected = held && task.state == State::Active && answered.answer == Resolution::Reject;
        if !rejected && !answered.answer.answers(task.state) {
            return Err(self.unfit(format!("{} is {}", task.id, task.state)));
        }
        self.touched(|task| {
            let (by, text) = (self.envelope.metadata.triggered_by.clone(), answered.text.clone());
            let said = Answered { by, text, ignores: answered.ignores.clone() };
            task.stalled = None;
            let goes_on = !matches!(answered.answer, Resolution::Approve | Resolution::Reject);
            task.answer = Some(said).filter(|said| goes_on && (said.text.is_some() || !said.ignores.is_empty()));
        })
    }

    fn reopened(&self) -> Changes {
        let was = self.own_task()?.state;
        let mut changes = self.moved(|_| {})?;
        if was == State::Completed {
            self.count_for_waiters(&mut changes, |open| open.checked_add(1))?;
        }
        Ok(changes)
    }

    fn deleted(&self, removed: &[EdgeId]) -> Changes {
        let task = self.own_task()?;
        let mut edges = self.view.edges(task.id, Direction::From)?;
        edges.extend(self.view.edges(task.id, Direction::To)?);
        edges.sort_unstable_by_key(|edge| edge.id);
        if !edges.iter().map(|edge| edge.id).eq(removed.iter().copied()) {
            return Err(self.unfit("it does not name the edges of the task".to_owned()));
        }
        let mut others: Vec<_> = edges.iter().flat_map(|edge| [edge.from_id, edge.to_id]).collect();
        others.sort_unstable();
        others.dedup();
        let waiting = if task.state == State::Completed { Vec::new() } else { waiters(self.view, task.id)? };
        let mut changes = self.moved(|task| task.open_dependencies = 0)?;
        for id in others.into_iter().filter(|id| *id != task.id) {
            let mut other = self.task(id)?;
            if waiting.contains(&id) {
                other.open_dependencies = self.counted(&other, |open| open.checked_sub(1))?;
            }
            changes.push(put(Task { version: self.seq, ..other }));
        }
        changes.extend(edges.iter().map(|edge| Change::DropEdge(edge.id)));
        Ok(changes)
    }

    /// Recounts the open dependencies of the tasks that wait for this one.
    fn count_for_waiters(&self, changes: &mut Vec<Change>, count: fn(u32) -> Option<u32>) -> Result<(), ApplyError> {
        for id in waiters(self.view, self.node()?)? {
            let mut waiter = self.task(id)?;
            waiter.open_dependencies = self.counted(&waiter, count)?;
            changes.push(put(Task { version: self.seq, ..waiter }));
        }
        Ok(())
    }

    fn counted(&self, task: &Task, count: fn(u32) -> Option<u32>) -> Result<u32, ApplyError> {
        count(task.open_dependencies)
            .ok_or_else(|| self.unfit(format!("{} has {} open dependencies", task.id, task.open_dependencies)))
    }

    // Edges.

    fn edge_added(&self, added: &payload::DependencyAdded) -> Changes {
        let edge = Edge { id: EdgeId(self.seq.0), from_id: added.from_id, to_id: added.to_id, kind: added.edge_type };
        let same = |other: &Edge| (other.to_id, other.kind) == (edge.to_id, edge.kind);
        if edge.from_id == edge.to_id || self.view.edges(edge.from_id, Direction::From)?.iter().any(same) {
            return Err(self.unfit(format!("{} {} {} cannot be added", edge.from_id, edge.kind, edge.to_id)));
        }
        let mut changes = vec![Change::PutEdge(edge)];
        let counts = match edge.wait() {
            Some((waiter, target)) => {
                let open = self.task(target)?.state != State::Completed;
                (open && !awaited(self.view, waiter)?.contains(&target)).then_some(waiter)
            }
            None => None,
        };
        changes.extend(self.ends_touched(edge, counts, |open| open.checked_add(1))?);
        Ok(changes)
    }

    fn edge_removed(&self, id: EdgeId) -> Changes {
        let edges = self.view.edges(self.node()?, Direction::From)?;
        let Some(edge) = edges.into_iter().find(|edge| edge.id == id) else {
            return Err(self.unfit(format!("there is no edge {id}")));
        };
        let mut changes = vec![Change::DropEdge(id)];
        let counts = match edge.wait() {
            Some((waiter, target)) => {
                let open = self.task(target)?.state != State::Completed;
                let last = self.waiting_edges(waiter, target)? == 1;
                (open && last).then_some(waiter)
            }
            None => None,
        };
        changes.extend(self.ends_touched(edge, counts, |open| open.checked_sub(1))?);
        Ok(changes)
    }

    /// Returns how many edges make one task wait for another.
    fn waiting_edges(&self, waiter: TaskId, target: TaskId) -> Result<usize, ApplyError> {
        let mut edges = self.view.edges(waiter, Direction::From)?;
        edges.extend(self.view.edges(waiter, Direction::To)?);
        Ok(edges.iter().filter(|edge| edge.wait() == Some((waiter, target))).count())
    }

    /// Updates both ends of an edge. One of them may need a new count of its dependencies.
    fn ends_touched(&self, edge: Edge, counts: Option<TaskId>, count: fn(u32) -> Option<u32>) -> Changes {
        [edge.from_id, edge.to_id]
            .into_iter()
            .map(|id| {
                let mut task = if id == self.node()? { self.own_task()? } else { self.task(id)? };
                if counts == Some(id) {
                    task.open_dependencies = self.counted(&task, count)?;
                }
                Ok(put(Task { version: self.seq, ..task }))
            })
            .collect()
    }

    // Shared helpers.

    fn node(&self) -> Result<TaskId, ApplyError> {
        self.envelope.node.task().ok_or_else(|| self.unfit("it names no task".to_owned()))
    }

    fn task(&self, id: TaskId) -> Result<Task, ApplyError> {
        self.view.task(id)?.ok_or_else(|| self.unfit(format!("there is no task {id}")))
    }

    /// Returns the task of this event, with this event as its latest.
    fn own_task(&self) -> Result<Task, ApplyError> {
        let task = self.task(self.node()?)?;
        Ok(Task { version: self.seq, last_event: self.seq, updated_at: self.envelope.timestamp, ..task })
    }

    /// Changes the task of this event and keeps its state.
    fn touched(&self, change: impl FnOnce(&mut Task)) -> Changes {
        let mut task = self.own_task()?;
        change(&mut task);
        Ok(vec![put(task)])
    }

    /// Moves the task of this event along the table of transitions.
    fn moved(&self, change: impl FnOnce(&mut Task)) -> Changes {
        let row = Move::on(self.envelope.event.kind()).expect("only moves are folded as moves");
        let mut task = self.own_task()?;
        if !row.allows(task.state, self.envelope.metadata.forced) {
            return Err(self.unfit(format!("{} is {}", task.id, task.state)));
        }
        let held = task.lease.as_ref().and_then(|lease| Some((lease.session.clone()?, lease.epoch)));
        row.make(&mut task, self.envelope.timestamp);
        change(&mut task);
        let Some((name, epoch)) = held.filter(|_| task.lease.is_none()) else { return Ok(vec![put(task)]) };
        let itself = self.is_of_session(&name);
        let (id, state) = (task.id, task.state);
        if !itself && is_left_to_others(state) {
            task.taken = Some(Taken { from: name.clone(), epoch, by: None });
        }
        task.conversation = self.view.session(&name)?.and_then(|session| session.last_conversation());
        let mut changes = vec![put(task)];
        let mut unheard = Vec::new();
        self.with_session(&name, &mut changes, |session| unheard = session.put_down(id, state, itself))?;
        if let Some(Change::PutTask(task)) = changes.first_mut() {
            task.keep_unheard(unheard);
        }
        Ok(changes)
    }

    /// Returns whether the session itself decided this event.
    fn is_of_session(&self, name: &SessionName) -> bool {
        let metadata = &self.envelope.metadata;
        self.envelope.session.as_ref() == Some(name) && metadata.depth == 0 && !metadata.forced
    }

    fn unfit(&self, why: String) -> ApplyError {
        ApplyError::Unfit { seq: self.seq, event: self.envelope.event.kind(), why }
    }
}
