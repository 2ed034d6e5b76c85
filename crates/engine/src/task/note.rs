//! Notes that people and agents leave with a task, and the index of them in the task's row.
//!
//! Invariant: a row names a bounded number of events, the newest. So the notes in a prompt cost the same after ten thousand
//! iterations.

use serde::{Deserialize, Serialize};

use crate::log::id::{Seq, SessionName};
use crate::log::value_names::value_names;

/// The maximum number of notes that a row names.
const MAX_INDEXED_NOTES: usize = 16;
/// The maximum number of iterations that a row names.
const MAX_INDEXED_ITERATIONS: usize = 5;

/// The subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    Learning,
    Stuck,
    Tip,
    Decision,
    /// The result of an iteration, in the agent's own words.
    Summary,
}

value_names!(
    NoteKind,
    "kind of note",
    Learning = "learning",
    Stuck = "stuck",
    Tip = "tip",
    Decision = "decision",
    Summary = "summary",
);

/// The index of a task's notes: the events that hold the texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoteIndex {
    /// The events of notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Seq>,
    /// The last iterations that have a text, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<IterationNoteRef>,
}

/// A reference to the last text of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IterationNoteRef {
    pub session: SessionName,
    pub iteration: u32,
    /// The event of the agent's summary, else of the end of its last turn.
    pub at: Seq,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
}

impl NoteIndex {
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.iterations.is_empty()
    }

    pub(crate) fn add_note_event(&mut self, at: Seq) {
        self.notes.push(at);
        let over = self.notes.len().saturating_sub(MAX_INDEXED_NOTES);
        self.notes.drain(..over);
    }

    /// Records the last text of an iteration. A summary replaces all other texts of the iteration.
    pub(crate) fn add_iteration_note(&mut self, said: IterationNoteRef) {
        match self.iterations.last_mut() {
            Some(last) if last.session == said.session && last.iteration == said.iteration => {
                if said.summary || !last.summary {
                    *last = said;
                }
            }
            _ => self.iterations.push(said),
        }
        let over = self.iterations.len().saturating_sub(MAX_INDEXED_ITERATIONS);
        self.iterations.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(iteration: u32, at: u64, summary: bool) -> IterationNoteRef {
        IterationNoteRef { session: "a".parse().expect("a name"), iteration, at: Seq(at), summary }
    }

    #[test]
    fn index_keeps_newest_notes_and_prefers_summaries() {
        let mut memo = NoteIndex::default();
        (1..=20).for_each(|at| memo.add_note_event(Seq(at)));
        assert_eq!((memo.notes.len(), memo.notes[0], memo.notes[15]), (16, Seq(5), Seq(20)));
        for (iteration, at, summary) in [(1, 1, false), (1, 2, true), (1, 3, false), (2, 4, false), (2, 5, false)] {
            memo.add_iteration_note(said(iteration, at, summary));
        }
        assert_eq!(memo.iterations, [said(1, 2, true), said(2, 5, false)]);
        (3..=9).for_each(|iteration| memo.add_iteration_note(said(iteration, 10 + u64::from(iteration), false)));
        assert_eq!(memo.iterations.first().map(|said| said.iteration), Some(5));
    }

    #[test]
    fn note_kinds_round_trip_through_names() {
        for kind in NoteKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("joke".parse::<NoteKind>().is_err());
    }
}
