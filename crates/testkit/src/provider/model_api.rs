//! The common parts of model APIs: a question with tools, and a reply.

use serde_json::{Map, Value, json};

use super::http::ServerSentEvent;
use super::script::{REFUSAL_TEXT, TRUNCATED_TEXT};

/// The answer to a question without tools.
pub const TITLE_TEXT: &str = "A short title";

/// The tokens of every answer: uncached and cached input, and output.
pub const UNCACHED_TOKENS: u64 = 1000;
pub const CACHED_TOKENS: u64 = 200;
pub const OUTPUT_TOKENS: u64 = 34;

/// One API of a model.
pub trait ModelApi: Sync {
    fn parse_question(&self, body: &Value) -> ModelQuestion;
    fn complete_body(&self, reply: &ModelReply) -> Value;
    fn stream_events(&self, reply: &ModelReply) -> Vec<ServerSentEvent>;
    /// Returns the body of an HTTP error.
    fn error_body(&self, failure: &ProviderError) -> Value;
}

/// The conversation so far, from a request.
#[derive(Debug, Default)]
pub struct ModelQuestion {
    pub model: String,
    pub tools: Vec<OfferedTool>,
    /// The number of answers of the model in the conversation.
    pub answers: usize,
    /// The requested schema of the answer.
    pub schema: Option<Value>,
}

#[derive(Debug)]
pub struct OfferedTool {
    pub name: String,
    pub schema: Value,
}

/// A reply of the model.
#[derive(Debug)]
pub struct ModelReply {
    pub model: String,
    /// A counter that keeps the ids of replies distinct.
    pub number: usize,
    pub text: String,
    pub call: Option<ReplyToolCall>,
    pub end: ReplyEnd,
}

#[derive(Debug)]
pub struct ReplyToolCall {
    pub tool: String,
    pub input: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyEnd {
    Done,
    Cut,
    Refused,
}

/// The reason for a missing answer.
#[derive(Debug, Clone, Copy)]
pub struct ProviderError {
    pub status: u16,
    pub retry_after: Option<u32>,
    pub message: &'static str,
}

impl ModelReply {
    /// Returns the text in several pieces, as a model streams it.
    pub fn pieces(&self) -> Vec<&str> {
        self.text.split_inclusive(' ').collect()
    }
}

/// Returns whether an item of the model counts as an answer. The texts of truncated answers and refusals do not count.
pub fn is_answer(text: &str, calls: bool) -> bool {
    calls || !["", TRUNCATED_TEXT, REFUSAL_TEXT].contains(&text.trim())
}

/// Returns the text of content that is a string or a list of parts.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns a list of a request, empty if it is missing.
pub fn list_items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a minimal value for a schema.
fn minimal_value(schema: &Value) -> Value {
    if let Some(first) = list_items(&schema["enum"]).first() {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "object" => {
            let required = list_items(&schema["required"]).iter().filter_map(Value::as_str);
            required.map(|name| (name.to_owned(), minimal_value(&schema["properties"][name]))).collect()
        }
        "array" => json!([]),
        "boolean" => json!(false),
        "integer" | "number" => json!(1),
        _ => json!("as scripted"),
    }
}

impl ModelQuestion {
    /// Returns the answer to a question without tools. `None` for a question of the conversation.
    pub fn answer_without_tools(&self) -> Option<String> {
        let text =
            || self.schema.as_ref().map_or_else(|| TITLE_TEXT.to_owned(), |schema| minimal_value(schema).to_string());
        self.tools.is_empty().then(text)
    }

    /// Returns the call that runs a command with the agent's own tool.
    pub fn command_call(&self, command: &str) -> Option<ReplyToolCall> {
        const NAMES: &[&str] = &["bash", "shell", "shell_command", "exec_command", "run_shell_command", "local_shell"];
        let named = |tool: &&OfferedTool| {
            let name = tool.name.to_ascii_lowercase();
            NAMES.contains(&name.rsplit("__").next().unwrap_or_default())
        };
        let tool = self.tools.iter().find(named)?;
        Some(ReplyToolCall { tool: tool.name.clone(), input: tool.input(command) })
    }

    /// Returns the call of the tool whose name ends like this.
    pub fn tool_call(&self, name: &str, input: &Value) -> Option<ReplyToolCall> {
        let tool = self.tools.iter().find(|tool| tool.name.ends_with(name))?;
        let input = if input.is_null() { json!({}) } else { input.clone() };
        Some(ReplyToolCall { tool: tool.name.clone(), input })
    }
}

impl OfferedTool {
    fn input(&self, command: &str) -> Value {
        let properties = &self.schema["properties"];
        let name = ["command", "cmd", "script"].into_iter().find(|name| properties.get(name).is_some());
        let name = name.unwrap_or("command");
        let is_list = properties[name]["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("array"));
        let mut input = Map::new();
        input.insert(name.to_owned(), if is_list { json!(["sh", "-c", command]) } else { json!(command) });
        for required in list_items(&self.schema["required"]).iter().filter_map(Value::as_str) {
            input.entry(required).or_insert_with(|| minimal_value(&properties[required]));
        }
        Value::Object(input)
    }
}
