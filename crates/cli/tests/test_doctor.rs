//! `windlass doctor` and `backup`, on a store that is sound

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::TestWorld;

fn remove_store(world: &TestWorld) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(world.path(&format!(".windlass/windlass.db{suffix}")));
    }
}

/// Tasks with dependencies, claims, blocks and reviews.
fn create_task_history() -> TestWorld {
    let world = TestWorld::new();
    world.run_ok(&["task", "add", "Parse", "--label", "agent", "--body", "all of it"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run_ok(&["task", "claim", "--owner", "worker-1"]);
    world.run_ok(&["task", "complete", "T1", "--epoch", "1", "--result", "done"]);
    world.run_ok(&["task", "block", "T2", "--reason", "how?"]);
    world
}

#[test]
fn doctor_reports_all_checks_ok_for_sound_project() {
    let world = TestWorld::with_tasks(&["One"]);
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    ok     store          2 events
    ok     agents         none found
    ");
    assert_snapshot!(world.run(&["doctor", "--json"]), @r#"{"checks":[{"check":"configuration","hint":null,"note":"0 hooks that run something; trust: trusted","ok":true,"problems":[]},{"check":"store","hint":null,"note":"2 events","ok":true,"problems":[]},{"check":"agents","hint":null,"note":"none found","ok":true,"problems":[]}],"ok":true}"#);
    assert_snapshot!(world.run(&["doctor", "--rebuild"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    ok     store          2 events
    ok     agents         none found
    ");
}

#[test]
fn agents_are_looked_for_and_not_started() {
    let world = TestWorld::empty();
    for (name, script) in [("claude", "touch started"), ("gemini", "touch started")] {
        let program = world.program_directory().join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.run_ok(&["init"]);
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: trusted
    ok     store          0 events
    ok     agents         claude, gemini
    ");
    world.write(
        ".windlass/config.yaml",
        "agent: gemini\nagents:\n  mine: {driver: acp, command: nowhere --acp}\n  other: {driver: claude}\n",
    );
    assert_snapshot!(world.run(&["doctor"]), @r"
    ok     configuration  0 hooks that run something; trust: changed
    ok     store          0 events
    wrong  agents         gemini, other, claude
           mine: cannot find the program nowhere
           hint: install it, or name another one with `agent:` or --agent
    [exit 1]
    ");
    world.run_ok(&["trust", "--yes"]);
    world.run(&["doctor"]);
    assert!(!world.path("started").exists());
}

#[test]
fn backup_file_works_as_store_and_preserves_events() {
    let world = create_task_history();
    assert_snapshot!(world.run(&["backup", "monday.db"]), @"saved to monday.db");
    assert_snapshot!(world.expect_failure(&["backup", "monday.db"]), @"
    error: monday.db already exists
    hint: choose another name; nothing is overwritten
    [1 store]
    ");
    assert_snapshot!(world.expect_failure(&["backup", "no/such/directory.db"]), @"
    error: cannot write no/such/directory.db
    caused by: there is no directory no/such
    [1 system]
    ");
    let events = world.json_lines(&["events"]);
    world.run_ok(&["task", "add", "Later"]);
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(world.path(&format!(".windlass/windlass.db{suffix}"))).unwrap();
    }
    fs::copy(world.path("monday.db"), world.path(".windlass/windlass.db")).unwrap();
    assert_eq!(world.json_lines(&["events"]), events);
    assert_eq!(world.json(&["task", "add", "Next"])["id"], "T4");
    world.run_ok(&["doctor"]);
}

#[test]
fn exported_events_are_restored_into_empty_store() {
    let world = create_task_history();
    let (events, tasks) = (world.json_lines(&["events"]), world.json_lines(&["task", "list", "--all"]));
    assert_snapshot!(world.run(&["doctor", "--export", "sound.jsonl"]), @"14 events saved to sound.jsonl");
    assert_snapshot!(world.expect_failure(&["doctor", "--export", "sound.jsonl"]), @"
    error: cannot write sound.jsonl
    caused by: File exists (os error 17)
    hint: choose another name; nothing is overwritten
    [1 system]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "sound.jsonl"]), @"
    error: the store has events already
    hint: events are restored into an empty store: move .windlass/windlass.db* away first
    [1 refused]
    ");
    remove_store(&world);
    assert_snapshot!(world.run(&["doctor", "--restore", "sound.jsonl"]), @"
    14 events restored from sound.jsonl
    They come from a file: `windlass trust` shows what they hold, and asks, before any of it is used.
    ");
    assert_eq!(world.run(&["task", "add", "Next"]).code, 64);
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.json_lines(&["events"]), events);
    assert_eq!(world.json_lines(&["task", "list", "--all"]), tasks);
    world.run_ok(&["doctor"]);
    assert_eq!(world.json(&["task", "add", "Next"])["id"], "T4");
}

/// A reader takes an existing file for a complete export.
#[test]
fn killed_or_failed_export_creates_no_output_file() {
    let world = create_task_history();
    let export = ["doctor", "--export", "sound.jsonl"];
    let killed = world.run_with_variable(("WINDLASS_FAILPOINT", "durable.before_named=kill"), &export);
    assert_eq!((killed.code, world.has_file("sound.jsonl")), (137, false));
    let before = fs::read_dir(&world.directory).unwrap().count();
    let failed = world.run_with_variable(("WINDLASS_FAILPOINT", "durable.before_named=error"), &export);
    assert!(failed.stderr.starts_with("error: cannot write sound.jsonl\n"), "{failed}");
    assert_eq!(fs::read_dir(&world.directory).unwrap().count(), before);
    world.run_ok(&export);
}

/// Gaps in the positions are closed, and references to positions move along.
#[test]
fn gaps_are_closed() {
    let world = create_task_history();
    let events = world.json_lines(&["events"]);
    let suggestion = events.iter().position(|event| event["type"] == "agent_metrics").expect("metrics of the agent");
    let kept: Vec<_> = events.iter().enumerate().filter(|(i, _)| *i != suggestion).map(|(_, event)| event).collect();
    world.write("kept.jsonl", kept.iter().map(|event| format!("{event}\n")).collect::<String>());
    remove_store(&world);
    assert_eq!(world.json(&["doctor", "--restore", "kept.jsonl"])["restored"], kept.len());
    world.run_ok(&["trust", "--yes"]);
    let restored = world.json_lines(&["events"]);
    let named = |events: &[serde_json::Value], event: &serde_json::Value| {
        let cause = &event["metadata"]["cause"];
        events.iter().find(|other| other["seq"] == *cause).map(|cause| cause["type"].clone())
    };
    for (before, after) in kept.iter().zip(&restored) {
        assert_eq!((&before["type"], &before["data"]), (&after["type"], &after["data"]));
        assert_eq!(named(&events, before), named(&restored, after));
    }
    assert_eq!(restored.last().unwrap()["seq"], kept.len());
    world.run_ok(&["doctor"]);
}

/// So do edges, hooks and series, which are named after the events that made them.
#[test]
fn restore_renumbers_edge_and_hook_ids_to_close_gaps() {
    let world = TestWorld::with_tasks(&["One"]);
    world.run_ok(&["note", "add", "--task", "T1", "hello"]);
    world.run_ok(&["task", "add", "Two", "--depends", "T1"]);
    world.run_ok(&["task", "add", "Three", "--depends", "T1", "--depends", "T2"]);
    world.run_ok(&["task", "undepend", "T2", "T1"]);
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "promise"}));
    world
        .call_tool("iteration_start", &json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE"]}));
    world.call_tool("checkpoint_create", &json!({"taskId": "T1", "trigger": "manual"}));
    world.call_tool("hook_clear", &json!({"taskId": "T1"}));
    world.run_ok(&["task", "delete", "T3"]);
    let kept = |without: &str| {
        let events = world.json_lines(&["events"]);
        events.iter().filter(|event| event["type"] != without).map(|event| format!("{event}\n")).collect::<String>()
    };
    let tasks = world.run_ok(&["task", "list", "--all"]);
    world.write("kept.jsonl", kept("note_added"));
    world.write("edgeless.jsonl", kept("dependency_added"));
    remove_store(&world);
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "edgeless.jsonl"]), @"
    error: line 6 of edgeless.jsonl (event 9) contradicts the events before it
    caused by: it names event 5, which is missing
    hint: nothing was restored; the first 5 lines fit together: `head -n 5` keeps them
    [1 refused]
    ");
    assert_eq!(world.json(&["doctor", "--restore", "kept.jsonl"])["restored"], 15);
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.run_ok(&["task", "list", "--all"]), tasks);
    let (cleared, deleted) = (&world.event_payloads("hooks_cleared")[0], &world.event_payloads("task_deleted")[0]);
    assert_eq!((&cleared["hooks"], &deleted["edgesRemoved"]), (&json!(["HOOK-10"]), &json!(["E6", "E7"])));
    world.run_ok(&["doctor"]);
}

#[test]
fn invalid_restore_file_is_rejected_and_store_stays_empty() {
    let world = create_task_history();
    let events = world.json_lines(&["events"]);
    let file = |name: &str, lines: &[String]| drop(world.write(name, lines.join("\n")));
    let lines: Vec<_> = events.iter().map(ToString::to_string).collect();
    file("without-first.jsonl", &lines[1..]);
    file("twice.jsonl", &[&lines[..2], &lines[1..]].concat());
    file("nonsense.jsonl", &[lines[0].clone(), "{\"seq\": 2}".to_owned()]);
    file("text.jsonl", &["hello".to_owned()]);
    remove_store(&world);
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "without-first.jsonl"]), @"
    error: line 1 of without-first.jsonl (event 2) contradicts the events before it
    caused by: there is no task T1
    hint: nothing was restored
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "twice.jsonl"]), @"
    error: line 3 of twice.jsonl is event 2, but event 2 came before it
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "nonsense.jsonl"]), @"
    error: line 2 of nonsense.jsonl is not an event
    caused by: missing field `type` at line 1 column 7
    hint: --restore reads what `windlass doctor --export` or `windlass events --json` wrote
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "text.jsonl"]), @"
    error: line 1 of text.jsonl is not an event
    caused by: expected value at line 1 column 1
    hint: --restore reads what `windlass doctor --export` or `windlass events --json` wrote
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--restore", "missing.jsonl"]), @"
    error: cannot read missing.jsonl
    caused by: No such file or directory (os error 2)
    [1 system]
    ");
    assert!(world.json_lines(&["events"]).is_empty());
}
