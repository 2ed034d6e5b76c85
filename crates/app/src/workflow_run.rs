//! The run of a workflow that a person asked for.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_config::Config;
use windlass_config::workflow::WorkflowDefinition;
use windlass_engine::{Authority, Command, CommandOrigin, ConfigTrust, Event, EventRecord, Seq, TaskId};
use windlass_runner::{RunError, RunnerEvent};
use windlass_text as text;

use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::execution::{self, HookExecution, show_failed_hook};
use crate::trust::{self, TrustState};
use crate::workflows::find_workflow;
use crate::{Failure, FailureCode, environment, hints};

/// A request to run a workflow now.
#[derive(Debug)]
pub struct WorkflowRunRequest {
    pub id: String,
    /// The `context` variable of the steps.
    pub context: Map<String, Value>,
    pub task: Option<TaskId>,
}

/// Runs a workflow to its end. `observe` gets each event of the run as soon as it is in the log. A failed workflow is a failure.
pub fn run_workflow(
    opened: &mut OpenedProject,
    request: WorkflowRunRequest,
    observe: &mut dyn FnMut(&EventRecord),
) -> Result<(), Failure> {
    // An unknown workflow leaves no event.
    let definition = find_workflow(Some(&opened.project), &request.id)?;
    let command = Command::TriggerWorkflow { id: request.id, context: request.context, task: request.task };
    let mut records = Vec::new();
    trigger_workflow(opened, (&command, &definition), &mut |record| {
        observe(record);
        records.push(record.clone());
    })?;
    match records.iter().find_map(workflow_result) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(explain_workflow_failure(&records, &error)),
        None => Err(Failure::new(FailureCode::Refused, "the workflow has not ended")),
    }
}

/// Returns the result of the workflow, if this event ends it.
fn workflow_result(record: &EventRecord) -> Option<Result<(), String>> {
    match &record.envelope.event {
        Event::WorkflowCompleted(_) => Some(Ok(())),
        Event::WorkflowFailed(failed) => Some(Err(failed.error.clone())),
        Event::HookError(failed) => Some(Err(failed.error.clone())),
        _ => None,
    }
}

/// Returns the failure of a workflow. The observer has already shown the error of a step.
fn explain_workflow_failure(records: &[EventRecord], error: &str) -> Failure {
    let last_step = records.iter().rev().find_map(|record| match &record.envelope.event {
        Event::WorkflowStepFinished(step) => Some(&step.result),
        _ => None,
    });
    match last_step {
        Some(step) if step.error.as_ref().is_some_and(|why| error.contains(why.as_str())) => Failure::new(
            FailureCode::Refused,
            format!("the workflow has failed at `{}`", text::clean_line(&step.step_id)),
        ),
        _ => Failure::new(FailureCode::Refused, "the workflow has failed").with_cause(text::clean_line(error)),
    }
}

/// Commits the command and runs its effects. `watch` gets the events of this workflow run.
fn trigger_workflow(
    opened: &mut OpenedProject,
    (command, defined): (&Command, &WorkflowDefinition),
    watch: &mut dyn FnMut(&EventRecord),
) -> Result<(), Failure> {
    let inside = CallerContext::detect_from_variables(opened)?;
    let config = Arc::new(Config::from_source(inside.load_config_source(opened)?)?);
    // A workflow that the run was trusted with may run inside it; a file may have been written since.
    let is_ours = inside.config.is_some() && defined.file.is_none();
    let trusted = opened.trust || is_ours || trust::find_trust_state(&opened.project, &config)? == TrustState::Trusted;
    let trusted = if trusted { ConfigTrust::Yes } else { ConfigTrust::No };
    let CallerContext { run, via, .. } = inside;
    let origin = CommandOrigin {
        by: environment::user_name(),
        at: environment::current_timestamp(),
        authority: Authority::Person,
        run,
        via,
    };
    let (control, received) = execution::listen_to_signals()?;
    let own = Cell::new(None);
    let front_end = opened.front_end.clone();
    let mut observe = |event: RunnerEvent<'_>| match event {
        // The workflow has an end event of its own.
        RunnerEvent::Event(EventRecord { envelope, .. }) if matches!(&envelope.event, Event::HookFinished(it) if Some(it.effect.seq) == own.get()) =>
            {}
        RunnerEvent::Event(record) if own.get().is_some() && own.get() == workflow_trigger_position(record) => {
            watch(record);
            show_failed_hook(&*front_end, &event);
        }
        event => show_failed_hook(&*front_end, &event),
    };
    let execution = HookExecution::new(opened, &config, &control).with_trust(trusted).with_observer(&mut observe);
    let done = execution.run_with_effects(|dispatch| {
        let records = dispatch.commit_command_as(&origin, command).map_err(hints::run_failure)?;
        let is_trigger = |record: &&EventRecord| matches!(record.envelope.event, Event::WorkflowTriggered(_));
        own.set(records.iter().find(is_trigger).map(|record| record.seq));
        dispatch.run_pending_effects().map_err(explain_run_error)
    });
    done.map_err(|failure| failure.with_signal(received.first_signal()))
}

/// Returns the failure of a run that a person interrupted.
fn explain_run_error(error: RunError) -> Failure {
    match error {
        RunError::Killed => Failure::new(FailureCode::Interrupted(hints::SIGINT_NUMBER), "the workflow was cancelled")
            .with_cause("the results of its steps are recorded; the step in progress has failed")
            .with_hint("`windlass doctor` shows whether hooks are pending"),
        error => hints::run_failure(error),
    }
}

/// Returns the position of the event that triggered the workflow of this event.
fn workflow_trigger_position(record: &EventRecord) -> Option<Seq> {
    match &record.envelope.event {
        Event::WorkflowStepFinished(it) => Some(it.effect.seq),
        Event::WorkflowCompleted(it) => Some(it.effect.seq),
        Event::WorkflowFailed(it) => Some(it.effect.seq),
        Event::HookError(it) => it.effect.map(|effect| effect.seq),
        _ => None,
    }
}
