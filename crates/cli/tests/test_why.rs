//! `windlass why`

use insta::assert_snapshot;
use serde_json::{Value, json};
use windlass_engine::{Command, EventType, HookOutcome, HookReport};

use crate::support::git_project::GitProject;
use crate::support::{TestWorld, normalize_durations};
use crate::test_hooks::{AGENT_FIXING_IN_THIRD_TURN, GATE_BLOCKING_TWICE, HookOwner};
use crate::test_run::{RUN, create_agent_project};

/// The summary, without the names of runners.
fn why_without_owners(world: &TestWorld, subject: &str) -> String {
    let shown = normalize_durations(&world.run(&["why", subject]).to_string());
    shown.lines().filter(|line| !line.contains(" task_claimed ")).collect::<Vec<_>>().join("\n")
}

/// Returns the facts of a type in an answer.
fn facts_of(world: &TestWorld, subject: &str, kind: &str) -> Vec<Value> {
    let mut facts = world.json(&["why", subject])["facts"].as_array_mut().unwrap().clone();
    facts.retain(|fact| fact["type"] == kind);
    facts
}

#[test]
fn session_sent_back_twice_is_summarized_with_blocks_and_evidence() {
    let world = create_agent_project(GATE_BLOCKING_TWICE, AGENT_FIXING_IN_THIRD_TURN);
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(why_without_owners(&world, "mend-the-pump-e01275de"), @"
    session mend-the-pump-e01275de  complete after one iteration
      goal          Mend the pump
      task          T1
      agent         command:sh agent.sh
      started       <time>
      ended         <time>
      sent back     2 times

         3  <time>  T1     task_created              Mend the pump
         4  <time>  T1     task_ready
         6  <time>  T1     task_started
    iteration 1 of mend-the-pump-e01275de
         9  <time>  T1     turn_finished             agent: turn 1
        10  <time>  T1     promise_detected          COMPLETE
        12  <time>  T1  hook_finished  stop[0] blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
            delivered to the agent with event 16
        14  <time>  T1     gate_decided              block, so: sent back (1 of 5), by stop[0]
        17  <time>  T1     turn_finished             agent: turn 2
        18  <time>  T1     promise_detected          COMPLETE
        20  <time>  T1  hook_finished  stop[0] blocks: 2 of 9 tests failed (<took>)
            | 2 of 9 tests failed
            | test_login failed
            delivered to the agent with event 24
        22  <time>  T1     gate_decided              block, so: sent back (2 of 5), by stop[0]
        25  <time>  T1     turn_finished             agent: turn 3
        26  <time>  T1     promise_detected          COMPLETE
        28  <time>  T1  hook_finished  stop[0] ok (<took>)
        29  <time>  T1     gate_decided              pass, so: complete, by stop[0]
        31  <time>  T1     task_completed
        32  <time>  T1     session_ended             complete
        34  <time>  T1  hook_finished  tell at session_end failed: exit 3 (<took>)

      shown         19 of 27 facts; --full shows everything
    ");
    let hooks = facts_of(&world, "mend-the-pump-e01275de", "hook_finished");
    assert_eq!(hooks[0]["evidence"], json!(["2 of 9 tests failed", "test_login failed"]));
    assert_eq!((&hooks[0]["session"], &hooks[0]["iteration"]), (&json!("mend-the-pump-e01275de"), &json!(1)));
    let gates = facts_of(&world, "mend-the-pump-e01275de", "gate_decided");
    let decided: Vec<_> = gates.iter().map(|gate| (&gate["data"]["verdict"], &gate["by"])).collect();
    let by = json!("stop[0]");
    assert_eq!(decided, [(&json!("block"), &by), (&json!("block"), &by), (&json!("pass"), &by)]);
    let told = world.json(&["why", "mend-the-pump-e01275de"]);
    assert_eq!((&told["kind"], &told["name"]), (&json!("session"), &json!("mend-the-pump-e01275de")));
    assert_eq!(told["standing"], "complete after one iteration");
}

/// Feedback is queued when the gate fails, and not when the hook ends.
#[test]
fn feedback_of_a_submission_gate_is_shown_as_delivered() {
    let bs = "{name: bs, command: 'test -e mended.txt || { echo mended.txt is missing; exit 2; }'}";
    let repo = GitProject::new(&format!("hooks: {{before_submit: [{bs}, create_pr]}}\n"));
    repo.set_agent("test ! -e work.txt || touch mended.txt; echo more >> work.txt");
    let ran = repo.add_task("Write it").world.run(&["run", "--task", "T1", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    let hooks = facts_of(&repo.world, "t1-write-it", "hook_finished");
    let blocks = hooks.iter().find(|fact| fact["data"]["outcome"] == "block").unwrap();
    let delivered = facts_of(&repo.world, "t1-write-it", "feedback_delivered");
    assert_eq!(blocks["details"], json!([format!("delivered to the agent with event {}", delivered[0]["seq"])]));
}

/// The gate passes, and the work still goes on: that has a reason, too.
#[test]
fn session_ended_at_iteration_limit_is_summarized_with_reason() {
    let config = "limits: {failure_span: 1ms}\nhooks: {session_start: [{command: echo remember, pipe_output: true}], post_iteration: [{command: sleep 9, timeout: 10ms}]}";
    let world = create_agent_project(config, "test $turn -gt 1 || exit 5; echo turn $turn");
    assert_eq!(world.run(&[RUN, &["--max-iterations", "2"]].concat()).code, 3);
    assert_snapshot!(why_without_owners(&world, "mend-the-pump-e01275de"), @"
    session mend-the-pump-e01275de  ended after 2 iterations: 2 iterations are the limit
      goal          Mend the pump
      task          T1
      agent         command:sh agent.sh
      started       <time>
      ended         <time>

         3  <time>  T1     task_created              Mend the pump
         4  <time>  T1     task_ready
         6  <time>  T1     task_started
         8  <time>  hook_finished  session_start[0] ok (<took>)
            | remember
            delivered to the agent with event 15
    iteration 1 of mend-the-pump-e01275de
        12  <time>  T1     iteration_failed          exit 5
    iteration 2 of mend-the-pump-e01275de
        16  <time>  T1     turn_finished             agent: turn 2
        17  <time>  T1     gate_decided              pass, so: another iteration
            the agent has not said that it is done
        20  <time>  T1  hook_finished  post_iteration[0] timed out after <took> (<took>)
        22  <time>  T1     task_needs_continuation   2 iterations are the limit
        23  <time>  T1     session_ended             stopped: 2 iterations are the limit

      next          windlass run --task T1 --agent 'command:sh agent.sh'
      shown         11 of 18 facts; --full shows everything
    ");
}

#[test]
fn waiting_task_summary_lists_unfinished_dependencies_and_their_state() {
    let world = TestWorld::with_tasks(&["Parse", "Lex"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1", "--depends", "T2"]);
    world.run_ok(&["task", "block", "T2", "--reason", "which\nlanguage?", "--needs", "a decision"]);
    world.run_ok(&["task", "claim", "T1", "--owner", "worker-1"]);
    assert_snapshot!(why_without_owners(&world, "T3"), @"
    task T3  created
      goal          Test
      because       5 task_created Test, by ann
      waits for     T1 (active: held by worker-1)  Parse
      waits for     T2 (blocked: which⏎language?)  Lex

         5  <time>  T3     task_created              Test, by ann

      shown         1 of 3 facts; --full shows everything
    ");
    assert_snapshot!(why_without_owners(&world, "T2"), @"
    task T2  blocked
      goal          Lex
      blocked       which⏎language?
      needs         a decision
      because       8 task_blocked which⏎language?, by ann

         3  <time>  T2     task_created              Lex, by ann
         4  <time>  T2     task_ready                by ann
         8  <time>  T2     task_blocked              which⏎language?, by ann

      next          windlass answer T2 continue
      shown         3 of 3 facts; --full shows everything
    ");
    let held = world.run_ok(&["why", "T1"]);
    assert!(held.contains("held by       worker-1 (epoch 1), for "), "{held}");
    let waits = json!({"label": "waits for", "text": "T2 (blocked: which\nlanguage?)  Lex"});
    assert!(world.json(&["why", "T3"])["about"].as_array().unwrap().contains(&waits));
}

#[test]
fn ready_task_summary_names_completed_dependency_as_cause() {
    let world = TestWorld::with_tasks(&["Parse"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run_ok(&["task", "complete", "T1", "--result", "done"]);
    assert_snapshot!(why_without_owners(&world, "t2"), @"
    task T2  ready
      goal          Test
      because       6 task_ready by a hook of 5, for ann
      because       5 T1 task_completed done, by ann

         3  <time>  T2     task_created              Test, by ann
         6  <time>  T2       task_ready              by a hook of 5, for ann
         7  <time>  T2       dependency_satisfied    by T1, by a hook of 5, for ann

      next          windlass run --task T2 --agent AGENT
      shown         3 of 4 facts; --full shows everything
    ");
}

#[test]
fn blocked_task_summary_names_deleted_dependency_as_cause() {
    let world = TestWorld::with_tasks(&["Parse"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run(&["task", "delete", "T1", "--force"]);
    assert_snapshot!(why_without_owners(&world, "T2"), @"
    task T2  blocked
      goal          Test
      blocked       its dependency T1 was deleted
      by            the end of T1
      because       5 task_blocked (forced) its dependency T1 was deleted, by ann
      forced        task_blocked 5 by ann

         3  <time>  T2     task_created              Test, by ann
         5  <time>  T2     task_blocked              (forced) its dependency T1 was deleted, by ann

      next          windlass answer T2 continue
      shown         2 of 3 facts; --full shows everything
    ");
}

#[test]
fn forced_completion_is_marked_in_task_summary() {
    let world = TestWorld::with_tasks(&["Parse"]);
    world.run_ok(&["task", "add", "Test", "--depends", "T1"]);
    world.run_ok(&["task", "complete", "T2", "--force"]);
    assert_snapshot!(why_without_owners(&world, "T2"), @"
    task T2  completed
      goal          Test
      because       5 task_completed (forced), by ann
      forced        task_completed 5 by ann

         3  <time>  T2     task_created              Test, by ann
         5  <time>  T2     task_completed            (forced), by ann

      shown         2 of 3 facts; --full shows everything
    ");
    assert_eq!(facts_of(&world, "T2", "task_completed")[0]["metadata"]["forced"], json!(true));
}

#[test]
fn hooks_are_evidence() {
    let world = TestWorld::new();
    let mut runner = HookOwner::new(&world, &[(EventType::TaskCompleted, "lint")]);
    runner.add_task("Parse");
    let records =
        runner.execute(&Command::CompleteTask { id: windlass_engine::TaskId(1), result: None, artifacts: vec![] });
    let completed = records.iter().find(|record| record.kind() == EventType::TaskCompleted).unwrap().seq;
    let debt = windlass_engine::EffectId { seq: completed, index: 0 };
    runner.begin_effect(debt);
    let action = windlass_engine::ActionRequest { kind: "create_task".to_owned(), payload: json!({"goal": "Mend"}) };
    let message = Some("two\nlines \u{202e}".to_owned());
    runner.finish_effect(debt, HookReport { message, actions: vec![action], ..HookOutcome::Failure.into() });
    assert_snapshot!(why_without_owners(&world, "T1"), @r#"
    task T1  completed
      goal          Parse
      because       4 task_completed by ann

         1  <time>  T1     task_created              Parse, by ann
         2  <time>  T1     task_ready                by ann
         4  <time>  T1     task_completed            by ann
         6  <time>  T1       hook_finished           lint at task_completed failed: two⏎lines \u{202e}
            asks for create_task: {"goal":"Mend"}

      shown         4 of 4 facts; --full shows everything
    "#);
}

/// Every caller may read, and reading leaves no trace.
#[test]
fn read_only_views_work_untrusted_and_record_no_events() {
    let world = create_agent_project(GATE_BLOCKING_TWICE, AGENT_FIXING_IN_THIRD_TURN);
    assert_eq!(world.run(RUN).code, 0);
    world.run_ok(&["trust", "--revoke"]);
    let before = world.run_ok(&["events", "--json"]);
    for words in [&["why", "mend-the-pump-e01275de"][..], &["hooks", "history"], &["hooks", "metrics"]] {
        world.run_ok(words);
        world.json(if words[0] == "why" { words } else { &["hooks", "metrics"] });
    }
    assert_eq!(world.run_ok(&["events", "--json"]), before);
}

#[test]
fn unknown_subject_is_reported_not_found_with_hint() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(world.expect_failure(&["why", "T7"]), @"
    error: there is no task T7
    hint: `windlass task list --all` shows every task
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["why", "mend-the-pomp-e01275de"]), @"
    error: `mend-the-pomp-e01275de` is no task, session, conversation, stop hook or series of iterations
    hint: did you mean `mend-the-pump-e01275de`?
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["why", "\u{1b}[31m"]), @r"
    error: `\u{1b}[31m` is no task, session, conversation, stop hook or series of iterations
    hint: `windlass session list` names them all; tasks are named like T12; `windlass events --type bridge_called` names conversations
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["why", "IT-1"]), @"
    error: there is no series of iterations IT-1
    hint: `windlass why TASK` names those of a task, `windlass events --type series_started` all of them
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["why", "hook-99"]), @"
    error: there is no stop hook HOOK-99
    hint: `windlass why TASK` names those of a task, `windlass events --type hook_registered` all of them
    [1 not_found]
    ");
    assert_snapshot!(TestWorld::new().expect_failure(&["why", "main"]), @"
    error: `main` is no task, session, conversation, stop hook or series of iterations
    hint: `windlass session list` names them all; tasks are named like T12; `windlass events --type bridge_called` names conversations
    [1 not_found]
    ");
}

/// On a terminal nothing is cut and nothing is wider than it; in a pipe lines stay lines.
#[test]
fn summary_wraps_to_terminal_width_without_truncation() {
    let world = TestWorld::with_tasks(&["Mend the pump"]);
    let reason = "the pump is in the cellar, the cellar is locked, and no one knows who has the key; ask Ann about it";
    world.run_ok(&["task", "block", "T1", "--reason", reason]);
    let (shown, code) =
        crate::support::terminal::run_in_terminal(world.command(&["why", "T1"]).env("NO_COLOR", "1"), 80);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches(reason).count(), 3, "once as it stands, and in its cause and its fact: {shown}");
    assert_eq!(world.run_ok(&["why", "T1"]).lines().filter(|line| line.contains(reason)).count(), 3);
}

/// The summary has room for the last decisions only, however long the log is; `--full` omits nothing.
#[test]
fn summary_has_forty_lines_and_full_has_everything() {
    let world = TestWorld::with_tasks(&["Mend the pump"]);
    for number in 1..=30 {
        world.run_ok(&["task", "add", &format!("Part {number}")]);
        world.run_ok(&["task", "depend", "T1", &format!("T{}", number + 1)]);
        world.run_ok(&["note", "add", "--task", "T1", &format!("note {number}")]);
    }
    let summary = world.run_ok(&["why", "T1"]);
    assert!((30..=40).contains(&summary.lines().count()), "{summary}");
    assert!(summary.contains("note 30") && !summary.contains("note 2,"), "{summary}");
    assert!(summary.trim_end().ends_with(" facts; --full shows everything"), "{summary}");
    let (narrow, code) =
        crate::support::terminal::run_in_terminal(world.command(&["why", "T1"]).env("NO_COLOR", "1"), 50);
    assert!(code == 0 && narrow.lines().count() <= 40, "{narrow}");
    let full = world.run_ok(&["why", "T1", "--full"]);
    for number in 1..=30 {
        assert!(full.contains(&format!("note {number},")) && full.contains(&format!("  Part {number}\n")), "{full}");
    }
    assert_eq!(facts_of(&world, "T1", "note_added").len(), 30);
}
