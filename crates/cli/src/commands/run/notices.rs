//! Notices about the stop gate and about waiting.

use windlass_engine::{Decision, Ending, Next, OnRetryLimit, Record, Timestamp, Verdict, payload};

use crate::show;

/// Formats `[Hook retry 2/5: 1 test failed]`, or what follows if there is no other retry.
pub fn of_gate(decided: &payload::GateDecided, at_limit: OnRetryLimit) -> Option<String> {
    let reason = decided.reason.as_deref().unwrap_or("the work is not done").trim_end_matches('.');
    let most = decided.max_retries.unwrap_or(decided.retries);
    match &decided.decision {
        Decision::SendBack => Some(format!("[Hook retry {}/{most}: {reason}]", decided.retries)),
        Decision::Ask => Some(format!("[Warning: {}. A person is asked.]", limit(decided, reason))),
        Decision::Next(Next::Close(closing)) if decided.verdict == Verdict::Block && closing.reason.is_some() => {
            let then = match closing.ending {
                // A person has let it pass and needs no warning.
                Ending::Completed if at_limit != OnRetryLimit::Complete => return None,
                Ending::Completed => "It counts as complete all the same.",
                Ending::Limit => "The session ends at its limit.",
                Ending::Escalated | Ending::Cancelled | Ending::Error => "A person is needed.",
            };
            Some(format!("[Warning: {}. {then}]", limit(decided, reason)))
        }
        // The agent continues for another reason.
        Decision::Next(Next::Continue)
            if decided.verdict == Verdict::Block && decided.max_retries.is_some_and(|most| decided.retries >= most) =>
        {
            Some(format!("[Warning: {}. The work is not done.]", limit(decided, reason)))
        }
        Decision::Next(_) => None,
    }
}

/// Describes why there is no other retry.
fn limit(decided: &payload::GateDecided, reason: &str) -> String {
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
pub fn of_wait(postponed: &payload::IterationPostponed, now: Timestamp) -> String {
    let long = duration_until(postponed.until, now);
    format!("rate limited: {}; waiting for {long}, until {}", postponed.error, show::moment(postponed.until))
}

/// Describes when a failed agent is tried again, unless that is at once.
pub fn of_retry(record: &Record) -> Option<String> {
    let until = show::retry_moment(record)?;
    let long = duration_until(until, record.envelope.timestamp);
    Some(format!("waiting for {long}, until {}, before the agent is tried again", show::moment(until)))
}

fn duration_until(moment: Timestamp, now: Timestamp) -> String {
    match (moment.millis() - now.millis()) / 1000 {
        ..=0 => "a moment".to_owned(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
