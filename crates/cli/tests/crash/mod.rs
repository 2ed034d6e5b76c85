//! Crash tests: a test kills a session at a crash point and runs it again. Afterwards the event log, the acknowledged events and an
//! external recorder must agree about the session.
//!
//! ```text
//! scenario ─ kill at a crash point ─► run again ─► SessionObservations ─ checks ─► violations: none
//!    │                                                  ▲
//!    └ actor.sh: the hooks and the agent ─► recorder ───┘
//! ```
//!
//! The ordinary tests try a sample of the crash points; `scripts/torture` tries all of them. There are three kinds: a fail point
//! before or after a commit; a system call of the program, if strace is installed; and a program of the scenario that kills its
//! runner and stays alive. `controls` shows that the checks can fail.
//!
//! `journey` applies the same method to tasks from the first turn to the merge, and also kills the run before and after git
//! commands. `project_creation` kills `windlass init`. `power` simulates the loss of unsynced writes. `misbehaving_programs` runs
//! misbehaving hooks and agents, and looks for leftovers.
//!
//! Only debug builds have fail points, and the search for processes needs `/proc`.

#![cfg(all(debug_assertions, target_os = "linux"))]

mod checks;
mod controls;
pub mod crash_setup;
mod journey;
mod log;
mod misbehaving_programs;
mod power;
mod processes;
mod project_creation;
mod recorder;
mod scenario;
mod session_result;
mod sweep;

use crash_setup::{CrashPoint, can_trace};
use project_creation::{PROJECT_CREATION_CALLS, ProjectCreation};
use scenario::{ScenarioRunner, SessionScenario, SessionVariant};
use sweep::{CrashSweep, TRACED_CALLS};

/// The fail points before and after a commit.
const BEFORE_COMMIT: &str = "store.before_commit";
const AFTER_COMMIT: &str = "store.after_commit";

/// The last events in the result of a session that a signal stops in its second turn.
const CANCELLED_SESSION_END: [&str; 5] = [
    "turn_started send_back",
    "session_stopping",
    "session_ended cancelled",
    "hook_started close",
    "hook_finished close success",
];

#[test]
fn session_without_crash_logs_expected_event_sequence() {
    let observed = ScenarioRunner::new(SessionVariant::Completed).run_scenario(&[]);
    assert_eq!(checks::find_violations(&observed, &observed), []);
    insta::assert_snapshot!(session_result::from_log(&log::parse_events(&observed.log)).join("\n"), @r#"
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
    sweep("before a commit", 1.., |nth| vec![CrashPoint::FailPoint(BEFORE_COMMIT, nth)]);
}

#[test]
fn killed_after_a_commit() {
    sweep("after a commit", 1.., |nth| vec![CrashPoint::FailPoint(AFTER_COMMIT, nth)]);
}

#[test]
fn killed_by_what_it_has_started() {
    sweep("by what it has started", 1.., |nth| vec![CrashPoint::ProgramStart(nth)]);
}

#[test]
fn killed_when_it_is_stopped() {
    let observed = ScenarioRunner::new(SessionVariant::Stopped).run_scenario(&[]);
    assert_eq!(checks::find_violations(&observed, &observed), []);
    assert_eq!(
        session_result::from_log(&log::parse_events(&observed.log)).last_chunk(),
        Some(&CANCELLED_SESSION_END.map(str::to_owned))
    );
    let sweep = CrashSweep::new(SessionScenario::new(SessionVariant::Stopped));
    sweep.run_crashes("before a commit of a session that is stopped", (9..).step_by(2), |nth| {
        vec![CrashPoint::FailPoint(BEFORE_COMMIT, nth)]
    });
    sweep.run_crashes("by what a session that is stopped has started", (5..).step_by(2), |nth| {
        vec![CrashPoint::ProgramStart(nth)]
    });
    sweep.assert_no_violations();
}

/// The supervisor is dead, so that only the next run can end its programs.
#[test]
fn killed_with_its_supervisor() {
    sweep("with its supervisor", (4..).step_by(8), |nth| vec![CrashPoint::ProgramAndSupervisor(nth)]);
}

/// Kills the run that takes over as well, at one of its first commits.
#[test]
fn killed_after_two_commits() {
    let twice = |nth: u32| {
        vec![CrashPoint::FailPoint(AFTER_COMMIT, nth.div_ceil(8)), CrashPoint::FailPoint(AFTER_COMMIT, 1 + nth % 8)]
    };
    sweep("after two commits", (20..).step_by(53), twice);
}

/// One of the first programs of the run that takes over kills that run as well.
#[test]
fn killed_twice_by_what_it_has_started() {
    let twice = |nth: u32| {
        vec![CrashPoint::ProgramStart(nth.div_ceil(3)), CrashPoint::ProgramStart(nth.div_ceil(3) + 1 + nth % 3)]
    };
    sweep("twice by what it has started", (9..).step_by(15), twice);
}

#[test]
fn killed_in_a_system_call() {
    if !can_trace() {
        return;
    }
    let sweep = CrashSweep::new(SessionScenario::new(SessionVariant::Completed));
    for call in TRACED_CALLS {
        sweep.run_crashes_in_call("in", call, CrashPoint::SystemCall);
    }
    sweep.assert_no_violations();
}

#[test]
fn killed_while_a_project_is_made() {
    if !can_trace() {
        return;
    }
    let sweep = CrashSweep::new(ProjectCreation);
    for call in PROJECT_CREATION_CALLS {
        sweep.run_crashes_in_call("while a project is made in", call, CrashPoint::SystemCall);
    }
    sweep.assert_no_violations();
}

fn sweep(kind: &str, times: impl IntoIterator<Item = u32>, crashes: impl Fn(u32) -> Vec<CrashPoint> + Sync) {
    let sweep = CrashSweep::new(SessionScenario::new(SessionVariant::Completed));
    sweep.run_crashes(kind, times, crashes);
    sweep.assert_no_violations();
}
