//! Feedback that no finished turn has heard: it stays with its task and opens the task's next session.

use std::collections::BTreeMap;

use windlass_engine::{Event, Piece, Record, TaskId, Voice};

use super::Told;

#[derive(Debug, Default)]
pub(super) struct Unheard {
    by_task: BTreeMap<TaskId, Vec<Piece>>,
}

impl Unheard {
    /// What waits with a task, in the order in which it was queued.
    pub fn of(&self, task: TaskId) -> &[Piece] {
        self.by_task.get(&task).map_or(&[], Vec::as_slice)
    }

    pub fn keep(&mut self, task: Option<TaskId>, pieces: Vec<Piece>) {
        let Some(task) = task else { return };
        let kept = self.by_task.entry(task).or_default();
        kept.extend(pieces);
        kept.sort_by_key(|piece| piece.at);
    }

    /// Before the session of an event hears of it itself.
    pub fn hear(&mut self, record: &Record, told: Option<&mut Told>) {
        let node = record.envelope.node.task();
        match (&record.envelope.event, told) {
            (Event::SessionEnded(_), Some(told)) if told.task.is_some() => {
                let left = told.leave_feedback();
                self.keep(told.task, left);
            }
            (Event::TaskClaimed(claimed), Some(told)) if claimed.session.is_some() => {
                let kept = node.and_then(|task| self.by_task.remove(&task));
                told.take_over(&kept.unwrap_or_default());
            }
            (Event::FeedbackQueued(queued), None) => {
                let person = queued.voice == Voice::Person;
                self.keep(node, vec![Piece { at: record.seq, possibly_seen: false, person, passing: queued.passing }]);
            }
            (Event::TaskDeleted(_), _) => drop(node.and_then(|task| self.by_task.remove(&task))),
            _ => {}
        }
    }
}

impl Told {
    /// What was said to others is pending here.
    fn take_over(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let sets = [
                (true, &mut self.queued),
                (piece.person, &mut self.said),
                (piece.possibly_seen, &mut self.seen),
                (piece.passing, &mut self.passing),
            ];
            for (_, set) in sets.into_iter().filter(|(is_it, _)| *is_it) {
                set.insert(piece.at);
            }
        }
    }
}
