//! goose: `goose run --output-format stream-json`.
//!
//! Text of the model comes in many small messages with one id. If the model fails, goose reports it as a message too and
//! exits as usual: only its own messages have no `inference`. Usage is that of the whole conversation.

use serde_json::Value;
use windlass_engine::{AgentUsage, TurnFailure};

use super::command_line::{CommandLine, PromptTarget, has_option};
use super::turn_accumulator::{StreamEnd, TurnAccumulator, UsageScope};
use super::{failure_cause, stream_line};
use crate::failure::AgentFailure;
use crate::{AgentAccess, AgentSetup};

/// The only mode without questions uses no tools at all. Hint files in the working directory are ignored.
pub(super) const READ_ONLY_ENVIRONMENT: &[(&str, &str)] = &[("GOOSE_MODE", "chat"), ("CONTEXT_FILE_NAMES", "[]")];

/// The prefixes of goose's own messages that replace the model's.
const FAILURE_PREFIXES: [&str; 3] =
    ["Ran into this error:", "Ran into this error trying to compact:", "Network error:"];
const EMPTY_RESPONSE_PREFIX: &str = "The model returned an empty response";

pub(super) fn build_command_line(place: PromptTarget<'_>, setup: &AgentSetup) -> CommandLine {
    let mut words =
        CommandLine::new(&["run", "-q", "--with-builtin", "developer", "--output-format", "stream-json"], &["-i", "-"]);
    if setup.access == AgentAccess::ReadOnly && !has_option(setup, &["--no-profile"]) {
        // One of goose's extensions lists the skills of the working directory to the model.
        words.add_arguments(&["--no-profile"]);
    }
    words.add_conversation(place, "--name", &["--resume", "--name"]);
    words.add_model("--model", setup);
    words
}

pub(super) fn read_event(turn: &mut TurnAccumulator, event: &Value) -> bool {
    match event["type"].as_str() {
        Some("message") => read_message(turn, &event["message"]),
        Some("error") => {
            let words = event["error"].as_str().unwrap_or("it failed without a reason");
            let is_general =
                |trouble: &AgentFailure| matches!(trouble, AgentFailure::Failed { fault: TurnFailure::Failed, .. });
            if !matches!(&turn.end, Some(StreamEnd::Failed(trouble)) if !is_general(trouble)) {
                turn.record_failure(failure_cause::failure_from_message(words));
            }
        }
        Some("complete") => {
            let number = |key: &str| event[key].as_u64().unwrap_or(0);
            let (input, cached) = (number("input_tokens"), number("cache_read_input_tokens"));
            turn.usage = AgentUsage { input, cached, output: number("output_tokens"), cost: None };
            turn.span = UsageScope::Conversation;
            turn.end.get_or_insert(StreamEnd::Done(None));
        }
        Some("notification" | "model_change") => {}
        _ => return false,
    }
    true
}

fn read_message(turn: &mut TurnAccumulator, message: &Value) {
    if message["role"] != "assistant" {
        return;
    }
    let (id, metadata) = (message["id"].as_str(), &message["metadata"]);
    for part in message["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                if metadata["inference"].is_null() && FAILURE_PREFIXES.iter().any(|words| text.starts_with(words)) {
                    turn.record_failure(failure_cause::failure_from_message(text));
                } else if metadata["inference"].is_null() && text.starts_with(EMPTY_RESPONSE_PREFIX) {
                    turn.record_failure(failure_cause::failure_from_fault(TurnFailure::Empty, text));
                } else {
                    turn.end = None;
                    turn.add_message_text(id, text);
                }
            }
            Some("toolRequest") => {
                turn.end = None;
                let call = &part["toolCall"]["value"];
                turn.record_tool_call(&stream_line::format_tool_title(
                    call["name"].as_str().unwrap_or("a tool"),
                    &call["arguments"],
                ));
            }
            Some("error") => {
                let words = part["message"].as_str().unwrap_or_default();
                turn.record_failure(match part["kind"].as_str() {
                    Some("authentication") => failure_cause::failure_from_status(401, words, None),
                    _ => failure_cause::failure_from_message(words),
                });
            }
            _ => {}
        }
    }
    if metadata["outputTokenLimitReached"] == true {
        turn.record_failure(failure_cause::failure_from_fault(
            TurnFailure::OutOfTokens,
            "the model's answer was cut off at its limit of tokens",
        ));
    }
}
