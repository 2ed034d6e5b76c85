//! `windlass session cancel`: ends a session in order.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::session_commands::cancel_session;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session cancel fix-the-login-3757e17e
  windlass session cancel fix-the-login-3757e17e --reason \"wrong branch\"

The running turn is stopped, pending feedback stays with the task, and `session_end` hooks run. The process of \
the session does this; if it is dead, `windlass doctor --settle` or the next `windlass run` does it. Inside an \
agent's turn, the command is refused.")]
pub struct Args {
    /// The session: its name, the start of the name, or its task
    #[arg(value_name = "SESSION")]
    session: String,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn run_session_cancel(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let session = opened.find_referenced_session(&args.session)?;
    let report = cancel_session(&mut opened, &session, args.reason.clone())?;
    if out.is_json() {
        let state = report.view.state_name();
        return out.print_json(&json!({"session": session.name, "state": state, "woken": report.woken}));
    }
    let name = out.paint(TextTone::Strong, &session.name);
    out.print_line(format_args!("{name} {}", report.describe_end()))
}
