//! A request of an agent's hook system, with the names of Claude Code for every agent.
//!
//! Invariants:
//! - Only input that is no JSON object is refused. An invalid field counts as missing.
//! - The payload is complete: a value that is replaced stays under another name. Only values that are nested too deep are
//!   lost, and `agent_payload_cut` says so.

mod depth_limit;
mod patch;
mod tool;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use windlass_engine::{BridgeCall, BridgeCaller};

pub use tool::AgentTool;

use crate::{AgentHookEvent, BridgeAgent};

/// A call of an agent's hook system at one event of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentHookRequest {
    pub agent: BridgeAgent,
    pub event: AgentHookEvent,
    /// The agent's name of the conversation.
    pub conversation: Option<String>,
    /// The agent's working directory.
    pub directory: Option<String>,
    /// Whether a stop hook has sent the agent back, if the agent says so.
    pub is_sent_back: Option<bool>,
    pub tool: Option<AgentTool>,
    /// The call as the engine decides about it.
    pub call: BridgeCall,
    /// The whole payload, with Claude Code's field names added.
    pub payload: Map<String, Value>,
}

/// An error in a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentHookRequestError {
    #[error("standard input is empty; an agent's hook system writes a JSON object there")]
    EmptyInput,
    #[error("standard input is not a JSON object: {0}")]
    NotObject(String),
}

impl AgentHookRequest {
    /// Parses the payload of an agent.
    pub fn parse_payload(
        agent: BridgeAgent,
        event: AgentHookEvent,
        bytes: &[u8],
    ) -> Result<Self, AgentHookRequestError> {
        Ok(Self::from_payload(agent, event, parse_object(bytes)?))
    }

    /// Parses a payload and identifies its agent. `is_set` says which environment variables are set.
    pub fn parse_unnamed_payload(
        event: AgentHookEvent,
        bytes: &[u8],
        is_set: impl Fn(&str) -> bool,
    ) -> Result<Self, AgentHookRequestError> {
        let payload = parse_object(bytes)?;
        Ok(Self::from_payload(BridgeAgent::identify_caller(&payload, is_set), event, payload))
    }

    fn from_payload(agent: BridgeAgent, event: AgentHookEvent, payload: Map<String, Value>) -> Self {
        let said = PayloadReader(&payload);
        let directory = said.text_field(&["cwd", "working_dir"]).or_else(|| said.first_workspace_root());
        let conversation = said.name_field(&["session_id", "conversation_id", "sessionId"]);
        // Gemini CLI forgets it when it uses a tool, so `false` means nothing there.
        let is_sent_back = said.is_sent_back().filter(|is_sent_back| *is_sent_back || agent != BridgeAgent::Gemini);
        let last_message = said.text_field(&["last_assistant_message", "prompt_response"]);
        let prompt = said.prompt_text(event);
        let tool = said.read_tool(agent, directory.as_deref());
        let subagent = (event == AgentHookEvent::SubagentStop).then(|| said.subagent_name());
        let response = said.tool_response();
        let call = BridgeCall::new(event.point_name().clone());
        let mut request = Self { agent, event, conversation, directory, is_sent_back, tool, call, payload };
        // Claude Code's payload already has these names.
        if agent != BridgeAgent::Claude {
            request.add_claude_fields(response, subagent, (&last_message, &prompt));
        }
        if let Some(tool) = &request.tool {
            request.payload.insert("agent_tool_name".to_owned(), Value::String(tool.own_name.clone()));
        }
        request.fill_bridge_call(prompt.unwrap_or_default(), last_message.unwrap_or_default());
        request
    }

    /// Fills in the call for the engine.
    fn fill_bridge_call(&mut self, prompt: String, output: String) {
        let conversation = self.conversation.clone().unwrap_or_else(|| "unknown".to_owned());
        let subagent = self.payload.get("agent_id").and_then(Value::as_str);
        let conversation = match subagent.filter(|_| self.event == AgentHookEvent::SubagentStop) {
            Some(subagent) => format!("{conversation}/{subagent}"),
            None => conversation,
        };
        let about = if self.event == AgentHookEvent::UserPromptSubmit { prompt.clone() } else { output.clone() };
        self.call = BridgeCall {
            caller: BridgeCaller { agent: self.agent.name().to_owned(), conversation },
            tool: self.tool.as_ref().map(|tool| tool.name.clone()),
            matched: self.matcher_subjects(),
            tool_response: self.payload.get("tool_response").cloned().unwrap_or_else(|| json!({})),
            prompt,
            output,
            about,
            anew: self.is_fresh_start(),
            ..BridgeCall::new(self.call.point.clone())
        };
        self.fill_tool_input();
    }

