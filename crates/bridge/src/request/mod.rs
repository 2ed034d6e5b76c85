//! What an agent says when its hook system calls, in the words of Claude Code, whichever agent calls.
//!
//! Invariants:
//! - Only what is no JSON object is refused. A field that is missing, or is not what it should be, is as if it were not there.
//! - Nothing that the agent says is lost: what has got another value here is there under a name of its own. What lies too
//!   deep is, and `agent_payload_cut` says so.

mod depth;
mod patch;
mod tool;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use windlass_engine::{BridgeCall, Caller};

pub use tool::AgentTool;

use crate::{Agent, AgentHookEvent};

/// A call of an agent's hook system, at one event of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentHookRequest {
    pub agent: Agent,
    pub event: AgentHookEvent,
    /// Which conversation it is, as the agent names it.
    pub conversation: Option<String>,
    /// Where the agent works.
    pub directory: Option<String>,
    /// Whether the agent is going on because a stop hook has sent it back, where it says so.
    pub is_sent_back: Option<bool>,
    pub tool: Option<AgentTool>,
    /// What the engine decides about.
    pub call: BridgeCall,
    /// Everything that it said, with Claude Code's names for what has one.
    pub payload: Map<String, Value>,
}

/// A payload that is no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentHookRequestError {
    #[error("standard input is empty; an agent's hook system writes a JSON object there")]
    Nothing,
    #[error("standard input is no JSON object: {0}")]
    NoObject(String),
}

impl AgentHookRequest {
    /// Parses the payload of an agent.
    pub fn parse(agent: Agent, event: AgentHookEvent, bytes: &[u8]) -> Result<Self, AgentHookRequestError> {
        Ok(Self::understand(agent, event, object(bytes)?))
    }

    /// Parses the payload of an agent that is recognised by it. `is_set` tells which environment variables there are.
    pub fn parse_unnamed(
        event: AgentHookEvent,
        bytes: &[u8],
        is_set: impl Fn(&str) -> bool,
    ) -> Result<Self, AgentHookRequestError> {
        let payload = object(bytes)?;
        Ok(Self::understand(Agent::recognise(&payload, is_set), event, payload))
    }

    fn understand(agent: Agent, event: AgentHookEvent, payload: Map<String, Value>) -> Self {
        let said = Said(&payload);
        let directory = said.text(&["cwd", "working_dir"]).or_else(|| said.first_root());
        let conversation = said.name(&["session_id", "conversation_id", "sessionId"]);
        // Gemini CLI forgets it as soon as it uses a tool, so a no of it means nothing.
        let is_sent_back = said.is_sent_back().filter(|is_sent_back| *is_sent_back || agent != Agent::Gemini);
        let last_message = said.text(&["last_assistant_message", "prompt_response"]);
        let prompt = said.prompt(event);
        let tool = said.tool(agent, directory.as_deref());
        let subagent = (event == AgentHookEvent::SubagentStop).then(|| said.subagent());
        let response = said.response();
        let call = BridgeCall::new(event.point().clone());
        let mut request = Self { agent, event, conversation, directory, is_sent_back, tool, call, payload };
        // Claude Code's own words need no translation.
        if agent != Agent::Claude {
            request.translate(response, subagent, (&last_message, &prompt));
        }
        if let Some(tool) = &request.tool {
            request.payload.insert("agent_tool_name".to_owned(), Value::String(tool.own_name.clone()));
        }
        request.fill_call(prompt.unwrap_or_default(), last_message.unwrap_or_default());
        request
    }

    /// Says to the engine what it decides about.
    fn fill_call(&mut self, prompt: String, output: String) {
        let conversation = self.conversation.clone().unwrap_or_else(|| "unknown".to_owned());
        let subagent = self.payload.get("agent_id").and_then(Value::as_str);
        let conversation = match subagent.filter(|_| self.event == AgentHookEvent::SubagentStop) {
            Some(subagent) => format!("{conversation}/{subagent}"),
            None => conversation,
        };
        let about = if self.event == AgentHookEvent::UserPromptSubmit { prompt.clone() } else { output.clone() };
        self.call = BridgeCall {
            caller: Caller { agent: self.agent.name().to_owned(), conversation },
            tool: self.tool.as_ref().map(|tool| tool.name.clone()),
            matched: self.matched(),
            tool_response: self.payload.get("tool_response").cloned().unwrap_or_else(|| json!({})),
            prompt,
            output,
            about,
            anew: self.begins_anew(),
            ..BridgeCall::new(self.call.point.clone())
        };
        self.fill_tool_input();
    }

    /// Says to the engine what the tool is called with.
    fn fill_tool_input(&mut self) {
        if let Some(tool) = &self.tool {
            self.call.tool_input = Value::Object(tool.input.clone());
            self.call.about = self.call.tool_input.to_string();
        }
    }

    fn translate(
        &mut self,
        response: Option<Value>,
        subagent: Option<String>,
        (last_message, prompt): (&Option<String>, &Option<String>),
    ) {
        let event = Some(Value::from(self.event.claude_name()));
        let text = |text: &Option<String>| text.clone().map(Value::String);
        self.say("hook_event_name", event, Some("agent_event_name"));
        self.say("session_id", text(&self.conversation), None);
        self.say("cwd", text(&self.directory), None);
        self.say("stop_hook_active", self.is_sent_back.map(Value::Bool), None);
        self.say("last_assistant_message", text(last_message), None);
        self.say("prompt", text(prompt), Some("agent_prompt"));
        self.say("tool_response", response, None);
        self.say("agent_id", subagent.map(Value::String), None);
        if let Some(tool) = &self.tool {
            let (name, input) = (Value::String(tool.name.clone()), Value::Object(tool.input.clone()));
            self.say("tool_name", Some(name), None);
            self.say("tool_input", Some(input), None);
        }
    }

