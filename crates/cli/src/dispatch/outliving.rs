//! Commands that only a person may give, from processes that an agent may have left behind or hidden.
//!
//! The rule: while a session has not ended, a command about it counts as a person's if the processes above it can be seen, the
//! session's runner is none of them, and the command has a controlling terminal or comes from a process that is older than the
//! session. An agent that kills its runner and lives on is younger.
//!
//! Not here: what an agent can do that takes a terminal for itself, or writes where the person writes. Only a sandbox keeps
//! it from that.

use windlass_engine::{Command, Event, EventType, RunId, Session, SessionName, TaskId, View};
use windlass_process::{can_see_ancestors, has_terminal, is_below, is_out_of_sight, may_outlive};
use windlass_store::Filter;

use crate::context::Opened;
use crate::failure::{Code, Failure};
use crate::{environment, remedy};

/// The sessions that a command is about.
#[derive(Clone, Copy)]
pub enum ConcernedSessions<'c> {
    Every,
    Of(&'c SessionName),
    /// The one that holds this task.
    Holding(TaskId),
}

impl ConcernedSessions<'_> {
    pub fn of(command: &Command) -> Self {
        command.subject().map_or(Self::Every, Self::Holding)
    }
}

/// Refuses a command that may come from the agent of a session that has not ended. A session that the command names as its own
/// (`run`) is left out: the engine takes the command for one of that session's agent.
pub fn refuse(opened: &Opened, concern: ConcernedSessions<'_>, run: Option<&RunId>) -> Result<(), Failure> {
    let (can_see, has_terminal) = (can_see_ancestors(), has_terminal());
    let is_own = |session: &Session| run.is_some_and(|run| run.session == session.name);
    let suspect = |session: &Session| !session.is_over() && !is_own(session);
    for session in concerned(opened, concern)?.into_iter().filter(suspect) {
        let (why, hint) = if !can_see {
            ("/proc does not show the processes above this one", "give the command where /proc can be read")
        } else if is_below(session.owner.as_str()) {
            ("its process is above this one", "give the command outside the run")
        } else if has_terminal {
            continue;
        } else if is_out_of_sight(&opened.project.owners(), session.owner.as_str()) {
            ("the process of the session is in another PID namespace", ON_A_TERMINAL)
        } else if may_be_left(opened, &session)? {
            ("this process has no terminal, and none above it is older than the session", ON_A_TERMINAL)
        } else {
            continue;
        };
        let message = format!("cannot tell a person from the agent of session `{}`, which has not ended", session.name);
        return Err(Failure::new(Code::Refused, message).caused_by(why).hint(hint));
    }
    Ok(())
}

const ON_A_TERMINAL: &str = "give the command on a terminal";

fn concerned(opened: &Opened, concern: ConcernedSessions<'_>) -> Result<Vec<Session>, Failure> {
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let name = match concern {
        ConcernedSessions::Every => return snapshot.sessions().map_err(remedy::store),
        ConcernedSessions::Of(name) => Some(name.clone()),
        ConcernedSessions::Holding(id) => {
            let task = snapshot.task(id).map_err(remedy::view)?;
            task.and_then(|task| task.lease).and_then(|lease| lease.session)
        }
    };
    let session = name.map(|name| snapshot.session(&name)).transpose().map_err(remedy::view)?;
    Ok(session.flatten().into_iter().collect())
}

/// Whether this process may be one that the session has started, and that has outlived its runner.
fn may_be_left(opened: &Opened, session: &Session) -> Result<bool, Failure> {
    let filter =
        Filter { types: vec![EventType::SessionStarted], session: Some(session.name.clone()), ..Filter::default() };
    let found = opened.store.read_back(&filter, None, 1).map_err(remedy::store)?;
    Ok(found.iter().any(|record| match &record.envelope.event {
        Event::SessionStarted(started) => {
            may_outlive(started.owner.as_str(), environment::now().since(record.envelope.timestamp))
        }
        _ => false,
    }))
}
