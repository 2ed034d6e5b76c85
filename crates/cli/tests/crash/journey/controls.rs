//! Controls: they show that the checks of a journey detect every kind of violation.

use std::time::Duration;

use super::super::checks::ViolationKind;
use super::super::controls::{remove_line, replace_last};
use super::super::crash_setup::{CrashObservations, CrashPoint, ProgramCopy};
use super::facts::JourneyResult;
use super::{create_journey_project, run_journey};

/// The position of the non-idempotent workflow step among the started programs.
const STAMP_START: u32 = 6;

/// Two journeys without violations: one that was killed in the non-idempotent step, and one without a crash.
struct ControlJourneys {
    observations: CrashObservations,
    killed: JourneyResult,
    baseline: JourneyResult,
}

impl ControlJourneys {
    fn new() -> Self {
        let program = ProgramCopy::new();
        let (observations, killed) = run_journey(&program, &[CrashPoint::ProgramStart(STAMP_START)]);
        let journeys = Self { observations, killed, baseline: run_journey(&program, &[]).1 };
        assert_eq!(journeys.observations.crash_count, 1);
        assert!(journeys.killed.recorder.contains(" stamp "), "{}", journeys.killed.recorder);
        journeys.check_planted(|_, _| {}, &[]);
        journeys
    }

    /// Changes the observations of the killed journey, and checks the violations that result.
    #[track_caller]
    fn check_planted(&self, plant: impl Fn(&mut CrashObservations, &mut JourneyResult), expected: &[ViolationKind]) {
        let (mut observations, mut result) = (self.observations.clone(), self.killed.clone());
        plant(&mut observations, &mut result);
        let violations = result.find_violations(&observations, &self.baseline, true);
        let mut kinds: Vec<ViolationKind> = violations.iter().map(|violation| violation.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, expected, "{violations:#?}");
    }
}

/// Returns a recorder line for another start of a program by the last run.
fn second_start(recorder: &str, name: &str) -> String {
    let tag = recorder.lines().next_back().unwrap().split(' ').next().unwrap();
    format!("{tag}99 {name} 1 start\n")
}

#[test]
fn planted_faults_of_a_journey_are_detected() {
    let journeys = ControlJourneys::new();
    // Acknowledged events that are missing or different in the log.
    journeys.check_planted(
        |_, result| result.log = remove_line(&result.log, "\"task_completed\""),
        &[ViolationKind::LostEvent],
    );
    journeys.check_planted(
        |_, result| result.log = replace_last(&result.log, "\"timestamp\":\"2", "\"timestamp\":\"3"),
        &[ViolationKind::LostEvent],
    );
    journeys.check_planted(|observations, _| observations.acknowledged[0].push_str("{\"seq\":1, cut o"), &[]);
    // Starts that the log does not have, and repeated starts that it has.
    journeys.check_planted(
        |_, result| {
            let line = second_start(&result.recorder, "agent");
            result.recorder.push_str(&line);
        },
        &[ViolationKind::UnrecordedStart],
    );
    journeys.check_planted(
        |observations, result| {
            observations.acknowledged.clear();
            let line = second_start(&result.recorder, "stamp");
            result.recorder.push_str(&line);
            let is_start = |line: &&str| line.contains("workflow_step_started") && line.contains("\"stamp\"");
            let start = result.log.lines().find(is_start).unwrap().to_owned();
            result.log.push_str(&format!("{start}\n"));
        },
        &[ViolationKind::RepeatedRun],
    );
    // Prompts of the agent that the log does not have, and log entries without a prompt.
    journeys.check_planted(
        |_, result| result.recorder = replace_last(&result.recorder, " prompt run-", " prompt other-"),
        &[ViolationKind::WrongFeedback],
    );
    journeys.check_planted(
        |observations, result| {
            observations.acknowledged.clear();
            result.log = remove_line(&result.log, "\"feedback_delivered\"");
        },
        &[ViolationKind::WrongFeedback],
    );
    // A program that continues after another run has taken over.
    journeys.check_planted(
        |_, result| {
            let first = result.recorder.lines().next().unwrap();
            let words: Vec<&str> = first.split(' ').collect();
            let late_line = format!("{} {} {} end silent\n", words[0], words[1], words[2]);
            result.recorder.push_str(&late_line);
        },
        &[ViolationKind::StaleRun],
    );
    // The result of the journey.
    journeys.check_planted(
        |_, result| result.summary = remove_line(&result.summary, "Merge T2"),
        &[ViolationKind::DifferentResult],
    );
    journeys
        .check_planted(|_, result| result.summary.push_str("\nMerge T2: Second"), &[ViolationKind::DifferentResult]);
    journeys.check_planted(
        |_, result| result.summary = replace_last(&result.summary, "completed", "ready"),
        &[ViolationKind::DifferentResult],
    );
    journeys.check_planted(
        |_, result| result.summary = replace_last(&result.summary, "1 worktree", "2 worktree"),
        &[ViolationKind::DifferentResult],
    );
    journeys.check_planted(
        |_, result| result.summary = remove_line(&result.summary, "workflow_completed"),
        &[ViolationKind::DifferentResult],
    );
}

/// After failed calls, the workflow may be missing if the log records why. Nothing else may be missing.
#[test]
fn only_the_workflow_may_be_missing_and_only_where_that_is_told() {
    let journey_result = |complete: &str, log: &str| JourneyResult {
        summary: complete.to_owned(),
        log: log.to_owned(),
        recorder: String::new(),
    };
    let complete = "\"T1\" \"completed\" \"First\"\n\"T3\" \"completed\" \"Third\"\nMerge T1: First\nMerge T3: Third\n\
                start part-T1 part-T3\nworkflow_started\n\"make\"\nworkflow_completed";
    let without_workflow = "\"T1\" \"completed\" \"First\"\nMerge T1: First\nstart part-T1";
    let failed_hook = r#"{"seq":1,"type":"hook_finished","data":{"hook":"follow","outcome":"failure"}}"#;
    let kinds = |ours: &JourneyResult, is_deadly| {
        let violations = ours.find_violations(&CrashObservations::default(), &journey_result(complete, ""), is_deadly);
        violations.iter().map(|violation| violation.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&journey_result(without_workflow, failed_hook), false), []);
    assert_eq!(kinds(&journey_result(without_workflow, failed_hook), true), [ViolationKind::DifferentResult]);
    assert_eq!(kinds(&journey_result(without_workflow, ""), false), [ViolationKind::DifferentResult]);
    assert_eq!(
        kinds(&journey_result("\"T1\" \"ready\" \"First\"\nstart", failed_hook), false),
        [ViolationKind::DifferentResult]
    );
    assert_eq!(
        kinds(&journey_result(&without_workflow.replace("\nMerge T1: First", ""), failed_hook), false),
        [ViolationKind::DifferentResult]
    );
}

#[test]
fn surviving_process_is_reported_as_fault_until_killed() {
    let program = ProgramCopy::new();
    let setup = create_journey_project(&program);
    let mut follower = setup.windlass_command(&["--json", "events", "--follow"], None).spawn().unwrap();
    let find_violations = || {
        let mut observations = CrashObservations::default();
        setup.check_no_processes_within(Duration::ZERO, &mut observations);
        observations.violations.into_iter().map(|violation| violation.kind).collect::<Vec<_>>()
    };
    // Before its exec, the child is a copy of this process.
    while find_violations() != [ViolationKind::SurvivingProcess] {
        assert!(follower.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(find_violations(), []);
}
