//! Telling somebody that a session is over.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::server::{Answer, Server, says};
use crate::support::{Ran, WINDLASS, World};

const RUN: &[&str] = &["run", "Mend the pump", "--trust", "--session", "pump"];
const COMPLETE: &str = "echo '<promise>COMPLETE</promise>'";

/// A project that tells somebody so, whose agent does this.
fn world(config: &str, agent: &str) -> World {
    let world = World::new();
    world.write(".windlass/config.yaml", format!("agent: 'command:sh agent.sh'\n{config}\n"));
    world.write("agent.sh", format!("cat >/dev/null\n{agent}\n"));
    world
}

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.path(name)).unwrap()
}

/// How the notices ended, by the log.
fn told(world: &World) -> Vec<(String, String)> {
    let events = world.lines(&["events", "--type", "hook_finished"]);
    let text = |event: &Value, name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
    let all = events.iter().map(|event| (text(event, "hook"), text(event, "outcome")));
    all.filter(|(hook, _)| hook.starts_with("notify")).collect()
}

fn is_told(hook: &str, outcome: &str) -> Vec<(String, String)> {
    vec![(hook.to_owned(), outcome.to_owned())]
}

#[test]
fn a_server_is_told() {
    let server = Server::new(vec![says("503 Busy", ""), says("200 OK", "{\"ok\": true}")]);
    let url = server.url("/hook");
    let world = world(
        &format!("notify: [{{http: {{url: '{url}', headers: {{Authorization: 'Bearer ${{TOKEN}}'}}}}}}]"),
        COMPLETE,
    );
    let ran = world.run_with(("TOKEN", "s3cret"), RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("complete after one iteration\n  notify[0] ok\n"), "{ran}");
    let (first, second) = (server.asked(), server.asked());
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    assert_eq!(second.header("authorization"), "bearer s3cret");
    let expected = json!({
        "text": "Done: Mend the pump", "session": "pump", "ending": "completed", "reason": "", "goal": "Mend the pump",
        "iterations": 1, "project": world.directory.to_string_lossy(),
    });
    assert_eq!((first.body, second.body), (expected.clone(), expected));
    assert!(server.is_idle());
    assert_eq!(told(&world), is_told("notify[0]", "success"));
}

/// Nobody who has ended a session waits for longer than a notice may take.
#[test]
fn a_server_that_wants_to_be_asked_much_later_is_not() {
    let server = Server::new(vec![says("503 Busy\r\nRetry-After: 11", "")]);
    let world = world(&format!("notify: [{{http: '{}'}}]", server.url("/hook")), COMPLETE);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(told(&world), is_told("notify[0]", "failure"));
    assert_eq!(world.data_of("hook_started").len(), 1, "{ran}");
}

#[test]
fn a_command_is_told_after_everything_else() {
    let config = "hooks: {session_end: [{command: echo end >> order, priority: 999999}], \
                  session_ended: [{command: echo ended >> order}]}\n\
                  notify: [{command: 'echo told >> order; cat > notice; env | grep ^WINDLASS_ | sort > variables; echo {{session}} > name'}]";
    let world = world(config, "echo '<promise>BLOCKED</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(read(&world, "order"), "ended\nend\ntold\n");
    let notice: Value = serde_json::from_str(&read(&world, "notice")).unwrap();
    assert_eq!(notice["text"], "A person is needed: Mend the pump (the agent says it is blocked)");
    assert_eq!((&notice["ending"], &notice["reason"]), (&json!("escalated"), &json!("the agent says it is blocked")));
    let variables = read(&world, "variables");
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
    assert_eq!(read(&world, "name"), "pump\n");
}

/// Whatever becomes of a notice, the session has ended as it has.
#[test]
fn failed_notification_does_not_change_the_ending() {
    let closed = Server::new(vec![]).url("/");
    let config = format!(
        "notify: [{{command: 'exit 2'}}, {{command: 'echo {{\"decision\": \"block\", \"reason\": \"no\"}}'}}, {{http: '{closed}'}}, {{command: /nope}}]"
    );
    let world = world(&config, COMPLETE);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let outcomes: Vec<String> = told(&world).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, ["failure", "success", "failure", "failure"]);
    assert_eq!(world.json(&["session", "show", "pump"])["ending"], "completed");
    assert_eq!(world.lines(&["events", "--type", "feedback_queued"]), Vec::<Value>::new());
}

