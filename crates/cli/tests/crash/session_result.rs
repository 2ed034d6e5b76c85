//! The result of a session: its events without those that only an interruption causes.
//!
//! A crash test compares the result of the killed session with that of a session without a crash. The result lists the event
//! types in order, with the decisions in them (author, reason, outcome, retry count), and these exceptions:
//! - It omits `session_resumed`, and `hook_started` of a second attempt: another process continued.
//! - An interrupted hook that may not run again counts as successful; its feedback is lost.
//! - It omits the events from the interruption of an iteration to the turn that replaces the interrupted one: the start of the
//!   new iteration, its `pre_iteration` hooks and the start of the turn. So the interrupted turn and its replacement count as one
//!   turn. If the session ends instead, the result includes the end.
//! - It omits `feedback_delivered`: the checks compare feedback and turns separately (`checks`).

use super::log::LogEvent;
use super::scenario::FEEDBACK_HOOKS;

/// Returns the result of the session in a log, one line per event.
pub fn from_log(log: &[LogEvent]) -> Vec<String> {
    let mut result = Vec::new();
    let mut is_resumed = true;
    for event in log {
        match event.event_type() {
            "iteration_interrupted" | "delivery_interrupted" => is_resumed = false,
            "turn_started" if !is_resumed => is_resumed = true,
            "session_ended" => {
                is_resumed = true;
                result.push(describe_event(event));
            }
            _ if !is_resumed => {}
            "session_resumed" | "feedback_delivered" => {}
            "hook_started" if event.field("attempt") != 1 => {}
            "hook_finished" if event.text_field("outcome") == "interrupted" => {
                result.push(format!("hook_finished {} success", event.text_field("hook")));
                if FEEDBACK_HOOKS.contains(&event.text_field("hook")) {
                    result.push(format!("feedback_queued {}", event.text_field("hook")));
                }
            }
            _ => result.push(describe_event(event)),
        }
    }
    result
}

fn describe_event(event: &LogEvent) -> String {
    let kind = event.event_type();
    let details = match kind {
        "hook_started" => event.text_field("hook").to_owned(),
        "hook_finished" => format!("{} {}", event.text_field("hook"), event.text_field("outcome")),
        "feedback_queued" => event.text_field("source").to_owned(),
        "turn_started" => event.variant_name("purpose"),
        "promise_detected" => event.variant_name("promise"),
        "gate_decided" => {
            format!("{} {} {}", event.variant_name("verdict"), event.field("decision"), event.field("retries"))
        }
        "session_ended" => format!("{} {}", event.text_field("ending"), event.text_field("reason")),
        _ => String::new(),
    };
    format!("{kind} {details}").trim_end().to_owned()
}

/// Returns the first difference of two results, with the events around it.
pub fn first_difference(ours: &[String], theirs: &[String]) -> Option<String> {
    let position = (0..ours.len().max(theirs.len())).find(|position| ours.get(*position) != theirs.get(*position))?;
    let start = position.saturating_sub(2);
    let show = |events: &[String]| events.iter().skip(start).take(5).cloned().collect::<Vec<_>>().join(", ");
    Some(format!("after {start} events: {}, baseline: {}", show(ours), show(theirs)))
}
