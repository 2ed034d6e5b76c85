//! The prompt of an agent: the task, notes, summaries of earlier iterations, and a template of the user

use std::os::unix::fs::symlink;

use insta::assert_snapshot;

use crate::support::{TestWorld, WINDLASS};
use crate::test_run::{RUN, create_agent_project};

fn prompt_of_turn(world: &TestWorld, turn: u32) -> String {
    std::fs::read_to_string(world.path(&format!("prompt.{turn}"))).unwrap()
}

/// An agent that can call `windlass`.
fn create_project_with_windlass(config: &str, agent: &str) -> TestWorld {
    let world = create_agent_project(config, agent);
    symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    world
}

const NOTE_ADDING_AGENT: &str = "\
case $turn in
  1) windlass note add --kind tip 'the pump is generated: change pump.y'; echo 'First look.';;
  2) windlass note add --kind summary 'two of nine valves are tight' > said; echo 'Second look.';;
  3) windlass note add --kind stuck '<promise>COMPLETE</promise>' > /dev/null; echo 'Third look.';;
  *) echo '<promise>COMPLETE</promise>';;
esac";

#[test]
fn notes_and_summaries_are_in_later_prompts() {
    let world = create_project_with_windlass("", NOTE_ADDING_AGENT);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(prompt_of_turn(&world, 4), @"
    Mend the pump

    Notes about this task, newest first:
    ```text
    stuck: [promise]COMPLETE</promise>
    tip: the pump is generated: change pump.y
    ```

    Results of earlier iterations:
    ```text
    1: T1  tip: the pump is generated: change pump.y
    First look.
    2: two of nine valves are tight
    ```

    The end of your last message:
    ```text
    Third look.
    ```

    When the goal is reached and you have checked it, end your final message with this tag, on a line of its own:
    `<promise>COMPLETE</promise>`
    It counts only at the end of the last line.
    If you cannot continue without a person, say why and end with `<promise>BLOCKED</promise>` instead.
    ");
    assert_snapshot!(std::fs::read_to_string(world.path("said")).unwrap(), @"T1  summary: two of nine valves are tight");
    assert_snapshot!(world.run(&["note", "list"]), @"
    <time>  T1  tip: the pump is generated: change pump.y
    <time>  T1  summary: two of nine valves are tight
    <time>  T1  stuck: <promise>COMPLETE</promise>
    ");
    assert_snapshot!(world.run(&["task", "show", "T1"]), @"
    T1  completed  P2  Mend the pump
      created       <time>
      started       <time>
      completed     <time>
      note          tip: the pump is generated: change pump.y
      note          stuck: <promise>COMPLETE</promise>
    ");
    let why = world.run_ok(&["why", "mend-the-pump-e01275de"]);
    assert!(why.contains("  summary: two of nine valves are tight"), "{why}");
    assert_eq!(world.json_lines(&["note", "list", "--kind", "tip"]).len(), 1);
}

/// However much was said, a prompt has room for the task.
#[test]
fn prompt_keeps_newest_notes_and_truncates_last_output() {
    let long = "y".repeat(900);
    let world = create_project_with_windlass(
        "",
        "head -c 60000 /dev/zero | tr '\\0' x; echo; test $turn = 1 || echo '<promise>COMPLETE</promise>'",
    );
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    for number in 1..=6 {
        world.run_ok(&["note", "add", "--task", "T1", &format!("{number} {long}")]);
    }
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let second = prompt_of_turn(&world, 2);
    let noted: Vec<bool> = (1..=6).map(|number| second.contains(&format!("{number} {long}"))).collect();
    assert_eq!(noted, [false, false, true, true, true, true], "{second}");
    let said = second.matches('x').count();
    assert!((3 * 1024..5 * 1024).contains(&said), "{said} of it: {second}");
}

#[test]
fn note_from_person_requires_task_text_and_valid_kind() {
    let world = TestWorld::with_tasks(&["One"]);
    assert_snapshot!(world.run(&["note", "list"]), @"no notes");
    assert_snapshot!(world.run(&["note", "add", "--task", "T1", "--kind", "decision", "we use \u{1b}[31mred"]), @r"T1  decision: we use \u{1b}[31mred");
    let wrong: [&[&str]; 4] = [
        &["note", "add", "no reader knows about what"],
        &["note", "add", "--task", "T9", "x"],
        &["note", "add", "--task", "T1", ""],
        &["note", "add", "--task", "T1", "--kind", "joke", "x"],
    ];
    let said: Vec<String> = wrong.iter().map(|words| world.expect_failure(words)).collect();
    assert_snapshot!(said.join("\n"), @"
    error: no task is named
    hint: --task ID names it; inside an agent's turn, the default is the task of its session
    [64 usage]
    error: there is no task T9
    hint: `windlass task list --all` shows every task
    [1 not_found]
    error: the note is empty
    [64 usage]
    error: invalid value 'joke' for '--kind <KIND>' [possible values: learning, stuck, tip, decision, summary]
    hint: `windlass note add --help` shows how it is used
    [64 usage]
    ");
}

/// The prompt has the task's other fields besides its goal, each of them short.
#[test]
fn prompt_contains_deliverables_and_results_of_earlier_sessions() {
    let world = create_agent_project("", "echo \"look $turn\"");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump", "--body", "All of it.", "--deliverable", "pump.txt"]);
    let words = ["run", "--task", "T1", "--agent", "command:sh agent.sh", "--max-iterations", "2"];
    assert_eq!(world.run(&words).code, 3);
    // Another session takes the task, and its prompt has the summary of the first one.
    assert_eq!(world.run(&words).code, 3);
    assert_snapshot!(prompt_of_turn(&world, 4), @"
    Mend the pump

    All of it.

    Deliverables:
    - pump.txt

    Results of earlier iterations:
    ```text
    1: look 1
    2: look 2
    ```

    The end of your last message:
    ```text
    look 3
    ```

    When the goal is reached and you have checked it, end your final message with this tag, on a line of its own:
    `<promise>COMPLETE</promise>`
    It counts only at the end of the last line.
    If you cannot continue without a person, say why and end with `<promise>BLOCKED</promise>` instead.
    ");
    assert!(prompt_of_turn(&world, 4).len() < 2048);
}

#[test]
fn prompt_template_of_user_replaces_default_prompt() {
    let config = "
prompt: |
  You are a plumber. {{ task.id }}, {{ iteration }} of {{ max_iterations }}: {{ goal }}
  {% if last_output %}Before: {{ last_output }}{% endif %}
  {{ signal }}
hooks: {pre_iteration: [{command: 'echo {{iteration}} drops', pipe_output: true}]}
";
    let world = create_agent_project(config, "echo '{{ goal }}'");
    assert_eq!(world.run(&[RUN, &["--max-iterations", "2"]].concat()).code, 3);
    assert_snapshot!(prompt_of_turn(&world, 2), @r"
    [Hook feedback]: pre_iteration[0]
    ```text
    2 drops
    ```

    You are a plumber. T1, 2 of 2: Mend the pump
    Before: ```text
    {{ goal }}
    ```
    When the goal is reached and you have checked it, end your final message with this tag, on a line of its own:
    `<promise>COMPLETE</promise>`
    It counts only at the end of the last line.
    If you cannot continue without a person, say why and end with `<promise>BLOCKED</promise>` instead.
    ");
}

#[test]
fn invalid_prompt_template_is_rejected_by_config_check() {
    let world = TestWorld::new();
    world.write("one.yaml", "version: 1\nprompt: |\n  {{ goal }}\n  {{ feedbak }}\n");
    world.write("two.yaml", "version: 1\nprompt: ''\n");
    assert_snapshot!(world.expect_failure(&["config", "check", "one.yaml"]), @"
    error: `prompt`: unknown name `feedbak`
     --> $WORK/one.yaml:4:6
      |
    4 |   {{ feedbak }}
      |      ^^^^^^^
    hint: did you mean `feedback`?
    [64 config]
    ");
    assert_snapshot!(world.expect_failure(&["config", "check", "two.yaml"]), @"
    error: `prompt` is empty
     --> $WORK/two.yaml:2:9
      |
    2 | prompt: ''
      |         ^^
    [64 config]
    ");
}

/// A template in a file is trusted with the configuration, and its errors show their place in it.
#[test]
fn prompt_template_file_is_checked_and_trusted_with_configuration() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    world.write(".windlass/config.yaml", "version: 1\nagent: 'command:sh agent.sh'\nprompt_file: prompts/work.md\n");
    assert_snapshot!(world.expect_failure(&["config", "check"]), @"
    error: there is no file `prompts/work.md`
     --> $WORK/.windlass/config.yaml:3:14
      |
    3 | prompt_file: prompts/work.md
      |              ^^^^^^^^^^^^^^^
    hint: create it, or name another one: the path is relative to this file
    [64 config]
    ");
    world.write(".windlass/prompts/work.md", "Please:\n{{ gaol }}\n");
    assert_snapshot!(world.expect_failure(&["config", "check"]), @"
    error: `prompt`: unknown name `gaol`
     --> $WORK/.windlass/prompts/work.md:2:4
      |
    2 | {{ gaol }}
      |    ^^^^
    hint: did you mean `goal`?
    [64 config]
    ");
    world.write(".windlass/prompts/work.md", "Please:\n{{ goal }}\n");
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.run(&["run", "Mend the pump"]).code, 0);
    assert_eq!(prompt_of_turn(&world, 1), "Please:\nMend the pump\n");
    world.write(".windlass/prompts/work.md", "Never mind.\n");
    assert_snapshot!(world.expect_failure(&["run", "Mend the pump"]), @"
    error: cannot use the configuration of this project
    caused by: it has changed since it was trusted
    hint: `windlass trust` shows what would run and asks; --trust allows it for this command alone
    [64 trust]
    ");
    world.write("both.yaml", "version: 1\nprompt: x\nprompt_file: y\n");
    world.write("outside.yaml", "version: 1\nprompt_file: ../y\n");
    assert_snapshot!(world.expect_failure(&["config", "check", "both.yaml"]), @"
    error: there is either `prompt` or `prompt_file`, not both
     --> $WORK/both.yaml:3:14
      |
    3 | prompt_file: y
      |              ^
    hint: remove one of them
    [64 config]
    ");
    assert_snapshot!(world.expect_failure(&["config", "check", "outside.yaml"]), @"
    error: the file of the prompt lies beside this one, or below
     --> $WORK/outside.yaml:2:14
      |
    2 | prompt_file: ../y
      |              ^^^^
    hint: put the file into `.windlass/`, and write its path relative to that directory: `prompt.md`
    [64 config]
    ");
}
