//! Calls of `windlass hook` by agents' own hook systems: the answers, and that errors never block the agent.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::hook_project::{await_process_end, create_hook_project, has_process_ended};
use crate::support::{CommandOutput, TestWorld};

/// The payload of Claude Code when it is about to stop.
fn stop_payload(world: &TestWorld, conversation: &str, sent_back: bool) -> Value {
    json!({
        "session_id": conversation, "transcript_path": "/tmp/t.jsonl", "cwd": world.directory,
        "hook_event_name": "Stop", "stop_hook_active": sent_back, "last_assistant_message": "All done.",
    })
}

fn tool_payload(world: &TestWorld, name: &str, input: &Value) -> Value {
    json!({
        "session_id": "s", "cwd": world.directory, "hook_event_name": "PreToolUse",
        "tool_name": name, "tool_input": input, "tool_use_id": "t1",
    })
}

fn call_hook(world: &TestWorld, point: &str, payload: &Value) -> CommandOutput {
    world.run_with_input(&["hook", point, "--as", "claude"], payload.to_string().as_bytes())
}

/// The agent reads this on standard output.
fn parse_answer(ran: &CommandOutput) -> Value {
    assert!(ran.code == 0 || ran.code == 2, "{ran}");
    if ran.stdout.is_empty() { Value::Null } else { serde_json::from_str(&ran.stdout).unwrap() }
}

/// The agent goes on, and the person at it sees this message.
#[track_caller]
fn check_pass_with_message(ran: &CommandOutput, told: &str) {
    assert_eq!(ran.code, 0, "{ran}");
    let answer = parse_answer(ran);
    assert!(answer.get("decision").is_none() && answer["hookSpecificOutput"].is_null(), "{ran}");
    let message = answer["systemMessage"].as_str().unwrap_or_default();
    assert!(message.contains(told), "`{told}` is not in `{message}`");
}

/// Fails with other words each time, as tests do.
const FAILING_TESTS_CONFIG: &str = "hooks:
  stop:
    - name: tests
      command: 'echo x >> tried; echo \"$(wc -l < tried) tests fail\" >&2; exit 2'
limits: {max_hook_retries: 2}
";

#[test]
fn stop_hook_blocks_agent_with_reason_until_retry_limit() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let first = call_hook(&world, "stop", &stop_payload(&world, "one", false));
    assert_eq!((first.code, first.stderr.trim()), (2, "1 tests fail"));
    assert_eq!(parse_answer(&first), json!({"decision": "block", "reason": "1 tests fail"}));
    assert_eq!(call_hook(&world, "Stop", &stop_payload(&world, "one", true)).code, 2);
    let last = call_hook(&world, "stop", &stop_payload(&world, "one", true));
    check_pass_with_message(
        &last,
        "`tests` has sent the agent back 2 times (`max_hook_retries`); the agent may stop, although `tests` still blocks: 3 tests fail",
    );
    let answers = world.event_payloads("bridge_answered");
    let seen: Vec<_> = answers.iter().map(|answer| json!([answer["ruling"], answer["retries"]])).collect();
    assert_eq!(seen, [json!(["block", 1]), json!(["block", 2]), json!(["pass", 2])]);
}

#[test]
fn stop_hook_continue_false_is_forwarded_with_stop_reason() {
    let world = create_hook_project(
        r#"hooks:
  stop:
    - command: |
        echo '{"continue": false, "stopReason": "Enough."}'
"#,
    );
    let ended = parse_answer(&call_hook(&world, "stop", &stop_payload(&world, "one", false)));
    assert_eq!((&ended["continue"], &ended["stopReason"]), (&json!(false), &json!("Enough.")), "{ended}");
}

