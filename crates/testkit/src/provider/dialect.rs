//! What the APIs of models have in common: a question with tools in it, and a reply.

use serde_json::{Map, Value, json};

use super::http::Event;
use super::script::{CUT, REFUSED};

/// What a question without tools is answered with.
pub const TITLE: &str = "A short title";

/// Tokens of every answer: those of the question that were not cached, those that were, those of the answer.
pub const FRESH: u64 = 1000;
pub const CACHED: u64 = 200;
pub const WRITTEN: u64 = 34;

/// One API of a model.
pub trait Dialect: Sync {
    fn question(&self, body: &Value) -> Question;
    fn whole(&self, reply: &Reply) -> Value;
    fn stream(&self, reply: &Reply) -> Vec<Event>;
    /// The body of an HTTP error.
    fn failure(&self, failure: &Trouble) -> Value;
}

/// What a request says about the conversation so far.
#[derive(Debug, Default)]
pub struct Question {
    pub model: String,
    pub tools: Vec<Tool>,
    /// How often the model has answered in it.
    pub answers: usize,
    /// What an answer has to look like, where that is asked for.
    pub schema: Option<Value>,
}

#[derive(Debug)]
pub struct Tool {
    pub name: String,
    pub schema: Value,
}

/// What the model says.
#[derive(Debug)]
pub struct Reply {
    pub model: String,
    /// Counts up, so that no two replies have the same id.
    pub number: usize,
    pub text: String,
    pub call: Option<Call>,
    pub end: End,
}

#[derive(Debug)]
pub struct Call {
    pub tool: String,
    pub input: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    Cut,
    Refused,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    pub status: u16,
    pub retry_after: Option<u32>,
    pub message: &'static str,
}

impl Reply {
    /// The text as a model streams it: in more pieces than one.
    pub fn pieces(&self) -> Vec<&str> {
        self.text.split_inclusive(' ').collect()
    }
}

/// An item of the model counts as an answer, except where it is what a mishap said.
pub fn is_answer(text: &str, calls: bool) -> bool {
    calls || !["", CUT, REFUSED].contains(&text.trim())
}

/// The text of content that is a string, or a list of parts.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// A list of a request, however it is missing.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The least that a schema allows.
fn example(schema: &Value) -> Value {
    if let Some(first) = list(&schema["enum"]).first() {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "object" => {
            let required = list(&schema["required"]).iter().filter_map(Value::as_str);
            required.map(|name| (name.to_owned(), example(&schema["properties"][name]))).collect()
        }
        "array" => json!([]),
        "boolean" => json!(false),
        "integer" | "number" => json!(1),
        _ => json!("as scripted"),
    }
}

impl Question {
    /// The answer to a question beside the conversation, unless it is not one.
    pub fn aside(&self) -> Option<String> {
        let text = || self.schema.as_ref().map_or_else(|| TITLE.to_owned(), |schema| example(schema).to_string());
        self.tools.is_empty().then(text)
    }

    /// The call that runs a command, made of what the agent's own tool asks for.
    pub fn running(&self, command: &str) -> Option<Call> {
        const NAMES: &[&str] = &["bash", "shell", "shell_command", "exec_command", "run_shell_command", "local_shell"];
        let named = |tool: &&Tool| {
            let name = tool.name.to_ascii_lowercase();
            NAMES.contains(&name.rsplit("__").next().unwrap_or_default())
        };
        let tool = self.tools.iter().find(named)?;
        Some(Call { tool: tool.name.clone(), input: tool.input(command) })
    }

    /// The call of a tool whose name ends like this.
    pub fn using(&self, name: &str, input: &Value) -> Option<Call> {
        let tool = self.tools.iter().find(|tool| tool.name.ends_with(name))?;
        let input = if input.is_null() { json!({}) } else { input.clone() };
        Some(Call { tool: tool.name.clone(), input })
    }
}

impl Tool {
    fn input(&self, command: &str) -> Value {
        let properties = &self.schema["properties"];
        let name = ["command", "cmd", "script"].into_iter().find(|name| properties.get(name).is_some());
        let name = name.unwrap_or("command");
        let is_list = properties[name]["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("array"));
        let mut input = Map::new();
        input.insert(name.to_owned(), if is_list { json!(["sh", "-c", command]) } else { json!(command) });
        for required in list(&self.schema["required"]).iter().filter_map(Value::as_str) {
            input.entry(required).or_insert_with(|| example(&properties[required]));
        }
        Value::Object(input)
    }
}
