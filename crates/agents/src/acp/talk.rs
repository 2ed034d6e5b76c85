//! Our side of the protocol, without pipes: bytes come in, and what they mean comes out, with what has to be said back.
//!
//! Invariants:
//! - At most one question of ours is open, and only its answer is taken.
//! - Every question of the agent is answered at once: permission by policy, anything else with "no such method".
//! - What the agent says outside of a turn, as when it tells an old conversation again, belongs to no turn.

use serde_json::{Value, json};

use super::breach::{Breach, beginning};
use super::speech::Speech;
use super::wire::{LINE, Lines, Message, NO_SUCH_METHOD, Refused};

/// What an agent may send between our question and its answer.
const BYTES: u64 = 256 * 1024 * 1024;
/// Lines on standard output that are no messages, as some programs print when they start.
const NOISE: u32 = 64;

/// The answer when an agent asks whether it may do something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Permission {
    /// Yes, this time.
    #[default]
    Allow,
    Deny,
}

/// What the agent did.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// It answered the open question.
    Answer(Result<Value, Refused>),
    /// It said something to the person.
    Text(String),
    /// It began to use a tool.
    Tool(String),
}

#[derive(Debug)]
pub struct Talk {
    lines: Lines,
    permission: Permission,
    asked: u64,
    open: Option<u64>,
    /// The conversation whose messages count.
    conversation: Option<String>,
    cancelling: bool,
    speech: Speech,
    bytes: u64,
    noise: u32,
    /// The first line that was no message.
    first_noise: Option<String>,
    /// What is to be said back.
    out: Vec<u8>,
}

impl Talk {
    pub fn new(permission: Permission) -> Self {
        Self {
            lines: Lines::new(LINE),
            permission,
            asked: 0,
            open: None,
            conversation: None,
            cancelling: false,
            speech: Speech::default(),
            bytes: 0,
            noise: 0,
            first_noise: None,
            out: Vec::new(),
        }
    }

    /// Asks the agent something. What it has said so far belongs to what was before.
    pub fn ask(&mut self, method: &str, params: Value) {
        self.asked += 1;
        (self.open, self.cancelling, self.bytes) = (Some(self.asked), false, 0);
        self.speech = Speech::default();
        let request = Message::Request { id: self.asked.into(), method: method.to_owned(), params };
        self.out.extend(request.line());
    }

    /// Messages of this conversation count from now on.
    pub fn listen_to(&mut self, conversation: &str) {
        self.conversation = Some(conversation.to_owned());
    }

    /// Asks the agent to give its turn up. It still answers.
    pub fn cancel(&mut self) {
        let Some(conversation) = &self.conversation else { return };
        self.cancelling = true;
        let params = json!({"sessionId": conversation});
        self.out.extend(Message::Notice { method: "session/cancel".to_owned(), params }.line());
    }

    /// What has to be said to the agent now.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The final message of the turn.
    pub fn take_speech(&mut self) -> String {
        std::mem::take(&mut self.speech).finish()
    }

    /// What the agent wrote that was no message, for whoever wonders why it does not answer.
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
        while let Some(line) = self.lines.next()? {
            let line = line.trim_ascii();
            match line.first() {
                None => {}
                Some(b'{') => said.extend(self.message(Message::parse(line)?)?),
                Some(_) => self.noise(line)?,
            }
        }
        Ok(said)
    }

    /// Some programs greet on standard output. One that only does that is no agent.
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
            // It could not read what we said.
            Message::Answer { id: Value::Null, outcome: Err(refused) } if self.open.is_some() => {
                self.open = None;
                Ok(Some(Said::Answer(Err(refused))))
            }
            Message::Answer { id, .. } => Err(Breach::UnknownAnswer { id: id.to_string() }),
            Message::Request { id, method, params } => {
                let outcome = match method.as_str() {
                    "session/request_permission" => Ok(self.permit(&params)),
                    _ => Err(Refused {
                        code: NO_SUCH_METHOD,
                        message: format!("`{method}` is not served here"),
                        data: None,
                    }),
                };
                self.out.extend(Message::Answer { id, outcome }.line());
                Ok(None)
            }
            Message::Notice { method, params } if method == "session/update" => Ok(self.update(&params)),
            Message::Notice { .. } => Ok(None),
        }
    }

    /// Chosen by what an option is, not by where it stands.
    fn permit(&self, params: &Value) -> Value {
        let kinds = match self.permission {
            _ if self.cancelling => [""; 2],
            Permission::Allow => ["allow_once", "allow_always"],
            Permission::Deny => ["reject_once", "reject_always"],
        };
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
        match chosen {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }

    fn update(&mut self, params: &Value) -> Option<Said> {
        let ours = self.conversation.as_deref().is_some_and(|ours| params["sessionId"] == *ours);
        if !ours || self.open.is_none() {
            return None;
        }
        let update = &params["update"];
        match update["sessionUpdate"].as_str()? {
            "agent_message_chunk" => {
                let text = update["content"]["text"].as_str()?;
                self.speech.say(text);
                Some(Said::Text(text.to_owned()))
            }
            "tool_call" => {
                self.speech.turn_to_work();
                Some(Said::Tool(update["title"].as_str().unwrap_or_default().to_owned()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "talk_tests.rs"]
mod tests;
