//! `kill -9` in the middle: before the commit nothing has happened, after it everything has

#![cfg(debug_assertions)]

use crate::support::World;

const KILLED: i32 = 128 + 9;

#[test]
fn before_the_commit_there_is_nothing() {
    let world = World::with_tasks(&["One"]);
    let before = world.lines(&["events"]);
    for words in [&["task", "add", "Two", "--depends", "T1"][..], &["task", "complete", "T1"], &["task", "claim"]] {
        assert_eq!(world.run_with(("WINDLASS_FAILPOINT", "store.before_commit=kill"), words).code, KILLED);
        assert_eq!(world.lines(&["events"]), before);
        world.ok(&["doctor"]);
    }
    assert_eq!(world.json(&["task", "add", "Two"])["id"], "T2");
}

#[test]
fn after_the_commit_there_is_everything() {
    let world = World::with_tasks(&["One"]);
    let after = ("WINDLASS_FAILPOINT", "store.after_commit=kill");
    assert_eq!(world.run_with(after, &["task", "add", "Two", "--depends", "T1"]).code, KILLED);
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "created");
    assert_eq!(world.run_with(after, &["task", "complete", "T1"]).code, KILLED);
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "ready");
    world.ok(&["doctor"]);
}

/// A killed command leaves no lock behind, and can be repeated.
#[test]
fn again_and_again() {
    let world = World::new();
    for number in 0..10 {
        let place = if number % 2 == 0 { "store.before_commit=kill" } else { "store.after_commit=kill" };
        let goal = format!("Task {number}");
        assert_eq!(world.run_with(("WINDLASS_FAILPOINT", place), &["task", "add", &goal]).code, KILLED);
    }
    let goals: Vec<_> = world.lines(&["task", "list"]).iter().map(|task| task["goal"].to_string()).collect();
    assert_eq!(goals, [1, 3, 5, 7, 9].map(|number| format!("\"Task {number}\"")));
    world.ok(&["doctor"]);
}
