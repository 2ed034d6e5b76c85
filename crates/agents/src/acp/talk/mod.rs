//! Our side of the protocol, without pipes: bytes come in, and what they mean comes out, with what has to be said back.
//!
//! Invariants:
//! - At most one question of ours is open, and only its answer is taken.
//! - Every question of the agent is answered: permission by policy at once, what is to be done by whoever does it, and
//!   anything else with "no such method".
//! - What the agent says outside of a turn, as when it tells an old conversation again, belongs to no turn. A turn is over
//!   when what was said in it is taken: what an agent says right behind its answer is still said in it.
//! - What is not known here, as a new kind of update, is passed over.

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

/// What an agent may send between our question and its answer.
const BYTES: u64 = 256 * 1024 * 1024;
/// Lines on standard output that are no messages, as some programs print when they start.
const NOISE: u32 = 64;
/// How many steps of a plan are told, and how much of each.
const STEPS: usize = 50;
const STEP: usize = 200;

/// What the agent did.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// It answered the open question.
    Answer(Result<Value, Refused>),
    /// It said something to the person.
    Text(String),
    /// It uses a tool, or has used it.
    Tool(Change),
    /// It asked whether it may use a tool, and got this answer: the kind of the option, if one was chosen.
    Asked { tool: Tool, permission: Permission, answer: Option<String> },
    /// It told its plan: each step, and how far it is.
    Plan(Vec<(String, String)>),
    /// It has something to say beside its work.
    Notice(String),
    /// It wants something done. Whoever does it answers this question.
    Wish { id: Value, wish: Wish },
}

#[derive(Debug, Default)]
pub struct Talk {
    lines: Lines,
    permissions: Permissions,
    asked: u64,
    open: Option<u64>,
    /// A turn goes on, until its speech is taken: some agents answer before they have said everything.
    listens: bool,
    /// The conversation whose messages count.
    conversation: Option<String>,
    cancelling: bool,
    speech: Speech,
    aside: Aside,
    /// The tools that it uses in this turn, and what it has used of the model.
    pub tools: Tools,
    pub meter: Meter,
    bytes: u64,
    noise: u32,
    /// The first line that was no message.
    first_noise: Option<String>,
    /// What is to be said back.
    out: Vec<u8>,
}

impl Talk {
    pub fn new(permissions: Permissions) -> Self {
        Self { permissions, ..Self::default() }
    }

    /// Asks the agent something. What it has said so far belongs to what was before.
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

    /// Answers a question of the agent.
    pub fn answer(&mut self, id: Value, outcome: Result<Value, Refused>) {
        self.out.extend(Message::Answer { id, outcome }.line());
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
        self.out.extend(Message::Notice { method: CANCEL.to_owned(), params }.line());
    }

    /// How much has to be said to the agent now.
    pub fn unsaid(&self) -> usize {
        self.out.len()
    }

    /// What has to be said to the agent now.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The final message of the turn.
    pub fn take_speech(&mut self) -> String {
        self.listens = false;
        std::mem::take(&mut self.speech).finish()
    }

    /// The last message, where the agent has told it apart from the one before it, and it is short.
    pub fn take_aside(&mut self) -> Option<String> {
        std::mem::take(&mut self.aside).finish()
    }

    /// Nothing was said in the turn, and no tool was used.
    pub fn is_wordless(&self) -> bool {
        self.speech.is_blank() && self.tools.used() == 0
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
        match self.read(&mut said) {
            // What was answered before it stands.
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

    /// Chosen by what an option is, not by where it stands.
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
            // Before the first turn too: it says where the count begins.
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
