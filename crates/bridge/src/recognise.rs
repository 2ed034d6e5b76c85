//! Identification of the calling agent if the call does not name it.

use serde_json::{Map, Value};

use crate::Agent;

impl Agent {
    /// Returns the agent that sent a payload. `is_set` says which environment variables are set. The default is Claude Code:
    /// the other agents have adopted its field names.
    pub fn recognise(payload: &Map<String, Value>, is_set: impl Fn(&str) -> bool) -> Self {
        // An agent that another agent has started inherits its environment, so the payload takes precedence.
        by_payload(payload).or_else(|| by_environment(is_set)).unwrap_or(Self::Claude)
    }
}

fn by_payload(payload: &Map<String, Value>) -> Option<Agent> {
    let has = |field: &str| payload.contains_key(field);
    let text = |field: &str| payload.get(field).and_then(Value::as_str).unwrap_or_default();
    if has("cursor_version") || has("generation_id") {
        return Some(Agent::Cursor);
    }
    if has("event") && has("matcher_context") {
        return Some(Agent::Goose);
    }
    if text("client_type").starts_with("kimi") {
        return Some(Agent::Kimi);
    }
    let event = text("hook_event_name");
    if event.starts_with("Before") || event.starts_with("After") || event == "PreCompress" {
        return Some(Agent::Gemini);
    }
    let transcript = text("transcript_path");
    let folders = [
        ("/.claude/", Agent::Claude),
        ("/.codex/", Agent::Codex),
        ("/.gemini/", Agent::Gemini),
        ("/.qwen/", Agent::Qwen),
        ("/.copilot/", Agent::Copilot),
    ];
    let by_folder = folders.iter().find(|(folder, _)| transcript.contains(folder)).map(|(_, agent)| *agent);
    if by_folder.is_some() {
        return by_folder;
    }
    if has("turn_id") || transcript.contains("/rollout-") {
        return Some(Agent::Codex);
    }
    // All other agents that send a timestamp send a transcript path too.
    (has("timestamp") && !has("transcript_path")).then_some(Agent::Copilot)
}

fn by_environment(is_set: impl Fn(&str) -> bool) -> Option<Agent> {
    // Qwen Code also sets the variables of Gemini CLI, and all of these agents set Claude Code's.
    let variables = [
        ("CURSOR_PROJECT_DIR", Agent::Cursor),
        ("COPILOT_PROJECT_DIR", Agent::Copilot),
        ("QWEN_PROJECT_DIR", Agent::Qwen),
        ("GEMINI_PROJECT_DIR", Agent::Gemini),
    ];
    variables.iter().find(|(variable, _)| is_set(variable)).map(|(_, agent)| *agent)
}
