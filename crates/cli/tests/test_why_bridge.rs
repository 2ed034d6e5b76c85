//! The views of calls by agents' own hook systems: `events`, `why`, `hooks history`, `hooks metrics`

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::hook_project::{COMPLETING_AGENT, create_hook_project};
use crate::support::{CommandOutput, TestWorld, WINDLASS, normalize_durations};
use crate::test_run::{RUN, create_agent_project};

const CONVERSATION_ID: &str = "0b7c2f6e-43d1-4d4e-9a52-0d3c9a5f5a11";

/// Tests that always fail, a forbidden tool, and a hook with general information.
const CONFIG: &str = r#"
hooks:
  stop:
    - {name: tests, command: 'echo test_login failed; echo 2 of 9 tests failed >&2; exit 2'}
  pre_tool_use:
    - {name: no-rm, matcher: Bash, command: '! grep -q "rm -rf" || { echo never that >&2; exit 2; }'}
  user_prompt_submit:
    - {name: remind, when: '"urgent" in prompt', command: echo the cellar is locked}
"#;

/// An agent's hook system calls.
fn call_hook(world: &TestWorld, point: &str, agent: &str, mut payload: Value) -> CommandOutput {
    payload["cwd"] = json!(world.directory);
    world.run_with_input(&["hook", point, "--as", agent], payload.to_string().as_bytes())
}

/// An agent wants to end its turn.
fn call_stop_hook(world: &TestWorld, id: &str, is_sent_back: bool) -> CommandOutput {
    let payload = json!({
        "session_id": id,
        "hook_event_name": "Stop",
        "stop_hook_active": is_sent_back,
        "last_assistant_message": "All done.",
    });
    call_hook(world, "stop", "claude", payload)
}

fn call_tool_hook(world: &TestWorld, id: &str, tool: &str, input: &Value) -> CommandOutput {
    let payload = json!({
        "session_id": id, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
    });
    call_hook(world, "pre_tool_use", "claude", payload)
}

fn call_prompt_hook(world: &TestWorld, id: &str, prompt: &str) -> CommandOutput {
    let payload = json!({"session_id": id, "hook_event_name": "UserPromptSubmit", "prompt": prompt});
    call_hook(world, "user_prompt_submit", "claude", payload)
}

fn command_output(world: &TestWorld, words: &[&str]) -> String {
    normalize_durations(&world.run(words).to_string())
}

/// A conversation with a bit of everything.
fn create_conversation() -> TestWorld {
    let world = create_hook_project(CONFIG);
    // No hook matches this call, so nothing is recorded.
    call_prompt_hook(&world, CONVERSATION_ID, "Mend the pump");
    call_prompt_hook(&world, CONVERSATION_ID, "This is urgent");
    call_tool_hook(&world, CONVERSATION_ID, "Bash", &json!({"command": "ls"}));
    call_tool_hook(&world, CONVERSATION_ID, "Bash", &json!({"command": "rm -rf /"}));
    call_stop_hook(&world, CONVERSATION_ID, false);
    call_stop_hook(&world, CONVERSATION_ID, true);
    call_stop_hook(&world, CONVERSATION_ID, false);
    for _ in 0..2 {
        call_stop_hook(&world, CONVERSATION_ID, true);
    }
    world
}

