//! Workflows that are killed in the middle: finished steps do not run again, and repeatable steps may.

use std::fs;

use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;
use crate::test_workflows::{create_workflow_project, task_goals};

const KILLED_EXIT_CODE: i32 = 128 + 9;

/// Kills its parent the first time.
const KILLING_SCRIPT: &str = "echo x >>ran; test $(wc -l <ran) -ge 2 || kill -9 $PPID";

fn create_killed_workflow(fields: &str) -> TestWorld {
    let world = create_workflow_project(&format!(
        "  - {{id: before, type: create_task, config: {{goal: before}}, onSuccess: kill}}
  - {{id: kill, type: execute_command, config: {{command: sh, args: [kill.sh]{fields}}}, onSuccess: after, onFailure: sorry}}
  - {{id: after, type: create_task, config: {{goal: after}}}}
  - {{id: sorry, type: create_task, config: {{goal: '${{steps.kill.error}}'}}}}
"
    ));
    world.write("kill.sh", KILLING_SCRIPT);
    assert_eq!(world.run(&["workflow", "run", "w", "--task", "T1"]).code, KILLED_EXIT_CODE);
    world
}

#[test]
fn workflow_resumes_after_crash_from_last_finished_step() {
    let world = create_killed_workflow(", idempotent: true");
    assert_eq!(task_goals(&world), ["Mend the pump", "before"]);
    world.run_ok(&["doctor", "--settle"]);
    assert_eq!(task_goals(&world), ["Mend the pump", "before", "after"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\nx\n");
}

#[test]
fn interrupted_non_idempotent_program_is_recorded_as_failed() {
    let world = create_killed_workflow("");
    world.run_ok(&["doctor", "--settle"]);
    assert!(task_goals(&world)[2].starts_with("it was interrupted"), "{:?}", task_goals(&world));
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\n");
}

/// Runs `w` until it is killed, and resumes it.
fn settle_killed_workflow(world: &TestWorld) -> Vec<String> {
    world.write("kill.sh", KILLING_SCRIPT);
    assert_eq!(world.run(&["workflow", "run", "w", "--task", "T1"]).code, KILLED_EXIT_CODE);
    assert_ne!(world.run_ok(&["doctor", "--settle"]), "nothing was left behind\n");
    task_goals(world)
}

/// A step that changes only the graph was never done, and an idempotent one may run again. Later steps may ask for each.
#[test]
fn parallel_step_crash_fails_only_non_idempotent_programs() {
    let world = create_workflow_project(
        "  - id: all
    type: parallel
    onFailure: sorry
    config:
      steps:
        - {id: once, type: execute_command, config: {command: sh, args: [-c, 'echo x >>once; echo go >go'], storeAs: lost}}
        - {id: again, type: execute_command, config: {command: sh, args: [-c, 'test -e ran || cat go; . ./kill.sh; echo good'], idempotent: true, storeAs: who}}
        - {id: make, type: create_task, config: {goal: made}}
  - id: sorry
    type: create_task
    config: {goal: '${steps.make.success} ${steps.again.success} ${data.who} ${data.lost || 1} ${steps.once.success} ${steps.once.error}'}
",
    );
    world.make_pipe("go");
    let goals = settle_killed_workflow(&world);
    assert_eq!(goals[1], "made");
    assert!(goals[2].starts_with("true true good 1 false it was interrupted"), "{goals:?}");
    assert_eq!((world.read_file("once"), world.read_file("ran")), ("x\n".to_owned(), "x\nx\n".to_owned()));
}

/// With `waitForAll: false`, a step that may run again can be the successful one.
#[test]
fn parallel_any_step_reruns_idempotent_program_after_crash() {
    let any = |fields: &str| {
        create_workflow_project(&format!(
            "  - id: any
    type: parallel
    onSuccess: fine
    onFailure: sorry
    config:
      waitForAll: false
      steps:
        - {{id: refused, type: update_task, config: {{taskId: T9, action: start}}}}
        - {{id: kill, type: execute_command, config: {{command: sh, args: [kill.sh]{fields}}}}}
        - {{id: hang, type: execute_command, config: {{command: sh, args: [-c, 'echo x >>hung; exec sleep 1000']}}}}
  - {{id: fine, type: create_task, config: {{goal: 'fine: ${{steps.kill.success}} ${{steps.hang.error}}'}}}}
  - {{id: sorry, type: create_task, config: {{goal: 'sorry: ${{steps.refused.success}} ${{steps.kill.error}}'}}}}
"
        ))
    };
    let goals = settle_killed_workflow(&any(", idempotent: true"));
    assert!(goals[1].starts_with("fine: true it was interrupted"), "{goals:?}");
    let goals = settle_killed_workflow(&any(""));
    assert!(goals[1].starts_with("sorry: false it was interrupted"), "{goals:?}");
}

#[test]
fn one_that_was_changed_meanwhile_is_not_gone_on_with() {
    let world = create_killed_workflow(", idempotent: true");
    let file = world.path(".windlass/workflows/w.yaml");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("goal: after", "goal: hijacked")).unwrap();
    world.run_ok(&["trust", "--yes"]);
    let ran = world.run(&["doctor", "--settle"]);
    assert!(ran.stderr.contains("was changed after it had started"), "{ran}");
    assert_eq!(task_goals(&world), ["Mend the pump", "before"]);
}

/// A gate has no effects, so it runs again.
#[test]
fn interrupted_gate_workflow_runs_again_on_resume() {
    check_gate_after_kill("{id: a, type: execute_command, config: {command: sh, args: [kill.sh]}}");
}

#[test]
fn interrupted_parallel_gate_workflow_runs_again_on_resume() {
    check_gate_after_kill(
        "{id: all, type: parallel, config: {steps: [
            {id: a, type: execute_command, config: {command: sh, args: [kill.sh]}},
            {id: b, type: execute_command, config: {command: sh, args: [-c, exit 0]}},
        ]}}",
    );
}

