//! The run of a workflow that a person asked for.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_config::Config;
use windlass_config::workflow::WorkflowDefinition;
use windlass_engine::{Authority, Command, Event, Origin, Record, Seq, TaskId, Trusted};
use windlass_runner::{RunError, RunnerEvent};
use windlass_text as text;

use super::find;
use crate::caller::Inside;
use crate::context::Opened;
use crate::execution::{self, HookExecution, show_failed_hook};
use crate::trust::{self, Trust};
use crate::{Code, Failure, environment, hints};

/// A request to run a workflow now.
#[derive(Debug)]
pub struct WorkflowRequest {
    pub id: String,
    /// The `context` variable of the steps.
    pub context: Map<String, Value>,
    pub task: Option<TaskId>,
}

/// Runs a workflow to its end. `observe` gets each event of the run as soon as it is in the log. A failed workflow is a failure.
pub fn run_workflow(
    opened: &mut Opened,
    request: WorkflowRequest,
    observe: &mut dyn FnMut(&Record),
) -> Result<(), Failure> {
    // An unknown workflow leaves no event.
    let definition = find(Some(&opened.project), &request.id)?;
    let command = Command::TriggerWorkflow { id: request.id, context: request.context, task: request.task };
    let mut records = Vec::new();
    trigger(opened, (&command, &definition), &mut |record| {
        observe(record);
        records.push(record.clone());
    })?;
    match records.iter().find_map(workflow_result) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(explain_failure(&records, &error)),
        None => Err(Failure::new(Code::Refused, "the workflow has not ended")),
    }
}

/// Returns the result of the workflow, if this event ends it.
fn workflow_result(record: &Record) -> Option<Result<(), String>> {
    match &record.envelope.event {
        Event::WorkflowCompleted(_) => Some(Ok(())),
        Event::WorkflowFailed(failed) => Some(Err(failed.error.clone())),
        Event::HookError(failed) => Some(Err(failed.error.clone())),
        _ => None,
    }
}

/// Returns the failure of a workflow. The observer has already shown the error of a step.
fn explain_failure(records: &[Record], error: &str) -> Failure {
    let last_step = records.iter().rev().find_map(|record| match &record.envelope.event {
        Event::WorkflowStepFinished(step) => Some(&step.result),
        _ => None,
    });
    match last_step {
        Some(step) if step.error.as_ref().is_some_and(|why| error.contains(why.as_str())) => {
            Failure::new(Code::Refused, format!("the workflow has failed at `{}`", text::line(&step.step_id)))
        }
        _ => Failure::new(Code::Refused, "the workflow has failed").caused_by(text::line(error)),
    }
}

/// Commits the command and runs its effects. `watch` gets the events of this workflow run.
fn trigger(
    opened: &mut Opened,
    (command, defined): (&Command, &WorkflowDefinition),
    watch: &mut dyn FnMut(&Record),
) -> Result<(), Failure> {
    let inside = Inside::look(opened)?;
    let config = Arc::new(Config::parse(inside.written(opened)?)?);
    // A workflow that the run was trusted with may run inside it; a file may have been written since.
    let is_ours = inside.config.is_some() && defined.file.is_none();
    let trusted = opened.trust || is_ours || trust::state(&opened.project, &config)? == Trust::Trusted;
    let trusted = if trusted { Trusted::Yes } else { Trusted::No };
    let Inside { run, via, .. } = inside;
    let origin = Origin { by: environment::user(), at: environment::now(), authority: Authority::Person, run, via };
    let (control, received) = execution::listen()?;
    let own = Cell::new(None);
    let front_end = opened.front_end.clone();
    let mut observe = |event: RunnerEvent<'_>| match event {
        // The workflow has an end event of its own.
        RunnerEvent::Event(Record { envelope, .. }) if matches!(&envelope.event, Event::HookFinished(it) if Some(it.effect.seq) == own.get()) =>
            {}
        RunnerEvent::Event(record) if own.get().is_some() && own.get() == effect_of(record) => {
            watch(record);
            show_failed_hook(&*front_end, &event);
        }
        event => show_failed_hook(&*front_end, &event),
    };
    let execution = HookExecution::new(opened, &config, &control).trusted(trusted).observed_by(&mut observe);
    let done = execution.run(|dispatch| {
        let records = dispatch.commit_as(&origin, command).map_err(hints::run)?;
        let is_trigger = |record: &&Record| matches!(record.envelope.event, Event::WorkflowTriggered(_));
        own.set(records.iter().find(is_trigger).map(|record| record.seq));
        dispatch.run_pending().map_err(explain_run_error)
    });
    done.map_err(|failure| failure.by(received.first()))
}

/// Returns the failure of a run that a person interrupted.
fn explain_run_error(error: RunError) -> Failure {
    match error {
        RunError::Killed => Failure::new(Code::Interrupted(hints::SIGINT), "the workflow was called off")
            .caused_by("what its steps have done is recorded; the one that was under way has failed")
            .hint("`windlass doctor` says whether hooks are left to run"),
        error => hints::run(error),
    }
}

/// Returns the position of the event that triggered the workflow of this event.
fn effect_of(record: &Record) -> Option<Seq> {
    match &record.envelope.event {
        Event::WorkflowStepFinished(it) => Some(it.effect.seq),
        Event::WorkflowCompleted(it) => Some(it.effect.seq),
        Event::WorkflowFailed(it) => Some(it.effect.seq),
        Event::HookError(it) => it.effect.map(|effect| effect.seq),
        _ => None,
    }
}