#[test]
fn events_say_who_called_and_what_was_answered() {
    let world = create_conversation();
    assert_snapshot!(command_output(&world, &["events", "--type", "bridge_called", "--type", "bridge_answered"]), @r#"
     2  <time>         bridge_called             claude 0b7c2f6e-43d1 at user_prompt_submit: This is urgent
     5  <time>         bridge_answered           claude 0b7c2f6e-43d1 at user_prompt_submit: passed; told: the cellar is locked
     6  <time>         bridge_called             claude 0b7c2f6e-43d1 at pre_tool_use, Bash: {"command":"ls"}
     9  <time>         bridge_called             claude 0b7c2f6e-43d1 at pre_tool_use, Bash: {"command":"rm -rf /"}
    12  <time>         bridge_answered           claude 0b7c2f6e-43d1 at pre_tool_use: blocked: never that
    13  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
    16  <time>         bridge_answered           claude 0b7c2f6e-43d1 at stop: sent back (1 of 5): 2 of 9 tests failed⏎⏎test_login failed
    17  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
    20  <time>         bridge_answered           claude 0b7c2f6e-43d1 at stop: sent back (2 of 5): 2 of 9 tests failed⏎⏎test_login failed
    21  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
    24  <time>         bridge_answered           claude 0b7c2f6e-43d1 at stop: sent back (1 of 5): 2 of 9 tests failed⏎⏎test_login failed
    25  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
    28  <time>         bridge_answered           claude 0b7c2f6e-43d1 at stop: sent back (2 of 5): 2 of 9 tests failed⏎⏎test_login failed
    29  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
    32  <time>         bridge_answered           claude 0b7c2f6e-43d1 at stop: let through, the same reason 3 times in a row: 2 of 9 tests failed⏎⏎test_login failed
    "#);
}

#[test]
fn conversation_summary_lists_all_calls_answers_and_hook_runs() {
    let world = create_conversation();
    assert_snapshot!(command_output(&world, &["why", CONVERSATION_ID, "--full"]), @r#"
    conversation 0b7c2f6e-43d1-4d4e-9a52-0d3c9a5f5a11  at stop: let through, the same reason 3 times in a row
      agent         Claude Code
      first call    <time>, for ann
      last call     <time>, for ann
      calls         8
      sent back     4 times
      let through   once

         2  <time>         bridge_called             claude 0b7c2f6e-43d1 at user_prompt_submit: This is urgent
         4  <time>  hook_finished  remind at user_prompt_submit ok (<took>)
            | the cellar is locked
         5  <time>         bridge_answered           user_prompt_submit: passed
         6  <time>         bridge_called             claude 0b7c2f6e-43d1 at pre_tool_use, Bash: {"command":"ls"}
         8  <time>  hook_finished  no-rm at pre_tool_use ok (<took>)
         9  <time>         bridge_called             claude 0b7c2f6e-43d1 at pre_tool_use, Bash: {"command":"rm -rf /"}
        11  <time>  hook_finished  no-rm at pre_tool_use blocks: never that (<took>)
            | never that
        12  <time>         bridge_answered           pre_tool_use: blocked, by no-rm
        13  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
        15  <time>  hook_finished  tests at stop blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
        16  <time>         bridge_answered           stop: sent back (1 of 5), by tests
        17  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
        19  <time>  hook_finished  tests at stop blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
        20  <time>         bridge_answered           stop: sent back (2 of 5), by tests
        21  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
        23  <time>  hook_finished  tests at stop blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
        24  <time>         bridge_answered           stop: sent back (1 of 5), by tests
        25  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
        27  <time>  hook_finished  tests at stop blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
        28  <time>         bridge_answered           stop: sent back (2 of 5), by tests
        29  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop: All done.
        31  <time>  hook_finished  tests at stop blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
        32  <time>         bridge_answered           stop: let through, the same reason 3 times in a row, by tests
    "#);
    for name in [&CONVERSATION_ID[..6], &CONVERSATION_ID[..13], "claude:0b7c2f", &format!("claude:{CONVERSATION_ID}")] {
        assert_eq!(command_output(&world, &["why", name]), command_output(&world, &["why", CONVERSATION_ID]), "{name}");
    }
    assert_eq!(command_output(&world, &["why", "--conversation"]), command_output(&world, &["why", CONVERSATION_ID]));
}

#[test]
fn programs_read_the_same() {
    let told = create_conversation().json(&["why", CONVERSATION_ID]);
    assert_eq!(
        (&told["kind"], &told["name"], &told["next"]),
        (&json!("conversation"), &json!(CONVERSATION_ID), &Value::Null)
    );
    let label = |label: &str, text: &str| json!({"label": label, "text": text});
    for line in [label("agent", "Claude Code"), label("sent back", "4 times"), label("let through", "once")] {
        assert!(told["about"].as_array().unwrap().contains(&line), "{told}");
    }
    let facts = |kind: &str| -> Vec<&Value> {
        told["facts"].as_array().unwrap().iter().filter(|fact| fact["type"] == kind).collect()
    };
    let (calls, answers) = (facts("bridge_called"), facts("bridge_answered"));
    let points: Vec<_> = calls.iter().map(|call| call["data"]["point"].as_str().unwrap()).collect();
    let (asked, used) = ("user_prompt_submit", "pre_tool_use");
    assert_eq!(points, [asked, used, used, "stop", "stop", "stop", "stop", "stop"]);
    assert_eq!(answers[0]["data"]["told"], "the cellar is locked");
    assert_eq!(
        (&calls[2]["data"]["tool"], &calls[2]["data"]["about"]),
        (&json!("Bash"), &json!(r#"{"command":"rm -rf /"}"#))
    );
    assert_eq!(facts("hook_finished")[2]["evidence"], json!(["never that"]));
    assert_eq!((&answers[1]["data"]["ruling"], &answers[1]["by"]), (&json!("block"), &json!("no-rm")));
    let last = &answers.last().unwrap()["data"];
    assert_eq!((&last["ruling"], &last["letGo"]), (&json!("pass"), &json!("the same reason 3 times in a row")));
    assert_eq!((&last["retries"], &last["maxRetries"]), (&json!(2), &json!(5)));
}

/// Hook runs of a call are shown with the conversation, and can be filtered by it.
#[test]
fn runs_belong_to_conversations() {
    let world = create_conversation();
    call_stop_hook(&world, "another-one", false);
    assert_snapshot!(command_output(&world, &["hooks", "history", "--hook", "tests", "--limit", "2"]), @"
    <time>  tests  stop  bridge_called 29, claude 0b7c2f6e-43d1  blocks  <took>  2 of 9 tests failed
    <time>  tests  stop  bridge_called 33, claude another-one  blocks  <took>  2 of 9 tests failed
    ");
    assert_snapshot!(command_output(&world, &["hooks", "history", "--conversation", &CONVERSATION_ID[..8], "--point", "pre_tool_use"]), @"
    <time>  no-rm  pre_tool_use  bridge_called 6, claude 0b7c2f6e-43d1  ok  <took>
    <time>  no-rm  pre_tool_use  bridge_called 9, claude 0b7c2f6e-43d1  blocks  <took>  never that
    ");
    assert_snapshot!(command_output(&world, &["hooks", "metrics", "--conversation", "another-one"]), @"
    hook   runs  success  block  failure  timeout  other     p50     p95  last run
    tests  1  0%  100%  0%  0%  0%  <took>  <took>  <time>
    total  1  0%  100%  0%  0%  0%  <took>  <took>  <time>
    ");
    let runs = world.json_lines(&["hooks", "history", "--conversation", CONVERSATION_ID, "--outcome", "block"]);
    let first = runs.first().unwrap();
    assert_eq!(
        [&first["agent"], &first["conversation"], &first["point"], &first["tool"]],
        ["claude", CONVERSATION_ID, "pre_tool_use", "Bash"]
    );
    assert_eq!(runs.len(), 6);
    assert_snapshot!(world.expect_failure(&["hooks", "history", "--conversation", "absent"]), @"
    error: there is no conversation `absent`
    hint: `windlass events --type bridge_called` names conversations
    [1 not_found]
    ");
}

/// Two agents may have the same id, and ids may have a common prefix.
#[test]
fn which_conversation_is_meant() {
    let world = create_hook_project(CONFIG);
    call_stop_hook(&world, "talk-1234-a", false);
    call_stop_hook(&world, "talk-1234-b", false);
    call_stop_hook(&world, "talk", false);
    let other = json!({"session_id": "talk", "hook_event_name": "Stop", "stop_hook_active": false});
    call_hook(&world, "stop", "codex", other);
    assert_snapshot!(world.expect_failure(&["why", "talk-1"]), @"
    error: `talk-1` may be any of 2 conversations
    hint: name one: claude:talk-1234-a, claude:talk-1234-b
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["why", "talk"]), @"
    error: `talk` may be any of 2 conversations
    hint: name one: claude:talk, codex:talk
    [64 usage]
    ");
    assert_eq!(world.json(&["why", "codex:talk"])["facts"][0]["data"]["agent"], "codex");
    // A prefix of five letters matches nothing, however few conversations there are.
    assert!(world.expect_failure(&["why", "talk-"]).starts_with("error: `talk-` is no task, session, conversation,"));
    assert_snapshot!(TestWorld::new().expect_failure(&["why", "--conversation"]), @"
    error: no agent has called yet
    hint: `windlass hook` is what agents' own hook systems call
    [1 not_found]
    ");
    // A task has precedence, and so does a session.
    world.run_ok(&["task", "add", "One"]);
    call_stop_hook(&world, "T1", false);
    assert_eq!(world.json(&["why", "T1"])["kind"], "task");
    assert_eq!(world.json(&["why", "claude:T1"])["kind"], "conversation");
}

/// Feedback to a subagent is shown with the conversation that started it.
#[test]
fn subagent_feedback_is_listed_under_parent_conversation() {
    let world =
        create_hook_project("hooks: {subagent_stop: [{name: read, command: 'echo read it again >&2; exit 2'}]}");
    for subagent in ["a1", "a2"] {
        let payload = json!({
            "session_id": CONVERSATION_ID, "agent_id": subagent, "hook_event_name": "SubagentStop", "stop_hook_active": false,
        });
        call_hook(&world, "subagent_stop", "claude", payload);
    }
    assert_snapshot!(command_output(&world, &["why", CONVERSATION_ID]), @"
    conversation 0b7c2f6e-43d1-4d4e-9a52-0d3c9a5f5a11  at subagent_stop: sent back (1 of 5)
      agent         Claude Code
      first call    <time>, for ann
      last call     <time>, for ann
      calls         2
      sent back     2 times

         2  <time>         bridge_called             claude 0b7c2f6e-43d1/a1 at subagent_stop
         4  <time>  hook_finished  read at subagent_stop blocks: read it again (<took>)
            | read it again
         5  <time>         bridge_answered           subagent_stop: sent back (1 of 5), by read
         6  <time>         bridge_called             claude 0b7c2f6e-43d1/a2 at subagent_stop
         8  <time>  hook_finished  read at subagent_stop blocks: read it again (<took>)
            | read it again
         9  <time>         bridge_answered           subagent_stop: sent back (1 of 5), by read

      shown         6 of 6 facts; --full shows everything
    ");
    let one = world.json(&["why", &format!("{}/a2", &CONVERSATION_ID[..13])]);
    assert_eq!((&one["name"], one["facts"].as_array().unwrap().len()), (&json!(format!("{CONVERSATION_ID}/a2")), 3));
}

/// Every writer to a pipe can choose its id.
#[test]
fn ids_are_harmless_to_look_at() {
    let world = create_hook_project(CONFIG);
    let id = "\u{1b}[2J\u{202e}evil\nid";
    call_stop_hook(&world, id, false);
    for words in [&["events"][..], &["why", id], &["why", r"\u{1b}[2J\u{202e}evil"], &["hooks", "history"]] {
        let ran = world.run(words);
        assert!(ran.code == 0 && ran.stdout.contains(r"\u{1b}[2J"), "{words:?}\n{ran}");
        assert!(!ran.stdout.contains(['\u{1b}', '\u{202e}']), "{words:?}");
    }
}

/// An agent that lost its patience got no answer, and no output claims that it did.
#[test]
fn call_killed_before_answer_is_reported_as_unanswered() {
    let world = create_hook_project("hooks: {stop: [{name: slow, command: 'echo >running; sleep 1000'}]}");
    world.make_pipe("running");
    let mut command = world.command(&["hook", "stop", "--as", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let payload = json!({"session_id": CONVERSATION_ID, "cwd": world.directory, "stop_hook_active": false});
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    world.await_pipe("running");
    let shown = command_output(&world, &["why", CONVERSATION_ID]);
    assert!(shown.contains("slow at stop is running\n"), "{shown}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_snapshot!(command_output(&world, &["why", CONVERSATION_ID]), @"
    conversation 0b7c2f6e-43d1-4d4e-9a52-0d3c9a5f5a11  nothing was answered yet
      agent         Claude Code
      first call    <time>, for ann
      last call     <time>, for ann
      calls         1

         2  <time>         bridge_called             claude 0b7c2f6e-43d1 at stop
         3  <time>           hook_started            slow at stop was left

      shown         2 of 2 facts; --full shows everything
    ");
}

/// Calls of an agent's own hook system in a session are shown with the session.
#[test]
fn why_conversation_inside_session_names_session() {
    let payload = r#"{"session_id": "its-own-talk", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}"#;
    let agent = format!("echo '{payload}' | {WINDLASS} hook pre_tool_use --as claude >answer; {COMPLETING_AGENT}");
    let config = "hooks: {pre_tool_use: [{name: never, matcher: Bash, command: 'echo never that >&2; exit 2'}]}";
    let world = create_agent_project(config, &agent);
    assert_eq!(world.run(RUN).code, 0);
    let logs = command_output(&world, &["session", "logs", "mend-the-pump-e01275de"]);
    let told: Vec<&str> = logs.lines().filter(|line| line.contains("claude") || line.contains("  | never")).collect();
    assert_snapshot!(told.join("\n"), @r#"
    <time>  claude its-own-talk: calls at pre_tool_use, Bash: {"command":"rm -rf /"}
      | never that
    <time>  claude its-own-talk: is answered, blocked
      | never that
    "#);
    assert_snapshot!(command_output(&world, &["why", "its-own-talk"]), @r#"
    conversation its-own-talk  at pre_tool_use: blocked
      agent         Claude Code
      first call    <time>, for ann
      last call     <time>, for ann
      calls         1

    iteration 1 of mend-the-pump-e01275de
         9  <time>         bridge_called             claude its-own-talk at pre_tool_use, Bash: {"command":"rm -rf /"}
        11  <time>  hook_finished  never at pre_tool_use blocks: never that (<took>)
            | never that
        12  <time>         bridge_answered           pre_tool_use: blocked, by never

      shown         3 of 3 facts; --full shows everything
    "#);
}
