//! `windlass workflow run`

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::execution::{self, HookExecution, show_failed_hook};
use windlass_app::trust::{self, Trust};
use windlass_app::{Code, Failure, environment, hints, workflows};
use windlass_config::Config;
use windlass_config::workflow::WorkflowDefinition;
use windlass_engine::{Authority, Command, Event, Origin, Record, Seq, TaskId, Trusted};
use windlass_runner::{RunError, RunnerEvent};
use windlass_text as text;

use crate::commands::input::read_bytes;
use crate::output::{Done, Output, Tone};
use crate::show;

/// No context that a person gives is larger.
const MOST: usize = 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow run create-review-task --task T3
  windlass workflow run stale-task-report --context days.json
  echo '{\"days\": 3}' | windlass workflow run stale-task-report --context -

Exit 0 when it is completed, 1 when a step has failed that nothing follows.")]
pub struct Args {
    #[arg(value_name = "ID")]
    id: String,
    /// The task that it is about
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// A JSON object that its steps find as `context`; `-` for standard input
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    // Before anything is in the log.
    let defined = workflows::find(Some(&opened.project), &args.id)?;
    let given = args.context.map(|file| given(&file)).transpose()?.unwrap_or_default();
    let command = Command::TriggerWorkflow { id: args.id, context: given, task: args.task };
    let (mut story, mut shown, began) = (Vec::new(), Ok(()), Instant::now());
    trigger(&mut opened, (&command, &defined), &mut |record| {
        // Whoever waits sees each step as it ends. Nobody reads any more: what is done counts all the same.
        if shown.is_ok() {
            shown = tell(record, began.elapsed(), out).and_then(|()| out.flush());
        }
        story.push(record.clone());
    })?;
    shown?;
    match story.iter().find_map(ending) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(failure(&story, &error).into()),
        None => Err(Failure::new(Code::Refused, "the workflow has not ended").into()),
    }
}

/// How the workflow has ended, where an event says so.
fn ending(record: &Record) -> Option<Result<(), String>> {
    match &record.envelope.event {
        Event::WorkflowCompleted(_) => Some(Ok(())),
        Event::WorkflowFailed(failed) => Some(Err(failed.error.clone())),
        Event::HookError(failed) => Some(Err(failed.error.clone())),
        _ => None,
    }
}

/// What failed. Where a step did, it has been told why already.
fn failure(story: &[Record], error: &str) -> Failure {
    let last = story.iter().rev().find_map(|record| match &record.envelope.event {
        Event::WorkflowStepFinished(step) => Some(&step.result),
        _ => None,
    });
    match last {
        Some(step) if step.error.as_ref().is_some_and(|why| error.contains(why.as_str())) => {
            Failure::new(Code::Refused, format!("the workflow has failed at `{}`", text::line(&step.step_id)))
        }
        _ => Failure::new(Code::Refused, "the workflow has failed").caused_by(text::line(error)),
    }
}

fn given(file: &std::path::Path) -> Result<Map<String, Value>, Failure> {
    let shown = file.display();
    let bytes = read_bytes(file, MOST, "give the name of a file instead, which a program of a step reads")?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(Code::Usage, format!("`{shown}` is no JSON object"))
            .caused_by(error)
            .hint("such as `{\"days\": 3}`")
    })
}

/// Has the workflow be owed to us, and runs it. `watch` hears of what the log says about the run.
fn trigger(
    opened: &mut Opened,
    (command, defined): (&Command, &WorkflowDefinition),
    watch: &mut dyn FnMut(&Record),
) -> Result<(), Failure> {
    let inside = Inside::look(opened)?;
    let config = Arc::new(Config::parse(inside.written(opened)?)?);
    // What a run was trusted with may run inside of it; a file may have been written since.
    let is_ours = inside.config.is_some() && defined.file.is_none();
    let trusted = opened.trust || is_ours || trust::state(&opened.project, &config)? == Trust::Trusted;
    let trusted = if trusted { Trusted::Yes } else { Trusted::No };
    let Inside { run, via, .. } = inside;
    let origin = Origin { by: environment::user(), at: environment::now(), authority: Authority::Person, run, via };
    let (control, received) = execution::listen()?;
    let own = Cell::new(None);
    let front_end = opened.front_end.clone();
    let mut tell = |told: RunnerEvent<'_>| match told {
        // What became of this one is told in other words.
        RunnerEvent::Event(Record { envelope, .. }) if matches!(&envelope.event, Event::HookFinished(it) if Some(it.effect.seq) == own.get()) =>
            {}
        RunnerEvent::Event(record) if own.get().is_some() && own.get() == about(record) => {
            watch(record);
            show_failed_hook(&*front_end, &told);
        }
        told => show_failed_hook(&*front_end, &told),
    };
    let execution = HookExecution::new(opened, &config, &control).trusted(trusted).observed_by(&mut tell);
    let done = execution.run(|dispatch| {
        let records = dispatch.commit_as(&origin, command).map_err(hints::run)?;
        let asked = |record: &&Record| matches!(record.envelope.event, Event::WorkflowTriggered(_));
        own.set(records.iter().find(asked).map(|record| record.seq));
        dispatch.run_pending().map_err(called_off)
    });
    done.map_err(|failure| failure.by(received.first()))
}

fn called_off(error: RunError) -> Failure {
    match error {
        RunError::Killed => Failure::new(Code::Interrupted(hints::SIGINT), "the workflow was called off")
            .caused_by("what its steps have done is recorded; the one that was under way has failed")
            .hint("`windlass doctor` says whether hooks are left to run"),
        error => hints::run(error),
    }
}

/// The event that asked for the workflow which this is about.
fn about(record: &Record) -> Option<Seq> {
    match &record.envelope.event {
        Event::WorkflowStepFinished(it) => Some(it.effect.seq),
        Event::WorkflowCompleted(it) => Some(it.effect.seq),
        Event::WorkflowFailed(it) => Some(it.effect.seq),
        Event::HookError(it) => it.effect.map(|effect| effect.seq),
        _ => None,
    }
}

fn tell(record: &Record, took: Duration, out: &mut Output) -> Done {
    let Event::WorkflowStepFinished(step) = &record.envelope.event else {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        return match (&record.envelope.event, out.is_json()) {
            (Event::WorkflowCompleted(it), true) => out.object(&json!({
                "workflowId": it.workflow_id, "success": true, "steps": it.steps, "durationMs": took,
            })),
            (Event::WorkflowFailed(it), true) => out.object(&json!({
                "workflowId": it.workflow_id, "success": false, "steps": it.steps, "error": it.error,
                "durationMs": took,
            })),
            (Event::WorkflowCompleted(it), false) => {
                let steps = show::workflow::count(it.steps);
                out.line(format_args!("{} is completed: {steps}", it.workflow_id))
            }
            _ => Ok(()),
        };
    };
    for result in step.within.iter().chain([&step.result]) {
        if out.is_json() {
            out.object(result)?;
            continue;
        }
        let word = if result.success { out.paint(Tone::Good, "ok") } else { out.paint(Tone::Bad, "failed") };
        let said = match (&result.error, &result.data) {
            (Some(error), _) => format!(": {}", text::line(error)),
            (None, Some(data)) if data["taskId"].is_string() => {
                format!(": {}", data["taskId"].as_str().unwrap_or_default())
            }
            _ => String::new(),
        };
        out.line(format_args!("  {}  {word}{said}", out.paint(Tone::Name, text::line(&result.step_id))))?;
    }
    Ok(())
}
