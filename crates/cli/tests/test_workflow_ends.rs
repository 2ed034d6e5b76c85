//! Workflows that fail, that take long, and that get a context.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;

/// A project with these hooks, and with a workflow `w` of these steps.
fn create_workflow_project(hooks: &str, steps: &str) -> TestWorld {
    let world = create_hook_project(hooks);
    world.write(".windlass/workflows/w.yaml", format!("id: w\nsteps:\n{steps}"));
    world.run_ok(&["trust", "--yes"]);
    world
}

fn task_goals(world: &TestWorld) -> Vec<String> {
    world.json_lines(&["task", "list"]).iter().map(|task| task["goal"].as_str().unwrap().to_owned()).collect()
}

/// Each step stores a value for the hooks of the following ones.
#[test]
fn task_created_hooks_do_not_exhaust_workflow_cascade_share() {
    let step = |number: u32| {
        let next = if number < 40 { format!(", onSuccess: s{}", number + 1) } else { String::new() };
        format!("  - {{id: s{number}, type: create_task, config: {{goal: 'Mend pump {number}'}}{next}}}\n")
    };
    let steps: String = (1..=40).map(step).collect();
    let world = create_workflow_project(
        "version: 1\nhooks:\n  task_created:\n    - command: echo {{task_id}} >> seen.txt\n",
        &steps,
    );
    world.run_ok(&["workflow", "run", "w"]);
    assert_eq!(task_goals(&world).len(), 40);
    assert_eq!(world.read_file("seen.txt").lines().count(), 40);
}

const AGENT: &str = "command:echo '<promise>COMPLETE</promise>'";

/// It counts as `on_failure` says, like a failed command.
#[test]
fn gate_workflow_malfunction_follows_on_failure_like_failed_command() {
    let program = |words: &str| format!("  - {{id: a, type: execute_command, config: {{{words}}}}}\n");
    let malfunctions = [
        (program("command: ./no-such-program"), "", "no-such-program"),
        (program("command: sleep, args: [1000], timeout: 100ms"), "", "timed out after 100 ms"),
        (
            program("command: sleep, args: [1000]"),
            ", timeout: 100ms",
            "timed out after 100 ms, with all of the workflow",
        ),
        (program("command: sh, args: [-c, 'kill -9 $$']"), "", "ended by signal 9"),
        (
            "  - {id: a, type: condition, config: {predicate: context.absent.name > 1}}\n".to_owned(),
            "",
            "undefined value",
        ),
        ("  - {id: a, type: create_task, config: {goal: '${task.labels | join}'}}\n".to_owned(), "", "goal"),
    ];
    let ended = |world: &TestWorld| world.run(&["run", "Mend the pump", "--agent", AGENT, "--max-iterations", "2"]);
    for on_failure in ["ignore", "block", "escalate"] {
        let hook = |runs: &str| format!("hooks: {{stop: [{{{runs}, on_failure: {on_failure}}}]}}\n");
        let command = ended(&create_workflow_project(&hook("command: exit 1"), "  - {id: a, type: noop}\n"));
        for (steps, timeout, why) in &malfunctions {
            let ran = ended(&create_workflow_project(&hook(&format!("workflow: w{timeout}")), steps));
            assert_eq!(ran.code, command.code, "{on_failure} of {steps}: {ran}{command}");
            assert!(format!("{ran}").contains(why), "{why}: {ran}");
            assert_eq!(
                ran.stdout.contains("stop[0] failed"),
                command.stdout.contains("stop[0] failed"),
                "{ran}{command}"
            );
        }
    }
    let no = create_workflow_project(
        "hooks: {stop: [{workflow: w, on_failure: escalate}]}\n",
        &program("command: sh, args: [-c, test -e ok || exit 3]"),
    );
    let agent = "command:grep -q 'exit 3' && touch ok; echo '<promise>COMPLETE</promise>'";
    let ran = no.run(&["run", "Mend the pump", "--agent", agent]);
    assert!(ran.code == 0 && ran.stdout.contains("stop[0] blocks"), "an exit is a verdict: {ran}");
    assert!(!ran.stdout.contains("hooks 0 ms"), "{ran}");
}

