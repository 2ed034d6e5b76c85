//! `windlass iteration validate`, `next` and `complete`

use serde_json::{Value, json};
use windlass_engine::{Promise, Seq, SeriesId, TaskId};

use super::Heard;
use crate::commands::hooks::decision;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Done, Output, Tone};
use crate::{remedy, text, twin};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass iteration validate IT-12 --output \"All done. <promise>COMPLETE</promise>\"
  my-agent > said.txt; windlass iteration validate IT-12 --output-file said.txt --file src/login.rs
  windlass iteration validate IT-12 --output-file - --json < said.txt | jq -r .completionSignal

CONTINUE means: another iteration. COMPLETE: `windlass iteration complete`. BLOCKED and ESCALATE: a person is needed.
No task is moved.")]
pub struct Validate {
    /// The series of iterations, such as IT-12
    #[arg(value_name = "ITERATION")]
    series: SeriesId,
    #[command(flatten)]
    heard: Heard,
}

pub fn validate(context: &Context, args: &Validate, out: &mut Output) -> Done {
    let given = json!({
        "iterationId": args.series, "agentOutput": args.heard.output()?, "filesModified": args.heard.files(),
    });
    let answer = twin::call(context, "iteration_validate", given)?;
    if out.is_json() {
        return out.object(&answer);
    }
    let signal = twin::text(&answer["completionSignal"]);
    let tone = match signal.as_str() {
        "COMPLETE" => Tone::Good,
        "CONTINUE" => Tone::Warning,
        _ => Tone::Bad,
    };
    let signal = out.paint(tone, signal).to_string();
    out.line(format_args!("{signal}  iteration {} of {}", answer["iterationNumber"], args.series))?;
    for result in answer["results"].as_array().into_iter().flatten() {
        let mark = if result["passed"] == true { out.paint(Tone::Good, "✓") } else { out.paint(Tone::Bad, "✗") };
        out.line(format_args!("  {mark} {}: {}", twin::text(&result["ruleName"]), twin::text(&result["message"])))?;
    }
    // What rules said stands above already.
    let known: Vec<String> = answer["results"].as_array().into_iter().flatten().map(said).collect();
    for line in answer["feedback"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !known.iter().any(|known| known == line) {
            out.line(format_args!("  {}", text::line(line)))?;
        }
    }
    if answer["checkpointCreated"] == true {
        out.line("  a checkpoint was made")?;
    }
    if answer["hookDecision"].is_object() {
        decision(&answer["hookDecision"], out)?;
    }
    match answer["completionSignal"].as_str() {
        Some("BLOCKED" | "ESCALATE") => {
            let id = task_of(context, args.series)?.map_or_else(|| "ID".to_owned(), |id| id.to_string());
            let told = format!("a person is needed: `windlass task block {id} --reason WHY` says so");
            out.line(out.paint(Tone::Faint, told))
        }
        _ => Ok(()),
    }
}

/// Returns the task of a series, which has the position of the event that started it.
fn task_of(context: &Context, series: SeriesId) -> Result<Option<TaskId>, Failure> {
    let started = context.open()?.store.event(Seq(series.0)).map_err(remedy::store)?;
    Ok(started.and_then(|record| record.envelope.node.task()))
}

/// A result, as feedback tells it.
fn said(result: &Value) -> String {
    let part = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
    format!("{}: {}", part("ruleName"), part("message"))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass iteration next IT-12")]
pub struct Next {
    /// The series of iterations, such as IT-12
    #[arg(value_name = "ITERATION")]
    series: SeriesId,
}

pub fn next(context: &Context, args: &Next, out: &mut Output) -> Done {
    let answer = twin::call(context, "iteration_next", json!({"iterationId": args.series}))?;
    if out.is_json() {
        return out.object(&answer);
    }
    let (number, most) = (&answer["iterationNumber"], &answer["config"]["maxIterations"]);
    out.line(format_args!("{}: iteration {number} of {most}", args.series))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass iteration complete IT-12 COMPLETE           the task is completed
  windlass iteration complete IT-12 BLOCKED            the task is blocked, for a person")]
pub struct Complete {
    /// The series of iterations, such as IT-12
    #[arg(value_name = "ITERATION")]
    series: SeriesId,
    /// The promise with which it ends: COMPLETE, BLOCKED, ESCALATE
    #[arg(value_name = "PROMISE")]
    promise: Promise,
}

pub fn complete(context: &Context, args: &Complete, out: &mut Output) -> Done {
    let given = json!({"iterationId": args.series, "completionPromise": args.promise});
    let answer = twin::call(context, "iteration_complete", given)?;
    if out.is_json() {
        return out.object(&answer);
    }
    let iterations = match answer["totalIterations"].as_u64() {
        Some(1) => "1 iteration".to_owned(),
        iterations => format!("{} iterations", iterations.unwrap_or_default()),
    };
    let task = twin::text(&answer["taskId"]);
    out.line(format_args!("{}: {} after {iterations}, {task}", args.series, args.promise.name()))?;
    match answer["next"].as_str() {
        Some(next) => out.line(out.paint(Tone::Faint, next)),
        None => Ok(()),
    }
}
