//! Cancellations of sessions by a person in another process.

use std::path::Path;

use windlass_engine::{SessionEnd, SessionEndKind, SessionName, StateView as _};
use windlass_store::SqliteStore;

/// Returns the cancellation of a session, if the log has one. A store that cannot be read counts as none: the caller reads it
/// again before the next step of the session.
pub fn read_cancellation(store_file: &Path, name: &SessionName) -> Option<SessionEnd> {
    let store = SqliteStore::open_foreign(store_file).ok()?;
    let session = store.begin_snapshot().ok()?.find_session(name).ok()??;
    session.stopping.filter(|closing| closing.ending == SessionEndKind::Cancelled)
}
