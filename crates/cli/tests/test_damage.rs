//! Flipped bytes: sound data is shown and saved, damaged data is named

use std::fs;

use insta::assert_snapshot;

use crate::support::TestWorld;

/// A project whose store is one file, with nothing beside it.
fn create_single_file_store(goals: &[&str]) -> TestWorld {
    let world = TestWorld::with_tasks(goals);
    world.run_ok(&["backup", "copy.db"]);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(world.path(&format!(".windlass/windlass.db{suffix}")));
    }
    // Into the file that is there: another file would be another store.
    fs::write(world.path(".windlass/windlass.db"), fs::read(world.path("copy.db")).unwrap()).unwrap();
    world
}

/// Flips a bit in the letter that follows each of these bytes.
fn flip_store_bits(world: &TestWorld, before: &str) {
    flip_file_bits(world, ".windlass/windlass.db", before);
}

fn flip_file_bits(world: &TestWorld, file: &str, before: &str) {
    let file = world.path(file);
    let mut bytes = fs::read(&file).unwrap();
    let before = before.as_bytes();
    let places: Vec<_> = (0..bytes.len() - before.len()).filter(|at| bytes[*at..].starts_with(before)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + before.len()] ^= 1;
    }
    fs::write(file, bytes).unwrap();
}

#[test]
fn damaged_event_is_reported_and_sound_events_are_restorable() {
    let world = create_single_file_store(&["One", "Two", "Three"]);
    flip_store_bits(&world, r#""data":{"goal":"Tw"#);
    assert_snapshot!(world.run(&["events"]), @"
         1  <time>  T1     task_created              One
         2  <time>  T1     task_ready
    error: event 3 of $WORK/.windlass/windlass.db does not match its digest
    hint: `windlass doctor --export sound.jsonl` saves every valid event; `windlass doctor` says what is damaged
    [exit 1]
    ");
    let json = world.run(&["events", "--json"]);
    assert_eq!((json.code, json.stdout.lines().count(), json.stderr.as_str()), (1, 3, ""));
    assert!(json.stdout.lines().last().unwrap().starts_with(r#"{"error":"#), "{json}");
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    wrong  store          6 events
           event 3: does not match its digest
           hint: `windlass doctor --export sound.jsonl` saves every valid event, --restore puts them into a new store
    ok     agents         none found
    [exit 1]
    ");
    assert_snapshot!(world.run(&["doctor", "--rebuild"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    wrong  store          $WORK/.windlass/windlass.db
           event 3 of $WORK/.windlass/windlass.db does not match its digest
           hint: `windlass doctor --export sound.jsonl` saves every valid event; `windlass doctor` says what is damaged
    ok     agents         none found
    [exit 1]
    ");
    assert_snapshot!(world.run(&["doctor", "--export", "sound.jsonl"]), @"
    5 events saved to sound.jsonl
    lost event 3
    ");
    assert_snapshot!(world.run(&["doctor", "--export", "again.jsonl", "--json"]), @r#"{"file":"again.jsonl","lost":[[3,3]],"openEnd":false,"saved":5}"#);
    // Without the event that made T2 its other events mean nothing: the restored store ends before them.
    fs::remove_file(world.path(".windlass/windlass.db")).unwrap();
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "sound.jsonl"]), @"
    error: line 3 of sound.jsonl (event 4) contradicts the events before it
    caused by: there is no task T2
    hint: nothing was restored; the first 2 lines fit together: `head -n 2` keeps them
    [1 refused]
    ");
    let saved = fs::read_to_string(world.path("sound.jsonl")).unwrap();
    let sound: String = saved.lines().take(2).map(|line| format!("{line}\n")).collect();
    world.write("before.jsonl", sound);
    world.run_ok(&["doctor", "--restore", "before.jsonl"]);
    world.run_ok(&["trust", "--yes"]);
    assert_snapshot!(world.run(&["task", "list"]), @"T1  ready  P2  One");
}

/// The hint for an unreadable store does not lead in a circle.
#[test]
fn export_of_unreadable_store_fails_with_backup_hint() {
    let world = create_single_file_store(&["One"]);
    let file = world.path(".windlass/windlass.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    assert_snapshot!(world.expect_failure(&["doctor", "--export", "sound.jsonl"]), @"
    error: the store $WORK/.windlass/windlass.db is damaged
    caused by: database disk image is malformed
    hint: no event can be read: restore a backup, as `windlass backup --help` shows
    [1 store]
    ");
    assert!(!world.path("sound.jsonl").exists());
}

#[test]
fn damaged_row_is_reported_by_doctor_and_rebuilt_from_log() {
    let world = create_single_file_store(&["One", "Two"]);
    flip_store_bits(&world, r#""id":"T2","goal":"Tw"#);
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    wrong  store          4 events
           tasks 2 differs from the log
           hint: the log is sound: `windlass doctor --rebuild` rebuilds the rows
    ok     agents         none found
    [exit 1]
    ");
    assert_snapshot!(world.run(&["doctor", "--rebuild"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    ok     store          4 events
    ok     agents         none found
    ");
    assert_snapshot!(world.run(&["task", "list"]), @"
    T1  ready  P2  One
    T2  ready  P2  Two
    ");
}

#[test]
fn unreadable_row_fails_task_show_and_is_rebuilt_from_log() {
    let world = create_single_file_store(&["One", "Two"]);
    flip_store_bits(&world, r#""id":"T2","goal"#);
    assert_snapshot!(world.expect_failure(&["task", "show", "T2"]), @"
    error: cannot read a row of the store $WORK/.windlass/windlass.db
    caused by: Conversion error from type Text at index: 0, expected `:` at line 1 column 20
    hint: if the log is sound, `windlass doctor --rebuild` rebuilds the rows
    [1 store]
    ");
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    wrong  store          4 events
           tasks 2 differs from the log
           hint: the log is sound: `windlass doctor --rebuild` rebuilds the rows
    ok     agents         none found
    [exit 1]
    ");
    assert_snapshot!(world.run(&["doctor", "--rebuild"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    ok     store          4 events
    ok     agents         none found
    ");
}

#[test]
fn foreign_or_empty_file_is_rejected_as_store() {
    let world = TestWorld::new();
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(world.path(&format!(".windlass/windlass.db{suffix}")));
    }
    world.write(
        ".windlass/windlass.db",
        "this is text, and long enough to be taken for a header of something else".repeat(20),
    );
    assert_snapshot!(world.expect_failure(&["task", "list"]), @"
    error: $WORK/.windlass/windlass.db is not a store of Windlass
    hint: move $WORK/.windlass/windlass.db away and restore a backup, or run `windlass init` for an empty store
    [1 store]
    ");
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    wrong  store          $WORK/.windlass/windlass.db
           $WORK/.windlass/windlass.db is not a store of Windlass
           hint: move $WORK/.windlass/windlass.db away and restore a backup, or run `windlass init` for an empty store
    ok     agents         none found
    [exit 1]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--export", "x.jsonl"]), @"
    error: $WORK/.windlass/windlass.db is not a store of Windlass
    hint: move $WORK/.windlass/windlass.db away and restore a backup, or run `windlass init` for an empty store
    [1 store]
    ");
    assert!(!world.path("x.jsonl").exists());
    world.write(".windlass/windlass.db", "");
    assert_snapshot!(world.run(&["task", "list"]), @"
    error: $WORK/.windlass/windlass.db is not a store of Windlass
    hint: move $WORK/.windlass/windlass.db away and restore a backup, or run `windlass init` for an empty store
    [exit 1]
    ");
}

/// SQLite would wait for a writer of the fifo.
#[test]
fn fifo_beside_the_store_blocks_no_command() {
    let world = TestWorld::new();
    world.make_pipe(".windlass/windlass.db-journal");
    assert_snapshot!(world.expect_failure(&["task", "list"]), @"
    error: $WORK/.windlass/windlass.db-journal is not a regular file, as every file of a store is
    hint: move it away: nothing of the store is in it
    [1 store]
    ");
    assert_eq!(world.run(&["doctor"]).code, 1);
    // The store would be rolled back with the content of the link's target.
    fs::remove_file(world.path(".windlass/windlass.db-journal")).unwrap();
    std::os::unix::fs::symlink("elsewhere", world.path(".windlass/windlass.db-journal")).unwrap();
    assert!(world.expect_failure(&["task", "list"]).contains("hint: remove it: nothing of the store is in it"));
}

/// Wherever a byte is flipped: no panic, no missing report, no wrong answer.
#[test]
fn store_with_flipped_byte_never_panics_or_returns_wrong_events() {
    let world = create_single_file_store(&["One", "Two", "Three"]);
    let file = world.path(".windlass/windlass.db");
    let whole = fs::read(&file).unwrap();
    let expected = world.run_ok(&["events", "--json"]);
    for at in (0..whole.len()).step_by(whole.len() / 24 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(world.path(&format!(".windlass/windlass.db{suffix}")));
        }
        fs::write(&file, bytes).unwrap();
        let ran = world.run(&["events", "--json"]);
        let doctor = world.run(&["doctor"]);
        for ran in [&ran, &doctor] {
            assert!([0, 1].contains(&ran.code) && !ran.stderr.contains("panick"), "byte {at}\n{ran}");
        }
        let shown: Vec<_> = ran.stdout.lines().filter(|line| !line.starts_with(r#"{"error""#)).collect();
        assert!(expected.lines().zip(&shown).all(|(expected, shown)| expected == *shown), "byte {at}\n{ran}");
        assert!(ran.code == 1 || doctor.code == 1 || shown.len() == expected.lines().count(), "byte {at}\n{ran}");
    }
}

#[test]
fn damaged_wal_refuses_commands_until_sound_events_are_restored() {
    let world = TestWorld::with_tasks(&["One", "Two", "Three", "Four"]);
    flip_file_bits(&world, ".windlass/windlass.db-wal", r#""data":{"goal":"Tw"#);
    for command in [&["task", "add", "Five"][..], &["task", "list"]] {
        let refused = world.run(command);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("commits after event 2 cannot be read"), "{refused}");
    }
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    wrong  store          $WORK/.windlass/windlass.db
           the write-ahead log of $WORK/.windlass/windlass.db is damaged: commits after event 2 cannot be read
           hint: `windlass doctor --export sound.jsonl` saves every valid event; `windlass doctor` says what is damaged
    ok     agents         none found
    [exit 1]
    ");
    world.run_ok(&["doctor", "--export", "sound.jsonl"]);
    fs::create_dir(world.path("damaged")).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("windlass.db{suffix}");
        fs::rename(world.path(&format!(".windlass/{name}")), world.path(&format!("damaged/{name}"))).unwrap();
    }
    world.run_ok(&["doctor", "--restore", "sound.jsonl"]);
    world.run_ok(&["trust", "--yes"]);
    assert_snapshot!(world.run(&["task", "list"]), @"T1  ready  P2  One");
}
