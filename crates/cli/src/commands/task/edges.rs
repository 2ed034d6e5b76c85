//! `windlass task depend`, `undepend`, `link` and `unlink`: add and remove edges.

use clap::builder::TypedValueParser;
use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_engine::{Authority, Command, EdgeKind, TaskId};

use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task depend T2 T1                   T2 waits until T1 is completed
  windlass task undepend T2 T1")]
pub struct DependArgs {
    /// The task that waits
    #[arg(value_name = "ID")]
    id: TaskId,
    /// The task that it waits for
    #[arg(value_name = "ON")]
    on: TaskId,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task link T1 blocks T2              T2 waits until T1 is completed
  windlass task link T3 references T1
  windlass task unlink T3 references T1")]
pub struct LinkArgs {
    /// The task where the edge begins
    #[arg(value_name = "A")]
    from: TaskId,
    /// The kind of the edge
    #[arg(value_name = "KIND", value_parser = edge_kind_parser())]
    kind: EdgeKind,
    /// The task where the edge ends
    #[arg(value_name = "B")]
    to: TaskId,
}

fn edge_kind_parser() -> impl TypedValueParser<Value = EdgeKind> {
    usage::name_parser(EdgeKind::ALL.map(EdgeKind::name))
}

/// Adds or removes a dependency.
pub fn run_task_depend(context: &CommandContext, args: &DependArgs, is_added: bool, out: &mut Output) -> CommandResult {
    change_edge(context, (args.id, EdgeKind::DependsOn, args.on), is_added, out)
}

/// Adds or removes an edge of any kind.
pub fn run_task_link(context: &CommandContext, args: &LinkArgs, is_added: bool, out: &mut Output) -> CommandResult {
    change_edge(context, (args.from, args.kind, args.to), is_added, out)
}

fn change_edge(
    context: &CommandContext,
    (from, kind, to): (TaskId, EdgeKind, TaskId),
    is_added: bool,
    out: &mut Output,
) -> CommandResult {
    let command = match is_added {
        true => Command::AddEdge { from, kind, to },
        false => Command::RemoveEdge { from, kind, to },
    };
    let mut opened = context.open_project()?;
    let records = opened.execute_command(&command, Authority::Person)?;
    let changed = !records.is_empty();
    if out.is_json() {
        out.print_json(&json!({"fromId": from, "edgeType": kind, "toId": to, "changed": changed}))?;
    } else {
        let note = match (is_added, changed) {
            (_, false) => " (as before)",
            (false, true) => " (taken away)",
            (true, true) => "",
        };
        out.print_line(format_args!("{from} {kind} {to}{}", out.paint(TextTone::Faint, note)))?;
    }
    // Both tasks of the edge may have changed, so no task is left out of the consequences.
    show::print_all_consequences(&records, out)
}
