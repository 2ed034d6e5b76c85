//! Workflows in random histories, and who may take which step of them: read from the log a second time.

use core::time::Duration;

use proptest::prelude::*;
use serde_json::Map;
use windlass_engine::workflow::{Did, StepEnd, StepResult};
use windlass_engine::{Command, Debt, DebtId, Digest, Effect, Event, HookClass, Record, TaskId};

/// What is done about a workflow, whichever step it is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowStep {
    Start,
    Begin,
    End {
        success: bool,
        last: bool,
    },
    Abandon,
    /// Whichever of them comes next.
    Next {
        success: bool,
        last: bool,
    },
}

pub fn triggering(task: impl Strategy<Value = Option<TaskId>>) -> impl Strategy<Value = Command> {
    task.prop_map(|task| Command::TriggerWorkflow { id: "w".to_owned(), context: Map::new(), task })
}

pub fn flow_steps() -> impl Strategy<Value = FlowStep> {
    let end = (any::<bool>(), any::<bool>()).prop_map(|(success, last)| FlowStep::End { success, last });
    let next = (any::<bool>(), any::<bool>()).prop_map(|(success, last)| FlowStep::Next { success, last });
    let other =
        prop_oneof![3 => Just(FlowStep::Start), 2 => Just(FlowStep::Begin), 5 => end, 1 => Just(FlowStep::Abandon)];
    prop_oneof![2 => next, 1 => other]
}

/// Whether a debt runs a workflow.
pub fn is_workflow(debt: &Debt) -> bool {
    matches!(&debt.effect, Effect::Hook(hook) if hook.class == HookClass::Workflow)
}

/// The step of a workflow, as whoever runs it would take it.
pub fn flow_command(debt: &Debt, step: &FlowStep) -> Command {
    let (id, owner) = (debt.id, debt.owner.clone());
    let next = debt.progress.as_ref().and_then(|progress| progress.next.clone()).unwrap_or_else(|| "a".to_owned());
    match step {
        FlowStep::Start => {
            let (workflow, digest) = ("w".to_owned(), Digest::of(b"w"));
            Command::StartWorkflow { debt: id, owner, workflow, digest, step: next, steps: 2 }
        }
        FlowStep::Next { success, last } => {
            let next = match &debt.progress {
                None if debt.attempts == 0 => return Command::BeginEffect { debt: id, owner },
                None => FlowStep::Start,
                Some(progress) if progress.is_under_way(debt.attempts) => {
                    FlowStep::End { success: *success, last: *last }
                }
                Some(_) => FlowStep::Begin,
            };
            flow_command(debt, &next)
        }
        FlowStep::Begin => Command::BeginStep { debt: id, owner, step: next },
        FlowStep::Abandon => Command::AbandonWorkflow { debt: id, owner, error: "no more".to_owned() },
        FlowStep::End { success, last } => {
            let result = match success {
                true => StepResult::succeeded(&next, None, Duration::ZERO),
                false => StepResult::failed(&next, "exit 1", Duration::ZERO),
            };
            let way = (!last).then(|| if next == "a" { "b" } else { "a" }.to_owned());
            let end = StepEnd {
                step: next,
                did: Did::Ended(result),
                took: Duration::ZERO,
                stored: Map::new(),
                on_success: way.clone(),
                on_failure: way,
            };
            Command::EndStep { debt: id, owner, end: Box::new(end) }
        }
    }
}

/// How far a workflow has come, by its events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Come {
    pub has_started: bool,
    pub next: Option<String>,
    pub is_under_way: bool,
}

/// How far the workflow of a debt has come.
pub fn come(log: &[Record], id: DebtId) -> Come {
    let mut come = Come::default();
    for record in log {
        match &record.envelope.event {
            Event::HookStarted(started) if started.debt == id && started.after.is_some() => come = Come::default(),
            // In another attempt a step that was interrupted has not begun.
            Event::HookStarted(started) if started.debt == id => come.is_under_way = false,
            Event::WorkflowStarted(started) if started.debt == id => {
                come = Come { has_started: true, next: Some(started.step.clone()), is_under_way: false };
            }
            Event::WorkflowStepStarted(started) if started.debt == id => come.is_under_way = true,
            Event::WorkflowStepFinished(finished) if finished.debt == id => {
                (come.next, come.is_under_way) = (finished.next.clone(), false);
            }
            Event::WorkflowFailed(failed) if failed.debt == id => (come.next, come.is_under_way) = (None, false),
            _ => {}
        }
    }
    come
}
