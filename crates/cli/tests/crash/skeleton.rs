//! The result of a session without the events of interruptions.
//!
//! Two runs of the scenario are equal if their skeletons are. A skeleton is the log's events, each as its type with what was
//! decided in it (author, reason, outcome, retry count), in order, and:
//! - `session_resumed`, and `hook_started` of a second attempt, are left out: another process went on.
//! - A hook that was interrupted and may not run again counts as one that ran; its feedback is lost.
//! - An interrupted iteration is resumed: from the interruption to the turn that takes its place, everything is left out (the new
//!   iteration's start, its `pre_iteration` hooks, the turn's own start). So the interrupted turn and the one that replaces it
//!   are one turn. If the session ends instead, its end is not left out.
//! - `feedback_delivered` is left out: the checks compare pieces and turns one by one (`checks`).

use super::log::Entry;
use super::scenario::PIPED;

pub fn of(log: &[Entry]) -> Vec<String> {
    let mut skeleton = Vec::new();
    let mut taken_up = true;
    for entry in log {
        match entry.kind() {
            "iteration_interrupted" | "delivery_interrupted" => taken_up = false,
            "turn_started" if !taken_up => taken_up = true,
            "session_ended" => {
                taken_up = true;
                skeleton.push(bone(entry));
            }
            _ if !taken_up => {}
            "session_resumed" | "feedback_delivered" => {}
            "hook_started" if entry.field("attempt") != 1 => {}
            "hook_finished" if entry.text("outcome") == "interrupted" => {
                skeleton.push(format!("hook_finished {} success", entry.text("hook")));
                if PIPED.contains(&entry.text("hook")) {
                    skeleton.push(format!("feedback_queued {}", entry.text("hook")));
                }
            }
            _ => skeleton.push(bone(entry)),
        }
    }
    skeleton
}

fn bone(entry: &Entry) -> String {
    let kind = entry.kind();
    let details = match kind {
        "hook_started" => entry.text("hook").to_owned(),
        "hook_finished" => format!("{} {}", entry.text("hook"), entry.text("outcome")),
        "feedback_queued" => entry.text("source").to_owned(),
        "turn_started" => entry.variant("purpose"),
        "promise_detected" => entry.variant("promise"),
        "gate_decided" => {
            format!("{} {} {}", entry.variant("verdict"), entry.field("decision"), entry.field("retries"))
        }
        "session_ended" => format!("{} {}", entry.text("ending"), entry.text("reason")),
        _ => String::new(),
    };
    format!("{kind} {details}").trim_end().to_owned()
}

/// Returns the first difference of two skeletons.
pub fn difference(ours: &[String], theirs: &[String]) -> Option<String> {
    let place = (0..ours.len().max(theirs.len())).find(|place| ours.get(*place) != theirs.get(*place))?;
    let from = place.saturating_sub(2);
    let show = |bones: &[String]| bones.iter().skip(from).take(5).cloned().collect::<Vec<_>>().join(", ");
    Some(format!("after {from} events: {}, undisturbed: {}", show(ours), show(theirs)))
}
