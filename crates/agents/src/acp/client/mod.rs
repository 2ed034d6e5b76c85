//! The client's side of the protocol, without pipes: takes bytes, returns events and the bytes to send.
//!
//! Invariants:
//! - At most one request of Windlass is open, and only its answer is accepted.
//! - Every request of the agent is answered: permission requests by policy at once, client requests by the caller, and
//!   anything else with "no such method".
//! - Output outside of a turn, such as a replayed conversation, belongs to no turn. A turn lasts until its final message is
//!   taken, so output right after the answer still belongs to it.
//! - Unknown messages, such as a new kind of update, are ignored.

use serde_json::{Value, json};

use super::client_request::ClientRequest;
use super::final_message::{FinalMessage, TrailingMessage};
use super::json_rpc::{BoundedLineBuffer, JsonRpcError, JsonRpcMessage, NO_SUCH_METHOD};
use super::methods::{CANCEL, PROMPT, REQUEST_PERMISSION, SESSION_UPDATE};
use super::permissions::{AgentPermissions, ToolPermission};
use super::protocol_error::{ProtocolError, quote_line_start};
use super::tool_use::{ToolUse, ToolUseChange, ToolUseTracker};
use super::usage_meter::UsageMeter;
use crate::headless::trim_line;

/// The most bytes that an agent may send between our request and its answer.
const MAX_TURN_BYTES: u64 = 256 * 1024 * 1024;
/// The most lines on standard output that are no messages. Some programs print a few when they start.
const MAX_NOISE_LINES: u32 = 64;
/// How many steps of a plan are kept, and how much of each.
const MAX_PLAN_STEPS: usize = 50;
const MAX_PLAN_STEP_LENGTH: usize = 200;

/// Something that the agent said or did.
#[derive(Debug, Clone, PartialEq)]
pub enum AcpEvent {
    /// The answer to the open request.
    Answer(Result<Value, JsonRpcError>),
    /// Text for the user.
    Text(String),
    /// A tool use began or ended.
    Tool(ToolUseChange),
    /// A permission request and our answer: the kind of the chosen option, if there was one.
    PermissionAnswered { tool: ToolUse, permission: ToolPermission, answer: Option<String> },
    /// The agent's plan: each step and its status.
    Plan(Vec<(String, String)>),
    /// A notice beside the work.
    Notice(String),
    /// A request for a client service. The caller answers it.
    Request { id: Value, request: ClientRequest },
}

#[derive(Debug, Default)]
pub struct AcpClient {
    lines: BoundedLineBuffer,
    permissions: AgentPermissions,
    asked: u64,
    open: Option<u64>,
    /// Whether output belongs to the turn: until its final message is taken, because some agents answer before their last output.
    listens: bool,
    /// The conversation whose messages count.
    conversation: Option<String>,
    cancelling: bool,
    speech: FinalMessage,
    aside: TrailingMessage,
    /// The tool uses of this turn, and the usage of the model.
    pub tools: ToolUseTracker,
    pub meter: UsageMeter,
    bytes: u64,
    noise: u32,
    /// The first line that was no message.
    first_noise: Option<String>,
    /// Bytes to send.
    out: Vec<u8>,
}

impl AcpClient {
    pub fn new(permissions: AgentPermissions) -> Self {
        Self { permissions, ..Self::default() }
    }

    /// Sends a request. Output so far belongs to the previous one.
    pub fn send_request(&mut self, method: &str, params: Value) {
        self.asked += 1;
        (self.open, self.cancelling, self.bytes) = (Some(self.asked), false, 0);
        (self.speech, self.aside) = (FinalMessage::default(), TrailingMessage::default());
        self.tools.begin_turn();
        self.listens = method == PROMPT;
        if method == PROMPT {
            self.meter.begin_turn();
        }
        let request = JsonRpcMessage::Request { id: self.asked.into(), method: method.to_owned(), params };
        self.out.extend(request.to_line());
    }

    /// Answers a request of the agent.
    pub fn send_response(&mut self, id: Value, outcome: Result<Value, JsonRpcError>) {
        self.out.extend(JsonRpcMessage::Answer { id, outcome }.to_line());
    }

    /// Sets the conversation whose messages count from now on.
    pub fn set_conversation(&mut self, conversation: &str) {
        self.conversation = Some(conversation.to_owned());
    }

    /// Asks the agent to cancel its turn. The agent still answers the prompt.
    pub fn cancel_turn(&mut self) {
        let Some(conversation) = &self.conversation else { return };
        self.cancelling = true;
        let params = json!({"sessionId": conversation});
        self.out.extend(JsonRpcMessage::Notice { method: CANCEL.to_owned(), params }.to_line());
    }

    /// Returns how many bytes are waiting to be sent.
    pub fn outgoing_len(&self) -> usize {
        self.out.len()
    }

    /// Takes the bytes to send.
    pub fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes the final message of the turn, and ends the turn.
    pub fn take_final_message(&mut self) -> String {
        self.listens = false;
        std::mem::take(&mut self.speech).into_text()
    }

    /// Takes the last message, if the agent sent it as a separate message and it is short.
    pub fn take_trailing_message(&mut self) -> Option<String> {
        std::mem::take(&mut self.aside).into_separate_message()
    }

    /// Returns whether the turn has neither text nor tool uses.
    pub fn is_turn_empty(&self) -> bool {
        self.speech.is_blank() && self.tools.used_count() == 0
    }

    /// Returns the first line that was no message. It may explain a missing answer.
    pub fn first_noise_line(&self) -> Option<&str> {
        self.first_noise.as_deref()
    }

