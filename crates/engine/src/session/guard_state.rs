//! The state of a session's guards: its run time, its cost, and the repetitions of its work.
//!
//! Invariants:
//! - Time without an owner does not count: the clock of a session stands still between a crash and its resumption.
//! - The guards compare digests: the row stays small, however much text hooks and agents produce.
//!
//! Not here: the consequences of a guard (`guards`).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::log::event::EventCause;
use crate::log::id::{Digest, Seq};
use crate::log::millis;
use crate::log::time::Timestamp;
use crate::session::output_fingerprint::{OutputFingerprint, collapse_numbers};
use crate::session::usage::AgentUsage;
use crate::session::verdict::GateVerdict;

/// The state of the guards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuardState {
    /// The time of the session's last event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The run time of the session up to `at`.
    #[serde(with = "millis")]
    pub lasted: Duration,
    /// The usage of all turns.
    #[serde(skip_serializing_if = "AgentUsage::is_nothing")]
    pub used: AgentUsage,
    /// The usage of the turns in the present conversation: some agents report only this total.
    #[serde(skip_serializing_if = "AgentUsage::is_nothing")]
    pub used_in_conversation: AgentUsage,
    /// The usage of the turns in the present iteration.
    #[serde(skip_serializing_if = "AgentUsage::is_nothing")]
    pub used_in_iteration: AgentUsage,
    /// The number of rate limits in a row.
    pub postponed: u32,
    /// The event of the last iteration's failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Seq>,
    /// The beginning of the error in that event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_cause: Option<String>,
    /// The time of the first of the failures in a row, and the time between it and the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Duration::is_zero", with = "millis")]
    pub failing_for: Duration,
    /// The time of the next attempt after that failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The combined verdict of the stop hooks that do not block.
    pub besides: GateVerdict,
    /// The digest of the hooks that block the present turn, and of their texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Digest>,
    /// The digest of the stop hooks' findings in this turn, without numbers: times and addresses differ in otherwise
    /// equal output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Digest>,
    /// The digest of the agent's exact output: an agent that counts its progress is not repeating itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Digest>,
    /// The digest of the changes in the work directory, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<Digest>,
    /// The digest of the last block, and how often it came in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_block: Option<Digest>,
    pub same_blocks: u32,
    /// The digest of the work's state at the last decision, and how often it came in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_stand: Option<Digest>,
    pub same_stands: u32,
}

impl GuardState {
    /// Adds the time since the last event to the run time.
    pub(crate) fn advance_clock(&mut self, at: Timestamp) {
        let passed = self.at.map_or(Duration::ZERO, |before| at.elapsed_since(before));
        self.lasted = self.lasted.saturating_add(passed);
        self.at = Some(at);
    }

