//! Commands about running workflows. The actions of a step are part of the commit that ends it.

use serde_json::{Map, Value, json};

use super::DecisionContext;
use super::cascade_budget::CascadeBudget;
use crate::command::limits::{EngineLimits, check_json_value, check_nonblank_text, check_text_size};
use crate::command::refusal::Refusal;
use crate::effects::action::{ActionRequest, HookAction};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::{Event, EventSubject, payload};
use crate::log::id::{Digest, EffectId, OwnerName, TaskId};
use crate::view::StateView;
use crate::workflow::{
    BranchOutcome, ParallelOutcome, StepExecution, StepReport, StepResult, SuccessPolicy, WorkflowProgress,
    check_context_entry,
};

impl DecisionContext<'_, '_> {
    /// Triggers a workflow. The caller owns its effect.
    pub(super) fn trigger_workflow(
        &mut self,
        id: &str,
        context: &Map<String, Value>,
        task: Option<TaskId>,
    ) -> Result<(), Refusal> {
        check_nonblank_text("the workflow", id, EngineLimits::LABEL_BYTES)?;
        check_json_value("the context", &context.clone().into())?;
        for (name, value) in context {
            check_context_entry(name, value).map_err(|why| Refusal::invalid_input("the context", why))?;
        }
        if self.rules.effects.is_none() {
            return Err(Refusal::invalid_input(
                "the workflow",
                format!("`{id}` cannot run: this caller runs no effects"),
            ));
        }
        if let Some(task) = task {
            self.require_task(task)?;
        }
        let (workflow_id, context) = (id.to_owned(), context.clone());
        let node = task.map_or(EventSubject::System, EventSubject::Task);
        self.emit_event(node, payload::WorkflowTriggered { workflow_id, context }).map(drop)
    }

    pub(super) fn start_workflow(
        &mut self,
        id: EffectId,
        owner: &OwnerName,
        (workflow, digest): (&str, Digest),
        (step, steps): (&str, u32),
    ) -> Result<(), Refusal> {
        let effect = self.require_begun_effect(id, owner)?;
        if !matches!(effect.kind, EffectKind::Hook(_)) {
            return Err(illegal_effect(id, "is a turn, not a workflow"));
        }
        if effect.progress.is_some() {
            return Err(illegal_effect(id, "is a workflow that has begun already"));
        }
        let (workflow_id, step) = (workflow.to_owned(), step.to_owned());
        self.continue_workflow(&effect, steps);
        self.emit_effect_event(&effect, payload::WorkflowStarted { effect: id, workflow_id, digest, step, steps })
    }

    /// Records that a step is about to cause effects that the log cannot undo.
    pub(super) fn begin_workflow_step(&mut self, id: EffectId, owner: &OwnerName, step: &str) -> Result<(), Refusal> {
        let (effect, progress) = self.require_current_step(id, owner, step)?;
        if progress.is_step_running(effect.attempts) {
            return Err(illegal_effect(id, "is at a step that has begun already"));
        }
        self.continue_workflow(&effect, progress.remaining_steps());
        let attempt = effect.attempts;
        self.emit_effect_event(&effect, payload::WorkflowStepStarted { effect: id, step: step.to_owned(), attempt })
    }

    pub(super) fn end_workflow_step(
        &mut self,
        id: EffectId,
        owner: &OwnerName,
        end: &StepReport,
    ) -> Result<(), Refusal> {
        check_json_value("the stored value", &end.stored.clone().into())?;
        let (effect, progress) = self.require_current_step(id, owner, &end.step)?;
        self.continue_workflow(&effect, progress.remaining_steps());
        let (result, within) = self.perform_step(&effect, end)?;
        let way = if result.success { &end.on_success } else { &end.on_failure };
        let steps = u32::try_from(progress.done.len() + 1).unwrap_or(u32::MAX);
        let too_many = way.is_some() && steps >= EngineLimits::WORKFLOW_STEPS;
        let next = way.clone().filter(|_| !too_many);
        let failed = match (&next, result.success) {
            _ if too_many => {
                Some(format!("{} steps are the limit, and the workflow had not ended", EngineLimits::WORKFLOW_STEPS))
            }
            (None, false) => {
                Some(format!("`{}`: {}", end.step, result.error.as_deref().unwrap_or("the step has failed")))
            }
            _ => None,
        };
        let is_last = next.is_none();
        // Among parallel steps, the successful ones have stored values even if others failed.
        let is_kept = result.success || matches!(end.execution, StepExecution::Parallel(_));
        let stored = if is_kept { end.stored.clone() } else { Map::new() };
        self.continue_workflow(&effect, progress.remaining_steps());
        self.emit_effect_event(&effect, payload::WorkflowStepFinished { effect: id, result, within, stored, next })?;
        match failed {
            Some(error) => self.fail_workflow(&effect, &progress, steps, error),
            None if is_last => {
                let workflow_id = progress.workflow;
                self.emit_effect_event(&effect, payload::WorkflowCompleted { effect: id, workflow_id, steps })
            }
            None => Ok(()),
        }
    }

    /// Ends a workflow that cannot continue.
    pub(super) fn abandon_workflow(&mut self, id: EffectId, owner: &OwnerName, error: &str) -> Result<(), Refusal> {
        check_text_size("the reason", error, EngineLimits::REASON_BYTES)?;
        let effect = self.require_begun_effect(id, owner)?;
        let progress = effect.progress.clone().filter(|progress| progress.next.is_some());
        let progress = progress.ok_or_else(|| illegal_effect(id, "is not a workflow in progress"))?;
        self.continue_workflow(&effect, progress.remaining_steps());
        let steps = u32::try_from(progress.done.len()).unwrap_or(u32::MAX);
        self.fail_workflow(&effect, &progress, steps, error.to_owned())
    }

