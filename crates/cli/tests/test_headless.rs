//! Known agents by their own command lines: fakes that print recorded output of real ones

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{CommandOutput, TestWorld, WINDLASS};

const AGENTS: [&str; 5] = ["claude", "codex", "opencode", "gemini", "goose"];

/// A gate that sends the agent back once.
const GATE_BLOCKING_ONCE: &str =
    "hooks: {stop: [{command: 'test -e checked || { touch checked; echo it leaks >&2; exit 2; }'}]}\n";

/// The begin of a fake: it keeps its arguments and its prompt, and can play a recording, in the given conversation.
const FAKE_AGENT_SCRIPT: &str = r#"#!/bin/sh
agent=${0##*/}
turn=$(($(cat turns 2>/dev/null || echo 0) + 1))
echo $turn > turns
echo "$agent $*" > words.$turn
cat > prompt.$turn
id=01a1dfed-7ca6-76a1-b94c-f5fc7d086cc3
for word; do case $word in ????????-????-4???-????-????????????) id=$word;; esac; done
play() {
    sed -E "s/[0-9a-f]{8}-2222-4333-8444-5{12}|01a1d[0-9a-f]{3}-[0-9a-f-]{27}/$id/g; s/ses_[A-Za-z0-9]+/ses_one/g" \
        "@RECORDINGS@/$agent/$1.jsonl"
    cat "@RECORDINGS@/$agent/$1.stderr" >&2 2>/dev/null || true
}
again() {
    sed -E "s/01a1dfed-7ca6/01a1dfed-0000/g; s/ses_one/ses_two/g"
}
"#;

/// A project with a fake agent.
fn create_fake_agent_project(agent: &str, config: &str, script: &str) -> TestWorld {
    let world = TestWorld::empty();
    let recordings = format!("{}/../agents/recordings", env!("CARGO_MANIFEST_DIR"));
    let program = world.program_directory().join(agent);
    fs::write(&program, format!("{}{script}\n", FAKE_AGENT_SCRIPT.replace("@RECORDINGS@", &recordings))).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    if !config.is_empty() {
        world.write(".windlass/config.yaml", config);
        world.run_ok(&["trust", "--yes"]);
    }
    world
}

fn run_agent(world: &TestWorld, agent: &str) -> CommandOutput {
    world.run(&["run", "Mend the pump", "--agent", agent])
}

impl TestWorld {
    fn recorded_text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn opened_conversations(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let opened = self.event_payloads("conversation_opened");
        opened.iter().map(|opened| (text(&opened["opening"]), text(&opened["conversation"]))).collect()
    }