    pub fn receive_bytes(&mut self, bytes: &[u8]) -> Result<Vec<AcpEvent>, ProtocolError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_TURN_BYTES {
            return Err(ProtocolError::TooMuch { most: MAX_TURN_BYTES });
        }
        self.lines.push(bytes);
        let mut said = Vec::new();
        match self.read_messages(&mut said) {
            // An answer that came before the error counts.
            Err(breach) if !said.iter().any(|said| matches!(said, AcpEvent::Answer(_))) => Err(breach),
            _ => Ok(said),
        }
    }

    fn read_messages(&mut self, said: &mut Vec<AcpEvent>) -> Result<(), ProtocolError> {
        while let Some(line) = self.lines.next()? {
            let line = trim_line(&line);
            match line.first() {
                None => {}
                Some(b'{') => said.extend(self.handle_message(JsonRpcMessage::parse_line(line)?)?),
                Some(_) => self.record_noise_line(line)?,
            }
        }
        Ok(())
    }

    /// Records a line that is no message. Some programs print a greeting; one that prints only such lines is no agent.
    fn record_noise_line(&mut self, line: &[u8]) -> Result<(), ProtocolError> {
        self.noise += 1;
        let first = self.first_noise.get_or_insert_with(|| quote_line_start(line));
        if self.noise > MAX_NOISE_LINES { Err(ProtocolError::Noise { beginning: first.clone() }) } else { Ok(()) }
    }

    fn handle_message(&mut self, message: JsonRpcMessage) -> Result<Option<AcpEvent>, ProtocolError> {
        match message {
            JsonRpcMessage::Answer { id, outcome } if self.open.is_some() && id.as_u64() == self.open => {
                self.open = None;
                Ok(Some(AcpEvent::Answer(outcome)))
            }
            // The agent could not parse our request.
            JsonRpcMessage::Answer { id: Value::Null, outcome: Err(refused) } if self.open.is_some() => {
                self.open = None;
                Ok(Some(AcpEvent::Answer(Err(refused))))
            }
            JsonRpcMessage::Answer { id, .. } => Err(ProtocolError::UnknownAnswer { id: id.to_string() }),
            JsonRpcMessage::Request { id, method, params } => Ok(self.handle_request(id, &method, &params)),
            JsonRpcMessage::Notice { method, params } if method == SESSION_UPDATE => Ok(self.handle_update(&params)),
            JsonRpcMessage::Notice { .. } => Ok(None),
        }
    }

    fn handle_request(&mut self, id: Value, method: &str, params: &Value) -> Option<AcpEvent> {
        if method == REQUEST_PERMISSION {
            let (answer, asked) = self.answer_permission(params);
            self.send_response(id, Ok(answer));
            return Some(asked);
        }
        let refused = match ClientRequest::from_request(method, params) {
            Some(Ok(request)) => return Some(AcpEvent::Request { id, request }),
            Some(Err(refused)) => refused,
            None => JsonRpcError::new(NO_SUCH_METHOD, format!("`{method}` is not served here")),
        };
        self.send_response(id, Err(refused));
        None
    }

    /// Answers a permission request. An option is chosen by its kind, not by its position.
    fn answer_permission(&self, params: &Value) -> (Value, AcpEvent) {
        let tool = self.tools.find_asked_tool(&params["toolCall"]);
        let permission = self.permissions.for_tool_kind(tool.kind);
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let kinds = if self.cancelling { [""; 2] } else { permission.option_kinds() };
        let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
        let outcome = match chosen {
            Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
            None => json!({"outcome": "cancelled"}),
        };
        let answer = chosen.and_then(|option| option["kind"].as_str()).map(str::to_owned);
        (json!({"outcome": outcome}), AcpEvent::PermissionAnswered { tool, permission, answer })
    }

    fn handle_update(&mut self, params: &Value) -> Option<AcpEvent> {
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str()?;
        let ours = self.conversation.as_deref().map(|ours| params["sessionId"] == *ours);
        if kind == "usage_update" {
            // Usage counts before the first turn too: it sets the start of the count.
            if ours != Some(false) {
                self.meter.update_total_cost(update);
            }
            return None;
        }
        if ours != Some(true) || !self.listens {
            return None;
        }
        match kind {
            "agent_message_chunk" => {
                self.meter.add_chunk_tokens(update);
                let text = update["content"]["text"].as_str()?;
                self.speech.push_text(text);
                self.aside.push_chunk(update["messageId"].as_str(), text);
                Some(AcpEvent::Text(text.to_owned()))
            }
            "tool_call" | "tool_call_update" => {
                let used = self.tools.used_count();
                let change = self.tools.apply_update(update)?;
                if self.tools.used_count() > used {
                    self.speech.begin_tool_call();
                }
                Some(AcpEvent::Tool(change))
            }
            "plan" => Some(AcpEvent::Plan(read_plan_steps(&update["entries"]))),
            "notice" => Some(AcpEvent::Notice(truncate_plan_text(&update["title"]))),
            _ => None,
        }
    }
}

fn read_plan_steps(entries: &Value) -> Vec<(String, String)> {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .take(MAX_PLAN_STEPS)
        .map(|entry| (truncate_plan_text(&entry["content"]), truncate_plan_text(&entry["status"])))
        .collect()
}

fn truncate_plan_text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text[..text.floor_char_boundary(MAX_PLAN_STEP_LENGTH)].to_owned()
}

#[cfg(test)]
mod tests;
