//! Disks that are full or cannot be written to.
//!
//! A superuser may write everywhere and disks are large, so some of this happens in a child of this program: as another
//! user, or on a small disk of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store, StoreError};

use crate::scene::{Place, create, everything, fill, give, nonce, origin, rules};
use crate::{filled, fold_back, inspect};

/// Tells a child where its store is.
const STORE: &str = "WINDLASS_TEST_STORE";

/// Returns the store that this process was started for, if one of these tests started it.
fn given_store() -> Option<PathBuf> {
    std::env::var_os(STORE).map(PathBuf::from)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs one of the tests below in a child without superuser rights.
fn run_test_unprivileged(test: &str, store: &Path) {
    let program = store.with_file_name("program");
    if !program.exists() {
        let directory = store.parent().unwrap();
        let before = fs::metadata(directory).unwrap().permissions();
        mode(directory, 0o755);
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(directory, before).unwrap();
    }
    let mut child = Command::new(&program);
    child.args(["--exact", test, "--nocapture"]).env(STORE, store);
    if rustix::process::geteuid().is_root() {
        child.uid(65534).gid(65534);
    }
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Run in a child: the operations that a read-only store permits and refuses.
#[test]
fn child_reads_and_cannot_write() {
    let Some(path) = given_store() else { return };
    let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
    assert!(everything(&store).len() > 10);
    assert!(!store.begin_snapshot().unwrap().ready_tasks(9).unwrap().is_empty());
    assert!(store.inspect_store().unwrap().is_sound());
    let refused = store.execute_command(&rules(), &origin(), &create("no"), nonce()).unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::ReadOnly(_))), "{refused:?}");
    assert!(matches!(store.rebuild(), Err(StoreError::ReadOnly(_))));
    assert!(everything(&store).len() > 10);
    assert_eq!(Sqlite::salvage(&path, |_| Ok(())).unwrap().lost, []);
}

/// Run in a child: a store that may not even be read.
#[test]
fn child_may_not_even_read() {
    let Some(path) = given_store() else { return };
    let refused = SqliteStore::open(&path, Lifetime::Command).err().unwrap();
    assert!(matches!(refused, StoreError::Open { .. }), "{refused:?}");
}

#[test]
fn a_store_that_cannot_be_written_to_can_be_read() {
    // With the write-ahead log beside it, as every process leaves it.
    let place = Place::new();
    let mut store = place.create();
    fill(&mut store, 6);
    let log = everything(&store);
    drop(store);
    for (file, directory) in [(0o444, 0o755), (0o644, 0o555), (0o444, 0o555)] {
        let files = ["", "-wal", "-shm"].map(|suffix| crate::scene::beside(&place.path, suffix));
        files.iter().for_each(|path| mode(path, file));
        mode(place.directory.path(), directory);
        run_test_unprivileged("disk::child_reads_and_cannot_write", &place.path);
    }
    mode(place.directory.path(), 0o755);
    mode(&place.path, 0o200);
    run_test_unprivileged("disk::child_may_not_even_read", &place.path);
    mode(&place.path, 0o644);
    assert_eq!(everything(&place.open()), log);
}

/// Like a backup: a single file on a read-only medium.
#[test]
fn a_store_without_anything_beside_it_can_be_read_where_nothing_can_be_made() {
    let (place, _) = filled(6);
    fold_back(&place.raw());
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(crate::scene::beside(&place.path, suffix));
    }
    mode(place.directory.path(), 0o555);
    run_test_unprivileged("disk::child_reads_and_cannot_write", &place.path);
    mode(place.directory.path(), 0o755);
}

/// A file system of a few hundred kilobytes, if this machine permits the mount.
struct SmallDisk(Place);

impl SmallDisk {
    fn new(bytes: u64) -> Option<Self> {
        let place = Place::new();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(place.directory.path())
            .output();
        mount.is_ok_and(|done| done.status.success()).then_some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.directory.path()).output();
    }
}

#[test]
fn a_full_disk_is_named_and_loses_nothing() {
    let Some(disk) = SmallDisk::new(4 * 1024 * 1024) else {
        println!("SKIPPED: no disk can be mounted here; `sqlite::tests::a_full_file_is_named` shows the rest");
        return;
    };
    let place = &disk.0;
    let mut store = place.create();
    let mut acknowledged = fill(&mut store, 4).concat();
    fs::write(place.directory.path().join("ballast"), vec![1; 1300 * 1024]).unwrap();
    let long = "x".repeat(60_000);
    let refused = loop {
        match store.execute_command(&rules(), &origin(), &create(&long), nonce()) {
            Ok(records) => acknowledged.extend(records),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ExecuteError::Store(StoreError::Full { .. })), "{refused:?}");
    // Reads work, with this handle and with new ones, and a copy fails with the same error.
    assert_eq!(everything(&store), acknowledged);
    assert_eq!(everything(&place.open()), acknowledged);
    assert!(inspect(&place.path).unwrap().is_sound());
    let copy = place.directory.path().join("copy.db");
    let refused = store.backup_to(&copy).unwrap_err();
    assert!(matches!(refused, StoreError::Full { .. }), "{refused:?}");
    let left: Vec<_> = fs::read_dir(place.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("copy")), "{left:?}");
    // With room again, commits succeed.
    fs::remove_file(place.directory.path().join("ballast")).unwrap();
    acknowledged.extend(give(&mut store, &create("room again")));
    assert_eq!(everything(&store), acknowledged);
    assert!(store.inspect_store().unwrap().is_sound());
    drop(store);
}
