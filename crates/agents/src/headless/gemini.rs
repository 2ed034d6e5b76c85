//! Gemini CLI: `gemini -o stream-json`.
//!
//! It echoes the whole prompt. A truncated answer, or one that the service refused, looks like success.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;
use windlass_engine::AgentUsage;

use super::command_line::{CommandLine, PromptTarget, has_option};
use super::turn_accumulator::{StreamEnd, TurnAccumulator};
use super::{failure_cause, stream_line};
use crate::failure::AgentFailure;
use crate::{AgentAccess, AgentSetup};

/// Options with which a user sets the permissions.
const PERMISSION_OPTIONS: [&str; 3] = ["-y", "--yolo", "--approval-mode"];

/// Points to a missing file: Gemini CLI applies the settings of its directory only if the user has trusted that before.
pub(super) const READ_ONLY_ENVIRONMENT: &[(&str, &str)] = &[("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "/dev/null/none")];

static STATUS_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""code": ?(\d{3})\b"#).expect("a pattern"));

pub(super) fn build_command_line(place: PromptTarget<'_>, setup: &AgentSetup) -> CommandLine {
    let mut words = CommandLine::new(&["--skip-trust", "-o", "stream-json"], &[]);
    if !has_option(setup, &PERMISSION_OPTIONS) {
        match setup.access {
            AgentAccess::Full => words.add_arguments(&["-y"]),
            // Without a user to ask, this mode offers no tools that need an approval.
            AgentAccess::ReadOnly => words.add_arguments(&["--approval-mode", "default"]),
        }
    }
    words.add_conversation(place, "--session-id", &["--resume"]);
    words.add_model("-m", setup);
    words
}

pub(super) fn read_event(turn: &mut TurnAccumulator, event: &Value) -> bool {
    match event["type"].as_str() {
        Some("init") => turn.record_conversation(event["session_id"].as_str()),
        Some("message") => {
            if event["role"] == "assistant" {
                turn.add_message_text(Some(""), event["content"].as_str().unwrap_or_default());
            }
        }
        Some("tool_use") => {
            turn.record_tool_call(&stream_line::format_tool_title(
                event["tool_name"].as_str().unwrap_or("a tool"),
                &event["parameters"],
            ));
        }
        Some("tool_result") => {}
        Some("error") => {
            if event["severity"] != "warning" {
                turn.error = event["message"].as_str().map(str::to_owned);
            }
        }
        Some("result") => {
            let number = |key: &str| event["stats"][key].as_u64().unwrap_or(0);
            let (input, cached) = (number("input_tokens"), number("cached"));
            turn.usage = AgentUsage { input, cached, output: number("output_tokens"), cost: None };
            turn.end = Some(match event["status"] == "success" {
                true => StreamEnd::Done(None),
                false => {
                    let words = event["error"]["message"].as_str().or(turn.error.as_deref());
                    StreamEnd::Failed(classify_failure(words.unwrap_or("it failed without a reason")))
                }
            });
        }
        _ => return false,
    }
    true
}

fn classify_failure(words: &str) -> AgentFailure {
    let status = STATUS_REGEX.captures(words).and_then(|found| found[1].parse().ok());
    status.map_or_else(
        || failure_cause::failure_from_message(words),
        |status| failure_cause::failure_from_status(status, words, None),
    )
}
