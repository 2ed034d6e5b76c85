//! Truncated, overwritten, replaced and foreign files.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use windlass_engine::Seq;
use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store as _, StoreError};

use crate::support::{TempStore, command_origin, commit_command, create_task, engine_rules, next_nonce, read_log};
use crate::{check_damage, checkpoint_wal, filled_store, inspect_store, salvage_store};

const PAGE_SIZE: u64 = 4096;

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Returns the numbers of the pages with bytes other than zero.
fn used_pages(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let pages = (0..).zip(bytes.chunks(PAGE_SIZE as usize));
    pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0)).map(|(number, _)| number).collect()
}

fn copy_store(temp_store: &TempStore) -> TempStore {
    let copy = TempStore::new();
    fs::copy(&temp_store.path, &copy.path).unwrap();
    copy
}

#[test]
fn zeroed_page_loses_only_its_own_events() {
    let (temp_store, log) = filled_store(40);
    let mut min_saved = log.len();
    for page in used_pages(&temp_store.path).into_iter().filter(|page| *page > 0) {
        let copy = copy_store(&temp_store);
        overwrite(&copy.path, page * PAGE_SIZE, &[0; PAGE_SIZE as usize]);
        let saved = check_damage(&copy.path, &log, &format!("page {page}"));
        // Page 1 is the root page of the log.
        if page > 1 {
            assert!(saved + 30 > log.len(), "page {page}: only {saved} of {} events were saved", log.len());
        }
        min_saved = min_saved.min(saved);
    }
    assert!(min_saved < log.len(), "some page holds events");
}

#[test]
fn lost_event_page_is_reported_by_first_lost_event() {
    let (temp_store, log) = filled_store(40);
    let sql = "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 2";
    let leaf = temp_store.open_connection().query_row(sql, [], |row| row.get::<_, u32>(0)).ok();
    // Some builds of SQLite have no `dbstat`. There the test searches for the page of a known event.
    let leaf = leaf.map_or_else(|| find_page(&temp_store.path, b"5: mend what is broken"), |page| u64::from(page) - 1);
    overwrite(&temp_store.path, leaf * PAGE_SIZE, &[0; PAGE_SIZE as usize]);
    let report = inspect_store(&temp_store.path).unwrap();
    let (_, salvage) = salvage_store(&temp_store.path).unwrap();
    assert_eq!(report.log.len(), 1, "{report:?}");
    assert_eq!(report.log[0].seq, salvage.lost[0].0, "{report:?} {salvage:?}");
    assert!(report.log[0].problem.starts_with("cannot be read"), "{report:?}");
    assert!(!report.pages.is_empty());
    assert_eq!(report.events, report.log[0].seq.0 - 1);
    assert!(salvage.lost.len() == 1 && !salvage.open_end);
    assert_eq!(salvage.saved + salvage.lost[0].1.0 - salvage.lost[0].0.0 + 1, log.len() as u64);
}

fn find_page(path: &Path, text: &[u8]) -> u64 {
    let mut bytes = Vec::new();
    fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    at as u64 / PAGE_SIZE
}

#[test]
fn truncated_file_is_reported_and_partly_salvaged() {
    let (temp_store, log) = filled_store(40);
    let length = fs::metadata(&temp_store.path).unwrap().len();
    let mut max_saved = 0;
    for cut in (1..length).step_by(12_900).chain([length - 1, PAGE_SIZE, 3 * PAGE_SIZE, length - PAGE_SIZE]) {
        let copy = copy_store(&temp_store);
        fs::File::options().write(true).open(&copy.path).unwrap().set_len(cut).unwrap();
        assert!(
            inspect_store(&copy.path).map_or_else(|error| crate::is_named(&error), |report| !report.is_sound()),
            "{cut}"
        );
        max_saved = max_saved.max(check_damage(&copy.path, &log, &format!("cut at {cut}")));
    }
    assert!(max_saved > log.len() / 2, "a long piece gives most of it back, not {max_saved} of {}", log.len());
}

