//! A session that is killed at any moment and run again: the log, the acknowledged events, and a recorder outside of the program
//! agree about what happened.
//!
//! ```text
//! scenario ─ killed at a crash point ─► run again ─► Observed ─ checks ─► faults: none
//!    │                                                  ▲
//!    └ actor.sh: the hooks and the agent ─► recorder ───┘
//! ```
//!
//! The ordinary tests take some of the crash points; `scripts/torture` takes all of them. There are three kinds: a fail point
//! around a commit, a system call of the program (with strace, if it is installed), and a program of the scenario that kills its
//! runner and lives on. `controls` shows that the checks can fail.
//!
//! `journey` does the same to the whole way of tasks, from the first turn to the merge, and kills it at calls of git as well;
//! `beginning` kills the creation of a project; `power` drops unsynced writes; `shelf` runs misbehaving programs, and looks for
//! leftovers.
//!
//! Fail points are in debug builds only, and processes are looked for in `/proc`.

#![cfg(all(debug_assertions, target_os = "linux"))]

mod beginning;
mod checks;
mod controls;
mod journey;
mod log;
mod power;
mod processes;
mod recorder;
mod scenario;
mod shelf;
mod skeleton;
pub mod stage;
mod sweep;

use beginning::{Beginning, MAKING};
use scenario::{Bench, Same, Story};
use stage::{Crash, can_trace};
use sweep::{CALLS, Sweep};

/// The fail points around a commit.
const BEFORE: &str = "store.before_commit";
const AFTER: &str = "store.after_commit";

/// The result of a session that is stopped in its second turn.
const ENDING: [&str; 5] = [
    "turn_started send_back",
    "session_stopping",
    "session_ended cancelled",
    "hook_started close",
    "hook_finished close success",
];

#[test]
fn undisturbed() {
    let observed = Bench::new(Story::Completed).play(&[]);
    assert_eq!(checks::faults(&observed, &observed), []);
    insta::assert_snapshot!(skeleton::of(&log::read(&observed.log)).join("\n"), @r#"
    config_recorded
    session_started
    task_created
    task_ready
    task_claimed
    task_started
    hook_started open
    hook_finished open success
    feedback_queued open
    iteration_started
    hook_started plan
    hook_finished plan success
    feedback_queued plan
    turn_started work
    turn_finished
    hook_started check
    hook_finished check block
    feedback_queued check
    gate_decided block "send_back" 1
    turn_started send_back
    turn_finished
    hook_started check
    hook_finished check block
    feedback_queued check
    gate_decided block "send_back" 2
    turn_started send_back
    turn_finished
    hook_started check
    hook_finished check success
    gate_decided pass {"next":"continue"} 2
    iteration_completed
    hook_started review
    hook_finished review success
    feedback_queued review
    hook_started bill
    hook_finished bill success
    iteration_started
    hook_started plan
    hook_finished plan success
    feedback_queued plan
    turn_started work
    turn_finished
    promise_detected COMPLETE
    hook_started check
    hook_finished check success
    gate_decided pass {"next":{"close":{"ending":"completed"}}} 0
    iteration_completed
    hook_started review
    hook_finished review success
    feedback_queued review
    hook_started bill
    hook_finished bill success
    turn_started final_delivery
    turn_finished
    promise_detected COMPLETE
    hook_started check
    hook_finished check success
    gate_decided pass {"next":{"close":{"ending":"completed"}}} 0
    iteration_completed
    hook_started review
    hook_finished review success
    feedback_queued review
    hook_started bill
    hook_finished bill success
    task_completed
    session_ended completed
    hook_started close
    hook_finished close success
    "#);
}

#[test]
fn killed_before_a_commit() {
    sweep("before a commit", 1.., |nth| vec![Crash::Fail(BEFORE, nth)]);
}

#[test]
fn killed_after_a_commit() {
    sweep("after a commit", 1.., |nth| vec![Crash::Fail(AFTER, nth)]);
}

#[test]
fn killed_by_what_it_has_started() {
    sweep("by what it has started", 1.., |nth| vec![Crash::Effect(nth)]);
}

#[test]
fn killed_when_it_is_stopped() {
    let observed = Bench::new(Story::Stopped).play(&[]);
    assert_eq!(checks::faults(&observed, &observed), []);
    assert_eq!(skeleton::of(&log::read(&observed.log)).last_chunk(), Some(&ENDING.map(str::to_owned)));
    let sweep = Sweep::new(Same::new(Story::Stopped));
    sweep.kill("before a commit of a session that is stopped", (9..).step_by(2), |nth| vec![Crash::Fail(BEFORE, nth)]);
    sweep.kill("by what a session that is stopped has started", (5..).step_by(2), |nth| vec![Crash::Effect(nth)]);
    sweep.end();
}

/// With the supervisor dead, only the next run can end its programs.
#[test]
fn killed_with_its_supervisor() {
    sweep("with its supervisor", (4..).step_by(8), |nth| vec![Crash::Both(nth)]);
}

/// The run that takes over is killed as well, at one of its first commits.
#[test]
fn killed_after_two_commits() {
    let twice = |nth: u32| vec![Crash::Fail(AFTER, nth.div_ceil(8)), Crash::Fail(AFTER, 1 + nth % 8)];
    sweep("after two commits", (20..).step_by(53), twice);
}

/// The run that takes over is killed as well, by one of the first programs that it starts.
#[test]
fn killed_twice_by_what_it_has_started() {
    let twice = |nth: u32| vec![Crash::Effect(nth.div_ceil(3)), Crash::Effect(nth.div_ceil(3) + 1 + nth % 3)];
    sweep("twice by what it has started", (9..).step_by(15), twice);
}

#[test]
fn killed_in_a_system_call() {
    if !can_trace() {
        return;
    }
    let sweep = Sweep::new(Same::new(Story::Completed));
    for call in CALLS {
        sweep.kill_in("in", call, Crash::Call);
    }
    sweep.end();
}

#[test]
fn killed_while_a_project_is_made() {
    if !can_trace() {
        return;
    }
    let sweep = Sweep::new(Beginning);
    for call in MAKING {
        sweep.kill_in("while a project is made in", call, Crash::Call);
    }
    sweep.end();
}

fn sweep(kind: &str, times: impl IntoIterator<Item = u32>, crashes: impl Fn(u32) -> Vec<Crash> + Sync) {
    let sweep = Sweep::new(Same::new(Story::Completed));
    sweep.kill(kind, times, crashes);
    sweep.end();
}
