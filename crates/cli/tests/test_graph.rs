//! `windlass task graph`

use insta::assert_snapshot;
use windlass_engine::{Authority, Command, CommandOrigin, EngineRules, HookRegistry, NewTask, TaskId, Timestamp};
use windlass_store::{Lifetime, SqliteStore};

use crate::support::TestWorld;

/// A diamond, a tail, a reference, and a task by itself.
fn create_diamond_graph() -> TestWorld {
    let world = TestWorld::new();
    world.run_ok(&["task", "add", "Design"]);
    world.run_ok(&["task", "add", "Parse", "--depends", "T1"]);
    world.run_ok(&["task", "add", "Print", "--depends", "T1"]);
    world.run_ok(&["task", "add", "Ship", "--depends", "T2", "--depends", "T3"]);
    world.run_ok(&["task", "add", "Tell", "--depends", "T4"]);
    world.run_ok(&["task", "add", "Sleep"]);
    world.run_ok(&["task", "link", "T6", "references", "T1"]);
    world
}

#[test]
fn graph_without_open_tasks_prints_notice() {
    let world = TestWorld::with_tasks(&["One"]);
    world.run_ok(&["task", "complete", "T1"]);
    assert_snapshot!(world.run(&["task", "graph", "--open"]), @"nothing is left to draw");
    assert_snapshot!(TestWorld::new().run(&["task", "graph"]), @"no tasks; `windlass task add GOAL` makes one");
}

