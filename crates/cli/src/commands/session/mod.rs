//! `windlass session …`: the commands about sessions.

mod cancel;
mod details;
mod list;
mod logs;

use clap::Subcommand;
use windlass_app::context::CommandContext;

pub use self::logs::LIVE_OUTPUT_TYPE;
use crate::output::{CommandResult, Output};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass session list
  windlass session show                                the newest session
  windlass session logs --follow                       the newest session, live
  windlass session logs T3                             the last session of T3
  windlass session cancel fix-the --reason \"wrong branch\"

A session is named by its name, by the start of its name, or by its task.")]
pub enum Command {
    /// List sessions, newest first
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show a session, its state and the next commands
    Show(details::Args),
    /// Show the output of the agent and the hooks, turn by turn
    #[command(visible_alias = "log")]
    Logs(logs::Args),
    /// End a session in order, as Ctrl-C does
    Cancel(cancel::Args),
}

pub fn run_session_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::List(args) => list::run_session_list(context, &args, out),
        Command::Show(args) => details::run_session_show(context, &args, out),
        Command::Logs(args) => logs::run_session_logs(context, &args, out),
        Command::Cancel(args) => cancel::run_session_cancel(context, &args, out),
    }
}
