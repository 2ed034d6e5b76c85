//! Trust, secrets and protected files, as far as hooks are concerned

use std::fs;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::hook_project::{COMPLETING_AGENT, create_hook_project};
use crate::support::{TestWorld, WINDLASS};
use crate::test_run::RUN;

/// A hook at each event of the commands below.
const HOOKS_AT_EVERY_EVENT: &str = "\
hooks:
  task_created:
    - name: spy
      command: sh spy.sh
      events: [task_started, task_completed, task_blocked, task_unblocked, task_failed, task_updated, task_deleted,
               dependency_added, dependency_removed, task_claimed, task_released, task_reopened]
";

const COMMANDS: &[&str] = &[
    "task add Three",
    "task start T1",
    "task complete T1",
    "task block T1 --reason x",
    "task fail T1 --reason x",
    "task update T1 --priority 0",
    "task delete T2",
    "task depend T1 T2",
    "task claim T1 --owner w",
];

fn create_untrusted_project() -> TestWorld {
    let world = TestWorld::with_tasks(&["One", "Two"]);
    world.write(".windlass/config.yaml", HOOKS_AT_EVERY_EVENT);
    world.write("spy.sh", "touch ran");
    world.run_ok(&["trust", "--revoke"]);
    world
}

#[test]
fn untrusted_project_refuses_commands_that_run_hooks() {
    let world = create_untrusted_project();
    let before = world.json_lines(&["events"]);
    for line in COMMANDS {
        let words: Vec<_> = line.split(' ').collect();
        let said = world.expect_failure(&words);
        assert!(said.ends_with("[64 trust]"), "{line}\n{said}");
        assert_eq!(world.json_lines(&["events"]), before, "{line}");
    }
    assert_snapshot!(world.expect_failure(&["task", "start", "T1"]), @"
    error: this project's hooks are not trusted in their present form, and this would run spy
    hint: `windlass trust` shows what would run and asks; --trust allows it for this command alone
    [64 trust]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "test", "task_created", "--run"]), @"
    error: cannot use the configuration of this project
    caused by: it is not trusted as it is now
    hint: `windlass trust` shows what would run and asks; --trust allows it for this command alone
    [64 trust]
    ");
    assert_snapshot!(world.expect_failure(&["run", "x", "--agent", "command:true"]), @"
    error: cannot use the configuration of this project
    caused by: it is not trusted
    hint: `windlass trust` shows what would run and asks; --trust allows it for this command alone
    [64 trust]
    ");
    for line in [
        "task list",
        "task show T1",
        "task next",
        "status",
        "events",
        "hooks list",
        "hooks test task_created",
        "doctor",
        "doctor --settle",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        world.run_ok(&words);
    }
    assert_eq!(world.json_lines(&["events"]), before);
    assert!(!world.has_file("ran"));
}

#[test]
fn trust_for_one_command_is_for_that_command() {
    for line in COMMANDS {
        let world = create_untrusted_project();
        let words: Vec<_> = [&["--trust"], line.split(' ').collect::<Vec<_>>().as_slice()].concat();
        world.run_ok(&words);
        assert!(world.has_file("ran"), "{line}");
        assert_eq!(world.run(&["task", "add", "Four"]).code, 64, "{line}");
    }
}

/// Hooks of dead commands need trust as well.
#[test]
fn settling_needs_trust() {
    let world = create_hook_project("hooks: {task_created: [{name: bad, command: sh bad.sh, idempotent: true}]}");
    world.write("bad.sh", "echo x >>ran; test $(wc -l <ran) -ge 2 || kill -9 $PPID");
    world.run(&["task", "add", "One"]);
    world.run_ok(&["trust", "--revoke"]);
    let before = world.json_lines(&["events"]);
    assert_snapshot!(world.expect_failure(&["doctor", "--settle"]), @"
    error: 1 hook or session cannot resume
    caused by: it is pending under a configuration that is not the trusted one
    hint: --trust runs it anyway; `windlass hooks history` and `windlass session list` show it
    [64 trust]
    ");
    assert_eq!(world.json_lines(&["events"]), before);
    // A person who trusts another configuration has not trusted that one.
    world.write(".windlass/config.yaml", "hooks: {task_created: [{name: bad, command: touch other}]}");
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.run(&["doctor", "--settle"]).code, 64);
    assert_eq!(world.run_ok(&["--trust", "doctor", "--settle"]), "1 hook was settled\n");
    assert_eq!((fs::read_to_string(world.path("ran")).unwrap().as_str(), world.has_file("other")), ("x\nx\n", false));
}

