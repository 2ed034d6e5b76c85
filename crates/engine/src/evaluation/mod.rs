//! What an agent drives itself with: stop hooks that are registered for a task, a series of iterations, checkpoints.
//!
//! ```text
//! hook_registered   series_started ─► validation_finished ─► series_advanced ─► … ─► series_ended
//!        │                                  ▲      │
//!        └── evaluate (fresh results) ──────┘      └─► checkpoint_created, where a hook asks for one
//! ```
//!
//! Invariants:
//! - The row of a task names a bounded number of events; what is long (rules, drafts, contexts) is in those events alone.
//! - Rules and commands run outside. What is decided upon them holds only while the series stands where it stood then.
//! - Judging moves no task.
//!
//! Not here: running validation rules and commands (`tools`), and how any of it is asked for (`mcp`, `cli`).

mod checkpoint;
mod context;
mod rules;
pub(crate) mod ruling;
mod series;
mod stop_hook;
mod templates;
#[cfg(test)]
mod tests;
pub mod validation;

use serde::{Deserialize, Serialize};

pub use checkpoint::{CheckpointRef, NewCheckpoint, Trigger};
pub use context::{AgentContext, SeenPromise};
pub use rules::{RuleText, RulesText};
pub use series::{Asked, Guard, HookDecision, Judged, Judging, NewSeries, Series, Signal, Streak};
pub use stop_hook::{Evaluated, HookRef, NewHook, Registered, StopHook, StopRuling, evaluate};

use crate::log::id::SeriesId;
use crate::log::time::Timestamp;

/// How the stop hooks that are registered for a task are called where they are owed, all of them together.
pub const REGISTERED: &str = "registered";

/// How the validation rules of the configuration are called where they are owed and nothing is registered for the task.
pub const VALIDATION: &str = "validation";

/// How many checkpoints of a task are kept.
const CHECKPOINTS: usize = 5;

/// What the row of a task knows of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drive {
    /// In the order of registration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRef>,
    /// The series that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointRef>,
    /// How many there have been.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checkpoints_made: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Drive {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether anybody has to be asked when a turn on the task ends.
    pub fn has_a_say(&self) -> bool {
        let has_rules = self.series.as_ref().is_some_and(|series| series.rules > 0);
        has_rules || self.hooks.iter().any(|hook| hook.enabled)
    }

    /// The series of this id, if it is the one under way.
    pub fn series(&self, id: SeriesId) -> Option<&Series> {
        self.series.as_ref().filter(|series| series.id == id)
    }

    /// The checkpoints that can be resumed from at that moment, oldest first.
    pub fn checkpoints_at(&self, now: Timestamp) -> impl DoubleEndedIterator<Item = &CheckpointRef> {
        let spared = self.last_of_live();
        let lasts = move |(place, kept): &(usize, &CheckpointRef)| kept.expires_at > now || Some(*place) == spared;
        self.checkpoints.iter().enumerate().filter(lasts).map(|(_, kept)| kept)
    }

    /// Where the last checkpoint of the series under way is.
    fn last_of_live(&self) -> Option<usize> {
        let live = self.series.as_ref().map(|series| series.id)?;
        self.checkpoints.iter().rposition(|kept| kept.series == Some(live))
    }

    /// Keeps another checkpoint, and forgets those that are too old or too many; never the last one of the series under way,
    /// nor the last one that was asked for.
    pub(crate) fn keep(&mut self, checkpoint: CheckpointRef, now: Timestamp) {
        self.checkpoints_made = checkpoint.sequence;
        self.checkpoints = self.checkpoints_at(now).cloned().collect();
        self.checkpoints.push(checkpoint);
        let asked_for = |kept: &CheckpointRef| kept.trigger == Trigger::Manual;
        while self.checkpoints.len() > CHECKPOINTS {
            let spared = [self.last_of_live(), self.checkpoints.iter().rposition(asked_for)];
            let oldest = (0..self.checkpoints.len()).find(|place| !spared.contains(&Some(*place)));
            self.checkpoints.remove(oldest.expect("at most two of several are spared"));
        }
    }
}
