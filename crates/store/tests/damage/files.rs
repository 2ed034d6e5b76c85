//! Files that are cut, overwritten, or of another kind.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use windlass_engine::Seq;
use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store as _, StoreError};

use crate::scene::{Place, create, everything, give, nonce, origin, rules};
use crate::{check_damage, filled, fold_back, inspect, salvage};

const PAGE: u64 = 4096;

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Returns the pages that hold anything.
fn used_pages(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let pages = (0..).zip(bytes.chunks(PAGE as usize));
    pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0)).map(|(number, _)| number).collect()
}

fn copy_of(place: &Place) -> Place {
    let copy = Place::new();
    fs::copy(&place.path, &copy.path).unwrap();
    copy
}

#[test]
fn a_zeroed_page_costs_what_was_on_it() {
    let (place, log) = filled(40);
    let mut least = log.len();
    for page in used_pages(&place.path).into_iter().filter(|page| *page > 0) {
        let copy = copy_of(&place);
        overwrite(&copy.path, page * PAGE, &[0; PAGE as usize]);
        let saved = check_damage(&copy.path, &log, &format!("page {page}"));
        // Page 1 is the root of the log, and leads to all of it.
        if page > 1 {
            assert!(saved + 30 > log.len(), "page {page}: only {saved} of {} events were saved", log.len());
        }
        least = least.min(saved);
    }
    assert!(least < log.len(), "some page holds events");
}

#[test]
fn a_lost_page_of_events_is_named_by_its_first_event() {
    let (place, log) = filled(40);
    let sql = "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 2";
    let leaf = place.raw().query_row(sql, [], |row| row.get::<_, u32>(0)).ok();
    // Not every build of SQLite has `dbstat`: then search for the page that holds a known event.
    let leaf = leaf.map_or_else(|| page_with(&place.path, b"5: mend what is broken"), |page| u64::from(page) - 1);
    overwrite(&place.path, leaf * PAGE, &[0; PAGE as usize]);
    let report = inspect(&place.path).unwrap();
    let (_, salvage) = salvage(&place.path).unwrap();
    assert_eq!(report.log.len(), 1, "{report:?}");
    assert_eq!(report.log[0].seq, salvage.lost[0].0, "{report:?} {salvage:?}");
    assert!(report.log[0].problem.starts_with("cannot be read"), "{report:?}");
    assert!(!report.pages.is_empty());
    assert_eq!(report.events, report.log[0].seq.0 - 1);
    assert!(salvage.lost.len() == 1 && !salvage.open_end);
    assert_eq!(salvage.saved + salvage.lost[0].1.0 - salvage.lost[0].0.0 + 1, log.len() as u64);
}

fn page_with(path: &Path, text: &[u8]) -> u64 {
    let mut bytes = Vec::new();
    fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    at as u64 / PAGE
}

#[test]
fn a_torn_file_gives_back_what_is_left() {
    let (place, log) = filled(40);
    let length = fs::metadata(&place.path).unwrap().len();
    let mut most = 0;
    for cut in (1..length).step_by(12_900).chain([length - 1, PAGE, 3 * PAGE, length - PAGE]) {
        let copy = copy_of(&place);
        fs::File::options().write(true).open(&copy.path).unwrap().set_len(cut).unwrap();
        assert!(inspect(&copy.path).map_or_else(|error| crate::is_named(&error), |report| !report.is_sound()), "{cut}");
        most = most.max(check_damage(&copy.path, &log, &format!("cut at {cut}")));
    }
    assert!(most > log.len() / 2, "a long piece gives most of it back, not {most} of {}", log.len());
}

#[test]
fn single_flipped_bits_are_noticed_or_harmless() {
    let (place, log) = filled(12);
    let original = fs::read(&place.path).unwrap();
    let used = used_pages(&place.path);
    // Any sequence works, as long as it is the same every time.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..120 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = used[(random >> 40) as usize % used.len()] * PAGE + (random >> 20) % PAGE;
        let bit = 1 << (random >> 61);
        let copy = copy_of(&place);
        overwrite(&copy.path, at, &[original[at as usize] ^ bit]);
        check_damage(&copy.path, &log, &format!("bit {bit} of byte {at}"));
    }
}

#[test]
fn impossible_position_does_not_prolong_salvage() {
    let (place, log) = filled(3);
    let last = log.last().unwrap().seq;
    place.raw().execute("UPDATE events SET seq = ? WHERE seq = ?", [i64::MAX, last.0.cast_signed()]).unwrap();
    let (saved, salvage) = salvage(&place.path).unwrap();
    assert_eq!(saved, log[..log.len() - 1]);
    assert!(salvage.open_end || salvage.lost == [(last, last)], "{salvage:?}");
    assert!(!inspect(&place.path).unwrap().is_sound());
}

