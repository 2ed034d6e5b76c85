//! Programs that die: every commit that they acknowledged is in the log, and no commit is there in part.
//!
//! The children are this program again. An environment variable tells them what to do.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]
#![expect(clippy::disallowed_methods, reason = "what dies here is a child process, and the child has to be told")]

mod scene;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windlass_engine::{EventRecord, Seq};
use windlass_store::{AppendOutcome, EventFilter, ExecuteError, Lifetime, SqliteStore, Store, StoreCommit, failpoint};

use scene::{Place, create, create_after, everything, give, nonce, origin, rules};

/// Environment variables for a child: the store, the number of commits, and where to fail.
const STORE: &str = "WINDLASS_TEST_STORE";
const COMMITS: &str = "WINDLASS_TEST_COMMITS";
const FAIL: &str = "WINDLASS_TEST_FAIL";

/// Start of every line that a child writes for the test.
const ACKNOWLEDGED: &str = "acknowledged ";

fn child(place: &Place, commits: u64, fail: &str) -> Child {
    child_that(place, "child_appends", commits, fail)
}

fn child_that(place: &Place, test: &str, commits: u64, fail: &str) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]);
    program.env(STORE, &place.path).env(COMMITS, commits.to_string()).env(FAIL, fail);
    program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Run in a child: appends commits of several events, and writes a line for each.
#[test]
fn child_appends() {
    let Some(path) = std::env::var_os(STORE).map(PathBuf::from) else { return };
    failpoint::arm(&std::env::var(FAIL).unwrap());
    let commits: u64 = std::env::var(COMMITS).unwrap().parse().unwrap();
    let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
    let mut worst = Duration::ZERO;
    for _ in 0..commits {
        let began = Instant::now();
        // Three events and several rows: enough to be torn.
        match store.execute_command(&rules(), &origin(), &create_after("one of many", &[1, 2]), nonce()) {
            Ok(records) => say(&format!("{ACKNOWLEDGED}{} {}", records[0].seq, records.len())),
            Err(ExecuteError::Store(error)) => return say(&format!("failed {error}")),
            Err(other) => panic!("{other}"),
        }
        worst = worst.max(began.elapsed());
    }
    say(&format!("worst {}", worst.as_micros()));
}

/// Writes a line in one call, whole or not at all. Output of libtest must not come in between.
fn say(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// Returns the commits that a child acknowledged: their first positions and their numbers of events.
fn acknowledged(said: &str) -> Vec<(u64, u64)> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(ACKNOWLEDGED));
    lines
        .map(|line| line.split_once(' ').map(|(seq, events)| (seq.parse().unwrap(), events.parse().unwrap())).unwrap())
        .collect()
}

/// Makes a store with two tasks to depend on.
fn place() -> Place {
    let place = Place::new();
    let mut store = place.create();
    give(&mut store, &create("first"));
    give(&mut store, &create("second"));
    place
}

