//! Commands about running workflows. The actions of a step are part of the commit that ends it.

use serde_json::{Map, Value, json};

use super::Deciding;
use super::lineage::Line;
use crate::command::limits::{Limits, check_bytes, check_text, check_value};
use crate::command::refusal::Refusal;
use crate::effects::action::{Action, ActionRequest};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::{Event, Node, payload};
use crate::log::id::{Digest, EffectId, OwnerName, TaskId};
use crate::view::View;
use crate::workflow::{Branch, Did, Progress, Several, StepEnd, StepResult, Wanted, check_given};

impl Deciding<'_, '_> {
    /// Triggers a workflow. The caller owns its effect.
    pub(super) fn trigger_workflow(
        &mut self,
        id: &str,
        context: &Map<String, Value>,
        task: Option<TaskId>,
    ) -> Result<(), Refusal> {
        check_text("the workflow", id, Limits::LABEL)?;
        check_value("the context", &context.clone().into())?;
        for (name, value) in context {
            check_given(name, value).map_err(|why| Refusal::invalid("the context", why))?;
        }
        if self.rules.effects.is_none() {
            return Err(Refusal::invalid("the workflow", format!("`{id}` cannot run: nobody runs anything here")));
        }
        if let Some(task) = task {
            self.task(task)?;
        }
        let (workflow_id, context) = (id.to_owned(), context.clone());
        let node = task.map_or(Node::System, Node::Task);
        self.emit(node, payload::WorkflowTriggered { workflow_id, context }).map(drop)
    }

    pub(super) fn start_workflow(
        &mut self,
        id: EffectId,
        owner: &OwnerName,
        (workflow, digest): (&str, Digest),
        (step, steps): (&str, u32),
    ) -> Result<(), Refusal> {
        let effect = self.begun(id, owner)?;
        if !matches!(effect.kind, EffectKind::Hook(_)) {
            return Err(illegal(id, "is a turn, not a workflow"));
        }
        if effect.progress.is_some() {
            return Err(illegal(id, "is a workflow that has begun already"));
        }
        let (workflow_id, step) = (workflow.to_owned(), step.to_owned());
        self.go_on_with(&effect, steps);
        self.emit_of(&effect, payload::WorkflowStarted { effect: id, workflow_id, digest, step, steps })
    }

    /// Records that a step is about to cause effects that the log cannot undo.
    pub(super) fn begin_step(&mut self, id: EffectId, owner: &OwnerName, step: &str) -> Result<(), Refusal> {
        let (effect, progress) = self.at_step(id, owner, step)?;
        if progress.is_under_way(effect.attempts) {
            return Err(illegal(id, "is at a step that has begun already"));
        }
        self.go_on_with(&effect, progress.ahead());
        let attempt = effect.attempts;
        self.emit_of(&effect, payload::WorkflowStepStarted { effect: id, step: step.to_owned(), attempt })
    }

    pub(super) fn end_step(&mut self, id: EffectId, owner: &OwnerName, end: &StepEnd) -> Result<(), Refusal> {
        check_value("what is stored", &end.stored.clone().into())?;
        let (effect, progress) = self.at_step(id, owner, &end.step)?;
        self.go_on_with(&effect, progress.ahead());
        let (result, within) = self.do_step(&effect, end)?;
        let way = if result.success { &end.on_success } else { &end.on_failure };
        let steps = u32::try_from(progress.done.len() + 1).unwrap_or(u32::MAX);
        let too_many = way.is_some() && steps >= Limits::STEPS;
        let next = way.clone().filter(|_| !too_many);
        let failed = match (&next, result.success) {
            _ if too_many => Some(format!("{} steps are the limit, and it had not ended", Limits::STEPS)),
            (None, false) => {
                Some(format!("`{}`: {}", end.step, result.error.as_deref().unwrap_or("the step has failed")))
            }
            _ => None,
        };
        let is_last = next.is_none();
        // Among parallel steps, the successful ones have stored values even if others failed.
        let is_kept = result.success || matches!(end.did, Did::Several(_));
        let stored = if is_kept { end.stored.clone() } else { Map::new() };
        self.go_on_with(&effect, progress.ahead());
        self.emit_of(&effect, payload::WorkflowStepFinished { effect: id, result, within, stored, next })?;
        match failed {
            Some(error) => self.end_badly(&effect, &progress, steps, error),
            None if is_last => {
                let workflow_id = progress.workflow;
                self.emit_of(&effect, payload::WorkflowCompleted { effect: id, workflow_id, steps })
            }
            None => Ok(()),
        }
    }

    /// Ends a workflow that cannot continue.
    pub(super) fn abandon_workflow(&mut self, id: EffectId, owner: &OwnerName, error: &str) -> Result<(), Refusal> {
        check_bytes("the reason", error, Limits::REASON)?;
        let effect = self.begun(id, owner)?;
        let progress = effect.progress.clone().filter(|progress| progress.next.is_some());
        let progress = progress.ok_or_else(|| illegal(id, "is no workflow that goes on"))?;
        self.go_on_with(&effect, progress.ahead());
        let steps = u32::try_from(progress.done.len()).unwrap_or(u32::MAX);
        self.end_badly(&effect, &progress, steps, error.to_owned())
    }

