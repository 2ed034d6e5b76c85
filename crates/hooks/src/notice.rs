//! The notice about the end of a session, or about its question to a person.
//!
//! Invariant: a notice contains the state and no text of the agent. It may leave this machine.

use std::path::Path;

use serde_json::{Value, json};

/// The most letters of a goal or a reason in a line.
const MAX_LINE_LETTERS: usize = 200;

/// Returns the title: how the session ended, or that it waits.
pub fn notice_title(values: &Value) -> &'static str {
    match text_at(values, "/event/data/ending") {
        "completed" => "Done",
        "escalated" => "A person is needed",
        "limit" => "Ended without completion",
        "error" => "Failed",
        "cancelled" => "Cancelled",
        _ if text_at(values, "/event/type") == "gate_decided" => "A person is asked",
        _ => "A notice",
    }
}

/// Returns the task, or else the session, that waits for a person.
pub fn waiting_subject(values: &Value) -> Option<&str> {
    let is_asked = text_at(values, "/event/type") == "gate_decided";
    if !is_asked && text_at(values, "/event/data/ending") != "escalated" {
        return None;
    }
    [text_at(values, "/task_id"), text_at(values, "/session")].into_iter().find(|name| !name.is_empty())
}

/// Returns the goal of the session, the reason of its end, and the link for an answer.
pub fn notice_summary(values: &Value) -> String {
    let (goal, reason) = (first_line(text_at(values, "/goal")), first_line(text_at(values, "/event/data/reason")));
    let goal = if goal.is_empty() { first_line(text_at(values, "/session")) } else { goal };
    let summary = if reason.is_empty() { goal } else { format!("{goal} ({reason})") };
    let url = text_at(values, "/answer_url");
    if url.is_empty() { summary } else { format!("{summary} {url}") }
}

/// Returns the whole notice. Chat services read the field `text`.
pub fn notice_payload(values: &Value, project: &Path) -> Value {
    json!({
        "text": format!("{}: {}", notice_title(values), notice_summary(values)),
        "answer_url": text_at(values, "/answer_url"),
        "session": text_at(values, "/session"),
        "ending": text_at(values, "/event/data/ending"),
        "reason": text_at(values, "/event/data/reason"),
        "goal": text_at(values, "/goal"),
        "iterations": values["iteration"],
        "project": project.to_string_lossy(),
    })
}

fn text_at<'v>(values: &'v Value, path: &str) -> &'v str {
    values.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the first line of a text, shortened and without invisible letters.
fn first_line(text: &str) -> String {
    let cleaned = crate::clean_output(text);
    let first = cleaned.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut cut: String = first.chars().take(MAX_LINE_LETTERS).collect();
    if cut.len() < first.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ending: &str, goal: &str, reason: Option<&str>, expected: &str) {
        let values = json!({
            "session": "pump", "iteration": 2, "goal": goal, "output": "a secret",
            "event": {"data": {"ending": ending, "reason": reason}},
        });
        let payload = notice_payload(&values, Path::new("/shop"));
        assert_eq!(payload["text"], expected);
        assert!(!payload.to_string().contains("a secret"));
    }

    #[test]
    fn notice_of_question_is_no_end() {
        let event = json!({"type": "gate_decided", "data": {"decision": "ask", "reason": "2 tests failed"}});
        let payload =
            notice_payload(&json!({"session": "pump", "goal": "Mend it", "event": event}), Path::new("/shop"));
        assert_eq!(
            (&payload["text"], &payload["ending"]),
            (&json!("A person is asked: Mend it (2 tests failed)"), &json!(""))
        );
    }

    #[test]
    fn notice_with_link_ends_with_link() {
        let event = json!({"data": {"ending": "escalated", "reason": "which port?"}});
        let values = json!({"task_id": "T1", "session": "pump", "goal": "Mend it", "event": event, "answer_url": "https://a/answer#1"});
        assert_eq!(waiting_subject(&values), Some("T1"));
        let payload = notice_payload(&values, Path::new("/shop"));
        assert_eq!(payload["text"], "A person is needed: Mend it (which port?) https://a/answer#1");
        assert_eq!(payload["answer_url"], "https://a/answer#1");
    }

    #[test]
    fn notice_fits_one_line() {
        check("completed", "Mend the pump", None, "Done: Mend the pump");
        check("escalated", "Mend\nit", Some("which \x1b[31mversion?"), "A person is needed: Mend (which version?)");
        check(
            "limit",
            "",
            Some("5 iterations are the limit"),
            "Ended without completion: pump (5 iterations are the limit)",
        );
        check("error", &"x".repeat(500), None, &format!("Failed: {}…", "x".repeat(MAX_LINE_LETTERS)));
    }
}