#[test]
fn hook_matcher_tests_session_source_and_notification_type() {
    let world = create_hook_project(
        "hooks:
  session_start: [{matcher: resume|clear, command: 'jq -r .source'}]
  notification: [{matcher: idle_prompt, command: echo x >> waited}]
",
    );
    let begin = |source: &str| {
        let payload = json!({"session_id": "one", "cwd": world.directory, "source": source});
        parse_answer(&call_hook(&world, "session_start", &payload))["hookSpecificOutput"]["additionalContext"].clone()
    };
    assert_eq!(begin("resume"), "resume");
    assert_eq!(begin("startup"), Value::Null);
    for kind in ["idle_prompt", "permission_prompt"] {
        let payload = json!({"session_id": "one", "cwd": world.directory, "notification_type": kind});
        call_hook(&world, "notification", &payload);
    }
    assert_eq!(world.read_file("waited"), "x\n");
    let calls = world.event_payloads("bridge_called");
    assert_eq!(calls.iter().map(|call| call["tool"].clone()).collect::<Vec<_>>(), [Value::Null, Value::Null]);
}

#[test]
fn tool_hooks_accept_legacy_approve_and_block_without_reason() {
    let world = create_hook_project(
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
    let allowed = &parse_answer(&call_hook(&world, "pre_tool_use", &tool_payload(&world, "Bash", &json!({}))))["hookSpecificOutput"];
    assert_eq!(
        (&allowed["permissionDecision"], &allowed["permissionDecisionReason"]),
        (&json!("allow"), &json!("harmless"))
    );
    let refused = parse_answer(&call_hook(&world, "pre_tool_use", &tool_payload(&world, "Edit", &json!({}))));
    assert_eq!(refused["reason"], "`guard` blocks without a reason.");
    let used = parse_answer(&call_hook(&world, "post_tool_use", &tool_payload(&world, "Bash", &json!({}))));
    assert_eq!(used["hookSpecificOutput"]["updatedToolOutput"], json!({"stdout": "***"}), "{used}");
    assert_eq!(world.event_payloads("bridge_answered")[2]["told"], r#"{"stdout":"***"}"#);
}

#[test]
fn hooks_of_another_agent_leave_no_trace() {
    let world = create_hook_project("agents: {codex: {hooks: {stop: [{command: exit 2}]}}}\n");
    assert_eq!(call_hook(&world, "stop", &stop_payload(&world, "one", false)).code, 0);
    assert_eq!(world.event_payloads("bridge_called").len(), 0);
    let codex = world
        .run_with_input(&["hook", "stop", "--as", "codex"], stop_payload(&world, "two", false).to_string().as_bytes());
    assert_eq!(codex.code, 2, "{codex}");
}

#[test]
fn stop_hook_blocks_agent_calling_from_deleted_directory() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let payload = world.write("stop.json", stop_payload(&world, "one", false).to_string());
    let script = r#"mkdir gone && cd gone && rmdir ../gone && exec "$0" hook stop --as claude < "$1""#;
    let mut command = world.program("sh");
    let ran = world.run_command(command.args(["-c", script, env!("CARGO_BIN_EXE_windlass")]).arg(payload));
    assert_eq!((ran.code, ran.stderr.trim()), (2, "1 tests fail"), "{ran}");
}

#[test]
fn run_session_matches_startup_at_start_and_other_at_end() {
    let world = create_hook_project(
        "hooks:
  session_start: [{matcher: startup, command: echo startup >> begun}, {matcher: resume, command: echo resume >> begun}]
  session_end: [{matcher: clear, command: echo clear >> begun}, {matcher: other, command: echo other >> begun}]
",
    );
    world.run(&["run", "mend the pump", "--agent", "command:echo COMPLETE", "--max-iterations", "1"]);
    assert_eq!(world.read_file("begun"), "startup\nother\n");
}

#[test]
fn each_conversation_has_tries_of_its_own_and_a_person_gives_new_ones() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    for conversation in ["one", "two"] {
        for sent_back in [false, true] {
            assert_eq!(
                call_hook(&world, "stop", &stop_payload(&world, conversation, sent_back)).code,
                2,
                "{conversation}"
            );
        }
    }
    assert_eq!(call_hook(&world, "stop", &stop_payload(&world, "one", true)).code, 0);
    // The next stop is the end of another turn.
    assert_eq!(call_hook(&world, "stop", &stop_payload(&world, "two", false)).code, 2);
}

