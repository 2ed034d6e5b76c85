//! Commands from inside an agent's turn

use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;
use windlass_engine::{Authority, Command, Event, Origin, Registry, Rules, RunId, TaskId, Timestamp};
use windlass_store::{Lifetime, Sqlite, Store};

use crate::support::World;

/// A runner, as far as it concerns the log.
struct Runner {
    store: Sqlite,
    nonce: u128,
}

impl Runner {
    fn new(world: &World) -> Self {
        let store = Sqlite::open(&world.path(".windlass/windlass.db"), Lifetime::Command).unwrap();
        Self { store, nonce: 0 }
    }

    fn give(&mut self, command: &Command) -> Vec<Event> {
        let rules = Rules { registry: Registry::with_builtins(), effects: None };
        let at = Timestamp::from_millis(1_768_644_000_000);
        let origin = Origin { by: "runner".to_owned(), at, authority: Authority::Person, run: None };
        self.nonce += 1;
        let records = self.store.execute(&rules, &origin, command, self.nonce).unwrap();
        records.into_iter().map(|record| record.envelope.event).collect()
    }

    /// Starts a turn of a session that works on T1.
    fn start_turn(&mut self) -> RunId {
        let name = "main".parse().unwrap();
        self.give(&Command::StartSession { name, task: Some(TaskId(1)), goal: None, config: "version: 1".to_owned() });
        let session = "main".parse().unwrap();
        let events = self.give(&Command::StartIteration { session, owner: "runner".parse().unwrap(), nonce: 7 });
        let started = events.into_iter().find_map(|event| match event {
            Event::IterationStarted(started) => Some(started.run),
            _ => None,
        });
        started.unwrap()
    }
}

#[test]
fn an_agent_only_claims_to_be_done() {
    let world = World::with_tasks(&["One"]);
    world.ok(&["task", "start", "T1"]);
    let mut runner = Runner::new(&world);
    let run = runner.start_turn();
    let variable = ("WINDLASS_RUN", &*run.to_string());
    assert_snapshot!(world.run_with(variable, &["task", "complete", "T1", "--result", "all green"]), @"
    T1  active  P2  One
    recorded as a claim: the runner completes the task after its gates
    ");
    assert_snapshot!(world.run(&["task", "show", "T1"]), @"
    T1  active  P2  One
      claimed done  in main.1.0000000000000007
      created       <time>
      started       <time>
    ");
    assert_snapshot!(world.run(&["events", "--type", "completion_claimed"]), @"     7  <time>  T1     completion_claimed        in main.1.0000000000000007");
    runner.give(&Command::CompleteIteration { run: run.clone() });
    assert_snapshot!(world.run_with(variable, &["task", "complete", "T1"]), @"
    error: the turn main.1.0000000000000007 is over; what it claims comes too late
    [exit 1]
    ");
    // Outside a run, completing is a person's right.
    assert_snapshot!(world.run(&["task", "complete", "T1"]), @"T1  completed  P2  One");
}

#[test]
fn a_run_that_is_none() {
    let world = World::with_tasks(&["One"]);
    assert_snapshot!(world.run_with(("WINDLASS_RUN", "garbage \u{1b}[31m"), &["task", "complete", "T1"]), @r"
    error: `garbage \u{1b}[31m` is not a run id such as main.3.00000000000000ff
    hint: WINDLASS_RUN is set by Windlass for the programs it starts
    [exit 64]
    ");
    let mut odd = world.command(&["task", "complete", "T1"]);
    let ran = world.finish(odd.env("WINDLASS_RUN", std::ffi::OsStr::from_bytes(b"main.1.\xff")));
    assert!(ran.code == 64 && ran.stderr.contains("is not a run id"), "{ran}");
    // A session of another project is nobody here.
    assert_snapshot!(world.run_with(("WINDLASS_RUN", "main.1.00000000000000ff"), &["task", "complete", "T1"]), @"T1  completed  P2  One");
    // Looking is always allowed.
    assert_eq!(world.run_with(("WINDLASS_RUN", "garbage"), &["task", "list"]).code, 0);
    assert_eq!(world.run_with(("WINDLASS_RUN", ""), &["task", "add", "Two"]).code, 0);
}
