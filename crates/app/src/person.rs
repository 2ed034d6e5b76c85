//! Commands that only a person may give, checked against processes that an agent may have left behind or hidden.
//!
//! The rule covers commands about a session that has not ended, or that was resumed after its runner died. Such a command counts
//! as a person's if three things hold: the ancestors of this process are visible, the session's runner is none of them, and the
//! command has a controlling terminal or comes from a process that is older than the session. An agent that kills its runner and
//! lives on is younger.
//!
//! Not here: an agent that acquires a terminal of its own, or writes to the person's terminal. Only a sandbox prevents that.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_engine::{Command, Event, EventType, RunId, Session, SessionName, TaskId, View};
use windlass_process::{can_see_ancestors, has_terminal, is_below, is_below_supervisor, is_out_of_sight, may_outlive};
use windlass_store::{Filter, Lifetime};

use crate::caller::Inside;
use crate::context::Opened;
use crate::project::Project;
use crate::{Code, Failure, SUPERVISE, SilentFrontEnd, environment, hints, store_records};

/// The sessions that a command is about.
#[derive(Clone, Copy)]
pub enum ConcernedSessions<'c> {
    /// All open sessions, and the ended ones that worked on this task.
    Every(Option<TaskId>),
    Of(&'c SessionName),
    /// The session that holds this task, and those that worked on it.
    OfTask(TaskId),
}

impl ConcernedSessions<'_> {
    pub fn of(command: &Command) -> Self {
        use Command as C;
        let task = match command {
            C::StartSeries { task, .. } | C::ClearHooks { task, .. } | C::SwitchHook { task, .. } => Some(*task),
            _ => command.subject(),
        };
        task.map_or(Self::Every(None), Self::OfTask)
    }

    /// Returns all sessions, for a command that overrides the constraints of agents.
    pub fn every(command: &Command) -> Self {
        Self::Every(command.subject())
    }
}

/// Refuses a command that may come from the agent of a session that it is about. The session that the command names as its own
/// (`run`) is left out: the engine treats the command as one of that session's agent.
pub fn refuse(opened: &Opened, concern: ConcernedSessions<'_>, run: Option<&RunId>) -> Result<(), Failure> {
    let (can_see, has_terminal) = (can_see_ancestors(), has_terminal());
    let is_own = |session: &Session| run.is_some_and(|run| run.session == session.name);
    let mut sessions = under_way(opened, concern)?;
    if !can_see || !has_terminal {
        sessions.extend(ended(opened, concern)?);
    }
    sessions.retain(|session| !is_own(session));
    for session in sessions {
        let (why, hint) = if !can_see {
            (NOT_SHOWN, "give the command where /proc can be read")
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
        let state = if session.is_over() { "was gone on with after its runner had died" } else { "has not ended" };
        let message = format!("cannot tell a person from the agent of session `{}`, which {state}", session.name);
        return Err(Failure::new(Code::Refused, message).caused_by(why).hint(hint));
    }
    Ok(())
}

/// Refuses a decision about trust unless a person makes it. An agent can move the store away or replace it, so no process below a
/// run in the project counts as a person's, whatever the store says.
pub fn require_person(project: &Project) -> Result<(), Failure> {
    let refused = |cause| {
        Failure::new(Code::Trust, "only a person can trust a project")
            .caused_by(cause)
            .hint("say it in a terminal of your own, outside the run")
    };
    let asks = || refused("an agent or a hook asks");
    let is_elsewhere = environment::project_of_run().is_some_and(|of_run| of_run != project.root);
    let is_told = environment::run().is_some() || environment::effect().is_some();
    if is_told && !is_elsewhere || is_below_supervisor(SUPERVISE, &project.root) {
        return Err(asks());
    }
    let Ok((store, _)) = store_records::open_quietly(project, Lifetime::Command, false) else {
        let is_hidden = store_records::has_record(project) && !can_see_ancestors();
        return if is_hidden { Err(refused(NOT_SHOWN)) } else { Ok(()) };
    };
    let opened = Opened { project: project.clone(), store, trust: false, front_end: Arc::new(SilentFrontEnd) };
    let inside = Inside::look_for_person(&opened, ConcernedSessions::Every(None))?;
    if inside.run.is_some() || inside.via.is_some() { Err(asks()) } else { Ok(()) }
}

const NOT_SHOWN: &str = "/proc does not show the processes above this one";
const ON_A_TERMINAL: &str = "give the command on a terminal (`ssh -t`, `docker exec -t`)";

/// Returns the sessions of a command that have not ended.
fn under_way(opened: &Opened, concern: ConcernedSessions<'_>) -> Result<Vec<Session>, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let name = match concern {
        ConcernedSessions::Every(_) => {
            let sessions = snapshot.sessions().map_err(hints::store)?;
            return Ok(sessions.into_iter().filter(|session| !session.is_over()).collect());
        }
        ConcernedSessions::Of(name) => Some(name.clone()),
        ConcernedSessions::OfTask(id) => {
            let task = snapshot.task(id).map_err(hints::view)?;
            task.and_then(|task| task.lease).and_then(|lease| lease.session)
        }
    };
    let session = name.map(|name| snapshot.session(&name)).transpose().map_err(hints::view)?;
    Ok(session.flatten().into_iter().filter(|session| !session.is_over()).collect())
}

/// Returns the sessions of a command that have ended and were resumed before. Other ended sessions left no process: a process
/// that outlives its session has also outlived a runner.
fn ended(opened: &Opened, concern: ConcernedSessions<'_>) -> Result<Vec<Session>, Failure> {
    let id = match concern {
        ConcernedSessions::Every(Some(id)) | ConcernedSessions::OfTask(id) => id,
        ConcernedSessions::Every(None) | ConcernedSessions::Of(_) => return Ok(Vec::new()),
    };
    let mut sessions = opened.store.snapshot().and_then(|snapshot| snapshot.sessions()).map_err(hints::store)?;
    sessions.retain(|session| session.is_over() && session.has_taken_up(id));
    // The log has no index of types, so it is read only if there is a candidate.
    if !sessions.is_empty() {
        let filter = Filter { types: vec![EventType::SessionResumed], ..Filter::default() };
        let resumed = opened.store.read_back(&filter, None, usize::MAX).map_err(hints::store)?;
        let names: BTreeSet<_> = resumed.into_iter().filter_map(|record| record.envelope.session).collect();
        sessions.retain(|session| names.contains(&session.name));
    }
    Ok(sessions)
}

/// Returns whether the session may have started this process, and the process has outlived the session's runner.
fn may_be_left(opened: &Opened, session: &Session) -> Result<bool, Failure> {
    let filter =
        Filter { types: vec![EventType::SessionStarted], session: Some(session.name.clone()), ..Filter::default() };
    let found = opened.store.read_back(&filter, None, 1).map_err(hints::store)?;
    Ok(found.iter().any(|record| match &record.envelope.event {
        Event::SessionStarted(started) => {
            may_outlive(started.owner.as_str(), environment::now().since(record.envelope.timestamp))
        }
        _ => false,
    }))
}