    fn end_badly(
        &mut self,
        effect: &PendingEffect,
        progress: &Progress,
        steps: u32,
        mut error: String,
    ) -> Result<(), Refusal> {
        error.truncate(error.floor_char_boundary(Limits::REASON));
        let workflow_id = progress.workflow.clone();
        self.emit_of(effect, payload::WorkflowFailed { effect: effect.id, workflow_id, steps, error })
    }

    /// Returns a running workflow of this owner that is about to do this step.
    fn at_step(&self, id: EffectId, owner: &OwnerName, step: &str) -> Result<(PendingEffect, Progress), Refusal> {
        let effect = self.begun(id, owner)?;
        match effect.progress.clone() {
            Some(progress) if progress.next.as_deref() == Some(step) => Ok((effect, progress)),
            Some(_) => Err(illegal(id, "is a workflow at another step")),
            None => Err(illegal(id, "is no workflow that has begun")),
        }
    }

    /// Sets a running workflow as the cause of the next events: they have its depth and use its share, of which later steps
    /// keep theirs.
    fn go_on_with(&mut self, effect: &PendingEffect, ahead: u32) {
        self.begin_line(Line::step(effect, ahead));
        self.because_of(effect);
        self.place = effect.session.clone().map(|session| (session, effect.iteration));
    }

    fn do_step(&mut self, effect: &PendingEffect, end: &StepEnd) -> Result<(StepResult, Vec<StepResult>), Refusal> {
        match &end.did {
            Did::Ended(result) => {
                check_value("what a step came to", &json!(result))?;
                Ok((result.clone(), Vec::new()))
            }
            Did::Act(request) => Ok((self.act_for(effect, &end.step, request)?, Vec::new())),
            Did::Several(several) => self.do_several(effect, end, several),
        }
    }

    fn do_several(
        &mut self,
        effect: &PendingEffect,
        end: &StepEnd,
        several: &Several,
    ) -> Result<(StepResult, Vec<StepResult>), Refusal> {
        let Several { branches, wanted } = several;
        let is_good = |branch: &Branch| matches!(branch, Branch::Ended(result) if result.success);
        let mut is_enough = *wanted != Wanted::All && branches.iter().any(is_good);
        let mut within = Vec::new();
        for branch in branches {
            match branch {
                Branch::Ended(result) => within.push(result.clone()),
                Branch::Act { .. } if is_enough => {}
                Branch::Act { step, request } => {
                    let result = self.act_for(effect, step, request)?;
                    is_enough |= *wanted != Wanted::All && result.success;
                    within.push(result);
                }
            }
        }
        check_value("what steps came to", &json!(within))?;
        let failed: Vec<String> = within
            .iter()
            .filter(|result| !result.success)
            .map(|StepResult { step_id, error, .. }| match error {
                Some(why) => format!("`{step_id}`: {why}"),
                None => format!("`{step_id}`"),
            })
            .collect();
        let success = if *wanted == Wanted::All { failed.is_empty() } else { is_enough || branches.is_empty() };
        if !success && *wanted == Wanted::OneOfMore {
            return Err(Refusal::NoneSucceeds { effect: effect.id });
        }
        let result = match success {
            true => StepResult::succeeded(&end.step, None, end.took),
            false => StepResult::failed(&end.step, failed.join("; "), end.took),
        };
        Ok((result, within))
    }

    /// Performs the action that a step asks for. A refused action is a failed step and leaves nothing behind.
    fn act_for(&mut self, effect: &PendingEffect, step: &str, request: &ActionRequest) -> Result<StepResult, Refusal> {
        let before = self.entries.len();
        self.ended = Some(effect.id);
        let done = request.parse().and_then(|action| {
            self.respects_leases(&action)?;
            self.within_bounds(&action).map(|()| action)
        });
        self.ended = None;
        match done {
            Ok(action) => Ok(StepResult::succeeded(step, self.made(before, &action), core::time::Duration::ZERO)),
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                debug_assert_eq!(self.entries.len(), before, "a refused action leaves nothing behind");
                Ok(StepResult::failed(step, refusal.to_string(), core::time::Duration::ZERO))
            }
        }
    }

    /// Returns the result of an action for later steps.
    fn made(&self, before: usize, action: &Action) -> Option<Value> {
        match action {
            Action::CreateTask(_) => {
                let made = self.entries[before..].iter().map(|entry| &entry.record.envelope);
                let mut made = made.filter(|envelope| matches!(envelope.event, Event::TaskCreated(_)));
                made.next().map(|envelope| json!({"taskId": envelope.node}))
            }
            Action::UpdateTask { task, action } => {
                let state = self.draft.task(*task).ok().flatten().map(|task| task.state);
                Some(json!({"taskId": task, "action": action.name(), "state": state}))
            }
            Action::ExecuteWorkflow { .. } | Action::Log { .. } => None,
        }
    }
}

fn illegal(effect: EffectId, why: &'static str) -> Refusal {
    Refusal::IllegalEffect { effect, why }
}
