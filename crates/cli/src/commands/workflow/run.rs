//! `windlass workflow run`: runs a workflow now.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_app::context::CommandContext;
use windlass_app::workflow_run::{WorkflowRunRequest, run_workflow};
use windlass_app::{Failure, FailureCode};
use windlass_engine::{Event, EventRecord, TaskId};
use windlass_text as text;

use crate::commands::input::read_bytes;
use crate::output::{CommandResult, Output, TextTone};
use crate::show;

/// The largest context file.
const MAX_CONTEXT_BYTES: usize = 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow run create-review-task --task T3
  windlass workflow run stale-task-report --context days.json
  echo '{\"days\": 3}' | windlass workflow run stale-task-report --context -

Exit codes: 0 completed, 1 failed.")]
pub struct Args {
    /// The workflow
    #[arg(value_name = "ID")]
    id: String,
    /// The task that the workflow is about
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// A JSON file for the steps, as `context`; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
}

pub fn run_workflow_now(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let given = args.context.map(|file| read_context(&file)).transpose()?.unwrap_or_default();
    let request = WorkflowRunRequest { id: args.id, context: given, task: args.task };
    let (mut shown, began) = (Ok(()), Instant::now());
    run_workflow(&mut opened, request, &mut |record| {
        // Each step is shown when it ends. After the output is closed, the workflow continues.
        if shown.is_ok() {
            shown = show_step_event(record, began.elapsed(), out).and_then(|()| out.flush());
        }
    })?;
    shown
}

/// Reads the JSON object of `--context`.
fn read_context(file: &std::path::Path) -> Result<Map<String, Value>, Failure> {
    let shown = file.display();
    let bytes =
        read_bytes(file, MAX_CONTEXT_BYTES, "give the name of a file instead, which a program of a step reads")?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(FailureCode::Usage, format!("`{shown}` is not a JSON object"))
            .with_cause(error)
            .with_hint("such as `{\"days\": 3}`")
    })
}

/// Shows a step that has ended, or the end of the workflow.
fn show_step_event(record: &EventRecord, took: Duration, out: &mut Output) -> CommandResult {
    let Event::WorkflowStepFinished(step) = &record.envelope.event else {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        return match (&record.envelope.event, out.is_json()) {
            (Event::WorkflowCompleted(it), true) => out.print_json(&json!({
                "workflowId": it.workflow_id, "success": true, "steps": it.steps, "durationMs": took,
            })),
            (Event::WorkflowFailed(it), true) => out.print_json(&json!({
                "workflowId": it.workflow_id, "success": false, "steps": it.steps, "error": it.error,
                "durationMs": took,
            })),
            (Event::WorkflowCompleted(it), false) => {
                let steps = show::workflow::format_step_count(it.steps);
                out.print_line(format_args!("{} is completed: {steps}", it.workflow_id))
            }
            _ => Ok(()),
        };
    };
    for result in step.within.iter().chain([&step.result]) {
        if out.is_json() {
            out.print_json(result)?;
            continue;
        }
        let word = if result.success { out.paint(TextTone::Good, "ok") } else { out.paint(TextTone::Bad, "failed") };
        let said = match (&result.error, &result.data) {
            (Some(error), _) => format!(": {}", text::clean_line(error)),
            (None, Some(data)) if data["taskId"].is_string() => {
                format!(": {}", data["taskId"].as_str().unwrap_or_default())
            }
            _ => String::new(),
        };
        out.print_line(format_args!(
            "  {}  {word}{said}",
            out.paint(TextTone::Name, text::clean_line(&result.step_id))
        ))?;
    }
    Ok(())
}
