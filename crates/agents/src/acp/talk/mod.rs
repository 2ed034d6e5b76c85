//! The client's side of the protocol, without pipes: takes bytes, returns events and the bytes to send.
//!
//! Invariants:
//! - At most one request of ours is open, and only its answer is accepted.
//! - Every request of the agent is answered: permission requests by policy at once, client requests by the caller, and
//!   anything else with "no such method".
//! - Output outside of a turn, such as a replayed conversation, belongs to no turn. A turn lasts until its final message is
//!   taken, so output right after the answer still belongs to it.
//! - Unknown messages, such as a new kind of update, are ignored.

use serde_json::{Value, json};

use super::breach::{Breach, beginning};
use super::meter::Meter;
use super::methods::{CANCEL, PROMPT, REQUEST_PERMISSION, UPDATE};
use super::permissions::{Permission, Permissions};
use super::speech::{Aside, Speech};
use super::tools::{Change, Tool, Tools};
use super::wire::{Lines, Message, NO_SUCH_METHOD, Refused};
use super::wish::Wish;
use crate::headless::bare;

/// The most bytes that an agent may send between our request and its answer.
const BYTES: u64 = 256 * 1024 * 1024;
/// The most lines on standard output that are no messages. Some programs print a few when they start.
const NOISE: u32 = 64;
/// How many steps of a plan are kept, and how much of each.
const STEPS: usize = 50;
const STEP: usize = 200;

/// Something that the agent said or did.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The answer to the open request.
    Answer(Result<Value, Refused>),
    /// Text for the user.
    Text(String),
    /// A tool use began or ended.
    Tool(Change),
    /// A permission request and our answer: the kind of the chosen option, if there was one.
    Asked { tool: Tool, permission: Permission, answer: Option<String> },
    /// The agent's plan: each step and its status.
    Plan(Vec<(String, String)>),
    /// A notice beside the work.
    Notice(String),
    /// A request for a client service. The caller answers it.
    Wish { id: Value, wish: Wish },
}

#[derive(Debug, Default)]
pub struct Talk {
    lines: Lines,
    permissions: Permissions,
    asked: u64,
    open: Option<u64>,
    /// Whether output belongs to the turn: until its final message is taken, because some agents answer before their last output.
    listens: bool,
    /// The conversation whose messages count.
    conversation: Option<String>,
    cancelling: bool,
    speech: Speech,
    aside: Aside,
    /// The tool uses of this turn, and the usage of the model.
    pub tools: Tools,
    pub meter: Meter,
    bytes: u64,
    noise: u32,
    /// The first line that was no message.
    first_noise: Option<String>,
    /// Bytes to send.
    out: Vec<u8>,
}

impl Talk {
    pub fn new(permissions: Permissions) -> Self {
        Self { permissions, ..Self::default() }
    }

    /// Sends a request. Output so far belongs to the previous one.
    pub fn ask(&mut self, method: &str, params: Value) {
        self.asked += 1;
        (self.open, self.cancelling, self.bytes) = (Some(self.asked), false, 0);
        (self.speech, self.aside) = (Speech::default(), Aside::default());
        self.tools.begin_turn();
        self.listens = method == PROMPT;
        if method == PROMPT {
            self.meter.begin_turn();
        }
        let request = Message::Request { id: self.asked.into(), method: method.to_owned(), params };
        self.out.extend(request.line());
    }

    /// Answers a request of the agent.
    pub fn answer(&mut self, id: Value, outcome: Result<Value, Refused>) {
        self.out.extend(Message::Answer { id, outcome }.line());
    }

    /// Sets the conversation whose messages count from now on.
    pub fn listen_to(&mut self, conversation: &str) {
        self.conversation = Some(conversation.to_owned());
    }

    /// Asks the agent to cancel its turn. The agent still answers the prompt.
    pub fn cancel(&mut self) {
        let Some(conversation) = &self.conversation else { return };
        self.cancelling = true;
        let params = json!({"sessionId": conversation});
        self.out.extend(Message::Notice { method: CANCEL.to_owned(), params }.line());
    }

    /// Returns how many bytes are waiting to be sent.
    pub fn unsaid(&self) -> usize {
        self.out.len()
    }

    /// Takes the bytes to send.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes the final message of the turn, and ends the turn.
    pub fn take_speech(&mut self) -> String {
        self.listens = false;
        std::mem::take(&mut self.speech).finish()
    }

    /// Takes the last message, if the agent sent it as a separate message and it is short.
    pub fn take_aside(&mut self) -> Option<String> {
        std::mem::take(&mut self.aside).finish()
    }

    /// Returns whether the turn has neither text nor tool uses.
    pub fn is_wordless(&self) -> bool {
        self.speech.is_blank() && self.tools.used() == 0
    }