/// goose does not say at its end that it was sent back; but it reports each prompt of a person, with or without a hook for it.
#[test]
fn goose_user_prompt_resets_stop_retries_without_prompt_hook() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let goose = |point: &str, event: &str| {
        let payload =
            json!({"event": event, "session_id": "1", "matcher_context": null, "working_dir": world.directory});
        world.run_with_input(&["hook", point], payload.to_string().as_bytes()).code
    };
    let turn = ["stop", "stop", "stop"].map(|point| goose(point, "Stop"));
    assert_eq!(turn, [2, 2, 0], "its answers are those of the contract of goose");
    assert_eq!(goose("stop", "Stop"), 0, "it stays let go");
    assert_eq!(goose("user_prompt_submit", "UserPromptSubmit"), 0);
    assert_eq!(["stop", "stop", "stop"].map(|point| goose(point, "Stop")), [2, 2, 0]);
}

#[test]
fn bridge_records_no_event_when_no_hook_applies() {
    let world = create_hook_project(
        "hooks: {stop: [{command: 'true', when: \"'never' in output\"}], pre_tool_use: [{matcher: Edit, command: 'false'}]}\n",
    );
    for (point, payload) in [
        ("stop", stop_payload(&world, "one", false)),
        ("pre_tool_use", tool_payload(&world, "Bash", &json!({"command": "ls"}))),
        ("post_tool_use", tool_payload(&world, "Edit", &json!({}))),
        ("session_start", json!({"session_id": "one", "cwd": world.directory, "source": "startup"})),
    ] {
        let ran = call_hook(&world, point, &payload);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{point}");
    }
    assert!(world.json_lines(&["events"]).is_empty());
}

#[test]
fn bridge_errors_never_block_the_agent() {
    let marking = "hooks: {stop: [{command: 'touch ran; exit 2'}]}\n";
    let untrusted = TestWorld::new();
    untrusted.write(".windlass/config.yaml", marking);
    check_pass_with_message(&call_hook(&untrusted, "stop", &stop_payload(&untrusted, "one", false)), "not trusted");
    let wrong = create_hook_project(marking);
    wrong.write(".windlass/config.yaml", "hooks: {stop: [{comand: x}]}\n");
    check_pass_with_message(&call_hook(&wrong, "stop", &stop_payload(&wrong, "one", false)), "unknown key `comand`");
    let damaged = create_hook_project(marking);
    damaged.write(".windlass/windlass.db", "this is no store, and never was one: it only lies where one should be");
    check_pass_with_message(&call_hook(&damaged, "stop", &stop_payload(&damaged, "one", false)), "windlass.db");
    let nowhere = TestWorld::empty();
    let ran = call_hook(&nowhere, "stop", &stop_payload(&nowhere, "one", false));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    for world in [untrusted, wrong, damaged, nowhere] {
        assert!(!world.has_file("ran"), "nothing may run");
    }
}

#[test]
fn malformed_hook_payload_is_reported_and_does_not_block() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let nameless = json!({"cwd": world.directory, "hook_event_name": "Stop"}).to_string();
    let cases: [(&[u8], &str); 5] = [
        (b"", "standard input is empty"),
        (b"hello", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b"{\"session_id\": ", "not a JSON object"),
        (nameless.as_bytes(), "names no conversation"),
    ];
    for (input, told) in cases {
        check_pass_with_message(&world.run_with_input(&["hook", "stop", "--as", "claude"], input), told);
    }
    assert!(world.json_lines(&["events"]).is_empty() && !world.has_file("tried"));
}