    /// Says something in Claude Code's words; what stood there may be kept under another name.
    fn say(&mut self, name: &str, value: Option<Value>, kept: Option<&str>) {
        let Some(value) = value else { return };
        let before = self.payload.insert(name.to_owned(), value.clone());
        if let (Some(kept), Some(before)) = (kept, before.filter(|before| *before != value)) {
            self.payload.insert(kept.to_owned(), before);
        }
    }

    /// The same request for every file that a patch is about, so that a hook that looks at `file_path` sees each of them; one request
    /// where there are not several.
    pub fn for_each_file(self) -> Vec<Self> {
        let files = self.tool.as_ref().map(AgentTool::files).unwrap_or_default();
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

    /// Whether the agent comes here anew, as far as it is known, and not because a stop hook has sent it back. Most say so at
    /// their end. What they show to the hooks for prompts tells nothing: feedback of a stop hook, and the end of a task in
    /// the background, are prompts to some.
    fn begins_anew(&self) -> bool {
        match self.event {
            AgentHookEvent::Stop | AgentHookEvent::SubagentStop => self.is_sent_back == Some(false),
            // Gemini CLI shows the feedback of stop hooks there too; whoever remembers it tells the two apart.
            AgentHookEvent::UserPromptSubmit => matches!(self.agent, Agent::Goose | Agent::Gemini),
            _ => false,
        }
    }

    /// What matchers look at: the tool by all of its names, or the word that Claude Code's matchers look at where there is
    /// none. Empty where there is nothing to choose by.
    fn matched(&self) -> Vec<String> {
        if let Some(tool) = &self.tool {
            let own = (tool.own_name != tool.name).then(|| tool.own_name.clone());
            return std::iter::once(tool.name.clone()).chain(tool.also.iter().cloned()).chain(own).collect();
        }
        let field = self.event.matched_field();
        field.and_then(|field| Said(&self.payload).text(&[field])).into_iter().collect()
    }

    /// Whether it is the agent that goes on, where it says that somebody has asked for something: Qwen Code calls for that
    /// after every tool, and after a stop hook.
    pub fn is_own_prompt(&self) -> bool {
        let is_prompt = self.event == AgentHookEvent::UserPromptSubmit;
        is_prompt && self.agent == Agent::Qwen && !self.payload.contains_key("submitted_prompt")
    }
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, AgentHookRequestError> {
    if bytes.trim_ascii().is_empty() {
        return Err(AgentHookRequestError::Nothing);
    }
    // Some shells put a byte order mark before what they pass on.
    let bytes = depth::cut(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let refused = |error: serde_json::Error| AgentHookRequestError::NoObject(error.to_string());
    let mut object: Map<String, Value> = match serde_json::from_slice(&bytes) {
        // Tools may answer with bytes that are no text.
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

/// A payload as the agent wrote it.
struct Said<'a>(&'a Map<String, Value>);

impl Said<'_> {
    /// The first of these fields that is a text with something in it.
    fn text(&self, fields: &[&str]) -> Option<String> {
        let text = |field: &&str| self.0.get(*field)?.as_str().filter(|text| !text.is_empty());
        fields.iter().find_map(text).map(str::to_owned)
    }

    /// The same for names, which may be numbers.
    fn name(&self, fields: &[&str]) -> Option<String> {
        let number = |field: &&str| self.0.get(*field)?.as_number().map(ToString::to_string);
        self.text(fields).or_else(|| fields.iter().find_map(number))
    }

    /// Cursor may have several folders open.
    fn first_root(&self) -> Option<String> {
        self.0.get("workspace_roots")?.as_array()?.first()?.as_str().map(str::to_owned)
    }

    /// Cursor counts.
    fn is_sent_back(&self) -> Option<bool> {
        let counted = || self.0.get("loop_count")?.as_u64().map(|count| count > 0);
        self.0.get("stop_hook_active").and_then(Value::as_bool).or_else(counted)
    }

    /// A text, or a list of parts; goose has it elsewhere.
    fn prompt(&self, event: AgentHookEvent) -> Option<String> {
        match self.0.get("prompt") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(parts)) => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
                Some(texts.join("\n"))
            }
            _ if event == AgentHookEvent::UserPromptSubmit => self.text(&["message"]),
            _ => None,
        }
    }

    fn tool(&self, agent: Agent, directory: Option<&str>) -> Option<AgentTool> {
        let name = self.text(&["tool_name"])?;
        let input = match self.0.get("tool_input") {
            Some(Value::Object(input)) => input.clone(),
            // An object within a text, or nothing but a text.
            Some(Value::String(text)) => serde_json::from_slice(&depth::cut(text.as_bytes()))
                .unwrap_or_else(|_| Map::from_iter([("input".to_owned(), Value::String(text.clone()))])),
            _ => Map::new(),
        };
        if agent == Agent::Claude {
            return Some(AgentTool::known(&name, input));
        }
        let context = self.0.get("mcp_context");
        let part = |name: &str| context?.get(name)?.as_str().filter(|part| !part.is_empty());
        Some(AgentTool::new(&name, input, part("server_name").zip(part("tool_name")), directory))
    }

    /// Which subagent it is. Cursor has no names for those that stop: the files that they write differ, and their kinds.
    fn subagent(&self) -> String {
        let names = ["agent_id", "subagent_id", "agent_transcript_path", "subagent_type", "agent_type"];
        self.name(&names).unwrap_or_else(|| "subagent".to_owned())
    }

    fn response(&self) -> Option<Value> {
        ["tool_response", "tool_result", "tool_output"].iter().find_map(|field| self.0.get(*field)).cloned()
    }
}
