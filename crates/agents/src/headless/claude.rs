//! Claude Code: `claude -p --output-format stream-json`.
//!
//! The last line always says `subtype: success`; `is_error`, `terminal_reason` and the model's `stop_reason` tell the truth.
//! The cost is that of the whole conversation, with the part since the last result beside it. Older versions omit the part,
//! and still older ones report the cost of their process alone in the same field.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{Cost, Fault, Usage};

use super::account::{Account, Close, Span};
use super::words::{Place, Words, has_option};
use super::{cause, line};
use crate::reset::Reset;
use crate::trouble::Trouble;
use crate::{Access, Setup};

/// Options with which a user sets the permissions.
const PERMISSIONS: [&str; 2] = ["--permission-mode", "--dangerously-skip-permissions"];

pub(super) fn words(place: Place<'_>, setup: &Setup) -> Words {
    let mut words = Words::new(&["-p", "--output-format", "stream-json", "--verbose"], &[]);
    if !has_option(setup, &PERMISSIONS) {
        match setup.access {
            Access::Full => words.add(&["--permission-mode", "bypassPermissions"]),
            // Without a user to ask, these tools would be denied anyway. The option denies them even if the agent's settings allow them.
            Access::ReadOnly => {
                words.add(&["--permission-mode", "default", "--disallowedTools=Edit,Write,NotebookEdit"])
            }
        }
    }
    if setup.access == Access::ReadOnly {
        // The working directory is under review, so its hooks, servers and rules must not take effect.
        if !has_option(setup, &["--setting-sources"]) {
            words.add(&["--setting-sources", "user"]);
        }
        if !has_option(setup, &["--strict-mcp-config"]) {
            words.add(&["--strict-mcp-config"]);
        }
    }
    words.add_conversation(place, "--session-id", &["--resume"]);
    words.add_model("--model", setup);
    words
}

pub(super) fn read(account: &mut Account, event: &Value) -> bool {
    let own = event["parent_tool_use_id"].is_null();
    match event["type"].as_str() {
        Some("system") => {
            if event["subtype"] == "api_retry" && event["error_status"] == 429 {
                account.retry = event["retry_delay_ms"].as_u64().map(Duration::from_millis);
            }
        }
        Some("assistant") if own => message(account, event),
        Some("rate_limit_event") => {
            let told = &event["rate_limit_info"];
            let reset = told["resetsAt"].as_i64().and_then(|second| jiff::Timestamp::from_second(second).ok());
            if told["status"] == "rejected" {
                account.reset = reset.map(Reset::At);
            }
        }
        Some("result") => result(account, event),
        Some("assistant" | "user" | "stream_event") => {}
        _ => return false,
    }
    // For a missing conversation, the result only repeats the requested name.
    if event["type"] != "result" {
        account.name(event["session_id"].as_str());
    }
    true
}

fn message(account: &mut Account, event: &Value) {
    let message = &event["message"];
    // The result repeats the agent's own error messages.
    if message["model"] == "<synthetic>" || event["is_api_error_message"] == true {
        return;
    }
    for part in message["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text") => account.say_paragraph(message["id"].as_str(), part["text"].as_str().unwrap_or_default()),
            Some("tool_use" | "server_tool_use") => {
                account.call(&line::title(part["name"].as_str().unwrap_or("a tool"), &part["input"]));
            }
            _ => {}
        }
    }
}

fn result(account: &mut Account, event: &Value) {
    count(account, event);
    let said = event["result"].as_str();
    let errors = event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let errors: Vec<&str> = errors.collect();
    let words = said.filter(|said| !said.is_empty()).map_or_else(|| errors.join("; "), str::to_owned);
    let (subtype, reason) = (event["subtype"].as_str(), event["terminal_reason"].as_str());
    let failed = event["is_error"] != false;
    account.close = Some(match (event["stop_reason"].as_str(), event["api_error"].as_str()) {
        _ if subtype == Some("error_max_turns") || reason == Some("max_turns") => {
            Close::Failed(cause::of_fault(Fault::OutOfTurns, &words))
        }
        (_, Some("max_output_tokens")) => Close::Failed(cause::of_fault(Fault::OutOfTokens, &words)),
        (Some("max_tokens" | "model_context_window_exceeded"), _) => {
            Close::Failed(cause::of_fault(Fault::OutOfTokens, "the model's answer was cut off at its limit of tokens"))
        }
        (Some("refusal"), _) => Close::Failed(cause::of_fault(Fault::Refused, &words)),
        (_, Some("connection_failed")) => Close::Failed(cause::of_fault(Fault::Outage, &words)),
        _ if failed => Close::Failed(failure(account, event, &words)),
        _ if subtype != Some("success") || reason.is_some_and(|reason| reason != "completed") => {
            let why = reason.or(subtype).unwrap_or("it does not say why");
            Close::Failed(cause::of_fault(Fault::GaveUp, &format!("the agent ended its turn early: {why}")))
        }
        _ => Close::Done(said.map(str::to_owned)),
    });
}

fn failure(account: &mut Account, event: &Value, words: &str) -> Trouble {
    let failure = match event["api_error_status"].as_u64() {
        Some(status) => cause::of_status(status, words, account.retry),
        None => cause::of_words(words),
    };
    match (failure, account.reset.take()) {
        (Trouble::Limited { said, .. }, Some(reset)) => Trouble::Limited { said, reset: Some(reset) },
        (failure, _) => failure,
    }
}

/// Counts the usage of all models since the last result. Older versions report only the main model that way, and the others
/// as part of a total.
fn count(account: &mut Account, event: &Value) {
    if let Some(since) = of_models(&event["model_usage_since_last_result"]) {
        account.usage = account.usage.plus(since);
        return;
    }
    let told = &event["usage"];
    let number = |key: &str| told[key].as_u64().unwrap_or(0);
    let cached = number("cache_read_input_tokens");
    let fresh = number("input_tokens").saturating_add(number("cache_creation_input_tokens"));
    let main = Usage { input: fresh.saturating_add(cached), cached, output: number("output_tokens"), cost: None };
    // An error without a turn reports a cost of zero.
    let cost = event["total_cost_usd"].as_f64().and_then(Cost::of_dollars).filter(|cost| cost.0 > 0);
    let before = match account.span {
        Span::Either(tokens) => tokens,
        Span::Turn | Span::Conversation => 0,
    };
    match of_models(&event["modelUsage"]).filter(|all| all.tokens() > 0) {
        Some(all) => {
            account.usage = Usage { cost: all.cost.or(cost), ..all };
            let least = if told.is_object() { main.tokens() } else { 1 };
            account.span = Span::Either(before.saturating_add(least));
        }
        // Without models, the cost is a total.
        None => account.usage = Usage { cost: cost.or(account.usage.cost), ..account.usage.plus(main) },
    }
}

fn of_models(told: &Value) -> Option<Usage> {
    Some(told.as_object()?.values().fold(Usage::default(), |sum, model| {
        let number = |key: &str| model[key].as_u64().unwrap_or(0);
        let cached = number("cacheReadInputTokens");
        let fresh = number("inputTokens").saturating_add(number("cacheCreationInputTokens"));
        let cost = model["costUSD"].as_f64().and_then(Cost::of_dollars);
        sum.plus(Usage { input: fresh.saturating_add(cached), cached, output: number("outputTokens"), cost })
    }))
}
