//! The whole way: tasks in worktrees that are worked on, judged, submitted and merged. One of them leads to the next and to a
//! workflow, which creates a third. The agent calls the program itself, by commands and as an MCP client.
//!
//! ```text
//! run ─► First ─► check: missing! ─► First ─► check ─► push ─► merged ─► completed ─┬► Second (waited for it) ─► …
//!                       └► workflow: count, stamp, left ∥ right, make ─► Third ─► …  ◄┘
//! ```
//!
//! Wherever it is disturbed, a later undisturbed run has the same result: every task is completed and merged once, the workflow
//! ran its steps once, no step ran twice that may not, and nothing is left.

mod controls;
mod facts;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::checks::{Fault, Kind};
use super::stage::Lasting::{self, Ever, Once, Row};
use super::stage::{Crash, End, Program, Seen, Stage, can_trace};
use super::sweep::{Call, Play, Sweep};
use super::{AFTER, BEFORE};
use facts::Facts;

const ACTOR: &str = include_str!("actor.sh");
const FAMILY: &str = include_str!("family.sh");
const GIT: &str = include_str!("git.sh");

const CONFIG: &str = r#"
agent: worker
agents:
  worker: { command: '. "$CRASH_ACTOR"' }
hooks:
  stop: [{ name: check, command: '. "$CRASH_ACTOR"' }]
  before_submit: [create_pr]
  before_merge: [merge_pr]
  task_completed: [{ name: follow, workflow: follow, when: "'root' in task.labels" }]
"#;

const WORKFLOW: &str = r#"
id: follow
steps:
  - {id: count, type: execute_command, onSuccess: stamp, config: {command: sh, args: [-c, '. "$CRASH_ACTOR"', sh, count], idempotent: true}}
  - {id: stamp, type: execute_command, onSuccess: both, onFailure: both, config: {command: sh, args: [-c, '. "$CRASH_ACTOR"', sh, stamp]}}
  - id: both
    type: parallel
    onSuccess: make
    config:
      steps:
        - {id: left, type: execute_command, config: {command: sh, args: [-c, '. "$CRASH_ACTOR"', sh, left], idempotent: true}}
        - {id: right, type: execute_command, config: {command: sh, args: [-c, '. "$CRASH_ACTOR"', sh, right], idempotent: true}}
  - {id: make, type: create_task, config: {goal: 'Third, after ${task.id}', labels: [made]}}
"#;

const SETUP: &str = "set -e
git init -q --bare -b main ../remote.git && git init -q -b main . && git remote add origin ../remote.git
git config user.name Ann && git config user.email ann@example.com
echo start > start && echo .windlass > .gitignore && git add . && git commit -qm start
git push -q -u origin main && git checkout -q -b desk";

const RUN: &[&str] = &["--json", "run"];

/// The calls that reach a disk, the way in which they fail, and for how long.
const FAILING: &[(&str, Lasting, Call)] = &[
    ("ENOSPC", Row, &[("pwrite64", &[15])]),
    ("EIO", Row, &[("pwrite64", &[])]),
    ("EIO", Row, &[("fdatasync", &[2])]),
    ("EIO", Once, &[("fdatasync", &[9])]),
    ("ENOSPC", Row, &[("fdatasync", &[])]),
    ("ENOSPC", Row, &[("write", &[6])]),
    ("EIO", Row, &[("write", &[4, 8])]),
    ("EIO", Row, &[("ftruncate", &[])]),
    ("EIO", Row, &[("openat", &[])]),
    ("ENOSPC", Row, &[("openat", &[12])]),
    ("EIO", Row, &[("unlink", &[]), ("unlinkat", &[3])]),
    ("ENOSPC", Row, &[("mkdir", &[1]), ("mkdirat", &[])]),
    ("EIO", Row, &[("pread64", &[4])]),
    ("EIO", Row, &[("rename", &[]), ("renameat", &[])]),
    ("ENOSPC", Ever, &[("pwrite64", &[20])]),
    ("ENOSPC", Ever, &[("write", &[])]),
];

/// Calls that change files, and the counts at which the ordinary tests kill in them.
const KILLING: &[Call] = &[
    &[("unlinkat", &[4])],
    &[("openat", &[])],
    &[("write", &[])],
    &[("mkdir", &[]), ("mkdirat", &[])],
    &[("rename", &[]), ("renameat", &[])],
    &[("unlink", &[])],
    &[("ftruncate", &[])],
    &[("flock", &[])],
    &[("fdatasync", &[])],
];

/// This many runs reach the end, whatever was disturbed before.
const RUNS: usize = 3;

struct Journey {
    undisturbed: Facts,
}

impl Journey {
    fn new() -> Self {
        let (seen, facts) = play(&Program::new(), &[]);
        assert_eq!(seen.faults, []);
        Self { undisturbed: facts }
    }
}

impl Play for Journey {
    type Bench = Program;

    fn bench(&self) -> Program {
        Program::new()
    }

    fn play(&self, bench: &Program, crashes: &[Crash]) -> (usize, Vec<Fault>) {
        let (seen, facts) = play(bench, crashes);
        let is_deadly = crashes.iter().all(|crash| crash.is_deadly());
        (seen.crashed, facts.faults(&seen, &self.undisturbed, is_deadly))
    }
}

