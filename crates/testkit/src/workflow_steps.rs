//! Workflows in random histories, and the rules for their steps, from the log alone.

use core::time::Duration;

use proptest::prelude::*;
use serde_json::Map;
use windlass_engine::workflow::{StepExecution, StepReport, StepResult};
use windlass_engine::{Command, Digest, EffectId, EffectKind, Event, EventRecord, HookClass, PendingEffect, TaskId};

/// A step of a workflow, relative to its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowStepAction {
    Start,
    Begin,
    End {
        success: bool,
        last: bool,
    },
    Abandon,
    /// The next command: starts the workflow, or begins or ends its next step.
    Next {
        success: bool,
        last: bool,
    },
}

pub fn workflow_triggers(task: impl Strategy<Value = Option<TaskId>>) -> impl Strategy<Value = Command> {
    task.prop_map(|task| Command::TriggerWorkflow { id: "w".to_owned(), context: Map::new(), task })
}

pub fn workflow_step_actions() -> impl Strategy<Value = WorkflowStepAction> {
    let end = (any::<bool>(), any::<bool>()).prop_map(|(success, last)| WorkflowStepAction::End { success, last });
    let next = (any::<bool>(), any::<bool>()).prop_map(|(success, last)| WorkflowStepAction::Next { success, last });
    let other = prop_oneof![3 => Just(WorkflowStepAction::Start), 2 => Just(WorkflowStepAction::Begin), 5 => end, 1 => Just(WorkflowStepAction::Abandon)];
    prop_oneof![2 => next, 1 => other]
}

/// Returns whether an effect runs a workflow.
pub fn is_workflow(effect: &PendingEffect) -> bool {
    matches!(&effect.kind, EffectKind::Hook(hook) if hook.class == HookClass::Workflow)
}

/// Returns the command for a step, as the owner of the effect would give it.
pub fn workflow_command(effect: &PendingEffect, step: &WorkflowStepAction) -> Command {
    let (id, owner) = (effect.id, effect.owner.clone());
    let next = effect.progress.as_ref().and_then(|progress| progress.next.clone()).unwrap_or_else(|| "a".to_owned());
    match step {
        WorkflowStepAction::Start => {
            let (workflow, digest) = ("w".to_owned(), Digest::of_bytes(b"w"));
            Command::StartWorkflow { effect: id, owner, workflow, digest, step: next, steps: 2 }
        }
        WorkflowStepAction::Next { success, last } => {
            let next = match &effect.progress {
                None if effect.attempts == 0 => return Command::BeginEffect { effect: id, owner },
                None => WorkflowStepAction::Start,
                Some(progress) if progress.is_step_running(effect.attempts) => {
                    WorkflowStepAction::End { success: *success, last: *last }
                }
                Some(_) => WorkflowStepAction::Begin,
            };
            workflow_command(effect, &next)
        }
        WorkflowStepAction::Begin => Command::BeginStep { effect: id, owner, step: next },
        WorkflowStepAction::Abandon => Command::AbandonWorkflow { effect: id, owner, error: "no more".to_owned() },
        WorkflowStepAction::End { success, last } => {
            let result = match success {
                true => StepResult::succeeded(&next, None, Duration::ZERO),
                false => StepResult::failed(&next, "exit 1", Duration::ZERO),
            };
            let following_step = (!last).then(|| if next == "a" { "b" } else { "a" }.to_owned());
            let end = StepReport {
                step: next,
                execution: StepExecution::Ended(result),
                took: Duration::ZERO,
                stored: Map::new(),
                on_success: following_step.clone(),
                on_failure: following_step,
            };
            Command::EndStep { effect: id, owner, end: Box::new(end) }
        }
    }
}

/// The progress of a workflow, from its events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkflowProgress {
    pub has_started: bool,
    pub next: Option<String>,
    pub is_under_way: bool,
}

/// Returns the progress of the workflow that an effect runs.
pub fn read_workflow_progress(log: &[EventRecord], id: EffectId) -> WorkflowProgress {
    let mut progress = WorkflowProgress::default();
    for record in log {
        match &record.envelope.event {
            Event::HookStarted(started) if started.effect == id && started.after.is_some() => {
                progress = WorkflowProgress::default()
            }
            // In another attempt, an interrupted step has not begun.
            Event::HookStarted(started) if started.effect == id => progress.is_under_way = false,
            Event::WorkflowStarted(started) if started.effect == id => {
                progress =
                    WorkflowProgress { has_started: true, next: Some(started.step.clone()), is_under_way: false };
            }
            Event::WorkflowStepStarted(started) if started.effect == id => progress.is_under_way = true,
            Event::WorkflowStepFinished(finished) if finished.effect == id => {
                (progress.next, progress.is_under_way) = (finished.next.clone(), false);
            }
            Event::WorkflowFailed(failed) if failed.effect == id => {
                (progress.next, progress.is_under_way) = (None, false)
            }
            _ => {}
        }
    }
    progress
}
