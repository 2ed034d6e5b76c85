//! `windlass hooks history` and `windlass hooks metrics`

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use windlass_engine::{
    ActionRequest, Authority, Command, CommandOrigin, CommitId, EffectId, EngineRules, EventCause, EventEnvelope,
    EventMetadata, EventRecord, EventSubject, EventType, HookClass, HookEffect, HookFailurePolicy, HookOutcome,
    HookPlan, HookPoint, HookRegistry, HookReport, NewTask, Seq, Timestamp, payload,
};
use windlass_store::{Lifetime, SqliteStore, Store, StoreCommit};

use crate::support::terminal::run_in_terminal;
use crate::support::{TestWorld, WINDLASS, normalize_durations};
use crate::test_run::{RUN, create_agent_project};

/// A gate that sends the agent back twice, and a hook that comes last.
pub const GATE_BLOCKING_TWICE: &str = "
hooks:
  stop:
    - command: |
        test -e fixed && exit 0
        echo 'test_login failed'; echo '2 of 9 tests failed' >&2; exit 2
  session_end:
    - name: tell
      command: exit 3
";
pub const AGENT_FIXING_IN_THIRD_TURN: &str =
    "test $turn -lt 3 || touch fixed; echo \"turn $turn\"; echo '<promise>COMPLETE</promise>'";

/// An owner that runs hooks of events, as far as the log is concerned. Each command comes a second after the last.
pub struct HookOwner {
    store: SqliteStore,
    rules: EngineRules,
    given: u32,
}

impl HookOwner {
    pub fn new(world: &TestWorld, hooks: &[(EventType, &str)]) -> Self {
        let store = SqliteStore::open(&world.path(".windlass/windlass.db"), Lifetime::Command).unwrap();
        let mut owed: BTreeMap<EventType, Vec<HookEffect>> = BTreeMap::new();
        for (event, name) in hooks {
            owed.entry(*event).or_default().push(HookEffect {
                hook: (*name).to_owned(),
                point: HookPoint::Event(*event),
                class: HookClass::Idempotent,
                on_failure: HookFailurePolicy::Ignore,
                send_backs: None,
            });
        }
        let effects = HookPlan::for_all_tasks("hooks: {}", "1-2-3".parse().unwrap(), owed);
        let rules =
            EngineRules { registry: HookRegistry::with_builtins(), effects: Some(effects), ..EngineRules::default() };
        Self { store, rules, given: 0 }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_768_644_000_000).add_millis(1000 * i64::from(self.given))
    }

    pub fn execute(&mut self, command: &Command) -> Vec<EventRecord> {
        self.given += 1;
        let origin =
            CommandOrigin { by: "ann".to_owned(), at: self.now(), authority: Authority::Person, run: None, via: None };
        self.store.execute_command(&self.rules, &origin, command, self.given.into()).unwrap()
    }

    /// Adds a task, and answers the first effect of its creation.
    pub fn add_task(&mut self, goal: &str) -> EffectId {
        let records = self.execute(&Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() }));
        let created = records.iter().find(|record| record.kind() == EventType::TaskCreated).unwrap();
        EffectId { seq: created.seq, index: 0 }
    }

    pub fn begin_effect(&mut self, effect: EffectId) {
        self.execute(&Command::BeginEffect { effect, owner: "1-2-3".parse().unwrap() });
    }

    pub fn finish_effect(&mut self, effect: EffectId, report: HookReport) {
        self.execute(&Command::FinishEffect { effect, owner: "1-2-3".parse().unwrap(), report: report.into() });
    }

    pub fn run_hook(&mut self, goal: &str, report: HookReport) {
        let effect = self.add_task(goal);
        self.begin_effect(effect);
        self.finish_effect(effect, report);
    }

    /// Records errors as a hook inside a commit and a refused action leave them.
    fn record_errors(&mut self, hook: &str, action: &str) {
        let (error, nothing) = ("it panicked".to_owned(), Value::Null);
        let hook =
            payload::HookError { hook_name: hook.to_owned(), error, original_event: nothing.clone(), effect: None };
        let error = "there is no task T9".to_owned();
        let action = payload::ActionError { action_type: action.to_owned(), error, payload: nothing };
        let metadata = EventMetadata {
            triggered_by: "ann".to_owned(),
            cause: Some(EventCause::At(Seq(2))),
            via: None,
            depth: 1,
            forced: false,
            owes: None,
        };
        let envelope = |event| EventEnvelope {
            timestamp: self.now(),
            node: EventSubject::System,
            session: None,
            iteration: None,
            event,
            metadata: metadata.clone(),
        };
        let id = CommitId { after: self.store.head().unwrap(), nonce: 77 };
        let events = vec![envelope(hook.into()), envelope(action.into())];
        self.store.append_commit(&StoreCommit { id, reads: BTreeMap::new(), events }).unwrap();
    }
}

