//! Hooks that kill their runner, that call `windlass` themselves, and that go on after their end

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::support::hook_project::{COMPLETING_AGENT, await_process_end, create_hook_project};
use crate::support::server::{ServerReply, TestHttpServer, http_response};
use crate::support::{TestWorld, WINDLASS};
use crate::test_run::RUN;

const KILLED_EXIT_CODE: i32 = 128 + 9;
/// Kills its parent the first time only.
const KILLING_SCRIPT: &str = "echo x >>ran; test $(wc -l <ran) -ge 2 || kill -9 $PPID";

fn create_killed_hook(fields: &str) -> TestWorld {
    let config = format!(
        "hooks: {{task_created: [{{name: first, command: sh kill.sh, {fields}}}, {{name: second, command: touch second}}]}}"
    );
    let world = create_hook_project(&config);
    world.write("kill.sh", KILLING_SCRIPT);
    assert_eq!(world.run(&["task", "add", "One"]).code, KILLED_EXIT_CODE);
    assert!(!world.has_file("second"));
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
    world
}

/// Returns the outcome of each run, oldest first.
fn hook_outcomes(world: &TestWorld) -> Vec<String> {
    let runs = world.json_lines(&["hooks", "history", "--limit", "0"]);
    runs.iter().map(|run| format!("{} {}", run["hook"].as_str().unwrap(), run["outcome"].as_str().unwrap())).collect()
}

