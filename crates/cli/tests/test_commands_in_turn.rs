//! Commands from inside an agent's turn

use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;
use serde_json::json;
use windlass_engine::{
    Authority, Command, CommandOrigin, EngineRules, Event, EventType, HookClass, HookEffect, HookFailurePolicy,
    HookOutcome, HookPlan, HookPoint, HookRegistry, HookReport, NewSession, Promise, RunId, Timestamp, TurnAnswer,
};
use windlass_store::{Lifetime, SqliteStore, Store};
use windlass_testkit::sample_session;

use crate::support::TestWorld;

/// A runner, as far as the log is concerned.
struct SimulatedRunner {
    store: SqliteStore,
    rules: EngineRules,
    nonce: u128,
}

impl SimulatedRunner {
    fn new(world: &TestWorld) -> Self {
        let store = SqliteStore::open(&world.path(".windlass/windlass.db"), Lifetime::Command).unwrap();
        Self {
            store,
            rules: EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() },
            nonce: 0,
        }
    }

    fn execute(&mut self, command: &Command) -> Vec<Event> {
        let at = Timestamp::from_millis(1_768_644_000_000);
        let origin = CommandOrigin { by: "runner".to_owned(), at, authority: Authority::Person, run: None, via: None };
        self.nonce += 1;
        let records = self.store.execute_command(&self.rules, &origin, command, self.nonce).unwrap();
        records.into_iter().map(|record| record.envelope.event).collect()
    }

    /// Starts a turn of a session that works on T1.
    fn start_turn(&mut self) -> RunId {
        let events = self.execute(&Command::StartSession(NewSession {
            config: "version: 1".to_owned(),
            owner: "runner".parse().unwrap(),
            ..sample_session()
        }));
        let started = events.into_iter().find_map(|event| match event {
            Event::TurnStarted(started) => Some(started.run),
            _ => None,
        });
        started.unwrap()
    }
}

