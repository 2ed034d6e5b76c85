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

use crate::control::ControlOrder;

/// How long the output of an exited leader may stay open before the rest of its tree is ended.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_millis(100);

/// The facts about a run at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunObservations {
    /// The leader has exited, or the supervisor died.
    pub gone: bool,
    /// Both output streams have ended.
    pub drained: bool,
    pub order: ControlOrder,
}

/// The next thing that the event loop does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RunAction {
    /// Wait for an event, at most until this moment.
    Wait(Option<Instant>),
    /// Ask the group to end, or the remaining processes if the leader is gone. Then ask for the next action again.
    Terminate,
    /// End all remaining processes.
    Finish,
}

/// The reason why a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunInterruption {
    TimedOut,
    OutputIdle,
    Cancelled,
}

#[derive(Debug)]
enum RunPhase {
    Running,
    Grace {
        /// The leader is gone, and the remaining processes were asked again: some may have started after the first time.
        again: bool,
    },
    Lingering,
}

#[derive(Debug)]
pub(crate) struct RunStateMachine {
    phase: RunPhase,
    /// When the phase ends by itself.
    until: Option<Instant>,
    /// When the run counts as idle for too long, and how long it may be idle.
    idle_deadline: Option<(Instant, Duration)>,
    grace: Duration,
    paused_since: Option<Instant>,
    interruption: Option<RunInterruption>,
}

impl RunStateMachine {
    pub fn new(now: Instant, timeout: Option<Duration>, silence: Option<Duration>, grace: Duration) -> Self {
        // A timeout beyond the range of the clock counts as none.
        let until = timeout.and_then(|timeout| now.checked_add(timeout));
        let idle_deadline = silence.and_then(|silence| Some((now.checked_add(silence)?, silence)));
        Self { phase: RunPhase::Running, until, idle_deadline, grace, paused_since: None, interruption: None }
    }

    /// Records that the program has written something.
    pub fn record_output(&mut self, now: Instant) {
        self.idle_deadline = self.idle_deadline.and_then(|(_, silence)| Some((now.checked_add(silence)?, silence)));
    }

    pub fn interruption(&self) -> Option<RunInterruption> {
        self.interruption
    }

    pub fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    pub fn pause_deadlines(&mut self, now: Instant) {
        self.paused_since.get_or_insert(now);
    }

    pub fn resume_deadlines(&mut self, now: Instant) {
        if let Some(held) = self.paused_since.take() {
            self.until = self.until.and_then(|until| until.checked_add(now - held));
            self.idle_deadline =
                self.idle_deadline.and_then(|(until, silence)| Some((until.checked_add(now - held)?, silence)));
        }
    }

    pub fn next_action(&mut self, facts: RunObservations, now: Instant) -> RunAction {
        if self.is_paused() {
            return RunAction::Wait(None);
        }
        let over = self.until.is_some_and(|until| now >= until);
        match self.phase {
            RunPhase::Running if facts.gone => {
                self.phase = RunPhase::Lingering;
                self.until = Some(now + DRAIN_GRACE);
                self.next_action(facts, now)
            }
            RunPhase::Running if facts.order == ControlOrder::Kill => {
                self.interruption = Some(RunInterruption::Cancelled);
                RunAction::Finish
            }
            RunPhase::Running if facts.order == ControlOrder::Cancel => {
                self.begin_termination(RunInterruption::Cancelled, now)
            }
            RunPhase::Running if over => self.begin_termination(RunInterruption::TimedOut, now),
            RunPhase::Running if self.idle_deadline.is_some_and(|(until, _)| now >= until) => {
                self.begin_termination(RunInterruption::OutputIdle, now)
            }
            RunPhase::Grace { .. } if over || facts.order == ControlOrder::Kill || (facts.gone && facts.drained) => {
                RunAction::Finish
            }
            RunPhase::Grace { again: false } if facts.gone => {
                self.phase = RunPhase::Grace { again: true };
                RunAction::Terminate
            }
            RunPhase::Lingering if over || facts.order != ControlOrder::Continue || facts.drained => RunAction::Finish,
            RunPhase::Running => {
                RunAction::Wait(self.until.into_iter().chain(self.idle_deadline.map(|(until, _)| until)).min())
            }
            RunPhase::Grace { .. } | RunPhase::Lingering => RunAction::Wait(self.until),
        }
    }

