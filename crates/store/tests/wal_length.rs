//! The length of the write-ahead log, which does not grow with the number of short processes.

mod support;

use windlass_store::{Lifetime, SqliteStore};

#[test]
fn write_ahead_log_does_not_grow_with_command_count() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let length = |path: &std::path::Path| path.with_extension("db-wal").metadata().unwrap().len();
    drop(SqliteStore::create(&path, Lifetime::Command).unwrap());
    let before = length(&path);
    for _ in 0..200 {
        // The drop of the last handle discards the progress of the checkpoint, like the end of a process.
        let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
        support::commit_command(&mut store, &support::create_task("one more"));
    }
    assert_eq!(length(&path), before, "it was grown once, and is long enough");
}