#[test]
fn failing_hook_blocks_agent_only_with_on_failure_block() {
    let world = create_hook_project("hooks: {stop: [{name: broken, command: 'echo oops >&2; exit 1'}]}\n");
    check_pass_with_message(
        &call_hook(&world, "stop", &stop_payload(&world, "one", false)),
        "hook `broken` failed: exit 1: oops",
    );
    let slow = create_hook_project("hooks: {stop: [{name: slow, command: sleep 600, timeout: 50ms}]}\n");
    check_pass_with_message(&call_hook(&slow, "stop", &stop_payload(&slow, "one", false)), "hook `slow` was too slow");
    let strict =
        create_hook_project("hooks: {stop: [{name: broken, command: 'echo oops >&2; exit 1', on_failure: block}]}\n");
    let ran = call_hook(&strict, "stop", &stop_payload(&strict, "one", false));
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("oops") && ran.stderr.contains("exit 1"), "{ran}");
}

#[test]
fn bridge_passes_and_terminates_hook_when_deadline_expires() {
    let world = create_hook_project("hooks: {stop: [{name: slow, command: 'echo $$ > pid; exec sleep 600'}]}\n");
    let payload = stop_payload(&world, "one", false).to_string();
    let ran = world.run_with_input(&["hook", "stop", "--as", "claude", "--within", "1s"], payload.as_bytes());
    check_pass_with_message(&ran, "after 1 s nothing was decided");
    assert!(has_process_ended(world.read_number("pid")));
}

