//! Folds the events of an agent that runs its own iterations.

use super::{ApplyError, EventFold, FoldResult};
use crate::evaluation::{CheckpointRef, FailureStreak, IterationJudgement, IterationSeries, StopHookRef};
use crate::log::event::payload;
use crate::log::id::{CheckpointId, HookId, SeriesId};

impl EventFold<'_> {
    pub(super) fn fold_hook_registered(&self, registered: &payload::HookRegistered) -> FoldResult {
        self.change_task(|task| {
            let inside = self.envelope.session.is_some();
            task.evaluation.hooks.push(StopHookRef { id: HookId(self.seq.0), enabled: registered.enabled, inside });
        })
    }

    pub(super) fn fold_hooks_cleared(&self, cleared: &payload::HooksCleared) -> FoldResult {
        let task = self.require_event_task()?;
        let known = |id: &HookId| task.evaluation.hooks.iter().any(|hook| hook.id == *id);
        if cleared.hooks.is_empty() || !cleared.hooks.iter().all(known) {
            return Err(self.unfit_event_error("it does not name stop hooks of the task".to_owned()));
        }
        self.change_task(|task| task.evaluation.hooks.retain(|hook| !cleared.hooks.contains(&hook.id)))
    }

    pub(super) fn fold_hook_switched(&self, switched: &payload::HookSwitched) -> FoldResult {
        if !self.require_event_task()?.evaluation.hooks.iter().any(|hook| hook.id == switched.hook) {
            return Err(self.unfit_event_error("it does not name a stop hook of the task".to_owned()));
        }
        self.change_task(|task| {
            let hooks = task.evaluation.hooks.iter_mut().filter(|hook| hook.id == switched.hook);
            hooks.for_each(|hook| hook.enabled = switched.enabled);
        })
    }

    pub(super) fn fold_hook_evaluated(&self, evaluated: &payload::HookEvaluated) -> FoldResult {
        if let Some(series) = evaluated.series {
            self.require_live_series(series, evaluated.iteration)?;
        }
        self.change_task(|_| {})
    }

    pub(super) fn fold_series_started(&self, started: &payload::SeriesStarted) -> FoldResult {
        let series = IterationSeries {
            id: SeriesId(self.seq.0),
            iteration: 1,
            max_iterations: started.max_iterations,
            completion_promises: started.completion_promises.clone(),
            circuit_breaker_threshold: started.circuit_breaker_threshold,
            strict: started.strict,
            rules: u32::try_from(started.validation_rules.len()).unwrap_or(u32::MAX),
            inside: self.envelope.session.is_some(),
            before: FailureStreak::default(),
            judged: None,
            judged_by_loop: false,
        };
        self.change_task(|task| task.evaluation.series = Some(series))
    }

    pub(super) fn fold_validation_finished(&self, finished: &payload::ValidationFinished) -> FoldResult {
        let series = self.require_live_series(finished.series, finished.iteration)?;
        let payload::ValidationFinished { passed, signal, alike, .. } = *finished;
        let times = series.judged.map_or(0, |judged| judged.times) + 1;
        let judged = Some(IterationJudgement { passed, signal, times, alike });
        self.change_task(|task| task.evaluation.series = Some(IterationSeries { judged, ..series }))
    }

    pub(super) fn fold_series_advanced(&self, advanced: &payload::SeriesAdvanced) -> FoldResult {
        let series = self.require_live_series(advanced.series, advanced.iteration.saturating_sub(1))?;
        if series.remaining_iterations() == 0 {
            return Err(self.unfit_event_error(format!("{} has no iteration left", series.id)));
        }
        self.change_task(|task| task.evaluation.series = Some(series.into_next_iteration()))
    }

    pub(super) fn fold_series_ended(&self, ended: &payload::SeriesEnded) -> FoldResult {
        self.require_live_series(ended.series, ended.iteration)?;
        self.change_task(|task| task.evaluation.series = None)
    }

    pub(super) fn fold_checkpoint_created(&self, created: &payload::CheckpointCreated) -> FoldResult {
        let before = self.require_event_task()?.evaluation.checkpoints_made;
        if created.sequence != before + 1 {
            return Err(self.unfit_event_error(format!("there have been {before} checkpoints")));
        }
        let checkpoint = CheckpointRef {
            id: CheckpointId(self.seq.0),
            sequence: created.sequence,
            trigger: created.trigger,
            expires_at: created.expires_at,
            series: created.series,
        };
        self.change_task(|task| task.evaluation.add_checkpoint(checkpoint, self.envelope.timestamp))
    }

    /// Returns the series of an event. The series has to be in progress and in that iteration.
    fn require_live_series(&self, id: SeriesId, iteration: u32) -> Result<IterationSeries, ApplyError> {
        let task = self.require_event_task()?;
        let live = task.evaluation.series.filter(|series| series.id == id && series.iteration == iteration);
        live.ok_or_else(|| self.unfit_event_error(format!("{id} is not in iteration {iteration}")))
    }
}
