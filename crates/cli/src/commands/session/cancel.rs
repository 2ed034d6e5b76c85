//! `windlass session cancel`: ends a session in order.

use serde_json::json;
use windlass_app::caller::CallerContext;
use windlass_app::context::CommandContext;
use windlass_app::execution;
use windlass_app::person::ConcernedSessions;
use windlass_app::session_view::SessionView;
use windlass_engine::{Authority, Command};

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
    let inside = CallerContext::detect_for_person(&opened, ConcernedSessions::Named(&session.name))?;
    let command = Command::CancelSession { name: session.name.clone(), reason: args.reason.clone() };
    execution::execute_with_caller(&mut opened, inside, &command, Authority::Person)?;
    // The command is in the log before the owner is nudged, because the owner reads it there.
    let woken = windlass_process::wake_owner(&opened.project.owner_directory(), session.owner.as_str());
    let seen = SessionView::from_session(&opened, opened.require_session(&session.name)?);
    if out.is_json() {
        return out.print_json(&json!({"session": session.name, "state": seen.state_name(), "woken": woken}));
    }
    let what = match (seen.session.is_over(), seen.alive, woken) {
        (true, ..) => "has ended",
        (false, true, true) => "is being ended",
        (false, true, false) => "ends after its current step",
        (false, false, _) => "has to end, but no process runs it: `windlass doctor --settle` ends it",
    };
    out.print_line(format_args!("{} {}", out.paint(TextTone::Strong, &session.name), out.paint(TextTone::Plain, what)))
}
