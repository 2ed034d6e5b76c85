//! opencode: `opencode run --format json`.
//!
//! The stream has no closing event: the reason of the last step says how the turn ended. Usage is reported for each step.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{AgentUsage, TurnFailure, UsdCost};

use super::command_line::{CommandLine, PromptTarget, has_option};
use super::turn_accumulator::{StreamEnd, TurnAccumulator};
use super::{failure_cause, stream_line};
use crate::failure::AgentFailure;
use crate::{AgentAccess, AgentSetup};

/// The agent `plan` may still run commands, so only tools that read are allowed, by name. The settings, plugins and rules of
/// the working directory are ignored, since they could allow more.
pub(super) const READ_ONLY_ENVIRONMENT: &[(&str, &str)] = &[
    (
        "OPENCODE_PERMISSION",
        r#"{"*":"deny","bash":"deny","edit":"deny","read":{"*":"allow","*.env":"deny","*.env.*":"deny"},"list":"allow","glob":"allow","grep":"allow"}"#,
    ),
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
];

pub(super) fn build_command_line(place: PromptTarget<'_>, setup: &AgentSetup) -> CommandLine {
    let mut words = CommandLine::new(&["run", "--format", "json"], &[]);
    match setup.access {
        AgentAccess::Full if !has_option(setup, &["--auto"]) => words.add_arguments(&["--auto"]),
        // opencode's own agent without edits. Anything that it would ask for is denied.
        AgentAccess::ReadOnly if !has_option(setup, &["--agent"]) => words.add_arguments(&["--agent", "plan"]),
        AgentAccess::Full | AgentAccess::ReadOnly => {}
    }
    if let PromptTarget::Existing(name) = place {
        words.add_arguments(&["-s", name]);
    }
    words.add_model("-m", setup);
    words
}

pub(super) fn read_event(turn: &mut TurnAccumulator, event: &Value) -> bool {
    let part = &event["part"];
    match event["type"].as_str() {
        Some("step_start") => turn.end = None,
        Some("text") => {
            turn.add_message_paragraph(part["messageID"].as_str(), part["text"].as_str().unwrap_or_default())
        }
        Some("tool_use") => {
            turn.record_tool_call(&stream_line::format_tool_title(
                part["tool"].as_str().unwrap_or("a tool"),
                &part["state"]["input"],
            ));
        }
        Some("step_finish") => {
            turn.usage = turn.usage.saturating_add(read_step_usage(part));
            turn.end = read_finish_reason(part["reason"].as_str().unwrap_or_default());
        }
        Some("error") => turn.record_failure(classify_failure(&event["error"])),
        Some("reasoning") => {}
        _ => return false,
    }
    turn.record_conversation(event["sessionID"].as_str());
    true
}

/// Returns the end of the turn, or `None` if another step follows.
fn read_finish_reason(reason: &str) -> Option<StreamEnd> {
    Some(match reason {
        "tool-calls" | "" => return None,
        // Some services use other names for a complete answer.
        "stop" | "unknown" | "other" => StreamEnd::Done(None),
        "length" => StreamEnd::Failed(failure_cause::failure_from_fault(
            TurnFailure::OutOfTokens,
            "the model's answer was cut off at its limit of tokens",
        )),
        "content-filter" => StreamEnd::Failed(failure_cause::failure_from_fault(
            TurnFailure::Refused,
            "the model's service refused to let the answer through",
        )),
        other => StreamEnd::Failed(failure_cause::failure_from_fault(
            TurnFailure::Failed,
            &format!("the model's answer ended with `{other}`"),
        )),
    })
}

fn classify_failure(error: &Value) -> AgentFailure {
    let (name, data) = (error["name"].as_str().unwrap_or("an error"), &error["data"]);
    let words = data["message"].as_str().unwrap_or(name);
    match (name, data["statusCode"].as_u64()) {
        ("ContentFilterError", _) => failure_cause::failure_from_fault(TurnFailure::Refused, words),
        ("MessageOutputLengthError" | "ContextOverflowError", _) => {
            failure_cause::failure_from_fault(TurnFailure::OutOfTokens, words)
        }
        ("MessageAbortedError", _) => failure_cause::failure_from_fault(TurnFailure::GaveUp, words),
        ("ProviderAuthError", _) => failure_cause::failure_from_status(401, words, None),
        (_, Some(status)) => {
            let header = data["responseHeaders"]["retry-after"].as_str();
            let retry = header.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
            failure_cause::failure_from_status(status, words, retry)
        }
        (_, None) => failure_cause::failure_from_message(words),
    }
}

fn read_step_usage(part: &Value) -> AgentUsage {
    let tokens = &part["tokens"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let cached = number(&tokens["cache"]["read"]);
    let fresh = number(&tokens["input"]).saturating_add(number(&tokens["cache"]["write"]));
    // For a model without a known price, opencode reports a cost of zero.
    let cost = part["cost"].as_f64().filter(|cost| *cost > 0.0).and_then(UsdCost::from_dollars);
    let output = number(&tokens["output"]).saturating_add(number(&tokens["reasoning"]));
    AgentUsage { input: fresh.saturating_add(cached), cached, output, cost }
}
