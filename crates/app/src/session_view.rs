//! The view of a session: its state, what it waits for, and the next commands.

use windlass_engine::{EffectKind, Ending, Purpose, Session, State, TaskId, View, Wanted};
use windlass_store::Snapshot;

use crate::context::Opened;
use crate::next_step::{answer_gate, next_step};
use crate::resume_command::ResumeCommand;
use crate::typed_step::NextStep;
use crate::{Failure, hints, times};

/// How many tasks are named.
const NAMED: usize = 8;

/// A session, and whether a living process runs it.
pub struct SessionView {
    pub session: Session,
    pub alive: bool,
}

impl SessionView {
    pub fn of(opened: &Opened, session: Session) -> Self {
        let alive = opened.is_running(&session);
        Self { session, alive }
    }

    /// Returns the state as a word for programs. A session that has ended is still running while its last hooks run.
    pub fn state(&self) -> &'static str {
        match (self.session.is_over(), self.alive) {
            (true, _) => "ended",
            (false, true) => "running",
            (false, false) => "unfinished",
        }
    }

    /// Returns what the session waits for.
    pub fn waits_for(&self, snapshot: &Snapshot<'_>) -> Result<Option<String>, Failure> {
        let session = &self.session;
        Ok(match session.wanted() {
            Wanted::Nothing => None,
            Wanted::Workspace => Some("a worktree for its task".to_owned()),
            Wanted::Work => Some("its work to be committed, so that it can be submitted".to_owned()),
            Wanted::Decision => Some("its process, to go on".to_owned()),
            Wanted::Answer => Some("a person: stop hooks block, and may not send the agent back again".to_owned()),
            Wanted::Moment(until) if !session.is_rate_limited() => {
                Some(format!("the next try after a failure, at {}", times::moment(until)))
            }
            Wanted::Moment(until) => Some(format!("the agent's rate limit to end, at {}", times::moment(until))),
            Wanted::Turn(_) if session.turn().is_some_and(|turn| turn.purpose == Purpose::Delivery) => {
                Some("the agent, which hears what is pending".to_owned())
            }
            Wanted::Turn(_) if self.alive => Some("the agent, which has the word".to_owned()),
            Wanted::Turn(_) => Some("the agent, whose turn was cut off".to_owned()),
            Wanted::Hook(effect) => {
                let owed = snapshot.effect(effect).map_err(hints::view)?;
                Some(match owed.map(|owed| owed.kind) {
                    Some(EffectKind::Hook(hook)) => format!("the hook {} at {}", hook.hook, hook.point),
                    _ => "a hook".to_owned(),
                })
            }
        })
    }

    /// Returns the next commands for a person, in the present state of the session's task.
    pub fn next_steps(&self, opened: &Opened) -> Result<Vec<NextStep>, Failure> {
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
                ResumeCommand::for_session(opened, &self.session).step("go on with it"),
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

    /// Returns the unfinished tasks of the session: those left to a person, and the last one.
    fn left_tasks(&self) -> Vec<TaskId> {
        let last = self.session.task.filter(|id| !self.session.escalated.contains(id));
        self.session.escalated.iter().copied().chain(last).take(NAMED).collect()
    }
}

/// Returns the next command for a task that a session has left, if a person can act on it now.
fn of_task(opened: &Opened, id: TaskId) -> Result<Option<NextStep>, Failure> {
    let task = opened.task(id)?;
    let is_over = matches!(task.state, State::Completed | State::Deleted);
    if is_over || task.lease.is_some() { Ok(None) } else { next_step(opened, id) }
}
