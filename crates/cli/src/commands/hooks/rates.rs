//! What the decisions of registered stop hooks add up to, and how many of their `complete` did not hold.
//!
//! A `complete` is rejected
//!
//! - in a series: if, before the task is completed, the series goes on to another iteration, another judgement of the task
//!   does not say complete (that of the same iteration included, where the series is strict and a rule failed), or the gate
//!   of a session does not let the work pass;
//! - at the gate of a session: if that gate does not let the work pass;
//! - and in both, if the task is reopened after it was completed.
//!
//! Not here: where the events come from, and how it is shown (`rated`).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_engine::{
    Event, EventType, HookId, Record, RuleAction, SessionName, Signal, State, TaskId, Timestamp, Verdict,
};

use super::metrics::share;

/// The events that tell of it.
pub const TYPES: [EventType; 7] = [
    EventType::HookRegistered,
    EventType::HookEvaluated,
    EventType::ValidationFinished,
    EventType::SeriesAdvanced,
    EventType::GateDecided,
    EventType::TaskCompleted,
    EventType::TaskReopened,
];

/// Which decisions count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    pub hook: Option<HookId>,
    pub since: Option<Timestamp>,
}

/// What has been counted, from events in their order.
#[derive(Debug, Default)]
pub struct Rates {
    wanted: Wanted,
    known: BTreeMap<HookId, (&'static str, TaskId)>,
    tallies: BTreeMap<HookId, Tally>,
    /// Each `complete` that stands so far, by the task, until the task is completed or its gate lets the work pass.
    standing: BTreeMap<TaskId, Vec<Standing>>,
    /// Whose `complete` has held since, by the task.
    held: BTreeMap<TaskId, Vec<HookId>>,
}

/// A `complete` of which it is not known yet whether it holds.
#[derive(Debug)]
struct Standing {
    hook: HookId,
    place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Series,
    /// At the gate of a session, if the log knows of which.
    Gate(Option<SessionName>),
}

/// What the decisions of a hook add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub complete: usize,
    pub goes_on: usize,
    pub escalate: usize,
    /// It failed. That is an `escalate` too.
    pub errors: usize,
    /// So many `complete` did not hold.
    pub rejected: usize,
    pub last: Option<Timestamp>,
}

/// A hook with its tally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rated {
    pub hook: HookId,
    pub kind: &'static str,
    pub task: Option<TaskId>,
    pub tally: Tally,
}

