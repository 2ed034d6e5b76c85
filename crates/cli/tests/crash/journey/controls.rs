//! That the facts of a journey can be wrong: what is planted is noticed.

use std::time::Duration;

use super::super::checks::Kind;
use super::super::controls::{replaced, without};
use super::super::stage::{Crash, Program, Seen};
use super::facts::Facts;
use super::{play, set_out};

/// The step of the workflow that may not run twice, by its number among all that is started.
const STAMP: u32 = 6;

/// A journey that was killed in the step that may not run twice, and one that was not.
struct Journeys {
    seen: Seen,
    killed: Facts,
    undisturbed: Facts,
}

impl Journeys {
    fn new() -> Self {
        let program = Program::new();
        let (seen, killed) = play(&program, &[Crash::Effect(STAMP)]);
        let journeys = Self { seen, killed, undisturbed: play(&program, &[]).1 };
        assert_eq!(journeys.seen.crashed, 1);
        assert!(journeys.killed.recorder.contains(" stamp "), "{}", journeys.killed.recorder);
        journeys.check(|_, _| {}, &[]);
        journeys
    }

    /// What is found when something is planted.
    #[track_caller]
    fn check(&self, plant: impl Fn(&mut Seen, &mut Facts), expected: &[Kind]) {
        let (mut seen, mut facts) = (self.seen.clone(), self.killed.clone());
        plant(&mut seen, &mut facts);
        let faults = facts.faults(&seen, &self.undisturbed, true);
        let mut kinds: Vec<Kind> = faults.iter().map(|fault| fault.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, expected, "{faults:#?}");
    }
}

/// A line of the recorder for another start of a program, by the last run.
fn again(recorder: &str, who: &str) -> String {
    let tag = recorder.lines().next_back().unwrap().split(' ').next().unwrap();
    format!("{tag}99 {who} 1 start\n")
}

#[test]
fn planted_faults_of_a_journey_are_detected() {
    let journeys = Journeys::new();
    // What was said, and is not in the log, or is there otherwise.
    journeys.check(|_, facts| facts.log = without(&facts.log, "\"task_completed\""), &[Kind::Lost]);
    journeys
        .check(|_, facts| facts.log = replaced(&facts.log, "\"timestamp\":\"2", "\"timestamp\":\"3"), &[Kind::Lost]);
    journeys.check(|seen, _| seen.acknowledged[0].push_str("{\"seq\":1, cut o"), &[]);
    // What ran, and the log does not know of; and what ran twice, although it does.
    journeys.check(
        |_, facts| {
            let line = again(&facts.recorder, "agent");
            facts.recorder.push_str(&line);
        },
        &[Kind::Unmarked],
    );
    journeys.check(
        |seen, facts| {
            seen.acknowledged.clear();
            let line = again(&facts.recorder, "stamp");
            facts.recorder.push_str(&line);
            let is_start = |line: &&str| line.contains("workflow_step_started") && line.contains("\"stamp\"");
            let begun = facts.log.lines().find(is_start).unwrap().to_owned();
            facts.log.push_str(&format!("{begun}\n"));
        },
        &[Kind::Twice],
    );
    // What the agent was told, and the log does not say so; and what it was never told.
    journeys.check(
        |_, facts| facts.recorder = replaced(&facts.recorder, " prompt run-", " prompt other-"),
        &[Kind::Feedback],
    );
    journeys.check(
        |seen, facts| {
            seen.acknowledged.clear();
            facts.log = without(&facts.log, "\"feedback_delivered\"");
        },
        &[Kind::Feedback],
    );
    // What goes on although somebody else has taken over.
    journeys.check(
        |_, facts| {
            let first = facts.recorder.lines().next().unwrap();
            let words: Vec<&str> = first.split(' ').collect();
            let late = format!("{} {} {} end silent\n", words[0], words[1], words[2]);
            facts.recorder.push_str(&late);
        },
        &[Kind::Undead],
    );
    // What it came to.
    journeys.check(|_, facts| facts.told = without(&facts.told, "Merge T2"), &[Kind::Different]);
    journeys.check(|_, facts| facts.told.push_str("\nMerge T2: Second"), &[Kind::Different]);
    journeys.check(|_, facts| facts.told = replaced(&facts.told, "completed", "ready"), &[Kind::Different]);
    journeys.check(|_, facts| facts.told = replaced(&facts.told, "1 worktree", "2 worktree"), &[Kind::Different]);
    journeys.check(|_, facts| facts.told = without(&facts.told, "workflow_completed"), &[Kind::Different]);
}

/// Where calls have failed the workflow may be missing, if the log says why. Nothing else may.
#[test]
fn only_the_workflow_may_be_missing_and_only_where_that_is_told() {
    let of = |told: &str, log: &str| Facts { told: told.to_owned(), log: log.to_owned(), recorder: String::new() };
    let told = "\"T1\" \"completed\" \"First\"\n\"T3\" \"completed\" \"Third\"\nMerge T1: First\nMerge T3: Third\n\
                start part-T1 part-T3\nworkflow_started\n\"make\"\nworkflow_completed";
    let without = "\"T1\" \"completed\" \"First\"\nMerge T1: First\nstart part-T1";
    let failed = r#"{"seq":1,"type":"hook_finished","data":{"hook":"follow","outcome":"failure"}}"#;
    let kinds = |ours: &Facts, is_deadly| {
        let faults = ours.faults(&Seen::default(), &of(told, ""), is_deadly);
        faults.iter().map(|fault| fault.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&of(without, failed), false), []);
    assert_eq!(kinds(&of(without, failed), true), [Kind::Different]);
    assert_eq!(kinds(&of(without, ""), false), [Kind::Different]);
    assert_eq!(kinds(&of("\"T1\" \"ready\" \"First\"\nstart", failed), false), [Kind::Different]);
    assert_eq!(kinds(&of(&without.replace("\nMerge T1: First", ""), failed), false), [Kind::Different]);
}

#[test]
fn a_process_that_is_left_is_noticed() {
    let program = Program::new();
    let stage = set_out(&program);
    let mut left = stage.command(&["--json", "events", "--follow"], None).spawn().unwrap();
    let look = || {
        let mut seen = Seen::default();
        stage.expect_none_within(Duration::ZERO, &mut seen);
        seen.faults.into_iter().map(|fault| fault.kind).collect::<Vec<_>>()
    };
    // Until it runs its program it is a copy of this one.
    while look() != [Kind::Survivor] {
        assert!(left.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    left.kill().unwrap();
    left.wait().unwrap();
    assert_eq!(look(), []);
}
