//! `windlass task delete`: deletes a task.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_engine::{Command, DeletionMode, EventType, TaskId};

use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task delete T3
  windlass task delete T3 --cascade            also delete all that wait for it
  windlass task delete T3 --force              delete only T3, block the others

A deleted task keeps its ID and its history; `windlass task reopen --force` restores it.")]
pub struct Args {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// Also delete the tasks that wait for it
    #[arg(long)]
    cascade: bool,
    /// The epoch of your lease, as `task claim` printed it
    #[arg(long, value_name = "N", conflicts_with = "force", allow_negative_numbers = true, value_parser = usage::parse_number)]
    epoch: Option<u64>,
    /// Delete it even if it is held or tasks wait for it; the log notes it
    #[arg(long)]
    force: bool,
}

pub fn run_task_delete(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let deletion = match (args.cascade, args.force) {
        (true, _) => DeletionMode::Cascade,
        (false, true) => DeletionMode::BlockDependents,
        (false, false) => DeletionMode::Alone,
    };
    let authority = super::choose_authority(args.epoch, args.force);
    let records = opened.execute_command(&Command::DeleteTask { id: args.id, deletion }, authority)?;
    let deleted: Vec<TaskId> = records
        .iter()
        .filter(|record| record.kind() == EventType::TaskDeleted)
        .filter_map(|record| record.envelope.node.task_id())
        .collect();
    if out.is_json() {
        out.print_json(&json!({"deleted": deleted}))?;
    } else {
        for id in deleted {
            out.print_line(format_args!("{} {id}", out.paint(TextTone::Bad, "deleted")))?;
        }
    }
    show::print_consequences(args.id, &records, out)
}
