//! `windlass change …`

mod known;
mod list;
mod looking;
mod merge;
mod show;
mod unopened;

use clap::Subcommand;

pub use known::open_changes;
pub use looking::{find_tracked_store, tracked_store, with_git, with_optional_git};
pub use unopened::{find_branch_without_change, note_work_without_change};

use crate::output::{Done, Output};
use windlass_app::context::Context;

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass change list                         what waits to be looked at
  windlass change show T3                      its commits and its diff
  windlass change merge T3                     put it into the base branch

A change is called after its task. docs/delivery.md has it all."
)]
pub enum Command {
    /// The changes that are not merged, newest first
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// What a change does: its commits and its diff
    Show(show::Args),
    /// Merge a change into its base
    Merge(merge::Args),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::List(args) => list::run(context, &args, out),
        Command::Show(args) => show::run(context, &args, out),
        Command::Merge(args) => merge::run(context, &args, out),
    }
}
