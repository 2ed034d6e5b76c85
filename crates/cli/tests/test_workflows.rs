//! Workflows as people write and run them: from files, by hooks and by actions.

use std::fs;

use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;

/// A project with a task and a workflow `w` of these steps.
pub fn create_workflow_project(steps: &str) -> TestWorld {
    let world = create_hook_project("{}");
    world.write(".windlass/workflows/w.yaml", format!("id: w\nsteps:\n{steps}"));
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "Mend the pump", "--label", "agent", "--label", "pump", "--priority", "0"]);
    world
}

/// Runs `w` about the task, and returns the result of each step.
fn run(world: &TestWorld) -> Vec<String> {
    let ran = world.run(&["workflow", "run", "w", "--task", "T1", "--json"]);
    let line = |line: &str| {
        let step: Value = serde_json::from_str(line).unwrap();
        // A failure appears once more as that of the command.
        step.get("success")?;
        let said = step["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
        let word = if step["success"] == true { "ok" } else { "failed" };
        Some(format!("{} {word}{said}", step["stepId"].as_str().unwrap_or("=")))
    };
    ran.stdout.lines().filter_map(line).collect()
}

#[test]
fn values_keep_their_types_and_lists_are_spliced() {
    let world = create_workflow_project(
        "  - id: make
    type: create_task
    config:
      goal: 'Review: ${task.goal}'
      deliverables: ['${task.labels}', a report]
      labels: [review, '${task.labels}']
      priority: '${task.priority}'
      parentTaskId: {fromContext: task.id}
    onSuccess: hold
  - id: hold
    type: update_task
    config: {taskId: '${steps.make.data.taskId}', action: block, payload: {reason: 'wait for ${task.id}'}}
",
    );
    assert_eq!(run(&world), ["make ok", "hold ok", "= ok"]);
    let made = world.json(&["task", "show", "T2"]);
    assert_eq!(made["labels"], json!(["review", "agent", "pump"]));
    assert_eq!(made["deliverables"], json!(["agent", "pump", "a report"]));
    assert_eq!((&made["priority"], &made["state"]), (&json!(0), &json!("blocked")));
    assert_eq!(made["blocked"]["reason"], "wait for T1");
}

#[test]
fn failed_step_follows_on_failure_or_fails_workflow() {
    let world = create_workflow_project(
        "  - {id: a, type: execute_command, config: {command: sh, args: [-c, exit 1]}, onFailure: b}
  - {id: b, type: execute_command, config: {command: no-such-program-here}, onFailure: c}
  - {id: c, type: execute_command, config: {command: sh, args: [-c, 'echo why >&2; exit 7']}}
",
    );
    let expected = [
        "a failed: exit 1",
        "b failed: cannot find the program no-such-program-here",
        "c failed: exit 7: why",
        "= failed: `c`: exit 7: why",
    ];
    assert_eq!(run(&world), expected);
    // Why it failed is told once.
    let ran = world.run(&["workflow", "run", "w"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: the workflow has failed at `c`\n"), "{ran}");
    assert_eq!(ran.stdout.matches("exit 7: why").count(), 1, "{ran}");
}

#[test]
fn program_output_is_stored_and_arguments_bypass_shell() {
    let world = create_workflow_project(
        "  - {id: a, type: execute_command, config: {command: printf, args: ['{\"n\": [1, 2]}'], storeAs: found}, onSuccess: b}
  - {id: b, type: execute_command, config: {command: printf, args: ['%s', '$(touch hurt); ${task.goal} `touch hurt`'], storeAs: text}, onSuccess: c}
  - {id: c, type: create_task, config: {goal: '${data.text}', labels: ['n${data.found.n[1]}', 'of ${context.found.n | length}']}}
",
    );
    world.run_ok(&["task", "update", "T1", "--goal", "x; touch hurt"]);
    assert_eq!(run(&world), ["a ok", "b ok", "c ok", "= ok"]);
    let made = world.json(&["task", "show", "T2"]);
    assert_eq!(made["goal"], "$(touch hurt); x; touch hurt `touch hurt`");
    assert_eq!(made["labels"], json!(["n2", "of 2"]));
    assert!(!world.path("hurt").exists());
}

#[test]
fn several_run_side_by_side() {
    // Each waits for the other: in sequence they would never end.
    let world = create_workflow_project(
        "  - id: both
    type: parallel
    config:
      steps:
        - {id: left, type: execute_command, config: {command: sh, args: [-c, 'echo here > l; cat r'], timeout: 10s}}
        - {id: right, type: execute_command, config: {command: sh, args: [-c, 'cat l; echo here > r'], timeout: 10s}}
        - {id: make, type: create_task, config: {goal: more}}
",
    );
    world.make_pipe("l");
    world.make_pipe("r");
    assert_eq!(run(&world), ["left ok", "right ok", "make ok", "both ok", "= ok"]);
}

#[test]
fn parallel_any_step_cancels_running_steps_after_first_success() {
    let world = create_workflow_project(
        "  - id: any
    type: parallel
    config:
      waitForAll: false
      steps:
        - {id: quick, type: execute_command, config: {command: sh, args: [-c, exit 0]}}
        - {id: slow, type: execute_command, config: {command: sh, args: [-c, exec sleep 1000]}}
",
    );
    assert_eq!(run(&world), ["quick ok", "slow failed: cancelled", "any ok", "= ok"]);
}

#[test]
fn hanging_program_is_terminated_and_flooding_output_is_truncated() {
    let world = create_workflow_project(
        "  - {id: a, type: execute_command, config: {command: sleep, args: [1000], timeout: 200ms}, onFailure: b}
  - {id: b, type: execute_command, config: {command: sh, args: [-c, 'head -c 100000000 /dev/zero | tr \"\\\\0\" x'], storeAs: much}}
",
    );
    assert_eq!(run(&world), ["a failed: timed out after 200 ms", "b ok", "= ok"]);
    let log = fs::metadata(world.path(".windlass/windlass.db")).unwrap().len();
    assert!(log < 8 * 1024 * 1024, "{log} bytes of log");
}

#[test]
fn hooks_and_actions_begin_them_and_they_know_what_for() {
    let world = create_hook_project(
        "hooks:
  task_started: [{workflow: w}]
  task_blocked:
    - command: |
        echo '{\"actions\": [{\"type\": \"execute_workflow\", \"payload\": {\"workflowId\": \"w\", \"context\": {\"who\": \"ann\"}}}]}'
",
    );
    let step = "{id: a, type: create_task, config: {goal: \"${task.id} ${event.type} ${context.who || 'unknown'}\"}}";
    world.write(
        ".windlass/workflows/w.json",
        format!(
            r#"{{"id": "w", "steps": [{}]}}"#,
            step.replace(
                "{id: a, type: create_task, config: {goal: ",
                r#"{"id": "a", "type": "create_task", "config": {"goal": "#
            )
        ),
    );
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "One"]);
    world.run_ok(&["task", "start", "T1"]);
    world.run_ok(&["task", "block", "T1", "--reason", "no"]);
    let goal = |id: &str| world.json(&["task", "show", id])["goal"].clone();
    assert_eq!(goal("T2"), "T1 task_started unknown");
    assert_eq!(goal("T3"), "T1 task_blocked ann");
}

pub fn task_goals(world: &TestWorld) -> Vec<String> {
    world.json_lines(&["task", "list"]).iter().map(|task| task["goal"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn value_stored_in_parallel_step_survives_failure_of_sibling() {
    let world = create_workflow_project(
        "  - id: both
    type: parallel
    onFailure: sorry
    config:
      steps:
        - {id: bad, type: execute_command, config: {command: sh, args: [-c, exit 1], storeAs: nothing}}
        - {id: good, type: execute_command, config: {command: sh, args: [-c, echo good], storeAs: who}}
  - {id: sorry, type: create_task, config: {goal: \"${data.who} ${data.nothing || 'none'}\"}}
",
    );
    assert_eq!(run(&world), ["bad failed: exit 1", "good ok", "both failed: `bad`: exit 1", "sorry ok", "= ok"]);
    assert_eq!(task_goals(&world)[1], "good none");
}

#[test]
fn step_fails_when_its_output_cannot_be_stored() {
    let step = |print: &str| {
        format!(
            "  - {{id: a, type: execute_command, config: {{command: sh, args: [-c, '{print}'], storeAs: kept}}, onFailure: b}}
  - {{id: b, type: noop}}
"
        )
    };
    let deep = create_workflow_project(&step("printf %070d | tr 0 [; printf %070d | tr 0 ]"));
    let told = run(&deep);
    assert!(told[0].starts_with("a failed: the stored value is nested more than 64 deep"), "{told:?}");
    assert_eq!(told[1..], ["b ok", "= ok"]);
    let told = run(&create_workflow_project(&step("echo [; printf %0100000d 1 | tr 0 1; echo ]")));
    assert_eq!(told[0], "a failed: it printed 100004 bytes of JSON, and at most 49152 can be stored");
    // Output that only starts like JSON is text, and long text is cut.
    assert_eq!(run(&create_workflow_project(&step("yes [warning] | head -n 9999")))[0], "a ok");
}

#[test]
fn programs_find_what_hooks_are_told_in_a_file() {
    let world = create_workflow_project(
        "  - {id: a, type: execute_command, config: {command: sh, args: [-c, 'cp $WINDLASS_PAYLOAD_FILE told.json']}}\n",
    );
    assert_eq!(run(&world), ["a ok", "= ok"]);
    assert!(world.read_file("told.json").contains("\"goal\":\"Mend the pump\""), "{}", world.read_file("told.json"));
}

#[test]
fn untrusted_workflow_does_not_run() {
    let world = create_workflow_project("  - {id: a, type: execute_command, config: {command: touch, args: [hurt]}}\n");
    world.write(
        ".windlass/workflows/w.yaml",
        "id: w\nsteps: [{id: a, type: execute_command, config: {command: touch, args: [worse]}}]\n",
    );
    let ran = world.run(&["workflow", "run", "w"]);
    assert_ne!(ran.code, 0, "{ran}");
    assert!(!world.path("worse").exists());
}

#[test]
fn workflow_context_must_be_object_within_size_limit() {
    let world = create_workflow_project("  - {id: a, type: create_task, config: {goal: '${context.what}'}}\n");
    let ran = world.run_with_input(&["workflow", "run", "w", "--context", "-"], b"[1]");
    assert!(ran.stderr.contains("is not a JSON object"), "{ran}");
    let missing = world.expect_failure(&["workflow", "run", "w", "--context", "missing.json"]);
    assert!(missing.ends_with("[1 not_found]"), "{missing}");
    let ran = world.run_with_input(&["workflow", "run", "w", "--context", "-"], " ".repeat(1024 * 1024 + 1).as_bytes());
    assert!(ran.stderr.contains("hint: give the name of a file instead, which a program of a step reads"), "{ran}");
    let ran = world.run_with_input(&["workflow", "run", "w", "--context", "-"], br#"{"what": "This"}"#);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(task_goals(&world), ["Mend the pump", "This"]);
    let ran = world.run(&["workflow", "run", "w"]);
    assert!(ran.stderr.contains("undefined") || ran.stdout.contains("undefined"), "{ran}");
}

#[test]
fn gate_workflow_feeds_output_of_failed_program_to_agent() {
    let world = create_hook_project("hooks: {stop: [{workflow: w}]}\n");
    world.write(
        ".windlass/workflows/w.yaml",
        "id: w
steps:
  - id: checks
    type: parallel
    config:
      steps:
        - {id: pump, type: execute_command, config: {command: sh, args: [-c, 'echo valve 3; echo the pump leaks >&2; test -e mended']}}
        - {id: door, type: execute_command, config: {command: sh, args: [-c, exit 0]}}
",
    );
    world.run_ok(&["trust", "--yes"]);
    let agent = "command:if grep -q 'valve 3'; then touch mended; fi; echo '<promise>COMPLETE</promise>'";
    let ran = world.run(&["run", "Mend the pump", "--agent", agent]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("stop[0] blocks: `checks`: `pump`: exit 1: the pump leaks\n"), "{ran}");
}

#[test]
fn failed_program_output_is_readable_by_next_step() {
    let world = create_workflow_project(
        "  - {id: a, type: execute_command, config: {command: sh, args: [-c, 'echo out; echo err >&2; exit 3']}, onFailure: b}
  - {id: b, type: create_task, config: {goal: '${steps.a.data.exitCode} ${steps.a.data.stdout} ${steps.a.data.stderr}'}}
",
    );
    assert_eq!(run(&world), ["a failed: exit 3: err", "b ok", "= ok"]);
    assert_eq!(world.json(&["task", "show", "T2"])["goal"], "3 out\n err\n");
}

#[test]
fn stale_report_is_created_for_one_task_and_not_duplicated() {
    let world = create_hook_project("{}");
    let report = |world: &TestWorld| {
        let ran =
            world.run_with_input(&["workflow", "run", "stale-task-report", "--context", "-"], br#"{"days": "0"}"#);
        assert_eq!(ran.code, 0, "{ran}");
        world.json_lines(&["task", "list", "--label", "stale-report"]).len()
    };
    assert_eq!(report(&world), 0);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "block", "T1", "--reason", "which one?"]);
    assert_eq!(report(&world), 1);
    assert!(world.json(&["task", "show", "T2"])["body"].as_str().unwrap().contains("which one?"));
    // While it is open, it is the only one.
    assert_eq!(report(&world), 1);
    world.run_ok(&["task", "block", "T2", "--reason", "later"]);
    assert_eq!(report(&world), 1);
    world.run_ok(&["task", "unblock", "T2"]);
    world.run_ok(&["task", "complete", "T2"]);
    assert_eq!(report(&world), 1);
    assert_eq!(world.json(&["task", "show", "T3"])["labels"], json!(["stale-report"]));
}

/// Only completed work is reported as completed.
#[test]
fn notification_is_sent_only_for_completed_critical_task() {
    let world = create_hook_project("{}");
    let tell = |task: &str| {
        let words = ["workflow", "run", "notify-critical-completion", "--task", task, "--context", "-"];
        let ran = world.run_with_input(&words, br#"{"command": "./tell.sh"}"#);
        assert_eq!(ran.code, 0, "{ran}");
        world.read_file("told")
    };
    let script = world.write("tell.sh", "#!/bin/sh\necho \"$@\" >>told\n");
    fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.run_ok(&["task", "add", "Put out the fire", "--priority", "0"]);
    world.run_ok(&["task", "add", "Sweep"]);
    assert_eq!(tell("T1"), "");
    world.run_ok(&["task", "complete", "T1"]);
    world.run_ok(&["task", "complete", "T2"]);
    assert_eq!(tell("T2"), "");
    assert_eq!(tell("T1"), "T1 is completed Put out the fire\n");
}

/// The project's path is available to every condition and step.
#[test]
fn conditions_and_steps_know_where_the_project_lies() {
    let world = create_hook_project(
        "hooks:
  task_started:
    - {name: never, command: touch hurt, when: \"project_dir == ''\"}
    - {workflow: w, when: \"project_dir is startingwith('/')\", context: {where: '${project_dir}'}}
",
    );
    let goal = "'${project_dir} ${context.where} ${context.project_dir}'";
    world.write(
        ".windlass/workflows/w.yaml",
        format!("steps: [{{id: a, type: create_task, config: {{goal: {goal}}}}}]\n"),
    );
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "One"]);
    world.run_ok(&["task", "start", "T1"]);
    let root = fs::canonicalize(world.path("")).unwrap().display().to_string();
    assert_eq!(task_goals(&world)[1], format!("{root} {root} {root}"));
    assert!(!world.path("hurt").exists());
    let tried = world.run_ok(&["hooks", "test", "task_started", "--run"]);
    assert!(
        tried.contains("does not hold") && tried.contains(&format!("it would be given {{\"where\":\"{root}\"}}")),
        "{tried}"
    );
}

/// A trial checks the context as a run does.
#[test]
fn hook_trial_reports_reserved_name_in_workflow_context() {
    let world = create_hook_project("hooks: {task_started: [{workflow: w, context: {data: '${goal}'}}]}\n");
    world.write(".windlass/workflows/w.yaml", "steps: [{id: a, type: noop}]\n");
    world.run_ok(&["trust", "--yes"]);
    let tried = world.run_ok(&["hooks", "test", "task_started", "--run"]);
    assert!(tried.contains("failure: `context` names `data`"), "{tried}");
}

#[test]
fn refused_action_error_names_invalid_field() {
    let world = create_workflow_project(
        "  - {id: a, type: execute_command, config: {command: sh, args: [-c, echo 7], storeAs: n}, onSuccess: b}
  - {id: b, type: create_task, config: {goal: '${data.n}'}, onFailure: c}
  - {id: c, type: create_task, config: {goal: x, labels: ['${data.n}']}, onFailure: d}
  - {id: d, type: create_task, config: {goal: x, parentTaskId: '${task.body}'}, onFailure: e}
  - {id: e, type: create_task, config: {goal: x, depends: ['${data.n | string}']}, onFailure: f}
  - {id: f, type: create_task, config: {goal: '${data.n | string}'}}
",
    );
    let expected = [
        "a ok",
        "b failed: the action cannot be read: `goal`: invalid type: integer `7`, expected a string",
        "c failed: the action cannot be read: `labels[0]`: invalid type: integer `7`, expected a string",
        "d failed: the action cannot be read: `parent_task_id`: `` is not a task id such as T12",
        "e failed: the action cannot be read: `depends[0]`: `7` is not a task id such as T12",
        "f ok",
        "= ok",
    ];
    assert_eq!(run(&world), expected);
}
