//! `windlass task …`: the commands about tasks.

mod add;
mod claim;
mod delete;
pub mod details;

mod edges;
mod graph;
mod list;
mod transitions;
mod update;

use clap::Subcommand;
use windlass_app::context::CommandContext;
use windlass_engine::{Authority, Epoch, TaskId};

use crate::output::{CommandResult, Output};
use crate::usage;

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass task add \"Fix the login\" --priority 1
  windlass task list
  windlass task claim                          claim the most urgent ready task"
)]
pub enum Command {
    /// Add a task
    Add(add::Args),
    /// List unfinished tasks, oldest first
    #[command(visible_alias = "ls")]
    List(list::TaskListArgs),
    /// List ready tasks, most urgent first
    Ready(list::TaskReadyArgs),
    /// Show the task that a claim would take
    Next(list::TaskNextArgs),
    /// Show one task in detail
    Show(details::Args),
    /// Claim a task, or the next one, under a lease
    Claim(claim::Args),
    /// Start work on a task
    Start(transitions::StartArgs),
    /// Mark a task as done
    #[command(visible_alias = "done")]
    Complete(transitions::CompleteArgs),
    /// Block a task until a person decides
    Block(transitions::BlockArgs),
    /// Unblock a task
    Unblock(transitions::UnblockArgs),
    /// Release a task so that another holder can claim it
    Release(transitions::ReleaseArgs),
    /// Mark a task as failed
    Fail(transitions::FailArgs),
    /// Reopen a failed task; with --force also a completed or deleted one
    Reopen(transitions::ReopenArgs),
    /// Change the goal, body, labels or other fields of a task
    Update(update::Args),
    /// Delete a task
    #[command(visible_alias = "rm")]
    Delete(delete::Args),
    /// Make a task wait for another
    Depend(edges::DependArgs),
    /// Stop a task from waiting for another
    Undepend(edges::DependArgs),
    /// Add an edge of any kind between two tasks
    Link(edges::LinkArgs),
    /// Remove an edge between two tasks
    Unlink(edges::LinkArgs),
    /// Draw the task graph
    Graph(graph::Args),
}

pub fn run_task_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::Add(args) => add::run_task_add(context, args, out),
        Command::List(args) => list::run_task_list(context, args, out),
        Command::Ready(args) => list::run_task_ready(context, &args, out),
        Command::Next(args) => list::run_task_next(context, &args, out),
        Command::Show(args) => details::run_task_show(context, &args, out),
        Command::Claim(args) => claim::run_task_claim(context, args, out),
        Command::Start(args) => transitions::run_task_start(context, args, out),
        Command::Complete(args) => transitions::run_task_complete(context, args, out),
        Command::Block(args) => transitions::run_task_block(context, args, out),
        Command::Unblock(args) => transitions::run_task_unblock(context, &args, out),
        Command::Release(args) => transitions::run_task_release(context, args, out),
        Command::Fail(args) => transitions::run_task_fail(context, args, out),
        Command::Reopen(args) => transitions::run_task_reopen(context, args, out),
        Command::Update(args) => update::run_task_update(context, args, out),
        Command::Delete(args) => delete::run_task_delete(context, &args, out),
        Command::Depend(args) => edges::run_task_depend(context, &args, true, out),
        Command::Undepend(args) => edges::run_task_depend(context, &args, false, out),
        Command::Link(args) => edges::run_task_link(context, &args, true, out),
        Command::Unlink(args) => edges::run_task_link(context, &args, false, out),
        Command::Graph(args) => graph::run_task_graph(context, &args, out),
    }
}

// Not a doc comment: clap would show it as the help text of the command.
#[derive(Debug, clap::Args)]
pub struct TaskSubject {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// The epoch of your lease, as `task claim` printed it
    #[arg(long, value_name = "N", conflicts_with = "force", allow_negative_numbers = true, value_parser = usage::parse_number)]
    epoch: Option<u64>,
    /// Override the rules where they allow it; the log notes it
    #[arg(long)]
    force: bool,
}

impl TaskSubject {
    fn authority(&self) -> Authority {
        choose_authority(self.epoch, self.force)
    }
}

fn choose_authority(epoch: Option<u64>, force: bool) -> Authority {
    match (epoch, force) {
        (_, true) => Authority::Forced,
        (Some(epoch), false) => Authority::Holder(Epoch(epoch)),
        (None, false) => Authority::Person,
    }
}
