//! The JSON response that a hook writes to its standard output.
//!
//! One schema for every dialect. A field of two words has a camelCase and a snake_case spelling; `null` counts as absent,
//! and a field that occurs twice makes a bad response.
//!
//! | dialect | fields |
//! | --- | --- |
//! | a step of a pipeline | `status`, `message`, `context`, `remediation_prompt` |
//! | a stop hook | `action`, `reason`, `nextPrompt`, `checkpointData`, `metadata` |
//! | an agent's own hooks | `decision`, `reason`, `continue`, `stopReason`, `systemMessage`, `suppressOutput`, `hookSpecificOutput` |
//! | a hook of an event | `actions` |
//!
//! Invariants:
//! - Output that is no JSON object is text, not a bad response.
//! - A known field with an unknown value is an error: it could have meant a block.
//! - A response that allows and blocks at once is bad. `continue: false` is no verdict on the work, so it contradicts nothing.
//!
//! Not here: the effect of a response at a point (`report`), whether its actions can be carried out (`engine`).

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use thiserror::Error;
use windlass_engine::{ActionRequest, EngineLimits};
use windlass_expr::{FieldError, find_list_value, read_json};

/// The most actions of a response.
pub const MAX_ACTIONS: usize = 64;
/// The longest response.
pub const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// The response of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookResponse {
    pub status: Option<ResponseStatus>,
    pub message: Option<String>,
    #[serde(deserialize_with = "null_is_absent")]
    pub context: Map<String, Value>,
    #[serde(alias = "remediation_prompt")]
    pub remediation_prompt: Option<String>,
    pub action: Option<ResponseAction>,
    pub reason: Option<String>,
    #[serde(alias = "next_prompt")]
    pub next_prompt: Option<String>,
    #[serde(alias = "checkpoint_data", deserialize_with = "null_is_absent")]
    pub checkpoint_data: Map<String, Value>,
    #[serde(deserialize_with = "null_is_absent")]
    pub metadata: Map<String, Value>,
    pub decision: Option<ResponseDecision>,
    /// Whether the agent may go on at all.
    #[serde(rename = "continue")]
    pub goes_on: Option<bool>,
    #[serde(alias = "stop_reason")]
    pub stop_reason: Option<String>,
    #[serde(alias = "system_message")]
    pub system_message: Option<String>,
    #[serde(alias = "suppress_output", deserialize_with = "null_is_absent")]
    pub suppress_output: bool,
    #[serde(rename = "hookSpecificOutput", alias = "hook_specific_output", deserialize_with = "null_is_absent")]
    pub specific: HookSpecificOutput,
    #[serde(deserialize_with = "null_is_absent")]
    pub actions: Vec<ActionRequest>,
    /// Fields without a meaning.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// The fields that belong to one kind of an agent's own hooks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookSpecificOutput {
    #[serde(rename = "hookEventName", alias = "hook_event_name")]
    pub event: Option<String>,
    #[serde(rename = "permissionDecision", alias = "permission_decision")]
    pub permission: Option<ResponsePermission>,
    #[serde(rename = "permissionDecisionReason", alias = "permission_decision_reason")]
    pub permission_reason: Option<String>,
    #[serde(alias = "additional_context")]
    pub additional_context: Option<String>,
    #[serde(alias = "updated_input")]
    pub updated_input: Option<Map<String, Value>>,
    /// Any JSON value.
    #[serde(rename = "updatedToolOutput", alias = "updated_tool_output")]
    pub updated_output: Option<Value>,
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    Success,
    Failure,
    Skip,
}