#[track_caller]
fn check_gate_after_kill(step: &str) {
    let world = create_hook_project("hooks: {stop: [{workflow: w}]}\n");
    world.write(".windlass/workflows/w.yaml", format!("id: w\nsteps: [{step}]\n"));
    // In a session a supervisor is between them.
    world.write("kill.sh", KILLING_SCRIPT.replace("$PPID", "$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)"));
    world.run_ok(&["trust", "--yes"]);
    world.write("agent.sh", "echo '<promise>COMPLETE</promise>'");
    let agent = "command:sh agent.sh";
    assert_eq!(world.run(&["run", "Mend the pump", "--agent", agent]).code, KILLED_EXIT_CODE);
    let name = world.json_lines(&["session", "list", "--all"])[0]["session"].as_str().unwrap().to_owned();
    let how = format!("`windlass run --session {name} --agent '{agent}'` ");
    let doctor = world.run_ok(&["doctor"]);
    assert!(doctor.contains(&format!("interrupted: {name}")) && doctor.contains(&how), "{doctor}");
    let settled = world.run_ok(&["doctor", "--settle"]);
    assert!(settled.contains(&how) && !settled.contains("nothing was left behind"), "{settled}");
    let ran = world.run(&["run", "--session", &name, "--agent", agent]);
    assert!(ran.code == 0 && ran.stdout.contains("complete after one iteration"), "{ran}");
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\nx\n");
}

/// A store can come with a repository, and no person has reviewed its content.
#[test]
fn untrusted_interrupted_workflow_is_not_resumed() {
    let world = TestWorld::new();
    let _ = fs::remove_file(world.path(".windlass/config.yaml"));
    fs::create_dir_all(world.path(".windlass/workflows")).unwrap();
    let steps = "steps:
  - {id: a, type: execute_command, config: {command: sh, args: [kill.sh]}, onFailure: b}
  - {id: b, type: execute_command, config: {command: touch, args: [went-on]}}
";
    world.write(".windlass/workflows/w.yaml", steps);
    world.write("kill.sh", KILLING_SCRIPT);
    assert_eq!(world.run(&["--trust", "workflow", "run", "w"]).code, KILLED_EXIT_CODE);
    let words = ["run", "Mend the pump", "--agent", "command:echo '<promise>COMPLETE</promise>'"];
    let ran = world.run(&words);
    assert!(!world.path("went-on").exists(), "{ran}");
    world.run_ok(&["--trust", "doctor", "--settle"]);
    assert!(world.path("went-on").exists(), "a person has said so");
}
