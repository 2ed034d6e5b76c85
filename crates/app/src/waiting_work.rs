//! The work that waits for a person: one answer for the page, `windlass top` and `windlass status`.
//!
//! Not here: evidence and answers (`views`), the next command (`next_step`).

use std::cmp::Reverse;

use windlass_engine::{NextAction, Session, SessionEndKind, StateView, Task, TaskId, TaskState};
use windlass_store::{StoreSnapshot, TaskFilter};

use crate::{Failure, hints};

/// The number of sessions, newest first, among which those that have left their work to a person are searched.
const MAX_SEARCHED_SESSIONS: usize = 200;
/// The most stopped tasks among which those that wait for a person are searched.
const MAX_EXAMINED_TASKS: usize = 10_000;

/// Lists the open sessions, and those of the newest that have left their work to a person, newest first.
pub fn list_current_sessions(snapshot: &StoreSnapshot<'_>) -> Result<Vec<Session>, Failure> {
    let mut found = snapshot.newest_sessions(MAX_SEARCHED_SESSIONS).map_err(hints::store_failure)?;
    found.retain(has_left_work);
    found.extend(snapshot.open_sessions().map_err(hints::store_failure)?);
    found.sort_by_key(|session| Reverse(session.started));
    Ok(found)
}

/// Finds the session that ended last, among the newest.
pub fn find_last_ended_session(snapshot: &StoreSnapshot<'_>) -> Result<Option<Session>, Failure> {
    let newest = snapshot.newest_sessions(MAX_SEARCHED_SESSIONS).map_err(hints::store_failure)?;
    Ok(newest.into_iter().filter(Session::is_over).max_by_key(|session| session.ended_at))
}

/// Lists at most `most` tasks that wait for a person, oldest first. Examines at most `MAX_EXAMINED_TASKS` stopped tasks.
pub fn list_waiting_tasks(snapshot: &StoreSnapshot<'_>, most: usize) -> Result<Vec<Task>, Failure> {
    let (mut waiting, mut examined, mut failed) = (Vec::new(), 0, None);
    let filter = TaskFilter { states: vec![TaskState::Blocked, TaskState::Failed], ..TaskFilter::default() };
    snapshot
        .visit_tasks(&filter, |task| {
            match is_waiting_task(snapshot, &task) {
                Ok(true) => waiting.push(task),
                Ok(false) => {}
                Err(failure) => failed = Some(failure),
            }
            examined += 1;
            waiting.len() < most && examined < MAX_EXAMINED_TASKS && failed.is_none()
        })
        .map_err(hints::store_failure)?;
    failed.map_or(Ok(waiting), Err)
}

/// Returns whether a task waits for a person. A task that another one blocks waits for that one.
pub fn is_waiting_task(snapshot: &StoreSnapshot<'_>, task: &Task) -> Result<bool, Failure> {
    let is_stopped = matches!(task.state, TaskState::Blocked | TaskState::Failed);
    Ok(is_stopped && find_open_blocker(snapshot, task)?.is_none())
}

/// Returns the dependency whose end has blocked a task, while it can still be reopened.
pub fn find_open_blocker(snapshot: &StoreSnapshot<'_>, task: &Task) -> Result<Option<TaskId>, Failure> {
    let Some(by) = blocking_task(task) else { return Ok(None) };
    let blocker = snapshot.find_task(by).map_err(hints::view_failure)?;
    let is_open = |task: &Task| !matches!(task.state, TaskState::Deleted | TaskState::Completed);
    Ok(blocker.filter(is_open).map(|task| task.id))
}

fn blocking_task(task: &Task) -> Option<TaskId> {
    task.blocked.as_ref().and_then(|blocked| blocked.by)
}

/// Returns whether a session waits for a person: at its gate, or because it has left work without a task to one.
pub fn is_waiting_session(session: &Session) -> bool {
    session.next_action() == NextAction::Answer || has_left_work(session)
}

/// Returns whether a session without a task has left its work to a person.
pub fn has_left_work(session: &Session) -> bool {
    session.task.is_none() && session.is_over() && session.ending_kind() == Some(SessionEndKind::Escalated)
}
