//! The choice of a session for a run: an unfinished one, or a new one.

use std::time::{Duration, Instant};

use windlass_engine::{Digest, Seq, Session, SessionName, StateView, Task, TaskHold, TaskId, TaskState, WorkSource};
use windlass_store::{EventFilter, SqliteStore, Store};

use super::conflict::check_conflict;
use super::ended_lease::find_next_ended_lease;
use super::run_target::{RunRequest, RunTarget};
use super::session_tally::SessionTally;
use super::task_check::check_task_workable;
use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::project::Project;
use crate::resume_command::ResumeCommand;
use crate::{Failure, FailureCode, hints};

/// The longest part of a session's name that comes from the goal, in characters.
const MAX_SLUG_LENGTH: usize = 32;
/// How long a killed process may seem to be alive.
const OWNER_DEATH_GRACE: Duration = Duration::from_millis(250);

/// The session of a run.
#[derive(Debug)]
pub enum SessionChoice {
    New(SessionName),
    Resume(Box<Session>),
}

impl SessionChoice {
    pub fn session_name(&self) -> &SessionName {
        match self {
            Self::New(name) => name,
            Self::Resume(session) => &session.name,
        }
    }

    /// Returns the unfinished session.
    pub fn resumed_session(&self) -> Option<&Session> {
        match self {
            Self::New(_) => None,
            Self::Resume(session) => Some(session),
        }
    }

    /// Returns whether another process has begun or resumed the session since it was chosen.
    pub fn is_stale(&self, store: &SqliteStore) -> Result<bool, Failure> {
        let session = store
            .begin_snapshot()
            .map_err(hints::store_failure)?
            .find_session(self.session_name())
            .map_err(hints::view_failure)?;
        Ok(match (self, session) {
            (Self::New(_), session) => session.is_some(),
            (Self::Resume(chosen), Some(session)) => session.owner != chosen.owner || session.is_over(),
            (Self::Resume(_), None) => false,
        })
    }

    /// Returns where the session gets its work from.
    pub fn work_source(&self, target: RunTarget<'_>) -> WorkSource {
        match self {
            Self::New(_) => target.work_source(),
            Self::Resume(session) => session.work,
        }
    }
}

/// Returns the session that a request means: the one of that name, else the last unfinished one with the same target. A session
/// that a living process runs is refused, but the graph may have several.
pub fn choose_session(
    opened: &OpenedProject,
    request: &RunRequest,
    target: RunTarget<'_>,
) -> Result<SessionChoice, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    if let Some(name) = &request.session {
        return match snapshot.find_session(name).map_err(hints::view_failure)? {
            None => choose_new_session(opened, request, target, name.clone()),
            Some(session) if session.is_over() || request.fresh => {
                Err(Failure::new(FailureCode::Refused, format!("session `{name}` exists already"))
                    .with_hint("choose another name, or none"))
            }
            Some(session) => {
                // A request with only a session's name fits whatever that session works on.
                let meant = target == RunTarget::Graph || target.is_target_of(&session);
                match meant {
                    true => choose_resumed_session(opened, session, request, target),
                    false => Err(Failure::new(FailureCode::Refused, format!("session `{name}` has another goal"))
                        .with_hint("choose another name, or none")),
                }
            }
        };
    }
    let sessions = snapshot.open_sessions().map_err(hints::store_failure)?;
    let left = sessions.iter().filter(|session| target.is_target_of(session) && !request.fresh);
    // A living session that has lost its task does not block another run.
    let beside = |session: &Session| {
        target == RunTarget::Graph || (matches!(target, RunTarget::Task(_)) && session.hold == TaskHold::Left)
    };
    let free = |session: &&Session| !beside(session) || !is_owner_still_alive(&opened.project, session.owner.as_str());
    match left.filter(free).max_by_key(|session| session.version) {
        Some(session) => choose_resumed_session(opened, session.clone(), request, target),
        None => {
            let base = match target {
                RunTarget::Goal(goal) => session_name_base(goal),
                RunTarget::Task(id) => name_after_task(&snapshot, id)?,
                RunTarget::Graph => "tasks".to_owned(),
            };
            choose_new_session(opened, request, target, find_unused_name(&snapshot, &base)?)
        }
    }
}

/// Chooses a new session, if there is work for it.
fn choose_new_session(
    opened: &OpenedProject,
    request: &RunRequest,
    target: RunTarget<'_>,
    name: SessionName,
) -> Result<SessionChoice, Failure> {
    match (request.conflicting_task(), target) {
        (Some(id), _) => check_conflict(opened, id)?,
        (None, RunTarget::Task(id)) => check_task_workable(opened, id)?,
        (None, RunTarget::Goal(_)) => check_last_task_of_goal(opened, request, target)?,
        (None, RunTarget::Graph) => {}
    }
    Ok(SessionChoice::New(name))
}

/// Refuses a goal whose last task waits for a person: a second task would ignore the work of that one.
fn check_last_task_of_goal(opened: &OpenedProject, request: &RunRequest, target: RunTarget<'_>) -> Result<(), Failure> {
    let Some(task) =
        find_last_task_of_goal(&opened.store, request, target)?.filter(|task| task.state == TaskState::Blocked)
    else {
        return Ok(());
    };
    check_task_workable(opened, task.id).map_err(|mut failure| {
        let other = "`--fresh` starts another task with this goal";
        let hint = failure.hint.take().map_or_else(|| other.to_owned(), |hint| format!("{hint}; {other}"));
        failure.with_hint(hint)
    })
}

/// Returns the task that the last session with this goal has left unfinished, or that a person has answered since.
pub fn find_left_task(
    store: &SqliteStore,
    request: &RunRequest,
    target: RunTarget<'_>,
) -> Result<Option<TaskId>, Failure> {
    let waits =
        |task: &Task| matches!(task.state, TaskState::Ready | TaskState::NeedsContinuation) && task.lease.is_none();
    Ok(find_last_task_of_goal(store, request, target)?.filter(waits).map(|task| task.id))
}