#[test]
fn file_of_other_format_is_refused_unchanged() {
    let directory = Place::new();
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
        assert!(matches!(salvage(&path), Err(StoreError::NotAStore(_))), "{}", path.display());
        assert_eq!(fs::read(&path).unwrap(), before, "{}", path.display());
    }
}

#[test]
fn an_empty_file_is_made_a_store_only_on_request() {
    let place = Place::new();
    fs::write(&place.path, b"").unwrap();
    fs::write(place.wal(), b"perhaps a person's work").unwrap();
    for opened in
        [SqliteStore::open(&place.path, Lifetime::Command), SqliteStore::create(&place.path, Lifetime::Command)]
    {
        assert!(matches!(opened.err(), Some(StoreError::NotAStore(_))));
        assert_eq!(fs::read(place.wal()).unwrap(), b"perhaps a person's work");
    }
    fs::remove_file(place.wal()).unwrap();
    give(&mut place.create(), &create("first"));
    assert_eq!(everything(&place.open()).len(), 2);
}

#[test]
fn missing_or_irregular_path_is_refused() {
    let place = Place::new();
    let missing = place.directory.path().join("no/such/directory/windlass.db");
    assert!(matches!(SqliteStore::open(&missing, Lifetime::Command), Err(StoreError::Missing(_))));
    assert!(matches!(SqliteStore::create(&missing, Lifetime::Command), Err(StoreError::Open { .. })));
    assert!(matches!(salvage(&missing), Err(StoreError::Missing(_))));
    let pipe = place.directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for path in [place.directory.path(), pipe.as_path()] {
        assert!(matches!(SqliteStore::open(path, Lifetime::Command), Err(StoreError::NotAStore(_))));
        assert!(matches!(SqliteStore::create(path, Lifetime::Command), Err(StoreError::NotAStore(_))));
        assert!(matches!(salvage(path), Err(StoreError::NotAStore(_))));
    }
}

#[test]
fn a_newer_schema_is_refused_by_number_and_left_alone() {
    let (place, log) = filled(3);
    let mut before = place.open();
    place.raw().pragma_update(None, "user_version", 99).unwrap();
    for opened in
        [SqliteStore::open(&place.path, Lifetime::Command), SqliteStore::create(&place.path, Lifetime::Command)]
    {
        let error = opened.err().unwrap();
        assert!(matches!(error, StoreError::Newer { found: 99, known: 6, .. }), "{error}");
    }
    // A program that had it open before writes nothing into it any more.
    let refused = before.run_transaction(|_| Ok(()));
    assert!(matches!(refused, Err(StoreError::Newer { found: 99, .. })), "{refused:?}");
    assert_eq!(salvage(&place.path).unwrap().0, log);
    assert_eq!(log.last().unwrap().seq, Seq(log.len() as u64));
}

#[test]
fn a_link_that_leads_nowhere_is_not_followed() {
    let place = Place::new();
    let target = place.directory.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, &place.path).unwrap();
    let refused = SqliteStore::create(&place.path, Lifetime::Command).map(drop);
    assert!(matches!(refused, Err(StoreError::Linked(_))), "{refused:?}");
    assert!(!target.exists());
}

