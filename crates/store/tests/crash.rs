//! Crashes of writing processes: the log holds every acknowledged commit, and no commit in part.
//!
//! Each test runs this test program again as a child. Environment variables configure the child.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(clippy::disallowed_methods, reason = "a child process crashes, and environment variables configure it")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windlass_engine::{EventRecord, Seq};
use windlass_store::{AppendOutcome, EventFilter, ExecuteError, Lifetime, SqliteStore, Store, StoreCommit, failpoint};

use support::{
    TempStore, command_origin, commit_command, create_dependent_task, create_task, engine_rules, next_nonce, read_log,
};

/// Environment variables of a child: the path of the store, the number of commits, and the failpoint.
const STORE_VARIABLE: &str = "WINDLASS_TEST_STORE";
const COMMITS_VARIABLE: &str = "WINDLASS_TEST_COMMITS";
const FAIL_VARIABLE: &str = "WINDLASS_TEST_FAIL";

/// The start of every line that reports an acknowledged commit.
const ACKNOWLEDGED_PREFIX: &str = "acknowledged ";

fn start_child(temp_store: &TempStore, commits: u64, fail: &str) -> Child {
    start_child_test(temp_store, "child_appends_and_acknowledges_requested_commits", commits, fail)
}

fn start_child_test(temp_store: &TempStore, test: &str, commits: u64, fail: &str) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]);
    program.env(STORE_VARIABLE, &temp_store.path).env(COMMITS_VARIABLE, commits.to_string()).env(FAIL_VARIABLE, fail);
    program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs in a child: appends commits of several events, and prints a line for each of them.
#[test]
fn child_appends_and_acknowledges_requested_commits() {
    let Some(path) = std::env::var_os(STORE_VARIABLE).map(PathBuf::from) else { return };
    failpoint::arm_failpoint(&std::env::var(FAIL_VARIABLE).unwrap());
    let commits: u64 = std::env::var(COMMITS_VARIABLE).unwrap().parse().unwrap();
    let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
    let mut worst = Duration::ZERO;
    for _ in 0..commits {
        let began = Instant::now();
        // Each commit has three events and several rows, so that a crash could tear it.
        match store.execute_command(
            &engine_rules(),
            &command_origin(),
            &create_dependent_task("one of many", &[1, 2]),
            next_nonce(),
        ) {
            Ok(records) => print_line(&format!("{ACKNOWLEDGED_PREFIX}{} {}", records[0].seq, records.len())),
            Err(ExecuteError::Store(error)) => return print_line(&format!("failed {error}")),
            Err(other) => panic!("{other}"),
        }
        worst = worst.max(began.elapsed());
    }
    print_line(&format!("worst {}", worst.as_micros()));
}

