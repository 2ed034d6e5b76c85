//! `windlass run` and `windlass run --task`: work on tasks of the graph

use std::process::Stdio;

use insta::assert_snapshot;

use crate::support::{CommandOutput, TestWorld, normalize_durations};
use crate::test_run::create_agent_project;

const AGENT: &[&str] = &["--agent", "command:sh agent.sh"];

/// A script that runs the line of its task: `T2 blocked`.
const PLAN_SCRIPT: &str = "\
echo \"$WINDLASS_TASK_ID\" >> worked
case $(grep \"^$WINDLASS_TASK_ID \" plan) in
  *blocked) echo 'which version?'; echo '<promise>BLOCKED</promise>';;
  *never) echo 'not yet';;
  *fails) exit 7;;
  *) echo 'It works.'; echo '<promise>COMPLETE</promise>';;
esac";

/// A project with tasks: each a goal and the arguments after it.
fn create_planned_project(config: &str, tasks: &[&[&str]], plan: &str) -> TestWorld {
    let world = create_agent_project(config, PLAN_SCRIPT);
    world.run_ok(&["init"]);
    for task in tasks {
        world.run_ok(&[&["task", "add"], *task].concat());
    }
    world.write("plan", plan);
    world
}

fn run_tasks(world: &TestWorld, words: &[&str]) -> CommandOutput {
    world.run(&[&["run"], words, AGENT].concat())
}

/// Returns the output of a run with this exit code.
#[track_caller]
fn run_output(world: &TestWorld, words: &[&str], code: i32) -> String {
    let ran = run_tasks(world, words);
    assert_eq!(ran.code, code, "{ran}");
    normalize_durations(&ran.stdout)
}

fn worked_tasks(world: &TestWorld) -> String {
    std::fs::read_to_string(world.path("worked")).unwrap_or_default().replace('\n', " ")
}

#[test]
fn everything_that_is_ready_and_becomes_so_is_worked_on_by_priority() {
    let tasks: &[&[&str]] = &[&["Parse"], &["Test it", "--depends", "T1", "--priority", "0"], &["Print", "-p", "1"]];
    let world = create_planned_project("", tasks, "");
    assert_snapshot!(run_output(&world, &[], 0), @r"
    session tasks
      command:sh agent.sh, at most 25 iterations
    task T3  Print
    iteration 1
      agent: It works.
      the agent says that it is done
      T3 is completed
    task T1  Parse
    iteration 2
      agent: It works.
      the agent says that it is done
      T1 is completed
    task T2  Test it
    iteration 3
      agent: It works.
      the agent says that it is done
      T2 is completed
    complete after 3 iterations
      took <took> agent <took> 3 turns
      note: nothing checked this work (3 tasks); add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    ");
    assert_eq!(worked_tasks(&world), "T3 T1 T2 ");
    assert_eq!(world.json(&["status"])["tasks"]["completed"], 3);
    // No task is left, so no agent is prompted.
    let again = run_tasks(&world, &[]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "every task is completed\n"));
    assert_eq!(worked_tasks(&world), "T3 T1 T2 ");
}