/// SQLite would look for the write-ahead log beside the target of the link.
#[test]
fn a_link_in_the_place_of_a_store_is_not_followed() {
    let (place, _) = filled(3);
    let mut store = place.open();
    fs::rename(&place.path, place.path.with_extension("away")).unwrap();
    std::os::unix::fs::symlink(place.path.with_extension("away"), &place.path).unwrap();
    let refused = store.execute_command(&rules(), &origin(), &create("after"), nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
    let refused = SqliteStore::open(&place.path, Lifetime::Command).map(drop);
    assert!(matches!(refused, Err(StoreError::Linked(_))), "{refused:?}");
}

/// SQLite would follow a link, and wait for ever at a fifo.
#[test]
fn what_is_no_file_beside_a_store_is_refused() {
    let (place, log) = filled(3);
    let makers: [fn(&Path); 3] = [
        |path| std::os::unix::fs::symlink("elsewhere", path).unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
    ];
    for (end, make) in ["-wal", "-shm", "-journal"].into_iter().flat_map(|end| makers.map(|make| (end, make))) {
        let beside = place.path.with_file_name(format!("{}{end}", place.path.file_name().unwrap().display()));
        let aside = beside.with_extension("aside");
        let was_there = fs::rename(&beside, &aside).is_ok();
        make(&beside);
        let opened =
            [SqliteStore::open(&place.path, Lifetime::Command), SqliteStore::create(&place.path, Lifetime::Command)];
        for refused in opened.map(|opened| opened.map(drop)).into_iter().chain([salvage(&place.path).map(drop)]) {
            let named =
                |error: &StoreError| matches!(error, StoreError::Linked(at) | StoreError::NoFile(at) if *at == beside);
            assert!(refused.as_ref().is_err_and(named), "{end}: {refused:?}");
        }
        fs::remove_file(&beside).or_else(|_| fs::remove_dir(&beside)).unwrap();
        assert_eq!(fs::rename(&aside, &beside).is_ok(), was_there);
    }
    assert_eq!(everything(&place.open()), log);
}

/// A checkpoint of the whole log may empty it.
#[test]
fn a_log_that_was_emptied_is_still_the_log() {
    let (place, _) = filled(3);
    let mut store = place.open();
    give(&mut store, &create("before"));
    fold_back(&place.raw());
    assert_eq!(fs::metadata(place.wal()).unwrap().len(), 0);
    give(&mut store, &create("after"));
    assert_eq!(everything(&place.open()), everything(&store));
}

/// The log is removed before a commit, or during one.
#[test]
fn what_was_written_beside_a_store_is_not_acknowledged() {
    let (place, _) = filled(3);
    let mut store = place.open();
    give(&mut store, &create("before"));
    let refused = store.run_transaction(|_| fs::remove_file(place.wal()).map_err(|error| panic!("{error}")));
    assert!(refused.is_ok(), "nothing was written: {refused:?}");
    let refused = store.execute_command(&rules(), &origin(), &create("after"), nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
    let (place, _) = filled(3);
    let mut store = place.open();
    give(&mut store, &create("before"));
    let refused = store.run_transaction(|transaction| {
        let done = transaction.execute_command(&rules(), &origin(), &create("after"), nonce());
        fs::remove_file(place.wal()).unwrap();
        done.map_err(|error| panic!("{error}"))
    });
    assert!(matches!(refused, Err(StoreError::Replaced(_))), "{refused:?}");
    drop(store);
    assert!(everything(&place.open()).len() > 3, "what was acknowledged was folded back");
}

/// A commit into an unlinked log would be lost. Earlier commits are checkpointed, if possible.
#[test]
fn a_store_whose_log_was_removed_or_replaced_takes_no_more() {
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
    for (nth, tamper) in tampering.into_iter().enumerate() {
        let (place, _) = filled(3);
        let mut store = place.open();
        give(&mut store, &create("before"));
        let log = everything(&store);
        tamper(&place.wal());
        let refused = store.execute_command(&rules(), &origin(), &create("after"), nonce());
        assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{nth}: {refused:?}");
        drop(store);
        if nth == 0 {
            assert_eq!(everything(&place.open()), log);
        }
    }
}

/// A process that opens it then shares no locks with earlier ones, whose next commit would overwrite its own.
#[test]
fn a_store_whose_index_was_removed_takes_no_more() {
    let (place, _) = filled(3);
    let mut store = place.open();
    give(&mut store, &create("before"));
    fs::remove_file(place.path.with_extension("db-shm")).unwrap();
    let mut other = place.open();
    give(&mut other, &create("beside"));
    let log = everything(&other);
    let refused = store.execute_command(&rules(), &origin(), &create("after"), nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
    drop((store, other));
    assert_eq!(everything(&place.open()), log);
}

#[test]
fn a_store_that_was_cut_takes_no_more() {
    let (place, _) = filled(3);
    let mut store = place.open();
    give(&mut store, &create("before"));
    let file = fs::File::options().write(true).open(&place.path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let refused = store.execute_command(&rules(), &origin(), &create("after"), nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Replaced(_)))), "{refused:?}");
}

/// A commit into an unlinked file would be acknowledged and lost.
#[test]
fn a_store_that_was_removed_takes_no_more() {
    let (place, _) = filled(3);
    let mut store = place.open();
    give(&mut store, &create("before"));
    fs::rename(&place.path, place.path.with_extension("away")).unwrap();
    let write = |store: &mut SqliteStore| store.execute_command(&rules(), &origin(), &create("after"), nonce());
    let error = write(&mut store).unwrap_err();
    assert!(matches!(error, ExecuteError::Store(StoreError::Replaced(_))), "{error}");
    fs::copy(place.path.with_extension("away"), &place.path).unwrap();
    assert!(matches!(write(&mut store), Err(ExecuteError::Store(StoreError::Replaced(_)))));
    fs::rename(place.path.with_extension("away"), &place.path).unwrap();
    write(&mut store).unwrap();
}

/// A full disk leaves this state while a store is being made.
#[test]
fn a_database_without_anything_in_it_is_no_store_yet() {
    let place = Place::new();
    rusqlite::Connection::open(&place.path).unwrap().pragma_update(None, "journal_mode", "wal").unwrap();
    assert!(fs::metadata(&place.path).unwrap().len() > 0);
    let opened = SqliteStore::open(&place.path, Lifetime::Command).map(drop);
    assert!(matches!(opened, Err(StoreError::Missing(_))), "{opened:?}");
    give(&mut place.create(), &create("first"));
}
