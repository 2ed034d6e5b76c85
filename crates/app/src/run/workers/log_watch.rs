//! A thread that wakes waiting workers when another process has appended events: an agent or a person may add tasks.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windlass_store::{SqliteStore, Store};

use super::scheduler::SessionScheduler;
use crate::project::Project;
use crate::{Failure, FailureCode};

/// The longest wait for the log before the thread checks whether the run is over.
const MAX_LOG_WAIT: Duration = Duration::from_secs(5);

/// Starts the thread, if it does not run yet. It ends by itself, or with the process.
pub fn watch_log(scheduler: &Arc<SessionScheduler>, project: &Project) -> Result<(), Failure> {
    if !scheduler.claim_log_watch() {
        return Ok(());
    }
    let (scheduler, file) = (scheduler.clone(), project.store_file());
    let watch = move || {
        // Without the thread, workers still wake each other.
        let Ok(store) = SqliteStore::open_foreign(&file) else { return };
        let Ok(mut seen) = store.head() else { return };
        // Events may have come before the watch began, so the workers check again.
        scheduler.wake_workers();
        while !scheduler.is_over() {
            let head = store.wait_for_events(seen, MAX_LOG_WAIT).and_then(|()| store.head());
            match head {
                Ok(head) if head > seen => {
                    seen = head;
                    scheduler.wake_workers();
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    };
    thread::Builder::new()
        .name("watch".to_owned())
        .spawn(watch)
        .map_err(|error| Failure::new(FailureCode::System, "cannot start a thread").with_cause(error))?;
    Ok(())
}
