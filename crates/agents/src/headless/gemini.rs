//! Gemini CLI: `gemini -o stream-json`.
//!
//! It echoes the whole prompt. A truncated answer, or one that the service refused, looks like success.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;
use windlass_engine::Usage;

use super::account::{Account, Close};
use super::words::{Place, Words, has_option};
use super::{cause, line};
use crate::trouble::Trouble;
use crate::{Access, Setup};

/// Options with which a user sets the permissions.
const PERMISSIONS: [&str; 3] = ["-y", "--yolo", "--approval-mode"];

/// Points to a missing file: Gemini CLI applies the settings of its directory only if the user has trusted that before.
pub(super) const LOOKING: &[(&str, &str)] = &[("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "/dev/null/none")];

static STATUS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""code": ?(\d{3})\b"#).expect("a pattern"));

pub(super) fn words(place: Place<'_>, setup: &Setup) -> Words {
    let mut words = Words::new(&["--skip-trust", "-o", "stream-json"], &[]);
    if !has_option(setup, &PERMISSIONS) {
        match setup.access {
            Access::Full => words.add(&["-y"]),
            // Without a user to ask, this mode offers no tools that need an approval.
            Access::ReadOnly => words.add(&["--approval-mode", "default"]),
        }
    }
    words.add_conversation(place, "--session-id", &["--resume"]);
    words.add_model("-m", setup);
    words
}

pub(super) fn read(account: &mut Account, event: &Value) -> bool {
    match event["type"].as_str() {
        Some("init") => account.name(event["session_id"].as_str()),
        Some("message") => {
            if event["role"] == "assistant" {
                account.say(Some(""), event["content"].as_str().unwrap_or_default());
            }
        }
        Some("tool_use") => {
            account.call(&line::title(event["tool_name"].as_str().unwrap_or("a tool"), &event["parameters"]));
        }
        Some("tool_result") => {}
        Some("error") => {
            if event["severity"] != "warning" {
                account.error = event["message"].as_str().map(str::to_owned);
            }
        }
        Some("result") => {
            let number = |key: &str| event["stats"][key].as_u64().unwrap_or(0);
            let (input, cached) = (number("input_tokens"), number("cached"));
            account.usage = Usage { input, cached, output: number("output_tokens"), cost: None };
            account.close = Some(match event["status"] == "success" {
                true => Close::Done(None),
                false => {
                    let words = event["error"]["message"].as_str().or(account.error.as_deref());
                    Close::Failed(failure(words.unwrap_or("it failed, and does not say why")))
                }
            });
        }
        _ => return false,
    }
    true
}

fn failure(words: &str) -> Trouble {
    let status = STATUS.captures(words).and_then(|found| found[1].parse().ok());
    status.map_or_else(|| cause::of_words(words), |status| cause::of_status(status, words, None))
}
