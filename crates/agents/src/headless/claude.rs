//! Claude Code: `claude -p --output-format stream-json`.
//!
//! The last line always says `subtype: success`; `is_error`, `terminal_reason` and the model's `stop_reason` tell the truth.
//! The cost is that of the whole conversation, with the part since the last result beside it. Older versions omit the part,
//! and still older ones report the cost of their process alone in the same field.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{AgentUsage, TurnFailure, UsdCost};

use super::command_line::{CommandLine, PromptTarget, has_option};
use super::turn_accumulator::{StreamEnd, TurnAccumulator, UsageScope};
use super::{failure_cause, stream_line};
use crate::failure::AgentFailure;
use crate::rate_limit_reset::RateLimitReset;
use crate::{AgentAccess, AgentSetup};

/// Options with which a user sets the permissions.
const PERMISSION_OPTIONS: [&str; 2] = ["--permission-mode", "--dangerously-skip-permissions"];

pub(super) fn build_command_line(place: PromptTarget<'_>, setup: &AgentSetup) -> CommandLine {
    let mut words = CommandLine::new(&["-p", "--output-format", "stream-json", "--verbose"], &[]);
    if !has_option(setup, &PERMISSION_OPTIONS) {
        match setup.access {
            AgentAccess::Full => words.add_arguments(&["--permission-mode", "bypassPermissions"]),
            // Without a user to ask, these tools would be denied anyway. The option denies them even if the agent's settings allow them.
            AgentAccess::ReadOnly => {
                words.add_arguments(&["--permission-mode", "default", "--disallowedTools=Edit,Write,NotebookEdit"])
            }
        }
    }
    if setup.access == AgentAccess::ReadOnly {
        // The working directory is under review, so its hooks, servers and rules must not take effect.
        if !has_option(setup, &["--setting-sources"]) {
            words.add_arguments(&["--setting-sources", "user"]);
        }
        if !has_option(setup, &["--strict-mcp-config"]) {
            words.add_arguments(&["--strict-mcp-config"]);
        }
    }
    words.add_conversation(place, "--session-id", &["--resume"]);
    words.add_model("--model", setup);
    words
}

pub(super) fn read_event(turn: &mut TurnAccumulator, event: &Value) -> bool {
    let own = event["parent_tool_use_id"].is_null();
    match event["type"].as_str() {
        Some("system") => {
            if event["subtype"] == "api_retry" && event["error_status"] == 429 {
                turn.retry = event["retry_delay_ms"].as_u64().map(Duration::from_millis);
            }
        }
        Some("assistant") if own => read_message(turn, event),
        Some("rate_limit_event") => {
            let limit = &event["rate_limit_info"];
            let reset = limit["resetsAt"].as_i64().and_then(|second| jiff::Timestamp::from_second(second).ok());
            if limit["status"] == "rejected" {
                turn.reset = reset.map(RateLimitReset::At);
            }
        }
        Some("result") => read_result(turn, event),
        Some("assistant" | "user" | "stream_event") => {}
        _ => return false,
    }
    // For a missing conversation, the result only repeats the requested name.
    if event["type"] != "result" {
        turn.record_conversation(event["session_id"].as_str());
    }
    true
}

fn read_message(turn: &mut TurnAccumulator, event: &Value) {
    let message = &event["message"];
    // The result repeats the agent's own error messages.
    if message["model"] == "<synthetic>" || event["is_api_error_message"] == true {
        return;
    }
    for part in message["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text") => {
                turn.add_message_paragraph(message["id"].as_str(), part["text"].as_str().unwrap_or_default())
            }
            Some("tool_use" | "server_tool_use") => {
                turn.record_tool_call(&stream_line::format_tool_title(
                    part["name"].as_str().unwrap_or("a tool"),
                    &part["input"],
                ));
            }
            _ => {}
        }
    }
}