    /// The types of all events, in order.
    fn event_types(&self) -> Vec<String> {
        self.json_lines(&["events"]).iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Returns the arguments that begin and resume the conversation of this name.
fn conversation_arguments(agent: &str, id: &str) -> [String; 2] {
    match agent {
        "claude" => [format!("--session-id {id}"), format!("--resume {id}")],
        "codex" => ["--dangerously-bypass-approvals-and-sandbox -".to_owned(), format!("resume {id} -")],
        "opencode" => ["--auto".to_owned(), format!("--auto -s {id}")],
        "gemini" => [format!("--session-id {id}"), format!("--resume {id}")],
        _ => [format!("--name {id} -i -"), format!("--resume --name {id} -i -")],
    }
}

#[test]
fn gate_sends_every_agent_back_into_same_conversation() {
    for agent in AGENTS {
        let world = create_fake_agent_project(agent, GATE_BLOCKING_ONCE, "test $turn = 1 && play ok || play resumed");
        let ran = run_agent(&world, agent);
        assert_eq!(ran.code, 0, "{agent}\n{ran}");
        let opened = world.opened_conversations();
        assert!(opened.len() == 1 && opened[0].0 == "new", "{agent} {opened:?}");
        for (turn, words) in conversation_arguments(agent, &opened[0].1).iter().enumerate() {
            let given = world.recorded_text(&format!("words.{}", turn + 1));
            assert!(given.trim().ends_with(words.as_str()), "{agent}: {given}");
        }
        let events = world.event_types();
        let place = |kind: &str| events.iter().position(|found| found == kind).unwrap();
        assert!(place("conversation_opened") < place("turn_finished"), "{agent}");
        let turns = world.event_payloads("turn_finished");
        assert_eq!(turns.len(), 2, "{agent}");
        for turn in &turns {
            let used = [&turn["usage"]["input"], &turn["usage"]["cached"], &turn["usage"]["output"]];
            assert_eq!(used, [2400, 400, 68], "{agent}: of this turn alone");
        }
        assert_eq!(turns[1]["output"], "It is still mended. <promise>COMPLETE</promise>", "{agent}");
        let prompt = world.recorded_text("prompt.2");
        assert!(prompt.contains("it leaks") && !prompt.contains("The end of your last message"), "{agent} {prompt}");
    }
}

#[test]
fn our_tools_are_handed_to_every_agent_that_can_be_told_for_one_turn() {
    for agent in AGENTS {
        for tools in [true, false] {
            let config = if tools { String::new() } else { format!("agents: {{{agent}: {{tools: false}}}}\n") };
            let world = create_fake_agent_project(
                agent,
                &config,
                "printf '%s' \"$OPENCODE_CONFIG_CONTENT\" > content; play ok",
            );
            let ran = run_agent(&world, agent);
            assert_eq!(ran.code, 0, "{agent}\n{ran}");
            let told = world.recorded_text("words.1") + &world.recorded_text("content");
            let run = world.event_payloads("turn_started")[0]["run"].as_str().unwrap().to_owned();
            let place = world.directory.display().to_string();
            let wanted = ["WINDLASS_RUN", &run, WINDLASS, "--project", &place, "mcp"];
            let is_told = tools && agent != "gemini";
            assert_eq!(wanted.map(|word| told.contains(word)), [is_told; 6], "{agent}: {told}");
        }
    }
}

#[test]
fn agent_output_is_shown_live_and_recorded_with_raw_stream() {
    let world = create_fake_agent_project("codex", "", "play ok | head -n 6; cat go > heard; play ok | tail -n 1");
    assert!(world.program("mkfifo").arg(world.path("go")).status().unwrap().success());
    let mut watched = world.start_in_terminal((30, 100), &["run", "Mend the pump", "--agent", "codex"], &[]);
    let screen = watched.await_screen(|screen| screen.contains("I have mended notes.txt."));
    assert!(screen.contains("[/bin/bash -lc 'echo mended > notes.txt']") && !screen.contains("item"), "{screen}");
    fs::write(world.path("go"), "").unwrap();
    assert_eq!(watched.read_to_end().1, 0);
    let record = world.event_payloads("turn_finished")[0]["record"].as_str().unwrap().to_owned();
    let kept = world.recorded_text(&format!(".windlass/runs/{record}"));
    assert!(kept.starts_with("[/bin/bash -lc") && kept.contains("I have mended notes.txt."), "{record}: {kept}");
    let stream = record.replace(".turn", ".stdout");
    let kept = world.recorded_text(&format!(".windlass/runs/{stream}"));
    assert!(kept.starts_with("{\"type\":\"thread.started\""), "{stream}: {kept}");
}

/// Failures in the first turn, their events, and a later turn that succeeds.
#[test]
fn failures_are_told_apart_and_keep_their_output() {
    for (agent, scenario, exit, fault) in [
        ("claude", "outage", 1, "outage"),
        ("claude", "refused", 1, "refused"),
        ("claude", "capped", 1, "out_of_turns"),
        ("codex", "cut", 1, "out_of_tokens"),
        ("codex", "empty", 0, "empty"),
        ("gemini", "outage", 244, "outage"),
        ("goose", "outage", 0, "outage"),
        ("goose", "empty", 0, "empty"),
        ("opencode", "cut", 0, "out_of_tokens"),
    ] {
        let script = format!("test $turn = 1 || {{ play resumed; exit; }}; play {scenario}; exit {exit}");
        let world = create_fake_agent_project(agent, "limits: {failure_span: 1ms}", &script);
        let ran = run_agent(&world, agent);
        assert_eq!(ran.code, 0, "{agent} {scenario}\n{ran}");
        let failed = world.event_payloads("iteration_failed");
        assert_eq!(failed.len(), 1, "{agent} {scenario}");
        assert_eq!(failed[0]["fault"], fault, "{agent} {scenario}: {}", failed[0]);
        let record = failed[0]["record"].as_str().unwrap().replace(".turn", ".stdout");
        let record = world.recorded_text(&format!(".windlass/runs/{record}"));
        assert!(record.lines().next().is_some_and(|line| line.starts_with('{')), "{agent} {scenario}: {record}");
    }
}

#[test]
fn lost_conversation_is_restarted_with_feedback_and_last_message() {
    for (agent, exit) in [("claude", 1), ("codex", 1), ("opencode", 1), ("gemini", 42), ("goose", 1)] {
        let script = format!("case $turn in 1) play ok;; 2) play lost; exit {exit};; *) play resumed | again;; esac");
        let world = create_fake_agent_project(agent, GATE_BLOCKING_ONCE, &script);
        let ran = run_agent(&world, agent);
        assert_eq!(ran.code, 0, "{agent}\n{ran}");
        let opened = world.opened_conversations();
        let how: Vec<&str> = opened.iter().map(|(how, _)| how.as_str()).collect();
        assert_eq!(how, ["new", "anew"], "{agent}");
        let reason = world.event_payloads("conversation_opened")[1]["reason"].as_str().unwrap_or_default().to_owned();
        assert!(reason.to_lowercase().contains("found"), "{agent}: {reason}");
        let prompt = world.recorded_text("prompt.3");
        assert!(prompt.contains("it leaks") && prompt.contains("I have mended notes.txt."), "{agent}: {prompt}");
        let given = world.recorded_text("words.3");
        assert!(given.trim().ends_with(&conversation_arguments(agent, &opened[1].1)[0]), "{agent}: {given}");
        // The figures of the new conversation are counted from its beginning.
        let input = &world.event_payloads("turn_finished")[1]["usage"]["input"];
        assert_eq!(*input, if ["codex", "goose"].contains(&agent) { 4800 } else { 2400 }, "{agent}");
    }
}

#[test]
fn conversation_is_resumed_after_run_is_killed() {
    for agent in ["claude", "codex"] {
        let script = "test $turn = 1 || { play resumed; exit; }; play stalled; echo > started; sleep 60";
        let world = create_fake_agent_project(agent, "", script);
        world.run_command(world.program("mkfifo").arg("started"));
        let mut command = world.command(&["run", "Mend the pump", "--agent", agent]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        fs::read(world.path("started")).unwrap();
        // The claim is there, but the feedback may not have been delivered.
        while world.opened_conversations().is_empty() {}
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let ran = run_agent(&world, agent);
        assert_eq!(ran.code, 0, "{agent}\n{ran}");
        let opened = world.opened_conversations();
        assert!(opened.len() == 1 && opened[0].0 == "new", "{agent} {opened:?}");
        let given = world.recorded_text("words.2");
        assert!(given.trim().ends_with(&conversation_arguments(agent, &opened[0].1)[1]), "{agent}: {given}");
    }
}

/// No later command would remove it.
#[test]
fn killed_turn_leaves_no_secret_in_its_record() {
    let script = "play stalled; echo '{\"type\":\"oh\",\"token\":\"squeamish-ossifrage\"}'; head -c 4000 /dev/zero | tr '\\0' x; sleep 60";
    let world = create_fake_agent_project("claude", "secrets: [TOKEN]\n", script);
    let mut command = world.command(&["run", "Mend the pump", "--agent", "claude"]);
    let mut child = command.env("TOKEN", "squeamish-ossifrage").stdout(Stdio::null()).spawn().unwrap();
    let record = || {
        let session = world.path(".windlass/runs/mend-the-pump-e01275de");
        let files = fs::read_dir(session).into_iter().flatten().map(|file| file.unwrap().path());
        files
            .filter(|file| file.to_string_lossy().contains(".stdout"))
            .map(|file| fs::read_to_string(file).unwrap())
            .collect::<String>()
    };
    while !record().contains("xxxx") {}
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let record = record();
    assert!(record.contains("[secret TOKEN]") && !record.contains("ossifrage"), "{record}");
}

/// The gate judges the delivery turn, so the agent has to claim in it.
#[test]
fn delivery_turn_is_in_the_same_conversation_and_claims_again() {
    let config = "hooks: {post_iteration: [{command: echo remember, pipe_output: true}]}\n";
    let world = create_fake_agent_project("claude", config, "test $turn = 1 && play ok || play resumed");
    let ran = run_agent(&world, "claude");
    let opened = world.opened_conversations();
    assert!(
        world.recorded_text("words.2").trim().ends_with(&conversation_arguments("claude", &opened[0].1)[1]),
        "{opened:?} {ran}"
    );
    let told = world.recorded_text("prompt.2");
    assert!(told.contains("remember") && told.contains("no longer counts: make it again"), "{told}");
    assert_eq!(world.event_payloads("turn_started")[1]["purpose"], "final_delivery");
}

#[test]
fn rate_limited_turn_is_postponed_without_recording_failure() {
    let script = r#"test $turn = 1 || { play resumed; exit; }; play limited | sed 's/"retry-after":"2"/"retry-after":"0"/'; exit 1"#;
    let world = create_fake_agent_project("opencode", "", script);
    let ran = run_agent(&world, "opencode");
    assert_eq!(ran.code, 0, "{ran}");
    let postponed = world.event_payloads("iteration_postponed");
    assert_eq!(postponed.len(), 1, "{ran}");
    assert_eq!(postponed[0]["error"], "Rate limit reached for requests. Please try again later.");
    assert!(postponed[0]["record"].is_string() && world.event_payloads("iteration_failed").is_empty());
}

#[test]
fn unauthenticated_agent_ends_session_with_login_remedy() {
    for (agent, scenario, exit, remedy) in [
        ("claude", "keyless", 1, "run `claude` and type /login, or set ANTHROPIC_API_KEY"),
        ("codex", "keyless", 1, "run `codex login`, or set OPENAI_API_KEY"),
        ("gemini", "keyless", 41, "run `gemini` once and choose how to log in, or set GEMINI_API_KEY"),
        ("goose", "unauthorized", 1, "run `goose configure`"),
        ("opencode", "unauthorized", 1, "run `opencode auth login`"),
    ] {
        let world = create_fake_agent_project(agent, "", &format!("play {scenario}; exit {exit}"));
        let ran = run_agent(&world, agent);
        assert_eq!(ran.code, 1, "{agent}\n{ran}");
        assert!(ran.to_string().contains(remedy), "{agent}\n{ran}");
        assert_eq!(world.recorded_text("turns"), "1\n", "{agent}");
    }
}

/// The second turn reports the tokens of both: 4,936 in all, and not 7,404. The third has used none.
#[test]
fn tokens_are_counted_once_for_a_budget() {
    let hooks = "hooks: {stop: [{command: 'test $(cat turns) = 3 || exit 2'}]}\n";
    for (tokens, code, turns) in [(2468, 3, 1), (4936, 3, 2), (4937, 0, 3)] {
        let config = format!("{hooks}limits: {{tokens: {tokens}}}\n");
        let world = create_fake_agent_project("codex", &config, "test $turn = 1 && play ok || play resumed");
        let ran = run_agent(&world, "codex");
        assert_eq!((ran.code, world.event_payloads("turn_finished").len()), (code, turns), "{tokens}\n{ran}");
    }
}

/// Each turn costs $0.00944. Older versions of Claude Code report the cost of the conversation so far, and still older ones the
/// cost of their process.
#[test]
fn money_is_counted_once_whatever_it_is_told_of() {
    let hooks = "hooks: {stop: [{command: 'test $(cat turns) = 3 || exit 2'}]}\n";
    let older = r#"sed 's/"model_usage_since_last_result".*/"x":0}/'"#;
    let conversation = format!(
        "case $turn in 1) play ok;; 2) play resumed;; *) play resumed | sed 's/0.01888/0.02832/g; s/:4000,/:6000,/; s/:136,/:204,/; s/:800,/:1200,/';; esac | {older}"
    );
    for script in [conversation, format!("play ok | {older}")] {
        for (cost, code, turns) in [("0.00944", 3, 1), ("0.01888", 3, 2), ("0.03", 0, 3)] {
            let world = create_fake_agent_project("claude", &format!("{hooks}limits: {{cost: {cost}}}\n"), &script);
            let ran = run_agent(&world, "claude");
            assert_eq!(
                (ran.code, world.event_payloads("turn_finished").len()),
                (code, turns),
                "{script} {cost}\n{ran}"
            );
            for turn in world.event_payloads("turn_finished") {
                assert_eq!((&turn["usage"]["input"], &turn["usage"]["cost"]), (&2400.into(), &9440.into()), "{script}");
            }
        }
    }
}

#[test]
fn agent_that_floods_output_or_lingers_is_terminated() {
    let world = create_fake_agent_project(
        "claude",
        "limits: {failure_span: 1ms}",
        "test $turn = 1 || { play ok; exit; }; head -c 20000000 /dev/zero | tr '\\0' x; sleep 1000",
    );
    let ran = run_agent(&world, "claude");
    assert_eq!(ran.code, 0, "{ran}");
    let failed = &world.event_payloads("iteration_failed")[0];
    assert_eq!(
        (&failed["fault"], &failed["error"]),
        (&"garbage".into(), &"it wrote a line of more than 16 MiB".into())
    );
    let world = create_fake_agent_project("codex", "", "play ok; sleep 1000");
    let ran = run_agent(&world, "codex");
    assert_eq!(ran.code, 0, "{ran}");
}

/// A conversation about one task is unknown to the agent of the next task.
#[test]
fn each_task_has_a_conversation_of_its_own() {
    let world = create_fake_agent_project("goose", "", "play ok");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "add", "Paint it", "--depends", "T1"]);
    let ran = world.run(&["run", "--agent", "goose", "--trust"]);
    assert_eq!(ran.code, 0, "{ran}");
    let opened = world.opened_conversations();
    assert!(
        opened.len() == 2 && opened.iter().all(|(how, _)| how == "new") && opened[0].1 != opened[1].1,
        "{opened:?}"
    );
    assert!(!world.recorded_text("words.2").contains("--resume"));
}