/// Returns the task of the last session with this goal.
fn find_last_task_of_goal(
    store: &SqliteStore,
    request: &RunRequest,
    target: RunTarget<'_>,
) -> Result<Option<Task>, Failure> {
    let (RunTarget::Goal(_), false) = (target, request.fresh) else { return Ok(None) };
    let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
    let sessions = snapshot.all_sessions().map_err(hints::store_failure)?;
    let last = sessions.iter().filter(|session| target.is_target_of(session)).max_by_key(|session| session.started);
    let Some(id) = last.and_then(|session| session.task) else { return Ok(None) };
    snapshot.find_task(id).map_err(hints::view_failure)
}

/// Returns whether a session of the graph would find a task.
pub fn has_ready_task(store: &SqliteStore) -> Result<bool, Failure> {
    let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
    let claimable = snapshot.next_claimable(None).map_err(hints::view_failure)?.is_some();
    Ok(claimable || find_next_ended_lease(&snapshot, None)?.is_some())
}

fn choose_resumed_session(
    opened: &OpenedProject,
    session: Session,
    request: &RunRequest,
    target: RunTarget<'_>,
) -> Result<SessionChoice, Failure> {
    let name = &session.name;
    // A task has one holder, and a name belongs to one session.
    let fresh = match (&request.session, target) {
        (None, RunTarget::Goal(_) | RunTarget::Graph) => "; --fresh starts another session",
        _ => "",
    };
    if let Some(machine) = opened.project.other_machine(session.owner.as_str()) {
        let place = machine.name();
        return Err(Failure::new(FailureCode::Refused, format!("session `{name}` runs on {place}"))
            .with_cause("only that machine can resume it")
            .with_hint(format!(
                "wait for it; `windlass session cancel {name}` ends it there; once {place} has been silent for \
                 `limits.lease`, another run takes its task{fresh}"
            )));
    }
    if is_owner_still_alive(&opened.project, session.owner.as_str()) {
        return Err(Failure::new(FailureCode::Refused, format!("session `{name}` is running"))
            .with_cause(format!("{} is alive", session.owner))
            .with_hint(match CallerContext::detect_from_variables(opened)?.run {
                // An agent may not cancel sessions.
                Some(_) => format!("end the turn: the session continues by itself{fresh}"),
                None => format!("wait for it; `windlass session cancel {name}` ends it{fresh}"),
            }));
    }
    if request.agent.as_ref().is_some_and(|agent| *agent != session.agent) {
        let again = ResumeCommand::for_session(opened, &session).describe_in_sentence("resumes it");
        return Err(Failure::new(FailureCode::Refused, format!("session `{name}` was started with another agent"))
            .with_cause(format!("it works with `{}`", session.agent))
            .with_hint(format!("{again}{fresh}")));
    }
    Ok(SessionChoice::Resume(Box::new(session)))
}

/// Returns whether an owner is alive, and was not just killed: a killed process stays visible for a moment.
pub fn is_owner_still_alive(project: &Project, name: &str) -> bool {
    let give_up = Instant::now() + OWNER_DEATH_GRACE;
    while !project.is_owner_dead(name) {
        if Instant::now() > give_up || project.other_machine(name).is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Returns an unused session name with this prefix.
fn find_unused_name(view: &dyn StateView, base: &str) -> Result<SessionName, Failure> {
    let mut name = base.to_owned();
    for number in 2.. {
        let candidate = name.parse::<SessionName>().expect("letters, digits and dashes, few enough");
        if view.find_session(&candidate).map_err(hints::view_failure)?.is_none() {
            return Ok(candidate);
        }
        name = format!("{base}-{number}");
    }
    unreachable!("there are fewer sessions than numbers")
}

/// Returns a readable name that differs for different goals.
fn session_name_base(goal: &str) -> String {
    let digest = Digest::of_bytes(goal.as_bytes()).to_string();
    format!("{}{}", slugify_goal(goal), &digest[..8])
}

/// Returns a name from the task's id and goal.
pub fn name_after_task(view: &dyn StateView, id: TaskId) -> Result<String, Failure> {
    let task = view.find_task(id).map_err(hints::view_failure)?;
    let words = task.map(|task| slugify_goal(&task.goal)).unwrap_or_default();
    Ok(format!("{id}-{words}").to_ascii_lowercase().trim_end_matches('-').to_owned())
}

/// Returns the first words of a goal, with a dash after each.
fn slugify_goal(goal: &str) -> String {
    let words = goal.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= MAX_SLUG_LENGTH {
            break;
        }
        slug.push_str(&word.to_ascii_lowercase());
        slug.push('-');
    }
    slug
}

/// Returns the tally of a session from its events so far.
pub fn tally_session(store: &SqliteStore, session: &Session) -> Result<SessionTally, Failure> {
    let filter = EventFilter { session: Some(session.name.clone()), ..EventFilter::default() };
    let mut tally = SessionTally::default();
    store
        .read_events(&filter, Seq::START, usize::MAX)
        .map_err(hints::store_failure)?
        .iter()
        .for_each(|record| tally.count_event(record));
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_name_is_slug_and_digest_of_goal() {
        assert!(session_name_base("Fix the login!").starts_with("fix-the-login-"));
        assert_ne!(session_name_base("Fix the login!"), session_name_base("Fix the login?"));
        assert!(session_name_base("直す").len() == 8);
        let long = session_name_base(&"verylongword ".repeat(9));
        assert!(long.len() <= 48 && long.parse::<SessionName>().is_ok(), "{long}");
    }
}