/// A call at the end of a turn, whose hook has written to `began`.
fn spawn_stop_hook(world: &TestWorld) -> Child {
    world.make_pipe("began");
    let mut command = world.command(&["hook", "stop", "--as", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stop_payload(world, "one", false).to_string().as_bytes()).unwrap();
    world.await_pipe("began");
    child
}

/// The agent no longer waits for the answer: hooks that have not started are dropped.
#[test]
fn terminated_bridge_call_starts_no_further_hooks() {
    let world =
        create_hook_project("hooks: {stop: [{command: 'echo > began; exec sleep 600'}, {command: touch next}]}\n");
    let mut child = spawn_stop_hook(&world);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    world.run_ok(&["doctor"]);
    assert!(!world.path("next").exists());
}

/// An agent that runs out of patience may not say so.
#[test]
fn stop_hook_is_terminated_when_bridge_is_killed() {
    let world = create_hook_project("hooks: {stop: [{command: 'echo $$ > pid; echo > began; exec sleep 600'}]}\n");
    let mut child = spawn_stop_hook(&world);
    child.kill().unwrap();
    child.wait().unwrap();
    await_process_end(world.read_number("pid"));
}

const TOOL_HOOKS_CONFIG: &str = r#"hooks:
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
fn pre_tool_hook_denies_asks_or_updates_input() {
    let world = create_hook_project(TOOL_HOOKS_CONFIG);
    let answer =
        |name: &str, input: Value| parse_answer(&call_hook(&world, "PreToolUse", &tool_payload(&world, name, &input)));
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
const CLAUDE_HOOK_SCRIPT: &str = r#"#!/bin/bash
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
fn multi_file_patch_is_blocked_if_last_file_matches_rule() {
    let world = create_hook_project(
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
            let payload = tool_payload(&world, name, &json!({key: patch}));
            world.run_with_input(&["hook", "pre_tool_use", "--as", "codex"], payload.to_string().as_bytes())
        };
        assert_eq!(parse_answer(&ask("c")), Value::Null, "{name}");
        let reason = parse_answer(&ask("c.lock"))["reason"].as_str().unwrap_or_default().to_owned();
        assert!(reason.ends_with("/c.lock"), "{name}: {reason}");
    }
}

#[test]
fn claude_code_hook_script_runs_unchanged_through_bridge() {
    let world = create_hook_project(
        "hooks: {PostToolUse: [{matcher: 'Edit|Write', command: 'bash \"$CLAUDE_PROJECT_DIR\"/license.sh'}]}\n",
    );
    world.write("license.sh", CLAUDE_HOOK_SCRIPT);
    let used = |file: &str| {
        let payload = json!({
            "session_id": "s", "transcript_path": "/tmp/t.jsonl", "cwd": "/", "hook_event_name": "PostToolUse",
            "tool_name": "Write", "tool_input": {"file_path": file}, "tool_response": {"ok": true},
        });
        let mut command = world.command(&["hook", "PostToolUse", "--as", "claude"]);
        run_with_payload(&world, command.env("CLAUDE_PROJECT_DIR", &world.directory).current_dir("/"), &payload)
    };
    world.write("bare.rs", "fn main() {}");
    world.write("fine.rs", "// license");
    assert_eq!(parse_answer(&used("bare.rs"))["reason"], "bare.rs has no license: true");
    assert_eq!(parse_answer(&used("fine.rs"))["hookSpecificOutput"]["additionalContext"], "it is licensed");
}

fn run_with_payload(world: &TestWorld, command: &mut Command, payload: &Value) -> CommandOutput {
    let file = world.write("../payload.json", payload.to_string());
    world.run_command(command.stdin(Stdio::from(fs::File::open(file).unwrap())))
}

#[test]
fn prompt_and_session_start_hook_output_reaches_agent_context() {
    let config = "hooks:
  user_prompt_submit: [{command: echo the tide is at 17}, {command: echo not this, pipe_output: false}]
  session_start: [{command: 'jq -r .source'}]
  session_end: [{command: touch ended}]
";
    let world = create_hook_project(config);
    let payload = json!({"session_id": "s", "cwd": world.directory, "prompt": "go", "source": "startup"});
    let context =
        |point| parse_answer(&call_hook(&world, point, &payload))["hookSpecificOutput"]["additionalContext"].clone();
    assert_eq!(context("UserPromptSubmit"), "the tide is at 17");
    assert_eq!(context("SessionStart"), "startup");
    assert_eq!(call_hook(&world, "SessionEnd", &payload).stdout, "");
    assert!(world.has_file("ended"));
}

/// In Claude Code this sends the agent back, and it counts.
#[test]
fn additional_context_of_stop_hook_sends_agent_back_until_limit() {
    let config = "hooks: {stop: [{command: 'echo x >> tried; jq -n \"{hookSpecificOutput: {additionalContext: \\\"line $(wc -l < tried)\\\"}}\"'}]}\nlimits: {max_hook_retries: 1}\n";
    let world = create_hook_project(config);
    let first = call_hook(&world, "stop", &stop_payload(&world, "one", false));
    assert_eq!((first.code, first.stderr.trim()), (2, "line 1"), "{first}");
    check_pass_with_message(
        &call_hook(&world, "stop", &stop_payload(&world, "one", true)),
        "has sent the agent back once (`max_hook_retries`)",
    );
}

/// Copilot reads the settings of Claude Code too.
#[test]
fn copilot_call_as_claude_is_ignored_when_copilot_is_installed() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let payload = json!({"session_id": "one", "timestamp": "2026-01-17T10:00:00Z", "cwd": world.directory, "stop_hook_active": false});
    let as_claude = || world.run_with_input(&["hook", "stop", "--as", "claude"], payload.to_string().as_bytes()).code;
    assert_eq!(as_claude(), 2);
    for scope in ["project", "user"] {
        world.run_ok(&["install", "copilot", "--yes", "--scope", scope]);
        assert_eq!(as_claude(), 0, "{scope}");
        world.run_ok(&["uninstall", "copilot", "--yes", "--scope", scope]);
    }
    assert_eq!(world.run_with_input(&["hook", "stop", "--as", "copilot"], payload.to_string().as_bytes()).code, 2);
}

