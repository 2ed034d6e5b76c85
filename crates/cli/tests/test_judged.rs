//! What is told of an agent that drives itself: `task show`, `status` and `events`.

use insta::assert_snapshot;

use crate::support::{World, timeless};

const GUIDE: &str = r#"{"type": "file_existence", "name": "guide", "config": {"paths": ["guide.md"]}}"#;
const SANE: &str = r#"{"type": "content_pattern", "name": "sane", "config": {"pattern": "TODO", "target": "agent_output", "mustMatch": false}}"#;

/// T1 with a hook that is asked and one that is not (HOOK-3, HOOK-4), in a series of three strict iterations (IT-6).
fn driven() -> World {
    let world = World::with_tasks(&["Write the guide"]);
    world.ok(&["hooks", "register", "T1", "--type", "promise"]);
    world.ok(&["hooks", "register", "T1", "--type", "validation", "--disabled"]);
    let promises = ["--promise", "COMPLETE", "--promise", "BLOCKED"];
    let start = ["iteration", "start", "T1", "--max-iterations", "3", "--strict", "--rule", GUIDE, "--rule", SANE];
    world.ok(&[&start[..], &promises].concat());
    world
}

/// The promise is not enough in the first iteration, and is in the second.
fn judged() -> World {
    let world = driven();
    world.ok(&["iteration", "validate", "IT-6", "--output", "Done.\n<promise>COMPLETE</promise>"]);
    world.ok(&["iteration", "next", "IT-6"]);
    world.write("guide.md", "The pump");
    world.ok(&["hooks", "evaluate", "IT-6", "--output", "Nearly."]);
    world.ok(&["checkpoint", "create", "T1", "--phase", "writing", "--step", "2"]);
    world.ok(&["iteration", "validate", "IT-6", "--output", "Done.\n<promise>COMPLETE</promise>"]);
    world
}

fn shown(world: &World, words: &[&str]) -> String {
    timeless(&world.run(words).to_string())
}

#[test]
fn a_task_and_the_status_tell_where_the_agent_is() {
    let world = driven();
    let status = world.ok(&["status"]);
    assert!(status.contains("\n  T1: iteration 1 of 3 in IT-6, not judged yet\n"), "{status}");
    let world = judged();
    assert_snapshot!(shown(&world, &["task", "show", "T1"]), @"
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
    let world = judged();
    world.ok(&["iteration", "complete", "IT-6", "COMPLETE"]);
    world.ok(&["hooks", "clear", "T1"]);
    assert_snapshot!(shown(&world, &["events", "--from", "3"]), @"
     3  <time>  T1     hook_registered           HOOK-3 promise
     4  <time>  T1     hook_registered           HOOK-4 validation (disabled)
     5  <time>  T1     task_started
     6  <time>  T1     series_started            IT-6, up to 3 iterations, until COMPLETE, BLOCKED, 2 rules, strict
     7  <time>  T1     hook_evaluated            HOOK-3 complete: the agent says that the work is complete: <promise>COMPLETE</promise>
     8  <time>  T1     validation_finished       IT-6 iteration 1: CONTINUE, 1 of 2 rules failed, HOOK-3 was asked
     9  <time>  T1     series_advanced           iteration 2 of IT-6
    10  <time>  T1     hook_evaluated            HOOK-3 continue: the agent has made no promise
    11  <time>  T1     checkpoint_created        CP-11, number 1, manual, phase writing, step 2
    12  <time>  T1     hook_evaluated            HOOK-3 complete: the agent says that the work is complete: <promise>COMPLETE</promise>
    13  <time>  T1     validation_finished       IT-6 iteration 2: COMPLETE, all 2 rules passed, HOOK-3 was asked
    14  <time>  T1     series_ended              IT-6 with COMPLETE after 2 iterations
    15  <time>  T1     task_completed
    16  <time>  T1     hooks_cleared             2 hooks: HOOK-3, HOOK-4
    ");
}