#[test]
fn workflow_context_overrides_builtin_names_and_refuses_reserved_ones() {
    let world = create_workflow_project(
        "{}\n",
        "  - {id: a, type: create_task, config: {goal: '${context.goal} ${context.error.code} ${context.branch_name}'}}\n",
    );
    let given = br#"{"goal": "Mend it", "error": {"code": 3}, "branch_name": "pump"}"#;
    let ran = world.run_with_input(&["workflow", "run", "w", "--context", "-"], given);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(task_goals(&world), ["Mend it 3 pump"]);
    for (given, expected) in [
        (&br#"{"data": 1}"#[..], "names `data`, where the steps store their values"),
        (br#"{"steps": {}}"#, "names `steps`, and `context.steps` belongs to the workflow"),
    ] {
        let ran = world.run_with_input(&["workflow", "run", "w", "--context", "-"], given);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{ran}");
    }
}

#[test]
fn workflow_accepts_event_json_as_context() {
    let world = create_workflow_project(
        "{}\n",
        "  - {id: a, type: execute_command, config: {command: /bin/echo, args: [it], storeAs: what}, onSuccess: b}
  - {id: b, type: create_task, config: {goal: '${context.data.goal} ${context.data.what} for ${context.metadata.triggeredBy}'}}\n",
    );
    let event = br#"{"type": "task_created", "nodeId": "T9", "data": {"goal": "Mend", "what": "nothing"}, "metadata": {"triggeredBy": "ada"}}"#;
    let ran = world.run_with_input(&["workflow", "run", "w", "--context", "-", "--json"], event);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(task_goals(&world), ["Mend it for ada"], "what a step stores comes before what was given");
    let end: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert!(end["success"] == true && end["durationMs"].is_u64(), "{ran}");
}

/// A file as other programs of this format write it.
#[test]
fn workflow_json_of_other_programs_runs_unchanged() {
    let world = create_workflow_project("{}\n", "  - {id: a, type: noop}\n");
    let review = json!({"steps": [
        {"id": "look", "type": "condition", "config": {
            "predicate": "context.task.labels.includes('robot') && !context.task.labels.includes('review')",
            "onTrue": "make", "onFalse": "end"}},
        {"id": "make", "type": "create_task", "onSuccess": "tell", "config": {
            "goal": "Look at: ${context.task.goal}", "labels": ["review", "${context.task.labels}"],
            "priority": "${context.task.priority || 3}", "parentTaskId": "${context.event.nodeId}"}},
        {"id": "tell", "type": "create_task", "onSuccess": "end", "config": {
            "goal": "made ${context.steps.make.data.taskId} by ${context.event.metadata.triggeredBy}"}},
        {"id": "end", "type": "noop"},
    ]});
    world.write(".windlass/workflows/review.json", review.to_string());
    world.write(".windlass/config.yaml", "hooks: {task_completed: [{workflow: review}]}\n");
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "Paint the door", "--label", "robot", "--priority", "0"]);
    world.run_ok(&["task", "complete", "T1", "--force"]);
    let made = world.json(&["task", "show", "T2"]);
    assert_eq!(
        (&made["goal"], &made["priority"], &made["labels"]),
        (&json!("Look at: Paint the door"), &json!(3), &json!(["review", "robot"]))
    );
    let told = world.json(&["task", "show", "T3"]);
    assert!(told["goal"].as_str().is_some_and(|goal| goal.starts_with("made T2 by ")), "{told}");
    world.run_ok(&["task", "complete", "T2", "--force"]);
    assert_eq!(task_goals(&world).len(), 1, "a review is not reviewed");
}

