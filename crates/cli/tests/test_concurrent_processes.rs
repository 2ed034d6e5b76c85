//! Eight processes at once

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use serde_json::Value;

use crate::support::TestWorld;

const PROCESSES: usize = 8;
const TASKS: usize = 6;

/// Runs the same in eight threads, each of which starts processes, and collects the results.
fn run_concurrently<T: Send>(work: impl Fn(usize) -> Vec<T> + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..PROCESSES).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no process fails")).collect()
    })
}

fn events_of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn eight_add_claim_and_complete() {
    let world = TestWorld::new();
    let added = run_concurrently(|process| {
        let add =
            |number| world.json(&["task", "add", &format!("{process}.{number}")])["id"].as_str().unwrap().to_owned();
        (0..TASKS).map(add).collect()
    });
    let ids: BTreeSet<_> = added.iter().collect();
    assert_eq!(ids.len(), PROCESSES * TASKS, "every id is given once");

    let claimed = run_concurrently(|process| {
        let owner = format!("worker-{process}");
        let mut mine = Vec::new();
        loop {
            let ran = world.run(&["--json", "task", "claim", "--owner", &owner]);
            assert!(ran.stderr.is_empty(), "{ran}");
            let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
            match ran.code {
                0 => mine.push((answer["id"].as_str().unwrap().to_owned(), owner.clone())),
                _ => break assert_eq!(answer["error"]["message"], "nothing is ready"),
            }
            let id = &mine.last().unwrap().0;
            world.run_ok(&["task", "complete", id, "--epoch", "1"]);
        }
        mine
    });
    let owners: BTreeMap<_, _> = claimed.iter().cloned().collect();
    assert_eq!((claimed.len(), owners.len()), (PROCESSES * TASKS, PROCESSES * TASKS), "each task has one owner");

    let events = world.json_lines(&["events"]);
    for kind in ["task_created", "task_ready", "task_claimed", "task_started", "task_completed"] {
        let nodes: BTreeSet<_> =
            events_of_type(&events, kind).iter().map(|event| event["nodeId"].to_string()).collect();
        assert_eq!(
            (nodes.len(), events_of_type(&events, kind).len()),
            (PROCESSES * TASKS, PROCESSES * TASKS),
            "{kind}"
        );
    }
    for event in events_of_type(&events, "task_claimed") {
        assert_eq!(event["data"]["owner"], *owners[event["nodeId"].as_str().unwrap()]);
    }
    world.run_ok(&["doctor"]);
}

#[test]
fn eight_want_the_same_task() {
    let world = TestWorld::with_tasks(&["The only one"]);
    let codes =
        run_concurrently(|process| vec![world.run(&["task", "claim", "T1", "--owner", &format!("w{process}")]).code]);
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(world.json(&["task", "show", "T1"])["lease"]["epoch"], 1);
}

#[test]
fn eight_make_the_same_project() {
    let world = TestWorld::empty();
    let made = run_concurrently(|_| vec![world.json(&["init"])]);
    assert_eq!(made.iter().filter(|report| report["created"] == true).count(), 1);
    world.run_ok(&["task", "add", "One"]);
    world.run_ok(&["doctor"]);
}

#[test]
fn eight_label_one_task() {
    let world = TestWorld::with_tasks(&["One"]);
    run_concurrently(|process| {
        vec![world.run_ok(&["task", "update", "T1", "--add-label", &format!("label-{process}")])]
    });
    let labels = world.json(&["task", "show", "T1"])["labels"].as_array().unwrap().len();
    assert_eq!(labels, PROCESSES, "no label is lost");
}

/// An agent that does nothing and claims to be done.
const COMPLETING_AGENT: &str = "command:echo '<promise>COMPLETE</promise>'";

#[test]
fn eight_runs_share_the_tasks() {
    let goals: Vec<String> = (0..PROCESSES).map(|number| format!("Task {number}")).collect();
    let world = TestWorld::with_tasks(&goals.iter().map(String::as_str).collect::<Vec<_>>());
    let ran = run_concurrently(|_| vec![world.run(&["run", "--agent", COMPLETING_AGENT])]);
    for ran in &ran {
        // Without git all of them work in one directory, and a run that begins late gets a note.
        let is_quiet = ran.stderr.lines().all(|line| line.contains("works in the same directory"));
        assert!(ran.code == 0 && is_quiet, "{ran}");
    }
    let events = world.json_lines(&["events"]);
    let (completed, sessions) = (events_of_type(&events, "task_completed"), events_of_type(&events, "session_started"));
    let tasks: BTreeSet<_> = completed.iter().map(|event| event["nodeId"].to_string()).collect();
    assert_eq!((completed.len(), tasks.len()), (PROCESSES, PROCESSES), "each is completed once");
    let names: BTreeSet<_> = sessions.iter().map(|event| event["session"].to_string()).collect();
    assert_eq!(names.len(), sessions.len(), "each session has a name of its own");
    world.run_ok(&["doctor"]);
}

#[test]
fn eight_want_the_same_goal() {
    let world = TestWorld::new();
    // The first one waits until the others have got the note.
    let agent =
        format!("command:mkdir began && exec 3<>told && head -n {} <&3; {}", PROCESSES - 1, &COMPLETING_AGENT[8..]);
    assert!(world.program("mkfifo").arg(world.path("told")).status().unwrap().success());
    let ran = run_concurrently(|_| {
        let ran = world.run(&["run", "Mend the pump", "--agent", &agent]);
        if ran.code != 0 {
            std::fs::write(world.path("told"), "told\n").unwrap();
        }
        vec![ran]
    });
    let (well, told): (Vec<_>, Vec<_>) = ran.iter().partition(|ran| ran.code == 0);
    assert_eq!(well.len(), 1, "one of them works on it");
    for ran in told {
        assert!(ran.stderr.starts_with("error: session `mend-the-pump-") && ran.stderr.contains("is running"), "{ran}");
    }
}
