//! Limits on all input from outside. Each limit has a name, a value and a test.

use core::time::Duration;

use serde_json::Value;

use crate::command::refusal::Refusal;

/// Limits on the contents of a task and on the consequences of a command.
pub struct EngineLimits;

impl EngineLimits {
    pub const GOAL_BYTES: usize = 64 * 1024;
    pub const BODY_BYTES: usize = 1024 * 1024;
    pub const RESULT_BYTES: usize = 256 * 1024;
    pub const REASON_BYTES: usize = 64 * 1024;
    pub const CONTEXT_BYTES: usize = 256 * 1024;
    pub const NOTE_BYTES: usize = 16 * 1024;
    /// One piece of feedback.
    pub const FEEDBACK_BYTES: usize = 256 * 1024;
    /// The part of an agent's output that the log keeps.
    pub const OUTPUT_BYTES: usize = 64 * 1024;
    /// An agent's name for a conversation.
    pub const CONVERSATION_ID_BYTES: usize = 1024;
    /// More of them mean that something about the work crashes the program.
    pub const INTERRUPTIONS_IN_A_ROW: u32 = 10;
    /// Blocks by the same stop hooks with the same reasons. More of them mean that the agent cannot solve the problem.
    pub const SAME_BLOCKS_IN_A_ROW: u32 = 3;
    /// How often in a row an agent may report a rate limit.
    pub const POSTPONEMENTS_IN_A_ROW: u32 = 24;
    /// How often work may be judged again because its base has moved.
    pub const RECHECKS: u32 = 10;
    /// The longest wait for an agent.
    pub const MAX_AGENT_WAIT: Duration = Duration::from_hours(7 * 24);
    /// The short reason of a stop hook that blocks.
    pub const SUMMARY_LINE_BYTES: usize = 240;
    /// A command of a stop hook or of a validation rule.
    pub const COMMAND_BYTES: usize = 16 * 1024;
    pub const RULES_PER_STOP_HOOK: usize = 32;
    /// How many commits one report to a person may name.
    pub const REPORTED_COMMITS: usize = 1000;
    pub const STOP_HOOKS_PER_TASK: usize = 20;
    pub const SERIES_ITERATIONS: u32 = 100;
    /// The highest threshold that a series may set. It counts failed iterations in a row.
    pub const BREAKER_THRESHOLD: u32 = 20;
    /// The output that a program submits for evaluation, and how much of its end the log keeps.
    pub const ACCEPTED_OUTPUT_BYTES: usize = 1024 * 1024;
    pub const STORED_OUTPUT_BYTES: usize = 4 * 1024;
    pub const MODIFIED_FILES: usize = 1000;
    /// How much of a draft a checkpoint keeps, and how much it accepts.
    pub const STORED_DRAFT_BYTES: usize = 50 * 1024;
    pub const ACCEPTED_DRAFT_BYTES: usize = 4 * 1024 * 1024;
    pub const CHECKPOINT_LIFETIME: Duration = Duration::from_hours(365 * 24);
    pub const CONFIG_BYTES: usize = 4 * 1024 * 1024;
    /// Nested lists and objects. JSON that is read again must be less than 128 levels deep, with everything around it.
    pub const VALUE_DEPTH: usize = 64;
    pub const LABEL_BYTES: usize = 256;
    pub const LABEL_COUNT: usize = 64;
    pub const DELIVERABLE_BYTES: usize = 4 * 1024;
    pub const DELIVERABLE_COUNT: usize = 256;
    pub const ARTIFACT_BYTES: usize = 4 * 1024;
    pub const ARTIFACT_COUNT: usize = 1024;
    pub const DEPENDENCY_COUNT: usize = 1024;
    /// Hooks and actions between a command and an event that it led to.
    pub const CASCADE_DEPTH: u8 = 8;
    /// Events that hooks may add to one command, and hooks that hooks enqueue. Dependents that become ready do not count: the graph bounds
    /// them.
    pub const CASCADE_EVENTS: u32 = 256;
    /// Nested calls of `windlass`: a hook calls it, and the hooks of that call do so again.
    pub const NESTED_CALLS: u8 = 3;
    /// Steps of one workflow run.
    pub const WORKFLOW_STEPS: u32 = 1000;
    /// Expired leases that one claim clears.
    pub const EXPIRED_LEASES_PER_CLAIM: usize = 32;
}

/// Checks free text: not blank, not too long, and without NUL, which no environment variable can carry.
pub fn check_nonblank_text(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::invalid_input(what, "is empty"));
    }
    check_text_size(what, text, most)
}

/// Checks free text that may be blank.
pub fn check_text_size(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::invalid_input(what, format!("has {} bytes; at most {most} are allowed", text.len())));
    }
    if text.contains('\0') {
        return Err(Refusal::invalid_input(what, "contains a NUL byte"));
    }
    Ok(())
}

/// Checks the size and the depth of a JSON value.
pub fn check_json_value(what: &'static str, value: &Value) -> Result<(), Refusal> {
    if is_nested_deeper(value, EngineLimits::VALUE_DEPTH) {
        return Err(Refusal::invalid_input(what, format!("is nested more than {} deep", EngineLimits::VALUE_DEPTH)));
    }
    if value.to_string().len() > EngineLimits::CONTEXT_BYTES {
        return Err(Refusal::invalid_input(what, format!("has more than {} bytes", EngineLimits::CONTEXT_BYTES)));
    }
    Ok(())
}

/// Returns whether lists and objects are nested more than `most` levels deep.
fn is_nested_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| is_nested_deeper(item, most - 1)),
        Value::Object(fields) => most == 0 || fields.values().any(|field| is_nested_deeper(field, most - 1)),
        _ => false,
    }
}

/// Checks a list of short texts.
pub fn check_text_list(what: &'static str, list: &[String], most: usize, longest: usize) -> Result<(), Refusal> {
    if list.len() > most {
        return Err(Refusal::invalid_input(what, format!("is one of {}; at most {most} are allowed", list.len())));
    }
    list.iter().try_for_each(|text| check_nonblank_text(what, text, longest))
}

/// Checks labels: one line each, for people and scripts to sort by.
pub fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    check_text_list("a label", labels, EngineLimits::LABEL_COUNT, EngineLimits::LABEL_BYTES)?;
    match labels.iter().find(|label| label.contains(char::is_control)) {
        Some(_) => Err(Refusal::invalid_input("a label", "contains a control character")),
        None => Ok(()),
    }
}

/// Returns the first line of a reason, cut to its limit.
pub fn extract_summary_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line[..line.floor_char_boundary(EngineLimits::SUMMARY_LINE_BYTES)].to_owned()
}