/// A hook of a trusted command has the rights of the command while it runs.
#[test]
fn trust_is_inherited_by_what_a_hook_calls() {
    let world = TestWorld::new();
    let config = "hooks: {task_created: [{name: call, command: sh call.sh, pipe_output: true}]}";
    world.write(".windlass/config.yaml", config);
    world.write(
        "call.sh",
        format!("echo \"$WINDLASS_TASK_ID\" >>ran; test $WINDLASS_TASK_ID != T1 || {WINDLASS} task add Two"),
    );
    assert_eq!(world.run(&["task", "add", "One"]).code, 64);
    world.run_ok(&["--trust", "task", "add", "One"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "T1\nT2\n");
}

/// … and no other process, whatever its variables say.
#[test]
fn trust_is_not_had_by_the_name_of_a_hook() {
    let world = TestWorld::new();
    let config = "hooks: {task_created: [{name: hold, command: cat go, when: \"goal == 'One'\"}, \
                  {name: mark, command: touch two, when: \"goal == 'Two'\"}]}";
    world.write(".windlass/config.yaml", config);
    world.make_pipe("go");
    let mut holder = world.command(&["--trust", "task", "add", "One"]).stdout(Stdio::null()).spawn().unwrap();
    // Opening it waits for a reader.
    let go = fs::OpenOptions::new().write(true).open(world.path("go")).unwrap();
    let debt = world.event_payloads("hook_started")[0]["debt"].as_str().unwrap().to_owned();
    let add = || world.run_with_variable(("WINDLASS_DEBT", &debt), &["task", "add", "Two"]).code;
    assert_eq!((add(), world.has_file("two")), (64, false));
    drop(go);
    assert_eq!(holder.wait().unwrap().code(), Some(0));
    assert_eq!((add(), world.has_file("two")), (64, false));
}

/// In another project an agent is a stranger: neither its run nor its trust counts.
#[test]
fn run_of_agent_has_no_trust_in_another_project() {
    let world = create_hook_project("hooks: {}");
    fs::create_dir(world.path("other")).unwrap();
    assert_eq!(world.run(&["init", "--project", "other"]).code, 0);
    let add = format!("{WINDLASS} task add Here && {WINDLASS} --project other task add");
    world.write("agent.sh", format!("{add} There >said 2>&1; echo $? >code\n{COMPLETING_AGENT}"));
    assert_eq!(world.run(RUN).code, 0);
    assert_eq!(world.read_number("code"), 0, "{}", fs::read_to_string(world.path("said")).unwrap());
    let config = "hooks: {task_created: [{name: evil, command: touch evil}]}";
    world.write("other/.windlass/config.yaml", config);
    assert_eq!(world.run(&[RUN, &["--fresh"]].concat()).code, 0);
    assert_eq!((world.read_number("code"), world.has_file("other/evil")), (64, false));
}

/// An agent works under the configuration that its session began with.
#[test]
fn config_written_by_agent_does_not_apply_to_its_session() {
    let world = create_hook_project("hooks: {task_created: [{name: old, command: sh old.sh}]}");
    world.write("old.sh", "touch old");
    let agent = format!(
        "echo 'hooks: {{task_created: [{{name: evil, command: touch evil}}]}}' >.windlass/config.yaml\n\
         {WINDLASS} task add Sneaky >said 2>&1; echo $? >code\n{COMPLETING_AGENT}"
    );
    world.write("agent.sh", agent);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.read_number("code"), 0, "{}", fs::read_to_string(world.path("said")).unwrap());
    assert_eq!((world.has_file("evil"), world.has_file("old")), (false, true));
    assert_eq!(world.run(&["task", "add", "After"]).code, 64);
    // The run is over: its name gives no rights.
    let run = world.event_payloads("turn_started")[0]["run"].as_str().unwrap().to_owned();
    let ran = world.run_with_variable(("WINDLASS_RUN", &run), &["task", "add", "Late"]);
    assert!(ran.code == 64 && !world.has_file("evil"), "{ran}");
}

