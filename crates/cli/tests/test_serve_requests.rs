//! What viewers do with the page's requests: answers, reviews, hooks, and links to one question.

use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::git_project::GitProject;
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
    let outcome = answer.json()["outcome"].as_str().unwrap_or_default().to_owned();
    assert!(outcome.starts_with("T1 is now ready; `windlass run --task T1"), "no process runs it: {outcome}");
    assert_eq!(page.get("/api/now", &token).json()["waiting"], json!([]));
    let late = page.post("/api/answer", &token, &json!({"subject": "T1", "answer": "continue"}));
    assert_eq!(late.status, 409, "{}", late.text);
    assert_eq!(late.json()["cause"], "the last answer is from robot: continue: It may stay.");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
}

#[test]
fn now_view_and_status_name_the_same_waiting_tasks() {
    let world = TestWorld::with_tasks(&["Dig", "Fill"]);
    world.run_ok(&["task", "add", "Plant", "--depends", "T1"]);
    world.run_ok(&["task", "add", "Mow", "--depends", "T2"]);
    world.run_ok(&["task", "fail", "T1", "--reason", "rock"]);
    world.run_ok(&["task", "delete", "T2", "--force"]);
    let page = ServedPage::new(&world, &[]);
    let now = page.get("/api/now", &ServedPage::create_token(&world, "look")).json();
    let status = world.json(&["status"]);
    let list = |rows: &Value, key: &str| -> Vec<Value> {
        rows.as_array().unwrap().iter().map(|row| row[key].clone()).collect()
    };
    // T3 is blocked, too, and waits for T1. T4 waits for a task that was deleted.
    assert_eq!(list(&now["waiting"], "task"), ["T1", "T4"]);
    assert_eq!(list(&status["stuck"], "id"), ["T1", "T4"]);
}

#[test]
fn task_view_names_commands_that_need_no_override() {
    let world = TestWorld::with_tasks(&["Dig", "Fill", "Mow", "Plant", "Water"]);
    world.run_ok(&["task", "claim", "T2", "--owner", "worker-1"]);
    world.run_ok(&["task", "fail", "T3", "--reason", "rock"]);
    world.run_ok(&["task", "complete", "T4"]);
    world.run_ok(&["task", "delete", "T5", "--force"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "look");
    let offered = |id: &str| {
        let task = page.get(&format!("/api/tasks/{id}"), &token).json();
        ["canEdit", "canBlock", "canReopen"].map(|field| task[field] == true)
    };
    assert_eq!(offered("T1"), [true, true, false]);
    assert_eq!(offered("T2"), [true, false, false], "its worker holds it");
    assert_eq!(offered("T3"), [true, false, true]);
    assert_eq!(offered("T4"), [true, false, false], "only an override reopens a completed task");
    assert_eq!(offered("T5"), [false; 3]);
}

#[test]
fn question_link_answers_once_without_login() {
    let world = create_escalated_task("");
    let page = ServedPage::new(&world, &[]);
    let token = read_question_token(&world, "T1");
    let path = format!("/api/questions/{token}");
    let question = page.get(&path, "").json();
    assert_eq!((&question["task"], &question["title"]), (&json!("T1"), &json!("Mend the pump")));
    let project = world.directory.file_name().unwrap().to_str().unwrap();
    assert_eq!(question["project"], project);
    assert_eq!(page.post(&path, "", &json!({"answer": "perhaps"})).status, 422);
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
    let path = format!("/api/questions/{token}");
    // The link is no login: it tells who answered its question, but no text, and nothing of later answers.
    let check_late = || {
        for late in [page.get(&path, ""), page.post(&path, "", &json!({"answer": "continue"}))] {
            assert_eq!((late.status, &late.json()["cause"]), (404, &json!("the answer is from ann: continue")));
            assert!(!late.text.contains("private"), "{}", late.text);
        }
    };
    world.run_ok(&["answer", "T1", "continue", "first private text"]);
    check_late();
    // The same task asks again: that is another question.
    assert_eq!(world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]).code, 4);
    check_late();
    assert_eq!(page.get(&format!("/api/questions/{}", read_question_token(&world, "T1")), "").status, 200);
    world.run_ok(&["answer", "T1", "reject", "second private text"]);
    check_late();
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
    let mut page = ServedPage::new(&world, &[]);
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
    page.send_signal(Signal::KILL);
    page.await_exit();
    world.run_ok(&["answer", "T1", "continue"]);
    assert_eq!(world.run(&run).code, 4);
    assert_eq!(notices()[2]["answer_url"], "", "a server that was killed answers no link");
}

