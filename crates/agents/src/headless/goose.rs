//! goose: `goose run --output-format stream-json`.
//!
//! Text of the model comes in many small messages with one id. If the model fails, goose reports it as a message too and
//! exits as usual: only its own messages have no `inference`. Usage is that of the whole conversation.

use serde_json::Value;
use windlass_engine::{Fault, Usage};

use super::account::{Account, Close, Span};
use super::words::{Place, Words, has_option};
use super::{cause, line};
use crate::trouble::Trouble;
use crate::{Access, Setup};

/// The only mode without questions uses no tools at all. Hint files in the working directory are ignored.
pub(super) const LOOKING: &[(&str, &str)] = &[("GOOSE_MODE", "chat"), ("CONTEXT_FILE_NAMES", "[]")];

/// The prefixes of goose's own messages that replace the model's.
const FAILED: [&str; 3] = ["Ran into this error:", "Ran into this error trying to compact:", "Network error:"];
const EMPTY: &str = "The model returned an empty response";

pub(super) fn words(place: Place<'_>, setup: &Setup) -> Words {
    let mut words =
        Words::new(&["run", "-q", "--with-builtin", "developer", "--output-format", "stream-json"], &["-i", "-"]);
    if setup.access == Access::ReadOnly && !has_option(setup, &["--no-profile"]) {
        // One of goose's extensions lists the skills of the working directory to the model.
        words.add(&["--no-profile"]);
    }
    words.add_conversation(place, "--name", &["--resume", "--name"]);
    words.add_model("--model", setup);
    words
}

pub(super) fn read(account: &mut Account, event: &Value) -> bool {
    match event["type"].as_str() {
        Some("message") => message(account, &event["message"]),
        Some("error") => {
            let words = event["error"].as_str().unwrap_or("it failed, and does not say why");
            let is_general = |trouble: &Trouble| matches!(trouble, Trouble::Failed { fault: Fault::Failed, .. });
            if !matches!(&account.close, Some(Close::Failed(trouble)) if !is_general(trouble)) {
                account.fail(cause::of_words(words));
            }
        }
        Some("complete") => {
            let number = |key: &str| event[key].as_u64().unwrap_or(0);
            let (input, cached) = (number("input_tokens"), number("cache_read_input_tokens"));
            account.usage = Usage { input, cached, output: number("output_tokens"), cost: None };
            account.span = Span::Conversation;
            account.close.get_or_insert(Close::Done(None));
        }
        Some("notification" | "model_change") => {}
        _ => return false,
    }
    true
}

fn message(account: &mut Account, message: &Value) {
    if message["role"] != "assistant" {
        return;
    }
    let (id, metadata) = (message["id"].as_str(), &message["metadata"]);
    for part in message["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                if metadata["inference"].is_null() && FAILED.iter().any(|words| text.starts_with(words)) {
                    account.fail(cause::of_words(text));
                } else if metadata["inference"].is_null() && text.starts_with(EMPTY) {
                    account.fail(cause::of_fault(Fault::Empty, text));
                } else {
                    account.close = None;
                    account.say(id, text);
                }
            }
            Some("toolRequest") => {
                account.close = None;
                let call = &part["toolCall"]["value"];
                account.call(&line::title(call["name"].as_str().unwrap_or("a tool"), &call["arguments"]));
            }
            Some("error") => {
                let words = part["message"].as_str().unwrap_or_default();
                account.fail(match part["kind"].as_str() {
                    Some("authentication") => cause::of_status(401, words, None),
                    _ => cause::of_words(words),
                });
            }
            _ => {}
        }
    }
    if metadata["outputTokenLimitReached"] == true {
        account.fail(cause::of_fault(Fault::OutOfTokens, "the model's answer was cut off at its limit of tokens"));
    }
}
