//! Controls: they show that the checks detect a faulty build and every kind of violation.

use std::collections::BTreeSet;
use std::path::Path;

use super::checks::{ViolationKind, find_violations};
use super::crash_setup::{CrashObservations, CrashPoint};
use super::processes;
use super::scenario::{ScenarioRunner, SessionObservations, SessionVariant};
use crate::support::TestWorld;

/// The positions of programs in the order in which the scenario starts them.
const SECOND_TURN_START: u32 = 5;
const FIRST_CHECK_START: u32 = 4;
const CLOSE_START: u32 = 17;

/// Returns the distinct kinds of the violations, sorted.
fn violation_kinds(observed: &SessionObservations, baseline: &SessionObservations) -> Vec<ViolationKind> {
    let kinds: BTreeSet<ViolationKind> =
        find_violations(observed, baseline).iter().map(|violation| violation.kind).collect();
    kinds.into_iter().collect()
}

/// Two sessions without violations: one with a crash and one without.
struct ControlSessions {
    killed: SessionObservations,
    baseline: SessionObservations,
}

impl ControlSessions {
    fn new(crash: CrashPoint) -> Self {
        let runner = ScenarioRunner::new(SessionVariant::Completed);
        let sessions = Self { killed: runner.run_scenario(&[crash]), baseline: runner.run_scenario(&[]) };
        assert_eq!(find_violations(&sessions.killed, &sessions.baseline), []);
        sessions
    }

    /// Changes the observations of the killed session, and checks the violations that result.
    #[track_caller]
    fn check_tampered(&self, tamper: impl Fn(&mut SessionObservations), expected: &[ViolationKind]) {
        let mut killed = self.killed.clone();
        tamper(&mut killed);
        assert_eq!(
            violation_kinds(&killed, &self.baseline),
            expected,
            "{:#?}",
            find_violations(&killed, &self.baseline)
        );
    }
}

/// Removes the last line that contains `part`.
pub fn remove_line(text: &str, part: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let position = lines.iter().rposition(|line| line.contains(part)).unwrap();
    let remaining = lines.iter().enumerate().filter(|(number, _)| *number != position);
    remaining.map(|(_, line)| format!("{line}\n")).collect()
}

/// Replaces the last occurrence of `part`.
pub fn replace_last(text: &str, part: &str, replacement: &str) -> String {
    let position = text.rfind(part).unwrap();
    format!("{}{replacement}{}", &text[..position], &text[position + part.len()..])
}

#[test]
fn tampered_observations_are_detected() {
    let sessions = ControlSessions::new(CrashPoint::ProgramStart(SECOND_TURN_START));
    // Omits the acknowledged events where the control tests something else.
    let without_acknowledged = |tamper: fn(&mut SessionObservations)| {
        move |observed: &mut SessionObservations| {
            observed.runs.acknowledged.clear();
            tamper(observed);
        }
    };
    sessions.check_tampered(|_| {}, &[]);
    sessions.check_tampered(
        |observed| observed.log = replace_last(&observed.log, "\"timestamp\":\"2", "\"timestamp\":\"3"),
        &[ViolationKind::LostEvent],
    );
    sessions.check_tampered(|observed| observed.runs.acknowledged[0].push_str("cut o"), &[]);
    sessions.check_tampered(
        |observed| observed.recorder = remove_line(&observed.recorder, " close 3 end"),
        &[ViolationKind::InventedEnd],
    );
    sessions.check_tampered(
        |observed| observed.recorder = remove_line(&observed.recorder, " close 3 start"),
        &[ViolationKind::MissingRun, ViolationKind::InventedEnd, ViolationKind::UnexpectedOutput],
    );
    sessions.check_tampered(
        |observed| {
            let line = observed.recorder.lines().find(|line| line.ends_with(" bill 2 start")).unwrap().to_owned();
            let (tag, rest) = line.split_once(' ').unwrap();
            observed.recorder.push_str(&format!("{tag}99 {rest}\n"));
        },
        &[ViolationKind::UnrecordedStart],
    );
    sessions.check_tampered(
        |observed| {
            let line = observed.recorder.lines().find(|line| line.ends_with(" agent 1 end silent")).unwrap().to_owned();
            observed.recorder.push_str(&format!("{line}\n"));
        },
        &[ViolationKind::StaleRun],
    );
    sessions.check_tampered(
        |observed| observed.recorder = replace_last(&observed.recorder, "+", ""),
        &[ViolationKind::WrongFeedback],
    );
    sessions.check_tampered(
        |observed| {
            let line = observed.recorder.lines().find(|line| line.ends_with(" bill 2 start")).unwrap().to_owned();
            observed.recorder.push_str(&line.replace("start", "cut\n"));
        },
        &[ViolationKind::TruncatedPayload],
    );
    sessions.check_tampered(
        without_acknowledged(|observed| observed.log = remove_line(&observed.log, "\"feedback_delivered\"")),
        &[ViolationKind::WrongFeedback],
    );
    sessions.check_tampered(
        without_acknowledged(|observed| observed.log = remove_line(&observed.log, "\"promise_detected\"")),
        &[ViolationKind::DifferentResult],
    );
    sessions.check_tampered(
        without_acknowledged(|observed| observed.log = replace_last(&observed.log, "\"retries\":2", "\"retries\":1")),
        &[ViolationKind::DifferentResult],
    );
    sessions.check_tampered(
        without_acknowledged(|observed| observed.log = replace_last(&observed.log, "\"completed\"", "\"limit\"")),
        &[ViolationKind::DifferentResult],
    );
    sessions.check_tampered(
        without_acknowledged(|observed| observed.log = remove_line(&observed.log, "\"iteration_interrupted\"")),
        &[ViolationKind::InventedEnd, ViolationKind::WrongFeedback, ViolationKind::DifferentResult],
    );
}

#[test]
fn second_run_is_a_fault_unless_hook_may_repeat() {
    let sessions = ControlSessions::new(CrashPoint::ProgramStart(FIRST_CHECK_START));
    let rename_check = |observed: &SessionObservations| SessionObservations {
        runs: CrashObservations { acknowledged: Vec::new(), ..observed.runs.clone() },
        log: observed.log.replace("\"check\"", "\"test\""),
        recorder: observed.recorder.replace(" check ", " test "),
    };
    assert_eq!(
        violation_kinds(&rename_check(&sessions.killed), &rename_check(&sessions.baseline)),
        [ViolationKind::RepeatedRun]
    );
}

/// The fail point simulates a build that acknowledges events before they are durable.
#[test]
fn build_that_loses_a_commit_is_detected() {
    let (sound, broken) =
        (ScenarioRunner::new(SessionVariant::Completed), ScenarioRunner::with_fail_point("store.commit=error@29"));
    let observed = broken.run_scenario(&[CrashPoint::ProgramStart(CLOSE_START)]);
    assert_eq!(
        violation_kinds(&observed, &sound.run_scenario(&[])),
        [ViolationKind::LostEvent, ViolationKind::UnrecordedStart]
    );
}

#[test]
fn surviving_process_is_detected() {
    let world = TestWorld::empty();
    let mut sleeper = world.program("sleep").arg("600").env("CRASH_RECORDER", world.path("recorder")).spawn().unwrap();
    let look = || processes::find_processes(&world.path("recorder"), Path::new("/none"));
    // Before its exec, the child is a copy of this process.
    let pid = i32::try_from(sleeper.id()).unwrap();
    while look().iter().all(|process| process.pid != pid) {
        assert!(sleeper.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(processes::await_no_processes(processes::EXIT_TIMEOUT, look).is_empty());
}
