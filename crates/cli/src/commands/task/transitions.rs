//! The commands that move a task from one state to another.

use std::path::PathBuf;

use serde_json::Value;
use windlass_app::changes::find_branch_without_change;
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_engine::{Command, EngineLimits, EventType};

use super::{TaskSubject, details};
use crate::commands::input::read_bytes;
use crate::output::{CommandResult, Output, TextTone};

fn run_transition(
    context: &CommandContext,
    subject: &TaskSubject,
    command: &Command,
    out: &mut Output,
) -> CommandResult {
    let mut opened = context.open_project()?;
    let records = opened.execute_command(command, subject.authority())?;
    details::show_task_result(&opened, subject.id, &records, out)?;
    if !out.is_json() && records.iter().any(|record| record.kind() == EventType::CompletionClaimed) {
        out.print_line(
            out.paint(TextTone::Faint, "recorded as a claim: the runner completes the task after its gates"),
        )?;
    }
    let task = opened.require_task(subject.id)?;
    if !out.is_json()
        && let Some(branch) = find_branch_without_change(&opened, &task)
    {
        let told = format!("no change was opened: what was done is on the branch {branch}, in its worktree");
        out.print_line(out.paint(TextTone::Faint, told))?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task start T3
  windlass task start T3 --context context.json")]
pub struct StartArgs {
    #[command(flatten)]
    subject: TaskSubject,
    /// A JSON file to record with the start; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
}

pub fn run_task_start(context: &CommandContext, args: StartArgs, out: &mut Output) -> CommandResult {
    let given = match &args.context {
        None => Value::Null,
        Some(file) => {
            let bytes =
                read_bytes(file, EngineLimits::BODY_BYTES, "give the name of a file instead, which the agent reads")?;
            serde_json::from_slice(&bytes).map_err(|error| {
                Failure::new(FailureCode::Usage, format!("{} is not JSON", file.display())).with_cause(error)
            })?
        }
    };
    let command = Command::StartTask { id: args.subject.id, context: given };
    run_transition(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task complete T3
  windlass task complete T3 --result \"login works again\" --artifact src/login.rs")]
pub struct CompleteArgs {
    #[command(flatten)]
    subject: TaskSubject,
    /// The result of the task
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// A file that the task produced; repeatable
    #[arg(long, value_name = "PATH")]
    artifact: Vec<String>,
}

pub fn run_task_complete(context: &CommandContext, args: CompleteArgs, out: &mut Output) -> CommandResult {
    let command = Command::CompleteTask { id: args.subject.id, result: args.result, artifacts: args.artifact };
    run_transition(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task block T3 --reason \"needs the production key\"
  windlass task block T3 --reason \"which API?\" --needs \"the vendor's answer\"")]
pub struct BlockArgs {
    #[command(flatten)]
    subject: TaskSubject,
    /// The reason for the block
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// A fact that is needed to continue; repeatable
    #[arg(long, value_name = "TEXT")]
    needs: Vec<String>,
}

pub fn run_task_block(context: &CommandContext, args: BlockArgs, out: &mut Output) -> CommandResult {
    let command = Command::BlockTask { id: args.subject.id, reason: args.reason, required_knowledge: args.needs };
    run_transition(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task unblock T3")]
pub struct UnblockArgs {
    #[command(flatten)]
    subject: TaskSubject,
}

pub fn run_task_unblock(context: &CommandContext, args: &UnblockArgs, out: &mut Output) -> CommandResult {
    run_transition(context, &args.subject, &Command::UnblockTask { id: args.subject.id }, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task release T3 --reason \"not today\"")]
pub struct ReleaseArgs {
    #[command(flatten)]
    subject: TaskSubject,
    /// The reason for the release
    #[arg(long, value_name = "TEXT", default_value = "released")]
    reason: String,
}

pub fn run_task_release(context: &CommandContext, args: ReleaseArgs, out: &mut Output) -> CommandResult {
    let command = Command::ReleaseTask { id: args.subject.id, reason: args.reason };
    run_transition(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task fail T3 --reason \"the library cannot do it\"

Tasks that wait for it are blocked, with this reason.")]
pub struct FailArgs {
    #[command(flatten)]
    subject: TaskSubject,
    /// The reason for the failure
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub fn run_task_fail(context: &CommandContext, args: FailArgs, out: &mut Output) -> CommandResult {
    let command = Command::FailTask { id: args.subject.id, reason: args.reason };
    run_transition(context, &args.subject, &command, out)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task reopen T3 --reason \"the library is fixed\"
  windlass task reopen T3 --reason \"it was not done after all\" --force")]
pub struct ReopenArgs {
    #[command(flatten)]
    subject: TaskSubject,
    /// The reason for reopening
    #[arg(long, value_name = "TEXT", default_value = "reopened")]
    reason: String,
}

pub fn run_task_reopen(context: &CommandContext, args: ReopenArgs, out: &mut Output) -> CommandResult {
    let command = Command::ReopenTask { id: args.subject.id, reason: args.reason };
    run_transition(context, &args.subject, &command, out)
}
