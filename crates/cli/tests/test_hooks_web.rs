//! Webhooks: the request, the effect of the answer, and unreliable servers

use serde_json::json;

use crate::support::TestWorld;
use crate::support::hook_project::{COMPLETING_AGENT, create_hook_project};
use crate::support::server::{ServerReply, TestHttpServer, http_response};
use crate::test_run::RUN;

const STATUS_OK: &str = "200 OK";

/// A project with one webhook, and an agent that is always done.
fn create_webhook_project(point: &str, url: &str, fields: &str) -> TestWorld {
    let world = create_hook_project(&format!("hooks: {{{point}: [{{name: web, http: '{url}', {fields}}}]}}\n"));
    world.write("agent.sh", COMPLETING_AGENT);
    world
}

#[test]
fn webhook_sends_event_with_idempotency_key() {
    let server = TestHttpServer::new(vec![http_response(STATUS_OK, "")]);
    let world = create_webhook_project("task_created", &server.url("/hook"), "timeout: 10s");
    assert_eq!(
        world.run(&["task", "add", "Mend the pump", "--label", "red"]).to_string(),
        "T1  ready  P2  Mend the pump #red\n"
    );
    let asked = server.next_request();
    assert!(asked.head.starts_with("post /hook http/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.header("content-type"), "application/json");
    assert!(asked.header("idempotency-key").len() >= 32, "{}", asked.head);
    let event = &asked.body["event"];
    assert_eq!((&event["type"], &event["nodeId"]), (&json!("task_created"), &json!("T1")));
    assert_eq!((&asked.body["task"]["goal"], &asked.body["hook"]), (&json!("Mend the pump"), &json!("web")));
    assert_eq!(world.last_hook_outcome("web"), ("success".to_owned(), String::new()));
}

#[test]
fn webhook_is_retried_with_same_key_after_server_error() {
    let server = TestHttpServer::new(vec![
        http_response("500 Oops", ""),
        http_response("503 Busy", "later"),
        http_response(STATUS_OK, ""),
    ]);
    let world = create_webhook_project("task_created", &server.url("/"), "retry: {max: 2, backoff: 1ms}");
    assert_eq!(world.run(&["task", "add", "One"]).to_string(), "T1  ready  P2  One\n");
    let keys = [server.next_request(), server.next_request(), server.next_request()]
        .map(|asked| asked.header("idempotency-key").to_owned());
    assert!(keys.iter().all(|key| *key == keys[0] && !key.is_empty()), "{keys:?}");
    let begun = world.event_payloads("hook_started");
    let after: Vec<_> = begun.iter().map(|begun| begun["after"].as_str().unwrap_or_default()).collect();
    assert_eq!(
        after,
        ["", "the server answered 500 Internal Server Error", "the server answered 503 Service Unavailable: later"]
    );
    assert_eq!(world.last_hook_outcome("web").0, "success");
    // Another event has another key.
    let server = TestHttpServer::new(vec![http_response(STATUS_OK, ""), http_response(STATUS_OK, "")]);
    let world = create_webhook_project("task_created", &server.url("/"), "timeout: 10s");
    world.run_ok(&["task", "add", "One"]);
    world.run_ok(&["task", "add", "Two"]);
    assert_ne!(server.next_request().header("idempotency-key"), server.next_request().header("idempotency-key"));
}

/// The command is done, whatever the server answers.
#[test]
fn servers_that_refuse_or_lead_astray() {
    let elsewhere = TestHttpServer::new(vec![http_response(STATUS_OK, "")]);
    let away = format!("307 Away\r\nLocation: {}", elsewhere.url("/stolen"));
    let check = |answer: ServerReply, fields: &str, outcome: &str, said: &str| {
        let server = TestHttpServer::new(vec![answer]);
        let world = create_webhook_project("task_created", &server.url("/secret/path"), fields);
        let ran = world.run(&["task", "add", "One"]);
        assert_eq!(ran.code, 0, "{ran}");
        let (found, message) = world.last_hook_outcome("web");
        assert_eq!(found, outcome, "{message}");
        assert!(message.contains(said) && !message.contains("secret/path"), "{message}");
        assert!(ran.stderr.contains(said) || outcome == "success", "{ran}");
    };
    // It would say the same again.
    let again = "retry: {max: 1, backoff: 1ms}";
    check(http_response("404 No", "no such hook"), again, "failure", "the server answered 404 Not Found: no such hook");
    check(http_response("500 Oops", ""), "timeout: 10s", "failure", "the server answered 500 Internal Server Error");
    check(http_response(&away, ""), "timeout: 10s", "failure", "redirect");
    check(ServerReply::Stall, "timeout: 300ms", "timed_out", "timed out after 300ms");
    check(ServerReply::Response("nonsense".to_owned()), "timeout: 10s", "failure", "");
    check(http_response(STATUS_OK, "{\"status\": \"failure\", \"message\": \"no\"}"), "timeout: 10s", "failure", "no");
    check(
        http_response(STATUS_OK, "{\"status\": 7}"),
        "timeout: 10s",
        "failure",
        "bad answer: `status`: invalid type: integer `7`",
    );
    check(http_response(STATUS_OK, "[1, 2]"), "timeout: 10s", "success", "");
    check(http_response(STATUS_OK, "\u{1b}[2J\0"), "timeout: 10s", "success", "");
    assert!(elsewhere.is_idle(), "no redirect is followed");
}

#[test]
fn webhook_answer_at_stop_gate_decides_turn() {
    let no = "{\"decision\": \"block\", \"reason\": \"two tests fail\"}";
    let server =
        TestHttpServer::new(vec![http_response(STATUS_OK, no), http_response(STATUS_OK, "{\"action\": \"complete\"}")]);
    let world = create_webhook_project("stop", &server.url("/"), "timeout: 10s");
    world.write("agent.sh", "cat >>prompts; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("web blocks\n  [Hook retry 1/5: two tests fail]\n"), "{ran}");
    assert!(std::fs::read_to_string(world.path("prompts")).unwrap().contains("two tests fail"));
    assert_eq!(server.next_request().body["hook_event_name"], "Stop");
    assert_eq!(server.next_request().body["stop_hook_active"], true);
    // An unreachable server is no approval.
    let long = |length: usize| json!({"decision": "block", "reason": "x".repeat(length)}).to_string();
    for (answer, code) in [
        (http_response("500 Oops", ""), 3),
        (http_response(STATUS_OK, "{\"action\": \"escalate\"}"), 4),
        (http_response(STATUS_OK, &long(300_000)), 3),
        (http_response(STATUS_OK, &long(1_200_000)), 3),
    ] {
        let server = TestHttpServer::new(vec![answer]);
        let world = create_webhook_project("stop", &server.url("/"), "timeout: 10s");
        let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
        assert_eq!(ran.code, code, "{ran}");
    }
}

#[test]
fn webhook_answer_actions_create_and_update_tasks() {
    let actions = json!({"actions": [
        {"type": "create_task", "payload": {"goal": "Look at it", "priority": 1}},
        {"type": "update_task", "payload": {"taskId": "T1", "action": "add_labels", "labels": ["seen"]}},
        {"type": "update_task", "payload": {"taskId": "T77", "action": "start"}},
    ]});
    let server = TestHttpServer::new(vec![http_response(STATUS_OK, &actions.to_string())]);
    let world = create_webhook_project("task_created", &server.url("/"), "when: \"'first' in task.labels\"");
    let ran = world.run(&["task", "add", "One", "--label", "first"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "warning: cannot carry out `update_task`: there is no task T77\n"));
    assert_eq!(world.json(&["task", "show", "T2"])["goal"], "Look at it");
    assert_eq!(world.json(&["task", "show", "T1"])["labels"], json!(["first", "seen"]));
}
