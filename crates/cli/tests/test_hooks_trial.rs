//! `windlass hooks test`: a trial behaves like a run, can be stopped, and trusts no payload

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::hook_project::{COMPLETING_AGENT, create_hook_project, has_process_ended};
use crate::support::server::{ServerReply, TestHttpServer, http_response};
use crate::support::terminal::run_in_terminal;
use crate::test_run::RUN;

const SECRET: &str = "hunter2-and-some-more";

#[test]
fn trial_of_a_broken_gate_tells_the_agent_nothing() {
    for (point, is_told) in [("stop", false), ("before_submit", false), ("post_iteration", true)] {
        let world = create_hook_project(&format!(
            "hooks: {{{point}: [{{name: check, command: sh gone.sh, pipe_output: true}}]}}"
        ));
        let ran = world.run(&["hooks", "test", point, "--run"]);
        assert!(ran.stdout.contains("the hook is broken: `gone.sh` does not exist"), "{ran}");
        assert_eq!(ran.stdout.contains("agent told"), is_told, "{point}: {ran}");
    }
}

#[test]
fn trial_of_run_tests_runs_the_tests_of_the_project() {
    let world = create_hook_project("test_command: sh tests.sh\nhooks: {stop: [run_tests]}\n");
    for (tests, verdict) in [("echo one test failed; exit 1", "verdict      block"), ("exit 0", "verdict      success")]
    {
        world.write("tests.sh", tests);
        let ran = world.run(&["hooks", "test", "stop", "--run"]);
        assert!(ran.stdout.contains(verdict), "{ran}");
    }
    world.write(".windlass/config.yaml", "hooks: {stop: [run_tests]}\n");
    let ran = world.run(&["hooks", "test", "stop", "--run", "--trust"]);
    assert!(ran.stdout.contains("cannot find a test command"), "{ran}");
}

#[test]
fn trial_rejects_invalid_payload_values_used_in_command() {
    let world = create_hook_project(
        "hooks: {stop: [{name: say, command: 'echo {{session}} {{iteration}} {{task_id}} >said'}]}",
    );
    let try_out = |payload: &Value| {
        world.write("payload", payload.to_string());
        let ran = world.run(&["hooks", "test", "stop", "--payload", "payload", "--run"]);
        assert!(!world.has_file("pwned"), "{ran}");
        ran
    };
    for (field, payload) in [
        ("session", json!({"session": "x; touch pwned"})),
        ("session", json!({"session": "$(touch pwned)"})),
        ("session", json!({"session": 7})),
        ("task_id", json!({"task_id": "T1; touch pwned"})),
        ("taskId", json!({"taskId": "`touch pwned`"})),
        ("task.id", json!({"task": {"id": "T1\ntouch pwned"}})),
        ("iteration", json!({"iteration": "1; touch pwned"})),
        ("iteration", json!({"iteration": 1.5})),
    ] {
        let ran = try_out(&payload);
        assert!(ran.code == 64 && ran.stderr.contains(&format!("`{field}`: ")), "{payload}\n{ran}");
        assert!(!world.has_file("said"), "{payload}");
    }
    for (said, payload) in [
        ("", json!({"session": "", "task_id": "", "task": null, "iteration": 0})),
        ("mend-it 3 T7", json!({"session": "mend-it", "iteration": 3, "task": {"id": "T7"}})),
    ] {
        assert_eq!(try_out(&payload).code, 0, "{payload}");
        assert_eq!(fs::read_to_string(world.path("said")).unwrap().trim(), said);
    }
}