#[test]
fn idempotent_hook_runs_again_after_kill() {
    let world = create_killed_hook("idempotent: true");
    assert_eq!(world.run_ok(&["doctor", "--settle"]), "2 hooks were settled\n");
    assert_eq!(world.run_ok(&["doctor", "--settle"]), "nothing was left behind\n");
    assert_eq!(hook_outcomes(&world), ["first interrupted", "first success", "second success"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\nx\n");
    assert!(world.has_file("second"));
}

#[test]
fn non_idempotent_hook_is_recorded_as_interrupted_after_kill() {
    let world = create_killed_hook("timeout: 10s");
    let ran = world.run(&["doctor", "--settle"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "2 hooks were settled\n"), "{ran}");
    assert_eq!(ran.stderr, "warning: hook `first` was interrupted\n");
    assert_eq!(hook_outcomes(&world), ["first interrupted", "second success"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\n");
    assert!(world.has_file("second"));
}

/// Only `run` and `doctor --settle` adopt orphaned hooks.
#[test]
fn only_run_and_settle_adopt_orphaned_hooks() {
    let world = create_killed_hook("idempotent: true");
    for words in [&["task", "list"][..], &["status"], &["doctor"], &["hooks", "history"], &["task", "start", "T1"]] {
        world.run(words);
        assert!(!world.has_file("second"), "{words:?}");
    }
    world.write("agent.sh", COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert!(ran.code == 0 && ran.stderr.contains("ran pending hooks of a dead command: 2"), "{ran}");
    assert!(world.has_file("second"));
}

/// `--trust` of a run covers the present file: no person has reviewed a store that came from elsewhere.
#[test]
fn run_does_not_adopt_pending_hooks_of_untrusted_older_config() {
    let world = create_killed_hook("idempotent: true");
    world.write(".windlass/config.yaml", "agent: 'command:sh agent.sh'\n");
    world.write("agent.sh", COMPLETING_AGENT);
    let ran = world.run(&[RUN, &["--trust"]].concat());
    assert!(ran.stderr.contains("whose configuration is not trusted now: 2"), "{ran}");
    assert!(!world.has_file("second"));
    assert_eq!(world.run_ok(&["doctor", "--settle", "--trust"]), "2 hooks were settled\n");
}

#[test]
fn webhook_is_resent_with_same_idempotency_key_after_kill() {
    let server = TestHttpServer::new(vec![ServerReply::Stall, http_response("200 OK", "")]);
    let world = create_hook_project(&format!("hooks: {{task_created: [{{name: web, http: '{}'}}]}}", server.url("/")));
    let mut child = world.command(&["task", "add", "One"]).stdout(Stdio::null()).spawn().unwrap();
    let first = server.next_request();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.run_ok(&["doctor", "--settle"]), "1 hook was settled\n");
    let second = server.next_request();
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    assert_eq!(hook_outcomes(&world), ["web interrupted", "web success"]);
}

/// A settling command ends the processes that a hook left when it killed its parent.
#[test]
fn orphaned_hook_process_is_terminated_by_settle() {
    let world = create_hook_project("hooks: {task_created: [{name: bad, command: sh bad.sh}]}");
    world.write("bad.sh", "echo $$ >pid; kill -9 $PPID; exec sleep 1000");
    assert_eq!(world.run(&["task", "add", "One"]).code, KILLED_EXIT_CODE);
    world.run(&["doctor", "--settle"]);
    await_process_end(world.read_number("pid"));
    assert_eq!(hook_outcomes(&world), ["bad interrupted"]);
}

/// Under a session the supervisor ends them, before any other command.
#[test]
fn gate_hook_process_is_terminated_when_runner_is_killed() {
    let world = create_hook_project("hooks: {stop: [{name: bad, command: sh bad.sh}]}");
    world.write("agent.sh", COMPLETING_AGENT);
    world.write("bad.sh", "echo $$ >pid; kill -9 $(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status); exec sleep 1000");
    assert_eq!(world.run(RUN).code, KILLED_EXIT_CODE);
    await_process_end(world.read_number("pid"));
    world.write("bad.sh", "true");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(hook_outcomes(&world), ["bad interrupted", "bad success"]);
}

#[test]
fn programs_of_a_gate_side_by_side_do_not_survive_the_loop() {
    let world = create_hook_project("hooks: {stop: [{workflow: w}]}");
    let workflow = "id: w
steps:
  - id: all
    type: parallel
    config:
      steps:
        - {id: stays, type: execute_command, config: {command: setsid, args: [sh, stay.sh]}}
        - {id: kills, type: execute_command, config: {command: sh, args: [bad.sh]}}
";
    world.write(".windlass/workflows/w.yaml", workflow);
    world.run_ok(&["trust", "--yes"]);
    world.write("agent.sh", COMPLETING_AGENT);
    world.write("stay.sh", "echo $$ >pid.new; mv pid.new pid; exec sleep 1000");
    let killer =
        "until test -e pid; do :; done; kill -9 $(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status); exec sleep 1000";
    world.write("bad.sh", killer);
    assert_eq!(world.run(RUN).code, KILLED_EXIT_CODE);
    await_process_end(world.read_number("pid"));
}

/// A hook of `task_created` that adds a task each time it runs.
#[test]
fn calls_within_calls_have_an_end() {
    let world =
        create_hook_project(&format!("hooks: {{task_created: [{{name: more, command: {WINDLASS} task add More}}]}}"));
    let ran = world.run(&["task", "add", "One"]);
    assert_eq!(ran.code, 0, "{ran}");
    let tasks = world.json_lines(&["task", "list"]).len();
    assert_eq!(tasks, 4, "{ran}\n{}", world.run_ok(&["hooks", "history"]));
    world.run_ok(&["doctor"]);
}

/// The same with actions: no process is nested, and the depth limit ends it.
#[test]
fn actions_of_actions_have_an_end() {
    let world = create_hook_project("hooks: {task_created: [{name: more, command: cat answer.json}]}");
    let create = json!({"type": "create_task", "payload": {"goal": "More"}});
    world.write("answer.json", json!({"actions": [create]}).to_string());
    let ran = world.run(&["task", "add", "One"]);
    assert_eq!(ran.code, 0, "{ran}");
    let tasks = world.json_lines(&["task", "list"]).len();
    assert!((2..=9).contains(&tasks), "{tasks}\n{ran}");
    assert_eq!(ran.stderr, "warning: hook `more` failed: a cascade of hooks may make 8 steps; the rest is refused\n");
    // With two at a time the limit on events ends it.
    world.write("answer.json", json!({"actions": [create, create, create, create]}).to_string());
    let before = world.json_lines(&["events"]).len();
    let ran = world.run(&["task", "add", "Two"]);
    assert_eq!(ran.code, 0, "{ran}");
    let created = world.json_lines(&["events", "--type", "task_created"]).len();
    assert!(created < 256, "{created}");
    assert!(world.json_lines(&["events"]).len() > before + 10);
    world.run_ok(&["doctor"]);
}

#[test]
fn hook_adding_tasks_in_loop_is_refused_at_event_limit() {
    let config =
        "hooks: {task_created: [{name: many, command: sh many.sh, when: \"'first' in task.labels\", timeout: 100s}]}";
    let world = create_hook_project(config);
    let many = format!("for n in $(seq 140); do {WINDLASS} task add $n >/dev/null 2>>refused || exit 9; done");
    world.write("many.sh", many.replace("$(seq 140)", &(1..=140).map(|n| format!("{n} ")).collect::<String>()));
    let ran = world.run(&["task", "add", "One", "--label", "first"]);
    assert_eq!(ran.code, 0, "{ran}");
    let tasks = world.json_lines(&["task", "list"]).len();
    assert!((100..=129).contains(&tasks), "{tasks}");
    assert_eq!(world.last_hook_outcome("many"), ("failure".to_owned(), "exit 9".to_owned()));
    let refused = fs::read_to_string(world.path("refused")).unwrap();
    assert!(refused.starts_with("error: a cascade of hooks may make 256 events; the rest is refused\n"), "{refused}");
}

/// A hook sees its task, and changes it: no lock is held meanwhile.
#[test]
fn hook_can_start_and_complete_its_own_task() {
    let world = create_hook_project("hooks: {task_created: [{name: work, command: sh work.sh}]}");
    let work = format!("{WINDLASS} task start {{}} && {WINDLASS} task complete {{}} --result done");
    world.write("work.sh", work.replace("{}", "$WINDLASS_TASK_ID"));
    world.run_ok(&["task", "add", "One"]);
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
    let events = world.json_lines(&["events", "--type", "task_completed"]);
    assert!(events[0]["metadata"]["depth"].as_u64().unwrap() > 0, "{}", events[0]);
}

/// Processes that a hook left running have no rights of the hook.
#[test]
fn call_with_id_of_ended_hook_has_no_cause() {
    let world = create_hook_project("hooks: {task_created: [{name: tell, command: echo}]}");
    world.run_ok(&["task", "add", "One"]);
    let debt = world.event_payloads("hook_started")[0]["debt"].as_str().unwrap().to_owned();
    let ran = world.run_with_variable(("WINDLASS_DEBT", &debt), &["task", "add", "Two"]);
    assert_eq!(ran.code, 0, "{ran}");
    let created = world.json_lines(&["events", "--type", "task_created"]).remove(1);
    assert_eq!(created["metadata"]["depth"], 0, "{created}");
    world.run_ok(&["trust", "--revoke"]);
    assert_eq!(world.run_with_variable(("WINDLASS_DEBT", &debt), &["task", "add", "Three"]).code, 64);
    for nonsense in ["", "0-0", "99999999-0", "x", "1-2-3", "-1"] {
        assert_eq!(
            world.run_with_variable(("WINDLASS_DEBT", nonsense), &["task", "add", "Three"]).code,
            64,
            "{nonsense}"
        );
    }
}

/// A session that dies in the hooks of its end has ended: no run resumes it, and `doctor` sees its pending hooks.
#[test]
fn pending_session_end_hook_is_settled_after_kill() {
    let world = create_hook_project("hooks: {session_end: [{name: bye, command: sh bye.sh, idempotent: true}]}");
    // Its parent is the supervisor, whose parent is the runner of the session.
    let killer = "test -e again || { touch again; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60; }; touch said";
    world.write("bye.sh", killer);
    let run = ["run", "x", "--agent", "command:echo '<promise>COMPLETE</promise>'"];
    assert_eq!(world.run(&run).code, KILLED_EXIT_CODE);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("bye for event"), "{doctor}");
    assert_eq!(world.run_ok(&["doctor", "--settle"]), "1 hook was settled\n");
    assert!(world.has_file("said"));
    assert_eq!(world.run(&["doctor"]).code, 0);
}

/// A session that a hook runs is nested in that hook, and so on: at most three levels.
#[test]
fn runs_within_runs_come_to_an_end() {
    let world = create_hook_project("hooks: {session_start: [{name: again, command: sh again.sh}]}");
    let again = format!("echo x >>ran; {WINDLASS} run deeper --fresh --agent command:true --max-iterations 1");
    world.write("again.sh", &again);
    world.run(&["run", "x", "--agent", "command:true", "--max-iterations", "1"]);
    let ran = fs::read_to_string(world.path("ran")).unwrap().lines().count();
    assert!((2..=4).contains(&ran), "{ran}");
}
