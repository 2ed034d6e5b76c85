//! Calls of `windlass hook` by agents' own hook systems: the answers, and that errors never block the agent.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::hooked::{await_end, hooked, is_dead};
use crate::support::{Ran, World};

/// The payload of Claude Code when it is about to stop.
fn stopping(world: &World, conversation: &str, sent_back: bool) -> Value {
    json!({
        "session_id": conversation, "transcript_path": "/tmp/t.jsonl", "cwd": world.directory,
        "hook_event_name": "Stop", "stop_hook_active": sent_back, "last_assistant_message": "All done.",
    })
}

fn tool(world: &World, name: &str, input: &Value) -> Value {
    json!({
        "session_id": "s", "cwd": world.directory, "hook_event_name": "PreToolUse",
        "tool_name": name, "tool_input": input, "tool_use_id": "t1",
    })
}

fn call(world: &World, point: &str, payload: &Value) -> Ran {
    world.feed(&["hook", point, "--as", "claude"], payload.to_string().as_bytes())
}

/// The agent reads this on standard output.
fn said(ran: &Ran) -> Value {
    assert!(ran.code == 0 || ran.code == 2, "{ran}");
    if ran.stdout.is_empty() { Value::Null } else { serde_json::from_str(&ran.stdout).unwrap() }
}

/// The agent goes on, and the person at it sees this message.
#[track_caller]
fn check_let_go(ran: &Ran, told: &str) {
    assert_eq!(ran.code, 0, "{ran}");
    let answer = said(ran);
    assert!(answer.get("decision").is_none() && answer["hookSpecificOutput"].is_null(), "{ran}");
    let message = answer["systemMessage"].as_str().unwrap_or_default();
    assert!(message.contains(told), "`{told}` is not in `{message}`");
}

/// Fails with other words each time, as tests do.
const FAILING: &str = "hooks:
  stop:
    - name: tests
      command: 'echo x >> tried; echo \"$(wc -l < tried) tests fail\" >&2; exit 2'
limits: {max_hook_retries: 2}
";

#[test]
fn an_agent_is_sent_back_with_the_reason_and_let_go_at_the_limit() {
    let world = hooked(FAILING);
    let first = call(&world, "stop", &stopping(&world, "one", false));
    assert_eq!((first.code, first.stderr.trim()), (2, "1 tests fail"));
    assert_eq!(said(&first), json!({"decision": "block", "reason": "1 tests fail"}));
    assert_eq!(call(&world, "Stop", &stopping(&world, "one", true)).code, 2);
    let last = call(&world, "stop", &stopping(&world, "one", true));
    check_let_go(
        &last,
        "`tests` has sent the agent back 2 times (`max_hook_retries`); the agent may stop, but `tests` still says no: 3 tests fail",
    );
    let answers = world.data_of("bridge_answered");
    let seen: Vec<_> = answers.iter().map(|answer| json!([answer["ruling"], answer["retries"]])).collect();
    assert_eq!(seen, [json!(["block", 1]), json!(["block", 2]), json!(["pass", 2])]);
}

#[test]
fn an_agent_is_ended_where_a_hook_says_so() {
    let world = hooked(
        r#"hooks:
  stop:
    - command: |
        echo '{"continue": false, "stopReason": "Enough."}'
"#,
    );
    let ended = said(&call(&world, "stop", &stopping(&world, "one", false)));
    assert_eq!((&ended["continue"], &ended["stopReason"]), (&json!(false), &json!("Enough.")), "{ended}");
}

#[test]
fn a_matcher_looks_at_why_the_agent_calls() {
    let world = hooked(
        "hooks:
  session_start: [{matcher: resume|clear, command: 'jq -r .source'}]
  notification: [{matcher: idle_prompt, command: echo x >> waited}]
",
    );
    let begin = |source: &str| {
        let payload = json!({"session_id": "one", "cwd": world.directory, "source": source});
        said(&call(&world, "session_start", &payload))["hookSpecificOutput"]["additionalContext"].clone()
    };
    assert_eq!(begin("resume"), "resume");
    assert_eq!(begin("startup"), Value::Null);
    for kind in ["idle_prompt", "permission_prompt"] {
        let payload = json!({"session_id": "one", "cwd": world.directory, "notification_type": kind});
        call(&world, "notification", &payload);
    }
    assert_eq!(world.read("waited"), "x\n");
    let calls = world.data_of("bridge_called");
    assert_eq!(calls.iter().map(|call| call["tool"].clone()).collect::<Vec<_>>(), [Value::Null, Value::Null]);
}