#[test]
fn blocked_task_waits_for_person_while_others_continue() {
    let tasks: &[&[&str]] = &[&["Write the guide"], &["Publish it", "--depends", "T1"], &["Paint the door"]];
    let world = create_planned_project("", tasks, "T1 blocked\n");
    assert_snapshot!(run_output(&world, &[], 4), @r"
    session tasks
      command:sh agent.sh, at most 25 iterations
    task T1  Write the guide
    iteration 1
      agent: which version?
      the agent says that it is blocked
      T1 is blocked: the agent says it is blocked: which version?
    task T3  Paint the door
    iteration 2
      agent: It works.
      the agent says that it is done
      T3 is completed
    a person is needed after 2 iterations: T1 needs a person
      took <took> agent <took> 2 turns
      note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
      left: T1  blocked  Write the guide: the agent says it is blocked: which version?
      left: T2  created  Publish it: waits for T1
      next: windlass answer T1 continue
    ");
    assert_eq!(worked_tasks(&world), "T1 T3 ");
    let again = run_tasks(&world, &[]);
    assert_eq!(again.code, 4, "{again}");
    assert_snapshot!(again.stdout, @r"
    nothing is ready
      left: T1  blocked  Write the guide: the agent says it is blocked: which version?
      left: T2  created  Publish it: waits for T1
    ");
    let why = normalize_durations(&world.run(&["why", "tasks"]).to_string());
    // The owner has a name of its own.
    let lines: Vec<&str> = why.lines().filter(|line| !line.contains("task_claimed")).collect();
    assert_snapshot!(lines.join("\n"), @"
    session tasks  a person is needed after 2 iterations: T1 needs a person
      task          T3
      agent         command:sh agent.sh
      started       <time>
      ended         <time>

        10  <time>  T1     task_started
    iteration 1 of tasks
        13  <time>  T1     turn_finished             agent: which version?
        14  <time>  T1     promise_detected          BLOCKED
        15  <time>  T1     gate_decided              pass, so: a person is needed: the agent says it is blocked
        17  <time>  T1     task_blocked              the agent says it is blocked: which version?
        19  <time>  T3     task_started
    iteration 2 of tasks
        22  <time>  T3     turn_finished             agent: It works.
        23  <time>  T3     promise_detected          COMPLETE
        24  <time>  T3     gate_decided              pass, so: complete
        26  <time>  T3     task_completed
        27  <time>  T3     session_ended             a person is needed: T1 needs a person

      next          windlass answer T1 continue
      shown         13 of 20 facts; --full shows everything
    ");
}

#[test]
fn task_stopped_at_iteration_limit_is_resumed_by_next_run() {
    let world = create_planned_project("", &[&["Write the guide"], &["Publish it"]], "T1 never\n");
    assert_snapshot!(run_output(&world, &["--max-iterations", "2"], 3), @r"
    session tasks
      command:sh agent.sh, at most 2 iterations
    task T1  Write the guide
    iteration 1
      agent: not yet
    iteration 2
      agent: not yet
      T1 needs continuation: 2 iterations are the limit
    ended after 2 iterations: 2 iterations are the limit
      took <took> agent <took> 2 turns
      left: T1  needs_continuation  Write the guide: 2 iterations are the limit
      left: T2  ready  Publish it: it can be worked on
      next: windlass run --agent 'command:sh agent.sh' --max-iterations 4
    ");
    world.write("plan", "");
    assert_eq!(run_tasks(&world, &[]).code, 0);
    assert_eq!(worked_tasks(&world), "T1 T1 T1 T2 ");
}

/// An agent that fails would fail on another task, too.
#[test]
fn repeated_agent_failures_block_task_and_end_run() {
    let world = create_planned_project(
        "limits: {max_failures: 2, failure_span: 1ms}",
        &[&["Write the guide"], &["Publish it"]],
        "T1 fails\n",
    );
    let ran = run_tasks(&world, &[]);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(worked_tasks(&world), "T1 T1 ");
    let task = world.json(&["task", "show", "T1"]);
    assert_eq!(
        (task["state"].as_str(), task["blocked"]["reason"].as_str()),
        (Some("blocked"), Some("circuit breaker: 2 iterations failed in a row, the last with: exit 7"))
    );
    run_tasks(&world, &[]);
    assert_eq!(worked_tasks(&world), "T1 T1 T2 ", "the next one goes on with the others");
}

#[test]
fn one_task_is_worked_on_by_name() {
    let world = create_planned_project("", &[&["Parse"], &["Test it", "--depends", "T1"]], "");
    assert_snapshot!(run_output(&world, &["--task", "T1"], 0), @r"
    session t1-parse
      command:sh agent.sh, at most 25 iterations
    iteration 1
      agent: It works.
      the agent says that it is done
    complete after one iteration
      took <took> agent <took> one turn
      note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    ");
    assert_eq!(worked_tasks(&world), "T1 ");
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "ready");
}

#[test]
fn task_that_cannot_run_is_refused_with_reason_and_hint() {
    let tasks: &[&[&str]] =
        &[&["One"], &["Two", "--depends", "T1"], &["Three"], &["Four"], &["Five"], &["Six"], &["Seven"]];
    let world = create_planned_project("", tasks, "");
    world.run_ok(&["task", "block", "T3", "--reason", "which version?"]);
    world.run_ok(&["task", "claim", "T4", "--owner", "worker-1"]);
    world.run_ok(&["task", "complete", "T5"]);
    world.run_ok(&["task", "start", "T6"]);
    world.run_ok(&["task", "fail", "T7", "--reason", "no way"]);
    let said: Vec<String> = ["T2", "T3", "T4", "T5", "T6", "T7", "T9"]
        .iter()
        .map(|id| world.expect_failure(&[&["run", "--task", id], AGENT].concat()))
        .collect();
    assert_snapshot!(said.join("\n"), @"
    error: cannot work on T2: it is created, and waits for T1
    hint: T1 comes first: `windlass run --task T1 --agent AGENT` to work on it; `windlass task undepend T2 T1` drops the dependency
    [1 refused]
    error: cannot work on T3: it is blocked: which version?
    hint: `windlass answer T3 continue` to continue, with a message if you add one; or retry, approve, reject
    [1 refused]
    error: cannot work on T4: it is active, held by worker-1 (epoch 1), for 60 min more
    hint: wait for its holder; `windlass task release T4 --force` ends its lease
    [1 refused]
    error: cannot work on T5: it is completed
    hint: `windlass task reopen T5 --force` to resume it
    [1 refused]
    error: cannot work on T6: it is active
    hint: `windlass task release T6` to give it back
    [1 refused]
    error: cannot work on T7: it is failed: no way
    hint: `windlass answer T7 retry` to resume it; or approve
    [1 refused]
    error: there is no task T9
    hint: `windlass task list --all` shows every task
    [1 not_found]
    ");
    assert_eq!(worked_tasks(&world), "");
    assert_eq!(world.run(&["run", "a goal", "--task", "T1"]).code, 64);
}

/// Hooks at `on_task_complete` run for each of them, before the next one.
#[test]
fn completed_tasks_have_their_hooks() {
    let config = "hooks: {on_task_complete: [{command: 'echo {{task_id}} >> worked; echo well done {{task_id}}', pipe_output: true}]}";
    let world = create_planned_project(config, &[&["Parse"], &["Print"]], "");
    assert_eq!(run_tasks(&world, &[]).code, 0);
    // Output about the last task starts no turn.
    assert_eq!(worked_tasks(&world), "T1 T1 T2 T2 ");
    let prompt = |turn: u32| std::fs::read_to_string(world.path(&format!("prompt.{turn}"))).unwrap();
    assert!(prompt(2).contains("(about T1)") && prompt(2).contains("well done T1"), "{}", prompt(2));
}

/// Two runs at once share the tasks, and no task is in both.
#[test]
fn two_runs_at_once_never_work_on_the_same_task() {
    let goals: Vec<String> = (1..=6).map(|n| format!("Task {n}")).collect();
    let tasks: Vec<Vec<&str>> = goals.iter().map(|goal| vec![goal.as_str()]).collect();
    let tasks: Vec<&[&str]> = tasks.iter().map(Vec::as_slice).collect();
    let world = create_planned_project("", &tasks, "");
    // The first one waits in its turn until the second has worked.
    world.run_command(world.program("mkfifo").args(["started", "go"]));
    world.write(
        "agent.sh",
        "cat > /dev/null; echo \"$WINDLASS_TASK_ID\" >> worked\n\
         case $WINDLASS_TASK_ID in T1) echo > started; cat go ;; T6) echo > go ;; esac\n\
         echo '<promise>COMPLETE</promise>'\n",
    );
    let words = [&["run"][..], AGENT].concat();
    let mut first = world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::fs::read(world.path("started")).unwrap();
    let second = world.run(&words);
    assert_eq!(second.code, 0, "{second}");
    assert!(first.wait().unwrap().success());
    assert_eq!(worked_tasks(&world), "T1 T2 T3 T4 T5 T6 ");
}

/// A resumed session keeps its task.
#[test]
fn killed_session_is_resumed_with_its_task() {
    let world = create_planned_project("", &[&["Parse"], &["Print"]], "");
    world.write(
        "agent.sh",
        "cat > /dev/null; echo \"$WINDLASS_TASK_ID\" >> worked; test -e died || { touch died; sleep 60; }; \
         echo '<promise>COMPLETE</promise>'\n",
    );
    let words = [&["run"][..], AGENT].concat();
    let mut killed = world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !world.path("died").exists() {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_snapshot!(world.expect_failure(&[&["run", "--task", "T1"], AGENT].concat()), @"
    error: cannot work on T1: it is active, held by session `tasks` (epoch 1)
    hint: `windlass run --session tasks --agent 'command:sh agent.sh'` to resume it
    [1 refused]
    ");
    let ran = run_tasks(&world, &[]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.starts_with("session tasks, resumed\n"), "{ran}");
    assert_eq!(worked_tasks(&world), "T1 T1 T2 ");
}

/// An interrupted run leaves a task that another run can take.
#[test]
fn ctrl_c_leaves_the_task_to_be_taken_up() {
    let world = create_planned_project("", &[&["Parse"], &["Print"]], "");
    world.write("agent.sh", "cat > /dev/null; echo \"$WINDLASS_TASK_ID\" >> worked; sleep 60\n");
    let words = [&["run"][..], AGENT].concat();
    let mut running = world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while worked_tasks(&world).is_empty() {
        std::thread::yield_now();
    }
    let kill = format!("kill -INT {}", running.id());
    assert!(world.program("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let task = world.json(&["task", "show", "T1"]);
    let left = (task["state"].as_str(), task["reason"].as_str(), &task["lease"]);
    assert_eq!(left, (Some("needs_continuation"), Some("the session was cancelled"), &serde_json::Value::Null));
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "ready");
}

/// A repeated goal resumes its task, and creates no second one.
#[test]
fn repeated_goal_resumes_its_task_unless_fresh() {
    let world = TestWorld::empty();
    let run = |more: &[&str]| {
        let words = ["run", "Mend the pump", "--max-iterations", "1", "--agent", "command:cat > prompt.txt"];
        world.run(&[&words[..], more].concat()).code
    };
    let tasks = || world.json_lines(&["task", "list"]).len();
    assert_eq!((run(&[]), run(&[]), tasks()), (3, 3, 1));
    assert_eq!((run(&["--fresh"]), tasks()), (3, 2));
}

#[test]
fn goal_whose_task_waits_for_a_person_is_refused_until_it_is_answered() {
    let world = TestWorld::empty();
    world.write("agent.sh", "test -e key && echo '<promise>COMPLETE</promise>' || echo '<promise>BLOCKED</promise>'");
    let run = ["run", "Mend the pump", "--agent", "command:sh agent.sh"];
    assert_eq!(world.run(&run).code, 4);
    insta::assert_snapshot!(world.expect_failure(&run), @"
    error: cannot work on T1: it is blocked: the agent says it is blocked
    hint: `windlass answer T1 continue` to continue, with a message if you add one; or retry, approve, reject; `--fresh` starts another task with this goal
    [1 refused]
    ");
    world.write("key", "");
    world.run_ok(&["answer", "T1", "continue"]);
    assert_eq!(world.run(&run).code, 0);
    assert_eq!(world.json_lines(&["task", "list", "--all"]).len(), 1);
}