#[test]
fn another_projects_conversation_is_never_captured() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let elsewhere = TestWorld::empty();
    let payload = stop_payload(&elsewhere, "one", false);
    let named = world.directory.to_str().unwrap();
    let words = ["--project", named, "hook", "stop", "--as", "claude"];
    assert_eq!(world.run_with_input(&words, payload.to_string().as_bytes()).code, 0);
    assert_eq!(
        run_with_payload(&world, world.command(&["hook", "stop"]).env("WINDLASS_PROJECT", named), &payload).code,
        0
    );
    assert!(!world.has_file("tried"));
    // What is below it is its own.
    world.write("deep/down/file", "");
    let mut payload = stop_payload(&world, "one", false);
    payload["cwd"] = json!(world.path("deep/down"));
    assert_eq!(world.run_with_input(&words, payload.to_string().as_bytes()).code, 2);
}

/// A scripted agent whose own hook system calls.
fn run_agent_with_hook(config: &str, point: &str, payload: &Value) -> TestWorld {
    let call = format!("windlass hook {point} --as claude < payload > answer; echo $? >> answer");
    let play = json!({"turns": [{"do": [{"run": call}, {"promise": "COMPLETE"}]}]});
    let world = TestWorld::with_scripted_agent(config, &play.to_string()).with_windlass();
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
    let world = run_agent_with_hook(config, "stop", &json!({"session_id": "inner", "stop_hook_active": false}));
    assert_eq!(fs::read_to_string(world.path("answer")).unwrap(), "0\n");
    assert_eq!(fs::read_to_string(world.path("gates")).unwrap(), "x\n", "only the session has asked");
    assert!(world.event_payloads("bridge_called").is_empty());
    let world = run_agent_with_hook(
        config,
        "pre_tool_use",
        &json!({"session_id": "inner", "tool_name": "Bash", "tool_input": {}}),
    );
    assert!(fs::read_to_string(world.path("answer")).unwrap().contains("\"deny\""));
    let called = &world.json_lines(&["events", "--type", "bridge_called"])[0];
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
        let world = TestWorld::with_scripted_agent(config, &play.to_string()).with_windlass();
        world.write("payload", r#"{"session_id": "inner", "tool_name": "Bash", "tool_input": {}}"#);
        let ran = world.run(&["run", "Mend it", "--agent", "scripted:play.yaml"]);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(world.read_file("answer").contains("\"deny\""), "{spoiling}: {}", world.read_file("answer"));
    }
}

/// A hook does not judge the agent that it asks for help.
#[test]
fn agent_inside_hook_triggers_no_further_hook() {
    for point in ["stop", "pre_tool_use"] {
        // Without that rule, the calls would still end at a limit.
        let hook = format!(
            "echo x >> calls; test $(wc -l < calls) -gt 3 || windlass hook {point} --as claude < payload > inner"
        );
        let world = create_hook_project(&format!("hooks: {{{point}: [{{command: '{hook}'}}]}}\n")).with_windlass();
        let payload = match point {
            "stop" => stop_payload(&world, "one", false),
            _ => tool_payload(&world, "Bash", &json!({"command": "ls"})),
        };
        world.write("payload", payload.to_string());
        assert_eq!(call_hook(&world, point, &payload).code, 0, "{point}");
        assert_eq!((world.read_file("calls").as_str(), world.read_file("inner").as_str()), ("x\n", ""), "{point}");
    }
}

/// The tools of a program that judges work are not watched.
#[test]
fn program_that_judges_work_triggers_no_tool_hook() {
    let world = create_hook_project("hooks: {pre_tool_use: [{command: 'echo no >&2; exit 2'}]}\n");
    let payload = tool_payload(&world, "Bash", &json!({"command": "ls"}));
    let called = |judging: &str| {
        let mut command = world.command(&["hook", "pre_tool_use", "--as", "claude"]);
        run_with_payload(&world, command.env("WINDLASS_JUDGING", judging), &payload)
    };
    let ran = called("1");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran}");
    assert!(world.event_payloads("bridge_called").is_empty());
    assert!(called("").stdout.contains("\"deny\""));
}

