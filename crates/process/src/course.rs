//! State machine of a run: maps what has happened to what to do next.
//!
//! ```text
//!   Running ── timed out, cancelled ───────► Grace ── over, or all drained ──► finish
//!      │                                       └────── killed ────────────────► finish
//!      ├────── the leader is gone ──────────► Lingering ── drained, over ─────► finish
//!      └────── killed ────────────────────────────────────────────────────────► finish
//! ```
//!
//! Invariants:
//! - Pure: the time is an argument, and the machine does no I/O.
//! - While the run is paused, no deadline comes nearer.
//! - The exit of a leader that ended before any interruption counts as it is.
//!
//! Not here: signals, pipes, polling (`event_loop`).

use std::time::{Duration, Instant};

use crate::control::Order;

/// How long the output of an exited leader may stay open before the rest of its tree is ended.
pub(crate) const MOMENT: Duration = Duration::from_millis(100);

/// The facts about a run at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    /// The leader has exited, or the supervisor died.
    pub gone: bool,
    /// Both output streams have ended.
    pub drained: bool,
    pub order: Order,
}

/// The next thing that the event loop does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait for an event, at most until this moment.
    Wait(Option<Instant>),
    /// Ask the group to end, or the remaining processes if the leader is gone. Then ask for the next action again.
    Terminate,
    /// End all remaining processes.
    Finish,
}

/// The reason why a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interference {
    TimedOut,
    Silent,
    Cancelled,
}

#[derive(Debug)]
enum Phase {
    Running,
    Grace {
        /// The leader is gone, and the remaining processes were asked again: some may have started after the first time.
        again: bool,
    },
    Lingering,
}

#[derive(Debug)]
pub(crate) struct Course {
    phase: Phase,
    /// When the phase ends by itself.
    until: Option<Instant>,
    /// When the run counts as idle for too long, and how long it may be idle.
    quiet: Option<(Instant, Duration)>,
    grace: Duration,
    held: Option<Instant>,
    interference: Option<Interference>,
}

impl Course {
    pub fn new(now: Instant, timeout: Option<Duration>, silence: Option<Duration>, grace: Duration) -> Self {
        // A timeout beyond the range of the clock counts as none.
        let until = timeout.and_then(|timeout| now.checked_add(timeout));
        let quiet = silence.and_then(|silence| Some((now.checked_add(silence)?, silence)));
        Self { phase: Phase::Running, until, quiet, grace, held: None, interference: None }
    }

    /// Records that the program has written something.
    pub fn heard(&mut self, now: Instant) {
        self.quiet = self.quiet.and_then(|(_, silence)| Some((now.checked_add(silence)?, silence)));
    }

    pub fn interference(&self) -> Option<Interference> {
        self.interference
    }

    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    pub fn hold(&mut self, now: Instant) {
        self.held.get_or_insert(now);
    }

    pub fn release(&mut self, now: Instant) {
        if let Some(held) = self.held.take() {
            self.until = self.until.and_then(|until| until.checked_add(now - held));
            self.quiet = self.quiet.and_then(|(until, silence)| Some((until.checked_add(now - held)?, silence)));
        }
    }

    pub fn step(&mut self, facts: Facts, now: Instant) -> Step {
        if self.is_held() {
            return Step::Wait(None);
        }
        let over = self.until.is_some_and(|until| now >= until);
        match self.phase {
            Phase::Running if facts.gone => {
                self.phase = Phase::Lingering;
                self.until = Some(now + MOMENT);
                self.step(facts, now)
            }
            Phase::Running if facts.order == Order::Kill => {
                self.interference = Some(Interference::Cancelled);
                Step::Finish
            }
            Phase::Running if facts.order == Order::Cancel => self.terminate(Interference::Cancelled, now),
            Phase::Running if over => self.terminate(Interference::TimedOut, now),
            Phase::Running if self.quiet.is_some_and(|(until, _)| now >= until) => {
                self.terminate(Interference::Silent, now)
            }
            Phase::Grace { .. } if over || facts.order == Order::Kill || (facts.gone && facts.drained) => Step::Finish,
            Phase::Grace { again: false } if facts.gone => {
                self.phase = Phase::Grace { again: true };
                Step::Terminate
            }
            Phase::Lingering if over || facts.order != Order::Continue || facts.drained => Step::Finish,
            Phase::Running => Step::Wait(self.until.into_iter().chain(self.quiet.map(|(until, _)| until)).min()),
            Phase::Grace { .. } | Phase::Lingering => Step::Wait(self.until),
        }
    }

