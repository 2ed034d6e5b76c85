//! `windlass say`: sends a message to the agent of a session that is running or unfinished.

use std::path::Path;

use serde_json::json;
use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::person::ConcernedSessions;
use windlass_app::{Code, Failure, execution, hints};
use windlass_engine::{Authority, Command, Event, Session, SessionName, Voice};
use windlass_text as text;

use super::input::read_text;
use crate::output::{Done, Output, Tone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass say \"Use the staging database\"        to the only session that runs
  windlass say \"Stop at the parser\" --session fix-the-login-3757e17e
  git diff | windlass say -                      standard input

The agent gets it with its next prompt, as a message from you. What it claims to have done before that is not believed.")]
pub struct Args {
    /// What to say; `-` reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// To which session [default: the only one that runs]
    #[arg(long, value_name = "NAME")]
    session: Option<SessionName>,
}

/// The largest number of sessions that a refusal names.
const NAMED: usize = 10;

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let text = if args.text == "-" { read_text(Path::new("-"))? } else { args.text };
    let mut opened = context.open()?;
    let session = match &args.session {
        Some(name) => opened.session(name)?,
        None => only(&opened)?,
    };
    let alive = opened.is_running(&session);
    let command = Command::Say { session: session.name.clone(), text };
    let inside = Inside::look_for_person(&opened, ConcernedSessions::Of(&session.name))?;
    let records = execution::execute_inside(&mut opened, inside, &command, Authority::Person)?;
    let queued = records.iter().find_map(|record| match &record.envelope.event {
        Event::FeedbackQueued(queued) => Some((record.seq, queued)),
        _ => None,
    });
    let Some((seq, queued)) = queued else { return Ok(()) };
    if out.is_json() {
        let said = json!({"session": session.name, "seq": seq, "source": queued.source, "voice": queued.voice, "running": alive});
        return out.object(&said);
    }
    let by = match queued.voice {
        Voice::Person => String::new(),
        Voice::Hook | Voice::Agent | Voice::Windlass => format!(", as a message of {}", text::line(&queued.source)),
    };
    let when = if alive { "with its next prompt" } else { "when the session is run again" };
    let name = out.paint(Tone::Strong, &session.name).to_string();
    out.line(format_args!("the agent of {name} gets it {when}{by}"))
}

/// Returns the only running session or, if none is running, the only unfinished one.
fn only(opened: &Opened) -> Result<Session, Failure> {
    let sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
    let open = sessions.into_iter().filter(|session| session.ended().is_none());
    let (running, left): (Vec<Session>, Vec<Session>) = open.partition(|session| opened.is_running(session));
    let mut found = if running.is_empty() { left } else { running };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(Code::NotFound, "no session is running")
            .hint("`windlass session list` shows the sessions; `windlass run GOAL` starts one")),
        many => {
            let names = found.iter().take(NAMED).map(|session| session.name.as_str()).collect::<Vec<_>>();
            Err(Failure::new(
                Code::Refused,
                format!("there are {many} sessions, and it is not clear which one is meant"),
            )
            .caused_by(names.join(", "))
            .hint("--session names one"))
        }
    }
}