#[test]
fn a_tool_is_allowed_in_older_words_and_refused_without_any() {
    let world = hooked(
        r#"hooks:
  pre_tool_use:
    - matcher: Bash
      command: |
        echo '{"decision": "approve", "reason": "harmless"}'
    - {name: guard, matcher: Edit, command: exit 2}
  post_tool_use:
    - command: |
        echo '{"hookSpecificOutput": {"updatedToolOutput": {"stdout": "***"}}}'
"#,
    );
    let allowed = &said(&call(&world, "pre_tool_use", &tool(&world, "Bash", &json!({}))))["hookSpecificOutput"];
    assert_eq!(
        (&allowed["permissionDecision"], &allowed["permissionDecisionReason"]),
        (&json!("allow"), &json!("harmless"))
    );
    let refused = said(&call(&world, "pre_tool_use", &tool(&world, "Edit", &json!({}))));
    assert_eq!(refused["reason"], "`guard` blocks without a reason.");
    let used = said(&call(&world, "post_tool_use", &tool(&world, "Bash", &json!({}))));
    assert_eq!(used["hookSpecificOutput"]["updatedToolOutput"], json!({"stdout": "***"}), "{used}");
    assert_eq!(world.data_of("bridge_answered")[2]["told"], r#"{"stdout":"***"}"#);
}

#[test]
fn hooks_of_another_agent_leave_no_trace() {
    let world = hooked("agents: {codex: {hooks: {stop: [{command: exit 2}]}}}\n");
    assert_eq!(call(&world, "stop", &stopping(&world, "one", false)).code, 0);
    assert_eq!(world.data_of("bridge_called").len(), 0);
    let codex = world.feed(&["hook", "stop", "--as", "codex"], stopping(&world, "two", false).to_string().as_bytes());
    assert_eq!(codex.code, 2, "{codex}");
}

#[test]
fn an_agent_may_have_deleted_the_directory_that_it_calls_from() {
    let world = hooked(FAILING);
    let payload = world.write("stop.json", stopping(&world, "one", false).to_string());
    let script = r#"mkdir gone && cd gone && rmdir ../gone && exec "$0" hook stop --as claude < "$1""#;
    let mut command = world.program("sh");
    let ran = world.finish(command.args(["-c", script, env!("CARGO_BIN_EXE_windlass")]).arg(payload));
    assert_eq!((ran.code, ran.stderr.trim()), (2, "1 tests fail"), "{ran}");
}

#[test]
fn a_session_of_ours_begins_as_a_startup() {
    let world = hooked(
        "hooks:
  session_start: [{matcher: startup, command: echo startup >> begun}, {matcher: resume, command: echo resume >> begun}]
  session_end: [{matcher: clear, command: echo clear >> begun}, {matcher: other, command: echo other >> begun}]
",
    );
    world.run(&["run", "mend the pump", "--agent", "command:echo COMPLETE", "--max-iterations", "1"]);
    assert_eq!(world.read("begun"), "startup\nother\n");
}

#[test]
fn each_conversation_has_tries_of_its_own_and_a_person_gives_new_ones() {
    let world = hooked(FAILING);
    for conversation in ["one", "two"] {
        for sent_back in [false, true] {
            assert_eq!(call(&world, "stop", &stopping(&world, conversation, sent_back)).code, 2, "{conversation}");
        }
    }
    assert_eq!(call(&world, "stop", &stopping(&world, "one", true)).code, 0);
    // The next stop is the end of another turn.
    assert_eq!(call(&world, "stop", &stopping(&world, "two", false)).code, 2);
}

/// goose does not say at its end that it was sent back; but it reports each prompt of a person, with or without a hook for it.
#[test]
fn a_person_is_heard_where_no_hook_listens() {
    let world = hooked(FAILING);
    let goose = |point: &str, event: &str| {
        let payload =
            json!({"event": event, "session_id": "1", "matcher_context": null, "working_dir": world.directory});
        world.feed(&["hook", point], payload.to_string().as_bytes()).code
    };
    let turn = ["stop", "stop", "stop"].map(|point| goose(point, "Stop"));
    assert_eq!(turn, [2, 2, 0], "its answers are those of the contract of goose");
    assert_eq!(goose("stop", "Stop"), 0, "it stays let go");
    assert_eq!(goose("user_prompt_submit", "UserPromptSubmit"), 0);
    assert_eq!(["stop", "stop", "stop"].map(|point| goose(point, "Stop")), [2, 2, 0]);
}

#[test]
fn nothing_is_recorded_where_no_hook_stands() {
    let world = hooked(
        "hooks: {stop: [{command: 'true', when: \"'never' in output\"}], pre_tool_use: [{matcher: Edit, command: 'false'}]}\n",
    );
    for (point, payload) in [
        ("stop", stopping(&world, "one", false)),
        ("pre_tool_use", tool(&world, "Bash", &json!({"command": "ls"}))),
        ("post_tool_use", tool(&world, "Edit", &json!({}))),
        ("session_start", json!({"session_id": "one", "cwd": world.directory, "source": "startup"})),
    ] {
        let ran = call(&world, point, &payload);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{point}");
    }
    assert!(world.lines(&["events"]).is_empty());
}

#[test]
fn bridge_errors_never_block_the_agent() {
    let marking = "hooks: {stop: [{command: 'touch ran; exit 2'}]}\n";
    let untrusted = World::new();
    untrusted.write(".windlass/config.yaml", marking);
    check_let_go(&call(&untrusted, "stop", &stopping(&untrusted, "one", false)), "not trusted");
    let wrong = hooked(marking);
    wrong.write(".windlass/config.yaml", "hooks: {stop: [{comand: x}]}\n");
    check_let_go(&call(&wrong, "stop", &stopping(&wrong, "one", false)), "unknown key `comand`");
    let damaged = hooked(marking);
    damaged.write(".windlass/windlass.db", "this is no store, and never was one: it only lies where one should be");
    check_let_go(&call(&damaged, "stop", &stopping(&damaged, "one", false)), "windlass.db");
    let nowhere = World::empty();
    let ran = call(&nowhere, "stop", &stopping(&nowhere, "one", false));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    for world in [untrusted, wrong, damaged, nowhere] {
        assert!(!world.has("ran"), "nothing may run");
    }
}

#[test]
fn what_no_agent_says_is_told_and_passes() {
    let world = hooked(FAILING);
    let nameless = json!({"cwd": world.directory, "hook_event_name": "Stop"}).to_string();
    let cases: [(&[u8], &str); 5] = [
        (b"", "standard input is empty"),
        (b"hello", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b"{\"session_id\": ", "not a JSON object"),
        (nameless.as_bytes(), "names no conversation"),
    ];
    for (input, told) in cases {
        check_let_go(&world.feed(&["hook", "stop", "--as", "claude"], input), told);
    }
    assert!(world.lines(&["events"]).is_empty() && !world.has("tried"));
}

#[test]
fn a_hook_that_fails_is_no_block_unless_it_is_said_to_be() {
    let world = hooked("hooks: {stop: [{name: broken, command: 'echo oops >&2; exit 1'}]}\n");
    check_let_go(&call(&world, "stop", &stopping(&world, "one", false)), "hook `broken` failed: exit 1: oops");
    let slow = hooked("hooks: {stop: [{name: slow, command: sleep 600, timeout: 50ms}]}\n");
    check_let_go(&call(&slow, "stop", &stopping(&slow, "one", false)), "hook `slow` was too slow");
    let strict = hooked("hooks: {stop: [{name: broken, command: 'echo oops >&2; exit 1', on_failure: block}]}\n");
    let ran = call(&strict, "stop", &stopping(&strict, "one", false));
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("oops") && ran.stderr.contains("exit 1"), "{ran}");
}

