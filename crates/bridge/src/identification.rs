//! Identification of the calling agent if the call does not name it.

use serde_json::{Map, Value};

use crate::BridgeAgent;

impl BridgeAgent {
    /// Returns the agent that sent a payload. `is_set` says which environment variables are set. The default is Claude Code:
    /// the other agents have adopted its field names.
    pub fn identify_caller(payload: &Map<String, Value>, is_set: impl Fn(&str) -> bool) -> Self {
        // An agent that another agent has started inherits its environment, so the payload takes precedence.
        identify_by_payload(payload).or_else(|| identify_by_environment(is_set)).unwrap_or(Self::Claude)
    }
}

fn identify_by_payload(payload: &Map<String, Value>) -> Option<BridgeAgent> {
    let has = |field: &str| payload.contains_key(field);
    let text = |field: &str| payload.get(field).and_then(Value::as_str).unwrap_or_default();
    if has("cursor_version") || has("generation_id") {
        return Some(BridgeAgent::Cursor);
    }
    if has("event") && has("matcher_context") {
        return Some(BridgeAgent::Goose);
    }
    if text("client_type").starts_with("kimi") {
        return Some(BridgeAgent::Kimi);
    }
    let event = text("hook_event_name");
    if event.starts_with("Before") || event.starts_with("After") || event == "PreCompress" {
        return Some(BridgeAgent::Gemini);
    }
    let transcript = text("transcript_path");
    let folders = [
        ("/.claude/", BridgeAgent::Claude),
        ("/.codex/", BridgeAgent::Codex),
        ("/.gemini/", BridgeAgent::Gemini),
        ("/.qwen/", BridgeAgent::Qwen),
        ("/.copilot/", BridgeAgent::Copilot),
    ];
    let by_folder = folders.iter().find(|(folder, _)| transcript.contains(folder)).map(|(_, agent)| *agent);
    if by_folder.is_some() {
        return by_folder;
    }
    if has("turn_id") || transcript.contains("/rollout-") {
        return Some(BridgeAgent::Codex);
    }
    // All other agents that send a timestamp send a transcript path too.
    (has("timestamp") && !has("transcript_path")).then_some(BridgeAgent::Copilot)
}

fn identify_by_environment(is_set: impl Fn(&str) -> bool) -> Option<BridgeAgent> {
    // Qwen Code also sets the variables of Gemini CLI, and all of these agents set Claude Code's.
    let variables = [
        ("CURSOR_PROJECT_DIR", BridgeAgent::Cursor),
        ("COPILOT_PROJECT_DIR", BridgeAgent::Copilot),
        ("QWEN_PROJECT_DIR", BridgeAgent::Qwen),
        ("GEMINI_PROJECT_DIR", BridgeAgent::Gemini),
    ];
    variables.iter().find(|(variable, _)| is_set(variable)).map(|(_, agent)| *agent)
}