#[test]
fn notices_of_command_are_part_of_its_answer() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "task_types: {docs: {}}\n");
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    let add = || page.post("/api/tasks", &token, &json!({"goal": "Mend the pump"})).json();
    let notices = add()["notices"].clone();
    assert!(notices[0].as_str().unwrap().starts_with("note: the configuration is not trusted"), "{notices}");
    world.run_ok(&["trust", "--yes"]);
    let added = add();
    assert_eq!((&added["id"], &added["notices"]), (&json!("T2"), &Value::Null));
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
fn graph_edge_leads_from_waiting_task_to_awaited_one() {
    let world = TestWorld::with_tasks(&["Mend the pump", "Paint the door"]);
    world.run_ok(&["task", "link", "T1", "blocks", "T2"]);
    let page = ServedPage::new(&world, &[]);
    let graph = page.get("/api/graph", &ServedPage::create_token(&world, "look")).json();
    let edge = &graph["edges"][0];
    assert_eq!((&edge["from"], &edge["to"], &edge["isDependency"]), (&json!("T2"), &json!("T1"), &json!(true)));
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
    let config = "hooks:\n  stop:\n    - {name: tests, command: 'echo red >&2; exit 2'}\n    - command: echo green\n";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["init"]);
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    let tested =
        page.post("/api/hooks/tests/test", &token, &json!({"point": "stop", "payload": {"iteration": 3}})).json();
    assert_eq!((&tested["outcome"], &tested["feedback"]), (&json!("block"), &json!("red")), "{tested}");
    assert_eq!((&tested["exitCode"], &tested["output"]), (&json!(2), &json!("red")), "{tested}");
    // A hook that passes shows what it wrote, although the agent gets nothing.
    let tested = page.post("/api/hooks/stop%5B1%5D/test", &token, &json!({"point": "stop"})).json();
    assert_eq!((&tested["outcome"], &tested["feedback"]), (&json!("success"), &json!(null)), "{tested}");
    assert_eq!((&tested["exitCode"], &tested["output"]), (&json!(0), &json!("green")), "{tested}");
    assert!(tested["durationMs"].is_u64(), "{tested}");
    let switched = page.post("/api/hooks/tests/switch", &token, &json!({"enabled": false}));
    assert_eq!(switched.json(), json!({"changed": true, "needsTrust": true}));
    assert!(world.read_file(".windlass/config.yaml").contains("enabled: false"));
    assert_eq!(page.get("/api/hooks", &token).json()["isTrusted"], false);
    let tested = page.post("/api/hooks/tests/test", &token, &json!({"point": "stop"}));
    assert_eq!(tested.error(), (403, "trust".to_owned()), "{}", tested.text);
    let document = page.get("/api/openapi.json", &token).text;
    assert!(!document.contains("/api/trust"), "no request trusts a configuration");
    assert_eq!(page.post("/api/hooks/test/switch", &token, &json!({"enabled": false})).status, 404);
    // The configuration is what it was, so it is trusted as before.
    let switched = page.post("/api/hooks/tests/switch", &token, &json!({"enabled": true}));
    assert_eq!(switched.json(), json!({"changed": true, "needsTrust": false}));
    assert_eq!(world.read_file(".windlass/config.yaml"), config);
}

