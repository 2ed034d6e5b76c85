//! Workflows that are killed in the middle: finished steps do not run again, and repeatable steps may.

use std::fs;

use crate::support::World;
use crate::support::hooked::hooked;
use crate::test_workflows::{goals, with};

const KILLED: i32 = 128 + 9;

/// Kills its parent the first time.
const KILLER: &str = "echo x >>ran; test $(wc -l <ran) -ge 2 || kill -9 $PPID";

fn killed(fields: &str) -> World {
    let world = with(&format!(
        "  - {{id: before, type: create_task, config: {{goal: before}}, onSuccess: kill}}
  - {{id: kill, type: execute_command, config: {{command: sh, args: [kill.sh]{fields}}}, onSuccess: after, onFailure: sorry}}
  - {{id: after, type: create_task, config: {{goal: after}}}}
  - {{id: sorry, type: create_task, config: {{goal: '${{steps.kill.error}}'}}}}
"
    ));
    world.write("kill.sh", KILLER);
    assert_eq!(world.run(&["workflow", "run", "w", "--task", "T1"]).code, KILLED);
    world
}

#[test]
fn after_a_crash_it_goes_on_from_its_last_finished_step() {
    let world = killed(", idempotent: true");
    assert_eq!(goals(&world), ["Mend the pump", "before"]);
    world.ok(&["doctor", "--settle"]);
    assert_eq!(goals(&world), ["Mend the pump", "before", "after"]);
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\nx\n");
}

#[test]
fn a_program_that_may_not_run_again_has_failed() {
    let world = killed("");
    world.ok(&["doctor", "--settle"]);
    assert!(goals(&world)[2].starts_with("it was interrupted"), "{:?}", goals(&world));
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\n");
}

/// Runs `w` until it is killed, and resumes it.
fn killed_and_settled(world: &World) -> Vec<String> {
    world.write("kill.sh", KILLER);
    assert_eq!(world.run(&["workflow", "run", "w", "--task", "T1"]).code, KILLED);
    assert_ne!(world.ok(&["doctor", "--settle"]), "nothing was left behind\n");
    goals(world)
}

/// A step that changes only the graph was never done, and an idempotent one may run again. Later steps may ask for each.
#[test]
fn of_steps_side_by_side_only_programs_have_failed_that_may_not_run_again() {
    let world = with(
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
    let goals = killed_and_settled(&world);
    assert_eq!(goals[1], "made");
    assert!(goals[2].starts_with("true true good 1 false it was interrupted"), "{goals:?}");
    assert_eq!((world.read("once"), world.read("ran")), ("x\n".to_owned(), "x\nx\n".to_owned()));
}

/// With `waitForAll: false`, a step that may run again can be the successful one.
#[test]
fn where_one_is_enough_what_may_run_again_does() {
    let any = |fields: &str| {
        with(&format!(
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
    let goals = killed_and_settled(&any(", idempotent: true"));
    assert!(goals[1].starts_with("fine: true it was interrupted"), "{goals:?}");
    let goals = killed_and_settled(&any(""));
    assert!(goals[1].starts_with("sorry: false it was interrupted"), "{goals:?}");
}

#[test]
fn one_that_was_changed_meanwhile_is_not_gone_on_with() {
    let world = killed(", idempotent: true");
    let file = world.path(".windlass/workflows/w.yaml");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("goal: after", "goal: hijacked")).unwrap();
    world.ok(&["trust", "--yes"]);
    let ran = world.run(&["doctor", "--settle"]);
    assert!(ran.stderr.contains("was changed after it had started"), "{ran}");
    assert_eq!(goals(&world), ["Mend the pump", "before"]);
}

/// A gate has no effects, so it runs again.
#[test]
fn a_gate_that_was_interrupted_runs_again() {
    looks_again("{id: a, type: execute_command, config: {command: sh, args: [kill.sh]}}");
}

#[test]
fn a_gate_of_several_programs_that_was_interrupted_runs_them_again() {
    looks_again(
        "{id: all, type: parallel, config: {steps: [
            {id: a, type: execute_command, config: {command: sh, args: [kill.sh]}},
            {id: b, type: execute_command, config: {command: sh, args: [-c, exit 0]}},
        ]}}",
    );
}

#[track_caller]
fn looks_again(step: &str) {
    let world = hooked("hooks: {stop: [{workflow: w}]}\n");
    world.write(".windlass/workflows/w.yaml", format!("id: w\nsteps: [{step}]\n"));
    // In a session a supervisor is between them.
    world.write("kill.sh", KILLER.replace("$PPID", "$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)"));
    world.ok(&["trust", "--yes"]);
    world.write("agent.sh", "echo '<promise>COMPLETE</promise>'");
    let agent = "command:sh agent.sh";
    assert_eq!(world.run(&["run", "Mend the pump", "--agent", agent]).code, KILLED);
    let name = world.lines(&["session", "list", "--all"])[0]["session"].as_str().unwrap().to_owned();
    let how = format!("`windlass run --session {name} --agent '{agent}'` ");
    let doctor = world.ok(&["doctor"]);
    assert!(doctor.contains(&format!("interrupted: {name}")) && doctor.contains(&how), "{doctor}");
    let settled = world.ok(&["doctor", "--settle"]);
    assert!(settled.contains(&how) && !settled.contains("nothing was left behind"), "{settled}");
    let ran = world.run(&["run", "--session", &name, "--agent", agent]);
    assert!(ran.code == 0 && ran.stdout.contains("complete after one iteration"), "{ran}");
    assert_eq!(fs::read_to_string(world.path("ran")).unwrap(), "x\nx\n");
}

/// A store can come with a repository, and no person has reviewed its content.
#[test]
fn untrusted_interrupted_workflow_is_not_resumed() {
    let world = World::new();
    let _ = fs::remove_file(world.path(".windlass/config.yaml"));
    fs::create_dir_all(world.path(".windlass/workflows")).unwrap();
    let steps = "steps:
  - {id: a, type: execute_command, config: {command: sh, args: [kill.sh]}, onFailure: b}
  - {id: b, type: execute_command, config: {command: touch, args: [went-on]}}
";
    world.write(".windlass/workflows/w.yaml", steps);
    world.write("kill.sh", KILLER);
    assert_eq!(world.run(&["--trust", "workflow", "run", "w"]).code, KILLED);
    let words = ["run", "Mend the pump", "--agent", "command:echo '<promise>COMPLETE</promise>'"];
    let ran = world.run(&words);
    assert!(!world.path("went-on").exists(), "{ran}");
    world.ok(&["--trust", "doctor", "--settle"]);
    assert!(world.path("went-on").exists(), "a person has said so");
}