#[test]
fn hook_context_reaches_workflow_and_invalid_fields_are_refused() {
    let hooks = "hooks:
  task_created:
    - workflow: w
      when: \"'w' not in task.labels\"
      context: {who: ann, about: '${task.goal}', labels: ['${task.labels}', w]}
";
    let step = "  - {id: a, type: create_task, config: {goal: '${context.who}: ${context.about}', labels: '${context.labels}'}}\n";
    let world = create_workflow_project(hooks, step);
    let tried = world.run_ok(&["hooks", "test", "--run", "task_created"]);
    assert!(tried.contains(r#"it would be given {"about":""#), "{tried}");
    world.run_ok(&["task", "add", "Mend the pump", "--label", "agent"]);
    assert_eq!(task_goals(&world), ["Mend the pump", "ann: Mend the pump"]);
    assert_eq!(world.json(&["task", "show", "T2"])["labels"], json!(["agent", "w"]));

    for (hook, expected) in [
        ("{workflow: w, context: {steps: 1}}", "`context.steps` belongs to the workflow"),
        ("{workflow: w, context: {a: 1, who: '${taks.goal}'}}", "config.yaml:2:62\n"),
        ("{workflow: w, context: {data: 1}}", "names `data`, where the steps store"),
        ("{workflow: w, retry: {max: 2}}", "a workflow is not retried"),
        ("{workflow: w, events: [stop], retry: {max: 2}}", "config.yaml:2:61"),
        ("{command: ./x, context: {who: 1}}", "this hook runs none"),
        ("{workflow: w, pipe_output: true}", "no output that could be piped"),
        ("{workflow: w, feedback: 'Do it again'}", "defines by itself what the agent gets"),
    ] {
        world.write(".windlass/config.yaml", format!("version: 1\nhooks: {{task_created: [{hook}]}}\n"));
        let ran = world.run(&["config", "check"]);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{hook}: {ran}");
    }
}

/// `idempotent` of the hook applies to every program of it.
#[test]
fn workflow_program_reruns_after_crash_only_if_hook_is_idempotent() {
    for (fields, ran) in [(", idempotent: true", "x\nx\n"), ("", "x\n")] {
        let hooks = format!("hooks: {{task_created: [{{workflow: w{fields}}}]}}\n");
        let world = create_workflow_project(
            &hooks,
            "  - {id: a, type: execute_command, config: {command: sh, args: [kill.sh]}}\n",
        );
        world.write("kill.sh", "echo x >>ran; test $(wc -l <ran) -ge 2 || kill -9 $PPID");
        assert_eq!(world.run(&["task", "add", "Mend the pump"]).code, 128 + 9);
        world.run(&["doctor", "--settle"]);
        assert_eq!(std::fs::read_to_string(world.path("ran")).unwrap(), ran);
    }
}

#[test]
fn parallel_any_step_skips_remaining_steps_after_first_success() {
    let world = create_workflow_project(
        "{}\n",
        "  - id: any
    type: parallel
    config:
      waitForAll: false
      steps:
        - {id: program, type: execute_command, config: {command: touch, args: [started]}}
        - {id: refused, type: create_task, config: {goal: '${context.nothing | default(\"\")}'}}
        - {id: make, type: create_task, config: {goal: '${context.made | default(\"\")}'}}
        - {id: more, type: create_task, config: {goal: '${context.made | default(\"\")}'}}
",
    );
    let steps = |given: &[u8]| -> Vec<String> {
        let ran = world.run_with_input(&["workflow", "run", "w", "--json", "--context", "-"], given);
        let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|step| Some(format!("{} {}", step["stepId"].as_str()?, step["success"]))).collect()
    };
    assert_eq!(steps(br#"{"made": "made"}"#), ["refused false", "make true", "any true"]);
    assert_eq!(task_goals(&world), ["made"]);
    assert!(!world.path("started").exists(), "what is done at once comes before programs");
    assert_eq!(steps(b"{}"), ["program true", "any true"]);
    assert!(world.path("started").exists(), "where nothing of that succeeds, programs are next");
}

/// After the total time is used up, no further step starts.
#[test]
fn workflow_timeout_prevents_start_of_next_step() {
    let world = create_workflow_project(
        "hooks: {task_created: [{workflow: w, timeout: 100ms, when: 'task.goal == \"One\"'}]}\n",
        "  - {id: slow, type: execute_command, config: {command: sleep, args: [1000]}, onFailure: sorry}
  - {id: sorry, type: create_task, config: {goal: Sorry}}
",
    );
    world.run(&["task", "add", "One"]);
    assert_eq!(task_goals(&world), ["One"]);
    let (outcome, said) = world.last_hook_outcome("task_created[0]");
    assert!(outcome == "timed_out" && said.contains("it had not ended after 100 ms"), "{outcome}: {said}");
}

/// Each step is reported as it ends, and a signal ends the workflow like any command.
#[test]
fn steps_are_told_as_they_end_and_signals_are_heard() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let world = create_workflow_project(
            "{}\n",
            "  - {id: quick, type: noop, onSuccess: slow}
  - {id: slow, type: execute_command, config: {command: sleep, args: [1000]}, onFailure: sorry}
  - {id: sorry, type: create_task, config: {goal: sorry}}
",
        );
        let mut child =
            world.command(&["workflow", "run", "w"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "  quick  ok\n");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(task_goals(&world), Vec::<String>::new(), "an interrupted workflow runs no further step");
    }
}

#[test]
fn numbers_that_programs_print_are_numbers() {
    let step = |predicate: &str| {
        format!(
            "  - {{id: count, type: execute_command, config: {{command: sh, args: [-c, 'echo \"$1\"', sh, '${{context.text}}'], storeAs: n}}, onSuccess: check}}
  - {{id: check, type: condition, config: {{predicate: {predicate}, onTrue: yes, onFalse: no}}}}
  - {{id: yes, type: create_task, config: {{goal: 'yes ${{data.n}}'}}}}
  - {{id: no, type: create_task, config: {{goal: 'no ${{data.n}}'}}}}
"
        )
    };
    let ran = |predicate: &str, text: &str| {
        let world = create_workflow_project("{}\n", &step(predicate));
        let ran = world
            .run_with_input(&["workflow", "run", "w", "--context", "-"], json!({"text": text}).to_string().as_bytes());
        task_goals(&world).pop().unwrap_or(ran.stdout)
    };
    assert_eq!(ran("data.n > 9", "10"), "yes 10");
    assert_eq!(ran("data.n < 87.6", "87.5"), "yes 87.5");
    assert_eq!(ran("data.n == '1.10'", "1.10"), "yes 1.10");
    assert_eq!(ran("data.n == '007'", "007"), "yes 007");
    let told = ran("data.n > 9", "ten");
    assert!(told.contains("cannot evaluate `data.n > 9`: a text is compared with a number; write `… | int`"), "{told}");
}

/// Output of a program is no option of the next one, not as a list either.
#[test]
fn values_are_no_options() {
    let find = "{command: find, args: [., -maxdepth, '0', -name, '${data.name}']}";
    let script = r#"{command: sh, args: [-c, 'touch "$1"', sh, '${data.name}']}"#;
    let dash = "cannot put a value that begins with a dash where the program would take it for an option; write `--`";
    for (program, said, told) in [
        (find, r#"["-exec","touch","hurt",";"]"#, "after `-exec` of `find`: it may be run as a command"),
        (find, "-delete", dash),
        (script, "--reference=hurt", dash),
    ] {
        let steps = format!(
            "  - {{id: read, type: execute_command, config: {{command: cat, args: [said.json], storeAs: name}}, onSuccess: use}}
  - {{id: use, type: execute_command, config: {program}}}
"
        );
        let world = create_workflow_project("{}\n", &steps);
        world.write("said.json", said);
        let ran = world.run(&["workflow", "run", "w"]);
        assert!(ran.code == 1 && ran.to_string().contains(told), "{ran}");
        assert!(!world.path("hurt").exists() && world.path("said.json").exists());
    }
}

/// Text of a task or of a hook's answer names no program.
#[test]
fn only_plain_text_names_a_program() {
    let steps = "  - {id: a, type: execute_command, config: {command: '${context.tool}', args: [made]}}\n";
    let world = create_workflow_project("{}\n", steps);
    let hook = |given: &str| {
        world.write(
            ".windlass/config.yaml",
            format!("hooks: {{task_created: [{{workflow: w, context: {{tool: {given}}}}}]}}\n"),
        )
    };
    hook("'${task.goal}'");
    let told = world.expect_failure(&["config", "check"]);
    assert!(told.contains("`tool` names a program of the workflow `w`"), "{told}");
    assert!(told.contains("config.yaml:1:"), "{told}");
    world.run(&["task", "add", "touch"]);
    assert!(!world.path("made").exists());
    let answer = r#"echo '{"actions": [{"type": "execute_workflow", "payload": {"workflowId": "w", "context": {"tool": "touch"}}}]}'"#;
    world.configure(&format!("hooks:\n  task_created:\n    - command: |\n        {answer}\n"));
    world.run_ok(&["trust", "--yes"]);
    let ran = world.run(&["task", "add", "touch"]);
    assert!(!world.path("made").exists(), "{ran}");
    assert!(ran.stderr.contains("`context.tool` names a program of `w`"), "{ran}");
    hook("touch");
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "Mend it"]);
    assert!(world.path("made").exists());
}

/// With a thousand steps, each takes no longer than with ten.
#[test]
fn many_steps_know_what_came_before() {
    let world = create_workflow_project(
        "{}\n",
        "  - {id: a, type: condition, config: {predicate: 'steps.b is defined and steps.b.durationMs < 0', onTrue: end, onFalse: b}}
  - {id: b, type: noop, onSuccess: a}
  - {id: end, type: noop}
",
    );
    let ran = world.run(&["workflow", "run", "w"]);
    assert!(ran.code == 1 && ran.stderr.contains("1000 steps are the limit"), "{ran}");
    assert_eq!(ran.stdout.lines().count(), 1000);
}
