//! `windlass task …`

use insta::assert_snapshot;
use serde_json::json;

use crate::support::TestWorld;

#[test]
fn task_passes_from_add_to_complete_and_unblocks_dependent() {
    let world = TestWorld::new();
    let add = ["task", "add", "Fix the login", "--priority", "0", "--label", "bug", "--deliverable", "src/login.rs"];
    assert_snapshot!(world.run(&[&add[..], &["--body", "It says no.\n\nTo everybody."]].concat()), @"T1  ready  P0  Fix the login #bug");
    assert_snapshot!(world.run(&["task", "add", "Release", "--depends", "T1", "--type", "chore"]), @"T2  created  P2  Release (waits for 1)");
    assert_snapshot!(world.run(&["task", "list"]), @"
    T1  ready    P0  Fix the login #bug
    T2  created  P2  Release (waits for 1)
    ");
    assert_snapshot!(world.run(&["task", "ready"]), @"T1  ready  P0  Fix the login #bug");
    assert_snapshot!(world.run(&["task", "next"]), @"T1  ready  P0  Fix the login #bug");
    assert_snapshot!(world.run(&["task", "start", "T1"]), @"T1  active  P0  Fix the login #bug");
    assert_snapshot!(world.run(&["task", "complete", "T1", "--result", "it says yes", "--artifact", "src/login.rs"]), @"
    T1  completed  P0  Fix the login #bug
    → T2 is ready
    ");
    assert_snapshot!(world.run(&["task", "show", "T1"]), @"
    T1  completed  P0  Fix the login #bug

    It says no.

    To everybody.

      label         bug
      deliverable   src/login.rs
      result        it says yes
      artifact      src/login.rs
      created       <time>
      started       <time>
      completed     <time>
      edge          T2 depends_on T1
    ");
    assert_snapshot!(world.run(&["task", "show", "T2"]), @"
    T2  ready  P2  Release
      type          chore
      created       <time>
      edge          T2 depends_on T1
    ");
    assert_snapshot!(world.run(&["task", "list"]), @"T2  ready  P2  Release");
    assert_snapshot!(world.run(&["task", "list", "--all", "--label", "bug"]), @"T1  completed  P0  Fix the login #bug");
}

#[test]
fn one_object_for_one_task() {
    let world = TestWorld::new();
    let task = world.json(&["task", "add", "Fix", "-l", "bug", "-l", "bug", "-p", "1", "-d", "a.rs", "-t", "hotfix"]);
    assert_eq!(
        (&task["id"], &task["state"], &task["labels"], &task["priority"], &task["type"], &task["deliverables"]),
        (&json!("T1"), &json!("ready"), &json!(["bug"]), &json!(1), &json!("hotfix"), &json!(["a.rs"]))
    );
    for words in [
        &["task", "update", "T1", "--goal", "Mend"][..],
        &["task", "claim", "T1", "--owner", "w"],
        &["task", "release", "T1", "--epoch", "1"],
        &["task", "start", "T1"],
        &["task", "block", "T1", "--reason", "why?", "--needs", "an answer"],
        &["task", "unblock", "T1"],
        &["task", "next"],
        &["task", "fail", "T1", "--reason", "no"],
        &["task", "reopen", "T1"],
        &["task", "complete", "T1"],
        &["task", "show", "T1"],
    ] {
        let task = world.json(words);
        assert_eq!((&task["id"], &task["goal"]), (&json!("T1"), &json!("Mend")), "{words:?}");
    }
    world.run_ok(&["task", "add", "Two"]);
    assert_eq!(
        world.json(&["task", "depend", "T2", "T1"]),
        json!({"fromId": "T2", "edgeType": "depends_on", "toId": "T1", "changed": true})
    );
    assert_eq!(world.json(&["task", "depend", "T2", "T1"])["changed"], false);
    assert_eq!(world.json(&["task", "show", "T2"])["edges"][0]["toId"], "T1");
    assert_eq!(world.json(&["task", "undepend", "T2", "T1"])["changed"], true);
    assert_eq!(world.json(&["task", "delete", "T2"]), json!({"deleted": ["T2"]}));
    let all = world.json_lines(&["task", "list", "--all"]);
    assert_eq!(all.iter().map(|task| &task["state"]).collect::<Vec<_>>(), ["completed", "deleted"]);
    assert!(world.json_lines(&["task", "list"]).is_empty());
    assert!(world.json_lines(&["task", "ready"]).is_empty());
}

#[test]
fn task_commands_that_violate_rules_are_refused() {
    let world = TestWorld::with_tasks(&["One", "Two"]);
    world.run_ok(&["task", "depend", "T2", "T1"]);
    assert_snapshot!(world.expect_failure(&["task", "show", "T9"]), @"
    error: there is no task T9
    hint: `windlass task list --all` shows every task
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["task", "start", "T2"]), @"
    error: T2 waits for T1
    hint: complete T1 first, or remove the dependency with `windlass task undepend T2 T1`
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "depend", "T1", "T2"]), @"
    error: cannot add the edge: it would close a cycle: T1 → T2 → T1
    hint: take one of these dependencies away first
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "depend", "T1", "T1"]), @"
    error: cannot link T1 to itself
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "undepend", "T1", "T2"]), @"
    error: there is no edge T1 depends_on T2
    hint: `windlass task show T1` shows its edges
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["task", "delete", "T1"]), @"
    error: cannot delete T1: it is needed by T2
    hint: --cascade deletes them too; --force deletes it alone and blocks them
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "unblock", "T1"]), @"
    error: cannot unblock T1: it is ready, and that is possible only from blocked
    hint: `windlass events --task T1` shows how it got there
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "update", "T1"]), @"
    error: no change was given
    hint: `windlass task update --help` shows the options
    [64 usage]
    ");
    world.run_ok(&["task", "claim", "--owner", "worker-1"]);
    assert_snapshot!(world.expect_failure(&["task", "next"]), @"
    error: nothing is ready
    hint: `windlass task graph` shows what waits for what
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "claim"]), @"
    error: nothing is ready
    hint: `windlass task graph` shows what waits for what
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "complete", "T1"]), @"
    error: T1 is held by worker-1 (epoch 1)
    hint: its holder gives --epoch 1; --force overrides the holder, and is recorded
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["task", "complete", "T1", "--epoch", "7"]), @"
    error: epoch 7 of T1 is over; epoch 1 holds it
    hint: claim it again with `windlass task claim T1`, if it can be claimed
    [1 refused]
    ");
    world.run_ok(&["task", "complete", "T1", "--epoch", "1"]);
    assert_snapshot!(world.expect_failure(&["task", "reopen", "T1"]), @"
    error: cannot reopen T1: it is completed, and that is possible only from failed
    hint: --force does it anyway, and is recorded
    [1 refused]
    ");
}

