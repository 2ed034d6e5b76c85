//! The views of an agent that drives itself: `why`, `task show`, `status` and `events`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::terminal::run_in_terminal;
use crate::support::{TestWorld, normalize_durations};

/// T1 with a hook that is asked and one that is not (HOOK-3, HOOK-4), in a series of three strict iterations (IT-6).
fn create_series() -> TestWorld {
    let world = TestWorld::with_tasks(&["Write the guide"]);
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "promise"}));
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "validation", "enabled": false}));
    let sane = json!({"pattern": "later", "target": "agent_output", "mustMatch": false});
    let rules = json!([
        {"type": "file_existence", "name": "guide", "config": {"paths": ["guide.md"]}},
        {"type": "content_pattern", "name": "sane", "config": sane},
    ]);
    let start = json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE", "BLOCKED"],
                       "validationRules": rules, "strict": true});
    world.call_tool("iteration_start", &start);
    world
}

/// Runs the evaluation of the present iteration of IT-6.
fn validate_iteration(world: &TestWorld, output: &str) {
    world.call_tool("iteration_validate", &json!({"iterationId": "IT-6", "agentOutput": output}));
}

fn register_rules(world: &TestWorld, rules: &Value) {
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "rules", "rules": rules}));
}

/// The promise is not enough in the first iteration, and is in the second.
fn create_judged_series() -> TestWorld {
    let world = create_series();
    validate_iteration(&world, "Done.\n<promise>COMPLETE</promise>");
    world.call_tool("iteration_next", &json!({"iterationId": "IT-6"}));
    world.write("guide.md", "The pump");
    world.call_tool("hook_evaluate", &json!({"iterationId": "IT-6", "agentOutput": "Nearly."}));
    let checkpoint = json!({"taskId": "T1", "trigger": "manual", "executionPhase": "writing", "executionStep": 2});
    world.call_tool("checkpoint_create", &checkpoint);
    validate_iteration(&world, "Done.\n<promise>COMPLETE</promise>");
    world
}

fn command_output(world: &TestWorld, words: &[&str]) -> String {
    normalize_durations(&world.run(words).to_string())
}

fn facts_of(world: &TestWorld, subject: &str) -> Vec<Value> {
    world.json(&["why", subject])["facts"].as_array().unwrap().clone()
}