/// The action after the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseAction {
    Complete,
    Continue,
    Escalate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseDecision {
    #[serde(alias = "approve")]
    Allow,
    #[serde(alias = "deny")]
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponsePermission {
    Allow,
    Deny,
    Ask,
    /// No opinion, as if the hook were not there.
    Defer,
}

impl HookResponse {
    /// Returns the paths of fields without a meaning.
    pub fn unknown_fields(&self) -> Vec<String> {
        let inner = self.specific.unknown.keys().map(|field| format!("hookSpecificOutput.{field}"));
        self.unknown.keys().cloned().chain(inner).collect()
    }
}

fn null_is_absent<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Why a JSON object is not a valid response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HookResponseError {
    #[error("{0}")]
    Unreadable(FieldError),
    #[error("{yes} and {no} contradict each other; say one of them")]
    Contradiction { yes: String, no: String },
    #[error("it has {0} actions; at most {MAX_ACTIONS} are allowed")]
    TooManyActions(usize),
    #[error("it has {found} bytes; at most {MAX_RESPONSE_BYTES} are allowed")]
    TooLong { found: usize },
    #[error("it is longer than the part that is kept; at most {MAX_RESPONSE_BYTES} bytes are allowed")]
    Cut,
    #[error("it has {found} levels of lists and objects; at most {} are allowed", EngineLimits::VALUE_DEPTH)]
    TooDeep { found: usize },
}

/// Parses standard output. Returns `None` if it is no JSON object.
pub fn parse_response(stdout: &str) -> Result<Option<HookResponse>, HookResponseError> {
    let text = trim_byte_order_mark(stdout);
    if !text.starts_with('{') {
        return Ok(None);
    }
    // `RawValue` checks without recursion, and so tells nested JSON from text that is no JSON.
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return if stdout.len() > MAX_RESPONSE_BYTES && is_unfinished_object(text) {
            Err(HookResponseError::Cut)
        } else {
            Ok(None)
        };
    }
    if text.len() > MAX_RESPONSE_BYTES {
        return Err(HookResponseError::TooLong { found: text.len() });
    }
    let found = nesting_depth(text);
    if found > EngineLimits::VALUE_DEPTH {
        return Err(HookResponseError::TooDeep { found });
    }
    let mut from = serde_json::Deserializer::from_str(text);
    let mut said: HookResponse = read_json(&mut from).map_err(|error| {
        // Errors from a `Value` are clearer, but a `Value` cannot report duplicate fields.
        let of_value =
            serde_json::from_str::<Value>(text).ok().and_then(|value| read_json::<HookResponse>(value).err());
        HookResponseError::Unreadable(of_value.unwrap_or(error))
    })?;
    if !said.actions.is_empty() || said.specific != HookSpecificOutput::default() {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let specific = ["hookSpecificOutput", "hook_specific_output"].map(|name| &value[name]);
        let path = match find_list_value(value["actions"].as_array().into_iter().flatten()) {
            Some(at) => Some(format!("actions[{at}]")),
            None => find_list_value(specific).map(|_| "hookSpecificOutput".to_owned()),
        };
        if let Some(path) = path {
            let cause = "expected an object, found a list".to_owned();
            return Err(HookResponseError::Unreadable(FieldError { path, cause }));
        }
    }
    if said.actions.len() > MAX_ACTIONS {
        return Err(HookResponseError::TooManyActions(said.actions.len()));
    }
    for (at, action) in said.actions.iter_mut().enumerate() {
        let wrong = |field: &str, cause: String| {
            Err(HookResponseError::Unreadable(FieldError { path: format!("actions[{at}].{field}"), cause }))
        };
        if action.kind.trim().is_empty() || action.kind.len() > EngineLimits::LABEL_BYTES {
            return wrong("type", format!("expected a name of at most {} bytes", EngineLimits::LABEL_BYTES));
        }
        match action.payload {
            Value::Object(_) => {}
            Value::Null => action.payload = Value::Object(Map::new()),
            _ => return wrong("payload", "expected an object".to_owned()),
        }
    }
    check_agreement(&said)?;
    Ok(Some(said))
}

/// Returns why text that begins like a JSON object is no response, if it may have been meant as one. Many programs print
/// objects one after another; those count only if they resemble a response.
pub fn explain_near_miss(stdout: &str) -> Option<String> {
    let text = trim_byte_order_mark(stdout);
    let begins = text.strip_prefix('{')?.trim_start().starts_with('"');
    if !begins && !text.ends_with('}') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next()? {
        Err(error) => Some(error.to_string()),
        Ok(first) if text[values.byte_offset()..].trim().is_empty() || !resembles_response(&first) => None,
        Ok(_) => Some("something else follows it".to_owned()),
    }
}

fn resembles_response(value: &Value) -> bool {
    let says = |field: &str, words: &[&str]| value[field].as_str().is_some_and(|said| words.contains(&said));
    says("status", &["success", "failure", "skip"])
        || says("action", &["complete", "continue", "escalate"])
        || value["decision"].is_string()
        || value["continue"].is_boolean()
        || value["actions"].is_array()
        || value["hookSpecificOutput"].is_object()
}

/// Trims blanks, and the byte order mark that some programs write.
fn trim_byte_order_mark(stdout: &str) -> &str {
    stdout.trim().trim_start_matches('\u{feff}').trim_start()
}

/// Returns whether a text begins with an object that is longer than captured output. A line of JSON among many ends
/// earlier, and is no response.
fn is_unfinished_object(text: &str) -> bool {
    let begin = &text.as_bytes()[..text.len().min(MAX_RESPONSE_BYTES / 4)];
    let first = serde_json::Deserializer::from_slice(begin).into_iter::<IgnoredAny>().next();
    first.is_some_and(|first| first.is_err_and(|error| error.is_eof()))
}

/// Checks that the fields of all dialects agree: all allow, or all block.
fn check_agreement(said: &HookResponse) -> Result<(), HookResponseError> {
    let (mut yes, mut no) = (None, None);
    let mut hear = |field: &str, word: Option<(&str, bool)>| {
        let Some((word, agrees)) = word else { return };
        let side = if agrees { &mut yes } else { &mut no };
        side.get_or_insert_with(|| format!("`{field}` \"{word}\""));
    };
    let status = |status| match status {
        ResponseStatus::Success => ("success", true),
        ResponseStatus::Skip => ("skip", true),
        ResponseStatus::Failure => ("failure", false),
    };
    let step = |step| match step {
        ResponseAction::Complete => ("complete", true),
        ResponseAction::Continue => ("continue", false),
        ResponseAction::Escalate => ("escalate", false),
    };
    let decision = |decision| match decision {
        ResponseDecision::Allow => ("allow", true),
        ResponseDecision::Block => ("block", false),
    };
    let permission = |permission| match permission {
        ResponsePermission::Allow => Some(("allow", true)),
        ResponsePermission::Deny => Some(("deny", false)),
        ResponsePermission::Ask => Some(("ask", false)),
        ResponsePermission::Defer => None,
    };
    hear("status", said.status.map(status));
    hear("action", said.action.map(step));
    hear("decision", said.decision.map(decision));
    hear("permissionDecision", said.specific.permission.and_then(permission));
    match (yes, no) {
        (Some(yes), Some(no)) => Err(HookResponseError::Contradiction { yes, no }),
        _ => Ok(()),
    }
}

/// Returns the nesting depth of lists and objects, in valid JSON.
fn nesting_depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
