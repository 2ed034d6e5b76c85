//! `windlass events`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::TestWorld;

#[test]
fn events_list_shows_all_events_in_order() {
    let world = TestWorld::new();
    world.run_ok(&["task", "add", "Parse", "--label", "agent"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run_ok(&["task", "claim", "--owner", "worker-1"]);
    world.run_ok(&["task", "block", "T1", "--epoch", "1", "--reason", "which\nlanguage?"]);
    assert_snapshot!(world.run(&["events"]), @"
    1  <time>  T1     task_created              Parse
    2  <time>  T1     task_ready
    3  <time>  T2     task_created              Test
    4  <time>  T2     dependency_added          T2 depends_on T1
    5  <time>  T1     task_claimed              by worker-1 (epoch 1)
    6  <time>  T1     task_started
    7  <time>  T1     task_blocked              which⏎language?
    ");
    assert_snapshot!(world.run(&["events", "--task", "T2", "--type", "task_created"]), @"     3  <time>  T2     task_created              Test");
    assert_snapshot!(world.run(&["events", "--from", "3", "--limit", "1"]), @"     3  <time>  T2     task_created              Test");
    assert_snapshot!(world.run(&["events", "--from", "99"]), @"");
}

#[test]
fn event_envelope_has_increasing_position_and_earlier_cause() {
    let world = TestWorld::new();
    world.run_ok(&["task", "add", "Parse"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run_ok(&["task", "complete", "T1"]);
    assert_snapshot!(world.run(&["events", "--json", "--from", "3"]), @r#"
    {"seq":3,"timestamp":"<time>","type":"task_created","nodeId":"T2","data":{"goal":"Test","deliverables":[],"labels":[],"priority":2},"metadata":{"triggeredBy":"ann","depth":0}}
    {"seq":4,"timestamp":"<time>","type":"dependency_added","nodeId":"T2","data":{"fromId":"T2","toId":"T1","edgeType":"depends_on"},"metadata":{"triggeredBy":"ann","depth":0}}
    {"seq":5,"timestamp":"<time>","type":"task_completed","nodeId":"T1","data":{"artifacts":[]},"metadata":{"triggeredBy":"ann","depth":0}}
    {"seq":6,"timestamp":"<time>","type":"task_ready","nodeId":"T2","data":{},"metadata":{"triggeredBy":"ann","cause":5,"depth":1}}
    {"seq":7,"timestamp":"<time>","type":"dependency_satisfied","nodeId":"T2","data":{"dependentTaskId":"T2","completedTaskId":"T1"},"metadata":{"triggeredBy":"ann","cause":5,"depth":1}}
    "#);
    let events = world.json_lines(&["events"]);
    let positions: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(positions.is_sorted_by(|one, two| one < two), "{positions:?}");
    // Every event with a cause names an earlier event.
    for event in &events {
        assert!(event["metadata"]["cause"].as_u64().is_none_or(|cause| cause < event["seq"].as_u64().unwrap()));
    }
}

/// People read their own time, programs read UTC.
#[test]
fn moments_are_in_the_time_zone_of_the_person() {
    let world = TestWorld::with_tasks(&["One"]);
    let at = |zone: &str, words: &[&str]| {
        let shown = world.run_with_variable(("TZ", zone), words).stdout;
        let hour = shown.lines().next().unwrap().split_whitespace().nth(2).unwrap()[..2].parse::<u32>().unwrap();
        (shown, hour)
    };
    let (_, utc) = at("UTC", &["events"]);
    assert_eq!(at("UTC-9", &["events"]).1, (utc + 9) % 24);
    if std::path::Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        assert_eq!(at("Asia/Tokyo", &["events"]).1, (utc + 9) % 24);
    }
    for nonsense in ["", "Nowhere/Here", "/dev/zero", "../../../etc/passwd"] {
        assert_eq!(at(nonsense, &["events"]).1, utc, "{nonsense}");
    }
    let json = ["events", "--json"];
    assert_eq!(world.run_with_variable(("TZ", "UTC-9"), &json).stdout, world.run(&json).stdout);
}

#[test]
fn events_command_rejects_invalid_type_task_and_position() {
    let world = TestWorld::with_tasks(&["One"]);
    assert_snapshot!(world.expect_failure(&["events", "--type", "task_complet"]), @"
    error: invalid value 'task_complet' for '--type <TYPE>' [possible values: task_created, task_ready, task_waiting, task_claimed, lease_expired, task_started, task_updated, completion_claimed, workspace_opened, submission_started, task_submitted, merge_started, pipeline_failed, task_rejected, change_opened, change_merged, task_completed, task_blocked, task_unblocked, task_answered, task_needs_continuation…
    hint: did you mean `task_completed`? `windlass events --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["events", "--task", "T7"]), @"
    error: there is no task T7
    hint: `windlass task list --all` shows every task
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["events", "--from", "18446744073709551615"]), @"
    error: invalid value '18446744073709551615' for '--from <SEQ>': expected a whole number from 0 to 9223372036854775807
    hint: `windlass events --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["events", "--from=-1"]), @"
    error: invalid value '-1' for '--from <SEQ>': expected a whole number from 0 to 9223372036854775807
    hint: `windlass events --help` shows how it is used
    [64 usage]
    ");
}

/// A follower hears of another process's command, and ends when its reader does.
#[test]
fn follower_prints_new_events_until_its_reader_closes() {
    let world = TestWorld::with_tasks(&["One"]);
    let mut command = world.command(&["events", "--follow", "--json", "--type", "task_created"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut goal =
        || -> Value { serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["data"]["goal"].take() };
    assert_eq!(goal(), json!("One"));
    // It has caught up: the following output comes from the subscription.
    for name in ["Two", "Three"] {
        world.run_ok(&["task", "add", name]);
        assert_eq!(goal(), json!(name));
    }
    // No more events come: it has to notice by itself.
    drop(lines);
    let ended = follower.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn following_stops_at_a_limit() {
    let world = TestWorld::with_tasks(&["One", "Two"]);
    assert_eq!(world.json_lines(&["events", "--follow", "--limit", "3"]).len(), 3);
}
