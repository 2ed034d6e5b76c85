//! `windlass task add`: creates a task.

use std::path::PathBuf;

use windlass_app::context::CommandContext;
use windlass_engine::{Authority, Command, NewTask, ReportRequest, TaskId, TaskPriority, TypeName};

use super::details;
use crate::commands::input::read_text;
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task add \"Fix the login\" --priority 0 --label bug
  windlass task add \"Write the guide\" --body \"Cover installing and first run.\"
  windlass task add \"Write the guide\" --deliverable docs/guide.md
  windlass task add \"Release 1.0\" --depends T1 --depends T2
  windlass task add \"Import the plan\" --body-file plan.md
  windlass task add \"Look for leaks\" --reviews T1    report on the change of T1
  windlass task add -- \"--verbose does nothing\"      goal beginning with a dash")]
pub struct Args {
    /// The goal, in one line
    goal: String,
    /// A longer description
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// Read the description from a file; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// The priority, from 0 (most urgent) to 4
    #[arg(long, short, value_name = "N", default_value_t = TaskPriority::default(), allow_negative_numbers = true)]
    priority: TaskPriority,
    /// A label; repeatable
    #[arg(long, short, value_name = "LABEL")]
    label: Vec<String>,
    /// The type of the task, which selects its hooks
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<TypeName>,
    /// A file or result that the task has to produce; repeatable
    #[arg(long, short, value_name = "TEXT")]
    deliverable: Vec<String>,
    /// A task that has to be completed first; repeatable
    #[arg(long, value_name = "ID")]
    depends: Vec<TaskId>,
    /// Ask for a report, the agent's final message, instead of a change
    #[arg(long)]
    report: bool,
    /// Ask for a report about the change of this task, once it is completed
    #[arg(long, value_name = "ID")]
    reviews: Option<TaskId>,
    /// The task that spawned this one
    #[arg(long, value_name = "ID")]
    parent: Option<TaskId>,
}

pub fn run_task_add(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let body = match args.body_file {
        Some(file) => Some(read_text(&file)?),
        None => args.body,
    };
    let new = NewTask {
        goal: args.goal,
        body,
        deliverables: args.deliverable,
        labels: args.label,
        priority: args.priority,
        kind: args.kind,
        report: (args.report || args.reviews.is_some())
            .then_some(ReportRequest { reviews: args.reviews, by_type: false }),
        depends_on: args.depends,
        parent: args.parent,
    };
    let mut opened = context.open_project()?;
    let records = opened.execute_command(&Command::CreateTask(new), Authority::Person)?;
    details::show_command_result(&opened, &records, out)
}
