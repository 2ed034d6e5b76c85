//! The answer object: what a hook says in JSON on its standard output.
//!
//! One schema for every dialect. A field of two words is read in camelCase and in snake_case; `null` is as good as
//! absent.
//!
//! | dialect | fields |
//! | --- | --- |
//! | a step of a pipeline | `status`, `message`, `context`, `remediation_prompt` |
//! | a stop hook | `action`, `reason`, `nextPrompt`, `checkpointData`, `metadata` |
//! | an agent's own hooks | `decision`, `reason`, `continue`, `stopReason`, `systemMessage`, `suppressOutput`, `hookSpecificOutput` |
//! | a hook of an event | `actions` |
//!
//! Invariants:
//! - What is no JSON object is text, not a bad answer.
//! - A known field that says something unknown is never passed over: it could have been a no.
//! - An answer that says yes and no is a bad answer. `continue: false` is no verdict on the work, so it contradicts
//!   nothing.
//!
//! Not here: what an answer means at a point (`answer`), whether its actions can be carried out (`engine`).

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use thiserror::Error;
use windlass_engine::{ActionRequest, Limits};

use crate::fields::Fields;

/// The most that an answer may ask for.
pub const ACTIONS: usize = 64;
/// The longest answer.
pub const ANSWER: usize = 256 * 1024;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    pub status: Option<Status>,
    pub message: Option<String>,
    pub context: Map<String, Value>,
    pub remediation_prompt: Option<String>,
    pub action: Option<Step>,
    pub reason: Option<String>,
    pub next_prompt: Option<String>,
    pub checkpoint_data: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub decision: Option<Decision>,
    /// `continue`: whether the agent may go on at all.
    pub goes_on: Option<bool>,
    pub stop_reason: Option<String>,
    pub system_message: Option<String>,
    pub suppress_output: bool,
    /// `hookSpecificOutput`.
    pub specific: Specific,
    pub actions: Vec<ActionRequest>,
    /// Fields that mean nothing here, by their paths.
    pub unknown: Vec<String>,
}

/// What belongs to one kind of an agent's own hooks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Specific {
    pub event: Option<String>,
    pub permission: Option<Permission>,
    pub permission_reason: Option<String>,
    pub additional_context: Option<String>,
    pub updated_input: Option<Map<String, Value>>,
    /// `updatedToolOutput`, whatever it is.
    pub updated_output: Option<Value>,
}

/// One of a few words.
pub(crate) trait Word: Copy + Sized + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Success,
    Failure,
    Skip,
}

impl Word for Status {
    const WORDS: &'static [(&'static str, Self)] =
        &[("success", Self::Success), ("failure", Self::Failure), ("skip", Self::Skip)];
}

/// What is to come after the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Complete,
    Continue,
    Escalate,
}

impl Word for Step {
    const WORDS: &'static [(&'static str, Self)] =
        &[("complete", Self::Complete), ("continue", Self::Continue), ("escalate", Self::Escalate)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Block,
}

impl Word for Decision {
    const WORDS: &'static [(&'static str, Self)] =
        &[("allow", Self::Allow), ("approve", Self::Allow), ("block", Self::Block), ("deny", Self::Block)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    Allow,
    Deny,
    Ask,
    /// Nothing is said: as if the hook were not there.
    Defer,
}

impl Word for Permission {
    const WORDS: &'static [(&'static str, Self)] =
        &[("allow", Self::Allow), ("deny", Self::Deny), ("ask", Self::Ask), ("defer", Self::Defer)];
}

/// Why a JSON object is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadAnswer {
    #[error("`{field}` is {found}; it is {wanted}")]
    Field { field: String, found: String, wanted: String },
    #[error("`{0}` and `{1}` say different things; write one of them")]
    Spellings(String, String),
    #[error("`{0}` is there twice, with different values")]
    Twice(String),
    #[error("{yes} and {no} contradict each other; say one of them")]
    Contradiction { yes: String, no: String },
    #[error("`{0}` has no `type`")]
    NoType(String),
    #[error("`{field}` has {found} {unit}; at most {most} are taken")]
    TooMuch { field: String, found: usize, unit: &'static str, most: usize },
    #[error("it has {found} bytes; at most {ANSWER} are taken")]
    TooLong { found: usize },
    #[error("{0}")]
    Unreadable(String),
    #[error("it is longer than what is kept of it; at most {ANSWER} bytes are taken")]
    Cut,
    #[error("it lies {found} lists and objects deep; at most {} are taken", Limits::NESTING)]
    TooDeep { found: usize },
}

/// Reads standard output. `None` where it is no JSON object.
pub fn parse(stdout: &str) -> Result<Option<Said>, BadAnswer> {
    let text = bare(stdout);
    if !text.starts_with('{') {
        return Ok(None);
    }
    // Checked without recursion first: what is too deep has to be told from what is no JSON.
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return if stdout.len() > ANSWER && is_unfinished(text) { Err(BadAnswer::Cut) } else { Ok(None) };
    }
    if text.len() > ANSWER {
        return Err(BadAnswer::TooLong { found: text.len() });
    }
    let found = depth(text);
    if found > Limits::NESTING {
        return Err(BadAnswer::TooDeep { found });
    }
    let Entries(entries) = serde_json::from_str(text).map_err(|error| BadAnswer::Unreadable(error.to_string()))?;
    let said = read(Fields::of(entries)?)?;
    agree(&said)?;
    Ok(Some(said))
}