    /// Returns the first line that was no message. It may explain a missing answer.
    pub fn first_noise(&self) -> Option<&str> {
        self.first_noise.as_deref()
    }

    pub fn hear(&mut self, bytes: &[u8]) -> Result<Vec<Said>, Breach> {
        self.bytes += bytes.len() as u64;
        if self.bytes > BYTES {
            return Err(Breach::TooMuch { most: BYTES });
        }
        self.lines.push(bytes);
        let mut said = Vec::new();
        match self.read(&mut said) {
            // An answer that came before the error counts.
            Err(breach) if !said.iter().any(|said| matches!(said, Said::Answer(_))) => Err(breach),
            _ => Ok(said),
        }
    }

    fn read(&mut self, said: &mut Vec<Said>) -> Result<(), Breach> {
        while let Some(line) = self.lines.next()? {
            let line = bare(&line);
            match line.first() {
                None => {}
                Some(b'{') => said.extend(self.message(Message::parse(line)?)?),
                Some(_) => self.noise(line)?,
            }
        }
        Ok(())
    }

    /// Records a line that is no message. Some programs print a greeting; one that prints only such lines is no agent.
    fn noise(&mut self, line: &[u8]) -> Result<(), Breach> {
        self.noise += 1;
        let first = self.first_noise.get_or_insert_with(|| beginning(line));
        if self.noise > NOISE { Err(Breach::Noise { beginning: first.clone() }) } else { Ok(()) }
    }

    fn message(&mut self, message: Message) -> Result<Option<Said>, Breach> {
        match message {
            Message::Answer { id, outcome } if self.open.is_some() && id.as_u64() == self.open => {
                self.open = None;
                Ok(Some(Said::Answer(outcome)))
            }
            // The agent could not parse our request.
            Message::Answer { id: Value::Null, outcome: Err(refused) } if self.open.is_some() => {
                self.open = None;
                Ok(Some(Said::Answer(Err(refused))))
            }
            Message::Answer { id, .. } => Err(Breach::UnknownAnswer { id: id.to_string() }),
            Message::Request { id, method, params } => Ok(self.request(id, &method, &params)),
            Message::Notice { method, params } if method == UPDATE => Ok(self.update(&params)),
            Message::Notice { .. } => Ok(None),
        }
    }

    fn request(&mut self, id: Value, method: &str, params: &Value) -> Option<Said> {
        if method == REQUEST_PERMISSION {
            let (answer, asked) = self.permit(params);
            self.answer(id, Ok(answer));
            return Some(asked);
        }
        let refused = match Wish::of(method, params) {
            Some(Ok(wish)) => return Some(Said::Wish { id, wish }),
            Some(Err(refused)) => refused,
            None => Refused::new(NO_SUCH_METHOD, format!("`{method}` is not served here")),
        };
        self.answer(id, Err(refused));
        None
    }

    /// Answers a permission request. An option is chosen by its kind, not by its position.
    fn permit(&self, params: &Value) -> (Value, Said) {
        let tool = self.tools.asked(&params["toolCall"]);
        let permission = self.permissions.of(tool.kind);
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let kinds = if self.cancelling { [""; 2] } else { permission.options() };
        let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
        let outcome = match chosen {
            Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
            None => json!({"outcome": "cancelled"}),
        };
        let answer = chosen.and_then(|option| option["kind"].as_str()).map(str::to_owned);
        (json!({"outcome": outcome}), Said::Asked { tool, permission, answer })
    }

    fn update(&mut self, params: &Value) -> Option<Said> {
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str()?;
        let ours = self.conversation.as_deref().map(|ours| params["sessionId"] == *ours);
        if kind == "usage_update" {
            // Usage counts before the first turn too: it sets the start of the count.
            if ours != Some(false) {
                self.meter.heed(update);
            }
            return None;
        }
        if ours != Some(true) || !self.listens {
            return None;
        }
        match kind {
            "agent_message_chunk" => {
                self.meter.heed_beside(update);
                let text = update["content"]["text"].as_str()?;
                self.speech.say(text);
                self.aside.say(update["messageId"].as_str(), text);
                Some(Said::Text(text.to_owned()))
            }
            "tool_call" | "tool_call_update" => {
                let used = self.tools.used();
                let change = self.tools.heed(update)?;
                if self.tools.used() > used {
                    self.speech.turn_to_work();
                }
                Some(Said::Tool(change))
            }
            "plan" => Some(Said::Plan(steps(&update["entries"]))),
            "notice" => Some(Said::Notice(short(&update["title"]))),
            _ => None,
        }
    }
}

fn steps(entries: &Value) -> Vec<(String, String)> {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().take(STEPS).map(|entry| (short(&entry["content"]), short(&entry["status"]))).collect()
}

fn short(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text[..text.floor_char_boundary(STEP)].to_owned()
}

#[cfg(test)]
mod tests;
