//! `windlass say`: sends a message to the agent of a session that is running or unfinished.

use std::path::Path;

use serde_json::json;
use windlass_app::caller::CallerContext;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::person::ConcernedSessions;
use windlass_app::{Failure, FailureCode, execution, hints};
use windlass_engine::{Authority, Command, Event, MessageAuthor, Session};
use windlass_text as text;

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
    let alive = opened.is_session_running(&session);
    let command = Command::Say { session: session.name.clone(), text };
    let inside = CallerContext::detect_for_person(&opened, ConcernedSessions::Named(&session.name))?;
    let records = execution::execute_with_caller(&mut opened, inside, &command, Authority::Person)?;
    let queued = records.iter().find_map(|record| match &record.envelope.event {
        Event::FeedbackQueued(queued) => Some((record.seq, queued)),
        _ => None,
    });
    let Some((seq, queued)) = queued else { return Ok(()) };
    if out.is_json() {
        let said = json!({"session": session.name, "seq": seq, "source": queued.source, "voice": queued.voice, "running": alive});
        return out.print_json(&said);
    }
    let by = match queued.voice {
        MessageAuthor::Person => String::new(),
        MessageAuthor::Hook | MessageAuthor::Agent | MessageAuthor::Windlass => {
            format!(", as a message of {}", text::clean_line(&queued.source))
        }
    };
    let when = if alive { "with its next prompt" } else { "when the session is run again" };
    let name = out.paint(TextTone::Strong, &session.name).to_string();
    out.print_line(format_args!("the agent of {name} gets the message {when}{by}"))
}

/// Returns the only running session or, if none is running, the only unfinished one.
fn find_only_session(opened: &OpenedProject) -> Result<Session, Failure> {
    let sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.all_sessions().map_err(hints::store_failure)?;
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
