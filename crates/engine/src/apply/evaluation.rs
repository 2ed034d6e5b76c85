//! Folds the events of an agent that runs its own iterations.

use super::{ApplyError, Changes, Fold};
use crate::evaluation::{CheckpointRef, HookRef, Judged, Series, Streak};
use crate::log::event::payload;
use crate::log::id::{CheckpointId, HookId, SeriesId};

impl Fold<'_> {
    pub(super) fn hook_registered(&self, registered: &payload::HookRegistered) -> Changes {
        self.touched(|task| {
            let inside = self.envelope.session.is_some();
            task.drive.hooks.push(HookRef { id: HookId(self.seq.0), enabled: registered.enabled, inside });
        })
    }

    pub(super) fn hooks_cleared(&self, cleared: &payload::HooksCleared) -> Changes {
        let task = self.own_task()?;
        let known = |id: &HookId| task.drive.hooks.iter().any(|hook| hook.id == *id);
        if cleared.hooks.is_empty() || !cleared.hooks.iter().all(known) {
            return Err(self.unfit("it does not name stop hooks of the task".to_owned()));
        }
        self.touched(|task| task.drive.hooks.retain(|hook| !cleared.hooks.contains(&hook.id)))
    }

    pub(super) fn hook_switched(&self, switched: &payload::HookSwitched) -> Changes {
        if !self.own_task()?.drive.hooks.iter().any(|hook| hook.id == switched.hook) {
            return Err(self.unfit("it does not name a stop hook of the task".to_owned()));
        }
        self.touched(|task| {
            let hooks = task.drive.hooks.iter_mut().filter(|hook| hook.id == switched.hook);
            hooks.for_each(|hook| hook.enabled = switched.enabled);
        })
    }

    pub(super) fn hook_evaluated(&self, evaluated: &payload::HookEvaluated) -> Changes {
        if let Some(series) = evaluated.series {
            self.live(series, evaluated.iteration)?;
        }
        self.touched(|_| {})
    }

    pub(super) fn series_started(&self, started: &payload::SeriesStarted) -> Changes {
        let series = Series {
            id: SeriesId(self.seq.0),
            iteration: 1,
            max_iterations: started.max_iterations,
            completion_promises: started.completion_promises.clone(),
            circuit_breaker_threshold: started.circuit_breaker_threshold,
            strict: started.strict,
            rules: u32::try_from(started.validation_rules.len()).unwrap_or(u32::MAX),
            inside: self.envelope.session.is_some(),
            before: Streak::default(),
            judged: None,
            judged_by_loop: false,
        };
        self.touched(|task| task.drive.series = Some(series))
    }

    pub(super) fn validation_finished(&self, finished: &payload::ValidationFinished) -> Changes {
        let series = self.live(finished.series, finished.iteration)?;
        let payload::ValidationFinished { passed, signal, alike, .. } = *finished;
        let times = series.judged.map_or(0, |judged| judged.times) + 1;
        let judged = Some(Judged { passed, signal, times, alike });
        self.touched(|task| task.drive.series = Some(Series { judged, ..series }))
    }

    pub(super) fn series_advanced(&self, advanced: &payload::SeriesAdvanced) -> Changes {
        let series = self.live(advanced.series, advanced.iteration.saturating_sub(1))?;
        if series.remaining() == 0 {
            return Err(self.unfit(format!("{} has no iteration left", series.id)));
        }
        self.touched(|task| task.drive.series = Some(series.advanced()))
    }

    pub(super) fn series_ended(&self, ended: &payload::SeriesEnded) -> Changes {
        self.live(ended.series, ended.iteration)?;
        self.touched(|task| task.drive.series = None)
    }

    pub(super) fn checkpoint_created(&self, created: &payload::CheckpointCreated) -> Changes {
        let before = self.own_task()?.drive.checkpoints_made;
        if created.sequence != before + 1 {
            return Err(self.unfit(format!("there have been {before} checkpoints")));
        }
        let checkpoint = CheckpointRef {
            id: CheckpointId(self.seq.0),
            sequence: created.sequence,
            trigger: created.trigger,
            expires_at: created.expires_at,
            series: created.series,
        };
        self.touched(|task| task.drive.keep(checkpoint, self.envelope.timestamp))
    }

    /// Returns the series of an event. The series has to be in progress and in that iteration.
    fn live(&self, id: SeriesId, iteration: u32) -> Result<Series, ApplyError> {
        let task = self.own_task()?;
        let live = task.drive.series.filter(|series| series.id == id && series.iteration == iteration);
        live.ok_or_else(|| self.unfit(format!("{id} is not in iteration {iteration}")))
    }
}
