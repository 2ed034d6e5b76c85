//! The number of times that each stop hook has sent the agent back, computed from the log alone.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{Event, EventRecord, GateAnswer, GateDecision, HookOutcome, MessageAuthor, Seq};

#[derive(Debug, Clone, Default)]
pub(super) struct SendBackCounts {
    /// The end of the last turn, and the limits of its hooks that override the session's.
    turn: Option<Seq>,
    limits: BTreeMap<String, u32>,
    blockers: BTreeSet<String>,
    counts: BTreeMap<String, u32>,
}

impl SendBackCounts {
    /// Returns whether a blocking hook may still send the agent back.
    pub fn has_left(&self, usual: u32) -> bool {
        let limit = |hook: &String| self.limits.get(hook).copied().unwrap_or(usual);
        self.blockers.iter().any(|hook| self.counts.get(hook).copied().unwrap_or(0) < limit(hook))
    }

    pub fn observe(&mut self, record: &EventRecord, takes_up: bool, is_asking: bool) {
        match &record.envelope.event {
            Event::TurnFinished(_) => {
                let hooks = record.envelope.metadata.owes.iter().flat_map(|owed| &owed.hooks);
                self.limits = hooks.filter_map(|hook| Some((hook.hook.clone(), hook.send_backs?))).collect();
                (self.turn, self.blockers) = (Some(record.seq), BTreeSet::new());
            }
            Event::HookFinished(finished)
                if Some(finished.effect.seq) == self.turn && finished.outcome == HookOutcome::Block =>
            {
                self.blockers.insert(finished.hook.clone());
            }
            Event::GateDecided(decided) if decided.decision == GateDecision::SendBack => {
                for hook in &self.blockers {
                    *self.counts.entry(hook.clone()).or_default() += 1;
                }
            }
            Event::IterationStarted(_) if !takes_up => self.counts.clear(),
            Event::FeedbackQueued(queued) if queued.voice == MessageAuthor::Person && !is_asking => self.counts.clear(),
            Event::GateAnswered(answered) if answered.answer == GateAnswer::Continue => self.counts.clear(),
            _ => {}
        }
    }
}
