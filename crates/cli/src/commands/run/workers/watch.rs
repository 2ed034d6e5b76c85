//! Wakes workers that wait when somebody else has appended something: an agent may add tasks, and so may a person.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windlass_app::Failure;
use windlass_app::project::Project;
use windlass_store::{Sqlite, Store};

use super::super::system;
use super::crew::Crew;

/// How long it is waited at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Watches the log from now on, if nobody does yet. It ends by itself, or with the process.
pub fn start(crew: &Arc<Crew>, project: &Project) -> Result<(), Failure> {
    if !crew.begin_to_watch() {
        return Ok(());
    }
    let (crew, file) = (crew.clone(), project.store_file());
    let watch = move || {
        // Without it workers still hear of each other.
        let Ok(store) = Sqlite::open_foreign(&file) else { return };
        let Ok(mut seen) = store.head() else { return };
        // What came before is seen by whoever looks again now.
        crew.ring();
        while !crew.is_over() {
            let head = store.wait(seen, PATIENCE).and_then(|()| store.head());
            match head {
                Ok(head) if head > seen => {
                    seen = head;
                    crew.ring();
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    };
    thread::Builder::new()
        .name("watch".to_owned())
        .spawn(watch)
        .map_err(|error| system("cannot start a thread", error))?;
    Ok(())
}
