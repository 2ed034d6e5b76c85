//! Notifications that a session is over.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::server::{ServerReply, TestHttpServer, http_response};
use crate::support::{CommandOutput, TestWorld, WINDLASS};

const RUN: &[&str] = &["run", "Mend the pump", "--trust", "--session", "pump"];
const COMPLETING_AGENT: &str = "echo '<promise>COMPLETE</promise>'";

/// A project with this notification, whose agent runs this script.
fn create_notifying_project(config: &str, agent: &str) -> TestWorld {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", format!("agent: 'command:sh agent.sh'\n{config}\n"));
    world.write("agent.sh", format!("cat >/dev/null\n{agent}\n"));
    world
}

fn read_file(world: &TestWorld, name: &str) -> String {
    fs::read_to_string(world.path(name)).unwrap()
}

/// Returns the outcomes of the notifications, by the log.
fn notification_outcomes(world: &TestWorld) -> Vec<(String, String)> {
    let events = world.json_lines(&["events", "--type", "hook_finished"]);
    let text = |event: &Value, name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
    let all = events.iter().map(|event| (text(event, "hook"), text(event, "outcome")));
    all.filter(|(hook, _)| hook.starts_with("notify")).collect()
}

fn single_outcome(hook: &str, outcome: &str) -> Vec<(String, String)> {
    vec![(hook.to_owned(), outcome.to_owned())]
}

#[test]
fn server_notification_is_retried_with_same_idempotency_key() {
    let server = TestHttpServer::new(vec![http_response("503 Busy", ""), http_response("200 OK", "{\"ok\": true}")]);
    let url = server.url("/hook");
    let world = create_notifying_project(
        &format!("notify: [{{http: {{url: '{url}', headers: {{Authorization: 'Bearer ${{TOKEN}}'}}}}}}]"),
        COMPLETING_AGENT,
    );
    let ran = world.run_with_variable(("TOKEN", "s3cret"), RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("complete after one iteration\n  notify[0] ok\n"), "{ran}");
    let (first, second) = (server.next_request(), server.next_request());
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    assert_eq!(second.header("authorization"), "bearer s3cret");
    let expected = json!({
        "text": "Done: Mend the pump", "session": "pump", "ending": "completed", "reason": "", "goal": "Mend the pump",
        "answer_url": "", "iterations": 1, "project": world.directory.to_string_lossy(),
    });
    assert_eq!((first.body, second.body), (expected.clone(), expected));
    assert!(server.is_idle());
    assert_eq!(notification_outcomes(&world), single_outcome("notify[0]", "success"));
}

