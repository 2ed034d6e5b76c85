//! The write-ahead log stays short after any number of commands, each in a process of its own.

mod scene;

use windlass_store::{Lifetime, SqliteStore};

#[test]
fn the_write_ahead_log_does_not_grow_with_the_number_of_commands() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let length = |path: &std::path::Path| path.with_extension("db-wal").metadata().unwrap().len();
    drop(SqliteStore::create(&path, Lifetime::Command).unwrap());
    let before = length(&path);
    for _ in 0..200 {
        // Closing the last handle forgets the progress of the checkpoint, as the end of a process does.
        let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
        scene::give(&mut store, &scene::create("one more"));
    }
    assert_eq!(length(&path), before, "it was grown once, and is long enough");
}
