//! `windlass why`

use insta::assert_snapshot;
use serde_json::{Value, json};
use windlass_engine::{Command, EventType, HookOutcome, HookReport};

use crate::support::delivered::Repo;
use crate::support::{World, timeless};
use crate::test_hooks::{BLOCKS_TWICE, Runner, THIRD_TIME};
use crate::test_run::{RUN, world};

fn plain(world: &World, subject: &str) -> String {
    timeless(&world.run(&["why", subject]).to_string())
}

#[test]
fn a_session_that_was_sent_back_twice() {
    let world = world(BLOCKS_TWICE, THIRD_TIME);
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(plain(&world, "mend-the-pump-e01275de"), @"
    session mend-the-pump-e01275de  complete after one iteration
      goal          Mend the pump
      task          T1
      agent         command:sh agent.sh
      started       <time>
      ended         <time>
      sent back     2 times

    iteration 1  <time>, completed
      turn 1, to work
        agent: turn 1
        the agent says that it is done
      stop[0] blocks: 2 of 9 tests failed (<took>)
        | 2 of 9 tests failed
        | test_login failed
        feedback 13, delivered in turn 2
      gate: block by stop[0], so: sent back (1 of 5)
      turn 2, sent back, with feedback 13
        agent: turn 2
        the agent says that it is done
      stop[0] blocks: 2 of 9 tests failed (<took>)
        | 2 of 9 tests failed
        | test_login failed
        feedback 21, delivered in turn 3
      gate: block by stop[0], so: sent back (2 of 5)
      turn 3, sent back, with feedback 21
        agent: turn 3
        the agent says that it is done
      stop[0] ok (<took>)
      gate: pass by stop[0], so: complete

    end
      tell at session_end failed: exit 3 (<took>)
    ");
    let told = world.json(&["why", "mend-the-pump-e01275de"]);
    let steps = told["iterations"][0]["steps"].as_array().unwrap();
    let kinds: Vec<_> = steps.iter().map(|step| step["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["turn", "hook", "gate", "turn", "hook", "gate", "turn", "hook", "gate"]);
    let summary = |key: &str| told[key].clone();
    assert_eq!(
        (summary("state"), summary("ending"), summary("sentBack")),
        (json!("ended"), json!("completed"), json!(2))
    );
    assert_eq!(steps[1]["feedback"]["text"], "2 of 9 tests failed\n\ntest_login failed");
    assert_eq!(steps[1]["deliveredInTurn"], 2);
    assert_eq!((&steps[2]["verdict"], &steps[2]["decidedBy"]), (&json!("block"), &json!(["stop[0]"])));
    assert_eq!(steps[3]["feedbackDelivered"], json!([steps[1]["feedback"]["seq"]]));
    assert_eq!(told["end"][0]["hook"], "tell");
}

/// What the agent hears is queued when the gate fails, and not when the hook ends.
#[test]
fn feedback_of_a_submission_gate_is_shown_as_delivered() {
    let bs = "{name: bs, command: 'test -e mended.txt || { echo mended.txt is missing; exit 2; }'}";
    let repo = Repo::new(&format!("hooks: {{before_submit: [{bs}, create_pr]}}\n"));
    repo.agent("test ! -e work.txt || touch mended.txt; echo more >> work.txt");
    let ran = repo.add("Write it").world.run(&["run", "--task", "T1", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    let told = repo.world.json(&["why", "t1-write-it"]);
    let steps = |at: usize| told["iterations"][at]["steps"].as_array().unwrap().clone();
    let blocks = steps(0).into_iter().find(|step| step["hook"] == "bs").unwrap();
    let heard = steps(1).into_iter().find(|step| step["type"] == "turn").unwrap();
    assert_eq!((&blocks["outcome"], &blocks["deliveredInTurn"]), (&json!("block"), &json!(2)), "{told}");
    assert_eq!(heard["feedbackDelivered"], json!([blocks["feedback"]["seq"]]), "{told}");
}

/// The gate passes, and still the work goes on: that has a reason too.
#[test]
fn a_session_that_ended_at_its_limit() {
    let config = "limits: {failure_span: 1ms}\nhooks: {session_start: [{command: echo remember, pipe_output: true}], post_iteration: [{command: sleep 9, timeout: 10ms}]}";
    let world = world(config, "test $turn -gt 1 || exit 5; echo turn $turn");
    assert_eq!(world.run(&[RUN, &["--max-iterations", "2"]].concat()).code, 3);
    assert_snapshot!(plain(&world, "mend-the-pump-e01275de"), @"
    session mend-the-pump-e01275de  ended after 2 iterations: 2 iterations are the limit
      goal          Mend the pump
      task          T1
      agent         command:sh agent.sh
      started       <time>
      ended         <time>

    start
      session_start[0] ok (<took>)
        | remember
        feedback 9, delivered in turn 2

    iteration 1  <time>, failed
      turn 1, to work, with one piece of feedback
        failed: exit 5

    iteration 2  <time>, completed
      turn 2, to work, with feedback 9
        agent: turn 2
      gate: pass, so: another iteration, as the agent has not said that it is done
      post_iteration[0] timed out after <took> (<took>)
    ");
}

#[test]
fn a_task_that_waits() {
    let world = World::with_tasks(&["Parse", "Lex"]);
    world.ok(&["task", "add", "Test", "--depends", "T1", "--depends", "T2"]);
    world.ok(&["task", "block", "T2", "--reason", "which\nlanguage?", "--needs", "a decision"]);
    world.ok(&["task", "claim", "T1", "--owner", "worker-1"]);
    assert_snapshot!(plain(&world, "T3"), @"
    T3  created  P2  Test (waits for 2)
      waits for     T1 (active: held by worker-1)  Parse
      waits for     T2 (blocked: which⏎language?)  Lex

    because
         5  <time>  T3     task_created              Test
            a command of ann

    history
         5  <time>  T3     task_created              Test
         6  <time>  T3     dependency_added          T3 depends_on T1
         7  <time>  T3     dependency_added          T3 depends_on T2
    ");
    assert_snapshot!(plain(&world, "T2"), @"
    T2  blocked  P2  Lex
      blocked       which⏎language?
      needs         a decision

    because
         8  <time>  T2     task_blocked              which⏎language?
            a command of ann

    history
         3  <time>  T2     task_created              Lex
         4  <time>  T2     task_ready
         8  <time>  T2     task_blocked              which⏎language?
    ");
    let held = world.ok(&["why", "T1"]);
    assert!(held.contains("held by       worker-1 (epoch 1), for "), "{held}");
    assert_eq!(world.json(&["why", "T3"])["waitsFor"][1]["why"], "which\nlanguage?");
}

#[test]
fn a_task_that_others_made_ready() {
    let world = World::with_tasks(&["Parse"]);
    world.ok(&["task", "add", "Test", "--depends", "T1"]);
    world.ok(&["task", "complete", "T1", "--result", "done"]);
    assert_snapshot!(plain(&world, "t2"), @"
    T2  ready  P2  Test

    because
         6  <time>  T2       task_ready
            a hook of 5, at depth 1, for ann
         5  <time>  T1     task_completed            done
            a command of ann

    history
         3  <time>  T2     task_created              Test
         4  <time>  T2     dependency_added          T2 depends_on T1
         6  <time>  T2       task_ready
         7  <time>  T2       dependency_satisfied    by T1
    ");
    let causes: Vec<Value> = world.json(&["why", "T2"])["causes"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .map(|cause| cause["event"]["type"].take())
        .collect();
    assert_eq!(causes, ["task_ready", "task_completed"]);
}

#[test]
fn a_task_that_the_end_of_another_blocked() {
    let world = World::with_tasks(&["Parse"]);
    world.ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run(&["task", "delete", "T1", "--force"]);
    assert_snapshot!(plain(&world, "T2"), @"
    T2  blocked  P2  Test
      blocked       its dependency T1 was deleted
      by            the end of T1
      forced        task_blocked 5 by ann

    because
         5  <time>  T2     task_blocked              (forced) its dependency T1 was deleted
            a command of ann, by force

    history
         3  <time>  T2     task_created              Test
         4  <time>  T2     dependency_added          T2 depends_on T1
         5  <time>  T2     task_blocked              (forced) its dependency T1 was deleted
    ");
}

#[test]
fn what_was_forced_is_said() {
    let world = World::with_tasks(&["Parse"]);
    world.ok(&["task", "add", "Test", "--depends", "T1"]);
    world.ok(&["task", "complete", "T2", "--force"]);
    assert_snapshot!(plain(&world, "T2"), @"
    T2  completed  P2  Test
      forced        task_completed 5 by ann

    because
         5  <time>  T2     task_completed            (forced)
            a command of ann, by force

    history
         3  <time>  T2     task_created              Test
         4  <time>  T2     dependency_added          T2 depends_on T1
         5  <time>  T2     task_completed            (forced)
    ");
    assert_eq!(world.json(&["why", "T2"])["forced"], json!([5]));
}

#[test]
fn hooks_are_evidence() {
    let world = World::new();
    let mut runner = Runner::new(&world, &[(EventType::TaskCompleted, "lint")]);
    runner.add("Parse");
    let records =
        runner.give(&Command::CompleteTask { id: windlass_engine::TaskId(1), result: None, artifacts: vec![] });
    let completed = records.iter().find(|record| record.kind() == EventType::TaskCompleted).unwrap().seq;
    let debt = windlass_engine::DebtId { seq: completed, index: 0 };
    runner.begin(debt);
    let action = windlass_engine::ActionRequest { kind: "create_task".to_owned(), payload: json!({"goal": "Mend"}) };
    let message = Some("two\nlines \u{202e}".to_owned());
    runner.finish(debt, HookReport { message, actions: vec![action], ..HookOutcome::Failure.into() });
    assert_snapshot!(plain(&world, "T1"), @r#"
    T1  completed  P2  Parse

    because
         4  <time>  T1     task_completed
            a command of ann
            lint at task_completed failed: two⏎lines \u{202e} (<took>)
              asks for create_task: {"goal":"Mend"}

    history
         1  <time>  T1     task_created              Parse
         2  <time>  T1     task_ready
         4  <time>  T1     task_completed
         5  <time>  T1       hook_started            lint
         6  <time>  T1       hook_finished           lint failure: two⏎lines \u{202e}
    "#);
}

/// Reading is everybody's right, and leaves no trace.
#[test]
fn nothing_has_to_be_trusted_and_nothing_is_written() {
    let world = world(BLOCKS_TWICE, THIRD_TIME);
    assert_eq!(world.run(RUN).code, 0);
    world.ok(&["trust", "--revoke"]);
    let before = world.ok(&["events", "--json"]);
    for words in [&["why", "mend-the-pump-e01275de"][..], &["hooks", "history"], &["hooks", "metrics"]] {
        world.ok(words);
        world.json(if words[0] == "why" { words } else { &["hooks", "metrics"] });
    }
    assert_eq!(world.ok(&["events", "--json"]), before);
}

#[test]
fn what_there_is_not() {
    let world = world("", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(world.fails(&["why", "T7"]), @"
    error: there is no task T7
    hint: `windlass task list --all` shows every task
    [1 not_found]
    ");
    assert_snapshot!(world.fails(&["why", "mend-the-pump-e01275d"]), @"
    error: `mend-the-pump-e01275d` is no task, session, conversation, stop hook or series of iterations
    hint: did you mean `mend-the-pump-e01275de`?
    [1 not_found]
    ");
    assert_snapshot!(world.fails(&["why", "\u{1b}[31m"]), @r"
    error: `\u{1b}[31m` is no task, session, conversation, stop hook or series of iterations
    hint: `windlass session list` names them all; tasks are named like T12; `windlass events --type bridge_called` names conversations
    [1 not_found]
    ");
    assert_snapshot!(world.fails(&["why", "IT-1"]), @"
    error: there is no series of iterations IT-1
    hint: `windlass why TASK` names those of a task, `windlass events --type series_started` all of them
    [1 not_found]
    ");
    assert_snapshot!(world.fails(&["why", "hook-99"]), @"
    error: there is no stop hook HOOK-99
    hint: `windlass why TASK` names those of a task, `windlass events --type hook_registered` all of them
    [1 not_found]
    ");
    assert_snapshot!(World::new().fails(&["why", "main"]), @"
    error: `main` is no task, session, conversation, stop hook or series of iterations
    hint: `windlass session list` names them all; tasks are named like T12; `windlass events --type bridge_called` names conversations
    [1 not_found]
    ");
}

/// On a terminal nothing is cut and nothing is wider than it; in a pipe lines stay lines.
#[test]
fn nothing_is_wider_than_the_terminal() {
    let world = World::with_tasks(&["Mend the pump"]);
    let reason = "the pump is in the cellar, the cellar is locked, and nobody knows who has the key; ask Ann about it";
    world.ok(&["task", "block", "T1", "--reason", reason]);
    let (shown, code) = crate::support::terminal::watch(world.command(&["why", "T1"]).env("NO_COLOR", "1"), 80);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches(reason).count(), 3, "once as it stands, and in its cause and its history: {shown}");
    assert_eq!(world.ok(&["why", "T1"]).lines().filter(|line| line.contains(reason)).count(), 3);
}