#[test]
fn single_flipped_bits_are_noticed_or_harmless() {
    let (temp_store, log) = filled_store(12);
    let original = fs::read(&temp_store.path).unwrap();
    let used = used_pages(&temp_store.path);
    // The pseudo-random sequence is the same in every run.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..120 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = used[(random >> 40) as usize % used.len()] * PAGE_SIZE + (random >> 20) % PAGE_SIZE;
        let bit = 1 << (random >> 61);
        let copy = copy_store(&temp_store);
        overwrite(&copy.path, at, &[original[at as usize] ^ bit]);
        check_damage(&copy.path, &log, &format!("bit {bit} of byte {at}"));
    }
}

#[test]
fn impossible_position_does_not_prolong_salvage() {
    let (temp_store, log) = filled_store(3);
    let last = log.last().unwrap().seq;
    temp_store
        .open_connection()
        .execute("UPDATE events SET seq = ? WHERE seq = ?", [i64::MAX, last.0.cast_signed()])
        .unwrap();
    let (saved, salvage) = salvage_store(&temp_store.path).unwrap();
    assert_eq!(saved, log[..log.len() - 1]);
    assert!(salvage.open_end || salvage.lost == [(last, last)], "{salvage:?}");
    assert!(!inspect_store(&temp_store.path).unwrap().is_sound());
}

#[test]
fn file_of_other_format_is_refused_unchanged() {
    let directory = TempStore::new();
    let make = |name: &str, content: &[u8]| {
        let path = directory.directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let foreign = directory.directory.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE cats (name TEXT)").unwrap();
    let cases = [
        make("garbage", &b"not a database at all, but longer than a header ".repeat(300)),
        make("short", b"x"),
        foreign,
    ];
    for path in cases {
        let before = fs::read(&path).unwrap();
        for opened in [SqliteStore::open(&path, Lifetime::Command), SqliteStore::create(&path, Lifetime::Command)] {
            assert!(matches!(opened.err(), Some(StoreError::NotAStore(_))), "{}", path.display());
        }
        assert!(matches!(salvage_store(&path), Err(StoreError::NotAStore(_))), "{}", path.display());
        assert_eq!(fs::read(&path).unwrap(), before, "{}", path.display());
    }
}

#[test]
fn empty_file_becomes_store_unless_foreign_wal_exists() {
    let temp_store = TempStore::new();
    fs::write(&temp_store.path, b"").unwrap();
    fs::write(temp_store.wal_path(), b"perhaps a person's work").unwrap();
    for opened in [
        SqliteStore::open(&temp_store.path, Lifetime::Command),
        SqliteStore::create(&temp_store.path, Lifetime::Command),
    ] {
        assert!(matches!(opened.err(), Some(StoreError::NotAStore(_))));
        assert_eq!(fs::read(temp_store.wal_path()).unwrap(), b"perhaps a person's work");
    }
    fs::remove_file(temp_store.wal_path()).unwrap();
    commit_command(&mut temp_store.create(), &create_task("first"));
    assert_eq!(read_log(&temp_store.open()).len(), 2);
}

#[test]
fn missing_or_irregular_path_is_refused() {
    let temp_store = TempStore::new();
    let missing = temp_store.directory.path().join("no/such/directory/windlass.db");
    assert!(matches!(SqliteStore::open(&missing, Lifetime::Command), Err(StoreError::Missing(_))));
    assert!(matches!(SqliteStore::create(&missing, Lifetime::Command), Err(StoreError::Open { .. })));
    assert!(matches!(salvage_store(&missing), Err(StoreError::Missing(_))));
    let pipe = temp_store.directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for path in [temp_store.directory.path(), pipe.as_path()] {
        assert!(matches!(SqliteStore::open(path, Lifetime::Command), Err(StoreError::NotAStore(_))));
        assert!(matches!(SqliteStore::create(path, Lifetime::Command), Err(StoreError::NotAStore(_))));
        assert!(matches!(salvage_store(path), Err(StoreError::NotAStore(_))));
    }
}

#[test]
fn newer_schema_is_refused_with_number_and_left_unchanged() {
    let (temp_store, log) = filled_store(3);
    let mut before = temp_store.open();
    temp_store.open_connection().pragma_update(None, "user_version", 99).unwrap();
    for opened in [
        SqliteStore::open(&temp_store.path, Lifetime::Command),
        SqliteStore::create(&temp_store.path, Lifetime::Command),
    ] {
        let error = opened.err().unwrap();
        assert!(matches!(error, StoreError::Newer { found: 99, known: 9, .. }), "{error}");
    }
    // A handle that was open before the change refuses to write.
    let refused = before.run_transaction(|_| Ok(()));
    assert!(matches!(refused, Err(StoreError::Newer { found: 99, .. })), "{refused:?}");
    assert_eq!(salvage_store(&temp_store.path).unwrap().0, log);
    assert_eq!(log.last().unwrap().seq, Seq(log.len() as u64));
}

#[test]
fn dangling_store_symlink_is_refused_without_creating_target() {
    let temp_store = TempStore::new();
    let target = temp_store.directory.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, &temp_store.path).unwrap();
    let refused = SqliteStore::create(&temp_store.path, Lifetime::Command).map(drop);
    assert!(matches!(refused, Err(StoreError::Linked(_))), "{refused:?}");
    assert!(!target.exists());
}