const SECRET: &str = "hunter2-and-some-more";

fn check_secret(world: &TestWorld, words: &[&str]) {
    let ran = world.run_command(world.command(words).env("API_KEY", SECRET));
    let everything = world.read_files_and_events();
    assert!(!ran.to_string().contains(SECRET), "{ran}");
    let said = ran.to_string() + &String::from_utf8_lossy(&everything[0].1);
    assert!(said.contains("[secret API_KEY]"), "{words:?}: {said}");
    for (place, bytes) in everything {
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{words:?}: {place}");
    }
}

/// A secret in a hook's output is masked, in every form.
#[test]
fn secrets_of_hooks_are_masked() {
    let answer = |value: Value| format!("printf '%s' '{value}'").replace("KEY", "'\"$API_KEY\"'");
    for script in [
        "echo $API_KEY".to_owned(),
        "echo $API_KEY >&2; exit 2".to_owned(),
        "head -c 300000 /dev/zero | tr '\\0' x; echo $API_KEY; exit 1".to_owned(),
        "for n in 1 2 3; do head -c 100000 /dev/zero; printf '%s' $API_KEY; done; exit 3".to_owned(),
        answer(json!({"decision": "block", "reason": "KEY"})),
        answer(json!({"status": "failure", "message": "KEY", "systemMessage": "KEY"})),
        answer(json!({"KEY": 1})),
        answer(json!({"status": "KEY"})),
        answer(json!({"context": {"KEY": ["KEY"]}})),
        answer(json!({"actions": [{"type": "create_task", "payload": {"goal": "KEY", "labels": ["KEY"]}}]})),
        answer(json!({"actions": [{"type": "KEY", "payload": {}}]})),
        answer(json!({"actions": [{"type": "log", "payload": {"type": "agent_metrics", "KEY": ["KEY"]}}]})),
    ] {
        for point in ["task_created", "stop"] {
            let world = create_hook_project(&format!(
                "secrets: [API_KEY]\nhooks: {{{point}: [{{command: sh bad.sh, pipe_output: true}}]}}"
            ));
            world.write("bad.sh", &script);
            world.write("agent.sh", COMPLETING_AGENT);
            match point {
                "stop" => check_secret(&world, &[RUN, &["--max-iterations", "1"]].concat()),
                _ => check_secret(&world, &["task", "add", "One"]),
            }
        }
    }
}

/// So is the file with all output of a workflow's program.
#[test]
fn secrets_of_programs_of_workflows_are_masked() {
    let world = create_hook_project("secrets: [API_KEY]\nhooks: {task_created: [{workflow: w}]}");
    let program = |id: &str| format!("{{id: {id}, type: execute_command, config: {{command: sh, args: [bad.sh]}}}}");
    let several = format!("{{id: c, type: parallel, config: {{steps: [{}, {}]}}}}", program("d"), program("e"));
    let steps = format!("  - {}\n  - {several}\n", program("a").replace("]}}", "]}, onFailure: c}"));
    world.write(".windlass/workflows/w.yaml", format!("id: w\nsteps:\n{steps}"));
    world.write("bad.sh", "head -c 300000 /dev/zero; echo error: $API_KEY; head -c 300000 /dev/zero; exit 1");
    world.run_ok(&["trust", "--yes"]);
    check_secret(&world, &["task", "add", "One"]);
    let records = world.read_files_and_events().into_iter().filter(|(place, _)| place.ends_with(".stdout"));
    assert_eq!(records.count(), 3, "each of them wrote too much for memory");
}