#[test]
fn the_bridge_lets_go_before_the_agent_loses_its_patience() {
    let world = hooked("hooks: {stop: [{name: slow, command: 'echo $$ > pid; exec sleep 600'}]}\n");
    let payload = stopping(&world, "one", false).to_string();
    let ran = world.feed(&["hook", "stop", "--as", "claude", "--within", "1s"], payload.as_bytes());
    check_let_go(&ran, "after 1 s nothing was decided");
    assert!(is_dead(world.number_in("pid")));
}

/// A call at the end of a turn, whose hook has written to `began`.
fn called(world: &World) -> Child {
    world.make_pipe("began");
    let mut command = world.command(&["hook", "stop", "--as", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stopping(world, "one", false).to_string().as_bytes()).unwrap();
    world.await_word("began");
    child
}

/// The agent no longer waits for the answer: hooks that have not started are dropped.
#[test]
fn a_call_that_is_ended_leaves_no_hook_behind() {
    let world = hooked("hooks: {stop: [{command: 'echo > began; exec sleep 600'}, {command: touch next}]}\n");
    let mut child = called(&world);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    world.ok(&["doctor"]);
    assert!(!world.path("next").exists());
}

/// An agent that runs out of patience may not say so.
#[test]
fn a_gate_does_not_outlive_a_bridge_that_is_killed() {
    let world = hooked("hooks: {stop: [{command: 'echo $$ > pid; echo > began; exec sleep 600'}]}\n");
    let mut child = called(&world);
    child.kill().unwrap();
    child.wait().unwrap();
    await_end(world.number_in("pid"));
}

const TOOLS: &str = r#"hooks:
  pre_tool_use:
    - name: no-force
      matcher: Bash
      command: 'jq -e ".tool_input.command | test(\"--force\")" > /dev/null || exit 0; echo "never force" >&2; exit 2'
    - name: dry
      matcher: Bash
      when: "'deploy' in tool_input.command"
      command: >-
        echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "deploy --dry-run"}}}'
    - name: ask
      matcher: mcp__.*
      command: >-
        echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "is it meant?"}}'
    - name: guard
      matcher: Edit|Write
      rules:
        - {when: "'.env' in tool_input.file_path", action: continue, reason: "secrets stay as they are"}
