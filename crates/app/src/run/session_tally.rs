//! The tally of a session: turns, times, hook runs and completed tasks, counted as they happen.
//!
//! Counting the events of a log gives the same result as counting them live, except for waiting times before a turn.
//!
//! Not here: the duration of the session, which its row has.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_engine::{Event, HookOutcome, Record, Timestamp};

/// The work of a session so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTally {
    pub turns: u32,
    /// The total time of turns, and of hook runs.
    pub agent: Duration,
    pub hooks: Duration,
    /// The start of the present turn.
    asked: Option<Timestamp>,
    pub hook_runs: u32,
    /// How often each hook has blocked or escalated.
    pub blocked: BTreeMap<String, u32>,
    /// Tasks that were completed in the session.
    pub completed: Vec<String>,
    /// The recorded reason of the session's ending.
    pub ending_reason: Option<String>,
}

impl SessionTally {
    /// Counts an event.
    pub fn count(&mut self, record: &Record) {
        let at = record.envelope.timestamp;
        match &record.envelope.event {
            // The runner has died, so the time of its turn is unknown.
            Event::SessionResumed(_) => self.asked = None,
            Event::TurnStarted(_) => {
                self.turns += 1;
                self.ask(at);
            }
            Event::TurnFinished(_)
            | Event::DeliveryFinished(_)
            | Event::IterationFailed(_)
            | Event::DeliveryFailed(_)
            | Event::IterationPostponed(_)
            | Event::IterationInterrupted(_)
            | Event::DeliveryInterrupted(_) => {
                if let Some(asked) = self.asked.take() {
                    self.agent += between(asked, at);
                }
            }
            Event::HookFinished(finished) => {
                self.hook_runs += 1;
                self.hooks += Duration::from_millis(finished.duration_ms.unwrap_or(0));
                if matches!(finished.outcome, HookOutcome::Block | HookOutcome::Escalate) {
                    *self.blocked.entry(finished.hook.clone()).or_default() += 1;
                }
            }
            Event::TaskCompleted(_) => self.completed.extend(record.envelope.node.task().map(|task| task.to_string())),
            Event::SessionEnded(ended) => self.ending_reason.clone_from(&ended.reason),
            _ => {}
        }
    }

    /// Starts the clock of a turn.
    pub fn ask(&mut self, at: Timestamp) {
        self.asked = Some(at);
    }

    /// Stops the clock of a turn, because the runner waits before the turn.
    pub fn wait(&mut self) {
        self.asked = None;
    }
}

/// Returns the time between two time stamps, or zero if the clock went backwards.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.millis().saturating_sub(from.millis())).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use windlass_engine::{Envelope, Metadata, Node, Purpose, Seq, payload};

    use super::*;

    /// Returns the tally of these events, each at its second.
    fn tally(events: Vec<(i64, Event)>) -> SessionTally {
        let mut tally = SessionTally::default();
        for (second, event) in events {
            tally.count(&record(second, event));
        }
        tally
    }

    fn record(second: i64, event: Event) -> Record {
        let triggered_by = "run-1".to_owned();
        let metadata = Metadata { triggered_by, cause: None, depth: 0, via: None, forced: false, owes: None };
        let timestamp = Timestamp::from_millis(second * 1000);
        let envelope = Envelope { timestamp, node: Node::System, session: None, iteration: None, event, metadata };
        Record { seq: Seq(1), envelope }
    }

    fn started() -> Event {
        let owner = "run-1".parse().unwrap();
        payload::TurnStarted { run: "pump.1.7".parse().unwrap(), owner, purpose: Purpose::Work, feedback: 0 }.into()
    }

    fn interrupted() -> Event {
        let (record, usage) = (None, windlass_engine::Usage::default());
        payload::IterationInterrupted { run: "pump.1.7".parse().unwrap(), record, usage }.into()
    }

    #[test]
    fn a_turn_that_was_given_up_has_taken_its_time() {
        let tally = tally(vec![(0, started()), (7, interrupted()), (8, started()), (9, interrupted())]);
        assert_eq!((tally.turns, tally.agent), (2, Duration::from_secs(8)));
    }

    #[test]
    fn nobody_knows_when_the_dead_have_died() {
        let resumed =
            payload::SessionResumed { owner: "run-2".parse().unwrap(), terms: windlass_engine::Terms::default() };
        let tally = tally(vec![(0, started()), (5000, resumed.into()), (5000, interrupted())]);
        assert_eq!(tally.agent, Duration::ZERO);
    }

    #[test]
    fn waiting_is_no_work() {
        let mut tally = tally(vec![(0, started())]);
        tally.wait();
        tally.ask(Timestamp::from_millis(30_000));
        tally.count(&record(35, interrupted()));
        assert_eq!(tally.agent, Duration::from_secs(5));
        tally.ask(Timestamp::from_millis(40_000));
        tally.wait();
        tally.count(&record(50, interrupted()));
        assert_eq!(tally.agent, Duration::from_secs(5), "it was never asked");
    }
}
