//! `windlass checkpoint create`

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use serde_json::{Value, json};
use windlass_engine::{TaskId, Trigger};

use super::line;
use crate::commands::task::read_text;
use crate::context::Context;
use crate::output::{Done, Output};
use crate::{twin, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass checkpoint create T3 --phase testing --step 4
  windlass checkpoint create T3 --context '{\"branch\": \"fix-login\"}' --draft-file draft.md --draft-type design
  windlass checkpoint create T3 --trigger error --expires-in 2h

The last five of a task are kept. Those made by hand last seven days, others one; a draft is cut at 50 KiB.")]
pub struct Args {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    task: TaskId,
    /// What led to it: manual, auto_status, auto_subtask, error
    #[arg(long, value_name = "TRIGGER", default_value = "manual", hide_possible_values = true, value_parser = triggers())]
    trigger: String,
    /// The phase of the work
    #[arg(long, value_name = "TEXT")]
    phase: Option<String>,
    /// The step within it
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage::number)]
    step: Option<u64>,
    /// Anything to be found again, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = usage::json)]
    context: Option<Value>,
    /// A draft of the work, from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE")]
    draft_file: Option<PathBuf>,
    /// What the draft is: implementation, test_plan, …
    #[arg(long, value_name = "TYPE")]
    draft_type: Option<String>,
    /// How long it is kept: `90m`, `24h`, `7d`
    #[arg(long, value_name = "TIME", value_parser = usage::span)]
    expires_in: Option<Duration>,
}

fn triggers() -> impl TypedValueParser<Value = String> {
    usage::one_of(Trigger::NAMED.map(Trigger::name))
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let draft = args.draft_file.as_deref().map(read_text).transpose()?;
    let given = json!({
        "taskId": args.task, "trigger": args.trigger, "executionPhase": args.phase, "executionStep": args.step,
        "agentContext": args.context, "draftContent": draft, "draftType": args.draft_type,
        "expiresIn": args.expires_in.map(|time| time.as_secs().div_ceil(60)),
    });
    let answer = twin::call(context, "checkpoint_create", given)?;
    if out.is_json() { out.object(&answer) } else { line(&answer, out) }
}