"#;

#[test]
fn a_tool_is_denied_asked_about_or_called_otherwise() {
    let world = hooked(TOOLS);
    let answer = |name: &str, input: Value| said(&call(&world, "PreToolUse", &tool(&world, name, &input)));
    let denied = answer("Bash", json!({"command": "git push --force"}));
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(denied["hookSpecificOutput"]["permissionDecisionReason"], "never force");
    let updated = answer("Bash", json!({"command": "deploy now"}));
    assert_eq!(updated["hookSpecificOutput"]["updatedInput"], json!({"command": "deploy --dry-run"}));
    let both = answer("Bash", json!({"command": "deploy --force"}));
    assert_eq!(both["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(both["hookSpecificOutput"]["updatedInput"], Value::Null, "nothing is called in its place");
    assert_eq!(answer("Bash", json!({"command": "ls"})), Value::Null);
    let asked = answer("mcp__db__drop", json!({}));
    assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask");
    let guarded = answer("Write", json!({"file_path": "/x/.env", "content": ""}));
    assert_eq!(guarded["hookSpecificOutput"]["permissionDecisionReason"], "secrets stay as they are");
    assert_eq!(answer("Read", json!({"file_path": "/x/.env"})), Value::Null);
}

/// A script that was written for Claude Code, without knowledge of Windlass.
const SCRIPT: &str = r#"#!/bin/bash
input=$(cat)
[ "$(jq -r .hook_event_name <<< "$input")" = PostToolUse ] || exit 1
file=$(jq -r .tool_input.file_path <<< "$input")
[ "$(jq -r .session_id <<< "$input")" = s ] || exit 1
[ "$(jq -r .transcript_path <<< "$input")" = /tmp/t.jsonl ] || exit 1
if ! grep -q license "$CLAUDE_PROJECT_DIR/$file"; then
  echo "$file has no license: $(jq -r .tool_response.ok <<< "$input")" >&2
  exit 2
fi
jq -n '{hookSpecificOutput: {hookEventName: "PostToolUse", additionalContext: "it is licensed"}}'
"#;

/// A patch with a harmless file in front, as Codex has it: by a tool, or by a shell.
#[test]
fn no_file_hides_behind_another() {
    let world = hooked(
        "hooks:
  pre_tool_use:
    - {name: lock, matcher: Edit|Write, rules: [{when: \"tool_input.file_path is endingwith('.lock')\", action: continue, reason: '{{ tool_input.file_path }}'}]}
",
    );
    let patch = |last: &str| {
        format!("*** Begin Patch\n*** Update File: a\n*** Add File: b\n*** Update File: {last}\n*** End Patch")
    };
    for (name, key) in [("apply_patch", "input"), ("Bash", "command")] {
        let ask = |last: &str| {
            let patch = patch(last);
            let patch = if name == "Bash" { format!("apply_patch <<'EOF'\n{patch}\nEOF") } else { patch };
            let payload = tool(&world, name, &json!({key: patch}));
            world.feed(&["hook", "pre_tool_use", "--as", "codex"], payload.to_string().as_bytes())
        };
        assert_eq!(said(&ask("c")), Value::Null, "{name}");
        let reason = said(&ask("c.lock"))["reason"].as_str().unwrap_or_default().to_owned();
        assert!(reason.ends_with("/c.lock"), "{name}: {reason}");
    }
}

#[test]
fn a_script_for_claude_code_does_the_same_unchanged() {
    let world =
        hooked("hooks: {PostToolUse: [{matcher: 'Edit|Write', command: 'bash \"$CLAUDE_PROJECT_DIR\"/license.sh'}]}\n");
    world.write("license.sh", SCRIPT);
    let used = |file: &str| {
        let payload = json!({
            "session_id": "s", "transcript_path": "/tmp/t.jsonl", "cwd": "/", "hook_event_name": "PostToolUse",
            "tool_name": "Write", "tool_input": {"file_path": file}, "tool_response": {"ok": true},
        });
        let mut command = world.command(&["hook", "PostToolUse", "--as", "claude"]);
        fed(&world, command.env("CLAUDE_PROJECT_DIR", &world.directory).current_dir("/"), &payload)
    };
    world.write("bare.rs", "fn main() {}");
    world.write("fine.rs", "// license");
    assert_eq!(said(&used("bare.rs"))["reason"], "bare.rs has no license: true");
    assert_eq!(said(&used("fine.rs"))["hookSpecificOutput"]["additionalContext"], "it is licensed");
}

fn fed(world: &World, command: &mut Command, payload: &Value) -> Ran {
    let file = world.write("../payload.json", payload.to_string());
    world.finish(command.stdin(Stdio::from(fs::File::open(file).unwrap())))
}

#[test]
fn what_hooks_print_at_a_prompt_and_at_the_start_reaches_the_agent() {
    let config = "hooks:
  user_prompt_submit: [{command: echo the tide is at 17}, {command: echo not this, pipe_output: false}]
  session_start: [{command: 'jq -r .source'}]
  session_end: [{command: touch ended}]
";
    let world = hooked(config);
    let payload = json!({"session_id": "s", "cwd": world.directory, "prompt": "go", "source": "startup"});
    let context = |point| said(&call(&world, point, &payload))["hookSpecificOutput"]["additionalContext"].clone();
    assert_eq!(context("UserPromptSubmit"), "the tide is at 17");
    assert_eq!(context("SessionStart"), "startup");
    assert_eq!(call(&world, "SessionEnd", &payload).stdout, "");
    assert!(world.has("ended"));
}

/// In Claude Code this sends the agent back, and it counts.
#[test]
fn additional_context_of_stop_hook_sends_agent_back_until_limit() {
    let config = "hooks: {stop: [{command: 'echo x >> tried; jq -n \"{hookSpecificOutput: {additionalContext: \\\"line $(wc -l < tried)\\\"}}\"'}]}\nlimits: {max_hook_retries: 1}\n";
    let world = hooked(config);
    let first = call(&world, "stop", &stopping(&world, "one", false));
    assert_eq!((first.code, first.stderr.trim()), (2, "line 1"), "{first}");
    check_let_go(
        &call(&world, "stop", &stopping(&world, "one", true)),
        "has sent the agent back once (`max_hook_retries`)",
    );
}

/// Copilot reads the settings of Claude Code too.
#[test]
fn an_agent_that_calls_twice_is_answered_once() {
    let world = hooked(FAILING);
    let payload = json!({"session_id": "one", "timestamp": "2026-01-17T10:00:00Z", "cwd": world.directory, "stop_hook_active": false});
    let as_claude = || world.feed(&["hook", "stop", "--as", "claude"], payload.to_string().as_bytes()).code;
    assert_eq!(as_claude(), 2);
    for scope in ["project", "user"] {
        world.ok(&["install", "copilot", "--yes", "--scope", scope]);
        assert_eq!(as_claude(), 0, "{scope}");
        world.ok(&["uninstall", "copilot", "--yes", "--scope", scope]);
    }
    assert_eq!(world.feed(&["hook", "stop", "--as", "copilot"], payload.to_string().as_bytes()).code, 2);
}

#[test]
fn another_projects_conversation_is_never_captured() {
    let world = hooked(FAILING);
    let elsewhere = World::empty();
    let payload = stopping(&elsewhere, "one", false);
    let named = world.directory.to_str().unwrap();
    let words = ["--project", named, "hook", "stop", "--as", "claude"];
    assert_eq!(world.feed(&words, payload.to_string().as_bytes()).code, 0);
    assert_eq!(fed(&world, world.command(&["hook", "stop"]).env("WINDLASS_PROJECT", named), &payload).code, 0);
    assert!(!world.has("tried"));
    // What is below it is its own.
    world.write("deep/down/file", "");
    let mut payload = stopping(&world, "one", false);
    payload["cwd"] = json!(world.path("deep/down"));
    assert_eq!(world.feed(&words, payload.to_string().as_bytes()).code, 2);
}

/// A scripted agent whose own hook system calls.
fn driven(config: &str, point: &str, payload: &Value) -> World {
    let call = format!("windlass hook {point} --as claude < payload > answer; echo $? >> answer");
    let play = json!({"turns": [{"do": [{"run": call}, {"promise": "COMPLETE"}]}]});
    let world = World::played(config, &play.to_string()).with_windlass();
    world.write("payload", payload.to_string());
    let ran = world.run(&["run", "Mend it", "--agent", "scripted:play.yaml"]);
    assert_eq!(ran.code, 0, "{ran}");
    world
}

#[test]
fn under_a_run_its_session_judges_and_the_tools_are_still_watched() {
    let config = "hooks:
  stop: [{name: gate, command: echo x >> gates}]
  pre_tool_use: [{name: watch, command: 'echo no >&2; exit 2'}]
";
    let world = driven(config, "stop", &json!({"session_id": "inner", "stop_hook_active": false}));
    assert_eq!(fs::read_to_string(world.path("answer")).unwrap(), "0\n");
    assert_eq!(fs::read_to_string(world.path("gates")).unwrap(), "x\n", "only the session has asked");
    assert!(world.data_of("bridge_called").is_empty());
    let world = driven(config, "pre_tool_use", &json!({"session_id": "inner", "tool_name": "Bash", "tool_input": {}}));
    assert!(fs::read_to_string(world.path("answer")).unwrap().contains("\"deny\""));
    let called = &world.lines(&["events", "--type", "bridge_called"])[0];
    assert!(called["session"].is_string() && called["iteration"] == 1, "{called}");
}

/// An agent's change of the file does not affect the hooks of its own run.
#[test]
fn tools_of_run_are_watched_whatever_becomes_of_file() {
    for spoiling in
        ["echo 'bad: [' >> .windlass/config.yaml", "rm .windlass/config.yaml", "echo > .windlass/config.yaml"]
    {
        let call = format!("{spoiling}; windlass hook pre_tool_use --as claude < payload > answer");
        let play = json!({"turns": [{"do": [{"run": call}, {"promise": "COMPLETE"}]}]});
        let config = "hooks: {pre_tool_use: [{name: watch, command: 'echo no >&2; exit 2'}]}\n";
        let world = World::played(config, &play.to_string()).with_windlass();
        world.write("payload", r#"{"session_id": "inner", "tool_name": "Bash", "tool_input": {}}"#);
        let ran = world.run(&["run", "Mend it", "--agent", "scripted:play.yaml"]);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(world.read("answer").contains("\"deny\""), "{spoiling}: {}", world.read("answer"));
    }
}

/// A hook does not judge the agent that it asks for help.
#[test]
fn no_hook_runs_for_agent_inside_a_hook() {
    for point in ["stop", "pre_tool_use"] {
        // Without that rule, the calls would still end at a limit.
        let hook = format!(
            "echo x >> calls; test $(wc -l < calls) -gt 3 || windlass hook {point} --as claude < payload > inner"
        );
        let world = hooked(&format!("hooks: {{{point}: [{{command: '{hook}'}}]}}\n")).with_windlass();
        let payload = match point {
            "stop" => stopping(&world, "one", false),
            _ => tool(&world, "Bash", &json!({"command": "ls"})),
        };
        world.write("payload", payload.to_string());
        assert_eq!(call(&world, point, &payload).code, 0, "{point}");
        assert_eq!((world.read("calls").as_str(), world.read("inner").as_str()), ("x\n", ""), "{point}");
    }
}

/// The tools of a program that judges work are not watched.
#[test]
fn no_hook_runs_for_program_that_judges_work() {
    let world = hooked("hooks: {pre_tool_use: [{command: 'echo no >&2; exit 2'}]}\n");
    let payload = tool(&world, "Bash", &json!({"command": "ls"}));
    let called = |judging: &str| {
        let mut command = world.command(&["hook", "pre_tool_use", "--as", "claude"]);
        fed(&world, command.env("WINDLASS_JUDGING", judging), &payload)
    };
    let ran = called("1");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran}");
    assert!(world.data_of("bridge_called").is_empty());
    assert!(called("").stdout.contains("\"deny\""));
}

#[test]
fn hooks_of_a_bridge_that_was_killed_are_not_run_again() {
    let world = hooked(
        "hooks: {stop: [{name: gate, command: 'echo x >> runs; kill -9 $PPID; kill -9 $(cat bridge)', idempotent: true}]}\n",
    );
    world.write("call.sh", "echo $$ > bridge; exec windlass hook stop --as claude");
    let world = world.with_windlass();
    let ran = fed(&world, world.program("sh").arg("call.sh"), &stopping(&world, "one", false));
    assert_eq!(ran.code, 137, "{ran}");
    world.run(&["doctor", "--settle"]);
    assert_eq!(fs::read_to_string(world.path("runs")).unwrap(), "x\n");
    assert_eq!(world.ending_of("gate").0, "interrupted");
}

#[test]
fn people_who_call_it_are_told_what_it_is_for() {
    let world = World::new();
    insta::assert_snapshot!(world.fails(&["hook", "stopp"]), @r"
    error: no agent calls at `stopp`
    hint: did you mean `stop`? the points are session_start, user_prompt_submit, pre_tool_use, post_tool_use, stop, subagent_stop, notification, pre_compact, session_end
    [64 usage]
    ");
    insta::assert_snapshot!(world.fails(&["hook", "task_created"]), @r"
    error: no agent calls at `task_created`
    hint: the points are session_start, user_prompt_submit, pre_tool_use, post_tool_use, stop, subagent_stop, notification, pre_compact, session_end
    [64 usage]
    ");
    insta::assert_snapshot!(world.fails(&["hook", "stop", "--as", "claud"]), @"
    error: invalid value 'claud' for '--as <AGENT>' [possible values: claude, codex, gemini, qwen, copilot, goose, kimi, cursor]
    hint: did you mean `claude`? `windlass hook --help` shows how it is used
    [64 usage]
    ");
}

/// The person learns that a guard is no longer trusted before a tool call can pass it.
#[test]
fn a_person_hears_that_hooks_are_not_trusted_wherever_they_stand() {
    let world = hooked("hooks: {pre_tool_use: [{command: 'exit 2'}]}\n");
    let payload = stopping(&world, "one", false);
    assert_eq!(call(&world, "stop", &payload).stdout, "");
    world.write(".windlass/config.yaml", "hooks: {pre_tool_use: [{command: 'exit 2'}]}\n# changed\n");
    for point in ["session_start", "user_prompt_submit", "stop"] {
        check_let_go(&call(&world, point, &payload), "not trusted");
    }
    check_let_go(&call(&world, "pre_tool_use", &tool(&world, "Bash", &json!({}))), "not trusted");
}

/// An agent may outlive its session; no person has agreed to the hooks that would watch it then.
#[test]
fn the_name_of_a_run_that_is_over_is_no_trust() {
    let world = World::new();
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: touch ran}]}\n");
    let mut command = world.command(&["hook", "stop", "--as", "claude"]);
    let ran = fed(&world, command.env("WINDLASS_RUN", "over.1.00000000000000ff"), &stopping(&world, "one", false));
    check_let_go(&ran, "windlass trust");
    assert!(!world.has("ran"));
}

#[test]
fn in_a_worktree_its_own_files_are_judged() {
    let world = hooked("hooks: {stop: [{command: 'pwd > /dev/null; test -e done.txt || exit 2'}]}\n");
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=ann", "-c", "user.email=ann@shop.test"];
        let ran = world.finish(world.program("git").args(identity).args(words));
        assert_eq!(ran.code, 0, "{ran}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&["worktree", "add", "-q", "../tree"]);
    let judged = || {
        let mut payload = stopping(&world, "one", false);
        payload["cwd"] = json!(world.path("../tree").canonicalize().unwrap());
        call(&world, "stop", &payload).code
    };
    world.write("done.txt", "");
    assert_eq!(judged(), 2, "what is in the main worktree does not count");
    world.write("../tree/done.txt", "");
    assert_eq!(judged(), 0);
}

#[test]
fn hooks_know_how_often_the_agent_was_sent_back() {
    let config = "hooks:
  stop:
    - {name: tests, command: 'jq -r .retries >> seen; exit 2', feedback: 'try {{ retry }} of {{ max_retries }}'}
    - {name: late, when: retries >= 1, command: touch late}
";
    let world = hooked(config);
    assert_eq!(call(&world, "stop", &stopping(&world, "one", false)).stderr.trim(), "try 1 of 5");
    assert!(!world.has("late"));
    assert_eq!(call(&world, "stop", &stopping(&world, "one", true)).stderr.trim(), "try 2 of 5");
    assert!(world.has("late"));
    assert_eq!(fs::read_to_string(world.path("seen")).unwrap(), "0\n1\n");
}

/// A condition on a field that a tool call lacks is meant for another tool.
#[test]
fn conditions_and_rules_are_about_tools_that_have_what_they_ask_for() {
    let config = "hooks:
  pre_tool_use:
    - {command: exit 2, when: \"'--force' in tool_input.command\"}
    - rules: [{when: \"'--hard' in tool_input.command\", action: continue, reason: never}, {when: \"tool_input.file_path == 'x'\", action: continue, reason: not x}]
";
    let world = hooked(config);
    let denied =
        |name: &str, input: Value| said(&call(&world, "pre_tool_use", &tool(&world, name, &input)))["reason"].clone();
    assert_eq!(denied("Read", json!({"file_path": "y"})), Value::Null);
    assert_eq!(denied("Read", json!({"file_path": "x"})), "not x");
    assert_eq!(denied("Bash", json!({"command": "git reset --hard"})), "never");
    assert!(denied("Bash", json!({"command": "git push --force"})).is_string());
}

#[test]
fn what_keeps_the_bridge_does_not_keep_the_agent() {
    let world = hooked(FAILING);
    // The caller never sends the whole payload.
    let mut command = world.command(&["hook", "stop", "--as", "claude", "--within", "1s"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(pipe);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("after 1 s nothing was decided"));
}

#[test]
fn a_secret_is_not_in_the_log() {
    let world = hooked("secrets: [TOKEN]\nhooks: {pre_tool_use: [{command: 'true'}]}\n");
    let payload = tool(&world, "Bash", &json!({"command": "curl -H 'Key: s3cr3t-t0ken'"}));
    let ran = fed(&world, world.command(&["hook", "pre_tool_use"]).env("TOKEN", "s3cr3t-t0ken"), &payload);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!world.ok(&["events", "--json"]).contains("s3cr3t-t0ken"));
}

/// All output besides the verdict is masked like other output of hooks.
#[test]
fn a_secret_of_a_hook_is_not_in_the_answer() {
    let world = hooked("secrets: [TOKEN]\nhooks: {pre_tool_use: [{command: sh guard.sh}]}\n");
    let answer = json!({
        "systemMessage": "told TOKEN",
        "hookSpecificOutput": {
            "permissionDecision": "allow", "permissionDecisionReason": "for TOKEN", "updatedInput": {"command": "use TOKEN"},
        },
    });
    world.write("guard.sh", format!("sed \"s/TOKEN/$TOKEN/g\" <<'END'\n{answer}\nEND\n"));
    let payload = tool(&world, "Bash", &json!({"command": "curl"}));
    let ran =
        fed(&world, world.command(&["hook", "pre_tool_use", "--as", "claude"]).env("TOKEN", "s3cr3t-t0ken"), &payload);
    let text = said(&ran).to_string();
    for told in ["told [secret TOKEN]", "for [secret TOKEN]", "use [secret TOKEN]"] {
        assert!(text.contains(told), "{ran}");
    }
    assert!(!ran.to_string().contains("s3cr3t-t0ken"), "{ran}");
}

/// If an agent sets no variable of its own, an existing one belongs to another agent.
#[test]
fn another_agents_directory_is_not_this_ones() {
    let world = hooked(FAILING);
    let elsewhere = World::empty();
    let as_agent = |agent: &str| {
        let mut command = world.command(&["hook", "stop", "--as", agent]);
        let payload = stopping(&elsewhere, "one", false);
        fed(&world, command.env("CLAUDE_PROJECT_DIR", &world.directory).current_dir("/"), &payload).code
    };
    assert_eq!([as_agent("codex"), as_agent("claude")], [0, 2]);
}