#[test]
fn diamond_graph_is_drawn_in_every_format() {
    let world = create_diamond_graph();
    assert_snapshot!(world.run(&["task", "graph"]), @"
    T1  ready  Design
    ├─ T2  created  Parse
    │  └─ T4  created  Ship
    │     └─ T5  created  Tell
    └─ T3  created  Print
       └─ T4  created  (see above)
    T6  ready  Sleep
    T6 references T1
    ");
    assert_snapshot!(world.run(&["task", "graph", "--format", "dot"]), @r#"
    digraph windlass {
      node [shape=box];
      T1 [label="T1 ready\nDesign"];
      T2 [label="T2 created\nParse"];
      T3 [label="T3 created\nPrint"];
      T4 [label="T4 created\nShip"];
      T5 [label="T5 created\nTell"];
      T6 [label="T6 ready\nSleep"];
      T2 -> T1 [label="depends_on"];
      T3 -> T1 [label="depends_on"];
      T4 -> T2 [label="depends_on"];
      T4 -> T3 [label="depends_on"];
      T5 -> T4 [label="depends_on"];
      T6 -> T1 [label="references"];
    }
    "#);
    assert_snapshot!(world.run(&["task", "graph", "--format", "mermaid"]), @r#"
    graph TD
      T1["T1 ready: Design"]
      T2["T2 created: Parse"]
      T3["T3 created: Print"]
      T4["T4 created: Ship"]
      T5["T5 created: Tell"]
      T6["T6 ready: Sleep"]
      T2 -- depends_on --> T1
      T3 -- depends_on --> T1
      T4 -- depends_on --> T2
      T4 -- depends_on --> T3
      T5 -- depends_on --> T4
      T6 -- references --> T1
    "#);
    let json = world.json(&["task", "graph"]);
    assert_eq!((json["tasks"].as_array().unwrap().len(), json["edges"].as_array().unwrap().len()), (6, 6));
    assert_eq!(
        world.run(&["task", "graph", "--format", "json"]).stdout,
        world.run(&["task", "graph", "--json"]).stdout
    );
    world.run_ok(&["task", "complete", "T1"]);
    assert_snapshot!(world.run(&["task", "graph", "--open"]), @"
    T2  ready  Parse
    └─ T4  created  Ship
       └─ T5  created  Tell
    T3  ready  Print
    └─ T4  created  (see above)
    T6  ready  Sleep
    ");
}

#[test]
fn empty_graph_prints_notice_and_unknown_format_is_rejected() {
    let world = TestWorld::new();
    assert_snapshot!(world.run(&["task", "graph"]), @"no tasks; `windlass task add GOAL` makes one");
    assert_snapshot!(world.run(&["task", "graph", "--format", "dot"]), @"
    digraph windlass {
      node [shape=box];
    }
    ");
    assert_snapshot!(world.expect_failure(&["task", "graph", "--format", "svg"]), @"
    error: invalid value 'svg' for '--format <FORMAT>' [possible values: text, dot, mermaid, json]
    hint: `windlass task graph --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn hostile_goals_stay_inside_their_boxes() {
    let world = TestWorld::with_tasks(&[
        "\"]; T9 [label=\"x\\\"",
        "end\\",
        "a\u{1b}[2J\nb",
        "<script>alert(1)</script> --> T1",
        "\u{202e}backwards",
    ]);
    assert_snapshot!(world.run(&["task", "graph"]), @r#"
    T1  ready  "]; T9 [label="x\"
    T2  ready  end\
    T3  ready  a\u{1b}[2J⏎b
    T4  ready  <script>alert(1)</script> --> T1
    T5  ready  \u{202e}backwards
    "#);
    assert_snapshot!(world.run(&["task", "graph", "--format", "dot"]), @r#"
    digraph windlass {
      node [shape=box];
      T1 [label="T1 ready\n\"]; T9 [label=\"x\\\""];
      T2 [label="T2 ready\nend\\"];
      T3 [label="T3 ready\na\\u{1b}[2J⏎b"];
      T4 [label="T4 ready\n<script>alert(1)</script> --> T1"];
      T5 [label="T5 ready\n\\u{202e}backwards"];
    }
    "#);
    assert_snapshot!(world.run(&["task", "graph", "--format", "mermaid"]), @r#"
    graph TD
      T1["T1 ready: #34;#93;#59; T9 #91;label#61;#34;x#92;#34;"]
      T2["T2 ready: end#92;"]
      T3["T3 ready: a#92;u#123;1b#125;#91;2J#9166;b"]
      T4["T4 ready: #60;script#62;alert#40;1#41;#60;/script#62; --#62; T1"]
      T5["T5 ready: #92;u#123;202e#125;backwards"]
    "#);
}

#[test]
fn chain_of_three_thousand_tasks_stays_within_eighty_columns() {
    let world = TestWorld::new();
    let mut store = SqliteStore::open(&world.path(".windlass/windlass.db"), Lifetime::Service).unwrap();
    let rules = EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() };
    let at = Timestamp::from_millis(1_768_644_000_000);
    let origin = CommandOrigin { by: "ann".to_owned(), at, authority: Authority::Person, run: None, via: None };
    store
        .run_transaction(|transaction| {
            for number in 0..3000 {
                let depends_on = if number == 0 { vec![] } else { vec![TaskId(number)] };
                let new = NewTask { goal: format!("Link {number}"), depends_on, ..NewTask::default() };
                let made = transaction.execute_command(&rules, &origin, &Command::CreateTask(new), u128::from(number));
                made.expect("a chain is legal");
            }
            Ok(())
        })
        .unwrap();
    drop(store);
    let text = world.run_ok(&["task", "graph"]);
    // A subtree that would hang too far to the right begins again at the left.
    assert_snapshot!(text.lines().skip(10).take(5).collect::<Vec<_>>().join("\n"), @"
                               └─ T11  created  Link 10
                                  └─ T12  created  Link 11
                                     └─ T13  created  Link 12  (see below)
    T13  created  Link 12
    └─ T14  created  Link 13
    ");
    assert!(text.lines().last().unwrap().ends_with("T3000  created  Link 2999"));
    assert!(text.lines().all(|line| line.chars().count() < 80));
    assert_eq!(world.run_ok(&["task", "graph", "--format", "dot"]).lines().count(), 3000 + 2999 + 3);
    assert_eq!(world.run_ok(&["task", "graph", "--format", "mermaid"]).lines().count(), 3000 + 2999 + 1);
    // The search finds a cycle through all of it.
    assert!(world.expect_failure(&["task", "depend", "T1", "T3000"]).contains("it would close a cycle"));
}
