//! Feedback that no finished turn has delivered: it stays with its task and opens the task's next session.

use core::time::Duration;
use std::collections::BTreeMap;

use windlass_engine::{Event, EventRecord, FeedbackRef, GateVerdict, MessageAuthor, Seq, TaskHold, TaskId};

use super::SessionOracle;

#[derive(Debug, Default)]
pub(super) struct PendingFeedback {
    by_task: BTreeMap<TaskId, Vec<FeedbackRef>>,
}

impl PendingFeedback {
    /// Returns the feedback that waits with a task, in the order in which it was queued.
    pub fn feedback_of_task(&self, task: TaskId) -> &[FeedbackRef] {
        self.by_task.get(&task).map_or(&[], Vec::as_slice)
    }

    pub fn keep_feedback(&mut self, task: Option<TaskId>, pieces: Vec<FeedbackRef>) {
        let Some(task) = task else { return };
        let kept = self.by_task.entry(task).or_default();
        kept.extend(pieces);
        kept.sort_by_key(|piece| piece.at);
    }

    /// Observes an event before its session does.
    pub fn observe(&mut self, record: &EventRecord, oracle: Option<&mut SessionOracle>) {
        let node = record.envelope.node.task_id();
        match (&record.envelope.event, oracle) {
            (Event::SessionEnded(_), Some(oracle)) if oracle.task.is_some() => {
                let left = oracle.leave_feedback();
                self.keep_feedback(oracle.task, left);
            }
            (Event::TaskClaimed(claimed), Some(oracle)) if claimed.session.is_some() => {
                let kept = node.and_then(|task| self.by_task.remove(&task));
                oracle.take_over_feedback(&kept.unwrap_or_default());
            }
            (Event::FeedbackQueued(queued), None) => {
                let person = queued.voice == MessageAuthor::Person;
                self.keep_feedback(
                    node,
                    vec![FeedbackRef { at: record.seq, possibly_seen: false, person, passing: queued.passing }],
                );
            }
            (Event::TaskDeleted(_), _) => drop(node.and_then(|task| self.by_task.remove(&task))),
            _ => {}
        }
    }
}

impl SessionOracle {
    /// Takes the undelivered feedback from the session.
    pub(super) fn leave_feedback(&mut self) -> Vec<FeedbackRef> {
        self.seen.extend(&self.bound);
        self.bound.clear();
        let left = self.pending();
        self.queued.retain(|at| self.delivered.contains(at));
        left.into_iter().filter(|piece| !piece.passing).collect()
    }

    /// Returns whether a person has sent feedback that no turn has carried yet.
    pub(super) fn has_pending_person_feedback(&self) -> bool {
        self.pending().iter().any(|piece| piece.person)
    }

    /// Returns whether a person has sent feedback since the stop gate let the work pass.
    pub(super) fn is_held_back(&self) -> bool {
        let since = |piece: &FeedbackRef| piece.person && Some(piece.at) > self.judged_done_at;
        self.holds() && self.pending().iter().any(since)
    }

    /// Returns whether the next iteration continues an interrupted or rate limited one.
    pub fn takes_up(&self) -> bool {
        self.takes_up
    }

    /// Returns whether another iteration may follow.
    pub(super) fn may_go_on(&self) -> bool {
        let left = self.iteration - self.interrupted < self.terms.max_iterations || self.has_pending_person_feedback();
        left && !self.is_broken() && !self.is_spent()
    }

    /// Returns whether the agent has failed too often over too long a time.
    pub(super) fn is_broken(&self) -> bool {
        let mut since = self.failures.iter().flatten();
        let first = since.next();
        let span = first.map_or(Duration::ZERO, |first| since.next_back().unwrap_or(first).elapsed_since(*first));
        let most = self.terms.max_failures.max(1) as usize;
        self.failures.len() >= most && (most == 1 || span >= self.terms.failure_span)
    }

    /// Returns whether pending feedback may get a turn of its own: the work has passed, or no iteration is left.
    pub(super) fn may_deliver(&self) -> bool {
        let counted = self.iteration - self.interrupted;
        let at_limit = counted >= self.terms.max_iterations && !self.has_pending_person_feedback();
        let due = self.delivery.done && self.has_passed() && !self.is_held_back() || at_limit;
        let has_work = self.holds() || self.hold == TaskHold::Never;
        let is_waived = matches!(self.gate, Some((GateVerdict::Block, _))) && !self.has_pending_person_feedback();
        let may_go_on = !is_waived && !self.is_spent() && !self.is_broken() && self.stopping.is_none();
        due && has_work && may_go_on && self.has_worked && !self.has_delivered && !self.pending().is_empty()
    }

    pub(super) fn undelivered(&self) -> impl Iterator<Item = Seq> {
        self.queued.difference(&self.delivered).copied()
    }

    /// Returns the feedback that no turn carries, in the order in which it was queued.
    pub(super) fn pending(&self) -> Vec<FeedbackRef> {
        self.undelivered().filter(|at| !self.bound.contains(at)).map(|at| self.piece(at)).collect()
    }

    pub(super) fn carried(&self) -> Vec<FeedbackRef> {
        self.bound.iter().map(|at| self.piece(*at)).collect()
    }

    pub(super) fn piece(&self, at: Seq) -> FeedbackRef {
        let (possibly_seen, passing) = (self.seen.contains(&at), self.passing.contains(&at));
        FeedbackRef { at, possibly_seen, passing, person: self.person_feedback.contains(&at) }
    }

    /// Adds the feedback of earlier sessions.
    fn take_over_feedback(&mut self, pieces: &[FeedbackRef]) {
        for piece in pieces {
            let sets = [
                (true, &mut self.queued),
                (piece.person, &mut self.person_feedback),
                (piece.possibly_seen, &mut self.seen),
                (piece.passing, &mut self.passing),
            ];
            for (_, set) in sets.into_iter().filter(|(is_it, _)| *is_it) {
                set.insert(piece.at);
            }
        }
    }
}
