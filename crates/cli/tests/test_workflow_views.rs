//! The views of workflows before anything runs: the effects of all their steps, and the errors in their files.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::hook_project::create_hook_project;
use crate::support::{TestWorld, WINDLASS};

const FULL_WORKFLOW: &str = "name: All of it
steps:
  - {id: look, type: execute_command, config: {command: sh, args: [-c, 'rm -rf \"$0\"', '${task.goal}', 7], storeAs: seen, timeout: 1m}, onSuccess: any, onFailure: stop}
  - {id: any, type: condition, config: {predicate: \"data.seen != ''\", onTrue: both, onFalse: stop}}
  - id: both
    type: parallel
    config:
      waitForAll: false
      steps:
        - {id: one, type: execute_command, config: {command: '${context.program}', args: '${context.words}'}}
        - {id: two, type: create_task, config: {goal: 'Look\\nat it', labels: [a, '${task.labels}'], parentTaskId: {fromContext: task.id}}}
  - {id: stop, type: update_task, config: {taskId: T1, action: block, payload: {reason: enough}}}
";

fn create_project() -> TestWorld {
    let world = TestWorld::new();
    world.write(".windlass/workflows/all.yaml", FULL_WORKFLOW);
    world
}

#[test]
fn review_task_of_the_shipped_workflow_ends_with_a_report() {
    let world = TestWorld::with_tasks(&["Mend the pump"]);
    world.run_ok(&["workflow", "run", "create-review-task", "--task", "T1"]);
    assert_eq!(world.json(&["task", "show", "T2"])["report"]["reviews"], "T1");
}

#[test]
fn every_step_is_shown_with_all_that_it_does() {
    let world = create_project();
    assert_snapshot!(world.run(&["workflow", "show", "all"]), @r#"
    all  All of it
      $WORK/.windlass/workflows/all.yaml

    look  execute_command  → then any, if it fails stop
        sh -c "rm -rf \"$0\"" ${task.goal} 7
        storeAs: seen
        timeout: 1m
    any  condition  → if so both, if not stop
        predicate: data.seen != ''
    both  parallel
        waitForAll: false
      one  execute_command
          ${context.program} ${context.words}
      two  create_task
          goal: Look\nat it
          labels: ["a","${task.labels}"]
          parentTaskId: {"fromContext":"task.id"}
    stop  update_task
        action: block
        payload: {"reason":"enough"}
        taskId: T1
    "#);
    let shown = world.json(&["workflow", "show", "all"]);
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps[0]["config"]["args"], json!(["-c", "rm -rf \"$0\"", "${task.goal}", 7]));
    assert_eq!((&steps[1]["onTrue"], &steps[1]["onFalse"]), (&json!("both"), &json!("stop")));
    assert_eq!(steps[1]["config"]["predicate"], "data.seen != ''");
    assert_eq!(steps[2]["steps"][1]["config"]["parentTaskId"], json!({"fromContext": "task.id"}));
    assert_eq!(steps[2]["config"]["waitForAll"], false);
    assert_eq!(steps[3]["config"]["payload"]["reason"], "enough");
}

#[test]
fn trust_shows_what_steps_run() {
    let world = create_project();
    world.write(
        ".windlass/config.yaml",
        "hooks: {task_completed: [{workflow: notify-critical-completion, context: {command: ./tell.sh}}]}\n",
    );
    world.write(".windlass/workflows/bad.yaml", "steps: [{id: a, type: nope}]\n");
    world.write(".windlass/workflows/notes.md", "Ours.\n");
    assert_snapshot!(world.run(&["trust", "--show"]), @r#"
    $WORK  changed since it was trusted
    Its configuration would run:
      task_completed[0] (line 1)
          workflow: notify-critical-completion, given {"command":"./tell.sh"}
      workflows all.yaml
          look  execute_command  → then any, if it fails stop
              sh -c "rm -rf \"$0\"" ${task.goal} 7
              storeAs: seen
              timeout: 1m
          any  condition  → if so both, if not stop
              predicate: data.seen != ''
          both  parallel
              waitForAll: false
            one  execute_command
                ${context.program} ${context.words}
            two  create_task
                goal: Look\nat it
                labels: ["a","${task.labels}"]
                parentTaskId: {"fromContext":"task.id"}
          stop  update_task
              action: block
              payload: {"reason":"enough"}
              taskId: T1
      workflows bad.yaml  wrong, and nothing of it runs: $WORK/.windlass/workflows/bad.yaml:1:23: unknown type of step `nope`
      workflows notes.md  (no workflow: nothing of it runs)
      workflows notify-critical-completion  (built-in)
          critical  condition  → if so tell
              predicate: task.id != '' and task.priority == 0 and task.state == 'completed'
          tell  execute_command  → if it fails note
              "${context.command || 'notify-send'}" "${task.id} is completed" ${task.goal}
          note  create_task
              goal: Tell the others that ${task.id} is completed: ${task.goal}
              labels: ["notify"]
              parentTaskId: ${task.id}
              priority: 1
    Agents may run any command that they supply (`agent_commands: allow`, the default).
    "#);
    let shown = world.json(&["trust", "--show"]);
    let of = |path: &str| {
        let all = shown["workflows"].as_array().unwrap();
        all.iter().find(|workflow| workflow["path"] == path).cloned().unwrap_or_default()
    };
    assert_eq!(of("all.yaml")["steps"][0]["config"]["command"], "sh");
    assert_eq!(of("notify-critical-completion")["steps"][1]["id"], "tell");
    assert!(of("bad.yaml")["error"].as_str().unwrap().contains("unknown type of step `nope`"), "{shown}");
    assert_eq!(of("notes.md")["error"], Value::Null);
}

#[test]
fn workflow_text_is_shown_without_terminal_control_characters() {
    let world = TestWorld::new();
    let step = r#"{"id": "a", "type": "execute_command", "config": {"command": "echo", "args": ["\u001b[2Jx\u202e\nhidden"], "storeAs": "x"}}"#;
    let name = r#""name": "\u001b[31mred""#;
    world.write(".windlass/workflows/w.json", format!(r#"{{{name}, "steps": [{step}]}}"#));
    world.write(".windlass/workflows/bad.yaml", "id: \"b\\u001b[2J\"\nsteps: []\n");
    for words in [&["workflow", "show", "w"][..], &["workflow", "list"], &["trust", "--show"], &["doctor"]] {
        for words in [words, &[words, &["--json"]].concat()] {
            let ran = world.run(words);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!said.contains(['\u{1b}', '\u{202e}']), "{ran}");
        }
    }
}

#[test]
fn invalid_workflow_file_is_reported_and_valid_one_still_runs() {
    let world = TestWorld::new();
    world.write(".windlass/workflows/good.yaml", "steps: [{id: a, type: create_task, config: {goal: made}}]\n");
    world.write(".windlass/workflows/bad.yaml", "id: broken\nsteps:\n  - {id: a, type: creat_task}\n");
    world.write(".windlass/workflows/create-review-task.yaml", "steps: [\n");
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.run(&["workflow", "run", "good"]).code, 0);
    assert_snapshot!(world.run(&["workflow", "list"]), @"
    good                one step
    broken              wrong: $WORK/.windlass/workflows/bad.yaml:3:19: unknown type of step `creat_task`
    create-review-task  wrong: $WORK/.windlass/workflows/create-review-task.yaml:1:8: not valid YAML: unclosed bracket '['
    ");
    let listed = world.json_lines(&["workflow", "list"]);
    assert!(listed.iter().any(|workflow| workflow["id"] == "broken" && workflow["error"]["code"] == "config"));
    assert_snapshot!(world.expect_failure(&["workflow", "show", "broken"]), @r#"
    error: unknown type of step `creat_task`
     --> $WORK/.windlass/workflows/bad.yaml:3:19
      |
    3 |   - {id: a, type: creat_task}
      |                   ^^^^^^^^^^
    hint: did you mean `create_task`?
    [64 config]
    "#);
    // Ours does not run beside a file that does not parse: any id may be written in it.
    for id in ["nope", "create-review-task", "stale-task-report"] {
        let ran = world.run(&["workflow", "run", id]);
        assert!(ran.code == 64 && ran.stderr.contains("unclosed bracket '['"), "{id}: {ran}");
    }
    assert_snapshot!(world.expect_failure(&["config", "check"]), @"
    error: unknown type of step `creat_task`
     --> $WORK/.windlass/workflows/bad.yaml:3:19
      |
    3 |   - {id: a, type: creat_task}
      |                   ^^^^^^^^^^
    caused by: also wrong: $WORK/.windlass/workflows/create-review-task.yaml:1:8: not valid YAML: unclosed bracket '['
    hint: did you mean `create_task`?
    [64 config]
    ");
    let ran = world.run(&["doctor"]);
    assert!(ran.code == 1 && ran.stdout.contains("wrong  workflows      1 of the project can be used\n"), "{ran}");
    assert!(ran.stdout.contains("bad.yaml:3:19: unknown type of step `creat_task`"), "{ran}");
}

#[test]
fn workflow_id_used_by_two_files_is_refused() {
    let world = TestWorld::new();
    world.write(".windlass/workflows/one.yaml", "# first\nid: twin\nsteps: [{id: a, type: noop}]\n");
    world.write(".windlass/workflows/twin.yaml", "steps: [{id: a, type: noop}]\n");
    world.run_ok(&["trust", "--yes"]);
    assert_snapshot!(world.expect_failure(&["workflow", "run", "twin"]), @r#"
    error: $WORK/.windlass/workflows/one.yaml: the id `twin` is that of $WORK/.windlass/workflows/twin.yaml too
    hint: give each its own
    [64 config]
    "#);
    assert_eq!(world.json_lines(&["workflow", "list"]).iter().filter(|workflow| workflow["id"] == "twin").count(), 2);
}

#[test]
fn hooks_run_workflows_that_are_there() {
    let world = TestWorld::new();
    world.write(
        ".windlass/config.yaml",
        "hooks:\n  task_completed:\n    - name: review\n      workflow: create-reviw-task\n",
    );
    let said = world.expect_failure(&["config", "check"]);
    assert_snapshot!(said, @r#"
    error: the hook `review` runs the workflow `create-reviw-task`, and there is none
     --> $WORK/.windlass/config.yaml:4:17
      |
    4 |       workflow: create-reviw-task
      |                 ^^^^^^^^^^^^^^^^^
    hint: did you mean `create-review-task`?
    [64 config]
    "#);
    assert_eq!(world.expect_failure(&["trust", "--yes"]), said);
    assert_eq!(world.expect_failure(&["run", "Mend the pump", "--agent", "command:true", "--trust"]), said);
    assert!(world.run(&["doctor"]).stdout.contains("config.yaml:4:17: the hook `review` runs the workflow"));

    // A hook for a future workflow is switched off until then.
    world.write(".windlass/config.yaml", "hooks: {task_completed: [{workflow: later, enabled: false}]}\n");
    world.run_ok(&["config", "check"]);
    world.run_ok(&["trust", "--yes"]);

    // An unusable file does not exist for a run either.
    world.write(".windlass/config.yaml", "hooks: {task_completed: [{workflow: later}]}\n");
    world.write(".windlass/workflows/later.yaml", "steps: [{id: a, type: noop, onSuccess: b}]\n");
    assert_snapshot!(world.expect_failure(&["trust", "--yes"]), @r#"
    error: `onSuccess` names the step `b`, and no step outside a `parallel` has that id
     --> $WORK/.windlass/workflows/later.yaml:1:40
      |
    1 | steps: [{id: a, type: noop, onSuccess: b}]
      |                                        ^
    caused by: the hook `task_completed[0]` runs the workflow `later`: $WORK/.windlass/config.yaml:1
    hint: did you mean `a`?
    [64 config]
    "#);
}

/// The id in a file that does not parse may be that of a shipped workflow.
#[test]
fn unparsed_file_keeps_the_shipped_workflow_of_a_hook_from_running() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "hooks: {task_completed: [{workflow: create-review-task}]}\n");
    world.write(".windlass/workflows/mine.yaml", "id: create-review-task\nsteps:\n\t- {id: a, type: noop}\n");
    for command in [["config", "check"], ["trust", "--yes"]] {
        let said = world.expect_failure(&command);
        assert!(said.contains("mine.yaml:3") && said.contains("indent with spaces"), "{said}");
        assert!(said.contains("the hook `task_completed[0]` runs the workflow `create-review-task`"), "{said}");
    }
    world.write(".windlass/workflows/mine.yaml", "id: create-review-task\nsteps: [{id: a, type: nope}]\n");
    assert!(world.expect_failure(&["trust", "--yes"]).contains("unknown type of step `nope`"));
    assert_snapshot!(world.expect_failure(&["workflow", "show", "nope"]), @"
    error: there is no workflow `nope`
    caused by: a file that cannot be used: $WORK/.windlass/workflows/mine.yaml:2:23: unknown type of step `nope`
    hint: there are: notify-critical-completion, stale-task-report
    [1 not_found]
    ");
}

#[test]
fn those_that_come_along_can_be_seen_anywhere() {
    let world = TestWorld::empty();
    assert_eq!(world.json_lines(&["workflow", "list"]).len(), 3);
    assert!(
        world.run_ok(&["workflow", "show", "stale-task-report"]).starts_with("stale-task-report  Report stale tasks\n")
    );
    let ran = world.run(&["workflow", "run", "stale-task-report"]);
    assert!(ran.code == 64 && ran.stderr.contains("there is no project here"), "{ran}");
}

const PASSING_WORKFLOW: &str =
    "steps: [{id: a, type: execute_command, config: {command: touch, args: [written-by-the-agent]}}]";

/// A session works with the trusted workflows, whatever the agent writes.
#[test]
fn workflow_changed_by_agent_does_not_run_at_its_gate() {
    let refuses = "steps: [{id: a, type: execute_command, config: {command: sh, args: [-c, exit 1]}}]";
    for (hook, file, id) in [("mine", "mine.yaml", "mine"), ("stale-task-report", "other.yaml", "stale-task-report")] {
        let world = create_hook_project(&format!("hooks: {{stop: [{{workflow: {hook}, retry: {{max: 1}}}}]}}\n"));
        world.write(".windlass/workflows/mine.yaml", refuses);
        world.write("evil.yaml", format!("id: {id}\n{PASSING_WORKFLOW}\n"));
        world.write(
            "agent.sh",
            format!("cp evil.yaml .windlass/workflows/{file}\necho '<promise>COMPLETE</promise>'\n"),
        );
        world.run_ok(&["trust", "--yes"]);
        let ran = world.run(&["run", "Mend the pump", "--agent", "command:sh agent.sh"]);
        assert_eq!(ran.code == 0, hook != "mine", "{ran}");
        assert!(!world.path("written-by-the-agent").exists(), "{hook}: {ran}");
        let ran = world.run(&["run", "Mend the door", "--agent", "command:sh agent.sh"]);
        assert!(ran.code == 64 && !world.path("written-by-the-agent").exists(), "a person has to look: {ran}");
    }
}

#[test]
fn inside_a_run_files_that_were_written_since_are_not_run() {
    let world = create_hook_project("hooks: {stop: [{command: 'true'}]}\n");
    world.run_ok(&["trust", "--yes"]);
    world.write("evil.yaml", PASSING_WORKFLOW);
    let windlass = WINDLASS;
    world.write(
        "agent.sh",
        format!(
            "mkdir -p .windlass/workflows; cp evil.yaml .windlass/workflows/evil.yaml
{windlass} workflow run evil >out 2>&1; echo $? >>out
{windlass} workflow run stale-task-report >ours 2>&1; echo $? >>ours
echo '<promise>COMPLETE</promise>'
"
        ),
    );
    let ran = world.run(&["run", "Mend the pump", "--agent", "command:sh agent.sh"]);
    assert!(!world.path("written-by-the-agent").exists(), "{ran}");
    assert!(world.read_file("out").ends_with("64\n"), "{}", world.read_file("out"));
    assert!(world.read_file("ours").ends_with("0\n"), "what comes along is trusted: {}", world.read_file("ours"));
}

/// In every way in which the agent can call windlass.
#[test]
fn inside_a_run_hooks_do_not_run_files_that_were_written_since() {
    let world = create_hook_project("hooks: {task_created: [{workflow: w, when: \"'agents' in task.labels\"}]}\n");
    world.write(".windlass/workflows/w.yaml", "steps: [{id: a, type: noop}]");
    world.run_ok(&["trust", "--yes"]);
    world.write("evil.yaml", PASSING_WORKFLOW);
    let agent = format!(
        "{WINDLASS} task add One --label agents >one 2>&1
cp evil.yaml .windlass/workflows/w.yaml
{WINDLASS} task add Two --label agents >two 2>&1
env -u WINDLASS_RUN {WINDLASS} trust --yes >trust 2>&1
{WINDLASS} run Nested --agent 'command:echo \"<promise>COMPLETE</promise>\"' >nested 2>&1
echo '<promise>COMPLETE</promise>'
"
    );
    world.write("agent.sh", agent);
    let ran = world.run(&["run", "Mend the pump", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!world.path("written-by-the-agent").exists(), "{ran}");
    assert!(!world.read_file("one").contains("may not run"), "{}", world.read_file("one"));
    assert!(world.read_file("two").contains("may not run: something has changed"), "{}", world.read_file("two"));
    assert!(world.read_file("trust").contains("only a person can trust"), "{}", world.read_file("trust"));
}

#[test]
fn init_trusts_only_what_it_has_written() {
    let world = TestWorld::empty();
    std::fs::create_dir_all(world.path(".windlass/workflows")).unwrap();
    world.write(".windlass/workflows/evil.yaml", PASSING_WORKFLOW);
    let ran = world.run(&["init"]);
    assert!(ran.code == 0 && ran.stdout.contains("not trusted yet: there are workflows already"), "{ran}");
    let ran = world.run(&["workflow", "run", "evil"]);
    assert!(ran.code == 64 && !world.path("written-by-the-agent").exists(), "{ran}");
}