    /// Fills in the input of the tool for the engine.
    fn fill_tool_input(&mut self) {
        if let Some(tool) = &self.tool {
            self.call.tool_input = Value::Object(tool.input.clone());
            self.call.about = self.call.tool_input.to_string();
        }
    }

    fn add_claude_fields(
        &mut self,
        response: Option<Value>,
        subagent: Option<String>,
        (last_message, prompt): (&Option<String>, &Option<String>),
    ) {
        let event = Some(Value::from(self.event.claude_event_name()));
        let text = |text: &Option<String>| text.clone().map(Value::String);
        self.set_payload_field("hook_event_name", event, Some("agent_event_name"));
        self.set_payload_field("session_id", text(&self.conversation), None);
        self.set_payload_field("cwd", text(&self.directory), None);
        self.set_payload_field("stop_hook_active", self.is_sent_back.map(Value::Bool), None);
        self.set_payload_field("last_assistant_message", text(last_message), None);
        self.set_payload_field("prompt", text(prompt), Some("agent_prompt"));
        self.set_payload_field("tool_response", response, None);
        self.set_payload_field("agent_id", subagent.map(Value::String), None);
        if let Some(tool) = &self.tool {
            let (name, input) = (Value::String(tool.name.clone()), Value::Object(tool.input.clone()));
            self.set_payload_field("tool_name", Some(name), None);
            self.set_payload_field("tool_input", Some(input), None);
        }
    }

    /// Sets a field of the payload. A replaced value may stay under another name.
    fn set_payload_field(&mut self, name: &str, value: Option<Value>, kept: Option<&str>) {
        let Some(value) = value else { return };
        let before = self.payload.insert(name.to_owned(), value.clone());
        if let (Some(kept), Some(before)) = (kept, before.filter(|before| *before != value)) {
            self.payload.insert(kept.to_owned(), before);
        }
    }

    /// Returns one request for each file of a patch, so that a hook that reads `file_path` sees all of them. Any other request
    /// is returned as it is.
    pub fn split_by_file(self) -> Vec<Self> {
        let files = self.tool.as_ref().map(AgentTool::patched_files).unwrap_or_default();
        if files.len() < 2 {
            return vec![self];
        }
        let about = |file: Value| {
            let mut request = self.clone();
            if let Some(Value::Object(input)) = request.payload.get_mut("tool_input") {
                input.insert("file_path".to_owned(), file.clone());
            }
            if let Some(tool) = &mut request.tool {
                tool.input.insert("file_path".to_owned(), file);
            }
            request.fill_tool_input();
            request
        };
        files.into_iter().map(about).collect()
    }

    /// Returns whether this is known to be a fresh start, and not the work after a stop hook sent the agent back. Most agents
    /// say so at their end. Their prompt events say nothing, because some report the feedback of stop hooks and the end of
    /// background tasks as prompts.
    fn is_fresh_start(&self) -> bool {
        match self.event {
            AgentHookEvent::Stop | AgentHookEvent::SubagentStop => self.is_sent_back == Some(false),
            // Gemini CLI reports the feedback of stop hooks here too. The engine remembers the feedback and tells them apart.
            AgentHookEvent::UserPromptSubmit => matches!(self.agent, BridgeAgent::Goose | BridgeAgent::Gemini),
            _ => false,
        }
    }

    /// Returns the subjects of matchers: all names of the tool, or at events without a tool the field that Claude Code's
    /// matchers use. Empty if there is none.
    fn matcher_subjects(&self) -> Vec<String> {
        if let Some(tool) = &self.tool {
            let own = (tool.own_name != tool.name).then(|| tool.own_name.clone());
            return std::iter::once(tool.name.clone()).chain(tool.also_acts_as.iter().cloned()).chain(own).collect();
        }
        let field = self.event.matched_field();
        field.and_then(|field| PayloadReader(&self.payload).text_field(&[field])).into_iter().collect()
    }

