//! The guards that end a session which would run for ever or without progress.
//!
//! | guard | ends as |
//! | --- | --- |
//! | iterations, wall time, cost | `limit` |
//! | failures in a row, thrashing, stop hooks at their limit or with the same reason three times, rate limits in a row | `escalated` |
//! | interruptions in a row | `error` |
//!
//! Each guard names itself in the reason. None of these ends is a success, except for stop hooks at their limit under
//! `on_retry_limit: complete`, where the reason says so.

use core::time::Duration;

use crate::command::limits::EngineLimits;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookOutcome};
use crate::log::time::{Timestamp, duration_in_words};
use crate::session::promise::Promise;
use crate::session::usage::GroupedDigits;
use crate::session::{
    AfterIteration, BlockingHook, GateAnswer, GateDecision, GateVerdict, RetryLimitAction, Session, SessionEnd,
    SessionEndKind, SessionPhase, SessionStep, TaskHold, TurnPurpose, WorkSource,
};

fn close_session(ending: SessionEndKind, reason: impl Into<String>) -> GateDecision {
    GateDecision::Next(AfterIteration::Close(SessionEnd { ending, reason: Some(reason.into()) }))
}

/// Formats a count: `once`, `2 times`.
fn count_in_words(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

impl Session {
    /// Decides what happens when all blocking stop hooks have reached their limit of send-backs.
    pub(crate) fn decide_at_retry_limit(&self, claim: Option<Promise>) -> GateDecision {
        let why = match self.repeats_same_block() && self.remaining_send_backs() > 0 {
            true => format!(
                "{} {} times in a row with the same reason",
                self.describe_blocking_hooks(),
                EngineLimits::SAME_BLOCKS_IN_A_ROW
            ),
            false => self.describe_block_state(),
        };
        match self.terms.on_retry_limit {
            RetryLimitAction::Escalate => close_session(SessionEndKind::Escalated, why),
            // A question would hold up all other tasks: this task is left to a person, and the session goes on.
            RetryLimitAction::Ask if self.work == WorkSource::Graph => close_session(SessionEndKind::Escalated, why),
            RetryLimitAction::Ask => GateDecision::Ask,
            RetryLimitAction::Complete => {
                self.judge_without_blockers(claim, format!("{why}; `on_retry_limit: complete` lets it pass"))
            }
        }
    }

    /// Judges the turn as if the blocking hooks had passed. If the work is complete then, its end names `why`.
    fn judge_without_blockers(&self, claim: Option<Promise>, why: String) -> GateDecision {
        match (Self { verdict: self.watch.besides, ..self.clone() }).judge_turn_with(claim, false) {
            GateDecision::Next(AfterIteration::Close(SessionEnd { ending: SessionEndKind::Completed, .. })) => {
                close_session(SessionEndKind::Completed, self.with_waived_hooks(why))
            }
            decision => decision,
        }
    }

    /// Returns whether this verdict of the stop hooks asks for a new iteration.
    pub(crate) fn wants_another_iteration(&self, verdict: GateVerdict) -> bool {
        verdict == GateVerdict::Continue || (verdict == GateVerdict::Fail && self.terms.strict)
    }

    /// Decides what follows a person's answer.
    pub(crate) fn apply_gate_answer(&self, claim: Option<Promise>, answer: GateAnswer) -> GateDecision {
        match answer {
            GateAnswer::Continue => GateDecision::SendBack,
            GateAnswer::Abort => close_session(
                SessionEndKind::Escalated,
                format!("{}, and a person ended it", self.describe_block_state()),
            ),
            // The answer approves the work as it was claimed, even if it comes with a message.
            GateAnswer::Ignore => {
                self.judge_without_blockers(claim, format!("{}, and a person let it pass", self.describe_block_state()))
            }
        }
    }

    /// Replaces a decision that gives the agent another turn, if a guard has tripped.
    pub(crate) fn apply_guards(&self, decision: GateDecision) -> GateDecision {
        match decision {
            GateDecision::SendBack | GateDecision::Next(AfterIteration::Continue) if self.is_thrashing() => {
                let times = self.terms.thrashing;
                close_session(
                    SessionEndKind::Escalated,
                    format!("thrashing: the same change with the same result {times} times in a row"),
                )
            }
            GateDecision::SendBack => match self.find_exhausted_budget() {
                Some(why) => close_session(SessionEndKind::Limit, why),
                None => GateDecision::SendBack,
            },
            decision => decision,
        }
    }

    /// Returns whether the work stays in the same state for too many turns. An undelivered message of a person may still
    /// change that.
    fn is_thrashing(&self) -> bool {
        !self.has_unheard_person() && self.terms.thrashing > 0 && self.watch.same_state_count() >= self.terms.thrashing
    }

    /// Names the blocking hooks.
    fn describe_blocking_hooks(&self) -> String {
        let names: Vec<String> = self.blocking.iter().map(|blocker| format!("`{}`", blocker.hook)).collect();
        match names.as_slice() {
            [] => "stop hooks block".to_owned(),
            [one] => format!("{one} blocks"),
            several => format!("{} block", several.join(" and ")),
        }
    }

    /// Names the blocking hooks, each with its number of send-backs.
    pub fn describe_block_state(&self) -> String {
        let sent = |blocker: &BlockingHook| self.send_back_count(blocker).min(self.max_send_backs_of(blocker));
        let describe = |who: &str, sent: u32| match sent {
            0 => format!("{who}, and may not send the agent back"),
            sent => {
                let (names, verb) = who.rsplit_once(' ').unwrap_or(("", who));
                format!("{names} still {verb} after sending the agent back {}", count_in_words(sent))
            }
        };
        match self.blocking.as_slice() {
            [first, rest @ ..] if rest.iter().any(|other| sent(other) != sent(first)) => {
                let each = |blocker: &BlockingHook| describe(&format!("`{}` blocks", blocker.hook), sent(blocker));
                self.blocking.iter().map(each).collect::<Vec<_>>().join("; ")
            }
            alike => describe(&self.describe_blocking_hooks(), alike.first().map_or(0, sent)),
        }
    }

    /// Returns whether the same hooks block with the same texts too often in a row. Under `on_retry_limit: complete`
    /// the session uses all of its send-backs instead.
    fn repeats_same_block(&self) -> bool {
        self.terms.on_retry_limit != RetryLimitAction::Complete
            && self.watch.same_block_count() >= EngineLimits::SAME_BLOCKS_IN_A_ROW
    }

    /// Returns whether a blocking hook may send the agent back.
    pub(crate) fn may_send_back(&self) -> bool {
        self.remaining_send_backs() > 0 && !self.repeats_same_block()
    }

    /// Returns how often the blocking hooks may still send the agent back. Each has its own count.
    fn remaining_send_backs(&self) -> u32 {
        let left =
            |blocker: &BlockingHook| self.max_send_backs_of(blocker).saturating_sub(self.send_back_count(blocker));
        self.blocking.iter().map(left).max().unwrap_or(0)
    }

    /// Returns the limit of send-backs of a hook within an iteration.
    fn max_send_backs_of(&self, blocker: &BlockingHook) -> u32 {
        blocker.most.unwrap_or(self.terms.max_hook_retries)
    }

    /// Returns the number of send-backs in this iteration while a hook blocked.
    fn send_back_count(&self, blocker: &BlockingHook) -> u32 {
        self.sent_back.get(&blocker.hook).copied().unwrap_or(0)
    }

    /// Returns the total number of send-backs at the limit, if hooks block.
    pub(crate) fn max_send_backs(&self) -> Option<u32> {
        (self.verdict == GateVerdict::Block).then(|| self.retries + self.remaining_send_backs())
    }

    /// Returns the short reasons of the blocking hooks.
    pub(crate) fn block_reason(&self) -> Option<String> {
        let reasons: Vec<&str> = self.blocking.iter().filter_map(|blocker| blocker.reason.as_deref()).collect();
        (self.verdict == GateVerdict::Block && !reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Counts a failed iteration.
    pub(crate) fn count_failure(&mut self, at: Timestamp) {
        let first = self.watch.failing_since.filter(|_| self.failures > 0).unwrap_or(at);
        self.failures = self.failures.saturating_add(1);
        self.watch.failing_since = Some(first);
        self.watch.failing_for = at.elapsed_since(first);
    }

    pub(crate) fn has_tripped_breaker(&self) -> bool {
        self.terms.trips_breaker_after(self.failures, self.watch.failing_for)
    }

    /// Returns whether the agent may be told about a failed iteration at once, because another one follows.
    pub(crate) fn may_start_recovery(&self) -> bool {
        self.find_exhausted_limit().is_none()
    }

    /// Returns whether a person has asked to ignore the result of this stop hook. A hook that asks for a person or for
    /// more work still counts: the person was not asked about that.
    pub(crate) fn ignores_hook_result(&self, hook: &HookEffect, outcome: HookOutcome) -> bool {
        let keeps =
            matches!(GateVerdict::from_hook_outcome(outcome, hook.on_failure), GateVerdict::Block | GateVerdict::Fail);
        keeps && hook.class == HookClass::Gate && self.ignored_hooks.contains(&hook.hook)
    }

    /// Names the hooks that a person has waived.
    pub(crate) fn describe_waived_hooks(&self) -> Option<String> {
        let names: Vec<String> = self.ignored_blocks.iter().map(|hook| format!("`{hook}`")).collect();
        (!names.is_empty()).then(|| format!("{} did not pass, and a person let it pass", names.join(" and ")))
    }

    /// Adds the waived hooks to a reason.
    fn with_waived_hooks(&self, why: String) -> String {
        [Some(why), self.describe_waived_hooks()].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Returns whether the next iteration continues one that was interrupted or rate limited. A failed iteration is
    /// over.
    pub(crate) fn continues_interrupted_iteration(&self) -> bool {
        match self.phase {
            SessionPhase::Settled(AfterIteration::TakeUp) => true,
            SessionPhase::Postponed(_) => self.is_rate_limited(),
            _ => false,
        }
    }

    /// Returns whether the agent's last turn was rate limited.
    pub fn is_rate_limited(&self) -> bool {
        self.watch.postponed > 0
    }

    fn exceeds_postponements(&self) -> bool {
        self.watch.postponed >= EngineLimits::POSTPONEMENTS_IN_A_ROW
    }

    /// Returns the remaining wall time, if it is limited.
    pub fn remaining_wall_time(&self, now: Timestamp) -> Option<Duration> {
        let heard = self.watch.at.unwrap_or(now);
        let since = u64::try_from(now.millis().saturating_sub(heard.millis())).unwrap_or(0);
        let lasted = self.watch.lasted.saturating_add(Duration::from_millis(since));
        self.terms.wall_time.map(|most| most.saturating_sub(lasted))
    }

    /// Returns whether the wall time is used up at that time.
    pub(crate) fn exceeds_wall_time(&self, moment: Timestamp) -> bool {
        self.remaining_wall_time(moment).is_some_and(|left| left.is_zero())
    }

    /// Explains the end of a session whose wall time is used up.
    pub fn describe_wall_time_end(&self) -> String {
        format!("the wall time of {} is used up", duration_in_words(self.terms.wall_time.unwrap_or_default()))
    }

    /// Names the budget that is used up.
    fn find_exhausted_budget(&self) -> Option<String> {
        if self.terms.wall_time.is_some_and(|most| self.watch.lasted >= most) {
            return Some(self.describe_wall_time_end());
        }
        let used = self.watch.used;
        if let Some(most) = self.terms.tokens.filter(|most| used.total_tokens() >= *most) {
            let (used, most) = (GroupedDigits(used.total_tokens()), GroupedDigits(most));
            return Some(format!("{used} tokens were used, and the limit is {most}"));
        }
        let spent = used.cost.unwrap_or_default();
        let most = self.terms.cost.filter(|most| spent >= *most)?;
        Some(format!("{spent} were spent, and the cost limit is {most}"))
    }

    /// Starts another iteration, unless a guard has tripped. At the iteration limit, one turn remains for pending
    /// feedback.
    pub(crate) fn continue_or_end(&self) -> SessionStep {
        // The limits apply to held tasks only. Taking the next task checks the guards too.
        if self.has_lost_task() {
            return self.next_iteration_step();
        }
        match self.find_exhausted_limit() {
            None => self.next_iteration_step(),
            Some(_) if self.may_deliver_feedback() => self.start_delivery_turn(),
            Some(closing) => self.end_or_leave_task(&closing),
        }
    }

    /// Returns whether pending feedback gets a delivery turn: once per ended iteration, while the session holds the
    /// work and no guard but the iteration limit has tripped. Work that passes although hooks block, at a retry limit
    /// or by a person's answer, gets one only for a person's message.
    pub(crate) fn may_deliver_feedback(&self) -> bool {
        let has_work = (self.held_epoch().is_some() || self.hold == TaskHold::Never) && !self.lacks_workspace();
        let has_ended = matches!(self.phase, SessionPhase::Settled(_)) && self.last_turn.is_some();
        let is_waived = self.verdict == GateVerdict::Block && !self.has_unheard_person();
        let is_due = !self.pending.is_empty() && !self.delivered && !is_waived;
        is_due && has_ended && has_work && self.find_tripped_guard().is_none()
    }

    pub(crate) fn start_delivery_turn(&self) -> SessionStep {
        SessionStep::StartTurn(self.run_id_for(self.iteration), TurnPurpose::Delivery)
    }

    /// Returns why no further iteration may start.
    pub(crate) fn find_exhausted_limit(&self) -> Option<SessionEnd> {
        self.find_tripped_guard().or_else(|| self.check_iteration_limit())
    }

    /// Returns the tripped guard, except for the iteration limit.
    fn find_tripped_guard(&self) -> Option<SessionEnd> {
        let end = |ending, reason: String| Some(SessionEnd { ending, reason: Some(reason) });
        if self.has_tripped_breaker() {
            let (failures, last) = match self.failures {
                1 => ("an iteration failed, and no failure is allowed".to_owned(), ": "),
                many => (format!("{many} iterations failed in a row"), ", the last with: "),
            };
            let cause = self.watch.failure_cause.iter().map(|cause| format!("{last}{cause}")).collect::<String>();
            return end(SessionEndKind::Escalated, format!("circuit breaker: {failures}{cause}"));
        }
        if self.interrupted_in_a_row >= EngineLimits::INTERRUPTIONS_IN_A_ROW {
            return end(
                SessionEndKind::Error,
                format!("{} iterations were interrupted in a row", self.interrupted_in_a_row),
            );
        }
        if self.exceeds_postponements() {
            return end(
                SessionEndKind::Escalated,
                format!("the agent was rate limited {} times in a row", self.watch.postponed),
            );
        }
        if let Some(why) = self.find_exhausted_budget().or_else(|| self.check_wait_end()) {
            return end(SessionEndKind::Limit, why);
        }
        None
    }

    fn check_iteration_limit(&self) -> Option<SessionEnd> {
        let max_iterations = self.terms.max_iterations;
        // A person's message in the last iteration gets one more iteration.
        if self.iteration - self.interrupted < max_iterations || self.has_unheard_person() {
            return None;
        }
        let reason = match (max_iterations, self.interrupted) {
            (1, 0) => "one iteration is the limit".to_owned(),
            (most, 0) => format!("{most} iterations are the limit"),
            (most, more) => format!("{most} is the limit, {more} interrupted not counted"),
        };
        Some(SessionEnd { ending: SessionEndKind::Limit, reason: Some(reason) })
    }

    fn check_wait_end(&self) -> Option<String> {
        self.wait_deadline().filter(|until| self.exceeds_wall_time(*until)).map(|_| {
            let awaited =
                if self.is_rate_limited() { "the agent's rate limit ends" } else { "the agent is tried again" };
            format!("{}, before {awaited}", self.describe_wall_time_end())
        })
    }

    /// Ends the session, after it has left its task. The agent gets no further turn: pending feedback stays with the
    /// task.
    pub(crate) fn end_or_leave_task(&self, closing: &SessionEnd) -> SessionStep {
        match self.task_exit_for(closing) {
            Some(leave) => SessionStep::LeaveTask(leave),
            None => SessionStep::End(closing.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
