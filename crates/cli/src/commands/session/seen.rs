//! Where a session stands, in words, and what somebody could type next.

use windlass_app::context::Opened;
use windlass_app::{Failure, hints};
use windlass_engine::{Effect, Ending, Purpose, Session, State, TaskId, View, Wanted};
use windlass_store::Snapshot;

use crate::commands::next_step::{NextStep, answer_gate, next_step};
use crate::commands::run::Again;
use crate::output::Tone;
use crate::show;

/// So many tasks are named.
const NAMED: usize = 8;

/// Whether somebody alive runs a session.
pub fn is_alive(opened: &Opened, session: &Session) -> bool {
    windlass_process::is_alive(&opened.project.owners(), session.owner.as_str())
}

/// A session, and whether anybody runs it.
pub struct Seen {
    pub session: Session,
    pub alive: bool,
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
            Wanted::Moment(until) if !session.is_rate_limited() => {
                Some(format!("the next try after a failure, at {}", show::moment(until)))
            }
            Wanted::Moment(until) => Some(format!("the agent's rate limit to end, at {}", show::moment(until))),
            Wanted::Turn(_) if session.turn().is_some_and(|turn| turn.purpose == Purpose::Delivery) => {
                Some("the agent, which hears what is pending".to_owned())
            }
            Wanted::Turn(_) if self.alive => Some("the agent, which has the word".to_owned()),
            Wanted::Turn(_) => Some("the agent, whose turn was cut off".to_owned()),
            Wanted::Hook(debt) => {
                let owed = snapshot.debt(debt).map_err(hints::view)?;
                Some(match owed.map(|owed| owed.effect) {
                    Some(Effect::Hook(hook)) => format!("the hook {} at {}", hook.hook, hook.point),
                    _ => "a hook".to_owned(),
                })
            }
        })
    }

    /// What could be typed next, as its task stands now.
    pub fn next(&self, opened: &Opened) -> Result<Vec<NextStep>, Failure> {
        let name = &self.session.name;
        if self.session.wanted() == Wanted::Answer {
            return Ok(vec![answer_gate(opened, name)]);
        }
        if !self.session.is_over() && self.alive {
            return Ok(vec![
                NextStep::new(format!("windlass session logs {name} --follow"), "watch it"),
                NextStep::new(format!("windlass say \"…\" --session {name}"), "say something to the agent"),
                NextStep::new(format!("windlass session cancel {name}"), "end it"),
            ]);
        }
        let why = NextStep::new(format!("windlass why {name}"), "see who decided what");
        Ok(match (self.session.is_over(), &self.session.stopping, self.session.ended()) {
            (false, None, None) => vec![
                Again::with_session(opened, &self.session).step("go on with it"),
                NextStep::new(format!("windlass session cancel {name}"), "have it ended"),
            ],
            (false, ..) => vec![NextStep::new("windlass doctor --settle", "do what is left of its end")],
            (true, _, Some(Ending::Completed)) => vec![why],
            (true, ..) => {
                let tasks = self.left_tasks().into_iter().map(|id| of_task(opened, id));
                let tasks: Vec<Option<NextStep>> = tasks.collect::<Result<_, _>>()?;
                std::iter::once(why).chain(tasks.into_iter().flatten()).collect()
            }
        })
    }

    /// The tasks that it has not brought to their end: those that were left to a person, and the last one.
    fn left_tasks(&self) -> Vec<TaskId> {
        let last = self.session.task.filter(|id| !self.session.escalated.contains(id));
        self.session.escalated.iter().copied().chain(last).take(NAMED).collect()
    }
}

/// What could be typed next for a task that a session has left, if a person can do anything about it now.
fn of_task(opened: &Opened, id: TaskId) -> Result<Option<NextStep>, Failure> {
    let task = opened.task(id)?;
    let is_over = matches!(task.state, State::Completed | State::Deleted);
    if is_over || task.lease.is_some() { Ok(None) } else { next_step(opened, id) }
}