/// Checks that every acknowledged commit is there, and no commit in part. Returns the log.
fn check(place: &Place, acknowledged: &[(u64, u64)]) -> Vec<EventRecord> {
    let mut store = place.open();
    let log = everything(&store);
    assert_eq!((log.len() - 4) % 3, 0, "a part of a commit is there");
    for (first, events) in acknowledged {
        assert_eq!(*events, 3);
        let there = store.read_events(&EventFilter::default(), Seq(first - 1), 3).unwrap();
        let task = there[0].envelope.node;
        assert!(there.len() == 3 && there.iter().all(|record| record.envelope.node == task), "{first} is not there");
    }
    let report = store.inspect_store().unwrap();
    assert!(report.is_sound(), "{report:?}");
    give(&mut store, &create_after("life goes on", &[1, 2]));
    log
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    let place = place();
    let mut all = Vec::new();
    for commits in [0, 1, 2, 3, 5, 8, 13, 21] {
        let mut child = child(&place, u64::MAX, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // The kill hits any moment after the last of these lines has arrived.
        let mut said = String::new();
        while acknowledged(&said).len() < commits {
            assert_ne!(lines.read_line(&mut said).unwrap(), 0, "the child ended: {said}");
        }
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        lines.read_to_string(&mut said).unwrap();
        all.extend(acknowledged(&said));
        check(&place, &all);
    }
    assert!(all.len() >= 53);
}

#[test]
fn killed_before_the_commit_nothing_is_there() {
    let place = place();
    let child = child(&place, 1, "store.before_commit=kill").wait_with_output().unwrap();
    assert_eq!(child.status.signal(), Some(9));
    assert_eq!(acknowledged(&String::from_utf8(child.stdout).unwrap()), []);
    assert_eq!(check(&place, &[]).len(), 4);
}

#[test]
fn killed_after_the_commit_all_of_it_is_there() {
    let place = place();
    let child = child(&place, 1, "store.after_commit=kill").wait_with_output().unwrap();
    assert_eq!(child.status.signal(), Some(9));
    assert_eq!(acknowledged(&String::from_utf8(child.stdout).unwrap()), []);
    assert_eq!(check(&place, &[(5, 3)]).len(), 7);
}

#[test]
fn a_failure_before_the_commit_undoes_all_of_it() {
    let place = place();
    let child = child(&place, 1, "store.before_commit=error").wait_with_output().unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(said.contains("failed cannot use"), "{said}");
    assert_eq!(check(&place, &[]).len(), 4);
}

/// The disk took the commit and did not report it: another read finds it, and it counts once.
#[test]
fn an_unknown_outcome_is_looked_up() {
    let place = place();
    let child = child(&place, 3, "store.after_commit=error").wait_with_output().unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    let acknowledged = acknowledged(&said);
    assert_eq!(acknowledged, [(5, 3), (8, 3), (11, 3)], "{said}");
    assert_eq!(check(&place, &acknowledged).len(), 13);
}

/// Run in a child: the same for a commit that was decided before.
#[test]
fn child_is_not_told() {
    let Some(path) = std::env::var_os(STORE).map(PathBuf::from) else { return };
    failpoint::arm(&std::env::var(FAIL).unwrap());
    let mut store = SqliteStore::open(&path, Lifetime::Command).unwrap();
    let commit = {
        let (rules, origin, command) = (rules(), origin(), create_after("appended", &[1, 2]));
        let view = store.open_view().unwrap();
        let decided = windlass_engine::decide(&*view, &rules, &origin, &command).unwrap();
        StoreCommit {
            id: windlass_engine::CommitId { after: view.head_position().unwrap(), nonce: nonce() },
            reads: decided.scopes_read().unwrap(),
            events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
        }
    };
    assert_eq!(store.append(&commit).unwrap(), Appended::Unknown);
    assert_eq!(store.append(&commit).unwrap(), Appended::AlreadyApplied(vec![Seq(5), Seq(6), Seq(7)]));
}

#[test]
fn an_unknown_outcome_of_an_append_is_looked_up() {
    let place = place();
    let child = child_that(&place, "child_is_not_told", 0, "store.after_commit=error").wait_with_output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(check(&place, &[(5, 3)]).len(), 7);
}

#[test]
fn eight_programs_at_once_lose_nothing() {
    const EACH: u64 = 60;
    let place = place();
    let began = Instant::now();
    let children: Vec<_> = (0..8).map(|_| child(&place, EACH, "")).collect();
    let mut all = Vec::new();
    let mut worst = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}");
        all.extend(acknowledged(&said));
        let own = said.lines().find_map(|line| line.strip_prefix("worst ")).expect("no child failed");
        worst = worst.max(own.parse().unwrap());
    }
    let took = began.elapsed();
    assert_eq!(all.len(), 8 * EACH as usize);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8 * EACH as usize, "two commits at one place");
    let events = check(&place, &all).len();
    println!(
        "eight processes: {events} events in {took:?}, {:.0} events/s; the worst wait was {:?}",
        events as f64 / took.as_secs_f64(),
        Duration::from_micros(worst)
    );
}