#[test]
fn hooks_view_names_bound_agent_and_counts_blocks_and_errors() {
    let config = "agents: {ann: {command: sh agent.sh, hooks: {stop: [{command: 'true'}]}}}\n\
                  limits: {max_hook_retries: 0}\n\
                  hooks: {stop: [{name: tests, command: exit 2}, {name: lint, command: exit 1}]}\n";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 4);
    let page = ServedPage::new(&world, &[]);
    let hooks = page.get("/api/hooks", &ServedPage::create_token(&world, "look")).json();
    let find = |name: &str| hooks["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == name).unwrap();
    let counts = |name: &str| (&find(name)["runs"], &find(name)["blocks"], &find(name)["errors"]);
    assert_eq!(counts("tests"), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(counts("lint"), (&json!(1), &json!(0), &json!(1)));
    assert_eq!((&find("tests")["agent"], &find("ann.stop[0]")["agent"]), (&json!(null), &json!("ann")));
}

#[test]
fn cost_view_shows_budget_of_open_session() {
    let config = "limits: {max_hook_retries: 0, cost: 2.5, tokens: 10000}\non_retry_limit: ask\n\
                  hooks: {stop: [{name: tests, command: exit 2}]}\n";
    let world = create_agent_project(config, "");
    let turn = "turns: [{do: [{say: Mended.}, {promise: COMPLETE}, {answer: {stopReason: end_turn, usage: \
                {inputTokens: 5200, outputTokens: 340, totalTokens: 5540}}}]}]\n";
    world.write("paid.yaml", turn);
    assert_eq!(world.run(&["run", "Mend the pump", "--session", "pump", "--agent", "scripted:paid.yaml"]).code, 4);
    let page = ServedPage::new(&world, &[]);
    let budgets = &page.get("/api/cost", &ServedPage::create_token(&world, "look")).json()["budgets"];
    let limits = json!({"costUsd": 2.5, "tokens": 10000});
    assert_eq!(budgets["limits"], limits);
    let session = &budgets["sessions"][0];
    assert_eq!((&session["session"], &session["limits"]), (&json!("pump"), &limits), "{budgets}");
    assert_eq!((&session["usage"]["inputTokens"], &session["usage"]["outputTokens"]), (&json!(5200), &json!(340)));
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
fn change_names_remote_that_merge_pushes_to() {
    let config = "hooks: {before_submit: [create_pr]}\n";
    for (repo, remote) in [(GitProject::new(config), Value::Null), (GitProject::with_remote(config), json!("origin"))] {
        repo.set_agent("echo b > b.txt").add_task("First");
        assert_eq!(repo.run_ready_tasks().code, 0);
        let page = ServedPage::new(&repo.world, &[]);
        let change = page.get("/api/changes/T1", &ServedPage::create_token(&repo.world, "look")).json();
        assert_eq!((&change["canMerge"], &change["mergeRemote"]), (&json!(true), &remote), "{change}");
        // As in a merge, an untrusted configuration names no remote.
        repo.world.write(".windlass/config.yaml", format!("{config}forge: {{remote: fork}}\n"));
        let change = page.get("/api/changes/T1", &ServedPage::create_token(&repo.world, "look")).json();
        assert_eq!(change["mergeRemote"], remote, "{change}");
    }
}

#[test]
fn merge_with_plain_git_can_be_recorded() {
    let repo = GitProject::with_remote("hooks: {before_submit: [create_pr]}\n");
    repo.set_agent("echo b > b.txt").add_task("First");
    assert_eq!(repo.run_ready_tasks().code, 0);
    let page = ServedPage::new(&repo.world, &[]);
    let token = ServedPage::create_token(&repo.world, "manage");
    let read_state = || {
        let details = page.get("/api/changes/T1", &token).json();
        let [can_merge, has_landed, remote] =
            ["canMerge", "hasLanded", "mergeRemote"].map(|field| details[field].clone());
        [details["change"]["state"].clone(), can_merge, has_landed, remote]
    };
    assert_eq!(read_state(), [json!("open"), json!(true), json!(false), json!("origin")]);
    let branch = page.get("/api/changes/T1", &token).json()["change"]["branch"].as_str().unwrap().to_owned();
    repo.git(&["merge", "-q", &branch]);
    repo.git(&["push", "-q", "origin", "main"]);
    assert_eq!(read_state(), [json!("merged"), json!(true), json!(true), Value::Null]);
    assert!(repo.events_of_type("change_merged").is_empty());
    let recorded = page.post("/api/changes/T1/merge", &token, &json!({}));
    assert_eq!((recorded.status, repo.events_of_type("change_merged").len()), (200, 1), "{}", recorded.text);
    assert_eq!(read_state(), [json!("merged"), json!(false), json!(false), Value::Null]);
}

#[test]
fn stacked_change_cannot_be_merged_before_the_one_below() {
    let repo = GitProject::new("hooks: {before_submit: [create_pr]}\n");
    repo.set_agent("f=$(git branch --show-current | tr / -)\necho b > $f").add_task("First");
    repo.world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    assert_eq!(repo.run_ready_tasks().code, 0);
    let page = ServedPage::new(&repo.world, &[]);
    let token = ServedPage::create_token(&repo.world, "look");
    let can_merge = |id: &str| page.get(&format!("/api/changes/{id}"), &token).json()["canMerge"].clone();
    assert_eq!([can_merge("T1"), can_merge("T2")], [true, false]);
    let now = page.get("/api/now", &token).json();
    let find_item = |id: &str| now["waiting"].as_array().unwrap().iter().find(|item| item["task"] == id).unwrap();
    assert_eq!(["T1", "T2"].map(|id| &find_item(id)["canMerge"]), [true, false]);
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(can_merge("T2"), true);
}

#[test]
fn log_names_person_and_shows_whole_event() {
    let world = TestWorld::new();
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "manage");
    assert_eq!(page.post("/api/tasks", &token, &json!({"goal": "Mend the pump"})).status, 200);
    let entry = &page.get("/api/log", &token).json()["entries"][0];
    assert_eq!((&entry["type"], &entry["triggeredBy"]), (&json!("task_created"), &json!("robot")));
    let seq = &entry["seq"];
    let printed = world.json_lines(&["events", "--from", &seq.to_string(), "--limit", "1"]).remove(0);
    assert_eq!(page.get(&format!("/api/log/{seq}"), &token).json(), printed);
    assert_eq!(page.get("/api/log/99", &token).error(), (404, "not_found".to_owned()));
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
        let place = path.replace("{id}", name).replace("{name}", name).replace("{seq}", "1");
        let answer = page.get(&place, &token);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert_eq!(page.get(&place, "").status, 401, "{path}");
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
