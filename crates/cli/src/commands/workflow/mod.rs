//! `windlass workflow …`: several steps that are taken by themselves.

mod list;
mod run;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::output::{Done, Output};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass workflow list
  windlass workflow show create-review-task
  windlass workflow run create-review-task --task T3")]
pub enum Command {
    /// The workflows of this project, and those that come along
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// One of them, step by step
    Show(show::Args),
    /// Run one now
    Run(run::Args),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::List(args) => list::run(context, &args, out),
        Command::Show(args) => show::run(context, &args, out),
        Command::Run(args) => run::run(context, args, out),
    }
}
