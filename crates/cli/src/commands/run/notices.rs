//! Notices about the stop gate and about waiting.

use windlass_engine::{
    AfterIteration, EventRecord, GateDecision, GateVerdict, RetryLimitAction, SessionEndKind, Timestamp, payload,
};

use crate::show;

/// Formats `[Hook retry 2/5: 1 test failed]`, or what follows if there is no other retry.
pub fn format_gate_notice(decided: &payload::GateDecided, at_limit: RetryLimitAction) -> Option<String> {
    let reason = decided.reason.as_deref().unwrap_or("the work is not done").trim_end_matches('.');
    let most = decided.max_retries.unwrap_or(decided.retries);
    match &decided.decision {
        GateDecision::SendBack => Some(format!("[Hook retry {}/{most}: {reason}]", decided.retries)),
        GateDecision::Ask => Some(format!("[Warning: {}. A person is asked.]", describe_retry_limit(decided, reason))),
        GateDecision::Next(AfterIteration::Close(closing))
            if decided.verdict == GateVerdict::Block && closing.reason.is_some() =>
        {
            let then = match closing.ending {
                // A person has let it pass and needs no warning.
                SessionEndKind::Completed if at_limit != RetryLimitAction::Complete => return None,
                SessionEndKind::Completed => "It counts as complete anyway.",
                SessionEndKind::Limit => "The session ends at its limit.",
                SessionEndKind::Escalated | SessionEndKind::Cancelled | SessionEndKind::Error => "A person is needed.",
            };
            Some(format!("[Warning: {}. {then}]", describe_retry_limit(decided, reason)))
        }
        // The agent continues for another reason.
        GateDecision::Next(AfterIteration::Continue)
            if decided.verdict == GateVerdict::Block
                && decided.max_retries.is_some_and(|most| decided.retries >= most) =>
        {
            Some(format!("[Warning: {}. The work is not done.]", describe_retry_limit(decided, reason)))
        }
        GateDecision::Next(_) => None,
    }
}

/// Describes why there is no other retry.
fn describe_retry_limit(decided: &payload::GateDecided, reason: &str) -> String {
    match decided.max_retries {
        Some(0) => format!("no hook retries are allowed: {reason}"),
        // Each hook has a limit of its own; this is the sum of their retries.
        Some(most) if decided.retries >= most => match decided.retries {
            1 => format!("hook retry limit reached after 1 retry: {reason}"),
            many => format!("hook retry limit reached after {many} retries: {reason}"),
        },
        _ => format!("after hook retry {}: {reason}", decided.retries),
    }
}

/// Describes how long the agent waits, and why.
pub fn format_wait_notice(postponed: &payload::IterationPostponed, now: Timestamp) -> String {
    let long = format_time_until(postponed.until, now);
    format!("rate limited: {}; waiting for {long}, until {}", postponed.error, show::format_local_time(postponed.until))
}

/// Describes when a failed agent is tried again, unless that is at once.
pub fn format_retry_notice(record: &EventRecord) -> Option<String> {
    let until = show::find_retry_moment(record)?;
    let long = format_time_until(until, record.envelope.timestamp);
    Some(format!("waiting for {long}, until {}, before the agent is tried again", show::format_local_time(until)))
}

fn format_time_until(moment: Timestamp, now: Timestamp) -> String {
    match (moment.millis() - now.millis()) / 1000 {
        ..=0 => "a moment".to_owned(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
