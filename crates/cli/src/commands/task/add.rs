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
  windlass task add \"Write the guide\" --body \"Cover installing and the first run.\" --deliverable docs/guide.md
  windlass task add \"Release 1.0\" --depends T1 --depends T2
  windlass task add \"Import the plan\" --body-file plan.md
  windlass task add \"Look for leaks\" --reviews T1         a report about the change of T1
  windlass task add -- \"--verbose does nothing\"      a goal that begins with a dash")]
pub struct Args {
    /// What is to be reached, in a line
    goal: String,
    /// More about it
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// More about it, from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// 0 (most urgent) to 4
    #[arg(long, short, value_name = "N", default_value_t = TaskPriority::default(), allow_negative_numbers = true)]
    priority: TaskPriority,
    /// A label; may be given several times
    #[arg(long, short, value_name = "LABEL")]
    label: Vec<String>,
    /// The type of the task, which says which hooks run for it
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<TypeName>,
    /// What is to be there in the end; may be given several times
    #[arg(long, short, value_name = "TEXT")]
    deliverable: Vec<String>,
    /// A task that has to be completed before; may be given several times
    #[arg(long, value_name = "ID")]
    depends: Vec<TaskId>,
    /// Ask for a report in place of a change: the agent's final message is the result
    #[arg(long)]
    report: bool,
    /// Ask for a report about the change of this task, once it is completed
    #[arg(long, value_name = "ID")]
    reviews: Option<TaskId>,
    /// The task that this one was spawned by
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
