//! `windlass hooks …`: what hooks there were, and what became of them. Nothing is run, and nothing written.

pub mod collect;
mod history;
mod metrics;
pub mod runs;

use clap::Subcommand;

use crate::context::Context;
use crate::output::{Done, Output};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass hooks history                       the last runs
  windlass hooks history --outcome block       what sent agents back
  windlass hooks metrics --since 7d            how often each hook passes, and how long it takes")]
pub enum Command {
    /// What ran when, for which event, how long, how it ended and where its output is; newest last
    History(history::Args),
    /// How often each hook ran, passed, blocked, failed and timed out, and how long it took
    Metrics(metrics::Args),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::History(args) => history::run(context, args, out),
        Command::Metrics(args) => metrics::run(context, &args, out),
    }
}
