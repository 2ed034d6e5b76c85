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

use windlass_engine::{Command, Event, EventType, RunId, Session, SessionName, StateView, TaskId};
use windlass_process::{
    can_see_ancestors, has_controlling_terminal, is_below_owner, is_below_supervisor, is_owner_in_other_namespace,
    may_be_left_by_owner,
};
use windlass_store::{EventFilter, Lifetime};

use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::project::Project;
use crate::{Failure, FailureCode, SUPERVISE_ARGUMENT, SilentFrontEnd, environment, hints, store_records};

/// The sessions that a command is about.
#[derive(Clone, Copy)]
pub enum ConcernedSessions<'c> {
    /// All open sessions, and the ended ones that worked on this task.
    Every(Option<TaskId>),
    Named(&'c SessionName),
    /// The session that holds this task, and those that worked on it.
    OfTask(TaskId),
}

impl ConcernedSessions<'_> {
    pub fn of_command_subject(command: &Command) -> Self {
        use Command as C;
        let task = match command {
            C::StartSeries { task, .. } | C::ClearHooks { task, .. } | C::SwitchHook { task, .. } => Some(*task),
            _ => command.subject_task(),
        };
        task.map_or(Self::Every(None), Self::OfTask)
    }

    /// Returns all sessions, for a command that overrides the constraints of agents.
    pub fn every_session_for(command: &Command) -> Self {
        Self::Every(command.subject_task())
    }
}

/// Refuses a command that may come from the agent of a session that it is about. The session that the command names as its own
/// (`run`) is left out: the engine treats the command as one of that session's agent.
pub fn refuse_possible_agent(
    opened: &OpenedProject,
    concern: ConcernedSessions<'_>,
    run: Option<&RunId>,
) -> Result<(), Failure> {
    let (can_see, has_terminal) = (can_see_ancestors(), has_controlling_terminal());
    let is_own = |session: &Session| run.is_some_and(|run| run.session == session.name);
    let mut sessions = list_unfinished_sessions(opened, concern)?;
    if !can_see || !has_terminal {
        sessions.extend(list_ended_resumed_sessions(opened, concern)?);
    }
    sessions.retain(|session| !is_own(session));
    for session in sessions {
        let (why, hint) = if !can_see {
            (ANCESTORS_HIDDEN, "give the command where /proc can be read")
        } else if is_below_owner(session.owner.as_str()) {
            ("its process is above this one", "give the command outside the run")
        } else if has_terminal || opened.project.other_machine(session.owner.as_str()).is_some() {
            // The agent of another machine leaves no process here.
            continue;
        } else if is_owner_in_other_namespace(&opened.project.owner_directory(), session.owner.as_str()) {
            ("the process of the session is in another PID namespace", TERMINAL_HINT)
        } else if may_have_outlived_runner(opened, &session)? {
            ("this process has no terminal, and none above it is older than the session", TERMINAL_HINT)
        } else {
            continue;
        };
        let state = if session.is_over() { "was resumed after its runner had died" } else { "has not ended" };
        let message = format!("cannot tell a person from the agent of session `{}`, which {state}", session.name);
        return Err(Failure::new(FailureCode::Refused, message).with_cause(why).with_hint(hint));
    }
    Ok(())
}

/// Refuses a decision about trust unless a person makes it. An agent can move the store away or replace it, so no process below a
/// run in the project counts as a person's, whatever the store says.
pub fn require_person(project: &Project) -> Result<(), Failure> {
    let refused = |cause| {
        Failure::new(FailureCode::Trust, "only a person can trust a project")
            .with_cause(cause)
            .with_hint("run it in a terminal of your own, outside the run")
    };
    let asks = || refused("an agent or a hook asks");
    let is_elsewhere = environment::run_project_directory().is_some_and(|of_run| of_run != project.root);
    let is_told = environment::run_variable().is_some() || environment::effect_variable().is_some();
    if is_told && !is_elsewhere || is_below_supervisor(SUPERVISE_ARGUMENT, &project.root) {
        return Err(asks());
    }
    let Ok((store, _)) = store_records::open_store_to_read(project, Lifetime::Command, false) else {
        let is_hidden = store_records::has_store_record(project) && !can_see_ancestors();
        return if is_hidden { Err(refused(ANCESTORS_HIDDEN)) } else { Ok(()) };
    };
    let opened = OpenedProject::new(project.clone(), store, false, Arc::new(SilentFrontEnd));
    let inside = CallerContext::detect_for_person(&opened, ConcernedSessions::Every(None))?;
    if inside.run.is_some() || inside.via.is_some() { Err(asks()) } else { Ok(()) }
}

const ANCESTORS_HIDDEN: &str = "/proc does not show the processes above this one";
const TERMINAL_HINT: &str = "give the command on a terminal (`ssh -t`, `docker exec -t`)";

/// Returns the sessions of a command that have not ended.
fn list_unfinished_sessions(opened: &OpenedProject, concern: ConcernedSessions<'_>) -> Result<Vec<Session>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let name = match concern {
        ConcernedSessions::Every(_) => {
            return snapshot.open_sessions().map_err(hints::store_failure);
        }
        ConcernedSessions::Named(name) => Some(name.clone()),
        ConcernedSessions::OfTask(id) => {
            let task = snapshot.find_task(id).map_err(hints::view_failure)?;
            task.and_then(|task| task.lease).and_then(|lease| lease.session)
        }
    };
    let session = name.map(|name| snapshot.find_session(&name)).transpose().map_err(hints::view_failure)?;
    Ok(session.flatten().into_iter().filter(|session| !session.is_over()).collect())
}

/// Returns the sessions of a command that have ended and were resumed before. Other ended sessions left no process: a process
/// that outlives its session has also outlived a runner.
fn list_ended_resumed_sessions(
    opened: &OpenedProject,
    concern: ConcernedSessions<'_>,
) -> Result<Vec<Session>, Failure> {
    let id = match concern {
        ConcernedSessions::Every(Some(id)) | ConcernedSessions::OfTask(id) => id,
        ConcernedSessions::Every(None) | ConcernedSessions::Named(_) => return Ok(Vec::new()),
    };
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let claims = EventFilter { types: vec![EventType::TaskClaimed], task: Some(id), ..EventFilter::default() };
    let claims = opened.store.read_events_back(&claims, None, usize::MAX).map_err(hints::store_failure)?;
    let names: BTreeSet<SessionName> = claims.into_iter().filter_map(|record| record.envelope.session).collect();
    let mut found = Vec::new();
    for name in names {
        let session = snapshot.find_session(&name).map_err(hints::view_failure)?;
        let Some(session) = session.filter(Session::is_over) else { continue };
        let types = vec![EventType::SessionResumed];
        let filter = EventFilter { types, session: Some(name), ..EventFilter::default() };
        let resumed = opened.store.read_events_back(&filter, None, 1).map_err(hints::store_failure)?;
        found.extend((!resumed.is_empty()).then_some(session));
    }
    Ok(found)
}

/// Returns whether the session may have started this process, and the process has outlived the session's runner.
fn may_have_outlived_runner(opened: &OpenedProject, session: &Session) -> Result<bool, Failure> {
    let found = opened.store.read_event(session.started).map_err(hints::store_failure)?;
    Ok(found.is_some_and(|record| match &record.envelope.event {
        Event::SessionStarted(started) => may_be_left_by_owner(
            started.owner.as_str(),
            environment::current_timestamp().elapsed_since(record.envelope.timestamp),
        ),
        _ => false,
    }))
}