fn set_out(program: &Program) -> Stage {
    let stage = Stage::new(program, ACTOR);
    let programs = stage.world.programs();
    let set_up = stage.world.finish(stage.world.program("sh").args(["-c", SETUP]));
    assert_eq!(set_up.code, 0, "{set_up}");
    fs::write(programs.join("family.sh"), FAMILY).unwrap();
    fs::write(programs.join("git"), GIT).unwrap();
    fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&stage.program, programs.join("windlass")).unwrap();
    stage.world.write(".windlass/config.yaml", CONFIG);
    stage.world.write(".windlass/workflows/follow.yaml", WORKFLOW);
    stage.world.ok(&["trust", "--yes"]);
    stage.world.ok(&["init"]);
    stage.world.ok(&["task", "add", "First", "--label", "root"]);
    stage.world.ok(&["task", "add", "Second", "--depends", "T1"]);
    stage
}

/// Returns whether no task is left.
fn is_done(stage: &Stage) -> bool {
    stage.world.run(&["--json", "task", "list"]).stdout.is_empty()
}

fn play(program: &Program, crashes: &[Crash]) -> (Seen, Facts) {
    let stage = set_out(program);
    let is_deadly = crashes.iter().all(|crash| crash.is_deadly());
    let mut seen = Seen::default();
    for crash in crashes {
        let end = stage.run(&mut stage.command(RUN, Some(*crash)), Some(*crash), &[End::Code(0)], &mut seen);
        let is_reached = match crash {
            Crash::Error(..) => stage.was_disturbed(),
            _ => end != End::Code(0),
        };
        if is_reached && end == End::Code(0) && !is_done(&stage) {
            seen.faults.push(Fault::new(Kind::Odd, "a run said that nothing is left"));
        }
        if !is_reached {
            break;
        }
        seen.crashed += 1;
        stage.expect_none(&mut seen);
    }
    // After a kill one more run is enough. After failed calls a task may wait for a person.
    for last in 1..=RUNS {
        let is_last = last == RUNS || is_deadly;
        let may: &[End] = if is_last { &[End::Code(0)] } else { &[End::Code(0), End::Code(4)] };
        let end = stage.run(&mut stage.command(RUN, None), None, may, &mut seen);
        if is_last || (end == End::Code(0) && is_done(&stage)) {
            break;
        }
        for id in ["T1", "T2", "T3"] {
            // Only a task that asks is answered.
            stage.world.run(&["answer", id, "continue"]);
        }
    }
    stage.expect_none(&mut seen);
    stage.examine(&mut seen);
    let facts = Facts::of(&stage);
    (seen, facts)
}

fn sweep(kind: &str, times: impl IntoIterator<Item = u32>, crashes: impl Fn(u32) -> Vec<Crash> + Sync) {
    let sweep = Sweep::new(Journey::new());
    sweep.kill(&format!("on the whole way {kind}"), times, crashes);
    sweep.end();
}

#[test]
fn undisturbed() {
    let (seen, facts) = play(&Program::new(), &[]);
    assert_eq!(facts.faults(&seen, &facts, true), []);
    insta::assert_snapshot!(facts.told, @r#"
    "T1" "completed" "First" ["root"]
    "T2" "completed" "Second" []
    "T3" "completed" "Third, after T1" ["made"]
    Merge T1: First
    Merge T2: Second
    Merge T3: Third, after T1
    .gitignore part-T1 part-T2 part-T3 start
    refs/heads/desk refs/heads/main refs/remotes/origin/main
    1 worktree
    workflow_started
    "count"
    "stamp"
    "both"
    "make"
    workflow_completed
    "#);
}

#[test]
fn killed_before_a_commit() {
    sweep("before a commit", (17..).step_by(43), |nth| vec![Crash::Fail(BEFORE, nth)]);
}

#[test]
fn killed_after_a_commit() {
    sweep("after a commit", (5..).step_by(43), |nth| vec![Crash::Fail(AFTER, nth)]);
}

#[test]
fn killed_by_what_it_has_started() {
    sweep("by what it has started", (2..).step_by(3), |nth| vec![Crash::Effect(nth)]);
}

#[test]
fn killed_before_git() {
    sweep("before a call of git", (31..).step_by(67), |nth| vec![Crash::BeforeGit(nth)]);
}

#[test]
fn killed_after_git() {
    sweep("after a call of git", (9..).step_by(67), |nth| vec![Crash::AfterGit(nth)]);
}

/// Kills where files are created, changed and removed. The fourth `unlinkat` is in the middle of removing a worktree.
#[test]
fn killed_in_a_system_call() {
    if !can_trace() {
        return;
    }
    let sweep = Sweep::new(Journey::new());
    for call in KILLING {
        sweep.kill_in("on the whole way in", call, Crash::Call);
    }
    sweep.end();
}

/// A disk that fails or is full.
#[test]
fn calls_fail() {
    if !can_trace() {
        return;
    }
    let sweep = Sweep::new(Journey::new());
    for (error, lasting, call) in FAILING {
        let how = match lasting {
            Once => "once by",
            Row => "by rows of",
            Ever => "to the end by",
        };
        let kind = format!("on the whole way {how} {error} in");
        sweep.kill_in(&kind, call, |name, nth| Crash::Error(name, error, *lasting, nth));
    }
    sweep.end();
}