    fn begin_termination(&mut self, why: RunInterruption, now: Instant) -> RunAction {
        self.interruption = Some(why);
        self.phase = RunPhase::Grace { again: false };
        self.until = now.checked_add(self.grace);
        RunAction::Terminate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RUNNING: RunObservations = RunObservations { gone: false, drained: false, order: ControlOrder::Continue };
    const GONE: RunObservations = RunObservations { gone: true, ..RUNNING };
    const QUIET: RunObservations = RunObservations { drained: true, ..GONE };
    const CANCELLED: RunObservations = RunObservations { order: ControlOrder::Cancel, ..RUNNING };
    const KILLED: RunObservations = RunObservations { order: ControlOrder::Kill, ..RUNNING };

    /// Checks a run with a timeout of ten seconds and a grace of two, at these seconds since its start.
    fn check(script: &[(u32, RunObservations, RunAction)], interruption: Option<RunInterruption>, start: Instant) {
        let mut machine = RunStateMachine::new(start, Some(10 * SECOND), None, 2 * SECOND);
        for (at, facts, expected) in script {
            assert_eq!(machine.next_action(*facts, start + *at * SECOND), *expected, "after {at} s: {facts:?}");
        }
        assert_eq!(machine.interruption(), interruption);
    }

    #[test]
    fn run_state_waits_terminates_or_finishes_by_observation_and_time() {
        use RunAction::{Finish, Terminate, Wait};
        use RunInterruption::{Cancelled, TimedOut};
        let start = Instant::now();
        let at = |seconds: u32| Wait(Some(start + seconds * SECOND));
        let moment = |seconds: u32| Wait(Some(start + seconds * SECOND + DRAIN_GRACE));
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
        check(
            &[(10, GONE, moment(10)), (10, RunObservations { order: ControlOrder::Cancel, ..GONE }, Finish)],
            None,
            start,
        );
    }

    #[test]
    fn deadlines_stand_still_while_held() {
        let start = Instant::now();
        let mut machine = RunStateMachine::new(start, Some(10 * SECOND), None, 2 * SECOND);
        machine.pause_deadlines(start + 4 * SECOND);
        machine.pause_deadlines(start + 5 * SECOND);
        assert_eq!(machine.next_action(RUNNING, start + 100 * SECOND), RunAction::Wait(None));
        machine.resume_deadlines(start + 104 * SECOND);
        assert_eq!(machine.next_action(RUNNING, start + 109 * SECOND), RunAction::Wait(Some(start + 110 * SECOND)));
        assert_eq!(machine.next_action(RUNNING, start + 110 * SECOND), RunAction::Terminate);
    }

    #[test]
    fn idle_run_is_terminated_after_idle_timeout() {
        let start = Instant::now();
        let at = |seconds: u32| start + seconds * SECOND;
        let mut machine = RunStateMachine::new(start, Some(10 * SECOND), Some(4 * SECOND), 2 * SECOND);
        assert_eq!(machine.next_action(RUNNING, at(0)), RunAction::Wait(Some(at(4))));
        machine.record_output(at(3));
        assert_eq!(machine.next_action(RUNNING, at(4)), RunAction::Wait(Some(at(7))));
        machine.pause_deadlines(at(5));
        machine.resume_deadlines(at(6));
        assert_eq!(machine.next_action(RUNNING, at(7)), RunAction::Wait(Some(at(8))));
        assert_eq!(machine.next_action(RUNNING, at(8)), RunAction::Terminate);
        assert_eq!(machine.interruption(), Some(RunInterruption::OutputIdle));
        let mut machine = RunStateMachine::new(start, Some(3 * SECOND), Some(4 * SECOND), 2 * SECOND);
        assert_eq!(machine.next_action(RUNNING, at(3)), RunAction::Terminate);
        assert_eq!(machine.interruption(), Some(RunInterruption::TimedOut));
    }
}
