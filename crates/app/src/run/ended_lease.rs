//! Tasks whose lease has ended: a session can take them, as it takes ready tasks.
//!
//! Not here: the end of leases whose holder sends no heartbeat (`stale_leases`).

use windlass_engine::{StateView, Task, TaskId, Timestamp};

use crate::{Failure, environment, hints};

/// Returns the next task whose lease has ended and that waits for no other task, with the end of its lease, after the given one.
/// The start of a session on a task that waits would be refused.
pub fn find_next_ended_lease(
    view: &dyn StateView,
    mut after: Option<(Timestamp, TaskId)>,
) -> Result<Option<(Timestamp, Task)>, Failure> {
    // The clock of the command that starts the session: by it, the lease has ended then, too.
    let now = environment::steady_timestamp();
    while let Some(next) = view.next_expired_lease(now, after).map_err(hints::view_failure)? {
        let task = view.find_task(next.1).map_err(hints::view_failure)?;
        if let Some(task) = task.filter(|task| task.open_dependencies == 0) {
            return Ok(Some((next.0, task)));
        }
        after = Some(next);
    }
    Ok(None)
}
