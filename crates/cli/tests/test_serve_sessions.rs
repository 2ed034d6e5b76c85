//! What the page tells about sessions: their timelines, who blocked, and what goes on after a process has died.

use std::io::{BufRead, BufReader, Read};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::web_page::ServedPage;
use crate::test_run::{PausedRun, RUN, create_agent_project};

const SESSION_NAME: &str = "mend-the-pump-e01275de";

/// Reads a view as a person who may look.
fn read_view(world: &TestWorld, path: &str) -> Value {
    let page = ServedPage::new(world, &[]);
    let answer = page.get(path, &ServedPage::create_token(world, "look"));
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json()
}

/// Returns the items of a timeline of a kind.
fn items_of(timeline: &Value, kind: &str) -> Vec<Value> {
    let groups = timeline["groups"].as_array().unwrap().iter();
    let items = groups.flat_map(|group| group["items"].as_array().unwrap());
    items.filter(|item| item["kind"] == kind).cloned().collect()
}

/// A project with three stop hooks, of which the first two block.
fn create_project_with_two_blocks() -> TestWorld {
    let hook = |name: &str, command: &str| format!("{{name: {name}, command: '{command}'}}");
    let blocks = |name: &str| hook(name, &format!("echo {name} is red >&2; exit 2"));
    let config = format!(
        "limits: {{max_hook_retries: 0}}\nhooks: {{stop: [{}, {}, {}]}}\n",
        blocks("tests"),
        blocks("lint"),
        hook("spelling", "echo fine")
    );
    let world = create_agent_project(&config, "echo 'Mended.'; echo; echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 4);
    world
}

#[test]
fn every_hook_that_blocks_is_named_as_cause() {
    let world = create_project_with_two_blocks();
    let runs = world.events_of_type("hook_finished");
    let seqs: Vec<&Value> = runs.iter().map(|run| &run["seq"]).collect();
    let why = read_view(&world, "/api/why/T1");
    let find = |kind: &str| why["facts"].as_array().unwrap().iter().find(|fact| fact["type"] == kind).unwrap();
    assert_eq!(find("gate_decided")["causeSeqs"], json!(seqs[..2]), "{why}");
    let causes = why["causes"].as_array().unwrap().iter();
    let causes: Vec<&str> = causes.filter_map(|cause| cause["text"].as_str()).collect();
    let is_named = |words: &str| causes.iter().any(|cause| cause.contains(words));
    assert!(is_named(" tests at stop blocks") && is_named(" lint at stop blocks"), "{causes:?}");
    assert!(!is_named("spelling"), "{causes:?}");
    let timeline = read_view(&world, &format!("/api/sessions/{SESSION_NAME}"));
    assert_eq!(items_of(&timeline, "gate")[0]["relatedSeqs"], json!(seqs[..2]));
}

#[test]
fn question_has_output_of_every_hook_that_blocks_and_message_of_agent() {
    let world = create_project_with_two_blocks();
    let now = read_view(&world, "/api/now");
    let item = &now["waiting"][0];
    assert_eq!(item["evidence"], json!(["tests:", "tests is red", "lint:", "lint is red"]));
    assert_eq!(item["message"], "Mended.\n\n<promise>COMPLETE</promise>");
}

#[test]
fn question_of_task_has_reason_and_message_of_agent() {
    let world = create_project_with_two_blocks();
    let (task, now) = (read_view(&world, "/api/tasks/T1"), read_view(&world, "/api/now"));
    let (question, item) = (&task["question"], &now["waiting"][0]);
    assert_eq!((&question["reason"], &question["message"]), (&item["reason"], &item["message"]), "{task}");
    assert_eq!(question["messageSeq"], world.events_of_type("turn_finished")[0]["seq"]);
    assert!(task["facts"].as_array().unwrap().iter().all(|fact| fact["text"] != item["reason"]), "{task}");
    let timeline = read_view(&world, &format!("/api/sessions/{SESSION_NAME}"));
    assert_eq!(timeline["question"], Value::Null, "the session has ended");
}

#[test]
fn question_of_session_has_reason_and_message_of_agent() {
    let config = "limits: {max_hook_retries: 0}\non_retry_limit: ask\n\
                  hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}\n";
    let world = create_agent_project(config, "echo 'Mended.'; echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 4);
    let timeline = read_view(&world, &format!("/api/sessions/{SESSION_NAME}"));
    let (question, turn) = (&timeline["question"], &items_of(&timeline, "turn")[0]);
    assert_eq!(question["message"], "Mended.\n<promise>COMPLETE</promise>", "{timeline}");
    assert_eq!(question["messageSeq"], turn["seq"]);
    assert_eq!(question["reason"], read_view(&world, "/api/now")["waiting"][0]["reason"]);
    assert_eq!(items_of(&timeline, "hook")[0]["needsAttention"], true);
    assert_eq!(turn["needsAttention"], false);
}

#[test]
fn killed_run_is_shown_as_dead_with_command_that_resumes_it() {
    let mut waiting = PausedRun::new("");
    let task = |world: &TestWorld| read_view(world, "/api/tasks")["tasks"][0].clone();
    assert_eq!(task(&waiting.world)["isDeserted"], false);
    waiting.send_signal(Signal::KILL);
    waiting.await_exit();
    let world = &waiting.world;
    let now = read_view(world, "/api/now");
    let session = &now["working"][0];
    let resume = format!("windlass run --session {SESSION_NAME} --agent 'command:sh agent.sh'");
    assert_eq!((&session["isRunning"], &session["resumeCommand"]), (&json!(false), &json!(resume)), "{session}");
    assert_eq!(session["resumeNote"], "No process runs it; this continues it");
    assert_eq!((&session["waitsFor"], &session["tone"]), (&Value::Null, &json!("warning")));
    assert_eq!((&task(world)["isDeserted"], &task(world)["tone"]), (&json!(true), &json!("warning")));
    let timeline = read_view(world, &format!("/api/sessions/{SESSION_NAME}"));
    let turn = &items_of(&timeline, "turn")[0];
    assert_eq!((&turn["isPending"], &turn["title"]), (&json!(false), &json!("interrupted: its process has died")));
    world.run_ok(&["session", "cancel", SESSION_NAME]);
    let session = &read_view(world, "/api/sessions")["sessions"][0];
    assert_eq!(session["resumeCommand"], "windlass doctor --settle", "{session}");
    assert_eq!(session["resumeNote"], "It was cancelled, but no process runs it; this ends it");
}

#[test]
fn output_of_turn_ends_for_revoked_viewer() {
    let mut waiting = PausedRun::new("");
    let world = &waiting.world;
    let page = ServedPage::new(world, &[]);
    let token = ServedPage::create_token(world, "look");
    let headers = [format!("Host: {}", page.host), format!("Authorization: Bearer {token}")];
    let request = format!("GET /api/sessions/{SESSION_NAME}/output");
    let mut output = BufReader::new(page.open_request(&request, &headers, ""));
    let mut line = String::new();
    while !line.contains("event: turn") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the stream is open");
    }
    world.run_ok(&["serve", "invite", "--revoke", "robot"]);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("event: end"), "the turn goes on: {rest}");
    std::fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.await_exit().0, 0);
}