    /// Restarts the clock after a time without an owner.
    pub(crate) fn restart_clock(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// Returns whether a cause is the last failure.
    pub(crate) fn is_last_failure(&self, cause: Option<EventCause>) -> bool {
        matches!(cause, Some(EventCause::At(seq)) if self.failure == Some(seq))
    }

    /// Adds the usage of a finished turn.
    pub(crate) fn add_turn_usage(&mut self, used: AgentUsage) {
        for sum in [&mut self.used, &mut self.used_in_conversation, &mut self.used_in_iteration] {
            *sum = sum.saturating_add(used);
        }
    }

    /// Starts the judgement of a finished turn.
    pub(crate) fn begin_judging(&mut self, output: &str, tree: Option<Digest>) {
        (self.besides, self.block, self.findings) = (GateVerdict::Pass, None, None);
        (self.words, self.tree) = (Some(digest_output(output)), tree);
        self.postponed = 0;
    }

    /// Returns whether the agent's output repeats the last one exactly.
    pub fn repeats_last_output(&self, output: &str) -> bool {
        self.words == Some(digest_output(output))
    }

    /// Adds the verdict of a stop hook.
    pub(crate) fn record_hook_verdict(&mut self, hook: &str, verdict: GateVerdict) {
        match verdict {
            GateVerdict::Pass => return,
            GateVerdict::Block => self.block = Some(chain_text_digest(self.block, hook)),
            GateVerdict::Fail | GateVerdict::Continue | GateVerdict::Escalate => {
                self.besides = self.besides.max(verdict)
            }
        }
        self.findings = Some(chain_text_digest(self.findings, hook));
    }

    /// Adds the feedback text of a stop hook. `own` is the fingerprint of the hook's own output, if the feedback is
    /// worded otherwise.
    pub(crate) fn record_hook_text(&mut self, text: &str, own: Option<OutputFingerprint>, blocks: bool) {
        let chain = |before: Option<Digest>, own: Digest| Some(before.unwrap_or(Digest::ZERO).chain_with(own));
        if blocks {
            self.block =
                own.map_or_else(|| Some(chain_text_digest(self.block, text)), |own| chain(self.block, own.exact));
        }
        if self.findings.is_some() {
            self.findings = match own {
                Some(own) => chain(self.findings, own.loose),
                None => Some(chain_text_digest(self.findings, &collapse_numbers(text))),
            };
        }
    }

    /// Returns how often in a row the same hooks block with the same texts, including this turn.
    pub fn same_block_count(&self) -> u32 {
        match self.block {
            Some(_) if self.block == self.last_block => self.same_blocks + 1,
            Some(_) => 1,
            None => 0,
        }
    }

    /// Returns how often in a row the work is in the same state, including this turn: the same change with the same
    /// failures. Without findings of hooks, the agent's own output counts.
    pub fn same_state_count(&self) -> u32 {
        match self.work_state_digest() {
            Some(stand) if Some(stand) == self.last_stand => self.same_stands + 1,
            Some(_) => 1,
            None => 0,
        }
    }

    fn work_state_digest(&self) -> Option<Digest> {
        let failures = self.findings.or(self.words)?;
        Some(Digest::of_bytes(&[self.tree?.0, failures.0].concat()))
    }

    /// Ends the judgement of a turn.
    pub(crate) fn end_judging(&mut self) {
        (self.same_blocks, self.last_block) = (self.same_block_count(), self.block);
        (self.same_stands, self.last_stand) = (self.same_state_count(), self.work_state_digest());
    }

    /// Resets the counts of repetitions, after a person has intervened.
    pub(crate) fn reset_repetitions(&mut self) {
        (self.same_blocks, self.last_block) = (0, None);
        (self.same_stands, self.last_stand) = (0, None);
    }
}

fn digest_output(output: &str) -> Digest {
    Digest::of_bytes(output.trim().as_bytes())
}

fn chain_text_digest(before: Option<Digest>, text: &str) -> Digest {
    let before = before.map_or([0; 32], |digest| digest.0);
    Digest::of_bytes(&[&before[..], text.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_pauses_while_session_is_not_run() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let mut watch = GuardState::default();
        watch.advance_clock(at(100));
        watch.advance_clock(at(160));
        watch.restart_clock(at(10_000));
        watch.advance_clock(at(10_005));
        // A clock that was set back takes no time away.
        watch.advance_clock(at(5));
        watch.advance_clock(at(6));
        assert_eq!(watch.lasted, Duration::from_secs(66));
    }

    /// Plays one turn with a blocking hook, its text, and a state of the work.
    fn turn(watch: &mut GuardState, blocks: Option<(&str, &str)>, output: &str, tree: Option<&str>) -> (u32, u32) {
        watch.begin_judging(output, tree.map(|tree| Digest::of_bytes(tree.as_bytes())));
        if let Some((hook, text)) = blocks {
            watch.record_hook_verdict(hook, GateVerdict::Block);
            watch.record_hook_text(text, None, true);
        }
        let counts = (watch.same_block_count(), watch.same_state_count());
        watch.end_judging();
        counts
    }

    /// A template may give one text for different outputs, and different texts for one output.
    #[test]
    fn repetition_compares_hook_output_not_templated_feedback() {
        let mut watch = GuardState::default();
        let mut turn = |own: &str, feedback: &str| {
            watch.begin_judging("", Some(Digest::of_bytes(b"tree")));
            watch.record_hook_verdict("check", GateVerdict::Block);
            watch.record_hook_text(feedback, Some(OutputFingerprint::from_text(own)), true);
            let counts = (watch.same_block_count(), watch.same_state_count());
            watch.end_judging();
            counts
        };
        assert_eq!(turn("pump: 3 failed", "Fix the tests."), (1, 1));
        assert_eq!(turn("pump: 2 failed", "Fix the tests."), (1, 2), "numbers are no progress without a change");
        assert_eq!(turn("valve: 2 failed", "Fix the tests."), (1, 1));
        assert_eq!(turn("valve: 2 failed", "Attempt 4."), (2, 2));
        assert_eq!(turn("valve: 2 failed", "Attempt 5."), (3, 3));
    }

    #[test]
    fn repeated_blocks_and_work_states_are_counted() {
        let mut watch = GuardState::default();
        let red = Some(("check", "1 failed in 0.52s"));
        assert_eq!(turn(&mut watch, red, "tried", Some("a")), (1, 1));
        assert_eq!(turn(&mut watch, red, "tried again", Some("a")), (2, 2));
        // Different times are different texts, but no progress.
        assert_eq!(turn(&mut watch, Some(("check", "1 failed in 0.71s")), "", Some("a")), (1, 3));
        assert_eq!(turn(&mut watch, Some(("lint", "1 failed in 0.71s")), "", Some("a")), (1, 1), "another hook");
        assert_eq!(turn(&mut watch, Some(("lint", "1 failed in 0.71s")), "", Some("b")), (2, 1), "another change");
        assert_eq!(turn(&mut watch, None, "thinking", Some("b")), (0, 1));
        assert_eq!(turn(&mut watch, None, "thinking", Some("b")), (0, 2), "the same words, and no change");
        assert_eq!(turn(&mut watch, None, "thinking", Some("c")), (0, 1), "the same words about another change");
        assert_eq!(turn(&mut watch, None, "read 1 of 9", Some("c")), (0, 1));
        assert_eq!(turn(&mut watch, None, "read 2 of 9", Some("c")), (0, 1), "it gets on");
        assert_eq!(turn(&mut watch, red, "", None), (1, 0), "the change is unknown");
        watch.reset_repetitions();
        assert_eq!(turn(&mut watch, red, "", None), (1, 0));
    }
}
