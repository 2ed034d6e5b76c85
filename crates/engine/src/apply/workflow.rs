//! The progress of a workflow run, which is part of its effect.

use super::{ApplyError, Changes, Fold};
use crate::effects::outbox::PendingEffect;
use crate::log::event::payload;
use crate::log::id::EffectId;
use crate::view::Change;
use crate::workflow::Progress;

impl Fold<'_> {
    pub(super) fn workflow_started(&self, started: &payload::WorkflowStarted) -> Changes {
        let effect = self.effect(started.effect)?;
        if effect.progress.is_some() {
            return Err(self.unfit(format!("the workflow of {} has begun already", effect.id)));
        }
        let progress = Progress {
            workflow: started.workflow_id.clone(),
            digest: started.digest,
            steps: started.steps,
            next: Some(started.step.clone()),
            under_way: None,
            attempt: 0,
            done: Vec::new(),
            ended: false,
            failed: None,
        };
        Ok(vec![self.come(effect, progress)])
    }

    pub(super) fn workflow_step_started(&self, started: &payload::WorkflowStepStarted) -> Changes {
        let (effect, progress) = self.running(started.effect)?;
        let under_way = Some(started.step.clone());
        let attempt = started.attempt;
        if progress.next != under_way || progress.is_under_way(attempt) || attempt > effect.attempts {
            return Err(self.unfit(format!("{} is not at the step `{}`", effect.id, started.step)));
        }
        Ok(vec![self.come(effect, Progress { under_way, attempt, ..progress })])
    }

    pub(super) fn workflow_step_finished(&self, finished: &payload::WorkflowStepFinished) -> Changes {
        let (effect, mut progress) = self.running(finished.effect)?;
        if progress.next.as_deref() != Some(finished.result.step_id.as_str()) {
            return Err(self.unfit(format!("{} is not at the step `{}`", effect.id, finished.result.step_id)));
        }
        progress.done.push(self.seq);
        Ok(vec![self.come(effect, Progress { next: finished.next.clone(), under_way: None, attempt: 0, ..progress })])
    }

    pub(super) fn workflow_ended(&self, id: EffectId, failed: Option<&str>) -> Changes {
        let (effect, progress) = self.running(id)?;
        let failed = failed.map(str::to_owned);
        Ok(vec![
            self.come(effect, Progress { next: None, under_way: None, attempt: 0, ended: true, failed, ..progress }),
        ])
    }

    fn running(&self, id: EffectId) -> Result<(PendingEffect, Progress), ApplyError> {
        let effect = self.effect(id)?;
        let progress = effect.progress.clone().filter(|progress| !progress.ended);
        progress.map(|progress| (effect, progress)).ok_or_else(|| self.unfit(format!("{id} is no workflow that runs")))
    }

    fn come(&self, effect: PendingEffect, progress: Progress) -> Change {
        Change::PutEffect(Box::new(PendingEffect { progress: Some(progress), version: self.seq, ..effect }))
    }
}