#[test]
fn actions_in_notification_output_are_ignored() {
    let world = world("notify: [{command: cat wish}]", COMPLETE);
    world.write("wish", r#"{"actions": [{"type": "create_task", "payload": {"goal": "More"}}]}"#);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(told(&world), is_told("notify[0]", "success"));
    assert_eq!(world.data_of("task_created").len(), 1, "its own");
}

#[test]
fn only_on_its_occasions() {
    let check = |on: &str, agent: &str, expected: bool| {
        let world = world(
            &format!("limits: {{max_iterations: 1, max_failures: 1}}\nnotify: [{{command: touch told{on}}}]"),
            agent,
        );
        world.run(RUN);
        assert_eq!(world.path("told").exists(), expected, "{on} {agent}");
    };
    check("", COMPLETE, true);
    check("", "exit 3", true);
    check("", "true", true);
    check(", on: [escalated]", COMPLETE, false);
    check(", on: [escalated]", "echo '<promise>BLOCKED</promise>'", true);
    check(", on: [completed]", "true", false);
    check(", on: [ended]", "true", true);
    check(", on: [escalated]", "exit 3", true);
    check(", on: [failed]", "echo 'Not logged in' >&2; exit 1", true);
    check(", on: [failed]", "exit 3", false);
    check(", on: []", COMPLETE, false);
}

/// A question that nobody sees would never be answered. Asked again, nobody is told again.
#[test]
fn a_question_is_told() {
    let gate = "limits: {max_hook_retries: 0}\non_retry_limit: ask\nhooks: {stop: [{command: 'echo red >&2; exit 2'}]}";
    let notices = "notify: [{command: jq -r .text >> told}, {command: touch ended, on: [completed]}]";
    let world = world(&format!("{gate}\n{notices}"), COMPLETE);
    let ran = world.run(RUN);
    assert_eq!((ran.code, read(&world, "told")), (4, "A person is asked: Mend the pump (red)\n".to_owned()), "{ran}");
    assert_eq!(world.run(RUN).code, 4);
    world.ok(&["answer", "pump", "ignore", "--trust"]);
    assert!(!world.path("ended").exists());
    assert_eq!(world.run(RUN).code, 0);
    let passed = "`stop[0]` blocks, and may not send the agent back, and a person let it pass";
    assert_eq!(
        read(&world, "told"),
        format!("A person is asked: Mend the pump (red)\nDone: Mend the pump ({passed})\n")
    );
    assert!(world.path("ended").exists());
}

/// Whoever cancels a session knows that it was cancelled.
#[test]
fn a_cancelled_session_tells_only_who_asked_for_that() {
    let config = "notify: [{command: touch usual}, {command: touch asked, on: [cancelled]}]";
    let world = world(config, "kill -INT $(cat pid); sleep 60");
    let ran = killable(&world);
    assert_eq!(ran.code, 130, "{ran}");
    assert_eq!((world.path("usual").exists(), world.path("asked").exists()), (false, true));
}

/// A run whose number is in a file.
fn killable(world: &World) -> Ran {
    let script = "echo $$ > pid; exec \"$0\" \"$@\"";
    world.finish(world.program("sh").args(["-c", script, WINDLASS]).args(RUN))
}

#[test]
fn notification_needs_trust() {
    let world = world("notify: [{command: touch told}]", COMPLETE);
    let words = ["run", "Mend the pump", "--agent", "command:sh agent.sh"];
    let ran = world.run(&words);
    assert_eq!(ran.code, 64, "{ran}");
    let shown = world.run(&["trust", "--show"]).to_string();
    assert!(shown.contains("notify[0]") && shown.contains("touch told"), "{shown}");
    assert!(!world.path("told").exists());
}

/// A crash while somebody is told: a command is not run twice, and the log says so; a server gets the same key again.
#[test]
fn a_crash_neither_loses_nor_doubles_it_unmarked() {
    let world = world("notify: [{command: 'echo told >> told; kill -9 $(cat pid); sleep 60'}]", COMPLETE);
    killable(&world);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(read(&world, "told"), "told\n");
    assert_eq!(told(&world), is_told("notify[0]", "interrupted"));

    let server = Server::new(vec![Answer::Stalls, says("200 OK", "")]);
    let world = self::world(&format!("notify: [{{http: '{}'}}]", server.url("/")), COMPLETE);
    let mut child = world.command(RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let first = server.asked();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.run(RUN).code, 0);
    assert_eq!(first.header("idempotency-key"), server.asked().header("idempotency-key"));
    assert_eq!(told(&world), is_told("notify[0]", "success"));
}

#[test]
fn a_desktop_is_told() {
    let world = world("notify: [{desktop: true}]", "echo '<promise>BLOCKED</promise>'");
    let program = world.programs().join("notify-send");
    fs::write(&program, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", world.path("shown").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = world.run(&["run", "--trust", "--", "--icon=x <b>bold</b> & more"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(
        read(&world, "shown"),
        "--app-name=windlass\n--\nWindlass: A person is needed\n\
         --icon=x &lt;b&gt;bold&lt;/b&gt; &amp; more (the agent says it is blocked)\n"
    );
    assert_eq!(told(&world), is_told("notify[0]", "success"));
}

/// Where there is no desktop the terminal is asked, if there is one, and nobody complains.
#[test]
fn a_terminal_takes_the_place_of_a_desktop() {
    let world = world("notify: [{desktop: true}]", COMPLETE);
    let ran = world.run(RUN);
    assert_eq!((ran.code, told(&world)), (0, is_told("notify[0]", "skip")), "{ran}");
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains("notify"), "{ran}");
    let (watched, code) = world.watch((30, 100), &["run", "Mend \u{1b}]0;it", "--trust"], &[]).end();
    assert_eq!(code, 0);
    let raw = String::from_utf8_lossy(&watched.raw).into_owned();
    assert!(raw.contains("\u{1b}]9;Windlass: Done: Mend\u{7}"), "{raw:?}");
    assert!(!raw.contains("\u{1b}]0;"), "{raw:?}");
}

/// What would be told, before it has to be.
#[test]
fn notices_can_be_tried() {
    let world = world("notify: [{command: cat > tried}]", COMPLETE);
    assert!(world.ok(&["hooks", "list"]).contains("notify\n   100  notify[0]  cat > tried  (line 2)"));
    world.write("end.json", "{\"goal\": \"Mend it\", \"event\": {\"data\": {\"ending\": \"completed\"}}}");
    world.ok(&["hooks", "test", "notify", "--payload", "end.json", "--run", "--trust"]);
    assert!(read(&world, "tried").contains("Done: Mend it"), "{}", read(&world, "tried"));
}
