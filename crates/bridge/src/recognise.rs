//! Who calls, where nobody says it.

use serde_json::{Map, Value};

use crate::Agent;

impl Agent {
    /// Whose payload it is. `is_set` tells which environment variables there are. What is in doubt is Claude Code's: the
    /// others have taken their words from it.
    pub fn recognise(payload: &Map<String, Value>, is_set: impl Fn(&str) -> bool) -> Self {
        // An agent may have been started by another one, and has its environment then; so that comes last.
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
    // Everybody else who tells the time tells of a transcript too.
    (has("timestamp") && !has("transcript_path")).then_some(Agent::Copilot)
}

fn by_environment(is_set: impl Fn(&str) -> bool) -> Option<Agent> {
    // Qwen Code sets the variables of Gemini CLI too, and all of them Claude Code's.
    let variables = [
        ("CURSOR_PROJECT_DIR", Agent::Cursor),
        ("COPILOT_PROJECT_DIR", Agent::Copilot),
        ("QWEN_PROJECT_DIR", Agent::Qwen),
        ("GEMINI_PROJECT_DIR", Agent::Gemini),
    ];
    variables.iter().find(|(variable, _)| is_set(variable)).map(|(_, agent)| *agent)
}
