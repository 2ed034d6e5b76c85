//! Hooks that kill their runner, that call `windlass` themselves, and that go on after their end

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::support::hooked::{DONE, await_end, hooked};
use crate::support::server::{Answer, Server, says};
use crate::support::{WINDLASS, World};
use crate::test_run::RUN;

const KILLED: i32 = 128 + 9;
/// Kills its parent the first time only.
const KILLER: &str = "echo x >>ran; test $(wc -l <ran) -ge 2 || kill -9 $PPID";

fn killer(fields: &str) -> World {
    let config = format!(
        "hooks: {{task_created: [{{name: first, command: sh kill.sh, {fields}}}, {{name: second, command: touch second}}]}}"
    );
    let world = hooked(&config);
    world.write("kill.sh", KILLER);
    assert_eq!(world.run(&["task", "add", "One"]).code, KILLED);
    assert!(!world.has("second"));
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
    world
}

/// Returns the outcome of each run, oldest first.
fn outcomes(world: &World) -> Vec<String> {
    let runs = world.lines(&["hooks", "history", "--limit", "0"]);
    runs.iter().map(|run| format!("{} {}", run["hook"].as_str().unwrap(), run["outcome"].as_str().unwrap())).collect()
}

#[test]
fn idempotent_hook_runs_again_after_kill() {
    let world = killer("idempotent: true");
    assert_eq!(world.ok(&["doctor", "--settle"]), "2 hooks were settled\n");
    assert_eq!(world.ok(&["doctor", "--settle"]), "nothing was left behind\n");
    assert_eq!(outcomes(&world), ["first interrupted", "first success", "second success"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\nx\n");
    assert!(world.has("second"));
}

#[test]
fn what_may_not_is_recorded() {
    let world = killer("timeout: 10s");
    let ran = world.run(&["doctor", "--settle"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "2 hooks were settled\n"), "{ran}");
    assert_eq!(ran.stderr, "warning: hook `first` was interrupted\n");
    assert_eq!(outcomes(&world), ["first interrupted", "second success"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\n");
    assert!(world.has("second"));
}

/// Only `run` and `doctor --settle` adopt orphaned hooks.
#[test]
fn only_run_and_settle_adopt_orphaned_hooks() {
    let world = killer("idempotent: true");
    for words in [&["task", "list"][..], &["status"], &["doctor"], &["hooks", "history"], &["task", "start", "T1"]] {
        world.run(words);
        assert!(!world.has("second"), "{words:?}");
    }
    world.write("agent.sh", DONE);
    let ran = world.run(RUN);
    assert!(ran.code == 0 && ran.stderr.contains("ran pending hooks of a dead command: 2"), "{ran}");
    assert!(world.has("second"));
}

/// `--trust` of a run covers the present file: no person has reviewed a store that came from elsewhere.
#[test]
fn a_run_takes_nothing_over_that_an_older_configuration_says() {
    let world = killer("idempotent: true");
    world.write(".windlass/config.yaml", "agent: 'command:sh agent.sh'\n");
    world.write("agent.sh", DONE);
    let ran = world.run(&[RUN, &["--trust"]].concat());
    assert!(ran.stderr.contains("whose configuration is not trusted now: 2"), "{ran}");
    assert!(!world.has("second"));
    assert_eq!(world.ok(&["doctor", "--settle", "--trust"]), "2 hooks were settled\n");
}

#[test]
fn a_webhook_is_sent_again_with_the_same_key() {
    let server = Server::new(vec![Answer::Stalls, says("200 OK", "")]);
    let world = hooked(&format!("hooks: {{task_created: [{{name: web, http: '{}'}}]}}", server.url("/")));
    let mut child = world.command(&["task", "add", "One"]).stdout(Stdio::null()).spawn().unwrap();
    let first = server.asked();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.ok(&["doctor", "--settle"]), "1 hook was settled\n");
    let second = server.asked();
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    assert_eq!(outcomes(&world), ["web interrupted", "web success"]);
}

/// A settling command ends the processes that a hook left when it killed its parent.
#[test]
fn what_is_left_running_is_swept() {
    let world = hooked("hooks: {task_created: [{name: bad, command: sh bad.sh}]}");
    world.write("bad.sh", "echo $$ >pid; kill -9 $PPID; exec sleep 1000");
    assert_eq!(world.run(&["task", "add", "One"]).code, KILLED);
    world.run(&["doctor", "--settle"]);
    await_end(world.number_in("pid"));
    assert_eq!(outcomes(&world), ["bad interrupted"]);
}

/// Under a session the supervisor ends them, before any other command.
#[test]
fn a_gate_does_not_survive_the_loop() {
    let world = hooked("hooks: {stop: [{name: bad, command: sh bad.sh}]}");
    world.write("agent.sh", DONE);
    world.write("bad.sh", "echo $$ >pid; kill -9 $(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status); exec sleep 1000");
    assert_eq!(world.run(RUN).code, KILLED);
    await_end(world.number_in("pid"));
    world.write("bad.sh", "true");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(outcomes(&world), ["bad interrupted", "bad success"]);
}

#[test]
fn programs_of_a_gate_side_by_side_do_not_survive_the_loop() {
    let world = hooked("hooks: {stop: [{workflow: w}]}");
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
    world.ok(&["trust", "--yes"]);
    world.write("agent.sh", DONE);
    world.write("stay.sh", "echo $$ >pid.new; mv pid.new pid; exec sleep 1000");
    let killer =
        "until test -e pid; do :; done; kill -9 $(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status); exec sleep 1000";
    world.write("bad.sh", killer);
    assert_eq!(world.run(RUN).code, KILLED);
    await_end(world.number_in("pid"));
}

/// A hook of `task_created` that adds a task each time it runs.
#[test]
fn calls_within_calls_have_an_end() {
    let world = hooked(&format!("hooks: {{task_created: [{{name: more, command: {WINDLASS} task add More}}]}}"));
    let ran = world.run(&["task", "add", "One"]);
    assert_eq!(ran.code, 0, "{ran}");
    let tasks = world.lines(&["task", "list"]).len();
    assert_eq!(tasks, 4, "{ran}\n{}", world.ok(&["hooks", "history"]));
    world.ok(&["doctor"]);
}

/// The same with actions: no process is nested, and the depth limit ends it.
#[test]
fn actions_of_actions_have_an_end() {
    let world = hooked("hooks: {task_created: [{name: more, command: cat answer.json}]}");
    let create = json!({"type": "create_task", "payload": {"goal": "More"}});
    world.write("answer.json", json!({"actions": [create]}).to_string());
    let ran = world.run(&["task", "add", "One"]);
    assert_eq!(ran.code, 0, "{ran}");
    let tasks = world.lines(&["task", "list"]).len();
    assert!((2..=9).contains(&tasks), "{tasks}\n{ran}");
    assert_eq!(ran.stderr, "warning: hook `more` failed: a cascade of hooks may make 8 steps; the rest is refused\n");
    // With two at a time the limit on events ends it.
    world.write("answer.json", json!({"actions": [create, create, create, create]}).to_string());
    let before = world.lines(&["events"]).len();
    let ran = world.run(&["task", "add", "Two"]);
    assert_eq!(ran.code, 0, "{ran}");
    let created = world.lines(&["events", "--type", "task_created"]).len();
    assert!(created < 256, "{created}");
    assert!(world.lines(&["events"]).len() > before + 10);
    world.ok(&["doctor"]);
}

#[test]
fn a_loop_of_calls_has_an_end() {
    let config =
        "hooks: {task_created: [{name: many, command: sh many.sh, when: \"'first' in task.labels\", timeout: 100s}]}";
    let world = hooked(config);
    let many = format!("for n in $(seq 140); do {WINDLASS} task add $n >/dev/null 2>>refused || exit 9; done");
    world.write("many.sh", many.replace("$(seq 140)", &(1..=140).map(|n| format!("{n} ")).collect::<String>()));
    let ran = world.run(&["task", "add", "One", "--label", "first"]);
    assert_eq!(ran.code, 0, "{ran}");
    let tasks = world.lines(&["task", "list"]).len();
    assert!((100..=129).contains(&tasks), "{tasks}");
    assert_eq!(world.ending_of("many"), ("failure".to_owned(), "exit 9".to_owned()));
    let refused = fs::read_to_string(world.path("refused")).unwrap();
    assert!(refused.starts_with("error: a cascade of hooks may make 256 events; the rest is refused\n"), "{refused}");
}

/// A hook sees its task, and changes it: no lock is held meanwhile.
#[test]
fn a_hook_works_on_its_own_task() {
    let world = hooked("hooks: {task_created: [{name: work, command: sh work.sh}]}");
    let work = format!("{WINDLASS} task start {{}} && {WINDLASS} task complete {{}} --result done");
    world.write("work.sh", work.replace("{}", "$WINDLASS_TASK_ID"));
    world.ok(&["task", "add", "One"]);
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
    let events = world.lines(&["events", "--type", "task_completed"]);
    assert!(events[0]["metadata"]["depth"].as_u64().unwrap() > 0, "{}", events[0]);
}

/// Processes that a hook left running have no rights of the hook.
#[test]
fn call_with_id_of_ended_hook_has_no_cause() {
    let world = hooked("hooks: {task_created: [{name: tell, command: echo}]}");
    world.ok(&["task", "add", "One"]);
    let debt = world.data_of("hook_started")[0]["debt"].as_str().unwrap().to_owned();
    let ran = world.run_with(("WINDLASS_DEBT", &debt), &["task", "add", "Two"]);
    assert_eq!(ran.code, 0, "{ran}");
    let created = world.lines(&["events", "--type", "task_created"]).remove(1);
    assert_eq!(created["metadata"]["depth"], 0, "{created}");
    world.ok(&["trust", "--revoke"]);
    assert_eq!(world.run_with(("WINDLASS_DEBT", &debt), &["task", "add", "Three"]).code, 64);
    for nonsense in ["", "0-0", "99999999-0", "x", "1-2-3", "-1"] {
        assert_eq!(world.run_with(("WINDLASS_DEBT", nonsense), &["task", "add", "Three"]).code, 64, "{nonsense}");
    }
}

/// A session that dies in the hooks of its end has ended: no run resumes it, and `doctor` sees its pending hooks.
#[test]
fn the_end_of_a_session_is_settled() {
    let world = hooked("hooks: {session_end: [{name: bye, command: sh bye.sh, idempotent: true}]}");
    // Its parent is the supervisor, whose parent is the runner of the session.
    let killer = "test -e again || { touch again; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60; }; touch said";
    world.write("bye.sh", killer);
    let run = ["run", "x", "--agent", "command:echo '<promise>COMPLETE</promise>'"];
    assert_eq!(world.run(&run).code, KILLED);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("bye for event"), "{doctor}");
    assert_eq!(world.ok(&["doctor", "--settle"]), "1 hook was settled\n");
    assert!(world.has("said"));
    assert_eq!(world.run(&["doctor"]).code, 0);
}

/// A session that a hook runs is nested in that hook, and so on: at most three levels.
#[test]
fn runs_within_runs_come_to_an_end() {
    let world = hooked("hooks: {session_start: [{name: again, command: sh again.sh}]}");
    let again = format!("echo x >>ran; {WINDLASS} run deeper --fresh --agent command:true --max-iterations 1");
    world.write("again.sh", &again);
    world.run(&["run", "x", "--agent", "command:true", "--max-iterations", "1"]);
    let ran = fs::read_to_string(world.path("ran")).unwrap().lines().count();
    assert!((2..=4).contains(&ran), "{ran}");
}
