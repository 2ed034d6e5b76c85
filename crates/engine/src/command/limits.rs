//! Limits on all input from outside. Each limit has a name, a value and a test.

use core::time::Duration;

use serde_json::Value;

use crate::command::refusal::Refusal;

/// Limits on the contents of a task and on the consequences of a command.
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
    /// The part of an agent's output that the log keeps.
    pub const OUTPUT: usize = 64 * 1024;
    /// An agent's name for a conversation.
    pub const CONVERSATION: usize = 1024;
    /// More of them mean that something about the work crashes the program.
    pub const INTERRUPTIONS: u32 = 10;
    /// Blocks by the same stop hooks with the same reasons. More of them mean that the agent cannot solve the problem.
    pub const SAME_BLOCKS: u32 = 3;
    /// How often in a row an agent may report a rate limit.
    pub const POSTPONEMENTS: u32 = 24;
    /// How often work may be judged again because its base has moved.
    pub const RECHECKS: u32 = 10;
    /// The longest wait for an agent.
    pub const LONGEST_WAIT: Duration = Duration::from_hours(7 * 24);
    /// The short reason of a stop hook that blocks.
    pub const GIST: usize = 240;
    /// A command of a stop hook or of a validation rule.
    pub const COMMAND: usize = 16 * 1024;
    pub const RULES: usize = 32;
    /// How many commits one report to a person may name.
    pub const TOLD: usize = 1000;
    pub const STOP_HOOKS: usize = 20;
    pub const SERIES: u32 = 100;
    /// The highest threshold that a series may set. It counts failed iterations in a row.
    pub const BREAKER: u32 = 20;
    /// The output that a program submits for evaluation, and how much of its end the log keeps.
    pub const OUTPUT_TAKEN: usize = 1024 * 1024;
    pub const OUTPUT_KEPT: usize = 4 * 1024;
    pub const FILES: usize = 1000;
    /// How much of a draft a checkpoint keeps, and how much it accepts.
    pub const DRAFT: usize = 50 * 1024;
    pub const DRAFT_TAKEN: usize = 4 * 1024 * 1024;
    pub const CHECKPOINT_LIFE: Duration = Duration::from_hours(365 * 24);
    pub const CONFIG: usize = 4 * 1024 * 1024;
    /// Nested lists and objects. JSON that is read again must be less than 128 levels deep, with everything around it.
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
    /// Events that hooks may add to one command, and hooks that hooks enqueue. Dependents that become ready do not count: the graph bounds
    /// them.
    pub const EVENTS: u32 = 256;
    /// Nested calls of `windlass`: a hook calls it, and the hooks of that call do so again.
    pub const NESTED: u8 = 3;
    /// Steps of one workflow run.
    pub const STEPS: u32 = 1000;
    /// Expired leases that one claim clears.
    pub const EXPIRED: usize = 32;
}

/// Checks free text: not blank, not too long, and without NUL, which no environment variable can carry.
pub fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::invalid(what, "is empty"));
    }
    check_bytes(what, text, most)
}

/// Checks free text that may be blank.
pub fn check_bytes(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::invalid(what, format!("has {} bytes; at most {most} are taken", text.len())));
    }
    if text.contains('\0') {
        return Err(Refusal::invalid(what, "contains a NUL byte"));
    }
    Ok(())
}

/// Checks the size and the depth of a JSON value.
pub fn check_value(what: &'static str, value: &Value) -> Result<(), Refusal> {
    if nests_deeper(value, Limits::NESTING) {
        return Err(Refusal::invalid(what, format!("is nested more than {} deep", Limits::NESTING)));
    }
    if value.to_string().len() > Limits::CONTEXT {
        return Err(Refusal::invalid(what, format!("has more than {} bytes", Limits::CONTEXT)));
    }
    Ok(())
}

/// Returns whether lists and objects are nested more than `most` levels deep.
fn nests_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| nests_deeper(item, most - 1)),
        Value::Object(fields) => most == 0 || fields.values().any(|field| nests_deeper(field, most - 1)),
        _ => false,
    }
}

/// Checks a list of short texts.
pub fn check_list(what: &'static str, list: &[String], most: usize, longest: usize) -> Result<(), Refusal> {
    if list.len() > most {
        return Err(Refusal::invalid(what, format!("is one of {}; at most {most} are taken", list.len())));
    }
    list.iter().try_for_each(|text| check_text(what, text, longest))
}

/// Checks labels: one line each, for people and scripts to sort by.
pub fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    check_list("a label", labels, Limits::LABELS, Limits::LABEL)?;
    match labels.iter().find(|label| label.contains(char::is_control)) {
        Some(_) => Err(Refusal::invalid("a label", "contains a control character")),
        None => Ok(()),
    }
}

/// Returns the first line of a reason, cut to its limit.
pub fn gist(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line[..line.floor_char_boundary(Limits::GIST)].to_owned()
}
