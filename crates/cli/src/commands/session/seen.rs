//! Where a session stands, in words, and what somebody could type next.

use windlass_engine::{Effect, Ending, Session, TaskId, View, Wanted};
use windlass_store::Snapshot;

use crate::commands::run::Again;
use crate::context::Opened;
use crate::failure::Failure;
use crate::output::Tone;
use crate::{remedy, show};

/// Whether somebody alive runs a session.
pub fn is_alive(opened: &Opened, session: &Session) -> bool {
    windlass_process::is_alive(&opened.project.owners(), session.owner.as_str())
}

/// A session, and whether anybody runs it.
pub struct Seen {
    pub session: Session,
    pub alive: bool,
}

/// A command, and what it is good for.
pub struct Next {
    pub command: String,
    pub what: &'static str,
}

impl Seen {
    pub fn of(opened: &Opened, session: Session) -> Self {
        let alive = is_alive(opened, &session);
        Self { session, alive }
    }

    /// In a word for programs. A session that has ended is still running while its last hooks do.
    pub fn state(&self) -> &'static str {
        match (self.session.is_over(), self.alive) {
            (true, _) => "ended",
            (false, true) => "running",
            (false, false) => "unfinished",
        }
    }

    /// In a few words for people.
    pub fn words(&self) -> (Tone, String) {
        match (self.session.ended().filter(|_| self.session.is_over()), self.alive, &self.session.stopping) {
            (Some(ending), ..) => {
                let (tone, word) = show::ending_word(ending);
                (tone, word.to_owned())
            }
            _ if self.session.wanted() == Wanted::Answer => (Tone::Warning, "asks a person".to_owned()),
            (None, true, None) => (Tone::Name, "running".to_owned()),
            (None, true, Some(_)) => (Tone::Name, "ending".to_owned()),
            (None, false, None) => (Tone::Warning, "unfinished".to_owned()),
            (None, false, Some(_)) => (Tone::Warning, "unfinished, to be ended".to_owned()),
        }
    }

    /// What it waits for.
    pub fn waits_for(&self, snapshot: &Snapshot<'_>) -> Result<Option<String>, Failure> {
        let session = &self.session;
        Ok(match session.wanted() {
            Wanted::Nothing => None,
            Wanted::Workspace => Some("a worktree for its task".to_owned()),
            Wanted::Work => Some("its work to be committed, so that it can be submitted".to_owned()),
            Wanted::Decision => Some("whoever runs it, to go on".to_owned()),
            Wanted::Answer => Some("a person: stop hooks block, and may not send the agent back again".to_owned()),
            Wanted::Moment(until) => Some(format!("the agent's rate limit to end, at {}", show::moment(until))),
            Wanted::Turn(_) if session.turn().is_some_and(|turn| turn.purpose.is_delivery()) => {
                Some("the agent, which hears what is pending".to_owned())
            }
            Wanted::Turn(_) if self.alive => Some("the agent, which has the word".to_owned()),
            Wanted::Turn(_) => Some("the agent, whose turn was cut off".to_owned()),
            Wanted::Hook(debt) => {
                let owed = snapshot.debt(debt).map_err(remedy::view)?;
                Some(match owed.map(|owed| owed.effect) {
                    Some(Effect::Hook(hook)) => format!("the hook {} at {}", hook.hook, hook.point),
                    _ => "a hook".to_owned(),
                })
            }
        })
    }

    /// What could be typed next.
    pub fn next(&self, opened: &Opened) -> Result<Vec<Next>, Failure> {
        let name = &self.session.name;
        let next = |command: String, what| Next { command, what };
        if self.session.wanted() == Wanted::Answer {
            let answer = format!("windlass answer {name} continue \"…\"");
            return Ok(vec![next(answer, "send the agent back; or ignore-hook, reject")]);
        }
        if !self.session.is_over() && self.alive {
            return Ok(vec![
                next(format!("windlass session logs {name} --follow"), "watch it"),
                next(format!("windlass say \"…\" --session {name}"), "say something to the agent"),
                next(format!("windlass session cancel {name}"), "end it"),
            ]);
        }
        let why = next(format!("windlass why {name}"), "see who decided what");
        Ok(match (self.session.is_over(), &self.session.stopping, self.session.ended(), self.session.task) {
            (false, None, None, _) => vec![
                next(Again::with_session(opened, &self.session).line(), "go on with it"),
                next(format!("windlass session cancel {name}"), "have it ended"),
            ],
            (false, ..) => vec![next("windlass doctor --settle".to_owned(), "do what is left of its end")],
            (true, _, Some(Ending::Escalated), Some(id)) => vec![why, answer(id)],
            (true, _, Some(Ending::Completed), _) | (true, _, _, None) => vec![why],
            (true, _, _, Some(id)) => vec![why, next(Again::with_task(opened, id)?.line(), "try again")],
        })
    }
}

/// How somebody answers a task that waits for a person.
pub fn answer(id: TaskId) -> Next {
    Next {
        command: format!("windlass answer {id} continue \"…\""),
        what: "answer it; or retry, approve, reject, ignore-hook",
    }
}
