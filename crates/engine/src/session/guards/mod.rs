//! What keeps a session from going on for ever, or for nothing.
//!
//! | guard | ends as |
//! | --- | --- |
//! | iterations, wall time, cost | `limit` |
//! | failures in a row, thrashing, stop hooks at their limit or with the same words three times, rate limits in a row | `escalated` |
//! | interruptions in a row | `error` |
//!
//! Each names itself in the reason, and none is a success, but for stop hooks at their limit under `on_retry_limit: complete`,
//! where the reason says so.

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

/// `once`, `2 times`.
fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

impl Session {
    /// Decides where every stop hook that blocks has sent the agent back as often as it may.
    pub(crate) fn at_retry_limit(&self, claim: Option<Promise>) -> Decision {
        let why = match self.repeats_its_block() && self.send_backs_left() > 0 {
            true => format!("{} {} times in a row with the same words", self.blockers(), Limits::SAME_BLOCKS),
            false => self.still_blocked(),
        };
        match self.terms.on_retry_limit {
            OnRetryLimit::Escalate => close(Ending::Escalated, why),
            // One question would hold up every other task: this one is left to a person, and the rest goes on.
            OnRetryLimit::Ask if self.work == Work::Graph => close(Ending::Escalated, why),
            OnRetryLimit::Ask => Decision::Ask,
            OnRetryLimit::Complete => {
                self.judge_without_blockers(claim, format!("{why}; `on_retry_limit: complete` lets it pass"))
            }
        }
    }

    /// Judges the turn as if the hooks that block had passed. Work that is complete then says why.
    fn judge_without_blockers(&self, claim: Option<Promise>, why: String) -> Decision {
        match (Self { verdict: self.watch.besides, ..self.clone() }).judge_heard(claim, false) {
            Decision::Next(Next::Close(Closing { ending: Ending::Completed, .. })) => {
                close(Ending::Completed, self.besides(why))
            }
            decision => decision,
        }
    }

    /// Whether stop hooks that have come to this want the agent to work on in a new iteration.
    pub(crate) fn wants_another_iteration(&self, verdict: Verdict) -> bool {
        verdict == Verdict::Continue || (verdict == Verdict::Fail && self.terms.strict)
    }

    /// What a person's answer leads to.
    pub(crate) fn answered(&self, claim: Option<Promise>, answer: GateAnswer) -> Decision {
        match answer {
            GateAnswer::Continue => Decision::SendBack,
            GateAnswer::Abort => close(Ending::Escalated, format!("{}, and a person ended it", self.still_blocked())),
            // Whoever lets the work pass speaks of the work as it was claimed to be, whatever else they say with it.
            GateAnswer::Ignore => {
                self.judge_without_blockers(claim, format!("{}, and a person let it pass", self.still_blocked()))
            }
        }
    }

    /// A decision, unless the agent would get the word although there is no sense in it any more.
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

    /// Whoever has yet to hear a person may do something else after that.
    fn thrashes(&self) -> bool {
        !self.is_unheard() && self.terms.thrashing > 0 && self.watch.stood_alike() >= self.terms.thrashing
    }

    /// Which hooks block, in words.
    fn blockers(&self) -> String {
        let names: Vec<String> = self.blocking.iter().map(|blocker| format!("`{}`", blocker.hook)).collect();
        match names.as_slice() {
            [] => "stop hooks block".to_owned(),
            [one] => format!("{one} blocks"),
            several => format!("{} block", several.join(" and ")),
        }
    }

    /// Which hooks do not let the agent go, in words, each with how often it has sent the agent back.
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

    /// Whether the agent hears the same from the same hooks again and again. Whoever lets work pass at the limit wants all
    /// of its tries.
    fn repeats_its_block(&self) -> bool {
        self.terms.on_retry_limit != OnRetryLimit::Complete && self.watch.blocked_alike() >= Limits::SAME_BLOCKS
    }

    /// Whether a hook that blocks may send the agent back.
    pub(crate) fn may_send_back(&self) -> bool {
        self.send_backs_left() > 0 && !self.repeats_its_block()
    }

    /// How often the hooks that block now may still send the agent back: each counts for itself.
    fn send_backs_left(&self) -> u32 {
        let left = |blocker: &Blocker| self.most_of(blocker).saturating_sub(self.sent_back_by(blocker));
        self.blocking.iter().map(left).max().unwrap_or(0)
    }

    /// How often a hook may send the agent back within an iteration.
    fn most_of(&self, blocker: &Blocker) -> u32 {
        blocker.most.unwrap_or(self.terms.max_hook_retries)
    }

    /// How often the agent was sent back in this iteration while a hook blocked.
    fn sent_back_by(&self, blocker: &Blocker) -> u32 {
        self.sent_back.get(&blocker.hook).copied().unwrap_or(0)
    }