    /// Returns whether a prompt event is the agent's own continuation: Qwen Code sends one after every tool and after a stop
    /// hook.
    pub fn is_continuation_prompt(&self) -> bool {
        let is_prompt = self.event == AgentHookEvent::UserPromptSubmit;
        is_prompt && self.agent == BridgeAgent::Qwen && !self.payload.contains_key("submitted_prompt")
    }
}

fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, AgentHookRequestError> {
    if bytes.trim_ascii().is_empty() {
        return Err(AgentHookRequestError::EmptyInput);
    }
    // Some shells add a byte order mark.
    let bytes = depth_limit::cut_deep_values(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let refused = |error: serde_json::Error| AgentHookRequestError::NotObject(error.to_string());
    let mut object: Map<String, Value> = match serde_json::from_slice(&bytes) {
        // The output of a tool may contain bytes that are no UTF-8.
        Err(_) if std::str::from_utf8(&bytes).is_err() => {
            serde_json::from_str(&String::from_utf8_lossy(&bytes)).map_err(refused)?
        }
        read => read.map_err(refused)?,
    };
    if matches!(bytes, Cow::Owned(_)) {
        object.insert("agent_payload_cut".to_owned(), Value::Bool(true));
    }
    Ok(object)
}

/// A payload, as the agent wrote it.
struct PayloadReader<'a>(&'a Map<String, Value>);

impl PayloadReader<'_> {
    /// Returns the first of these fields that holds a non-empty text.
    fn text_field(&self, fields: &[&str]) -> Option<String> {
        let text = |field: &&str| self.0.get(*field)?.as_str().filter(|text| !text.is_empty());
        fields.iter().find_map(text).map(str::to_owned)
    }

    /// Returns the first of these fields that holds a name, which may be a number.
    fn name_field(&self, fields: &[&str]) -> Option<String> {
        let number = |field: &&str| self.0.get(*field)?.as_number().map(ToString::to_string);
        self.text_field(fields).or_else(|| fields.iter().find_map(number))
    }

    /// Returns the first workspace folder. Cursor may have several open.
    fn first_workspace_root(&self) -> Option<String> {
        self.0.get("workspace_roots")?.as_array()?.first()?.as_str().map(str::to_owned)
    }

    /// Returns whether a stop hook has sent the agent back. Cursor sends a count instead of a flag.
    fn is_sent_back(&self) -> Option<bool> {
        let counted = || self.0.get("loop_count")?.as_u64().map(|count| count > 0);
        self.0.get("stop_hook_active").and_then(Value::as_bool).or_else(counted)
    }

    /// Returns the prompt: a text, or a list of parts. goose sends it as `message`.
    fn prompt_text(&self, event: AgentHookEvent) -> Option<String> {
        match self.0.get("prompt") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(parts)) => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
                Some(texts.join("\n"))
            }
            _ if event == AgentHookEvent::UserPromptSubmit => self.text_field(&["message"]),
            _ => None,
        }
    }

    fn read_tool(&self, agent: BridgeAgent, directory: Option<&str>) -> Option<AgentTool> {
        let name = self.text_field(&["tool_name"])?;
        let input = match self.0.get("tool_input") {
            Some(Value::Object(input)) => input.clone(),
            // The input may be JSON within a string, or a plain text.
            Some(Value::String(text)) => serde_json::from_slice(&depth_limit::cut_deep_values(text.as_bytes()))
                .unwrap_or_else(|_| Map::from_iter([("input".to_owned(), Value::String(text.clone()))])),
            _ => Map::new(),
        };
        if agent == BridgeAgent::Claude {
            return Some(AgentTool::from_claude_code(&name, input));
        }
        let context = self.0.get("mcp_context");
        let part = |name: &str| context?.get(name)?.as_str().filter(|part| !part.is_empty());
        Some(AgentTool::new(&name, input, part("server_name").zip(part("tool_name")), directory))
    }

    /// Returns the name of the subagent. Cursor has none, but its transcript files differ, and so may its types.
    fn subagent_name(&self) -> String {
        let names = ["agent_id", "subagent_id", "agent_transcript_path", "subagent_type", "agent_type"];
        self.name_field(&names).unwrap_or_else(|| "subagent".to_owned())
    }

    fn tool_response(&self) -> Option<Value> {
        ["tool_response", "tool_result", "tool_output"].iter().find_map(|field| self.0.get(*field)).cloned()
    }
}
