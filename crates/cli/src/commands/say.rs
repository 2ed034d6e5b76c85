//! `windlass say`: sends a message to the agent of a session that is running or unfinished.

use std::path::Path;

use serde_json::json;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::session_commands::say_to_session;
use windlass_app::{Failure, FailureCode, hints};
use windlass_engine::Session;

use super::input::read_text;
use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass say \"Use the staging database\"        to the only running session
  windlass say \"Stop at the parser\" --session T3
  git diff | windlass say -                      read standard input

The agent gets the message with its next prompt, as a message from you. A claim to be done that it made before \
does not count.")]
pub struct Args {
    /// The message; `-` reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// The session: its name, the start of the name, or its task
    /// [default: the only running session]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

/// The largest number of sessions that a refusal names.
const MAX_NAMED_SESSIONS: usize = 10;

pub fn run_say(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let text = if args.text == "-" { read_text(Path::new("-"))? } else { args.text };
    let mut opened = context.open_project()?;
    let session = match &args.session {
        Some(reference) => opened.find_referenced_session(reference)?,
        None => find_only_session(&opened)?,
    };
    let report = say_to_session(&mut opened, &session, text)?;
    if out.is_json() {
        return out.print_json(&json!({
            "session": report.session,
            "seq": report.seq,
            "source": report.source,
            "voice": report.voice,
            "running": report.is_running,
        }));
    }
    let name = out.paint(TextTone::Strong, &report.session).to_string();
    out.print_line(format_args!("the agent of {name} {}", report.describe_delivery()))
}

/// Returns the only running session or, if none is running, the only unfinished one.
fn find_only_session(opened: &OpenedProject) -> Result<Session, Failure> {
    let sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.open_sessions().map_err(hints::store_failure)?;
    let open = sessions.into_iter().filter(|session| session.ending_kind().is_none());
    let (running, left): (Vec<Session>, Vec<Session>) = open.partition(|session| opened.is_session_running(session));
    let mut found = if running.is_empty() { left } else { running };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(FailureCode::NotFound, "no session is running")
            .with_hint("`windlass session list` shows the sessions; `windlass run GOAL` starts one")),
        many => {
            let names = found.iter().take(MAX_NAMED_SESSIONS).map(|session| session.name.as_str()).collect::<Vec<_>>();
            Err(Failure::new(FailureCode::Refused, format!("cannot choose between {many} sessions"))
                .with_cause(names.join(", "))
                .with_hint("--session names one"))
        }
    }
}