#[test]
fn hooks_of_a_bridge_that_was_killed_are_not_run_again() {
    let world = create_hook_project(
        "hooks: {stop: [{name: gate, command: 'echo x >> runs; kill -9 $PPID; kill -9 $(cat bridge)', idempotent: true}]}\n",
    );
    world.write("call.sh", "echo $$ > bridge; exec windlass hook stop --as claude");
    let world = world.with_windlass();
    let ran = run_with_payload(&world, world.program("sh").arg("call.sh"), &stop_payload(&world, "one", false));
    assert_eq!(ran.code, 137, "{ran}");
    world.run(&["doctor", "--settle"]);
    assert_eq!(fs::read_to_string(world.path("runs")).unwrap(), "x\n");
    assert_eq!(world.last_hook_outcome("gate").0, "interrupted");
}

#[test]
fn people_who_call_it_are_told_what_it_is_for() {
    let world = TestWorld::new();
    insta::assert_snapshot!(world.expect_failure(&["hook", "stopp"]), @r"
    error: no agent calls at `stopp`
    hint: did you mean `stop`? the points are session_start, user_prompt_submit, pre_tool_use, post_tool_use, stop, subagent_stop, notification, pre_compact, session_end
    [64 usage]
    ");
    insta::assert_snapshot!(world.expect_failure(&["hook", "task_created"]), @r"
    error: no agent calls at `task_created`
    hint: the points are session_start, user_prompt_submit, pre_tool_use, post_tool_use, stop, subagent_stop, notification, pre_compact, session_end
    [64 usage]
    ");
    insta::assert_snapshot!(world.expect_failure(&["hook", "stop", "--as", "claud"]), @"
    error: invalid value 'claud' for '--as <AGENT>' [possible values: claude, codex, gemini, qwen, copilot, goose, kimi, cursor]
    hint: did you mean `claude`? `windlass hook --help` shows how it is used
    [64 usage]
    ");
}

/// The person learns that a guard is no longer trusted before a tool call can pass it.
#[test]
fn untrusted_hooks_are_reported_to_person_at_every_point() {
    let world = create_hook_project("hooks: {pre_tool_use: [{command: 'exit 2'}]}\n");
    let payload = stop_payload(&world, "one", false);
    assert_eq!(call_hook(&world, "stop", &payload).stdout, "");
    world.write(".windlass/config.yaml", "hooks: {pre_tool_use: [{command: 'exit 2'}]}\n# changed\n");
    for point in ["session_start", "user_prompt_submit", "stop"] {
        check_pass_with_message(&call_hook(&world, point, &payload), "not trusted");
    }
    check_pass_with_message(
        &call_hook(&world, "pre_tool_use", &tool_payload(&world, "Bash", &json!({}))),
        "not trusted",
    );
}

/// An agent may outlive its session; no person has agreed to the hooks that would watch it then.
#[test]
fn run_variable_of_ended_run_grants_no_trust() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: touch ran}]}\n");
    let mut command = world.command(&["hook", "stop", "--as", "claude"]);
    let ran = run_with_payload(
        &world,
        command.env("WINDLASS_RUN", "over.1.00000000000000ff"),
        &stop_payload(&world, "one", false),
    );
    check_pass_with_message(&ran, "windlass trust");
    assert!(!world.has_file("ran"));
}