/// Writes a line in one call, so that no output of libtest comes in between.
fn print_line(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// Returns the first position and the number of events of each commit that a child acknowledged.
fn parse_acknowledged(printed: &str) -> Vec<(u64, u64)> {
    let lines = printed.lines().filter_map(|line| line.strip_prefix(ACKNOWLEDGED_PREFIX));
    lines
        .map(|line| line.split_once(' ').map(|(seq, events)| (seq.parse().unwrap(), events.parse().unwrap())).unwrap())
        .collect()
}

/// Creates a store with the two tasks that later tasks depend on.
fn store_with_two_tasks() -> TempStore {
    let temp_store = TempStore::new();
    let mut store = temp_store.create();
    commit_command(&mut store, &create_task("first"));
    commit_command(&mut store, &create_task("second"));
    temp_store
}

/// Checks that the log holds every acknowledged commit, and no commit in part. Returns the log.
fn check_commits(temp_store: &TempStore, acknowledged: &[(u64, u64)]) -> Vec<EventRecord> {
    let mut store = temp_store.open();
    let log = read_log(&store);
    assert_eq!((log.len() - 4) % 3, 0, "a part of a commit is there");
    for (first, events) in acknowledged {
        assert_eq!(*events, 3);
        let records = store.read_events(&EventFilter::default(), Seq(first - 1), 3).unwrap();
        let task = records[0].envelope.node;
        assert!(
            records.len() == 3 && records.iter().all(|record| record.envelope.node == task),
            "{first} is not there"
        );
    }
    let report = store.inspect_store().unwrap();
    assert!(report.is_sound(), "{report:?}");
    commit_command(&mut store, &create_dependent_task("life goes on", &[1, 2]));
    log
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    let temp_store = store_with_two_tasks();
    let mut all = Vec::new();
    for commits in [0, 1, 2, 3, 5, 8, 13, 21] {
        let mut child = start_child(&temp_store, u64::MAX, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // The kill happens at an arbitrary moment after the last of these lines has arrived.
        let mut printed = String::new();
        while parse_acknowledged(&printed).len() < commits {
            assert_ne!(lines.read_line(&mut printed).unwrap(), 0, "the child ended: {printed}");
        }
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        lines.read_to_string(&mut printed).unwrap();
        all.extend(parse_acknowledged(&printed));
        check_commits(&temp_store, &all);
    }
    assert!(all.len() >= 53);
}

#[test]
fn killed_before_the_commit_nothing_is_there() {
    let temp_store = store_with_two_tasks();
    let child = start_child(&temp_store, 1, "store.before_commit=kill").wait_with_output().unwrap();
    assert_eq!(child.status.signal(), Some(9));
    assert_eq!(parse_acknowledged(&String::from_utf8(child.stdout).unwrap()), []);
    assert_eq!(check_commits(&temp_store, &[]).len(), 4);
}

#[test]
fn killed_after_the_commit_all_of_it_is_there() {
    let temp_store = store_with_two_tasks();
    let child = start_child(&temp_store, 1, "store.after_commit=kill").wait_with_output().unwrap();
    assert_eq!(child.status.signal(), Some(9));
    assert_eq!(parse_acknowledged(&String::from_utf8(child.stdout).unwrap()), []);
    assert_eq!(check_commits(&temp_store, &[(5, 3)]).len(), 7);
}

#[test]
fn failure_before_commit_rolls_back_all_events() {
    let temp_store = store_with_two_tasks();
    let child = start_child(&temp_store, 1, "store.before_commit=error").wait_with_output().unwrap();
    let printed = String::from_utf8(child.stdout).unwrap();
    assert!(printed.contains("failed cannot use"), "{printed}");
    assert_eq!(check_commits(&temp_store, &[]).len(), 4);
}

/// The disk stores the commit and does not report it. A later read finds the commit, which counts once.
#[test]
fn command_with_unknown_commit_outcome_is_found_and_acknowledged_once() {
    let temp_store = store_with_two_tasks();
    let child = start_child(&temp_store, 3, "store.after_commit=error").wait_with_output().unwrap();
    let printed = String::from_utf8(child.stdout).unwrap();
    let acknowledged = parse_acknowledged(&printed);
    assert_eq!(acknowledged, [(5, 3), (8, 3), (11, 3)], "{printed}");
    assert_eq!(check_commits(&temp_store, &acknowledged).len(), 13);
}

/// Runs in a child: appends a commit with an unknown outcome, and appends it again.
#[test]
fn child_is_not_told() {
    let Some(path) = std::env::var_os(STORE_VARIABLE).map(PathBuf::from) else { return };
    failpoint::arm_failpoint(&std::env::var(FAIL_VARIABLE).unwrap());
    let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
    let commit = {
        let (rules, origin, command) = (engine_rules(), command_origin(), create_dependent_task("appended", &[1, 2]));
        let view = store.open_view().unwrap();
        let decided = windlass_engine::decide(&*view, &rules, &origin, &command).unwrap();
        StoreCommit {
            id: windlass_engine::CommitId { after: view.head_position().unwrap(), nonce: next_nonce() },
            reads: decided.scopes_read().unwrap(),
            events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
        }
    };
    assert_eq!(store.append_commit(&commit).unwrap(), AppendOutcome::Unknown);
    assert_eq!(store.append_commit(&commit).unwrap(), AppendOutcome::AlreadyApplied(vec![Seq(5), Seq(6), Seq(7)]));
}

#[test]
fn append_with_unknown_outcome_is_found_already_applied() {
    let temp_store = store_with_two_tasks();
    let child =
        start_child_test(&temp_store, "child_is_not_told", 0, "store.after_commit=error").wait_with_output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(check_commits(&temp_store, &[(5, 3)]).len(), 7);
}

#[test]
fn eight_programs_at_once_lose_nothing() {
    const COMMITS_PER_CHILD: u64 = 60;
    let temp_store = store_with_two_tasks();
    let began = Instant::now();
    let children: Vec<_> = (0..8).map(|_| start_child(&temp_store, COMMITS_PER_CHILD, "")).collect();
    let mut all = Vec::new();
    let mut worst = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{printed}");
        all.extend(parse_acknowledged(&printed));
        let own = printed.lines().find_map(|line| line.strip_prefix("worst ")).expect("no child failed");
        worst = worst.max(own.parse().unwrap());
    }
    let took = began.elapsed();
    assert_eq!(all.len(), 8 * COMMITS_PER_CHILD as usize);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8 * COMMITS_PER_CHILD as usize, "two commits at one place");
    let events = check_commits(&temp_store, &all).len();
    println!(
        "eight processes: {events} events in {took:?}, {:.0} events/s; the worst wait was {:?}",
        events as f64 / took.as_secs_f64(),
        Duration::from_micros(worst)
    );
}
