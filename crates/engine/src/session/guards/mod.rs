//! The guards that end a session which would run for ever or without progress.
//!
//! | guard | ends as |
//! | --- | --- |
//! | iterations, wall time, cost | `limit` |
//! | failures in a row, thrashing, stop hooks at their limit or with the same words three times, rate limits in a row | `escalated` |
//! | interruptions in a row | `error` |
//!
//! Each guard names itself in the reason. None of these ends is a success, except for stop hooks at their limit under
//! `on_retry_limit: complete`, where the reason says so.

use core::time::Duration;

use crate::command::limits::Limits;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookOutcome};
use crate::log::time::{Timestamp, in_words};
use crate::session::promise::Promise;
use crate::session::usage::Grouped;
use crate::session::{
    Blocker, Closing, Decision, Ending, GateAnswer, Hold, Next, OnRetryLimit, Phase, Purpose, Session, Step, Verdict,
    Work,
};

fn close(ending: Ending, reason: impl Into<String>) -> Decision {
    Decision::Next(Next::Close(Closing { ending, reason: Some(reason.into()) }))
}

/// Formats a count: `once`, `2 times`.
fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

impl Session {
    /// Decides what happens when all blocking stop hooks have reached their limit of send-backs.
    pub(crate) fn at_retry_limit(&self, claim: Option<Promise>) -> Decision {
        let why = match self.repeats_its_block() && self.send_backs_left() > 0 {
            true => format!("{} {} times in a row with the same words", self.blockers(), Limits::SAME_BLOCKS),
            false => self.still_blocked(),
        };
        match self.terms.on_retry_limit {
            OnRetryLimit::Escalate => close(Ending::Escalated, why),
            // A question would hold up all other tasks: this task is left to a person, and the session goes on.
            OnRetryLimit::Ask if self.work == Work::Graph => close(Ending::Escalated, why),
            OnRetryLimit::Ask => Decision::Ask,
            OnRetryLimit::Complete => {
                self.judge_without_blockers(claim, format!("{why}; `on_retry_limit: complete` lets it pass"))
            }
        }
    }

    /// Judges the turn as if the blocking hooks had passed. If the work is complete then, its end names `why`.
    fn judge_without_blockers(&self, claim: Option<Promise>, why: String) -> Decision {
        match (Self { verdict: self.watch.besides, ..self.clone() }).judge_heard(claim, false) {
            Decision::Next(Next::Close(Closing { ending: Ending::Completed, .. })) => {
                close(Ending::Completed, self.besides(why))
            }
            decision => decision,
        }
    }

    /// Returns whether this verdict of the stop hooks asks for a new iteration.
    pub(crate) fn wants_another_iteration(&self, verdict: Verdict) -> bool {
        verdict == Verdict::Continue || (verdict == Verdict::Fail && self.terms.strict)
    }

    /// Decides what follows a person's answer.
    pub(crate) fn answered(&self, claim: Option<Promise>, answer: GateAnswer) -> Decision {
        match answer {
            GateAnswer::Continue => Decision::SendBack,
            GateAnswer::Abort => close(Ending::Escalated, format!("{}, and a person ended it", self.still_blocked())),
            // The answer approves the work as it was claimed, even if it comes with a message.
            GateAnswer::Ignore => {
                self.judge_without_blockers(claim, format!("{}, and a person let it pass", self.still_blocked()))
            }
        }
    }

    /// Replaces a decision that gives the agent another turn, if a guard has tripped.
    pub(crate) fn guarded(&self, decision: Decision) -> Decision {
        match decision {
            Decision::SendBack | Decision::Next(Next::Continue) if self.thrashes() => {
                let times = self.terms.thrashing;
                close(
                    Ending::Escalated,
                    format!("thrashing: the same change with the same result {times} times in a row"),
                )
            }
            Decision::SendBack => match self.used_up() {
                Some(why) => close(Ending::Limit, why),
                None => Decision::SendBack,
            },
            decision => decision,
        }
    }

    /// Returns whether the work stays in the same state for too many turns. An undelivered message of a person may still
    /// change that.
    fn thrashes(&self) -> bool {
        !self.is_unheard() && self.terms.thrashing > 0 && self.watch.stood_alike() >= self.terms.thrashing
    }

    /// Names the blocking hooks.
    fn blockers(&self) -> String {
        let names: Vec<String> = self.blocking.iter().map(|blocker| format!("`{}`", blocker.hook)).collect();
        match names.as_slice() {
            [] => "stop hooks block".to_owned(),
            [one] => format!("{one} blocks"),
            several => format!("{} block", several.join(" and ")),
        }
    }

