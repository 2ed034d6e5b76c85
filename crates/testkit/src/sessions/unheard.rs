//! What people have said to sessions that did not hear it: whoever works on the task next does.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{Event, Piece, Record, TaskId};

use super::Told;

#[derive(Debug, Default)]
pub(super) struct Unheard {
    by_task: BTreeMap<TaskId, Vec<Piece>>,
    completed: BTreeSet<TaskId>,
}

impl Unheard {
    /// Before the session of an event hears of it itself.
    pub fn hear(&mut self, record: &Record, told: Option<&mut Told>) {
        if let (Event::SessionEnded(_), Some(told)) = (&record.envelope.event, &told)
            && let Some(task) = told.task.filter(|task| !self.completed.contains(task))
        {
            self.by_task.entry(task).or_default().extend(told.pending().iter().filter(|piece| piece.person));
        }
        let Some(task) = record.envelope.node.task() else { return };
        match (&record.envelope.event, told) {
            (Event::TaskClaimed(claimed), Some(told)) if claimed.session.is_some() => {
                told.take_over(&self.by_task.remove(&task).unwrap_or_default());
            }
            (Event::TaskCompleted(_) | Event::TaskFailed(_) | Event::TaskDeleted(_), _) => {
                self.by_task.remove(&task);
            }
            _ => {}
        }
        match &record.envelope.event {
            Event::TaskCompleted(_) => self.completed.insert(task),
            Event::TaskReopened(_) | Event::TaskDeleted(_) => self.completed.remove(&task),
            _ => false,
        };
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