#[test]
fn every_decision_with_its_evidence() {
    let world = create_judged_series();
    assert_snapshot!(command_output(&world, &["why", "T1"]), @r#"
    task T1  active
      goal          Write the guide
      because       5 task_started by ann
      stop hooks    2: HOOK-3 promise, HOOK-4 validation (disabled)
      series        iteration 2 of 3 in IT-6, last COMPLETE
      checkpoint  CP-11, number 1, manual, phase writing, step 2, <took> ago

         1  <time>  T1     task_created              Write the guide, by ann
         2  <time>  T1     task_ready                by ann
         3  <time>  T1     hook_registered           HOOK-3 promise, by ann
            | {"hookType":"promise"}
         4  <time>  T1     hook_registered           HOOK-4 validation (disabled), by ann
            | {"hookType":"validation"}
         5  <time>  T1     task_started              by ann
         6  <time>  T1     series_started            IT-6, up to 3 iterations, until COMPLETE, BLOCKED, 2 rules, strict, by ann
            | {"config":{"paths":["guide.md"]},"name":"guide","type":"file_existence"}
            | {"config":{"mustMatch":false,"pattern":"later","target":"agent_output"},"name":"sane","type":"content_pattern"}
         7  <time>  T1     hook_evaluated            HOOK-3 complete: the agent says that the work is complete: <promise>COMPLETE</promise>
         8  <time>  T1     validation_finished       IT-6 iteration 1: CONTINUE, 1 of 2 rules failed, HOOK-3 decided
            | guide failed: 1 of 1 paths missing: `guide.md`. Paths are relative to the project's directory: make what is missing, or correct the rule's `paths`
            | sane passed: `later` is not in the agent's output
            | the agent promises COMPLETE
            one more line
        10  <time>  T1     hook_evaluated            HOOK-3 continue: the agent has made no promise
            | guide passed: `guide.md` is there
            | sane passed: `later` is not in the agent's output
        12  <time>  T1     hook_evaluated            HOOK-3 complete: the agent says that the work is complete: <promise>COMPLETE</promise>
        13  <time>  T1     validation_finished       IT-6 iteration 2: COMPLETE, all 2 rules passed, HOOK-3 decided
            | guide passed: `guide.md` is there
            | sane passed: `later` is not in the agent's output
            | the agent promises COMPLETE

      next          windlass task release T1
      shown         11 of 13 facts; --full shows everything
    "#);
    assert_eq!(world.run_ok(&["why", "it-6"]).matches(" validation_finished ").count(), 2);
    let told = world.json(&["why", "T1"]);
    assert_eq!((&told["kind"], &told["name"]), (&json!("task"), &json!("T1")));
    let of_series = facts_of(&world, "IT-6");
    assert!(of_series.iter().all(|fact| told["facts"].as_array().unwrap().contains(fact)), "{told}");
    let first = of_series.iter().find(|fact| fact["type"] == "validation_finished").unwrap();
    assert_eq!((&first["data"]["signal"], &first["data"]["hook"]), (&json!("CONTINUE"), &json!("HOOK-3")));
    assert_eq!(first["data"]["results"][0]["ruleName"], "guide");
    assert_eq!(first["evidence"][3], "the series is strict: the work is complete when every validation rule passes");
}

#[test]
fn why_command_shows_decisions_of_disabled_and_cleared_hooks() {
    let world = create_series();
    assert_snapshot!(command_output(&world, &["why", "HOOK-4"]), @r#"
    hook HOOK-4  disabled
      task          T1 (active)  Write the guide
      decided       nothing yet

         4  <time>  T1     hook_registered           HOOK-4 validation (disabled), by ann
            | {"hookType":"validation"}

      next          windlass task release T1
      shown         1 of 1 facts; --full shows everything
    "#);
    register_rules(&world, &json!([{"when": "iteration > 9", "action": "escalate"}]));
    validate_iteration(&world, "Nothing to say");
    world.call_tool("hook_clear", &json!({"taskId": "T1"}));
    assert_snapshot!(command_output(&world, &["why", "HOOK-7"]), @r#"
    hook HOOK-7  no longer registered
      task          T1 (active)  Write the guide
      decided       once

         7  <time>  T1     hook_registered           HOOK-7 rules, by ann
            | {"hookType":"rules","rules":[{"action":"escalate","when":"iteration > 9"}]}
         8  <time>  T1     hook_evaluated            HOOK-7 continue: none of its rules matches
         9  <time>  T1     validation_finished       IT-6 iteration 1: CONTINUE, 1 of 2 rules failed, HOOK-7 decided
            | guide failed: 1 of 1 paths missing: `guide.md`. Paths are relative to the project's directory: make what is missing, or correct the rule's `paths`
            | sane passed: `later` is not in the agent's output
        10  <time>  T1     hooks_cleared             3 hooks: HOOK-3, HOOK-4, HOOK-7, by ann

      next          windlass task release T1
      shown         4 of 4 facts; --full shows everything
    "#);
    assert_eq!(world.json(&["why", "HOOK-7"])["kind"], "hook");
    assert_eq!(facts_of(&world, "HOOK-7")[0]["data"]["hook"]["rules"][0]["when"], "iteration > 9");
}

#[test]
fn guard_of_a_series_is_named() {
    let world = TestWorld::with_tasks(&["Write the guide"]);
    world
        .call_tool("iteration_start", &json!({"taskId": "T1", "maxIterations": 1, "completionPromises": ["COMPLETE"]}));
    for _ in 0..12 {
        world.call_tool("iteration_validate", &json!({"iterationId": "IT-4"}));
    }
    let told = world.run_ok(&["why", "IT-4"]);
    assert_eq!(told.matches("        | maximum: this was iteration 1 of 1\n").count(), 12, "{told}");
    assert!(told.contains("ESCALATE, stopped by the maximum of iterations"), "{told}");
    assert_eq!(facts_of(&world, "IT-4").len(), 13);
    world.call_tool("iteration_start", &json!({"taskId": "T1", "maxIterations": 2, "completionPromises": ["BLOCKED"]}));
    world.call_tool("iteration_complete", &json!({"iterationId": "IT-17", "completionPromise": "BLOCKED"}));
    let told = world.run_ok(&["why", "IT-17"]);
    assert!(
        told.starts_with("series IT-17  over\n") && told.contains("IT-17 with BLOCKED after one iteration"),
        "{told}"
    );
    assert!(world.run_ok(&["why", "IT-4"]).starts_with("series IT-4  over\n"));
}

#[test]
fn unknown_stop_hook_is_an_error() {
    let ran = TestWorld::new().run(&["why", "HOOK-77"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.starts_with("error: there is no stop hook HOOK-77\n"), "{ran}");
}

#[test]
fn task_show_and_status_report_iteration_of_series() {
    let world = create_series();
    let status = world.run_ok(&["status"]);
    assert!(status.contains("\n  T1: iteration 1 of 3 in IT-6, not judged yet\n"), "{status}");
    let world = create_judged_series();
    assert_snapshot!(command_output(&world, &["task", "show", "T1"]), @"
    T1  active  P2  Write the guide
      stop hooks    2: HOOK-3 promise, HOOK-4 validation (disabled)
      series        iteration 2 of 3 in IT-6, last COMPLETE
      checkpoint  CP-11, number 1, manual, phase writing, step 2, <took> ago
      created       <time>
      started       <time>
    ");
    let task = world.json(&["task", "show", "T1"]);
    assert_eq!(task["drive"]["series"]["id"], "IT-6");
    assert_eq!(world.json(&["task", "list"])["drive"], task["drive"], "the row is the row");
}

#[test]
fn events_say_what_happened() {
    let world = create_judged_series();
    world.call_tool("iteration_complete", &json!({"iterationId": "IT-6", "completionPromise": "COMPLETE"}));
    world.call_tool("hook_clear", &json!({"taskId": "T1"}));
    assert_snapshot!(command_output(&world, &["events", "--from", "3"]), @"
     3  <time>  T1     hook_registered           HOOK-3 promise
     4  <time>  T1     hook_registered           HOOK-4 validation (disabled)
     5  <time>  T1     task_started
     6  <time>  T1     series_started            IT-6, up to 3 iterations, until COMPLETE, BLOCKED, 2 rules, strict
     7  <time>  T1     hook_evaluated            HOOK-3 complete: the agent says that the work is complete: <promise>COMPLETE</promise>
     8  <time>  T1     validation_finished       IT-6 iteration 1: CONTINUE, 1 of 2 rules failed, HOOK-3 decided
     9  <time>  T1     series_advanced           iteration 2 of IT-6
    10  <time>  T1     hook_evaluated            HOOK-3 continue: the agent has made no promise
    11  <time>  T1     checkpoint_created        CP-11, number 1, manual, phase writing, step 2
    12  <time>  T1     hook_evaluated            HOOK-3 complete: the agent says that the work is complete: <promise>COMPLETE</promise>
    13  <time>  T1     validation_finished       IT-6 iteration 2: COMPLETE, all 2 rules passed, HOOK-3 decided
    14  <time>  T1     series_ended              IT-6 with COMPLETE after 2 iterations
    15  <time>  T1     task_completed
    16  <time>  T1     hooks_cleared             2 hooks: HOOK-3, HOOK-4
    ");
}

#[test]
fn views_fit_terminal_width_and_escape_control_characters() {
    let world = create_series();
    let next = "one\ntwo\nthree\nfour\u{202e}";
    let rules = json!([{"action": "continue", "reason": "red: \u{1b}[31m", "nextPrompt": next}]);
    world.call_tool("hook_clear", &json!({"taskId": "T1"}));
    register_rules(&world, &rules);
    validate_iteration(&world, "\u{1b}[2J");
    for words in [&["why", "T1"][..], &["why", "HOOK-8"], &["task", "show", "T1"], &["events"]] {
        let (shown, code) = run_in_terminal(world.command(words).env("NO_COLOR", "1"), 80);
        assert_eq!(code, 0, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{words:?} {shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{words:?} {shown:?}");
    }
    let told = world.run_ok(&["why", "T1"]);
    assert!(told.contains("HOOK-8 continue: red: \\u{1b}[31m\n"), "{told}");
    assert!(told.contains("        | one\n        | two\n"), "{told}");
    let full = world.run_ok(&["why", "T1", "--full"]);
    assert!(full.contains("        | four\\u{202e}\n"), "{full}");
}

/// Starts a series on T1 with the rule that the pump is written.
fn start_series(world: &TestWorld, max_iterations: u32) {
    let rule = json!({"type": "file_existence", "name": "written", "config": {"paths": ["pump.txt"]}});
    let start = json!({"taskId": "T1", "maxIterations": max_iterations, "completionPromises": ["COMPLETE"],
                       "validationRules": [rule], "circuitBreakerThreshold": 3});
    world.call_tool("iteration_start", &start);
}

/// The answers of a hook at the gates of a session on T1, which a person has registered before (HOOK-3), with a rule in a series
/// (IT-5). The gate has a hook of its own.
fn run_gated_session() -> TestWorld {
    let config =
        "hooks: {stop: [{name: oil, command: 'test -e oil.txt || { echo oil.txt is missing >&2; exit 2; }'}]}\n";
    let world = TestWorld::with_scripted_agent(
        config,
        "
turns:
  - do: [{promise: COMPLETE}]
  - do: [{write: {path: pump.txt, content: mended}}, {promise: COMPLETE}]
  - do: [{write: {path: oil.txt, content: oiled}}, {promise: COMPLETE}]
",
    );
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "validation"}));
    start_series(&world, 9);
    world.run_ok(&["task", "release", "T1"]);
    let ran = world.run(&["run", "--task", "T1", "--agent", "scripted:play.yaml", "--session", "pump"]);
    assert_eq!(ran.code, 0, "{ran}");
    world
}

/// Runs an agent that never fixes the pump, on a task with a series that one rule judges.
fn run_series(max_iterations: u32) -> TestWorld {
    let turns: Vec<String> =
        (1..6).map(|turn| format!("  - do: [{{say: Try {turn}.}}, {{promise: COMPLETE}}]\n")).collect();
    let world = TestWorld::with_scripted_agent("", &format!("turns:\n{}", turns.concat()));
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    register_rules(&world, &json!([{"when": "iteration > 0", "action": "continue", "reason": "try {{ iteration }}"}]));
    start_series(&world, max_iterations);
    world.run_ok(&["task", "release", "T1"]);
    let ran = world.run(&["run", "--task", "T1", "--agent", "scripted:play.yaml", "--session", "pump"]);
    assert_eq!(ran.code, 4, "{ran}");
    world
}

#[test]
fn series_limits_hold_for_loop() {
    let world = run_series(2);
    let seen: Vec<Value> =
        world.event_payloads("validation_finished").iter().map(|data| data["iteration"].clone()).collect();
    assert_eq!(seen, [1, 2]);
    let reasons: Vec<Value> =
        world.event_payloads("hook_evaluated").iter().map(|data| data["reason"].clone()).collect();
    assert_eq!(reasons, ["try 1", "try 2"]);
    let shown = world.run_ok(&["task", "show", "T1"]);
    assert!(shown.contains("iteration 2 of 2 in IT-5, last CONTINUE"), "{shown}");
    assert!(shown.contains("IT-5 ends here, maximum: this was iteration 2 of 2"), "{shown}");
    let world = run_series(9);
    assert_eq!(world.event_payloads("validation_finished").len(), 3);
    let shown = world.run_ok(&["task", "show", "T1"]);
    assert!(shown.contains("circuit breaker: validation failed in 3 iterations in a row"), "{shown}");
}

#[test]
fn why_command_shows_hook_decisions_at_session_gate() {
    let world = run_gated_session();
    assert_snapshot!(command_output(&world, &["why", "HOOK-3"]), @r#"
    hook HOOK-3  enabled
      task          T1 (completed)  Mend the pump
      decided       3 times

         3  <time>  T1     hook_registered           HOOK-3 validation, by ann
            | {"hookType":"validation"}
    iteration 1 of pump
        18  <time>  T1     hook_evaluated            HOOK-3 continue at the gate: 1 of 1 validation rules failed: written
            | written failed: 1 of 1 paths missing: `pump.txt`. Paths are relative to the project's directory: make what is missing, or correct the rule's `paths`
            | Fix what the validation rules found:
            | - written: 1 of 1 paths missing: `pump.txt`. Paths are relative to the project's directory: make what is missing, or correct the rule's `paths`
        19  <time>  T1     validation_finished       IT-5 iteration 1: CONTINUE, its rule failed, HOOK-3 decided
            | the agent promises COMPLETE
        25  <time>  T1     gate_decided              block, so: sent back (1 of 5), by oil
        31  <time>  T1     hook_evaluated            HOOK-3 complete at the gate: the validation rule passes
            | written passed: `pump.txt` is there
        32  <time>  T1     validation_finished       IT-5 iteration 1: COMPLETE, its rule passed, HOOK-3 decided
            | the agent promises COMPLETE
        37  <time>  T1     gate_decided              block, so: sent back (2 of 5), by oil
        43  <time>  T1     hook_evaluated            HOOK-3 complete at the gate: the validation rule passes
            | written passed: `pump.txt` is there
        44  <time>  T1     validation_finished       IT-5 iteration 1: COMPLETE, its rule passed, HOOK-3 decided
            | the agent promises COMPLETE
        48  <time>  T1     gate_decided              pass, so: complete, by registered, oil

      shown         10 of 10 facts; --full shows everything
    "#);
    let told = facts_of(&world, "HOOK-3");
    let of_task = facts_of(&world, "T1");
    assert!(told.iter().all(|fact| of_task.contains(fact)), "{told:?}");
    let evaluated: Vec<&Value> = told.iter().filter(|fact| fact["type"] == "hook_evaluated").collect();
    assert_eq!((&evaluated[1]["session"], &evaluated[1]["iteration"]), (&json!("pump"), &json!(1)));
    assert_eq!(evaluated[1]["data"]["results"][0]["passed"], json!(true));
    let is_evaluated = |fact: &Value| fact["type"] == "hook_evaluated";
    assert!(!facts_of(&world, "IT-5").iter().any(is_evaluated), "a gate is not the series");
    let events = command_output(&world, &["events", "--type", "hook_evaluated"]);
    assert_snapshot!(events, @"
    18  <time>  T1     hook_evaluated            HOOK-3 continue at the gate: 1 of 1 validation rules failed: written
    31  <time>  T1     hook_evaluated            HOOK-3 complete at the gate: the validation rule passes
    43  <time>  T1     hook_evaluated            HOOK-3 complete at the gate: the validation rule passes
    ");
}
