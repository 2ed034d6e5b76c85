//! `windlass checkpoint …`: saved places to resume from.

mod create;
mod resume;

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_engine::TaskId;

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::twin;

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass checkpoint create T3 --phase testing --step 4
  windlass checkpoint list T3
  windlass checkpoint resume T3"
)]
pub enum Command {
    /// Save where the work on a task stands
    Create(create::Args),
    /// The checkpoints that can be resumed from, newest first
    #[command(visible_alias = "ls")]
    List(List),
    /// What was saved, and how to go on from there
    Resume(resume::Args),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass checkpoint list T3
  windlass checkpoint list T3 --json | jq -r '.checkpoints[].id'")]
pub struct List {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    task: TaskId,
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::Create(args) => create::run(context, args, out),
        Command::List(args) => list(context, &args, out),
        Command::Resume(args) => resume::run(context, &args, out),
    }
}

fn list(context: &Context, args: &List, out: &mut Output) -> Done {
    let answer = twin::call(context, "checkpoint_list", json!({"taskId": args.task}))?;
    if out.is_json() {
        return out.object(&answer);
    }
    let checkpoints = answer["checkpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
    if checkpoints.is_empty() {
        return out.line(out.paint(Tone::Faint, format_args!("{} has no checkpoints", args.task)));
    }
    checkpoints.iter().try_for_each(|checkpoint| line(checkpoint, out))
}

/// A checkpoint in a line.
fn line(checkpoint: &Value, out: &mut Output) -> Done {
    let id = out.paint(Tone::Strong, twin::text(&checkpoint["id"])).to_string();
    let mut parts = vec![format!("number {}, {}", checkpoint["sequence"], twin::text(&checkpoint["trigger"]))];
    parts.extend(checkpoint["executionPhase"].as_str().map(|_| twin::text(&checkpoint["executionPhase"])));
    parts.extend(checkpoint["executionStep"].as_u64().map(|step| format!("step {step}")));
    match checkpoint["draftCutFrom"].as_u64() {
        Some(bytes) => parts.push(format!("a draft, cut from {bytes} bytes")),
        None if checkpoint["hasDraft"] == true => parts.push("a draft".to_owned()),
        None => {}
    }
    let until = format!("until {}", twin::moment(&checkpoint["expiresAt"]));
    out.line(format_args!("{id}  {}  {}", parts.join(", "), out.paint(Tone::Faint, until)))
}
