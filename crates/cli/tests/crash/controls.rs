//! That the checks can fail: a build that misbehaves is caught, and so is every kind of story that does not fit.

use std::collections::BTreeSet;
use std::path::Path;

use super::checks::{Kind, faults};
use super::processes;
use super::scenario::{Bench, Observed, Story};
use super::stage::{Crash, Seen};
use crate::support::World;

/// The programs that the scenario starts, by number.
const SECOND_TURN: u32 = 5;
const FIRST_CHECK: u32 = 4;
const CLOSE: u32 = 17;

fn kinds(observed: &Observed, undisturbed: &Observed) -> Vec<Kind> {
    let kinds: BTreeSet<Kind> = faults(observed, undisturbed).iter().map(|fault| fault.kind).collect();
    kinds.into_iter().collect()
}

/// Two plays of the scenario that are sound: one that was killed, and the undisturbed one.
struct Plays {
    killed: Observed,
    undisturbed: Observed,
}

impl Plays {
    fn new(crash: Crash) -> Self {
        let bench = Bench::new(Story::Completed);
        let plays = Self { killed: bench.play(&[crash]), undisturbed: bench.play(&[]) };
        assert_eq!(faults(&plays.killed, &plays.undisturbed), []);
        plays
    }

    /// What is found when the observation is tampered with.
    #[track_caller]
    fn check(&self, tamper: impl Fn(&mut Observed), expected: &[Kind]) {
        let mut killed = self.killed.clone();
        tamper(&mut killed);
        assert_eq!(kinds(&killed, &self.undisturbed), expected, "{:#?}", faults(&killed, &self.undisturbed));
    }
}

/// Leaves the last line out that holds this.
pub fn without(text: &str, part: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let place = lines.iter().rposition(|line| line.contains(part)).unwrap();
    let kept = lines.iter().enumerate().filter(|(number, _)| *number != place);
    kept.map(|(_, line)| format!("{line}\n")).collect()
}

/// Replaces in the last line that holds this.
pub fn replaced(text: &str, part: &str, by: &str) -> String {
    let place = text.rfind(part).unwrap();
    format!("{}{by}{}", &text[..place], &text[place + part.len()..])
}

#[test]
fn tampered_observations_are_detected() {
    let plays = Plays::new(Crash::Effect(SECOND_TURN));
    // Without what was acknowledged, where it is not about that.
    let quiet = |tamper: fn(&mut Observed)| {
        move |seen: &mut Observed| {
            seen.seen.acknowledged.clear();
            tamper(seen);
        }
    };
    plays.check(|_| {}, &[]);
    plays.check(|seen| seen.log = replaced(&seen.log, "\"timestamp\":\"2", "\"timestamp\":\"3"), &[Kind::Lost]);
    plays.check(|seen| seen.seen.acknowledged[0].push_str("cut o"), &[]);
    plays.check(|seen| seen.recorder = without(&seen.recorder, " close 3 end"), &[Kind::Invented]);
    plays.check(
        |seen| seen.recorder = without(&seen.recorder, " close 3 start"),
        &[Kind::Unrun, Kind::Invented, Kind::Odd],
    );
    plays.check(
        |seen| {
            let line = seen.recorder.lines().find(|line| line.ends_with(" bill 2 start")).unwrap().to_owned();
            let (tag, rest) = line.split_once(' ').unwrap();
            seen.recorder.push_str(&format!("{tag}99 {rest}\n"));
        },
        &[Kind::Unmarked],
    );
    plays.check(
        |seen| {
            let line = seen.recorder.lines().find(|line| line.ends_with(" agent 1 end silent")).unwrap().to_owned();
            seen.recorder.push_str(&format!("{line}\n"));
        },
        &[Kind::Undead],
    );
    plays.check(|seen| seen.recorder = replaced(&seen.recorder, "+", ""), &[Kind::Feedback]);
    plays.check(
        |seen| {
            let line = seen.recorder.lines().find(|line| line.ends_with(" bill 2 start")).unwrap().to_owned();
            seen.recorder.push_str(&line.replace("start", "cut\n"));
        },
        &[Kind::Cut],
    );
    plays.check(quiet(|seen| seen.log = without(&seen.log, "\"feedback_delivered\"")), &[Kind::Feedback]);
    plays.check(quiet(|seen| seen.log = without(&seen.log, "\"promise_detected\"")), &[Kind::Different]);
    plays.check(quiet(|seen| seen.log = replaced(&seen.log, "\"retries\":2", "\"retries\":1")), &[Kind::Different]);
    plays.check(quiet(|seen| seen.log = replaced(&seen.log, "\"completed\"", "\"limit\"")), &[Kind::Different]);
    plays.check(
        quiet(|seen| seen.log = without(&seen.log, "\"iteration_interrupted\"")),
        &[Kind::Invented, Kind::Feedback, Kind::Different],
    );
}

#[test]
fn second_run_is_a_fault_unless_hook_may_repeat() {
    let plays = Plays::new(Crash::Effect(FIRST_CHECK));
    let rename = |seen: &Observed| Observed {
        seen: Seen { acknowledged: Vec::new(), ..seen.seen.clone() },
        log: seen.log.replace("\"check\"", "\"test\""),
        recorder: seen.recorder.replace(" check ", " test "),
    };
    assert_eq!(kinds(&rename(&plays.killed), &rename(&plays.undisturbed)), [Kind::Twice]);
}

/// A build that says that something is durable which is not.
#[test]
fn build_that_loses_a_commit_is_detected() {
    let (sound, broken) = (Bench::new(Story::Completed), Bench::broken("store.commit=error@29"));
    let observed = broken.play(&[Crash::Effect(CLOSE)]);
    assert_eq!(kinds(&observed, &sound.play(&[])), [Kind::Lost, Kind::Unmarked]);
}

#[test]
fn surviving_process_is_detected() {
    let world = World::empty();
    let mut sleeper = world.program("sleep").arg("600").env("CRASH_RECORDER", world.path("recorder")).spawn().unwrap();
    let look = || processes::alive(&world.path("recorder"), Path::new("/none"));
    // Until it runs its program it is a copy of this one.
    let number = i32::try_from(sleeper.id()).unwrap();
    while look().iter().all(|process| process.pid != number) {
        assert!(sleeper.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(processes::await_none(processes::PATIENCE, look).is_empty());
}