#[test]
fn message_is_one_row_and_its_delivery_has_its_text() {
    let mut waiting = PausedRun::new("");
    waiting.world.run_ok(&["say", "Use tabs"]);
    let timeline = read_view(&waiting.world, &format!("/api/sessions/{SESSION_NAME}"));
    let message = &items_of(&timeline, "message")[0];
    assert_eq!((&message["isPending"], &timeline["pendingFeedback"]), (&json!(true), &json!([])));
    std::fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.await_exit().0, 0);
    let timeline = read_view(&waiting.world, &format!("/api/sessions/{SESSION_NAME}"));
    let messages = items_of(&timeline, "message");
    assert_eq!((messages.len(), &messages[0]["isPending"]), (1, &json!(false)), "{timeline}");
    assert_eq!((&messages[0]["title"], &messages[0]["text"]), (&json!("ann"), &json!("Use tabs")));
    let delivery = &items_of(&timeline, "feedback")[0];
    assert_eq!((&delivery["text"], &delivery["relatedSeqs"]), (&json!("ann: Use tabs"), &json!([messages[0]["seq"]])));
    assert_eq!(timeline.to_string().matches("Use tabs").count(), 2, "{timeline}");
}

#[test]
fn timeline_over_several_tasks_names_each_task() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["init"]);
    for goal in ["Dig", "Fill"] {
        world.run_ok(&["task", "add", goal]);
    }
    assert_eq!(world.run(&["run", "--agent", "command:sh agent.sh"]).code, 0);
    let session = world.json(&["session", "show"])["session"].as_str().unwrap().to_owned();
    let timeline = read_view(&world, &format!("/api/sessions/{session}"));
    let groups = timeline["groups"].as_array().unwrap().iter().filter(|group| group["iteration"] != 0);
    assert_eq!(groups.map(|group| group["task"].clone()).collect::<Vec<_>>(), ["T1", "T2"], "{timeline}");
    let titles: Vec<Value> = items_of(&timeline, "event").iter().map(|item| item["title"].clone()).collect();
    for title in ["works on T1", "T1 is completed", "works on T2", "T2 is completed"] {
        assert!(titles.contains(&json!(title)), "{titles:?}");
    }
}