    /// Names the blocking hooks, each with its number of send-backs.
    pub fn still_blocked(&self) -> String {
        let sent = |blocker: &Blocker| self.sent_back_by(blocker).min(self.most_of(blocker));
        let told = |who: &str, sent: u32| match sent {
            0 => format!("{who}, and may not send the agent back"),
            sent => {
                let (names, verb) = who.rsplit_once(' ').unwrap_or(("", who));
                format!("{names} still {verb} after sending the agent back {}", times(sent))
            }
        };
        match self.blocking.as_slice() {
            [first, rest @ ..] if rest.iter().any(|other| sent(other) != sent(first)) => {
                let each = |blocker: &Blocker| told(&format!("`{}` blocks", blocker.hook), sent(blocker));
                self.blocking.iter().map(each).collect::<Vec<_>>().join("; ")
            }
            alike => told(&self.blockers(), alike.first().map_or(0, sent)),
        }
    }

    /// Returns whether the same hooks block with the same texts too often in a row. Under `on_retry_limit: complete`
    /// the session uses all of its send-backs instead.
    fn repeats_its_block(&self) -> bool {
        self.terms.on_retry_limit != OnRetryLimit::Complete && self.watch.blocked_alike() >= Limits::SAME_BLOCKS
    }

    /// Returns whether a blocking hook may send the agent back.
    pub(crate) fn may_send_back(&self) -> bool {
        self.send_backs_left() > 0 && !self.repeats_its_block()
    }

    /// Returns how often the blocking hooks may still send the agent back. Each has its own count.
    fn send_backs_left(&self) -> u32 {
        let left = |blocker: &Blocker| self.most_of(blocker).saturating_sub(self.sent_back_by(blocker));
        self.blocking.iter().map(left).max().unwrap_or(0)
    }

    /// Returns the limit of send-backs of a hook within an iteration.
    fn most_of(&self, blocker: &Blocker) -> u32 {
        blocker.most.unwrap_or(self.terms.max_hook_retries)
    }

    /// Returns the number of send-backs in this iteration while a hook blocked.
    fn sent_back_by(&self, blocker: &Blocker) -> u32 {
        self.sent_back.get(&blocker.hook).copied().unwrap_or(0)
    }

    /// Returns the total number of send-backs at the limit, if hooks block.
    pub(crate) fn most_send_backs(&self) -> Option<u32> {
        (self.verdict == Verdict::Block).then(|| self.retries + self.send_backs_left())
    }