    fn terminate(&mut self, why: Interference, now: Instant) -> Step {
        self.interference = Some(why);
        self.phase = Phase::Grace { again: false };
        self.until = now.checked_add(self.grace);
        Step::Terminate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RUNNING: Facts = Facts { gone: false, drained: false, order: Order::Continue };
    const GONE: Facts = Facts { gone: true, ..RUNNING };
    const QUIET: Facts = Facts { drained: true, ..GONE };
    const CANCELLED: Facts = Facts { order: Order::Cancel, ..RUNNING };
    const KILLED: Facts = Facts { order: Order::Kill, ..RUNNING };

    /// Checks a run with a timeout of ten seconds and a grace of two, at these seconds since its start.
    fn check(script: &[(u32, Facts, Step)], interference: Option<Interference>, start: Instant) {
        let mut course = Course::new(start, Some(10 * SECOND), None, 2 * SECOND);
        for (at, facts, expected) in script {
            assert_eq!(course.step(*facts, start + *at * SECOND), *expected, "after {at} s: {facts:?}");
        }
        assert_eq!(course.interference(), interference);
    }

    #[test]
    fn the_list_of_decisions() {
        use Interference::{Cancelled, TimedOut};
        use Step::{Finish, Terminate, Wait};
        let start = Instant::now();
        let at = |seconds: u32| Wait(Some(start + seconds * SECOND));
        let moment = |seconds: u32| Wait(Some(start + seconds * SECOND + MOMENT));
        check(&[(0, RUNNING, at(10)), (3, QUIET, Finish)], None, start);
        check(&[(3, GONE, moment(3)), (3, QUIET, Finish)], None, start);
        check(&[(3, GONE, moment(3)), (4, GONE, Finish)], None, start);
        check(&[(10, RUNNING, Terminate), (11, RUNNING, at(12)), (12, RUNNING, Finish)], Some(TimedOut), start);
        check(&[(10, RUNNING, Terminate), (11, QUIET, Finish)], Some(TimedOut), start);
        let asked_again = [(10, RUNNING, Terminate), (11, GONE, Terminate), (11, GONE, at(12)), (12, GONE, Finish)];
        check(&asked_again, Some(TimedOut), start);
        check(&[(10, RUNNING, Terminate), (11, CANCELLED, at(12)), (11, KILLED, Finish)], Some(TimedOut), start);
        check(&[(5, CANCELLED, Terminate), (6, CANCELLED, at(7)), (7, CANCELLED, Finish)], Some(Cancelled), start);
        check(&[(5, KILLED, Finish)], Some(Cancelled), start);
        check(&[(10, GONE, moment(10)), (10, Facts { order: Order::Cancel, ..GONE }, Finish)], None, start);
    }

    #[test]
    fn deadlines_stand_still_while_held() {
        let start = Instant::now();
        let mut course = Course::new(start, Some(10 * SECOND), None, 2 * SECOND);
        course.hold(start + 4 * SECOND);
        course.hold(start + 5 * SECOND);
        assert_eq!(course.step(RUNNING, start + 100 * SECOND), Step::Wait(None));
        course.release(start + 104 * SECOND);
        assert_eq!(course.step(RUNNING, start + 109 * SECOND), Step::Wait(Some(start + 110 * SECOND)));
        assert_eq!(course.step(RUNNING, start + 110 * SECOND), Step::Terminate);
    }

    #[test]
    fn silence_has_an_end() {
        let start = Instant::now();
        let at = |seconds: u32| start + seconds * SECOND;
        let mut course = Course::new(start, Some(10 * SECOND), Some(4 * SECOND), 2 * SECOND);
        assert_eq!(course.step(RUNNING, at(0)), Step::Wait(Some(at(4))));
        course.heard(at(3));
        assert_eq!(course.step(RUNNING, at(4)), Step::Wait(Some(at(7))));
        course.hold(at(5));
        course.release(at(6));
        assert_eq!(course.step(RUNNING, at(7)), Step::Wait(Some(at(8))));
        assert_eq!(course.step(RUNNING, at(8)), Step::Terminate);
        assert_eq!(course.interference(), Some(Interference::Silent));
        let mut course = Course::new(start, Some(3 * SECOND), Some(4 * SECOND), 2 * SECOND);
        assert_eq!(course.step(RUNNING, at(3)), Step::Terminate);
        assert_eq!(course.interference(), Some(Interference::TimedOut));
    }
}
