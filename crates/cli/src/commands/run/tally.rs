//! What a session has come to, counted as it happens.
//!
//! Invariant: counting the events of a log one by one gives what watching them gave.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_engine::{Event, HookOutcome, Record, Timestamp};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub turns: u32,
    /// How long the agent had the word, and how long hooks ran.
    pub agent: Duration,
    pub hooks: Duration,
    /// When the agent got the word that it has now.
    asked: Option<Timestamp>,
    pub hook_runs: u32,
    /// How often each hook has sent the agent back, or asked for a person.
    pub blocked: BTreeMap<String, u32>,
    /// Tasks that were completed meanwhile.
    pub completed: Vec<String>,
}

impl Tally {
    pub fn count(&mut self, record: &Record) {
        let at = record.envelope.timestamp;
        match &record.envelope.event {
            Event::SessionStarted(_) => self.started = Some(at),
            Event::SessionEnded(_) => self.ended = Some(at),
            Event::TurnStarted(_) => {
                self.turns += 1;
                self.asked = Some(at);
            }
            Event::TurnFinished(_)
            | Event::DeliveryFinished(_)
            | Event::IterationFailed(_)
            | Event::DeliveryFailed(_) => {
                self.agent += self.asked.take().map_or(Duration::ZERO, |asked| between(asked, at));
            }
            // Nobody knows for how long it worked if whoever had asked it is dead.
            Event::IterationInterrupted(_) | Event::DeliveryInterrupted(_) => self.asked = None,
            Event::HookFinished(finished) => {
                self.hook_runs += 1;
                self.hooks += Duration::from_millis(finished.duration_ms.unwrap_or(0));
                if matches!(finished.outcome, HookOutcome::Block | HookOutcome::Escalate) {
                    *self.blocked.entry(finished.hook.clone()).or_default() += 1;
                }
            }
            Event::TaskCompleted(_) => self.completed.extend(record.envelope.node.task().map(|task| task.to_string())),
            _ => {}
        }
    }

    /// How long the session has been going on.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        self.started.map_or(Duration::ZERO, |started| between(started, now))
    }
}

/// How long it took; nothing if a clock went backwards.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.millis().saturating_sub(from.millis())).unwrap_or(0))
}
