//! The commands that move a task from one state to another.

use std::path::PathBuf;

use serde_json::Value;
use windlass_app::changes::find_branch_without_change;
use windlass_app::context::Context;
use windlass_app::{Code, Failure};
use windlass_engine::{Command, EventType, Limits};

use super::{Subject, present};
use crate::commands::input::read_bytes;
use crate::output::{Done, Output, Tone};

fn carry_out(context: &Context, subject: &Subject, command: &Command, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    let records = opened.execute(command, subject.authority())?;
    present::of(&opened, subject.id, &records, out)?;
    if !out.is_json() && records.iter().any(|record| record.kind() == EventType::CompletionClaimed) {
        out.line(out.paint(Tone::Faint, "recorded as a claim: the runner completes the task after its gates"))?;
    }
    let task = opened.task(subject.id)?;
    if !out.is_json()
        && let Some(branch) = find_branch_without_change(&opened, &task)
    {
        let told = format!("no change was opened: what was done is on the branch {branch}, in its worktree");
        out.line(out.paint(Tone::Faint, told))?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task start T3
  windlass task start T3 --context context.json")]
pub struct Start {
    #[command(flatten)]
    subject: Subject,
    /// A JSON file that is kept with the start; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
}

pub fn start(context: &Context, args: Start, out: &mut Output) -> Done {
    let given = match &args.context {
        None => Value::Null,
        Some(file) => {
            let bytes = read_bytes(file, Limits::BODY, "give the name of a file instead, which the agent reads")?;
            serde_json::from_slice(&bytes).map_err(|error| {
                Failure::new(Code::Usage, format!("{} is not JSON", file.display())).caused_by(error)
            })?
        }
    };
    let command = Command::StartTask { id: args.subject.id, context: given };
    carry_out(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task complete T3
  windlass task complete T3 --result \"login works again\" --artifact src/login.rs")]
pub struct Complete {
    #[command(flatten)]
    subject: Subject,
    /// What came of it
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// A file that it made; may be given several times
    #[arg(long, value_name = "PATH")]
    artifact: Vec<String>,
}

pub fn complete(context: &Context, args: Complete, out: &mut Output) -> Done {
    let command = Command::CompleteTask { id: args.subject.id, result: args.result, artifacts: args.artifact };
    carry_out(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task block T3 --reason \"needs the production key\"
  windlass task block T3 --reason \"which API?\" --needs \"the vendor's answer\"")]
pub struct Block {
    #[command(flatten)]
    subject: Subject,
    /// Why it cannot go on
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// What would have to be known; may be given several times
    #[arg(long, value_name = "TEXT")]
    needs: Vec<String>,
}

pub fn block(context: &Context, args: Block, out: &mut Output) -> Done {
    let command = Command::BlockTask { id: args.subject.id, reason: args.reason, required_knowledge: args.needs };
    carry_out(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task unblock T3")]
pub struct Unblock {
    #[command(flatten)]
    subject: Subject,
}

pub fn unblock(context: &Context, args: &Unblock, out: &mut Output) -> Done {
    carry_out(context, &args.subject, &Command::UnblockTask { id: args.subject.id }, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task release T3 --reason \"not today\"")]
pub struct Release {
    #[command(flatten)]
    subject: Subject,
    /// Why it is given back
    #[arg(long, value_name = "TEXT", default_value = "given back")]
    reason: String,
}

pub fn release(context: &Context, args: Release, out: &mut Output) -> Done {
    let command = Command::ReleaseTask { id: args.subject.id, reason: args.reason };
    carry_out(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task fail T3 --reason \"the library cannot do it\"

Tasks that wait for it are blocked, and say why.")]
pub struct Fail {
    #[command(flatten)]
    subject: Subject,
    /// Why it failed
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub fn fail(context: &Context, args: Fail, out: &mut Output) -> Done {
    let command = Command::FailTask { id: args.subject.id, reason: args.reason };
    carry_out(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task reopen T3 --reason \"the library was mended\"
  windlass task reopen T3 --reason \"it was not done after all\" --force")]
pub struct Reopen {
    #[command(flatten)]
    subject: Subject,
    /// Why it is taken up again
    #[arg(long, value_name = "TEXT", default_value = "taken up again")]
    reason: String,
}

pub fn reopen(context: &Context, args: Reopen, out: &mut Output) -> Done {
    let command = Command::ReopenTask { id: args.subject.id, reason: args.reason };
    carry_out(context, &args.subject, &command, out)
}