impl Rates {
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, ..Self::default() }
    }

    pub fn take(&mut self, record: &Record) {
        let Some(task) = record.envelope.node.task() else { return };
        match &record.envelope.event {
            Event::HookRegistered(registered) => {
                self.known.insert(HookId(record.seq.0), (registered.hook.name(), task));
            }
            Event::HookEvaluated(said) => {
                if said.action != RuleAction::Complete {
                    self.reject(task, &Place::Series);
                }
                let at = record.envelope.timestamp;
                if let Some(hook) = said.hook.filter(|hook| self.wants(*hook, at)) {
                    let tally = self.tallies.entry(hook).or_default();
                    tally.count(said.action, said.metadata.contains_key("error"), at);
                    if said.action == RuleAction::Complete {
                        let gate = || Place::Gate(record.envelope.session.clone());
                        let place = said.series.map_or_else(gate, |_| Place::Series);
                        self.standing.entry(task).or_default().push(Standing { hook, place });
                    }
                }
            }
            Event::ValidationFinished(finished) if finished.signal != Signal::Complete => {
                self.reject(task, &Place::Series);
            }
            Event::SeriesAdvanced(_) => self.reject(task, &Place::Series),
            Event::GateDecided(decided) => {
                let gate = Place::Gate(record.envelope.session.clone());
                if decided.verdict == Verdict::Pass {
                    let passed = self.taken(task, |place| *place == gate);
                    self.held.entry(task).or_default().extend(passed);
                } else {
                    self.reject(task, &gate);
                    self.reject(task, &Place::Series);
                }
            }
            Event::TaskCompleted(_) => {
                let standing = self.taken(task, |_| true);
                self.held.entry(task).or_default().extend(standing);
            }
            Event::TaskReopened(reopened) if reopened.from == State::Completed => {
                let held = self.held.remove(&task).unwrap_or_default();
                self.count_rejected(held);
            }
            _ => {}
        }
    }

    fn wants(&self, hook: HookId, at: Timestamp) -> bool {
        self.wanted.hook.is_none_or(|wanted| wanted == hook) && self.wanted.since.is_none_or(|since| at >= since)
    }

    /// No `complete` that stands for a task and was said there holds.
    fn reject(&mut self, task: TaskId, there: &Place) {
        let standing = self.taken(task, |place| place == there);
        self.count_rejected(standing);
    }

    /// Takes out whose `complete` stands for a task and was said at such a place.
    fn taken(&mut self, task: TaskId, there: impl Fn(&Place) -> bool) -> Vec<HookId> {
        let Some(standing) = self.standing.get_mut(&task) else { return Vec::new() };
        standing.extract_if(.., |standing| there(&standing.place)).map(|standing| standing.hook).collect()
    }

    fn count_rejected(&mut self, hooks: Vec<HookId>) {
        for hook in hooks {
            self.tallies.entry(hook).or_default().rejected += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.tallies.is_empty()
    }

    /// Each hook that has decided something, in the order of registration.
    pub fn hooks(&self) -> Vec<Rated> {
        let rated = |(hook, tally): (&HookId, &Tally)| {
            let known = self.known.get(hook);
            let (kind, task) = known.map_or(("unknown", None), |(kind, task)| (*kind, Some(*task)));
            Rated { hook: *hook, kind, task, tally: *tally }
        };
        self.tallies.iter().map(rated).collect()
    }

    /// What the hooks of each type add up to.
    pub fn types(&self) -> BTreeMap<&'static str, Tally> {
        let mut types: BTreeMap<&'static str, Tally> = BTreeMap::new();
        for rated in self.hooks() {
            let tally = types.entry(rated.kind).or_default();
            *tally = tally.and(&rated.tally);
        }
        types
    }

    pub fn total(&self) -> Tally {
        self.tallies.values().fold(Tally::default(), |total, tally| total.and(tally))
    }
}

impl Tally {
    fn count(&mut self, action: RuleAction, failed: bool, at: Timestamp) {
        match action {
            RuleAction::Complete => self.complete += 1,
            RuleAction::Continue => self.goes_on += 1,
            RuleAction::Escalate => self.escalate += 1,
        }
        self.errors += usize::from(failed);
        self.last = self.last.max(Some(at));
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            complete: self.complete + other.complete,
            goes_on: self.goes_on + other.goes_on,
            escalate: self.escalate + other.escalate,
            errors: self.errors + other.errors,
            rejected: self.rejected + other.rejected,
            last: self.last.max(other.last),
        }
    }

    pub fn evaluations(&self) -> usize {
        self.complete + self.goes_on + self.escalate
    }

    pub fn to_json(self) -> Value {
        let of_all = |count: usize| (self.evaluations() > 0).then(|| share(count, self.evaluations()));
        json!({
            "evaluations": self.evaluations(),
            "complete": self.complete,
            "continue": self.goes_on,
            "escalate": self.escalate,
            "errors": self.errors,
            "rejected": self.rejected,
            "completeRate": of_all(self.complete),
            "continueRate": of_all(self.goes_on),
            "escalateRate": of_all(self.escalate),
            "errorRate": of_all(self.errors),
            // Of those that said complete.
            "rejectedRate": (self.complete > 0).then(|| share(self.rejected, self.complete)),
            "lastEvaluatedAt": self.last,
        })
    }
}

#[cfg(test)]
mod tests;
