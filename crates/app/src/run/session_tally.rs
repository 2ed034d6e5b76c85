//! The tally of a session: turns, times, hook runs and completed tasks, counted as they happen.
//!
//! Counting the events of a log gives the same result as counting them live, except for waiting times before a turn.
//!
//! Not here: the duration of the session, which its row has.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_engine::{Event, EventRecord, HookOutcome, Timestamp};

/// The work of a session so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTally {
    pub turns: u32,
    /// The total time of turns, and of hook runs.
    pub agent: Duration,
    pub hooks: Duration,
    /// The start of the present turn.
    turn_started_at: Option<Timestamp>,
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
    pub fn count_event(&mut self, record: &EventRecord) {
        let at = record.envelope.timestamp;
        match &record.envelope.event {
            // The runner has died, so the time of its turn is unknown.
            Event::SessionResumed(_) => self.turn_started_at = None,
            Event::TurnStarted(_) => {
                self.turns += 1;
                self.start_turn_clock(at);
            }
            Event::TurnFinished(_)
            | Event::DeliveryFinished(_)
            | Event::IterationFailed(_)
            | Event::DeliveryFailed(_)
            | Event::IterationPostponed(_)
            | Event::IterationInterrupted(_)
            | Event::DeliveryInterrupted(_) => {
                if let Some(asked) = self.turn_started_at.take() {
                    self.agent += duration_between(asked, at);
                }
            }
            Event::HookFinished(finished) => {
                self.hook_runs += 1;
                self.hooks += Duration::from_millis(finished.duration_ms.unwrap_or(0));
                if matches!(finished.outcome, HookOutcome::Block | HookOutcome::Escalate) {
                    *self.blocked.entry(finished.hook.clone()).or_default() += 1;
                }
            }
            Event::TaskCompleted(_) => {
                self.completed.extend(record.envelope.node.task_id().map(|task| task.to_string()))
            }
            Event::SessionEnded(ended) => self.ending_reason.clone_from(&ended.reason),
            _ => {}
        }
    }

    /// Starts the clock of a turn.
    pub fn start_turn_clock(&mut self, at: Timestamp) {
        self.turn_started_at = Some(at);
    }

    /// Stops the clock of a turn, because the runner waits before the turn.
    pub fn stop_turn_clock(&mut self) {
        self.turn_started_at = None;
    }
}

/// Returns the time between two time stamps, or zero if the clock went backwards.
fn duration_between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.millis().saturating_sub(from.millis())).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use windlass_engine::{EventEnvelope, EventMetadata, EventSubject, Seq, TurnPurpose, payload};

    use super::*;

    /// Returns the tally of these events, each at its second.
    fn tally(events: Vec<(i64, Event)>) -> SessionTally {
        let mut tally = SessionTally::default();
        for (second, event) in events {
            tally.count_event(&record(second, event));
        }
        tally
    }

    fn record(second: i64, event: Event) -> EventRecord {
        let triggered_by = "run-1".to_owned();
        let metadata = EventMetadata { triggered_by, cause: None, depth: 0, via: None, forced: false, owes: None };
        let timestamp = Timestamp::from_millis(second * 1000);
        let envelope =
            EventEnvelope { timestamp, node: EventSubject::System, session: None, iteration: None, event, metadata };
        EventRecord { seq: Seq(1), envelope }
    }

    fn started() -> Event {
        let owner = "run-1".parse().unwrap();
        payload::TurnStarted { run: "pump.1.7".parse().unwrap(), owner, purpose: TurnPurpose::Work, feedback: 0 }.into()
    }

    fn interrupted() -> Event {
        let (record, usage) = (None, windlass_engine::AgentUsage::default());
        payload::IterationInterrupted { run: "pump.1.7".parse().unwrap(), record, usage }.into()
    }

    #[test]
    fn interrupted_turn_counts_its_duration() {
        let tally = tally(vec![(0, started()), (7, interrupted()), (8, started()), (9, interrupted())]);
        assert_eq!((tally.turns, tally.agent), (2, Duration::from_secs(8)));
    }

    #[test]
    fn turn_of_dead_runner_counts_no_duration() {
        let resumed = payload::SessionResumed {
            owner: "run-2".parse().unwrap(),
            terms: windlass_engine::SessionTerms::default(),
        };
        let tally = tally(vec![(0, started()), (5000, resumed.into()), (5000, interrupted())]);
        assert_eq!(tally.agent, Duration::ZERO);
    }

    #[test]
    fn waiting_before_turn_counts_no_duration() {
        let mut tally = tally(vec![(0, started())]);
        tally.stop_turn_clock();
        tally.start_turn_clock(Timestamp::from_millis(30_000));
        tally.count_event(&record(35, interrupted()));
        assert_eq!(tally.agent, Duration::from_secs(5));
        tally.start_turn_clock(Timestamp::from_millis(40_000));
        tally.stop_turn_clock();
        tally.count_event(&record(50, interrupted()));
        assert_eq!(tally.agent, Duration::from_secs(5), "it was never asked");
    }
}