    /// At how many send-backs it ends, where hooks block.
    pub(crate) fn most_send_backs(&self) -> Option<u32> {
        (self.verdict == Verdict::Block).then(|| self.retries + self.send_backs_left())
    }

    /// Why hooks block, in a few words.
    pub(crate) fn block_reason(&self) -> Option<String> {
        let reasons: Vec<&str> = self.blocking.iter().filter_map(|blocker| blocker.reason.as_deref()).collect();
        (self.verdict == Verdict::Block && !reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// An iteration has failed.
    pub(crate) fn count_failure(&mut self, at: Timestamp) {
        let first = self.watch.failing_since.filter(|_| self.failures > 0).unwrap_or(at);
        self.failures = self.failures.saturating_add(1);
        self.watch.failing_since = Some(first);
        self.watch.failing_for = at.since(first);
    }

    pub(crate) fn failed_too_often(&self) -> bool {
        self.terms.breaks_after(self.failures, self.watch.failing_for)
    }

    /// Whether the agent may be told about a failed iteration at once: another one follows.
    pub(crate) fn may_recover(&self) -> bool {
        self.exhausted().is_none()
    }

    /// Whether a person wants a stop hook that ends so not to be counted this time. That it asks for a person, or for more
    /// work, still counts: nobody was asked about that.
    pub(crate) fn overlooks(&self, hook: &HookEffect, outcome: HookOutcome) -> bool {
        let keeps = matches!(Verdict::of(outcome, hook.on_failure), Verdict::Block | Verdict::Fail);
        keeps && hook.class == HookClass::Gate && self.ignores.contains(&hook.hook)
    }

    /// Which hooks a person has let the work pass in spite of, in words.
    pub(crate) fn let_pass(&self) -> Option<String> {
        let names: Vec<String> = self.overlooked.iter().map(|hook| format!("`{hook}`")).collect();
        (!names.is_empty()).then(|| format!("{} did not pass, and a person let it pass", names.join(" and ")))
    }

    /// Why work passes, and which hooks it passes besides.
    fn besides(&self, why: String) -> String {
        [Some(why), self.let_pass()].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Whether its next iteration takes up one that was interrupted or rate limited. One that failed is over.
    pub(crate) fn takes_up(&self) -> bool {
        match self.phase {
            Phase::Settled(Next::TakeUp) => true,
            Phase::Postponed(_) => self.is_rate_limited(),
            _ => false,
        }
    }

    /// Whether the agent was asked too often, the last time it was asked to work.
    pub fn is_rate_limited(&self) -> bool {
        self.watch.postponed > 0
    }

    fn was_postponed_too_often(&self) -> bool {
        self.watch.postponed >= Limits::POSTPONEMENTS
    }

    /// How long it may still be run at that moment, where that is limited.
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let heard = self.watch.at.unwrap_or(now);
        let since = u64::try_from(now.millis().saturating_sub(heard.millis())).unwrap_or(0);
        let lasted = self.watch.lasted.saturating_add(Duration::from_millis(since));
        self.terms.wall_time.map(|most| most.saturating_sub(lasted))
    }

    /// Whether a moment comes when the time of the session is up.
    pub(crate) fn is_beyond_its_time(&self, moment: Timestamp) -> bool {
        self.time_left(moment).is_some_and(|left| left.is_zero())
    }

    /// How the end of a session is explained whose time is up.
    pub fn out_of_time(&self) -> String {
        format!("the wall time of {} is used up", in_words(self.terms.wall_time.unwrap_or_default()))
    }

    /// Which budget is used up, in words.
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

    /// Another iteration, unless a guard says no. The iteration limit leaves one turn for pending feedback.
    pub(crate) fn go_on(&self) -> Step {
        // Nobody is at a limit with a task that is somebody else's. Taking one looks at the guards too.
        if self.has_lost_its_task() {
            return self.iterate();
        }
        match self.exhausted() {
            None => self.iterate(),
            Some(_) if self.may_deliver() => self.deliver(),
            Some(closing) => self.close(&closing),
        }
    }

    /// Whether pending feedback gets a delivery turn: once in an iteration that has come to its end, while the session has the
    /// work and no guard but the iteration limit keeps the agent from going on. Work that passes although hooks block, at a
    /// retry limit or by a person's word, gets one only for what a person says.
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

    /// Why there may be no further iteration.
    pub(crate) fn exhausted(&self) -> Option<Closing> {
        self.spent().or_else(|| self.at_iteration_limit())
    }

    /// Why the agent may not go on, the number of iterations aside.
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
        // Whoever says something in the last iteration is heard in one more, and so is the agent.
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

    /// Ends the session, after it has left its task. The agent gets no further turn: pending feedback stays with the task.
    pub(crate) fn close(&self, closing: &Closing) -> Step {
        match self.leaving(closing) {
            Some(leave) => Step::LeaveTask(leave),
            None => Step::End(closing.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