/// SQLite would search for the write-ahead log beside the target of the link.
#[test]
fn store_path_replaced_by_symlink_is_refused() {
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    fs::rename(&temp_store.path, temp_store.path.with_extension("away")).unwrap();
    std::os::unix::fs::symlink(temp_store.path.with_extension("away"), &temp_store.path).unwrap();
    let refused = store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
    let refused = SqliteStore::open(&temp_store.path, Lifetime::Command).map(drop);
    assert!(matches!(refused, Err(StoreError::Linked(_))), "{refused:?}");
}

/// SQLite would follow a link, and block at a FIFO.
#[test]
fn irregular_wal_shm_or_journal_path_is_refused() {
    let (temp_store, log) = filled_store(3);
    let path_makers: [fn(&Path); 3] = [
        |path| std::os::unix::fs::symlink("elsewhere", path).unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
    ];
    for (end, make) in ["-wal", "-shm", "-journal"].into_iter().flat_map(|end| path_makers.map(|make| (end, make))) {
        let sidecar =
            temp_store.path.with_file_name(format!("{}{end}", temp_store.path.file_name().unwrap().display()));
        let moved = sidecar.with_extension("aside");
        let existed = fs::rename(&sidecar, &moved).is_ok();
        make(&sidecar);
        let opened = [
            SqliteStore::open(&temp_store.path, Lifetime::Command),
            SqliteStore::create(&temp_store.path, Lifetime::Command),
        ];
        for refused in
            opened.map(|opened| opened.map(drop)).into_iter().chain([salvage_store(&temp_store.path).map(drop)])
        {
            let named =
                |error: &StoreError| matches!(error, StoreError::Linked(at) | StoreError::NoFile(at) if *at == sidecar);
            assert!(refused.as_ref().is_err_and(named), "{end}: {refused:?}");
        }
        fs::remove_file(&sidecar).or_else(|_| fs::remove_dir(&sidecar)).unwrap();
        assert_eq!(fs::rename(&moved, &sidecar).is_ok(), existed);
    }
    assert_eq!(read_log(&temp_store.open()), log);
}

/// A checkpoint of the whole write-ahead log may empty its file.
#[test]
fn open_store_accepts_commits_after_wal_is_emptied() {
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    commit_command(&mut store, &create_task("before"));
    checkpoint_wal(&temp_store.open_connection());
    assert_eq!(fs::metadata(temp_store.wal_path()).unwrap().len(), 0);
    commit_command(&mut store, &create_task("after"));
    assert_eq!(read_log(&temp_store.open()), read_log(&store));
}

