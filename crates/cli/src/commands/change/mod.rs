//! `windlass change …`: the commands about changes.

mod list;
mod merge;
mod show;

use clap::Subcommand;
use windlass_app::changes::ChangeState;
use windlass_app::context::CommandContext;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass change list                         list open changes
  windlass change show T3                      show its commits and its diff
  windlass change merge T3                     merge it into the base branch

A change has the ID of its task. docs/explanation/delivery.md explains changes."
)]
pub enum Command {
    /// List the changes that are not merged, newest first
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show the commits and the diff of a change
    Show(show::Args),
    /// Merge a change into its base
    Merge(merge::Args),
}

pub fn run_change_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::List(args) => list::run_change_list(context, &args, out),
        Command::Show(args) => show::run_change_show(context, &args, out),
        Command::Merge(args) => merge::run_change_merge(context, &args, out),
    }
}

/// Returns the colour of the state of a change.
fn change_state_tone(state: ChangeState) -> TextTone {
    match state {
        ChangeState::Open => TextTone::Good,
        ChangeState::Merged | ChangeState::Dropped => TextTone::Faint,
        ChangeState::Closed => TextTone::Warning,
    }
}