/// An interrupt ends the trial: nothing of the hook is left, and the next one does not start.
#[test]
fn interrupted_trial_terminates_hook_and_skips_next_one() {
    let stalls = TestHttpServer::new(vec![ServerReply::Stall]);
    let script = "trap '' TERM; echo $$ >pid; echo >running; while :; do sleep 1000; done";
    for (hook, is_web) in [("command: sh bad.sh".to_owned(), false), (format!("http: '{}'", stalls.url("/")), true)] {
        let world = create_hook_project(&format!(
            "hooks: {{stop: [{{name: bad, {hook}, timeout: 100s}}, {{command: touch second}}]}}"
        ));
        world.write("bad.sh", script);
        world.make_pipe("running");
        let mut command = world.command(&["hooks", "test", "stop", "--run"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if is_web {
            stalls.next_request();
        } else {
            world.await_pipe("running");
        }
        world.run_command(world.program("sh").args(["-c", &format!("kill -TERM {}", child.id())]));
        assert_eq!(child.wait().unwrap().code(), Some(143), "{hook}");
        assert!(is_web || has_process_ended(world.read_number("pid")));
        assert!(!world.has_file("second"), "{hook}");
        assert_eq!(fs::read_dir(world.path(".windlass/runs/trials")).unwrap().count(), 0);
    }
}

/// The engine runs a gate in this case, and no other hook.
#[test]
fn hook_with_unanswerable_condition_runs_only_at_gate() {
    for (point, runs, words) in
        [("stop", true, "; it would run, for this is a gate\n"), ("task_created", false, "; it would not run\n")]
    {
        let world = create_hook_project(&format!(
            "hooks: {{{point}: [{{name: odd, when: 'tool_input.missing.deep == 1', command: touch ran}}]}}"
        ));
        let ran = world.run(&["hooks", "test", point, "--run"]);
        assert!(ran.code == 0 && ran.stdout.contains("cannot be answered: "), "{ran}");
        assert!(ran.stdout.contains(words), "{ran}");
        assert_eq!((ran.stdout.contains("verdict"), world.has_file("ran")), (runs, runs), "{ran}");
        // A real run does the same.
        let world = create_hook_project(&format!(
            "hooks: {{{point}: [{{name: odd, when: 'tool_input.missing.deep == 1', command: touch ran}}]}}"
        ));
        world.write("agent.sh", COMPLETING_AGENT);
        world.run(RUN);
        world.run(&["task", "add", "One"]);
        assert_eq!(world.has_file("ran"), runs, "{point}");
    }
}

#[test]
fn trial_payload_equals_payload_received_by_hook() {
    let world = create_hook_project("hooks: {stop: [{name: keep, command: cat >got}]}");
    world.write("payload", json!({"iteration": 3, "output": "so far", "session": "mend-it"}).to_string());
    let words = ["hooks", "test", "stop", "--payload", "payload"];
    let shown = world.json(&words);
    assert_eq!(shown["environment"].get("WINDLASS_PAYLOAD_FILE"), None, "{shown}");
    let tried = world.json(&[&words[..], &["--run"]].concat());
    let got: Value = serde_json::from_slice(&fs::read(world.path("got")).unwrap()).unwrap();
    assert_eq!((&got["session_id"], &got["hook"]), (&json!("mend-it"), &json!("keep")));
    assert_eq!((&shown["payload"], &tried["payload"]), (&got, &got));
    assert!(tried["environment"]["WINDLASS_PAYLOAD_FILE"].is_string(), "{tried}");

    let plain = world.run_ok(&words);
    assert!(plain.contains(&format!("\n  payload      {got}\n")), "{plain}");
    assert!(!plain.contains("WINDLASS_PAYLOAD_FILE"), "{plain}");
    let (narrow, _) = run_in_terminal(world.command(&words).env("NO_COLOR", "1"), 60);
    let line = narrow.lines().find(|line| line.starts_with("  payload")).unwrap().trim_end();
    assert!(line.chars().count() == 60 && line.ends_with('…'), "{line}");
    world.write("payload", " ".repeat(16 * 1024 * 1024 + 1));
    assert!(world.expect_failure(&words).contains("hint: a payload for a trial can be shorter"), "a hint for payloads");
}

/// Output is masked before it is cut: no beginning of a secret is left.
#[test]
fn half_a_secret_is_one_too() {
    let check = |world: &TestWorld, words: &[&str]| {
        let ran = world.run_with_variable(("API_KEY", SECRET), words);
        let everything = world.read_files_and_events();
        for (place, bytes) in everything.iter().chain([&("output".to_owned(), ran.to_string().into_bytes())]) {
            for half in [&SECRET[..6], &SECRET[SECRET.len() - 6..]] {
                let found = bytes.windows(half.len()).any(|window| window == half.as_bytes());
                assert!(!found, "{words:?}: {place}: {half}\n{ran}");
            }
        }
    };
    for before in [180, 185, 190, 195] {
        let body = format!("{}{SECRET}", "x".repeat(before));
        for (point, words) in
            [("task_created", &["task", "add", "One"][..]), ("stop", &["hooks", "test", "stop", "--run"])]
        {
            let server = TestHttpServer::new(vec![http_response("404 No", &body)]);
            let hook = format!("{{name: web, http: '{}'}}", server.url("/"));
            check(&create_hook_project(&format!("secrets: [API_KEY]\nhooks: {{{point}: [{hook}]}}")), words);
        }
    }
    for before in (30..80).step_by(7) {
        let hook =
            format!("{{command: 'printf %0{before}d 7; printf \"$API_KEY\"; printf %090d 7; exit 2', max_output: 80}}");
        let world = create_hook_project(&format!("secrets: [API_KEY]\nhooks: {{stop: [{hook}]}}"));
        check(&world, &["hooks", "test", "stop", "--run"]);
        world.write("agent.sh", COMPLETING_AGENT);
        check(&world, &[RUN, &["--max-iterations", "1"]].concat());
    }
    // The secret lies at both edges of the excerpt.
    let edge = 128 * 1024 - 8;
    let script = format!(
        "pad() {{ head -c $1 /dev/zero | tr '\\0' x; }}\n\
         pad {edge}; printf %s $API_KEY; pad 1000; printf %s $API_KEY; pad {edge}; exit 2"
    );
    let world = create_hook_project("secrets: [API_KEY]\nhooks: {stop: [{command: sh bad.sh, max_output: 262144}]}");
    world.write("bad.sh", script);
    check(&world, &["--json", "hooks", "test", "stop", "--run"]);
}

/// An agent cannot disarm a rule about files by damaging the repository.
#[test]
fn unreadable_repository_fails_files_modified_rule_instead_of_passing() {
    let check = |agent: &str, outcome: &str, said: &str| {
        let rule =
            "{when: filesModified | length > 0, action: escalate, reason: \"{{ filesModified | length }} files\"}";
        let world = create_hook_project(&format!("hooks: {{stop: [{{name: clean, rules: [{rule}]}}]}}"));
        world.write("agent.sh", format!("{agent}\n{COMPLETING_AGENT}"));
        world.run(&[RUN, &["--max-iterations", "1"]].concat());
        let (found, message) = world.last_hook_outcome("clean");
        assert_eq!(found, outcome, "{agent}: {message}");
        assert!(message.starts_with(said), "{agent}: {message}");
    };
    const CANNOT: &str = "cannot tell which files have changed: ";
    check("true", "success", "");
    check("git init -q .; echo '*' >.git/info/exclude; touch kept", "success", "");
    check("git init -q .; printf '.windlass\\nagent.sh\\n' >.git/info/exclude; touch kept", "escalate", "1 files");
    let failed = format!("{CANNOT}cannot run `git status`: ");
    let missing = format!("{CANNOT}cannot find a git repository in ");
    check("git init -q .; echo garbage and some more of it >.git/index; touch kept", "failure", &failed);
    check("mkdir .git; touch .git/HEAD kept", "failure", &missing);
    check("echo nonsense >.git", "failure", &missing);
    let many = "git init -q .; mkdir deep; cd deep; n=0; name=$(printf %0200d 7)\n\
                while test $n -lt 1400; do : >$name$n; n=$((n + 1)); done";
    check(many, "failure", &format!("{CANNOT}git names more than 256 KiB of them"));
}

/// Points with a tool come with the bridge; a trial shows already which hooks would run.
#[test]
fn matchers_choose_by_the_tool() {
    let world = create_hook_project(
        "hooks:\n  PreToolUse:\n  - {name: edits, command: 'true', matcher: 'Edit|Write'}\n  - {name: mcp, command: 'true', matcher: 'mcp__.*'}\n  - {name: all, command: 'true', matcher: '*'}\n",
    );
    for (tool, expected) in [
        ("Edit", [true, false, true]),
        ("MultiEdit", [false, false, true]),
        ("mcp__git__log", [false, true, true]),
        ("", [true; 3]),
    ] {
        world.write("payload.json", serde_json::json!({"tool_name": tool}).to_string());
        let trials = world.json_lines(&["hooks", "test", "pre_tool_use", "--payload", "payload.json"]);
        let found: Vec<bool> = trials.iter().map(|trial| trial["matches"].as_bool().unwrap()).collect();
        assert_eq!(found, expected, "{tool}");
    }
}

/// For an agent's own hook system, a trial does what the bridge would do: which points can block, which tools match, and what
/// hooks get.
#[test]
fn trial_of_agent_call_matches_bridge_behaviour() {
    let world = create_hook_project(
        r#"
hooks:
  pre_tool_use:
    - {name: guard, matcher: Bash, when: '"rm " in tool_input.command', command: 'cat >given; echo never that >&2; exit 2'}
  session_start: [{name: greet, command: echo the cellar is locked}]
  notification: [{name: watch, command: exit 2}]
  stop: [{name: tests, command: 'echo no >&2; exit 2'}]
"#,
    );
    let try_out = |point: &str, payload: &Value, more: &[&str]| {
        world.write("payload", payload.to_string());
        let words = ["hooks", "test", point, "--payload", "payload", "--run"];
        world.json(&[&words, more].concat())
    };
    let said = json!({
        "session_id": "talk-1",
        "transcript_path": "/talks/1.jsonl",
        "hook_event_name": "PreToolUse",
        "permission_mode": "plan",
        "tool_name": "Bash",
        "tool_input": {"command": "rm -rf /"},
    });
    let trial = try_out("pre_tool_use", &said, &[]);
    assert_eq!((&trial["matches"], &trial["holds"]), (&json!(true), &json!(true)));
    assert_eq!((&trial["verdict"]["outcome"], &trial["verdict"]["feedback"]), (&json!("block"), &json!("never that")));
    let given: Value = serde_json::from_slice(&fs::read(world.path("given")).unwrap()).unwrap();
    for (name, value) in said.as_object().unwrap() {
        assert_eq!(given[name], *value, "{name}");
    }
    assert_eq!((&given["conversation"], &given["event"]["type"]), (&json!("talk-1"), &json!("bridge_called")));

    let edits = try_out("pre_tool_use", &json!({"tool_name": "Edit", "tool_input": {"file_path": "a"}}), &[]);
    assert_eq!((&edits["matches"], &edits["verdict"]), (&json!(false), &Value::Null));
    // At this point a block has no effect.
    let watch = try_out("notification", &json!({"session_id": "talk-1", "message": "hm"}), &[]);
    assert_eq!(watch["verdict"]["outcome"], "failure");

    // If the loop has this point, too, the payload or an option names the agent.
    let greet = |payload: Value, more: &[&str]| try_out("session_start", &payload, more)["verdict"]["feedback"].clone();
    assert_eq!(greet(json!({"session_id": "talk-1", "source": "startup"}), &[]), "the cellar is locked");
    assert_eq!(greet(json!({}), &["--as", "claude"]), "the cellar is locked");
    assert_eq!(greet(json!({"iteration": 0}), &[]), Value::Null);
    let stop = try_out("stop", &json!({"session_id": "talk-1", "stop_hook_active": true}), &[]);
    assert_eq!((&stop["verdict"]["outcome"], &stop["payload"]["stop_hook_active"]), (&json!("block"), &json!(true)));

    let never = world.expect_failure(&["hooks", "test", "task_created", "--as", "claude"]);
    assert!(never.starts_with("error: Claude Code never calls at task_created\nhint: agents call at "), "{never}");
}

/// No message says that such a hook never runs, nor that it always does.
#[test]
fn hooks_that_only_agents_call_are_listed_as_such() {
    let world =
        create_hook_project("hooks: {pre_tool_use: [{name: guard, command: 'true'}], stop: [{command: 'true'}]}");
    let listed = world.run_ok(&["hooks", "list"]);
    assert!(listed.contains("pre_tool_use (where an agent's own hook system calls)\n   100  guard  true  (line 1)\n"));
    let points = world.json_lines(&["hooks", "list"]);
    let bridge = |point: &str| points.iter().find(|row| row["point"] == point).unwrap()["bridge"].clone();
    assert_eq!([bridge("pre_tool_use"), bridge("stop"), bridge("task_created")], [true, true, false]);
    assert_eq!(world.json(&["hooks", "show", "guard"])["runs"], true);
    assert!(!world.run(&["config", "check"]).to_string().contains("warning"));
}

/// A value that Claude Code itself has set is kept.
#[test]
fn hooks_of_claude_code_find_their_directory() {
    let world = create_hook_project("hooks: {stop: [{command: 'printf %s \"$CLAUDE_PROJECT_DIR\" >seen'}]}");
    let words = ["hooks", "test", "stop", "--run"];
    let seen = || fs::read_to_string(world.path("seen")).unwrap();
    assert_eq!(world.run(&words).code, 0);
    assert_eq!(seen(), world.directory.to_string_lossy());
    assert_eq!(world.run_with_variable(("CLAUDE_PROJECT_DIR", "/elsewhere"), &words).code, 0);
    assert_eq!(seen(), "/elsewhere");
}

/// `pytest` and most other programs fail with exit 1, which does not send the agent back.
#[test]
fn stop_hook_that_fails_with_exit_1_gets_a_hint() {
    let world = create_hook_project(
        "hooks: {stop: [{name: tests, command: test -e done}, {name: own, command: test -e done || exit 2}]}",
    );
    let hint = "  hint         at `stop` only exit 2 sends the agent back, and most programs fail with exit 1: `test -e done`; \
                write `test -e done || exit 2`, or `on_failure: block` beside it\n";
    for run in [&[][..], &["--run"]] {
        let told = world.run_ok(&[&["hooks", "test", "stop"][..], run].concat());
        assert_eq!(told.matches(hint).count(), 1, "{told}");
    }
    world.write("done", "");
    assert!(!world.run_ok(&["hooks", "test", "stop", "--run"]).contains("hint"), "it passes");
}
