//! `windlass task update`: changes a task.

use std::path::PathBuf;

use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_engine::{Command, TaskPatch, TaskPriority, TypeName};

use super::{TaskSubject, details};
use crate::commands::input::read_text;
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task update T3 --priority 0
  windlass task update T3 --add-label urgent --remove-label later
  windlass task update T3 --body \"\"            remove the description

An agent can change neither the task that it works on nor the type and labels of other tasks.")]
pub struct Args {
    #[command(flatten)]
    subject: TaskSubject,
    /// The goal, in one line
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,
    /// The description; an empty text removes it
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// Read the description from a file; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// The priority, from 0 (most urgent) to 4
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    priority: Option<TaskPriority>,
    /// Replace all labels; repeatable, an empty text removes them
    #[arg(long, short, value_name = "LABEL", conflicts_with_all = ["add_label", "remove_label"])]
    label: Option<Vec<String>>,
    /// Add a label; repeatable
    #[arg(long, value_name = "LABEL")]
    add_label: Vec<String>,
    /// Remove a label; repeatable
    #[arg(long, value_name = "LABEL")]
    remove_label: Vec<String>,
    /// The type of the task; an empty text removes it
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<String>,
    /// Replace all deliverables; repeatable, an empty text removes them
    #[arg(long, short, value_name = "TEXT")]
    deliverable: Option<Vec<String>>,
}

pub fn run_task_update(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let id = args.subject.id;
    let kind = match args.kind.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(name) => {
            let name: TypeName = name.parse().map_err(|error| Failure::from_error(FailureCode::Usage, &error))?;
            Some(Some(name))
        }
    };
    let body = match args.body_file {
        Some(file) => Some(read_text(&file)?),
        None => args.body,
    };
    let patch = TaskPatch {
        goal: args.goal,
        body,
        deliverables: args.deliverable.map(replacement_list),
        labels: args.label.map(replacement_list),
        add_labels: args.add_label,
        remove_labels: args.remove_label,
        priority: args.priority,
        kind,
    };
    if patch == TaskPatch::default() {
        let failure = Failure::new(FailureCode::Usage, "no change was given");
        return Err(failure.with_hint("`windlass task update --help` shows the options").into());
    }
    let records = opened.execute_command(&Command::UpdateTask { id, patch }, args.subject.authority())?;
    details::show_task_result(&opened, id, &records, out)
}

/// Returns the new list: a single empty text stands for an empty list.
fn replacement_list(given: Vec<String>) -> Vec<String> {
    if given == [""] { Vec::new() } else { given }
}