fn report_with_duration(outcome: HookOutcome, millis: u64) -> HookReport {
    HookReport { took: Some(Duration::from_millis(millis)), ..outcome.into() }
}

#[test]
fn hook_history_and_metrics_report_all_session_runs() {
    let world = create_agent_project(GATE_BLOCKING_TWICE, AGENT_FIXING_IN_THIRD_TURN);
    assert_eq!(world.run(RUN).code, 0);
    let shown = |words: &[&str]| normalize_durations(&world.run(words).to_string());
    assert_snapshot!(shown(&["hooks", "history"]), @"
    <time>  stop[0]  stop  turn_finished 9, T1, mend-the-pump-e01275de 1  blocks  <took>  2 of 9 tests failed
    <time>  stop[0]  stop  turn_finished 17, T1, mend-the-pump-e01275de 1  blocks  <took>  2 of 9 tests failed
    <time>  stop[0]  stop  turn_finished 25, T1, mend-the-pump-e01275de 1  ok  <took>
    <time>  tell  session_end  session_ended 32, T1, mend-the-pump-e01275de 1  failed  <took>  exit 3
    ");
    assert_snapshot!(shown(&["hooks", "metrics"]), @"
    hook     runs  success  block  failure  timeout  other     p50     p95  last run
    stop[0]  3  33%  67%  0%  0%  0%  <took>  <took>  <time>
    tell  1  0%  0%  100%  0%  0%  <took>  <took>  <time>
    total  4  25%  50%  25%  0%  0%  <took>  <took>  <time>
    ");
    let mut first = world.json_lines(&["hooks", "history", "--limit", "0"]).remove(0);
    assert!(first["durationMs"].is_u64(), "{first}");
    first["durationMs"] = json!(7);
    first["startedAt"] = json!("then");
    first["finishedAt"] = json!("later");
    assert_snapshot!(serde_json::to_string_pretty(&first).unwrap(), @r#"
    {
      "action": null,
      "actions": [],
      "agent": null,
      "attempt": 1,
      "conversation": null,
      "durationMs": 7,
      "event": {
        "seq": 9,
        "type": "turn_finished"
      },
      "feedback": {
        "seq": 13,
        "text": "2 of 9 tests failed\n\ntest_login failed"
      },
      "finishedAt": "later",
      "hook": "stop[0]",
      "iteration": 1,
      "message": "2 of 9 tests failed",
      "nodeId": "T1",
      "outcome": "block",
      "output": null,
      "point": "stop",
      "session": "mend-the-pump-e01275de",
      "startedAt": "then",
      "tool": null
    }
    "#);
    let metrics = world.json(&["hooks", "metrics"]);
    assert_eq!(metrics["hooks"][0]["hook"], "stop[0]");
    assert_eq!(metrics["hooks"][0]["blockRate"], json!(0.6667));
    assert_eq!(metrics["total"]["runs"], 4);
    assert!(metrics["total"]["p95Ms"].is_u64(), "{metrics}");
}

#[test]
fn runs_are_picked() {
    let world = create_agent_project(GATE_BLOCKING_TWICE, AGENT_FIXING_IN_THIRD_TURN);
    assert_eq!(world.run(RUN).code, 0);
    let check = |words: &[&str], expected: &[&str]| {
        let found = world.json_lines(&[&["hooks", "history"], words].concat());
        let outcomes: Vec<_> = found.iter().map(|run| run["outcome"].as_str().unwrap().to_owned()).collect();
        assert_eq!(outcomes, expected, "{words:?}");
    };
    check(&[], &["block", "block", "success", "failure"]);
    check(&["--limit", "0"], &["block", "block", "success", "failure"]);
    check(&["--limit", "2"], &["success", "failure"]);
    check(&["--hook", "tell"], &["failure"]);
    check(&["--hook", "unused"], &[]);
    check(&["--point", "Stop", "--limit", "1"], &["success"]);
    check(&["--point", "session_end"], &["failure"]);
    check(&["--outcome", "block", "--outcome", "failure"], &["block", "block", "failure"]);
    check(&["--outcome", "block", "--limit", "1"], &["block"]);
    check(&["--session", "mend-the-pump-e01275de", "--limit", "3"], &["block", "success", "failure"]);
    assert_snapshot!(world.run(&["hooks", "history", "--hook", "unused"]), @"no runs");
    assert_snapshot!(world.expect_failure(&["hooks", "history", "--session", "mend-the-pump"]), @"
    error: there is no session `mend-the-pump`
    hint: `windlass session list` names them all
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "history", "--task", "T9"]), @"
    error: there is no task T9
    hint: `windlass task list --all` shows every task
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "history", "--point", "stopp"]), @"
    error: invalid value 'stopp' for '--point <POINT>': did you mean `stop`?
    hint: `windlass hooks history --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "history", "--outcome", "blocks"]), @"
    error: invalid value 'blocks' for '--outcome <OUTCOME>' [possible values: success, skip, failure, block, continue, again, escalate, timed_out, cancelled, interrupted, error, running, left]
    hint: did you mean `block`? `windlass hooks history --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["hooks", "metrics", "--since", "yesterday"]), @"
    error: invalid value 'yesterday' for '--since <TIME>': expected a length of time such as `30m`, `24h`, `7d`
    hint: `windlass hooks metrics --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn hooks_of_tasks_are_found_by_task() {
    let world = TestWorld::new();
    let mut runner = HookOwner::new(&world, &[(EventType::TaskCreated, "lint"), (EventType::TaskCreated, "tell")]);
    runner.run_hook("One", report_with_duration(HookOutcome::TimedOut, 30_000));
    let actions = vec![ActionRequest { kind: "log".to_owned(), payload: json!({}) }];
    let message = Some("no \u{1b}[31mcompiler".to_owned());
    let record = Some("../../etc/passwd".to_owned());
    runner.run_hook("Two", HookReport { message, record, actions, ..HookOutcome::Failure.into() });
    let third = runner.add_task("Three");
    runner.begin_effect(third);
    runner.record_errors("track-agent-task-lifecycle", "update_task");
    assert_snapshot!(world.run(&["hooks", "history"]), @r"
    <time>  lint                        task_created  task_created 2, T1   timed out   30.0 s
    <time>  lint                        task_created  task_created 6, T2   failed              no \u{1b}[31mcompiler  output .windlass/runs/../../etc/passwd (gone)
    <time>  lint                        task_created  task_created 10, T3  was left
    <time>  track-agent-task-lifecycle  task_created  task_created 2       error               it panicked
    <time>  action update_task                        task_created 2       error               there is no task T9
    ");
    assert_snapshot!(world.run(&["hooks", "history", "--task", "T2"]), @r"<time>  lint  task_created  task_created 6, T2  failed           no \u{1b}[31mcompiler  output .windlass/runs/../../etc/passwd (gone)");
    assert_snapshot!(world.run(&["hooks", "metrics"]), @"
    hook   runs  success  block  failure  timeout  other     p50     p95  last run
    lint      2       0%     0%      50%      50%     0%  30.0 s  30.0 s  <time>
    total     2       0%     0%      50%      50%     0%  30.0 s  30.0 s  <time>
    errors besides: 2; `windlass hooks history --outcome error` shows them
    ");
    assert_eq!(world.json_lines(&["hooks", "history", "--task", "T2"])[0]["output"]["exists"], json!(false));
    let error = &world.json_lines(&["hooks", "history", "--outcome", "error"])[0];
    assert_eq!((&error["hook"], &error["point"]), (&json!("track-agent-task-lifecycle"), &json!("task_created")));
}

/// Percentiles cover measured runs, and a time range limits the runs.
#[test]
fn metrics_are_exact() {
    let world = TestWorld::new();
    let mut runner = HookOwner::new(&world, &[(EventType::TaskCreated, "lint")]);
    for millis in 1..=20 {
        let outcome = if millis % 5 == 0 { HookOutcome::TimedOut } else { HookOutcome::Success };
        runner.run_hook("Again", report_with_duration(outcome, millis * 100));
    }
    assert_snapshot!(world.run(&["hooks", "metrics", "--hook", "lint"]), @"
    hook   runs  success  block  failure  timeout  other     p50     p95  last run
    lint     20      80%     0%       0%      20%     0%   1.0 s   1.9 s  <time>
    total    20      80%     0%       0%      20%     0%   1.0 s   1.9 s  <time>
    ");
    let total = world.json(&["hooks", "metrics"])["total"].take();
    assert_eq!((&total["p50Ms"], &total["p95Ms"], &total["timeoutRate"]), (&json!(1000), &json!(1900), &json!(0.2)));
    // All of these runs were in January.
    assert_snapshot!(world.run(&["hooks", "metrics", "--since", "7d"]), @"no runs");
    assert_eq!(world.json(&["hooks", "metrics", "--since", "9999w"])["total"]["runs"], 20);
}

/// Output above the memory limit is in a file, until the file is removed.
#[test]
fn long_output_is_where_the_history_says() {
    let world =
        create_agent_project("hooks: {stop: [{command: 'printf %300000d 7'}]}", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    let output = world.json_lines(&["hooks", "history"])[0]["output"].take();
    let file = world.path(output["file"].as_str().unwrap());
    assert_eq!(output["exists"], Value::Bool(true));
    assert_eq!(fs::metadata(&file).unwrap().len(), 300_000);
    assert!(!world.run_ok(&["hooks", "history"]).contains("gone"));
    fs::remove_file(&file).unwrap();
    assert!(world.run_ok(&["hooks", "history"]).trim_end().ends_with(" (gone)"));
    assert!(world.run_ok(&["why", "mend-the-pump-e01275de"]).contains(".windlass/runs/mend-the-pump-e01275de/"));
}

/// A killed process has left its hook, and the next one repeats it.
#[test]
fn interrupted_and_repeated_hook_is_recorded_as_two_runs() {
    let world = create_agent_project(
        "hooks: {stop: [{command: 'test -e again || { touch again; echo > started; cat go; }'}]}",
        "echo '<promise>COMPLETE</promise>'",
    );
    for fifo in ["started", "go"] {
        world.run_command(world.program("mkfifo").arg(fifo));
    }
    let mut child = world.command(RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    fs::read(world.path("started")).unwrap();
    let outcomes = || -> Vec<Value> {
        world.json_lines(&["hooks", "history"]).iter_mut().map(|run| run["outcome"].take()).collect()
    };
    assert_eq!(outcomes(), ["running"]);
    let running = world.run_ok(&["why", "mend-the-pump-e01275de"]);
    assert!(running.starts_with("session mend-the-pump-e01275de  running in iteration 1\n"), "{running}");
    assert!(running.contains("  waits for     the hook stop[0] at stop\n"), "{running}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(outcomes(), ["left"]);
    let left = world.run_ok(&["why", "mend-the-pump-e01275de"]);
    assert!(left.starts_with("session mend-the-pump-e01275de  unfinished in iteration 1\n"), "{left}");
    assert!(left.contains("  next          windlass run "), "{left}");
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(normalize_durations(&world.run(&["hooks", "history"]).to_string()), @"
    <time>  stop[0]  stop  turn_finished 9, T1, mend-the-pump-e01275de 1  was interrupted           it was begun again
    <time>  stop[0]  stop  turn_finished 9, T1, mend-the-pump-e01275de 1  ok  <took>  (attempt 2)
    ");
    assert_eq!(outcomes(), ["interrupted", "success"]);
    assert_eq!(world.json(&["hooks", "metrics"])["total"]["other"], 1);
}

/// A run that failed and was tried again was not interrupted.
#[test]
fn every_try_is_a_run() {
    let hook = "{name: flaky, command: 'test -e once || { touch once; exit 3; }', retry: {max: 2, backoff: 1ms}}";
    let world = create_agent_project(&format!("hooks: {{task_created: [{hook}]}}"), "");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Again"]);
    assert_snapshot!(normalize_durations(&world.run(&["hooks", "history"]).to_string()), @"
    <time>  flaky  task_created  task_created 2, T1  failed           exit 3
    <time>  flaky  task_created  task_created 2, T1  ok  <took>  (attempt 2)
    ");
}

/// A command inside a hook prints its result to the hook.
#[test]
fn command_inside_hook_prints_created_task() {
    let world = create_agent_project("hooks: {task_completed: [{command: windlass task add More > added}]}", "");
    std::os::unix::fs::symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Once"]);
    world.run_ok(&["task", "complete", "T1"]);
    assert_eq!(fs::read_to_string(world.path("added")).unwrap(), "T2  ready  P2  More\n");
}

/// A trial has the result of a real run: it has the context of rules, and masks secrets.
#[test]
fn trials_are_like_real_runs() {
    let config = r#"
secrets: [TOKEN]
hooks:
  stop:
    - name: rule
      events: [task_completed]
      rules: [{when: "filesModified | length == 0 and agentOutput == output", action: continue, reason: not yet}]
    - {name: leak, command: 'echo "$TOKEN"; printf "%300000d" 7; exit 2', max_output: 64}
  task_completed:
    - {name: tell, command: 'echo {{task_id}} {{task_content}}', pipe_output: true}
"#;
    let world = create_agent_project(config, "");
    let payload = r#"{"output": "so far", "task": {"id": "T7", "content": "Mend it"}}"#;
    world.write("payload.json", payload);
    let check = |point: &str, hook: &str, outcome: &str, told: Value| {
        let words = ["--json", "hooks", "test", point, "--hook", hook, "--run", "--payload", "payload.json"];
        let ran = world.run_with_variable(("TOKEN", "hunter22"), &words);
        let verdict: Value = serde_json::from_str::<Value>(&ran.stdout).unwrap()["verdict"].take();
        assert_eq!(verdict["outcome"], outcome, "{ran}");
        assert!(told.is_null() || verdict["feedback"].as_str().unwrap().contains(told.as_str().unwrap()), "{ran}");
        assert!(!ran.stdout.contains("hunter22"), "{ran}");
    };
    check("stop", "rule", "continue", json!("not yet"));
    check("task_completed", "rule", "success", Value::Null);
    check("stop", "leak", "block", json!("[secret TOKEN]"));
    check("task_completed", "tell", "success", json!("T7 Mend it"));
    assert_eq!(fs::read_dir(world.path(".windlass/runs/trials")).unwrap().count(), 0);
}

/// A person's terminal is narrow, and colours are for people.
#[test]
fn lines_fit_the_terminal() {
    let world = create_agent_project(GATE_BLOCKING_TWICE, &format!("{AGENT_FIXING_IN_THIRD_TURN}; printf %200d 7"));
    world.run(&[RUN, &["--max-iterations", "1"]].concat());
    for words in [&["hooks", "history"][..], &["hooks", "metrics"], &["why", "mend-the-pump-e01275de"]] {
        for columns in [80, 120] {
            let (shown, code) = run_in_terminal(&mut world.command(words), columns);
            assert!(code == 0 && shown.contains("\u{1b}["), "{words:?}\n{shown}");
            for line in shown.lines() {
                assert!(visible_width(line) <= usize::from(columns), "{words:?}: {line}");
            }
        }
    }
}

/// Returns the number of characters without colours.
fn visible_width(line: &str) -> usize {
    let parts = line.split('\u{1b}');
    parts
        .enumerate()
        .map(|(place, part)| {
            if place == 0 { part } else { part.split_once('m').map_or(part, |(_, rest)| rest) }
                .trim_end()
                .chars()
                .count()
        })
        .sum()
}

#[test]
fn hook_history_and_metrics_are_empty_without_runs() {
    let world = TestWorld::new();
    assert_snapshot!(world.run(&["hooks", "history"]), @"no runs");
    assert_snapshot!(world.run(&["hooks", "metrics"]), @"no runs");
    assert_eq!(world.json_lines(&["hooks", "history"]), Vec::<Value>::new());
    assert_eq!(world.json(&["hooks", "metrics"])["total"]["successRate"], Value::Null);
}