/// A person who has ended a session waits no longer than a notification may take.
#[test]
fn server_notification_fails_when_retry_delay_is_too_long() {
    let server = TestHttpServer::new(vec![http_response("503 Busy\r\nRetry-After: 11", "")]);
    let world = create_notifying_project(&format!("notify: [{{http: '{}'}}]", server.url("/hook")), COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(notification_outcomes(&world), single_outcome("notify[0]", "failure"));
    assert_eq!(world.event_payloads("hook_started").len(), 1, "{ran}");
}

#[test]
fn notification_command_runs_after_session_hooks_with_payload() {
    let config = "hooks: {session_end: [{command: echo end >> order, priority: 999999}], \
                  session_ended: [{command: echo ended >> order}]}\n\
                  notify: [{command: 'echo told >> order; cat > notice; env | grep ^WINDLASS_ | sort > variables; echo {{session}} > name'}]";
    let world = create_notifying_project(config, "echo '<promise>BLOCKED</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(read_file(&world, "order"), "ended\nend\ntold\n");
    let notice: Value = serde_json::from_str(&read_file(&world, "notice")).unwrap();
    assert_eq!(notice["text"], "A person is needed: Mend the pump (the agent says it is blocked)");
    assert_eq!((&notice["ending"], &notice["reason"]), (&json!("escalated"), &json!("the agent says it is blocked")));
    let variables = read_file(&world, "variables");
    for expected in [
        "WINDLASS_SESSION=pump\n",
        "WINDLASS_ENDING=escalated\n",
        "WINDLASS_REASON=the agent says it is blocked\n",
        "WINDLASS_GOAL=Mend the pump\n",
        "WINDLASS_EVENT=session_ended\n",
        "WINDLASS_POINT=notify\n",
    ] {
        assert!(variables.contains(expected), "{expected}{variables}");
    }
    assert_eq!(read_file(&world, "name"), "pump\n");
}

/// A notification does not affect the ending of the session.
#[test]
fn failed_notification_does_not_change_the_ending() {
    let closed = TestHttpServer::new(vec![]).url("/");
    let config = format!(
        "notify: [{{command: 'exit 2'}}, {{command: 'echo {{\"decision\": \"block\", \"reason\": \"no\"}}'}}, {{http: '{closed}'}}, {{command: /nope}}]"
    );
    let world = create_notifying_project(&config, COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let outcomes: Vec<String> = notification_outcomes(&world).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, ["failure", "success", "failure", "failure"]);
    assert_eq!(world.json(&["session", "show", "pump"])["ending"], "completed");
    assert_eq!(world.json_lines(&["events", "--type", "feedback_queued"]), Vec::<Value>::new());
}

#[test]
fn actions_in_notification_output_are_ignored() {
    let world = create_notifying_project("notify: [{command: cat wish}]", COMPLETING_AGENT);
    world.write("wish", r#"{"actions": [{"type": "create_task", "payload": {"goal": "More"}}]}"#);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(notification_outcomes(&world), single_outcome("notify[0]", "success"));
    assert_eq!(world.event_payloads("task_created").len(), 1, "its own");
}

#[test]
fn only_on_its_occasions() {
    let check = |on: &str, agent: &str, expected: bool| {
        let world = create_notifying_project(
            &format!("limits: {{max_iterations: 1, max_failures: 1}}\nnotify: [{{command: touch told{on}}}]"),
            agent,
        );
        world.run(RUN);
        assert_eq!(world.path("told").exists(), expected, "{on} {agent}");
    };
    check("", COMPLETING_AGENT, true);
    check("", "exit 3", true);
    check("", "true", true);
    check(", on: [escalated]", COMPLETING_AGENT, false);
    check(", on: [escalated]", "echo '<promise>BLOCKED</promise>'", true);
    check(", on: [completed]", "true", false);
    check(", on: [ended]", "true", true);
    check(", on: [escalated]", "exit 3", true);
    check(", on: [failed]", "echo 'Not logged in' >&2; exit 1", true);
    check(", on: [failed]", "exit 3", false);
    check(", on: []", COMPLETING_AGENT, false);
}

/// A question without a notification might never be answered. A repeated question is not notified again.
#[test]
fn question_to_person_is_notified_only_once() {
    let gate = "limits: {max_hook_retries: 0}\non_retry_limit: ask\nhooks: {stop: [{command: 'echo red >&2; exit 2'}]}";
    let notices = "notify: [{command: jq -r .text >> told}, {command: touch ended, on: [completed]}]";
    let world = create_notifying_project(&format!("{gate}\n{notices}"), COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!(
        (ran.code, read_file(&world, "told")),
        (4, "A person is asked: Mend the pump (red)\n".to_owned()),
        "{ran}"
    );
    assert_eq!(world.run(RUN).code, 4);
    world.run_ok(&["answer", "pump", "ignore", "--trust"]);
    assert!(!world.path("ended").exists());
    assert_eq!(world.run(RUN).code, 0);
    let passed = "`stop[0]` blocks, and may not send the agent back, and a person let it pass";
    assert_eq!(
        read_file(&world, "told"),
        format!("A person is asked: Mend the pump (red)\nDone: Mend the pump ({passed})\n")
    );
    assert!(world.path("ended").exists());
}

/// The person who cancels a session knows that it was cancelled.
#[test]
fn cancelled_session_sends_only_notifications_subscribed_to_cancellation() {
    let config = "notify: [{command: touch usual}, {command: touch asked, on: [cancelled]}]";
    let world = create_notifying_project(config, "kill -INT $(cat pid); sleep 60");
    let ran = run_with_pid_file(&world);
    assert_eq!(ran.code, 130, "{ran}");
    assert_eq!((world.path("usual").exists(), world.path("asked").exists()), (false, true));
}

/// A run whose process id is in a file.
fn run_with_pid_file(world: &TestWorld) -> CommandOutput {
    let script = "echo $$ > pid; exec \"$0\" \"$@\"";
    world.run_command(world.program("sh").args(["-c", script, WINDLASS]).args(RUN))
}

#[test]
fn notification_needs_trust() {
    let world = create_notifying_project("notify: [{command: touch told}]", COMPLETING_AGENT);
    let words = ["run", "Mend the pump", "--agent", "command:sh agent.sh"];
    let ran = world.run(&words);
    assert_eq!(ran.code, 64, "{ran}");
    let shown = world.run(&["trust", "--show"]).to_string();
    assert!(shown.contains("notify[0]") && shown.contains("touch told"), "{shown}");
    assert!(!world.path("told").exists());
}

/// A crash during a notification: a command does not run twice, and the log says so; a server gets the same key again.
#[test]
fn interrupted_notification_repeats_no_command_and_keeps_idempotency_key() {
    let world = create_notifying_project(
        "notify: [{command: 'echo told >> told; kill -9 $(cat pid); sleep 60'}]",
        COMPLETING_AGENT,
    );
    run_with_pid_file(&world);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(read_file(&world, "told"), "told\n");
    assert_eq!(notification_outcomes(&world), single_outcome("notify[0]", "interrupted"));

    let server = TestHttpServer::new(vec![ServerReply::Stall, http_response("200 OK", "")]);
    let world = create_notifying_project(&format!("notify: [{{http: '{}'}}]", server.url("/")), COMPLETING_AGENT);
    let mut child = world.command(RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let first = server.next_request();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.run(RUN).code, 0);
    assert_eq!(first.header("idempotency-key"), server.next_request().header("idempotency-key"));
    assert_eq!(notification_outcomes(&world), single_outcome("notify[0]", "success"));
}

#[test]
fn desktop_notification_escapes_markup_and_options() {
    let world = create_notifying_project("notify: [{desktop: true}]", "echo '<promise>BLOCKED</promise>'");
    let program = world.program_directory().join("notify-send");
    fs::write(&program, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", world.path("shown").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = world.run(&["run", "--trust", "--", "--icon=x <b>bold</b> & more"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(
        read_file(&world, "shown"),
        "--app-name=windlass\n--\nWindlass: A person is needed\n\
         --icon=x &lt;b&gt;bold&lt;/b&gt; &amp; more (the agent says it is blocked)\n"
    );
    assert_eq!(notification_outcomes(&world), single_outcome("notify[0]", "success"));
}

/// Without a desktop the terminal is used, if there is one, and no error is shown.
#[test]
fn desktop_notification_falls_back_to_terminal() {
    let world = create_notifying_project("notify: [{desktop: true}]", COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!((ran.code, notification_outcomes(&world)), (0, single_outcome("notify[0]", "skip")), "{ran}");
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains("notify"), "{ran}");
    let (watched, code) =
        world.start_in_terminal((30, 100), &["run", "Mend \u{1b}]0;it", "--trust"], &[]).read_to_end();
    assert_eq!(code, 0);
    let raw = String::from_utf8_lossy(&watched.raw_output).into_owned();
    assert!(raw.contains("\u{1b}]9;Windlass: Done: Mend\u{7}"), "{raw:?}");
    assert!(!raw.contains("\u{1b}]0;"), "{raw:?}");
}

/// The trial of a notification before it is due.
#[test]
fn notices_can_be_tried() {
    let world = create_notifying_project("notify: [{command: cat > tried}]", COMPLETING_AGENT);
    assert!(world.run_ok(&["hooks", "list"]).contains("notify\n   100  notify[0]  cat > tried  (line 2)"));
    world.write("end.json", "{\"goal\": \"Mend it\", \"event\": {\"data\": {\"ending\": \"completed\"}}}");
    world.run_ok(&["hooks", "test", "notify", "--payload", "end.json", "--run", "--trust"]);
    assert!(read_file(&world, "tried").contains("Done: Mend it"), "{}", read_file(&world, "tried"));
}