/// A trial shows and keeps no more than a run does.
#[test]
fn secrets_of_trials_are_masked() {
    for script in ["echo $API_KEY >&2; exit 2", "head -c 300000 /dev/zero; echo $API_KEY; exit 1"] {
        let world = create_hook_project("secrets: [API_KEY]\nhooks: {stop: [{command: sh bad.sh, pipe_output: true}]}");
        world.write("bad.sh", script);
        check_secret(&world, &["hooks", "test", "stop", "--run"]);
        check_secret(&world, &["--json", "hooks", "test", "stop", "--run"]);
    }
}

#[test]
fn secrets_of_agents_are_masked() {
    for agent in [
        format!("echo $API_KEY; {COMPLETING_AGENT}"),
        "echo $API_KEY >&2; exit 1".to_owned(),
        format!("head -c 400000 /dev/zero | tr '\\0' x; echo $API_KEY; {COMPLETING_AGENT}"),
    ] {
        let world = create_hook_project(
            "secrets: [API_KEY]\nhooks: {on_error: [{command: 'echo {{error}}', pipe_output: true}]}",
        );
        world.write("agent.sh", agent);
        check_secret(&world, &[RUN, &["--max-iterations", "1"]].concat());
    }
}

/// Control sequences inside of a secret are removed from kept output, which would restore the secret.
#[test]
fn agent_secret_split_by_colour_codes_is_masked() {
    let world = create_hook_project("secrets: [API_KEY]");
    world.write("agent.sh", format!("printf '%s\\033[0mmore\\n' ${{API_KEY%more}}; {COMPLETING_AGENT}"));
    check_secret(&world, &[RUN, &["--max-iterations", "1"]].concat());
}

