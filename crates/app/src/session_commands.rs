//! What a person does to a session from any front end: a message to its agent, and its cancellation.
//!
//! Not here: answers to a session that asks (`answers`).

use std::fmt::{self, Display};

use windlass_engine::{Authority, Command, Event, EventRecord, MessageAuthor, Seq, Session, SessionName};
use windlass_text as text;

use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::person::ConcernedSessions;
use crate::session_view::SessionView;
use crate::{Failure, execution};

/// A message that waits for the next prompt of a session.
#[derive(Debug)]
pub struct MessageReport {
    pub session: SessionName,
    /// The position of the message in the log.
    pub seq: Seq,
    pub source: String,
    pub voice: MessageAuthor,
    /// Whether a living process runs the session.
    pub is_running: bool,
}

impl MessageReport {
    /// Describes when the agent gets the message, and from whom unless a person sent it.
    pub fn describe_delivery(&self) -> String {
        let when = if self.is_running { "with its next prompt" } else { "when the session is run again" };
        let by = match self.voice {
            MessageAuthor::Person => String::new(),
            MessageAuthor::Hook | MessageAuthor::Agent | MessageAuthor::Windlass => {
                format!(", as a message of {}", text::clean_line(&self.source))
            }
        };
        format!("gets the message {when}{by}")
    }
}

impl Display for MessageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent of {} {}", self.session, self.describe_delivery())
    }
}

/// Sends a message to the agent of a session that has not ended.
pub fn say_to_session(opened: &mut OpenedProject, session: &Session, text: String) -> Result<MessageReport, Failure> {
    let is_running = opened.is_session_running(session);
    let records = execute_about_session(opened, session, &Command::Say { session: session.name.clone(), text })?;
    let queued = records.iter().find_map(|record| match &record.envelope.event {
        Event::FeedbackQueued(queued) => Some((record.seq, queued)),
        _ => None,
    });
    let (seq, queued) = queued.expect("an accepted message is queued");
    let (session, source, voice) = (session.name.clone(), queued.source.clone(), queued.voice);
    Ok(MessageReport { session, seq, source, voice, is_running })
}

/// A session that is cancelled, or has to be ended by another command.
pub struct CancelReport {
    /// The session after the command.
    pub view: SessionView,
    /// Whether its process was told to end it at once.
    pub woken: bool,
}

impl CancelReport {
    /// Describes how the session ends.
    pub fn describe_end(&self) -> &'static str {
        match (self.view.session.is_over(), self.view.alive, self.woken) {
            (true, ..) => "has ended",
            (false, true, true) => "is being ended",
            (false, true, false) => "ends after its current step",
            (false, false, _) => "has to end, but no process runs it: `windlass doctor --settle` ends it",
        }
    }
}

impl Display for CancelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.view.session.name, self.describe_end())
    }
}

/// Cancels a session. Its process ends it in order.
pub fn cancel_session(
    opened: &mut OpenedProject,
    session: &Session,
    reason: Option<String>,
) -> Result<CancelReport, Failure> {
    execute_about_session(opened, session, &Command::CancelSession { name: session.name.clone(), reason })?;
    // The command is in the log before the owner is woken, because the owner reads it there.
    let woken = windlass_process::wake_owner(&opened.project.owner_directory(), session.owner.as_str());
    let view = SessionView::from_session(opened, opened.require_session(&session.name)?);
    Ok(CancelReport { view, woken })
}

/// Executes a command about a session, unless its agent may have given it.
fn execute_about_session(
    opened: &mut OpenedProject,
    session: &Session,
    command: &Command,
) -> Result<Vec<EventRecord>, Failure> {
    let inside = CallerContext::detect_for_person(opened, ConcernedSessions::Named(&session.name))?;
    execution::execute_with_caller(opened, inside, command, Authority::Person)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_report_names_its_time_and_other_senders() {
        let report = |is_running, voice| MessageReport {
            session: "mend-the-pump".parse().unwrap(),
            seq: Seq(7),
            source: "T2\u{1b}".to_owned(),
            voice,
            is_running,
        };
        let said = report(true, MessageAuthor::Person).to_string();
        assert_eq!(said, "the agent of mend-the-pump gets the message with its next prompt");
        let said = report(false, MessageAuthor::Agent).to_string();
        let expected = "the agent of mend-the-pump gets the message when the session is run again, as a message of T2";
        assert!(said.starts_with(expected) && !said.contains('\u{1b}'), "{said}");
    }
}