/// The test removes the write-ahead log before a commit and during one.
#[test]
fn commit_is_not_acknowledged_after_wal_is_removed() {
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    commit_command(&mut store, &create_task("before"));
    let refused = store.run_transaction(|_| fs::remove_file(temp_store.wal_path()).map_err(|error| panic!("{error}")));
    assert!(refused.is_ok(), "nothing was written: {refused:?}");
    let refused = store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    commit_command(&mut store, &create_task("before"));
    let refused = store.run_transaction(|transaction| {
        let done = transaction.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
        fs::remove_file(temp_store.wal_path()).unwrap();
        done.map_err(|error| panic!("{error}"))
    });
    assert!(matches!(refused, Err(StoreError::Replaced(_))), "{refused:?}");
    drop(store);
    assert!(read_log(&temp_store.open()).len() > 3, "what was acknowledged was folded back");
}

/// A commit into an unlinked write-ahead log would be lost. The store checkpoints earlier commits if possible.
#[test]
fn store_with_removed_or_replaced_wal_refuses_commits() {
    let tampering: [fn(&Path); 4] = [
        |log| fs::remove_file(log).unwrap(),
        |log| {
            fs::rename(log, log.with_extension("away")).unwrap();
            fs::copy(log.with_extension("away"), log).unwrap();
        },
        |log| drop(fs::File::create(log).unwrap()),
        |log| {
            fs::rename(log, log.with_extension("away")).unwrap();
            std::os::unix::fs::symlink(log.with_extension("away"), log).unwrap();
        },
    ];
    for (index, tamper) in tampering.into_iter().enumerate() {
        let (temp_store, _) = filled_store(3);
        let mut store = temp_store.open();
        commit_command(&mut store, &create_task("before"));
        let log = read_log(&store);
        tamper(&temp_store.wal_path());
        let refused = store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
        assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{index}: {refused:?}");
        drop(store);
        if index == 0 {
            assert_eq!(read_log(&temp_store.open()), log);
        }
    }
}

/// A process that opens the store afterwards shares no locks with earlier processes, which would overwrite its commits.
#[test]
fn store_with_removed_shm_file_refuses_commits() {
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    commit_command(&mut store, &create_task("before"));
    fs::remove_file(temp_store.path.with_extension("db-shm")).unwrap();
    let mut other = temp_store.open();
    commit_command(&mut other, &create_task("beside"));
    let log = read_log(&other);
    let refused = store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
    drop((store, other));
    assert_eq!(read_log(&temp_store.open()), log);
}

#[test]
fn truncated_store_refuses_further_commits() {
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    commit_command(&mut store, &create_task("before"));
    let file = fs::File::options().write(true).open(&temp_store.path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let refused = store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
}

/// The store would acknowledge a commit into an unlinked file and lose it.
#[test]
fn store_refuses_commits_until_its_original_file_returns() {
    let (temp_store, _) = filled_store(3);
    let mut store = temp_store.open();
    commit_command(&mut store, &create_task("before"));
    fs::rename(&temp_store.path, temp_store.path.with_extension("away")).unwrap();
    let write = |store: &mut SqliteStore| {
        store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce())
    };
    let error = write(&mut store).unwrap_err();
    assert!(matches!(error, ExecuteError::Store(StoreError::Replaced(_))), "{error}");
    fs::copy(temp_store.path.with_extension("away"), &temp_store.path).unwrap();
    assert!(matches!(write(&mut store), Err(ExecuteError::Store(StoreError::Replaced(_)))));
    fs::rename(temp_store.path.with_extension("away"), &temp_store.path).unwrap();
    write(&mut store).unwrap();
}

/// A full disk during the creation of a store leaves this state.
#[test]
fn empty_database_counts_as_missing_store_until_created() {
    let temp_store = TempStore::new();
    rusqlite::Connection::open(&temp_store.path).unwrap().pragma_update(None, "journal_mode", "wal").unwrap();
    assert!(fs::metadata(&temp_store.path).unwrap().len() > 0);
    let opened = SqliteStore::open(&temp_store.path, Lifetime::Command).map(drop);
    assert!(matches!(opened, Err(StoreError::Missing(_))), "{opened:?}");
    commit_command(&mut temp_store.create(), &create_task("first"));
}
