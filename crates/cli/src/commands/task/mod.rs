//! `windlass task …`: the commands about tasks.

mod add;
mod claim;
mod delete;
pub mod driven;
mod edges;
mod graph;
mod list;
mod moves;
pub mod present;
mod update;

use clap::Subcommand;
use windlass_app::context::Context;
use windlass_engine::{Authority, Epoch, TaskId};

use crate::output::{Done, Output};
use crate::usage;

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass task add \"Fix the login\" --priority 1
  windlass task list
  windlass task claim                          take the most urgent one that is ready"
)]
pub enum Command {
    /// Add a task
    Add(add::Args),
    /// The tasks that are not finished, oldest first
    #[command(visible_alias = "ls")]
    List(list::List),
    /// What can be worked on now, most urgent first
    Ready(list::Ready),
    /// The task that a claim would take
    Next(list::Next),
    /// Everything about one task
    Show(present::Args),
    /// Take a task, or the next one, under a lease
    Claim(claim::Args),
    /// Begin to work on a task
    Start(moves::Start),
    /// Say that a task is done
    #[command(visible_alias = "done")]
    Complete(moves::Complete),
    /// Say that a task cannot go on without a person
    Block(moves::Block),
    /// Let a blocked task go on
    Unblock(moves::Unblock),
    /// Give a task back so that another can take it
    Release(moves::Release),
    /// Say that a task has failed
    Fail(moves::Fail),
    /// Take up a failed task again; a completed or deleted one with --force
    Reopen(moves::Reopen),
    /// Change what a task says
    Update(update::Args),
    /// Delete a task
    #[command(visible_alias = "rm")]
    Delete(delete::Args),
    /// Let a task wait for another
    Depend(edges::Depend),
    /// Let a task no longer wait for another
    Undepend(edges::Depend),
    /// Put an edge of any kind between two tasks
    Link(edges::Link),
    /// Take an edge away
    Unlink(edges::Link),
    /// Draw the graph
    Graph(graph::Args),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::Add(args) => add::run(context, args, out),
        Command::List(args) => list::list(context, args, out),
        Command::Ready(args) => list::ready(context, &args, out),
        Command::Next(args) => list::next(context, &args, out),
        Command::Show(args) => present::run(context, &args, out),
        Command::Claim(args) => claim::run(context, args, out),
        Command::Start(args) => moves::start(context, args, out),
        Command::Complete(args) => moves::complete(context, args, out),
        Command::Block(args) => moves::block(context, args, out),
        Command::Unblock(args) => moves::unblock(context, &args, out),
        Command::Release(args) => moves::release(context, args, out),
        Command::Fail(args) => moves::fail(context, args, out),
        Command::Reopen(args) => moves::reopen(context, args, out),
        Command::Update(args) => update::run(context, args, out),
        Command::Delete(args) => delete::run(context, &args, out),
        Command::Depend(args) => edges::depend(context, &args, true, out),
        Command::Undepend(args) => edges::depend(context, &args, false, out),
        Command::Link(args) => edges::link(context, &args, true, out),
        Command::Unlink(args) => edges::link(context, &args, false, out),
        Command::Graph(args) => graph::run(context, &args, out),
    }
}

// Not a doc comment: clap would show it as the help text of the command.
#[derive(Debug, clap::Args)]
pub struct Subject {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// The epoch of the lease that you hold, as `task claim` told it
    #[arg(long, value_name = "N", conflicts_with = "force", allow_negative_numbers = true, value_parser = usage::number)]
    epoch: Option<u64>,
    /// Do it even where the rules say no; the log says that it was forced
    #[arg(long)]
    force: bool,
}

impl Subject {
    fn authority(&self) -> Authority {
        authority(self.epoch, self.force)
    }
}

fn authority(epoch: Option<u64>, force: bool) -> Authority {
    match (epoch, force) {
        (_, true) => Authority::Forced,
        (Some(epoch), false) => Authority::Holder(Epoch(epoch)),
        (None, false) => Authority::Person,
    }
}
