//! Webhooks: the request, the effect of the answer, and unreliable servers

use serde_json::json;

use crate::support::World;
use crate::support::hooked::{DONE, hooked};
use crate::support::server::{Answer, Server, says};
use crate::test_run::RUN;

const FINE: &str = "200 OK";

/// A project with one webhook, and an agent that is always done.
fn world(point: &str, url: &str, fields: &str) -> World {
    let world = hooked(&format!("hooks: {{{point}: [{{name: web, http: '{url}', {fields}}}]}}\n"));
    world.write("agent.sh", DONE);
    world
}

#[test]
fn the_event_is_sent_with_a_key() {
    let server = Server::new(vec![says(FINE, "")]);
    let world = world("task_created", &server.url("/hook"), "timeout: 10s");
    assert_eq!(
        world.run(&["task", "add", "Mend the pump", "--label", "red"]).to_string(),
        "T1  ready  P2  Mend the pump #red\n"
    );
    let asked = server.asked();
    assert!(asked.head.starts_with("post /hook http/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.header("content-type"), "application/json");
    assert!(asked.header("idempotency-key").len() >= 32, "{}", asked.head);
    let event = &asked.body["event"];
    assert_eq!((&event["type"], &event["nodeId"]), (&json!("task_created"), &json!("T1")));
    assert_eq!((&asked.body["task"]["goal"], &asked.body["hook"]), (&json!("Mend the pump"), &json!("web")));
    assert_eq!(world.ending_of("web"), ("success".to_owned(), String::new()));
}

#[test]
fn a_server_that_stumbles_is_asked_again_with_the_same_key() {
    let server = Server::new(vec![says("500 Oops", ""), says("503 Busy", "later"), says(FINE, "")]);
    let world = world("task_created", &server.url("/"), "retry: {max: 2, backoff: 1ms}");
    assert_eq!(world.run(&["task", "add", "One"]).to_string(), "T1  ready  P2  One\n");
    let keys = [server.asked(), server.asked(), server.asked()].map(|asked| asked.header("idempotency-key").to_owned());
    assert!(keys.iter().all(|key| *key == keys[0] && !key.is_empty()), "{keys:?}");
    let begun = world.data_of("hook_started");
    let after: Vec<_> = begun.iter().map(|begun| begun["after"].as_str().unwrap_or_default()).collect();
    assert_eq!(
        after,
        ["", "the server answered 500 Internal Server Error", "the server answered 503 Service Unavailable: later"]
    );
    assert_eq!(world.ending_of("web").0, "success");
    // Another event has another key.
    let server = Server::new(vec![says(FINE, ""), says(FINE, "")]);
    let world = self::world("task_created", &server.url("/"), "timeout: 10s");
    world.ok(&["task", "add", "One"]);
    world.ok(&["task", "add", "Two"]);
    assert_ne!(server.asked().header("idempotency-key"), server.asked().header("idempotency-key"));
}

/// The command is done, whatever the server answers.
#[test]
fn servers_that_refuse_or_lead_astray() {
    let elsewhere = Server::new(vec![says(FINE, "")]);
    let away = format!("307 Away\r\nLocation: {}", elsewhere.url("/stolen"));
    let check = |answer: Answer, fields: &str, outcome: &str, said: &str| {
        let server = Server::new(vec![answer]);
        let world = world("task_created", &server.url("/secret/path"), fields);
        let ran = world.run(&["task", "add", "One"]);
        assert_eq!(ran.code, 0, "{ran}");
        let (found, message) = world.ending_of("web");
        assert_eq!(found, outcome, "{message}");
        assert!(message.contains(said) && !message.contains("secret/path"), "{message}");
        assert!(ran.stderr.contains(said) || outcome == "success", "{ran}");
    };
    // It would say the same again.
    let again = "retry: {max: 1, backoff: 1ms}";
    check(says("404 No", "no such hook"), again, "failure", "the server answered 404 Not Found: no such hook");
    check(says("500 Oops", ""), "timeout: 10s", "failure", "the server answered 500 Internal Server Error");
    check(says(&away, ""), "timeout: 10s", "failure", "redirect");
    check(Answer::Stalls, "timeout: 300ms", "timed_out", "timed out after 300ms");
    check(Answer::Says("nonsense".to_owned()), "timeout: 10s", "failure", "");
    check(says(FINE, "{\"status\": \"failure\", \"message\": \"no\"}"), "timeout: 10s", "failure", "no");
    check(says(FINE, "{\"status\": 7}"), "timeout: 10s", "failure", "bad answer: `status`: invalid type: integer `7`");
    check(says(FINE, "[1, 2]"), "timeout: 10s", "success", "");
    check(says(FINE, "\u{1b}[2J\0"), "timeout: 10s", "success", "");
    assert!(elsewhere.is_idle(), "no redirect is followed");
}

#[test]
fn its_answer_judges_the_turn() {
    let no = "{\"decision\": \"block\", \"reason\": \"two tests fail\"}";
    let server = Server::new(vec![says(FINE, no), says(FINE, "{\"action\": \"complete\"}")]);
    let world = world("stop", &server.url("/"), "timeout: 10s");
    world.write("agent.sh", "cat >>prompts; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("web blocks\n  [Hook retry 1/5: two tests fail]\n"), "{ran}");
    assert!(std::fs::read_to_string(world.path("prompts")).unwrap().contains("two tests fail"));
    assert_eq!(server.asked().body["hook_event_name"], "Stop");
    assert_eq!(server.asked().body["stop_hook_active"], true);
    // An unreachable server is no approval.
    let long = |length: usize| json!({"decision": "block", "reason": "x".repeat(length)}).to_string();
    for (answer, code) in [
        (says("500 Oops", ""), 3),
        (says(FINE, "{\"action\": \"escalate\"}"), 4),
        (says(FINE, &long(300_000)), 3),
        (says(FINE, &long(1_200_000)), 3),
    ] {
        let server = Server::new(vec![answer]);
        let world = self::world("stop", &server.url("/"), "timeout: 10s");
        let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
        assert_eq!(ran.code, code, "{ran}");
    }
}

#[test]
fn its_actions_are_carried_out() {
    let actions = json!({"actions": [
        {"type": "create_task", "payload": {"goal": "Look at it", "priority": 1}},
        {"type": "update_task", "payload": {"taskId": "T1", "action": "add_labels", "labels": ["seen"]}},
        {"type": "update_task", "payload": {"taskId": "T77", "action": "start"}},
    ]});
    let server = Server::new(vec![says(FINE, &actions.to_string())]);
    let world = world("task_created", &server.url("/"), "when: \"'first' in task.labels\"");
    let ran = world.run(&["task", "add", "One", "--label", "first"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "warning: cannot carry out `update_task`: there is no task T77\n"));
    assert_eq!(world.json(&["task", "show", "T2"])["goal"], "Look at it");
    assert_eq!(world.json(&["task", "show", "T1"])["labels"], json!(["first", "seen"]));
}
