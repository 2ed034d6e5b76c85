//! `windlass checkpoint resume`

use serde_json::json;
use windlass_engine::{CheckpointId, TaskId};

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::{text, twin};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass checkpoint resume T3                the newest one
  windlass checkpoint resume T3 CP-21
  windlass checkpoint resume T3 --json | jq -r .draftContent

Nothing is changed: series of iterations and stop hooks are in the log, and are there again after every restart.")]
pub struct Args {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    task: TaskId,
    /// The checkpoint [default: the newest]
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: Option<CheckpointId>,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let given = json!({"taskId": args.task, "checkpointId": args.checkpoint});
    let answer = twin::call(context, "checkpoint_resume", given)?;
    if out.is_json() {
        return out.object(&answer);
    }
    let made = format!("made {}", twin::moment(&answer["createdAt"]));
    let id = out.paint(Tone::Strong, twin::text(&answer["id"])).to_string();
    out.line(format_args!("{id}  {}", out.paint(Tone::Faint, made)))?;
    out.line(text::lines(&twin::words(answer["instructions"].as_str().unwrap_or_default())))?;
    if answer["agentContext"].is_object() {
        out.line(format_args!("\n{}", text::line(&answer["agentContext"].to_string())))?;
    }
    match answer["draftContent"].as_str() {
        Some(draft) => out.line(format_args!("\n{}", text::lines(draft))),
        None => Ok(()),
    }
}
