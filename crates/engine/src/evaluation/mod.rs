//! State of an agent that runs its own iterations: stop hooks that are registered for a task, a series, checkpoints.
//!
//! ```text
//! hook_registered   series_started ─► validation_finished ─► series_advanced ─► … ─► series_ended
//!        │                                  ▲      │
//!        └── evaluate (fresh results) ──────┘      └─► checkpoint_created, where a hook asks for one
//! ```
//!
//! Invariants:
//! - The row of a task names a bounded number of events; long data (rules, drafts, contexts) is in those events alone.
//! - Rules and commands run outside. A decision based on them holds only while the series is still in the same iteration.
//! - An evaluation moves no task.
//!
//! Not here: running validation rules and commands (`tools`), and the requests for it (`mcp`, `cli`).

mod checkpoint;
mod context;
pub(crate) mod decision_rule;
mod rules;
mod series;
mod stop_hook;
mod templates;
#[cfg(test)]
mod tests;
pub mod validation;

use serde::{Deserialize, Serialize};

pub use checkpoint::{CheckpointRef, CheckpointTrigger, NewCheckpoint};
pub use context::{AgentContext, DetectedPromise};
pub use rules::{RuleListSource, RuleSource};
pub use series::{
    EvaluationFindings, EvaluationPurpose, FailureStreak, HookDecision, IterationJudgement, IterationSeries,
    NewIterationSeries, SeriesGuard, SeriesSignal,
};
pub use stop_hook::{
    EvaluationOutcome, NewStopHook, RegisteredStopHook, StopHook, StopHookRef, StopRuling, evaluate_stop_hooks,
};

use crate::log::id::SeriesId;
use crate::log::time::Timestamp;

/// The name of the pending hook that stands for all stop hooks that are registered for the task.
pub const REGISTERED_HOOKS_NAME: &str = "registered";

/// The name of the pending hook for the configuration's validation rules, if the task has nothing registered.
pub const VALIDATION_RULES_NAME: &str = "validation";

/// How many checkpoints of a task are kept.
const MAX_CHECKPOINTS: usize = 5;

/// The evaluation state in the row of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationState {
    /// In the order of registration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<StopHookRef>,
    /// The series in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<IterationSeries>,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointRef>,
    /// How many were ever created.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checkpoints_made: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl EvaluationState {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the task itself has rules or stop hooks that judge its turns.
    pub fn has_turn_judge(&self) -> bool {
        let has_rules = self.series.as_ref().is_some_and(|series| series.rules > 0);
        has_rules || self.hooks.iter().any(|hook| hook.enabled)
    }

    /// Returns the series of this id if it is in progress.
    pub fn find_series(&self, id: SeriesId) -> Option<&IterationSeries> {
        self.series.as_ref().filter(|series| series.id == id)
    }

    /// Returns the checkpoints that can be resumed from at that moment, oldest first.
    pub fn live_checkpoints_at(&self, now: Timestamp) -> impl DoubleEndedIterator<Item = &CheckpointRef> {
        let spared = self.last_series_checkpoint();
        let lasts = move |(place, kept): &(usize, &CheckpointRef)| kept.expires_at > now || Some(*place) == spared;
        self.checkpoints.iter().enumerate().filter(lasts).map(|(_, kept)| kept)
    }

    /// Returns the index of the last checkpoint of the series in progress.
    fn last_series_checkpoint(&self) -> Option<usize> {
        let live = self.series.as_ref().map(|series| series.id)?;
        self.checkpoints.iter().rposition(|kept| kept.series == Some(live))
    }

    /// Adds a checkpoint, and removes those that are too old or too many. The last one of the series in progress and the
    /// last manual one stay.
    pub(crate) fn add_checkpoint(&mut self, checkpoint: CheckpointRef, now: Timestamp) {
        self.checkpoints_made = checkpoint.sequence;
        self.checkpoints = self.live_checkpoints_at(now).cloned().collect();
        self.checkpoints.push(checkpoint);
        let asked_for = |kept: &CheckpointRef| kept.trigger == CheckpointTrigger::Manual;
        while self.checkpoints.len() > MAX_CHECKPOINTS {
            let spared = [self.last_series_checkpoint(), self.checkpoints.iter().rposition(asked_for)];
            let oldest = (0..self.checkpoints.len()).find(|place| !spared.contains(&Some(*place)));
            self.checkpoints.remove(oldest.expect("more than two checkpoints exist here"));
        }
    }
}