    /// Returns the short reasons of the blocking hooks.
    pub(crate) fn block_reason(&self) -> Option<String> {
        let reasons: Vec<&str> = self.blocking.iter().filter_map(|blocker| blocker.reason.as_deref()).collect();
        (self.verdict == Verdict::Block && !reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Counts a failed iteration.
    pub(crate) fn count_failure(&mut self, at: Timestamp) {
        let first = self.watch.failing_since.filter(|_| self.failures > 0).unwrap_or(at);
        self.failures = self.failures.saturating_add(1);
        self.watch.failing_since = Some(first);
        self.watch.failing_for = at.since(first);
    }

    pub(crate) fn failed_too_often(&self) -> bool {
        self.terms.breaks_after(self.failures, self.watch.failing_for)
    }

    /// Returns whether the agent may be told about a failed iteration at once, because another one follows.
    pub(crate) fn may_recover(&self) -> bool {
        self.exhausted().is_none()
    }

    /// Returns whether a person has asked to ignore the result of this stop hook. A hook that asks for a person or for
    /// more work still counts: the person was not asked about that.
    pub(crate) fn overlooks(&self, hook: &HookEffect, outcome: HookOutcome) -> bool {
        let keeps = matches!(Verdict::of(outcome, hook.on_failure), Verdict::Block | Verdict::Fail);
        keeps && hook.class == HookClass::Gate && self.ignores.contains(&hook.hook)
    }

    /// Names the hooks that a person has waived.
    pub(crate) fn let_pass(&self) -> Option<String> {
        let names: Vec<String> = self.overlooked.iter().map(|hook| format!("`{hook}`")).collect();
        (!names.is_empty()).then(|| format!("{} did not pass, and a person let it pass", names.join(" and ")))
    }

    /// Adds the waived hooks to a reason.
    fn besides(&self, why: String) -> String {
        [Some(why), self.let_pass()].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Returns whether the next iteration continues one that was interrupted or rate limited. A failed iteration is
    /// over.
    pub(crate) fn takes_up(&self) -> bool {
        match self.phase {
            Phase::Settled(Next::TakeUp) => true,
            Phase::Postponed(_) => self.is_rate_limited(),
            _ => false,
        }
    }

    /// Returns whether the agent's last turn was rate limited.
    pub fn is_rate_limited(&self) -> bool {
        self.watch.postponed > 0
    }

    fn was_postponed_too_often(&self) -> bool {
        self.watch.postponed >= Limits::POSTPONEMENTS
    }

    /// Returns the remaining wall time, if it is limited.
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let heard = self.watch.at.unwrap_or(now);
        let since = u64::try_from(now.millis().saturating_sub(heard.millis())).unwrap_or(0);
        let lasted = self.watch.lasted.saturating_add(Duration::from_millis(since));
        self.terms.wall_time.map(|most| most.saturating_sub(lasted))
    }

    /// Returns whether the wall time is used up at that time.
    pub(crate) fn is_beyond_its_time(&self, moment: Timestamp) -> bool {
        self.time_left(moment).is_some_and(|left| left.is_zero())
    }

    /// Explains the end of a session whose wall time is used up.
    pub fn out_of_time(&self) -> String {
        format!("the wall time of {} is used up", in_words(self.terms.wall_time.unwrap_or_default()))
    }

    /// Names the budget that is used up.
    fn used_up(&self) -> Option<String> {
        if self.terms.wall_time.is_some_and(|most| self.watch.lasted >= most) {
            return Some(self.out_of_time());
        }
        let used = self.watch.used;
        if let Some(most) = self.terms.tokens.filter(|most| used.tokens() >= *most) {
            let (used, most) = (Grouped(used.tokens()), Grouped(most));
            return Some(format!("{used} tokens were used, and the limit is {most}"));
        }
        let spent = used.cost.unwrap_or_default();
        let most = self.terms.cost.filter(|most| spent >= *most)?;
        Some(format!("{spent} were spent, and the limit of cost is {most}"))
    }

    /// Starts another iteration, unless a guard has tripped. At the iteration limit, one turn remains for pending
    /// feedback.
    pub(crate) fn go_on(&self) -> Step {
        // The limits apply to held tasks only. Taking the next task checks the guards too.
        if self.has_lost_its_task() {
            return self.iterate();
        }
        match self.exhausted() {
            None => self.iterate(),
            Some(_) if self.may_deliver() => self.deliver(),
            Some(closing) => self.close(&closing),
        }
    }

    /// Returns whether pending feedback gets a delivery turn: once per ended iteration, while the session holds the
    /// work and no guard but the iteration limit has tripped. Work that passes although hooks block, at a retry limit
    /// or by a person's answer, gets one only for a person's message.
    pub(crate) fn may_deliver(&self) -> bool {
        let has_work = (self.epoch().is_some() || self.hold == Hold::Never) && !self.lacks_workspace();
        let has_ended = matches!(self.phase, Phase::Settled(_)) && self.last_turn.is_some();
        let is_waived = self.verdict == Verdict::Block && !self.is_unheard();
        let is_due = !self.pending.is_empty() && !self.delivered && !is_waived;
        is_due && has_ended && has_work && self.spent().is_none()
    }

    pub(crate) fn deliver(&self) -> Step {
        Step::StartTurn(self.run(self.iteration), Purpose::Delivery)
    }

    /// Returns why no further iteration may start.
    pub(crate) fn exhausted(&self) -> Option<Closing> {
        self.spent().or_else(|| self.at_iteration_limit())
    }

    /// Returns the tripped guard, except for the iteration limit.
    fn spent(&self) -> Option<Closing> {
        let end = |ending, reason: String| Some(Closing { ending, reason: Some(reason) });
        if self.failed_too_often() {
            let (failures, last) = match self.failures {
                1 => ("an iteration failed, and none may".to_owned(), ": "),
                many => (format!("{many} iterations failed in a row"), ", the last with: "),
            };
            let cause = self.watch.failure_cause.iter().map(|cause| format!("{last}{cause}")).collect::<String>();
            return end(Ending::Escalated, format!("circuit breaker: {failures}{cause}"));
        }
        if self.interrupted_in_a_row >= Limits::INTERRUPTIONS {
            return end(Ending::Error, format!("{} iterations were interrupted in a row", self.interrupted_in_a_row));
        }
        if self.was_postponed_too_often() {
            return end(
                Ending::Escalated,
                format!("the agent was rate limited {} times in a row", self.watch.postponed),
            );
        }
        if let Some(why) = self.used_up().or_else(|| self.waits_beyond_its_time()) {
            return end(Ending::Limit, why);
        }
        None
    }

    fn at_iteration_limit(&self) -> Option<Closing> {
        let max_iterations = self.terms.max_iterations;
        // A person's message in the last iteration gets one more iteration.
        if self.iteration - self.interrupted < max_iterations || self.is_unheard() {
            return None;
        }
        let reason = match (max_iterations, self.interrupted) {
            (1, 0) => "one iteration is the limit".to_owned(),
            (most, 0) => format!("{most} iterations are the limit"),
            (most, more) => format!("{most} is the limit, {more} interrupted not counted"),
        };
        Some(Closing { ending: Ending::Limit, reason: Some(reason) })
    }

    fn waits_beyond_its_time(&self) -> Option<String> {
        self.waits_until().filter(|until| self.is_beyond_its_time(*until)).map(|_| {
            let awaited =
                if self.is_rate_limited() { "the agent's rate limit ends" } else { "the agent is tried again" };
            format!("{}, before {awaited}", self.out_of_time())
        })
    }

    /// Ends the session, after it has left its task. The agent gets no further turn: pending feedback stays with the
    /// task.
    pub(crate) fn close(&self, closing: &Closing) -> Step {
        match self.leaving(closing) {
            Some(leave) => Step::LeaveTask(leave),
            None => Step::End(closing.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