/// Why text that begins like a JSON object is no answer, though it may have been meant as one. Objects one after another
/// that say nothing of an answer are what many programs write.
pub fn near_miss(stdout: &str) -> Option<String> {
    let text = bare(stdout);
    let begins = text.strip_prefix('{')?.trim_start().starts_with('"');
    if !begins && !text.ends_with('}') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next()? {
        Err(error) => Some(error.to_string()),
        Ok(first) if text[values.byte_offset()..].trim().is_empty() || !may_be_an_answer(&first) => None,
        Ok(_) => Some("something else follows it".to_owned()),
    }
}

fn may_be_an_answer(value: &Value) -> bool {
    let says = |field: &str, words: &[&str]| value[field].as_str().is_some_and(|said| words.contains(&said));
    says("status", &["success", "failure", "skip"])
        || says("action", &["complete", "continue", "escalate"])
        || value["decision"].is_string()
        || value["continue"].is_boolean()
        || value["actions"].is_array()
        || value["hookSpecificOutput"].is_object()
}

/// Without blanks, and without the mark that some programs put before UTF-8.
fn bare(stdout: &str) -> &str {
    stdout.trim().trim_start_matches('\u{feff}').trim_start()
}

/// Whether a text begins with an object that goes on for longer than whatever keeps output is sure to keep whole. A line
/// of JSON among many ends before that, and is no answer.
fn is_unfinished(text: &str) -> bool {
    let begin = &text.as_bytes()[..text.len().min(ANSWER / 4)];
    let first = serde_json::Deserializer::from_slice(begin).into_iter::<IgnoredAny>().next();
    first.is_some_and(|first| first.is_err_and(|error| error.is_eof()))
}

fn read(mut fields: Fields) -> Result<Said, BadAnswer> {
    let mut said = Said {
        status: fields.word("status")?,
        message: fields.text("message")?,
        context: fields.object("context")?.unwrap_or_default(),
        remediation_prompt: fields.text("remediationPrompt")?,
        action: fields.word("action")?,
        reason: fields.text("reason")?,
        next_prompt: fields.text("nextPrompt")?,
        checkpoint_data: fields.object("checkpointData")?.unwrap_or_default(),
        metadata: fields.object("metadata")?.unwrap_or_default(),
        decision: fields.word("decision")?,
        goes_on: fields.flag("continue")?,
        stop_reason: fields.text("stopReason")?,
        system_message: fields.text("systemMessage")?,
        suppress_output: fields.flag("suppressOutput")?.unwrap_or_default(),
        ..Said::default()
    };
    if let Some(mut inner) = fields.inner("hookSpecificOutput")? {
        said.specific = Specific {
            event: inner.text("hookEventName")?,
            permission: inner.word("permissionDecision")?,
            permission_reason: inner.text("permissionDecisionReason")?,
            additional_context: inner.text("additionalContext")?,
            updated_input: inner.object("updatedInput")?,
            updated_output: inner.value("updatedToolOutput")?,
        };
        said.unknown = inner.unknown();
    }
    for mut entry in fields.list("actions", ACTIONS)? {
        said.actions.push(request(&mut entry)?);
        said.unknown.extend(entry.unknown());
    }
    said.unknown.splice(..0, fields.unknown());
    Ok(said)
}

fn request(entry: &mut Fields) -> Result<ActionRequest, BadAnswer> {
    let kind = entry.text("type")?.filter(|kind| !kind.trim().is_empty());
    let kind = kind.ok_or_else(|| BadAnswer::NoType(entry.name().to_owned()))?;
    if kind.len() > Limits::LABEL {
        let field = format!("{}.type", entry.name());
        return Err(BadAnswer::TooMuch { field, found: kind.len(), unit: "bytes", most: Limits::LABEL });
    }
    let payload = Value::Object(entry.object("payload")?.unwrap_or_default());
    Ok(ActionRequest { kind, payload })
}

/// Whether the dialects that were used say the same: all yes, or all no.
fn agree(said: &Said) -> Result<(), BadAnswer> {
    let (mut yes, mut no) = (None, None);
    let mut hear = |field: &str, word: Option<(&str, bool)>| {
        let Some((word, agrees)) = word else { return };
        let side = if agrees { &mut yes } else { &mut no };
        side.get_or_insert_with(|| format!("`{field}` \"{word}\""));
    };
    let status = |status| match status {
        Status::Success => ("success", true),
        Status::Skip => ("skip", true),
        Status::Failure => ("failure", false),
    };
    let step = |step| match step {
        Step::Complete => ("complete", true),
        Step::Continue => ("continue", false),
        Step::Escalate => ("escalate", false),
    };
    let decision = |decision| match decision {
        Decision::Allow => ("allow", true),
        Decision::Block => ("block", false),
    };
    let permission = |permission| match permission {
        Permission::Allow => Some(("allow", true)),
        Permission::Deny => Some(("deny", false)),
        Permission::Ask => Some(("ask", false)),
        Permission::Defer => None,
    };
    hear("status", said.status.map(status));
    hear("action", said.action.map(step));
    hear("decision", said.decision.map(decision));
    hear("permissionDecision", said.specific.permission.and_then(permission));
    match (yes, no) {
        (Some(yes), Some(no)) => Err(BadAnswer::Contradiction { yes, no }),
        _ => Ok(()),
    }
}

/// How many lists and objects lie within each other, in what is known to be JSON.
fn depth(json: &str) -> usize {
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

/// An object as it was written: a name may be there twice.
pub(crate) struct Entries(pub(crate) Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
#[path = "said_tests.rs"]
mod tests;
