//! The journey scenario: tasks from the first turn to the merge. Agents work on them in worktrees, a gate judges the work, and
//! Windlass submits and merges it. The first task unblocks the second one and starts a workflow, which creates the third one. The
//! agent calls Windlass itself, by commands and as an MCP client.
//!
//! ```text
//! run ─► First ─► check: missing! ─► First ─► check ─► push ─► merged ─► completed ─┬► Second (depends on First) ─► …
//!                       └► workflow: count, stamp, left ∥ right, make ─► Third ─► …  ◄┘
//! ```
//!
//! After a crash or a failing system call at any point, a later run has the same result: every task is completed and merged once,
//! every step of the workflow ran, non-idempotent steps ran at most once, and no process or worktree remains.

mod controls;
mod facts;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::checks::{GuaranteeViolation, ViolationKind};
use super::crash_setup::FailureDuration::{self, Once, Permanent, TenInARow};
use super::crash_setup::{CrashObservations, CrashPoint, CrashSetup, ProgramCopy, RunExit, can_trace};
use super::sweep::{CrashScenario, CrashSweep, TracedCall};
use super::{AFTER_COMMIT, BEFORE_COMMIT};
use facts::JourneyResult;

const ACTOR_SCRIPT: &str = include_str!("actor.sh");
const PROCESS_TREE_SCRIPT: &str = include_str!("process_tree.sh");
const GIT_SCRIPT: &str = include_str!("git.sh");

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

/// The calls to the file system that fail, with the error and the duration of the failure.
const FAILING_CALLS: &[(&str, FailureDuration, TracedCall)] = &[
    ("ENOSPC", TenInARow, &[("pwrite64", &[15])]),
    ("EIO", TenInARow, &[("pwrite64", &[])]),
    ("EIO", TenInARow, &[("fdatasync", &[2])]),
    ("EIO", Once, &[("fdatasync", &[9])]),
    ("ENOSPC", TenInARow, &[("fdatasync", &[])]),
    ("ENOSPC", TenInARow, &[("write", &[6])]),
    ("EIO", TenInARow, &[("write", &[4, 8])]),
    ("EIO", TenInARow, &[("ftruncate", &[])]),
    ("EIO", TenInARow, &[("openat", &[])]),
    ("ENOSPC", TenInARow, &[("openat", &[12])]),
    ("EIO", TenInARow, &[("unlink", &[]), ("unlinkat", &[3])]),
    ("ENOSPC", TenInARow, &[("mkdir", &[1]), ("mkdirat", &[])]),
    ("EIO", TenInARow, &[("pread64", &[4])]),
    ("EIO", TenInARow, &[("rename", &[]), ("renameat", &[])]),
    ("ENOSPC", Permanent, &[("pwrite64", &[20])]),
    ("ENOSPC", Permanent, &[("write", &[])]),
];

