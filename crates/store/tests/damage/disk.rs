//! Disks that are full or read-only.
//!
//! A superuser may write everywhere, so some tests run in a child process of another user. A full disk is a small mount.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store, StoreError};

use crate::support::{
    TempStore, command_origin, commit_command, create_task, engine_rules, fill_store, next_nonce, read_log,
};
use crate::{checkpoint_wal, filled_store, inspect_store};

/// The environment variable with the path of the store of a child.
const STORE_VARIABLE: &str = "WINDLASS_TEST_STORE";

/// Returns the path of the store, if this process is a child of one of these tests.
fn given_store() -> Option<PathBuf> {
    std::env::var_os(STORE_VARIABLE).map(PathBuf::from)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs one of the tests of this file in a child without superuser rights.
fn run_test_unprivileged(test: &str, store: &Path) {
    let program = store.with_file_name("program");
    if !program.exists() {
        let directory = store.parent().unwrap();
        let before = fs::metadata(directory).unwrap().permissions();
        set_mode(directory, 0o755);
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(directory, before).unwrap();
    }
    let mut child = Command::new(&program);
    child.args(["--exact", test, "--nocapture"]).env(STORE_VARIABLE, store);
    if rustix::process::geteuid().is_root() {
        child.uid(65534).gid(65534);
    }
    let output = child.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

/// Runs in a child: the operations that a read-only store permits and refuses.
#[test]
fn child_reads_and_cannot_write() {
    let Some(path) = given_store() else { return };
    let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
    assert!(read_log(&store).len() > 10);
    assert!(!store.begin_snapshot().unwrap().ready_tasks(9).unwrap().is_empty());
    assert!(store.inspect_store().unwrap().is_sound());
    let refused =
        store.execute_command(&engine_rules(), &command_origin(), &create_task("no"), next_nonce()).unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::ReadOnly(_))), "{refused:?}");
    assert!(matches!(store.rebuild_rows(), Err(StoreError::ReadOnly(_))));
    assert!(read_log(&store).len() > 10);
    assert_eq!(SqliteStore::salvage_events(&path, |_| Ok(())).unwrap().lost, []);
}

/// Runs in a child: a store without read permission.
#[test]
fn child_may_not_even_read() {
    let Some(path) = given_store() else { return };
    let refused = SqliteStore::open(&path, Lifetime::Command).err().unwrap();
    assert!(matches!(refused, StoreError::Open { .. }), "{refused:?}");
}

#[test]
fn unwritable_store_permits_reads_and_refuses_writes() {
    // The write-ahead log exists, because every process leaves it there.
    let temp_store = TempStore::new();
    let mut store = temp_store.create();
    fill_store(&mut store, 6);
    let log = read_log(&store);
    drop(store);
    for (file, directory) in [(0o444, 0o755), (0o644, 0o555), (0o444, 0o555)] {
        let files = ["", "-wal", "-shm"].map(|suffix| crate::support::with_suffix(&temp_store.path, suffix));
        files.iter().for_each(|path| set_mode(path, file));
        set_mode(temp_store.directory.path(), directory);
        run_test_unprivileged("disk::child_reads_and_cannot_write", &temp_store.path);
    }
    set_mode(temp_store.directory.path(), 0o755);
    set_mode(&temp_store.path, 0o200);
    run_test_unprivileged("disk::child_may_not_even_read", &temp_store.path);
    set_mode(&temp_store.path, 0o644);
    assert_eq!(read_log(&temp_store.open()), log);
}

/// The single file of a backup on a read-only medium.
#[test]
fn store_without_wal_is_readable_in_read_only_directory() {
    let (temp_store, _) = filled_store(6);
    checkpoint_wal(&temp_store.open_connection());
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(crate::support::with_suffix(&temp_store.path, suffix));
    }
    set_mode(temp_store.directory.path(), 0o555);
    run_test_unprivileged("disk::child_reads_and_cannot_write", &temp_store.path);
    set_mode(temp_store.directory.path(), 0o755);
}

/// A mounted file system of limited size.
struct SmallDisk(TempStore);

impl SmallDisk {
    fn new(bytes: u64) -> Option<Self> {
        let temp_store = TempStore::new();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(temp_store.directory.path())
            .output();
        mount.is_ok_and(|done| done.status.success()).then_some(Self(temp_store))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.directory.path()).output();
    }
}

#[test]
fn full_disk_is_reported_without_losing_acknowledged_events() {
    let Some(disk) = SmallDisk::new(4 * 1024 * 1024) else {
        println!(
            "SKIPPED: no disk can be mounted here; `sqlite::tests::full_database_is_reported_and_store_stays_sound` shows the rest"
        );
        return;
    };
    let temp_store = &disk.0;
    let mut store = temp_store.create();
    let mut acknowledged = fill_store(&mut store, 4).concat();
    fs::write(temp_store.directory.path().join("ballast"), vec![1; 1300 * 1024]).unwrap();
    let long = "x".repeat(60_000);
    let refused = loop {
        match store.execute_command(&engine_rules(), &command_origin(), &create_task(&long), next_nonce()) {
            Ok(records) => acknowledged.extend(records),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ExecuteError::Store(StoreError::Full { .. })), "{refused:?}");
    // Reads succeed with this handle and with new ones. A backup fails with the same error.
    assert_eq!(read_log(&store), acknowledged);
    assert_eq!(read_log(&temp_store.open()), acknowledged);
    assert!(inspect_store(&temp_store.path).unwrap().is_sound());
    let copy = temp_store.directory.path().join("copy.db");
    let refused = store.backup_to(&copy).unwrap_err();
    assert!(matches!(refused, StoreError::Full { .. }), "{refused:?}");
    let remaining: Vec<_> =
        fs::read_dir(temp_store.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(remaining.iter().all(|name| !name.to_string_lossy().contains("copy")), "{remaining:?}");
    // Commits succeed after the disk has free space again.
    fs::remove_file(temp_store.directory.path().join("ballast")).unwrap();
    acknowledged.extend(commit_command(&mut store, &create_task("room again")));
    assert_eq!(read_log(&store), acknowledged);
    assert!(store.inspect_store().unwrap().is_sound());
    drop(store);
}