fn read_result(turn: &mut TurnAccumulator, event: &Value) {
    count_result_usage(turn, event);
    let said = event["result"].as_str();
    let errors = event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let errors: Vec<&str> = errors.collect();
    let words = said.filter(|said| !said.is_empty()).map_or_else(|| errors.join("; "), str::to_owned);
    let (subtype, reason) = (event["subtype"].as_str(), event["terminal_reason"].as_str());
    let failed = event["is_error"] != false;
    turn.end = Some(match (event["stop_reason"].as_str(), event["api_error"].as_str()) {
        _ if subtype == Some("error_max_turns") || reason == Some("max_turns") => {
            StreamEnd::Failed(failure_cause::failure_from_fault(TurnFailure::OutOfTurns, &words))
        }
        (_, Some("max_output_tokens")) => {
            StreamEnd::Failed(failure_cause::failure_from_fault(TurnFailure::OutOfTokens, &words))
        }
        (Some("max_tokens" | "model_context_window_exceeded"), _) => {
            StreamEnd::Failed(failure_cause::failure_from_fault(
                TurnFailure::OutOfTokens,
                "the model's answer was cut off at its limit of tokens",
            ))
        }
        (Some("refusal"), _) => StreamEnd::Failed(failure_cause::failure_from_fault(TurnFailure::Refused, &words)),
        (_, Some("connection_failed")) => {
            StreamEnd::Failed(failure_cause::failure_from_fault(TurnFailure::Outage, &words))
        }
        _ if failed => StreamEnd::Failed(classify_failure(turn, event, &words)),
        _ if subtype != Some("success") || reason.is_some_and(|reason| reason != "completed") => {
            let why = reason.or(subtype).unwrap_or("it gives no reason");
            StreamEnd::Failed(failure_cause::failure_from_fault(
                TurnFailure::GaveUp,
                &format!("the agent ended its turn early: {why}"),
            ))
        }
        _ => StreamEnd::Done(said.map(str::to_owned)),
    });
}

fn classify_failure(turn: &mut TurnAccumulator, event: &Value, words: &str) -> AgentFailure {
    let failure = match event["api_error_status"].as_u64() {
        Some(status) => failure_cause::failure_from_status(status, words, turn.retry),
        None => failure_cause::failure_from_message(words),
    };
    match (failure, turn.reset.take()) {
        (AgentFailure::RateLimited { said, .. }, Some(reset)) => AgentFailure::RateLimited { said, reset: Some(reset) },
        (failure, _) => failure,
    }
}

/// Counts the usage of all models since the last result. Older versions report only the main model that way, and the others
/// as part of a total.
fn count_result_usage(turn: &mut TurnAccumulator, event: &Value) {
    if let Some(since) = sum_model_usage(&event["model_usage_since_last_result"]) {
        turn.usage = turn.usage.saturating_add(since);
        return;
    }
    let usage = &event["usage"];
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    let cached = number("cache_read_input_tokens");
    let fresh = number("input_tokens").saturating_add(number("cache_creation_input_tokens"));
    let main = AgentUsage { input: fresh.saturating_add(cached), cached, output: number("output_tokens"), cost: None };
    // An error without a turn reports a cost of zero.
    let cost = event["total_cost_usd"].as_f64().and_then(UsdCost::from_dollars).filter(|cost| cost.0 > 0);
    let before = match turn.span {
        UsageScope::TurnOrConversation(tokens) => tokens,
        UsageScope::Turn | UsageScope::Conversation => 0,
    };
    match sum_model_usage(&event["modelUsage"]).filter(|all| all.total_tokens() > 0) {
        Some(all) => {
            turn.usage = AgentUsage { cost: all.cost.or(cost), ..all };
            let least = if usage.is_object() { main.total_tokens() } else { 1 };
            turn.span = UsageScope::TurnOrConversation(before.saturating_add(least));
        }
        // Without models, the cost is a total.
        None => turn.usage = AgentUsage { cost: cost.or(turn.usage.cost), ..turn.usage.saturating_add(main) },
    }
}

fn sum_model_usage(models: &Value) -> Option<AgentUsage> {
    Some(models.as_object()?.values().fold(AgentUsage::default(), |sum, model| {
        let number = |key: &str| model[key].as_u64().unwrap_or(0);
        let cached = number("cacheReadInputTokens");
        let fresh = number("inputTokens").saturating_add(number("cacheCreationInputTokens"));
        let cost = model["costUSD"].as_f64().and_then(UsdCost::from_dollars);
        sum.saturating_add(AgentUsage {
            input: fresh.saturating_add(cached),
            cached,
            output: number("outputTokens"),
            cost,
        })
    }))
}