/// The calls that change files, with the counts at which the ordinary tests kill the run.
const KILLED_CALLS: &[TracedCall] = &[
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

/// The number of runs that complete all tasks after any failure.
const MAX_RECOVERY_RUNS: usize = 3;

/// The journey scenario with crashes, compared with a run without crashes.
struct JourneyScenario {
    baseline: JourneyResult,
}

impl JourneyScenario {
    fn new() -> Self {
        let (observations, result) = run_journey(&ProgramCopy::new(), &[]);
        assert_eq!(observations.violations, []);
        Self { baseline: result }
    }
}

impl CrashScenario for JourneyScenario {
    type Environment = ProgramCopy;

    fn create_environment(&self) -> ProgramCopy {
        ProgramCopy::new()
    }

    fn run_with_crashes(&self, program: &ProgramCopy, crashes: &[CrashPoint]) -> (usize, Vec<GuaranteeViolation>) {
        let (observations, result) = run_journey(program, crashes);
        let is_deadly = crashes.iter().all(|crash| crash.is_deadly());
        (observations.crash_count, result.find_violations(&observations, &self.baseline, is_deadly))
    }
}

/// Creates a repository with a remote, a project and two tasks.
fn create_journey_project(program: &ProgramCopy) -> CrashSetup {
    let setup = CrashSetup::new(program, ACTOR_SCRIPT);
    let program_directory = setup.world.program_directory();
    let output = setup.world.run_command(setup.world.program("sh").args(["-c", SETUP]));
    assert_eq!(output.code, 0, "{output}");
    fs::write(program_directory.join("process_tree.sh"), PROCESS_TREE_SCRIPT).unwrap();
    fs::write(program_directory.join("git"), GIT_SCRIPT).unwrap();
    fs::set_permissions(program_directory.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&setup.program, program_directory.join("windlass")).unwrap();
    setup.world.write(".windlass/config.yaml", CONFIG);
    setup.world.write(".windlass/workflows/follow.yaml", WORKFLOW);
    setup.world.run_ok(&["trust", "--yes"]);
    setup.world.run_ok(&["init"]);
    setup.world.run_ok(&["task", "add", "First", "--label", "root"]);
    setup.world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    setup
}

/// Returns whether all tasks are completed.
fn has_no_open_tasks(setup: &CrashSetup) -> bool {
    setup.world.run(&["--json", "task", "list"]).stdout.is_empty()
}

/// Runs Windlass with each crash, and then until all tasks are completed.
fn run_journey(program: &ProgramCopy, crashes: &[CrashPoint]) -> (CrashObservations, JourneyResult) {
    let setup = create_journey_project(program);
    let is_deadly = crashes.iter().all(|crash| crash.is_deadly());
    let mut observations = CrashObservations::default();
    for crash in crashes {
        let exit = setup.run_to_exit(
            &mut setup.windlass_command(RUN, Some(*crash)),
            Some(*crash),
            &[RunExit::Code(0)],
            &mut observations,
        );
        let is_reached = match crash {
            CrashPoint::FailingCall(..) => setup.has_injected_failure(),
            _ => exit != RunExit::Code(0),
        };
        if is_reached && exit == RunExit::Code(0) && !has_no_open_tasks(&setup) {
            observations.violations.push(GuaranteeViolation::new(
                ViolationKind::UnexpectedOutput,
                "a run ended successfully with open tasks",
            ));
        }
        if !is_reached {
            break;
        }
        observations.crash_count += 1;
        setup.check_no_processes(&mut observations);
    }
    // After a kill, one more run completes all tasks. After failed calls, a task may wait for a person.
    for attempt in 1..=MAX_RECOVERY_RUNS {
        let is_last = attempt == MAX_RECOVERY_RUNS || is_deadly;
        let expected_exits: &[RunExit] =
            if is_last { &[RunExit::Code(0)] } else { &[RunExit::Code(0), RunExit::Code(4)] };
        let exit = setup.run_to_exit(&mut setup.windlass_command(RUN, None), None, expected_exits, &mut observations);
        if is_last || (exit == RunExit::Code(0) && has_no_open_tasks(&setup)) {
            break;
        }
        for id in ["T1", "T2", "T3"] {
            // The command fails for a task that asks nothing.
            setup.world.run(&["answer", id, "continue"]);
        }
    }
    setup.check_no_processes(&mut observations);
    setup.run_doctor(&mut observations);
    let result = JourneyResult::from_setup(&setup);
    (observations, result)
}

fn sweep(kind: &str, times: impl IntoIterator<Item = u32>, crashes: impl Fn(u32) -> Vec<CrashPoint> + Sync) {
    let sweep = CrashSweep::new(JourneyScenario::new());
    sweep.run_crashes(&format!("on the whole way {kind}"), times, crashes);
    sweep.assert_no_violations();
}

#[test]
fn journey_without_crash_completes_and_merges_every_task() {
    let (observations, result) = run_journey(&ProgramCopy::new(), &[]);
    assert_eq!(result.find_violations(&observations, &result, true), []);
    insta::assert_snapshot!(result.summary, @r#"
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
    sweep("before a commit", (17..).step_by(43), |nth| vec![CrashPoint::FailPoint(BEFORE_COMMIT, nth)]);
}

#[test]
fn killed_after_a_commit() {
    sweep("after a commit", (5..).step_by(43), |nth| vec![CrashPoint::FailPoint(AFTER_COMMIT, nth)]);
}

#[test]
fn killed_by_what_it_has_started() {
    sweep("by what it has started", (2..).step_by(3), |nth| vec![CrashPoint::ProgramStart(nth)]);
}

#[test]
fn killed_before_git() {
    sweep("before a call of git", (31..).step_by(67), |nth| vec![CrashPoint::BeforeGit(nth)]);
}

#[test]
fn killed_after_git() {
    sweep("after a call of git", (9..).step_by(67), |nth| vec![CrashPoint::AfterGit(nth)]);
}

/// Kills the run while it creates, changes and removes files. The fourth `unlinkat` is in the middle of removing a worktree.
#[test]
fn killed_in_a_system_call() {
    if !can_trace() {
        return;
    }
    let sweep = CrashSweep::new(JourneyScenario::new());
    for call in KILLED_CALLS {
        sweep.run_crashes_in_call("on the whole way in", call, CrashPoint::SystemCall);
    }
    sweep.assert_no_violations();
}

/// Simulates a disk that fails or is full.
#[test]
fn journey_recovers_from_failing_system_calls_without_faults() {
    if !can_trace() {
        return;
    }
    let sweep = CrashSweep::new(JourneyScenario::new());
    for (error, duration, call) in FAILING_CALLS {
        let adverb = match duration {
            Once => "once by",
            TenInARow => "by rows of",
            Permanent => "to the end by",
        };
        let kind = format!("on the whole way {adverb} {error} in");
        sweep.run_crashes_in_call(&kind, call, |name, nth| CrashPoint::FailingCall(name, error, *duration, nth));
    }
    sweep.assert_no_violations();
}
