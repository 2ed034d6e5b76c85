//! How much of anything is taken from outside. Each bound has a name, a value and a test.

use core::time::Duration;

use serde_json::Value;

use crate::command::refusal::Refusal;

/// Bounds on what a task may hold and on what a command may set off.
pub struct Limits;

impl Limits {
    pub const GOAL: usize = 64 * 1024;
    pub const BODY: usize = 1024 * 1024;
    pub const RESULT: usize = 256 * 1024;
    pub const REASON: usize = 64 * 1024;
    pub const CONTEXT: usize = 256 * 1024;
    pub const NOTE: usize = 16 * 1024;
    /// One piece of feedback.
    pub const FEEDBACK: usize = 256 * 1024;
    /// What an agent answered, as far as the log keeps it.
    pub const OUTPUT: usize = 64 * 1024;
    /// An agent's name for a conversation.
    pub const CONVERSATION: usize = 1024;
    /// Interrupted iterations, one after another: something about the work brings the program down.
    pub const INTERRUPTIONS: u32 = 10;
    /// The same stop hooks with the same words, one time after another: the agent does not know what to do about it.
    pub const SAME_BLOCKS: u32 = 3;
    /// How often in a row an agent may say that it was asked too often.
    pub const POSTPONEMENTS: u32 = 24;
    /// How often work may be judged again because its base has moved.
    pub const RECHECKS: u32 = 10;
    /// The longest time for which an agent is left alone.
    pub const LONGEST_WAIT: Duration = Duration::from_hours(7 * 24);
    /// Why a stop hook blocks, in a few words.
    pub const GIST: usize = 240;
    /// A command that is given with a stop hook or a validation rule.
    pub const COMMAND: usize = 16 * 1024;
    /// Rules of one stop hook.
    pub const RULES: usize = 32;
    /// How many commits a person is told of at once.
    pub const TOLD: usize = 1000;
    /// Stop hooks of one task.
    pub const STOP_HOOKS: usize = 20;
    /// Iterations of a series.
    pub const SERIES: u32 = 100;
    /// Failed iterations in a row after which a series may be set to ask for a person.
    pub const BREAKER: u32 = 20;
    /// What a program hands over as its output to be judged, and how much of its end the log keeps.
    pub const OUTPUT_TAKEN: usize = 1024 * 1024;
    pub const OUTPUT_KEPT: usize = 4 * 1024;
    pub const FILES: usize = 1000;
    /// How much of a draft a checkpoint keeps, and how much it is given.
    pub const DRAFT: usize = 50 * 1024;
    pub const DRAFT_TAKEN: usize = 4 * 1024 * 1024;
    pub const CHECKPOINT_LIFE: Duration = Duration::from_hours(365 * 24);
    pub const CONFIG: usize = 4 * 1024 * 1024;
    /// Lists and objects within each other. What is read again must lie less than 128 deep, with all that is around it.
    pub const NESTING: usize = 64;
    pub const LABEL: usize = 256;
    pub const LABELS: usize = 64;
    pub const DELIVERABLE: usize = 4 * 1024;
    pub const DELIVERABLES: usize = 256;
    pub const ARTIFACT: usize = 4 * 1024;
    pub const ARTIFACTS: usize = 1024;
    pub const DEPENDENCIES: usize = 1024;
    /// Hooks and actions between a command and an event that it led to.
    pub const DEPTH: u8 = 8;
    /// Events that hooks may add to one command, and hooks that are owed because of hooks. Dependents that become ready are not counted: the graph bounds them.
    pub const EVENTS: u32 = 256;
    /// Calls of `windlass` within each other: a hook calls it, whose hooks call it again.
    pub const NESTED: u8 = 3;
    /// Steps that one run of a workflow may take.
    pub const STEPS: u32 = 1000;
    /// Expired leases that one claim clears away.
    pub const EXPIRED: usize = 32;
}

/// Free text: not blank, not too long, and without the one byte that no environment variable can carry.
pub fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::invalid(what, "is empty"));
    }
    check_bytes(what, text, most)
}

/// Free text that may be blank.
pub fn check_bytes(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::invalid(what, format!("has {} bytes; at most {most} are taken", text.len())));
    }
    if text.contains('\0') {
        return Err(Refusal::invalid(what, "contains a NUL byte"));
    }
    Ok(())
}

/// Any value: not too much of it, and not nested too deep.
pub fn check_value(what: &'static str, value: &Value) -> Result<(), Refusal> {
    if nests_deeper(value, Limits::NESTING) {
        return Err(Refusal::invalid(what, format!("is nested more than {} deep", Limits::NESTING)));
    }
    if value.to_string().len() > Limits::CONTEXT {
        return Err(Refusal::invalid(what, format!("has more than {} bytes", Limits::CONTEXT)));
    }
    Ok(())
}

/// Whether lists and objects lie more than so deep within each other.
fn nests_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| nests_deeper(item, most - 1)),
        Value::Object(fields) => most == 0 || fields.values().any(|field| nests_deeper(field, most - 1)),
        _ => false,
    }
}

/// A list of short texts.
pub fn check_list(what: &'static str, list: &[String], most: usize, longest: usize) -> Result<(), Refusal> {
    if list.len() > most {
        return Err(Refusal::invalid(what, format!("is one of {}; at most {most} are taken", list.len())));
    }
    list.iter().try_for_each(|text| check_text(what, text, longest))
}

/// Labels are words for people and scripts to sort by: one line each.
pub fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    check_list("a label", labels, Limits::LABELS, Limits::LABEL)?;
    match labels.iter().find(|label| label.contains(char::is_control)) {
        Some(_) => Err(Refusal::invalid("a label", "contains a control character")),
        None => Ok(()),
    }
}

/// A reason in one line of a few words.
pub fn gist(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line[..line.floor_char_boundary(Limits::GIST)].to_owned()
}
