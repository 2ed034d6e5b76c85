//! What viewers do with the page's requests: answers, reviews, hooks, and links to one question.

use std::thread;

use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::web_page::ServedPage;
use crate::test_next::create_escalated_task;
use crate::test_run::{RUN, create_agent_project};

/// Returns the token of a question link.
fn read_question_token(world: &TestWorld, subject: &str) -> String {
    let link = world.json(&["serve", "question", subject])["link"].as_str().unwrap().to_owned();
    link.rsplit_once('#').unwrap().1.to_owned()
}

#[test]
fn now_view_shows_question_with_evidence() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "answer");
    let now = page.get("/api/now", &token).json();
    let item = &now["waiting"][0];
    assert_eq!((&item["kind"], &item["task"]), (&json!("blocked_task"), &json!("T1")));
    assert!(item["evidence"].to_string().contains("red"), "{item}");
    let answer =
        page.post("/api/answer", &token, &json!({"subject": "T1", "answer": "continue", "text": "It may stay."}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(page.get("/api/now", &token).json()["waiting"], json!([]));
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
}

#[test]
fn question_link_answers_once_without_login() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = read_question_token(&world, "T1");
    let path = format!("/api/questions/{token}");
    let question = page.get(&path, "").json();
    assert_eq!((&question["task"], &question["title"]), (&json!("T1"), &json!("Mend the pump")));
    assert_eq!(page.post(&path, "", &json!({"answer": "perhaps"})).status, 400);
    assert_eq!(page.post(&path, "", &json!({"answer": "continue"})).status, 200);
    assert_eq!(page.post(&path, "", &json!({"answer": "continue"})).status, 404);
    assert_eq!(page.get(&path, "").status, 404);
    assert_eq!(page.get("/api/now", &token).status, 401, "a link to a question is no login");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
}

#[test]
fn question_link_ends_with_its_question() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = read_question_token(&world, "T1");
    world.run_ok(&["answer", "T1", "continue"]);
    assert_eq!(page.get(&format!("/api/questions/{token}"), "").status, 404);
    // The same task asks again: that is another question.
    assert_eq!(world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]).code, 4);
    assert_eq!(page.get(&format!("/api/questions/{token}"), "").status, 404);
    assert_eq!(page.get(&format!("/api/questions/{}", read_question_token(&world, "T1")), "").status, 200);
    let error = world.expect_failure(&["serve", "question", "T7"]);
    assert!(error.contains("waits for no answer"), "{error}");
}

#[test]
fn question_link_is_part_of_notice_while_page_is_served() {
    let config = "limits: {max_hook_retries: 0}\nnotify: [{command: cat >> notices}]\n\
                  hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}\n";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["init"]);
    let notices = || -> Vec<Value> {
        let text = world.read_file("notices");
        serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect()
    };
    world.run_ok(&["task", "add", "Mend the pump"]);
    let run = ["run", "--task", "T1", "--agent", "command:sh agent.sh"];
    assert_eq!(world.run(&run).code, 4);
    assert_eq!(notices()[0]["answer_url"], "");
    let page = ServedPage::new(&world, &[]);
    world.run_ok(&["answer", "T1", "continue"]);
    assert_eq!(world.run(&run).code, 4);
    let notice = &notices()[1];
    let url = notice["answer_url"].as_str().unwrap();
    assert!(notice["text"].as_str().unwrap().ends_with(url), "{notice}");
    let (place, token) = url.split_once("/answer#").unwrap();
    assert_eq!(place, format!("http://{}", page.host));
    let question = page.get(&format!("/api/questions/{token}"), "");
    assert_eq!((question.status, &question.json()["task"]), (200, &json!("T1")));
    let log = world.run_ok(&["--json", "events"]);
    assert!(!log.contains(token), "the log has no secret");
}

#[test]
fn question_link_is_drawn_as_code_for_phones() {
    let world = create_escalated_task("");
    let _page = ServedPage::new(&world, &[]);
    let drawn = world.run_ok(&["serve", "question", "T1", "--qr"]);
    assert!(drawn.contains('█') && drawn.lines().last().unwrap().contains("/answer#"), "{drawn}");
    assert!(drawn.lines().count() <= 24, "it fits a usual terminal: {drawn}");
}