    fn fail_workflow(
        &mut self,
        effect: &PendingEffect,
        progress: &WorkflowProgress,
        steps: u32,
        mut error: String,
    ) -> Result<(), Refusal> {
        error.truncate(error.floor_char_boundary(EngineLimits::REASON_BYTES));
        let workflow_id = progress.workflow.clone();
        self.emit_effect_event(effect, payload::WorkflowFailed { effect: effect.id, workflow_id, steps, error })
    }

    /// Returns a running workflow of this owner that is about to do this step.
    fn require_current_step(
        &self,
        id: EffectId,
        owner: &OwnerName,
        step: &str,
    ) -> Result<(PendingEffect, WorkflowProgress), Refusal> {
        let effect = self.require_begun_effect(id, owner)?;
        match effect.progress.clone() {
            Some(progress) if progress.next.as_deref() == Some(step) => Ok((effect, progress)),
            Some(_) => Err(illegal_effect(id, "is a workflow at another step")),
            None => Err(illegal_effect(id, "is not a workflow in progress")),
        }
    }

    /// Sets a running workflow as the cause of the next events: they have its depth and use its share, of which later steps
    /// keep theirs.
    fn continue_workflow(&mut self, effect: &PendingEffect, ahead: u32) {
        self.begin_budget(CascadeBudget::for_workflow_step(effect, ahead));
        self.set_effect_cause(effect);
        self.session_scope = effect.session.clone().map(|session| (session, effect.iteration));
    }

    fn perform_step(
        &mut self,
        effect: &PendingEffect,
        end: &StepReport,
    ) -> Result<(StepResult, Vec<StepResult>), Refusal> {
        match &end.execution {
            StepExecution::Ended(result) => {
                check_json_value("the result of a step", &json!(result))?;
                Ok((result.clone(), Vec::new()))
            }
            StepExecution::RunAction(request) => {
                Ok((self.perform_step_action(effect, &end.step, request)?, Vec::new()))
            }
            StepExecution::Parallel(several) => self.perform_branches(effect, end, several),
        }
    }

    fn perform_branches(
        &mut self,
        effect: &PendingEffect,
        end: &StepReport,
        several: &ParallelOutcome,
    ) -> Result<(StepResult, Vec<StepResult>), Refusal> {
        let ParallelOutcome { branches, wanted } = several;
        let is_good = |branch: &BranchOutcome| matches!(branch, BranchOutcome::Ended(result) if result.success);
        let mut is_enough = *wanted != SuccessPolicy::All && branches.iter().any(is_good);
        let mut within = Vec::new();
        for branch in branches {
            match branch {
                BranchOutcome::Ended(result) => within.push(result.clone()),
                BranchOutcome::RunAction { .. } if is_enough => {}
                BranchOutcome::RunAction { step, request } => {
                    let result = self.perform_step_action(effect, step, request)?;
                    is_enough |= *wanted != SuccessPolicy::All && result.success;
                    within.push(result);
                }
            }
        }
        check_json_value("the results of the steps", &json!(within))?;
        let failed: Vec<String> = within
            .iter()
            .filter(|result| !result.success)
            .map(|StepResult { step_id, error, .. }| match error {
                Some(why) => format!("`{step_id}`: {why}"),
                None => format!("`{step_id}`"),
            })
            .collect();
        let success = if *wanted == SuccessPolicy::All { failed.is_empty() } else { is_enough || branches.is_empty() };
        if !success && *wanted == SuccessPolicy::OneOrContinue {
            return Err(Refusal::NoneSucceeds { effect: effect.id });
        }
        let result = match success {
            true => StepResult::succeeded(&end.step, None, end.took),
            false => StepResult::failed(&end.step, failed.join("; "), end.took),
        };
        Ok((result, within))
    }

    /// Performs the action that a step asks for. A refused action is a failed step and leaves nothing behind.
    fn perform_step_action(
        &mut self,
        effect: &PendingEffect,
        step: &str,
        request: &ActionRequest,
    ) -> Result<StepResult, Refusal> {
        let before = self.entries.len();
        self.ended_hook = Some(effect.id);
        let done = request.parse_action().and_then(|action| {
            self.check_action_leases(&action)?;
            self.perform_within_bounds(&action).map(|()| action)
        });
        self.ended_hook = None;
        match done {
            Ok(action) => {
                Ok(StepResult::succeeded(step, self.action_result_value(before, &action), core::time::Duration::ZERO))
            }
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                debug_assert_eq!(self.entries.len(), before, "a refused action leaves nothing behind");
                Ok(StepResult::failed(step, refusal.to_string(), core::time::Duration::ZERO))
            }
        }
    }

    /// Returns the result of an action for later steps.
    fn action_result_value(&self, before: usize, action: &HookAction) -> Option<Value> {
        match action {
            HookAction::CreateTask(_) => {
                let made = self.entries[before..].iter().map(|entry| &entry.record.envelope);
                let mut made = made.filter(|envelope| matches!(envelope.event, Event::TaskCreated(_)));
                made.next().map(|envelope| json!({"taskId": envelope.node}))
            }
            HookAction::UpdateTask { task, action } => {
                let state = self.draft.find_task(*task).ok().flatten().map(|task| task.state);
                Some(json!({"taskId": task, "action": action.name(), "state": state}))
            }
            HookAction::ExecuteWorkflow { .. } | HookAction::Log { .. } => None,
        }
    }
}

fn illegal_effect(effect: EffectId, why: &'static str) -> Refusal {
    Refusal::IllegalEffect { effect, why }
}