#[test]
fn stop_hook_in_worktree_judges_files_of_that_worktree() {
    let world = create_hook_project("hooks: {stop: [{command: 'pwd > /dev/null; test -e done.txt || exit 2'}]}\n");
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=ann", "-c", "user.email=ann@shop.test"];
        let ran = world.run_command(world.program("git").args(identity).args(words));
        assert_eq!(ran.code, 0, "{ran}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&["worktree", "add", "-q", "../tree"]);
    let judged = || {
        let mut payload = stop_payload(&world, "one", false);
        payload["cwd"] = json!(world.path("../tree").canonicalize().unwrap());
        call_hook(&world, "stop", &payload).code
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
    let world = create_hook_project(config);
    assert_eq!(call_hook(&world, "stop", &stop_payload(&world, "one", false)).stderr.trim(), "try 1 of 5");
    assert!(!world.has_file("late"));
    assert_eq!(call_hook(&world, "stop", &stop_payload(&world, "one", true)).stderr.trim(), "try 2 of 5");
    assert!(world.has_file("late"));
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
    let world = create_hook_project(config);
    let denied = |name: &str, input: Value| {
        parse_answer(&call_hook(&world, "pre_tool_use", &tool_payload(&world, name, &input)))["reason"].clone()
    };
    assert_eq!(denied("Read", json!({"file_path": "y"})), Value::Null);
    assert_eq!(denied("Read", json!({"file_path": "x"})), "not x");
    assert_eq!(denied("Bash", json!({"command": "git reset --hard"})), "never");
    assert!(denied("Bash", json!({"command": "git push --force"})).is_string());
}

#[test]
fn bridge_passes_at_deadline_when_payload_never_completes() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
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
fn secret_in_tool_input_is_redacted_in_event_log() {
    let world = create_hook_project("secrets: [TOKEN]\nhooks: {pre_tool_use: [{command: 'true'}]}\n");
    let payload = tool_payload(&world, "Bash", &json!({"command": "curl -H 'Key: s3cr3t-t0ken'"}));
    let ran = run_with_payload(&world, world.command(&["hook", "pre_tool_use"]).env("TOKEN", "s3cr3t-t0ken"), &payload);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!world.run_ok(&["events", "--json"]).contains("s3cr3t-t0ken"));
}

/// All output besides the verdict is masked like other output of hooks.
#[test]
fn secret_in_hook_output_is_redacted_in_bridge_answer() {
    let world = create_hook_project("secrets: [TOKEN]\nhooks: {pre_tool_use: [{command: sh guard.sh}]}\n");
    let answer = json!({
        "systemMessage": "told TOKEN",
        "hookSpecificOutput": {
            "permissionDecision": "allow", "permissionDecisionReason": "for TOKEN", "updatedInput": {"command": "use TOKEN"},
        },
    });
    world.write("guard.sh", format!("sed \"s/TOKEN/$TOKEN/g\" <<'END'\n{answer}\nEND\n"));
    let payload = tool_payload(&world, "Bash", &json!({"command": "curl"}));
    let ran = run_with_payload(
        &world,
        world.command(&["hook", "pre_tool_use", "--as", "claude"]).env("TOKEN", "s3cr3t-t0ken"),
        &payload,
    );
    let text = parse_answer(&ran).to_string();
    for told in ["told [secret TOKEN]", "for [secret TOKEN]", "use [secret TOKEN]"] {
        assert!(text.contains(told), "{ran}");
    }
    assert!(!ran.to_string().contains("s3cr3t-t0ken"), "{ran}");
}

/// If an agent sets no variable of its own, an existing one belongs to another agent.
#[test]
fn another_agents_directory_is_not_this_ones() {
    let world = create_hook_project(FAILING_TESTS_CONFIG);
    let elsewhere = TestWorld::empty();
    let as_agent = |agent: &str| {
        let mut command = world.command(&["hook", "stop", "--as", agent]);
        let payload = stop_payload(&elsewhere, "one", false);
        run_with_payload(&world, command.env("CLAUDE_PROJECT_DIR", &world.directory).current_dir("/"), &payload).code
    };
    assert_eq!([as_agent("codex"), as_agent("claude")], [0, 2]);
}