#[test]
fn one_of_simultaneous_answers_wins() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "answer");
    let body = json!({"subject": "T1", "answer": "continue"});
    let (mut statuses, terminal) = thread::scope(|scope| {
        let pages = [0, 1].map(|_| scope.spawn(|| page.post("/api/answer", &token, &body).status));
        let terminal = scope.spawn(|| world.run(&["answer", "T1", "continue"]).code);
        (pages.map(|page| page.join().unwrap()).to_vec(), terminal.join().unwrap())
    });
    statuses.push(if terminal == 0 { 200 } else { 409 });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409]);
    assert_eq!(world.events_of_type("task_unblocked").len(), 1);
}

#[test]
fn hook_is_switched_but_never_trusted() {
    let config = "hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}\n";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["init"]);
    world.run_ok(&["init"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    let tested =
        page.post("/api/hooks/tests/test", &token, &json!({"point": "stop", "payload": {"iteration": 3}})).json();
    assert_eq!((&tested["outcome"], &tested["feedback"]), (&json!("block"), &json!("red")), "{tested}");
    let switched = page.post("/api/hooks/tests/switch", &token, &json!({"enabled": false}));
    assert_eq!(switched.json(), json!({"changed": true, "needsTrust": true}));
    assert!(world.read_file(".windlass/config.yaml").contains("enabled: false"));
    assert_eq!(page.get("/api/hooks", &token).json()["isTrusted"], false);
    let tested = page.post("/api/hooks/tests/test", &token, &json!({"point": "stop"}));
    assert_eq!(tested.error(), (403, "trust".to_owned()), "{}", tested.text);
    let document = page.get("/api/openapi.json", &token).text;
    assert!(!document.contains("/api/trust"), "no request trusts a configuration");
    assert_eq!(page.post("/api/hooks/test/switch", &token, &json!({"enabled": false})).status, 404);
}

#[test]
fn comments_of_review_are_feedback_of_next_turn() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "answer");
    let review = json!({
        "verdict": "send_back", "text": "Nearly.",
        "comments": [{"path": "src/pump.rs", "line": 7, "text": "Close the valve first."}],
    });
    let answer = page.post("/api/changes/T1/review", &token, &review);
    assert_eq!(answer.status, 200, "{}", answer.text);
    world.write("fixed", "");
    assert_eq!(world.run(RUN).code, 0);
    let prompt = world.read_prompt(2);
    assert!(prompt.contains("Nearly.") && prompt.contains("src/pump.rs:7: Close the valve first."), "{prompt}");
}

#[test]
fn every_described_read_request_is_served() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "look");
    let document = page.get("/api/openapi.json", &token).json();
    let session = world.json(&["session", "show"])["session"].as_str().unwrap().to_owned();
    let mut paths = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let is_stream = methods["get"]["responses"]["200"]["content"]["text/event-stream"].is_object();
        if methods["get"].is_null() || is_stream || path.contains("{token}") || path.contains("/changes/{id}") {
            continue;
        }
        let name = if path.contains("/tasks/") || path.contains("/why/") { "T1" } else { session.as_str() };
        let answer = page.get(&path.replace("{id}", name).replace("{name}", name), &token);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert_eq!(page.get(&path.replace("{id}", name).replace("{name}", name), "").status, 401, "{path}");
        paths += 1;
    }
    assert!(paths >= 12, "{paths}");
}

#[test]
fn tools_of_agents_are_served_over_mcp_to_programs_that_manage() {
    let world = TestWorld::with_tasks(&["Mend the pump"]);
    let page = ServedPage::new(&world, &[]);
    let [answer, manage] = ["answer", "manage"].map(|role| ServedPage::create_token(&world, role));
    let send = |token: &str, body: &Value, more: &[String]| {
        let headers = [
            format!("Host: {}", page.host),
            format!("Authorization: Bearer {token}"),
            "Content-Type: application/json".to_owned(),
            "Accept: application/json, text/event-stream".to_owned(),
        ];
        page.send_raw("POST /mcp", &[&headers[..], more].concat(), &body.to_string())
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    assert_eq!(send("", &initialize, &[]).status, 401);
    assert_eq!(send(&answer, &initialize, &[]).status, 403);
    let opened = send(&manage, &initialize, &[]);
    assert!(opened.text.contains("\"serverInfo\":{\"name\":\"windlass\""), "{}", opened.text);
    let session = [format!("Mcp-Session-Id: {}", opened.header("mcp-session-id"))];
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "task_list", "arguments": {}}});
    let listed = send(&manage, &call, &session);
    assert!(listed.text.contains("Mend the pump"), "{}", listed.text);
}
