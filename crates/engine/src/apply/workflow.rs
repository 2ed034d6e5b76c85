//! The progress of a workflow run, which is part of its effect.

use super::{ApplyError, EventFold, FoldResult};
use crate::effects::outbox::PendingEffect;
use crate::log::event::payload;
use crate::log::id::EffectId;
use crate::view::RowChange;
use crate::workflow::WorkflowProgress;

impl EventFold<'_> {
    pub(super) fn fold_workflow_started(&self, started: &payload::WorkflowStarted) -> FoldResult {
        let effect = self.require_effect(started.effect)?;
        if effect.progress.is_some() {
            return Err(self.unfit_event_error(format!("the workflow of {} has begun already", effect.id)));
        }
        let progress = WorkflowProgress {
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

    pub(super) fn fold_workflow_step_started(&self, started: &payload::WorkflowStepStarted) -> FoldResult {
        let (effect, progress) = self.require_running_workflow(started.effect)?;
        let under_way = Some(started.step.clone());
        let attempt = started.attempt;
        if progress.next != under_way || progress.is_step_running(attempt) || attempt > effect.attempts {
            return Err(self.unfit_event_error(format!("{} is not at the step `{}`", effect.id, started.step)));
        }
        Ok(vec![self.come(effect, Progress { under_way, attempt, ..progress })])
    }

    pub(super) fn fold_workflow_step_finished(&self, finished: &payload::WorkflowStepFinished) -> FoldResult {
        let (effect, mut progress) = self.require_running_workflow(finished.effect)?;
        if progress.next.as_deref() != Some(finished.result.step_id.as_str()) {
            return Err(
                self.unfit_event_error(format!("{} is not at the step `{}`", effect.id, finished.result.step_id))
            );
        }
        progress.done.push(self.seq);
        Ok(vec![self.come(effect, Progress { next: finished.next.clone(), under_way: None, attempt: 0, ..progress })])
    }

    pub(super) fn fold_workflow_ended(&self, id: EffectId, failed: Option<&str>) -> FoldResult {
        let (effect, progress) = self.require_running_workflow(id)?;
        let failed = failed.map(str::to_owned);
        Ok(vec![
            self.come(effect, Progress { next: None, under_way: None, attempt: 0, ended: true, failed, ..progress }),
        ])
    }

    fn require_running_workflow(&self, id: EffectId) -> Result<(PendingEffect, WorkflowProgress), ApplyError> {
        let effect = self.require_effect(id)?;
        let progress = effect.progress.clone().filter(|progress| !progress.ended);
        progress
            .map(|progress| (effect, progress))
            .ok_or_else(|| self.unfit_event_error(format!("{id} is no workflow that runs")))
    }

    fn put_progress(&self, effect: PendingEffect, progress: WorkflowProgress) -> RowChange {
        RowChange::PutEffect(Box::new(PendingEffect { progress: Some(progress), version: self.seq, ..effect }))
    }
}