#[test]
fn task_completion_by_agent_is_recorded_as_claim() {
    let world = TestWorld::with_tasks(&["One"]);
    let mut runner = SimulatedRunner::new(&world);
    let run = runner.start_turn();
    let variable = ("WINDLASS_RUN", &*run.to_string());
    assert_snapshot!(world.run_with_variable(variable, &["task", "complete", "T1", "--result", "all green"]), @"
    T1  active  P2  One
    recorded as a claim: the runner completes the task after its gates
    ");
    assert_snapshot!(world.run(&["task", "show", "T1"]), @"
    T1  active  P2  One
      held by       session `main` (epoch 1)
      claimed done  in main.1.0000000000000007
      created       <time>
      started       <time>
    ");
    assert_snapshot!(world.run(&["events", "--type", "completion_claimed"]), @"     9  <time>  T1     completion_claimed        in main.1.0000000000000007");
    runner.execute(&Command::FinishTurn {
        run: run.clone(),
        answer: TurnAnswer { output: "All green.".to_owned(), ..TurnAnswer::default() },
    });
    assert_snapshot!(world.run(&["task", "list", "--all"]), @"T1  completed  P2  One");
    assert_snapshot!(world.run_with_variable(variable, &["task", "complete", "T1"]), @"
    error: cannot claim completion: the turn main.1.0000000000000007 is over
    [exit 1]
    ");
}

/// Words of agents and hooks are shown shortened, and cleaned for the terminal.
#[test]
fn events_escape_session_output_and_restore_renumbers_references() {
    let world = TestWorld::with_tasks(&["One"]);
    let mut runner = SimulatedRunner::new(&world);
    let hook = HookEffect {
        hook: "tests".to_owned(),
        point: HookPoint::Stop,
        class: HookClass::Gate,
        on_failure: HookFailurePolicy::Ignore,
        send_backs: None,
    };
    let owner = || "runner".parse().unwrap();
    let hooks = [(EventType::TurnFinished, vec![hook])];
    runner.rules.effects = Some(HookPlan::for_all_tasks("version: 1", owner(), hooks));
    let run = runner.start_turn();
    let answers = [(HookOutcome::Block, Some("red \u{1b}[31m\nin two places")), (HookOutcome::Success, None)];
    for (outcome, feedback) in answers {
        let output = "\nAll \u{1b}[32mgreen.\nReally.\n".to_owned();
        runner.execute(&Command::FinishTurn {
            run: run.clone(),
            answer: TurnAnswer { output, promise: Some(Promise::Complete), ..TurnAnswer::default() },
        });
        let effect = runner.store.begin_snapshot().unwrap().pending_effects().unwrap()[0].id;
        runner.execute(&Command::BeginEffect { effect, owner: owner() });
        let report = HookReport { feedback: feedback.map(str::to_owned), ..outcome.into() };
        runner.execute(&Command::FinishEffect { effect, owner: owner(), report: report.into() });
    }
    assert_snapshot!(world.run(&["events", "--from", "3"]), @r"
     3  <time>         config_recorded
     4  <time>  T1     session_started           command:true by runner
     5  <time>  T1     task_claimed              by runner (epoch 1)
     6  <time>  T1     task_started
     7  <time>  T1     iteration_started         main 1
     8  <time>  T1     turn_started              to work
     9  <time>  T1     turn_finished             All \u{1b}[32mgreen.
    10  <time>  T1     promise_detected          COMPLETE
    11  <time>  T1       hook_started            tests
    12  <time>  T1       hook_finished           tests block
    13  <time>  T1       feedback_queued         tests: red \u{1b}[31m⏎in two places
    14  <time>  T1     gate_decided              sent back (1 of 5)
    15  <time>  T1     turn_started              sent back, with one piece of feedback
    16  <time>  T1     feedback_delivered        one piece of feedback
    17  <time>  T1     turn_finished             All \u{1b}[32mgreen.
    18  <time>  T1     promise_detected          COMPLETE
    19  <time>  T1       hook_started            tests
    20  <time>  T1       hook_finished           tests success
    21  <time>  T1     gate_decided              complete
    22  <time>  T1     iteration_completed
    23  <time>  T1     task_completed
    24  <time>  T1     session_ended             complete
    ");
    // After a lost event the others move up, and references to them with them.
    let kept: Vec<_> = world.json_lines(&["events"]).into_iter().filter(|event| event["seq"] != 3).collect();
    world.write("kept.jsonl", kept.iter().map(|event| format!("{event}\n")).collect::<String>());
    drop(runner);
    for file in ["windlass.db", "windlass.db-wal", "windlass.db-shm"] {
        let _ = std::fs::remove_file(world.path(".windlass").join(file));
    }
    assert_eq!(world.json(&["doctor", "--restore", "kept.jsonl"])["restored"], kept.len());
    // A store that a person has reviewed counts.
    assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    let delivered = world.json_lines(&["events", "--type", "feedback_delivered"]);
    assert_eq!((&delivered[0]["seq"], &delivered[0]["data"]["feedback"]), (&json!(15), &json!([12])));
}

#[test]
fn malformed_run_id_is_rejected_except_for_reading() {
    let world = TestWorld::with_tasks(&["One"]);
    assert_snapshot!(world.run_with_variable(("WINDLASS_RUN", "garbage \u{1b}[31m"), &["task", "complete", "T1"]), @r"
    error: `garbage \u{1b}[31m` is not a run id such as main.3.00000000000000ff
    hint: WINDLASS_RUN is set by Windlass for the programs it starts
    [exit 64]
    ");
    let mut odd = world.command(&["task", "complete", "T1"]);
    let ran = world.run_command(odd.env("WINDLASS_RUN", std::ffi::OsStr::from_bytes(b"main.1.\xff")));
    assert!(ran.code == 64 && ran.stderr.contains("is not a run id"), "{ran}");
    // A session of another project means nothing here.
    assert_snapshot!(world.run_with_variable(("WINDLASS_RUN", "main.1.00000000000000ff"), &["task", "complete", "T1"]), @"T1  completed  P2  One");
    // Reading is always allowed.
    assert_eq!(world.run_with_variable(("WINDLASS_RUN", "garbage"), &["task", "list"]).code, 0);
    assert_eq!(world.run_with_variable(("WINDLASS_RUN", ""), &["task", "add", "Two"]).code, 0);
}