#[test]
fn force_is_recorded() {
    let world = TestWorld::with_tasks(&["One", "Two"]);
    world.run_ok(&["task", "depend", "T2", "T1"]);
    world.run_ok(&["task", "claim", "T1", "--owner", "worker-1"]);
    assert_snapshot!(world.run(&["task", "complete", "T1", "--force"]), @"
    T1  completed  P2  One
    → T2 is ready
    ");
    assert_snapshot!(world.run(&["task", "reopen", "T1", "--force", "--reason", "not done after all"]), @"
    T1  ready  P2  One
    → T2 waits again
    ");
    assert_snapshot!(world.run(&["task", "delete", "T1", "--force"]), @"
    deleted T1
    → T2 is blocked: its dependency T1 was deleted
    ");
    assert_snapshot!(world.run(&["task", "delete", "T2", "--cascade"]), @"deleted T2");
    let events = world.json_lines(&["events", "--task", "T1"]);
    let forced: Vec<_> = events.iter().filter(|event| event["metadata"]["forced"] == true).collect();
    assert!(forced.iter().any(|event| event["type"] == "task_completed"), "{forced:?}");
}

#[test]
fn edges_of_every_kind() {
    let world = TestWorld::with_tasks(&["One", "Two", "Three"]);
    assert_snapshot!(world.run(&["task", "link", "T1", "blocks", "T2"]), @"
    T1 blocks T2
    → T2 waits again
    ");
    assert_snapshot!(world.run(&["task", "link", "T3", "references", "T1"]), @"T3 references T1");
    assert_snapshot!(world.run(&["task", "unlink", "T1", "blocks", "T2"]), @"
    T1 blocks T2 (taken away)
    → T2 is ready
    ");
    assert_snapshot!(world.run(&["task", "unlink", "T3", "references", "T1"]), @"T3 references T1 (taken away)");
    assert_snapshot!(world.run(&["task", "add", "Four", "--parent", "T1"]), @"T4  ready  P2  Four");
    assert_snapshot!(world.expect_failure(&["task", "link", "T1", "bloks", "T2"]), @"
    error: invalid value 'bloks' for '<KIND>' [possible values: depends_on, spawned_by, blocks, references, produces, requires_knowledge]
    hint: did you mean `blocks`? `windlass task link --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn empty_task_list_states_its_reason() {
    let world = TestWorld::new();
    assert_snapshot!(world.run(&["task", "list"]), @"no tasks; `windlass task add GOAL` makes one");
    assert_snapshot!(world.run(&["task", "ready"]), @"nothing is ready");
    world.run_ok(&["task", "add", "One"]);
    assert_snapshot!(world.run(&["task", "list", "--label", "nope"]), @"no such tasks");
    world.run_ok(&["task", "complete", "T1"]);
    assert_snapshot!(world.run(&["task", "list"]), @"nothing is open; --all shows completed and deleted tasks too");
}

#[test]
fn task_list_limit_bounds_output() {
    let world = TestWorld::with_tasks(&["One", "Two", "Three"]);
    assert_eq!(world.json_lines(&["task", "list", "--limit", "2"]).len(), 2);
    assert_eq!(world.json_lines(&["task", "ready", "--limit", "1"]).len(), 1);
    assert_eq!(world.json_lines(&["task", "ready", "--limit", "99999999999999999999999"]).len(), 3);
    assert_snapshot!(world.run(&["task", "ready", "--limit", "1"]), @"
    T1  ready  P2  One
    there are more; --limit shows them
    ");
    for words in [&["task", "list"][..], &["task", "ready"], &["events"]] {
        for wrong in ["0", "-1", "x", "", "1.5"] {
            let said = world.expect_failure(&[words, &[&format!("--limit={wrong}")]].concat());
            assert!(said.ends_with("[64 usage]"), "{said}");
        }
    }
}

#[test]
fn lists_are_taken_away_like_texts() {
    let world = TestWorld::new();
    world.run_ok(&["task", "add", "One", "-l", "a", "-l", "b", "-d", "x"]);
    assert_snapshot!(world.run(&["task", "update", "T1", "--label", "", "--deliverable", ""]), @"T1  ready  P2  One");
    assert_eq!(world.json(&["task", "show", "T1"])["deliverables"], serde_json::json!([]));
    assert!(
        world
            .expect_failure(&["task", "update", "T1", "--label", "", "--label", "c"])
            .starts_with("error: a label is empty")
    );
}

#[test]
fn completed_task_shows_no_open_dependencies() {
    let world = TestWorld::with_tasks(&["One"]);
    world.run_ok(&["task", "add", "Two", "--depends", "T1"]);
    assert_snapshot!(world.run(&["task", "complete", "T2", "--force"]), @"T2  completed  P2  Two");
    assert!(!world.run_ok(&["task", "show", "T2"]).contains("waits for"));
}

#[test]
fn held_task_is_deleted_with_epoch_of_its_holder() {
    let world = TestWorld::with_tasks(&["One"]);
    world.run_ok(&["task", "claim", "T1", "--owner", "worker-1"]);
    assert_snapshot!(world.expect_failure(&["task", "delete", "T1"]), @"
    error: T1 is held by worker-1 (epoch 1)
    hint: its holder gives --epoch 1; --force overrides the holder, and is recorded
    [1 refused]
    ");
    assert_snapshot!(world.run(&["task", "delete", "T1", "--epoch", "1"]), @"deleted T1");
}