/// So is one of a hook, and one whose letters JSON writes otherwise.
#[test]
fn hook_secret_with_escapes_or_colour_codes_is_masked() {
    let answer = |value: &str| format!("printf '%s' '{value}'").replace("KEY", "\\u0068'\"${API_KEY#h}\"'");
    for script in [
        "printf '%s\\033[0mmore\\n' ${API_KEY%more} >&2; exit 1".to_owned(),
        answer(r#"{"status": "failure", "message": "KEY"}"#),
        answer(r#"{"actions": [{"type": "create_task", "payload": {"goal": "KEY"}}]}"#),
        answer(r#"{"context": {"KEY": ["KEY"]}}"#),
    ] {
        let world = create_hook_project(
            "secrets: [API_KEY]\nhooks: {task_created: [{command: sh bad.sh, when: \"goal == 'One'\"}]}",
        );
        world.write("bad.sh", &script);
        check_secret(&world, &["task", "add", "One"]);
    }
}

/// Memory keeps the beginning and the end of long answers: no half of a secret stays at the edges.
#[test]
fn half_a_secret_of_an_agent_is_one_too() {
    let world = create_hook_project("secrets: [API_KEY]");
    let script = "pad() { head -c $1 /dev/zero | tr '\\0' x; }
pad $((16 * 1024 - 8)); printf %s $API_KEY; pad 1000; printf %s $API_KEY; pad $((40 * 1024 - 8))";
    world.write("agent.sh", script);
    world.run_with_variable(("API_KEY", SECRET), &[RUN, &["--max-iterations", "1"]].concat());
    for (place, bytes) in world.read_files_and_events() {
        for half in [&SECRET[..6], &SECRET[SECRET.len() - 6..]] {
            assert!(!bytes.windows(half.len()).any(|window| window == half.as_bytes()), "{place}: {half}");
        }
    }
}

#[test]
fn gate_with_changed_protected_files_escalates_to_person() {
    let check = |agent: &str, named: Option<&str>| {
        let world = create_hook_project("protected: [gate.sh, tests/]\nhooks: {stop: [{command: sh gate.sh}]}");
        world.write("gate.sh", "exit 0");
        world.write("tests/a", "a");
        world.write("agent.sh", format!("{agent}\n{COMPLETING_AGENT}"));
        let ran = world.run(RUN);
        let Some(named) = named else {
            assert_eq!(ran.code, 0, "{agent}\n{ran}");
            return;
        };
        assert_eq!(ran.code, 4, "{agent}\n{ran}");
        let why = format!("protected files have changed in this session: {named}");
        assert_eq!(world.last_hook_outcome("stop[0]"), ("escalate".to_owned(), why.clone()));
        assert!(ran.stdout.contains(&why), "{ran}");
    };
    check("true", None);
    check("touch gate.sh other", None);
    check("cp gate.sh again; mv again gate.sh", None);
    check("echo 'exit 0 ' >gate.sh", Some("gate.sh"));
    check("rm gate.sh", Some("gate.sh"));
    check("echo b >tests/b; mkdir tests/deep; echo c >tests/deep/c", Some("tests/b, tests/deep/c"));
    check("rm -r tests", Some("tests/a"));
    check("mv gate.sh kept; ln -s kept gate.sh 2>/dev/null || cp -s kept gate.sh", Some("gate.sh, kept"));
    check("chmod +x gate.sh", Some("gate.sh"));
    check("mkdir sub; cp gate.sh sub/", Some("sub/gate.sh"));
}

/// Hooks that are registered for a task judge the work, too.
#[test]
fn registered_hooks_are_not_asked_about_changed_files() {
    let world = TestWorld::with_tasks(&["One"]);
    world.write(".windlass/config.yaml", "protected: [tests/]\n");
    world.run_ok(&["trust", "--yes"]);
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "promise"}));
    world.write("tests/a", "a");
    world.write("agent.sh", format!("echo b >tests/a; {COMPLETING_AGENT}"));
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    let why = "protected files have changed in this session: tests/a\n";
    assert!(ran.stdout.contains(why), "{ran}");
    assert_eq!(world.event_payloads("hook_evaluated").len(), 0);
}

#[test]
fn gate_escalates_when_protected_files_exceed_scan_limit() {
    let world = create_hook_project("protected: [gate.sh]\nhooks: {stop: [{command: sh gate.sh}]}");
    world.write("gate.sh", "exit 1");
    let many = tempfile::tempdir().unwrap();
    let target = many.path().join("target");
    fs::create_dir(&target).unwrap();
    (0..=100_000).for_each(|number| fs::write(target.join(number.to_string()), "").unwrap());
    world.write("agent.sh", format!("mv '{}' .; echo >gate.sh\n{COMPLETING_AGENT}", target.display()));
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    let why = "cannot tell whether protected files have changed: \
               there are more than 100000 files and directories where protected files may be";
    assert_eq!(world.last_hook_outcome("stop[0]"), ("escalate".to_owned(), why.to_owned()));

    assert_snapshot!(world.expect_failure(&[RUN, &["--fresh"]].concat()), @"
    error: cannot watch the files under `protected`
    caused by: there are more than 100000 files and directories where protected files may be
    hint: name the directory in each pattern: `gates/*.sh`, or `./gate.sh` for the project's own directory
    [64 config]
    ");
    assert_eq!(world.event_payloads("session_started").len(), 1);

    world.write(".windlass/config.yaml", "protected: [./gate.sh]\nhooks: {stop: [{command: sh gate.sh}]}");
    world.write("gate.sh", "exit 1");
    world.write("agent.sh", format!("echo >gate.sh\n{COMPLETING_AGENT}"));
    let changed = world.run(&[RUN, &["--fresh", "--trust"]].concat());
    assert_eq!(changed.code, 4, "{changed}");
    assert!(changed.stdout.contains("protected files have changed in this session: gate.sh"), "{changed}");
}
