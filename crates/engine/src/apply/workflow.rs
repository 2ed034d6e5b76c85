//! How far a run of a workflow has come: a part of its debt.

use super::{ApplyError, Changes, Fold};
use crate::effects::outbox::Debt;
use crate::log::event::payload;
use crate::log::id::DebtId;
use crate::view::Change;
use crate::workflow::Progress;

impl Fold<'_> {
    pub(super) fn workflow_started(&self, started: &payload::WorkflowStarted) -> Changes {
        let debt = self.debt(started.debt)?;
        if debt.progress.is_some() {
            return Err(self.unfit(format!("the workflow of {} has begun already", debt.id)));
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
        Ok(vec![self.come(debt, progress)])
    }

    pub(super) fn workflow_step_started(&self, started: &payload::WorkflowStepStarted) -> Changes {
        let (debt, progress) = self.running(started.debt)?;
        let under_way = Some(started.step.clone());
        let attempt = started.attempt;
        if progress.next != under_way || progress.is_under_way(attempt) || attempt > debt.attempts {
            return Err(self.unfit(format!("{} is not at the step `{}`", debt.id, started.step)));
        }
        Ok(vec![self.come(debt, Progress { under_way, attempt, ..progress })])
    }

    pub(super) fn workflow_step_finished(&self, finished: &payload::WorkflowStepFinished) -> Changes {
        let (debt, mut progress) = self.running(finished.debt)?;
        if progress.next.as_deref() != Some(finished.result.step_id.as_str()) {
            return Err(self.unfit(format!("{} is not at the step `{}`", debt.id, finished.result.step_id)));
        }
        progress.done.push(self.seq);
        Ok(vec![self.come(debt, Progress { next: finished.next.clone(), under_way: None, attempt: 0, ..progress })])
    }

    pub(super) fn workflow_ended(&self, id: DebtId, failed: Option<&str>) -> Changes {
        let (debt, progress) = self.running(id)?;
        let failed = failed.map(str::to_owned);
        Ok(vec![self.come(debt, Progress { next: None, under_way: None, attempt: 0, ended: true, failed, ..progress })])
    }

    fn running(&self, id: DebtId) -> Result<(Debt, Progress), ApplyError> {
        let debt = self.debt(id)?;
        let progress = debt.progress.clone().filter(|progress| !progress.ended);
        progress.map(|progress| (debt, progress)).ok_or_else(|| self.unfit(format!("{id} is no workflow that runs")))
    }

    fn come(&self, debt: Debt, progress: Progress) -> Change {
        Change::PutDebt(Box::new(Debt { progress: Some(progress), version: self.seq, ..debt }))
    }
}
