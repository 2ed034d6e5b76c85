//! opencode: `opencode run --format json`.
//!
//! The stream has no closing event: the reason of the last step says how the turn ended. Usage is reported for each step.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{Cost, Fault, Usage};

use super::account::{Account, Close};
use super::words::{Place, Words, has_option};
use super::{cause, line};
use crate::trouble::Trouble;
use crate::{Access, Setup};

/// The agent `plan` may still run commands, so only tools that read are allowed, by name. The settings, plugins and rules of
/// the working directory are ignored, since they could allow more.
pub(super) const LOOKING: &[(&str, &str)] = &[
    (
        "OPENCODE_PERMISSION",
        r#"{"*":"deny","bash":"deny","edit":"deny","read":{"*":"allow","*.env":"deny","*.env.*":"deny"},"list":"allow","glob":"allow","grep":"allow"}"#,
    ),
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
];

pub(super) fn words(place: Place<'_>, setup: &Setup) -> Words {
    let mut words = Words::new(&["run", "--format", "json"], &[]);
    match setup.access {
        Access::Full if !has_option(setup, &["--auto"]) => words.add(&["--auto"]),
        // opencode's own agent without edits. Anything that it would ask for is denied.
        Access::ReadOnly if !has_option(setup, &["--agent"]) => words.add(&["--agent", "plan"]),
        Access::Full | Access::ReadOnly => {}
    }
    if let Place::Before(name) = place {
        words.add(&["-s", name]);
    }
    words.add_model("-m", setup);
    words
}

pub(super) fn read(account: &mut Account, event: &Value) -> bool {
    let part = &event["part"];
    match event["type"].as_str() {
        Some("step_start") => account.close = None,
        Some("text") => account.say_paragraph(part["messageID"].as_str(), part["text"].as_str().unwrap_or_default()),
        Some("tool_use") => {
            account.call(&line::title(part["tool"].as_str().unwrap_or("a tool"), &part["state"]["input"]));
        }
        Some("step_finish") => {
            account.usage = account.usage.plus(usage(part));
            account.close = finished(part["reason"].as_str().unwrap_or_default());
        }
        Some("error") => account.fail(failure(&event["error"])),
        Some("reasoning") => {}
        _ => return false,
    }
    account.name(event["sessionID"].as_str());
    true
}

/// Returns the end of the turn, or `None` if another step follows.
fn finished(reason: &str) -> Option<Close> {
    Some(match reason {
        "tool-calls" | "" => return None,
        // Some services use other names for a complete answer.
        "stop" | "unknown" | "other" => Close::Done(None),
        "length" => {
            Close::Failed(cause::of_fault(Fault::OutOfTokens, "the model's answer was cut off at its limit of tokens"))
        }
        "content-filter" => {
            Close::Failed(cause::of_fault(Fault::Refused, "the model's service refused to let the answer through"))
        }
        other => Close::Failed(cause::of_fault(Fault::Failed, &format!("the model's answer ended with `{other}`"))),
    })
}

fn failure(error: &Value) -> Trouble {
    let (name, data) = (error["name"].as_str().unwrap_or("an error"), &error["data"]);
    let words = data["message"].as_str().unwrap_or(name);
    match (name, data["statusCode"].as_u64()) {
        ("ContentFilterError", _) => cause::of_fault(Fault::Refused, words),
        ("MessageOutputLengthError" | "ContextOverflowError", _) => cause::of_fault(Fault::OutOfTokens, words),
        ("MessageAbortedError", _) => cause::of_fault(Fault::GaveUp, words),
        ("ProviderAuthError", _) => cause::of_status(401, words, None),
        (_, Some(status)) => {
            let header = data["responseHeaders"]["retry-after"].as_str();
            let retry = header.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
            cause::of_status(status, words, retry)
        }
        (_, None) => cause::of_words(words),
    }
}

fn usage(part: &Value) -> Usage {
    let tokens = &part["tokens"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let cached = number(&tokens["cache"]["read"]);
    let fresh = number(&tokens["input"]).saturating_add(number(&tokens["cache"]["write"]));
    // For a model without a known price, opencode reports a cost of zero.
    let cost = part["cost"].as_f64().filter(|cost| *cost > 0.0).and_then(Cost::of_dollars);
    let output = number(&tokens["output"]).saturating_add(number(&tokens["reasoning"]));
    Usage { input: fresh.saturating_add(cached), cached, output, cost }
}
