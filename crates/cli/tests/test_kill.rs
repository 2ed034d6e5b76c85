//! `kill -9` in the middle: before the commit nothing has happened, after it everything has

#![cfg(debug_assertions)]

use crate::support::TestWorld;

const KILLED_EXIT_CODE: i32 = 128 + 9;

#[test]
fn command_killed_before_commit_persists_nothing() {
    let world = TestWorld::with_tasks(&["One"]);
    let before = world.json_lines(&["events"]);
    for words in [&["task", "add", "Two", "--depends", "T1"][..], &["task", "complete", "T1"], &["task", "claim"]] {
        assert_eq!(
            world.run_with_variable(("WINDLASS_FAILPOINT", "store.before_commit=kill"), words).code,
            KILLED_EXIT_CODE
        );
        assert_eq!(world.json_lines(&["events"]), before);
        world.run_ok(&["doctor"]);
    }
    assert_eq!(world.json(&["task", "add", "Two"])["id"], "T2");
}

#[test]
fn command_killed_after_commit_persists_all_changes() {
    let world = TestWorld::with_tasks(&["One"]);
    let after = ("WINDLASS_FAILPOINT", "store.after_commit=kill");
    assert_eq!(world.run_with_variable(after, &["task", "add", "Two", "--depends", "T1"]).code, KILLED_EXIT_CODE);
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "created");
    assert_eq!(world.run_with_variable(after, &["task", "complete", "T1"]).code, KILLED_EXIT_CODE);
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "ready");
    world.run_ok(&["doctor"]);
}

/// A killed command leaves no lock behind, and can be repeated.
#[test]
fn repeated_kills_lose_no_event() {
    let world = TestWorld::new();
    for number in 0..10 {
        let place = if number % 2 == 0 { "store.before_commit=kill" } else { "store.after_commit=kill" };
        let goal = format!("Task {number}");
        assert_eq!(
            world.run_with_variable(("WINDLASS_FAILPOINT", place), &["task", "add", &goal]).code,
            KILLED_EXIT_CODE
        );
    }
    let goals: Vec<_> = world.json_lines(&["task", "list"]).iter().map(|task| task["goal"].to_string()).collect();
    assert_eq!(goals, [1, 3, 5, 7, 9].map(|number| format!("\"Task {number}\"")));
    world.run_ok(&["doctor"]);
}
