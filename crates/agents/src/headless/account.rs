//! The state of a turn, accumulated from the stream of any agent.

use std::time::Duration;

use windlass_engine::Usage;

use super::stream_event::Said;
use super::words::is_name;
use crate::acp::Text;
use crate::reset::Reset;
use crate::trouble::Trouble;

/// The longest title of a tool call in the transcript.
const TITLE: usize = 120;
/// The most open calls that are tracked.
const CALLS: usize = 1000;

/// The accumulated state of a turn.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The current message: the text after the last tool call.
    words: Text,
    message: Option<String>,
    /// Whether the agent has called a tool.
    worked: bool,
    /// Whether the stream has named its conversation.
    named: bool,
    pub usage: Usage,
    pub span: Span,
    /// How the turn ended, as the stream says. The latest statement counts.
    pub close: Option<Close>,
    /// The last reported error. It need not have ended the turn.
    pub error: Option<String>,
    /// The delay before the agent's next attempt, as the service asked for it.
    pub retry: Option<Duration>,
    /// When the rate limit resets, if the stream says so.
    pub reset: Option<Reset>,
    /// Events for observers.
    pub said: Vec<Said>,
    last_told: Option<char>,
    /// Open calls: several may run at once, also beyond the next message.
    called: Vec<String>,
}

/// The scope of reported usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Span {
    #[default]
    Turn,
    /// The whole conversation so far.
    Conversation,
    /// The turn or the conversation, depending on the agent's version. The turn alone has used at least this many tokens.
    Either(u64),
}

/// How a turn ended, as the stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Close {
    /// Success, with the answer if the stream repeats it.
    Done(Option<String>),
    Failed(Trouble),
}

impl Account {
    /// Adds text to a message, or begins another message.
    pub fn say(&mut self, message: Option<&str>, text: &str) {
        if message != self.message.as_deref() {
            self.words = Text::default();
            self.message = message.map(str::to_owned);
            self.break_line();
        }
        self.words.push(text);
        self.tell(text.to_owned());
    }

    /// Adds text like `add_message_text`, for an agent that sends whole paragraphs.
    pub fn say_paragraph(&mut self, message: Option<&str>, text: &str) {
        let follows = message == self.message.as_deref() && !self.words.is_blank();
        self.say(message, &if follows { format!("\n{text}") } else { text.to_owned() });
    }

    /// Records a tool call. The text before it is not the final message.
    pub fn call(&mut self, title: &str) {
        self.worked = true;
        self.words = Text::default();
        self.message = None;
        self.break_line();
        let title: String = title.lines().next().unwrap_or_default().chars().take(TITLE).collect();
        self.tell(format!("[{title}]\n"));
    }

    /// Records a tool call that the stream reports at its start and at its end.
    pub fn call_once(&mut self, id: &str, title: &str, is_over: bool) {
        match self.called.iter().position(|called| called == id) {
            Some(at) if is_over => drop(self.called.swap_remove(at)),
            Some(_) => {}
            None => {
                if !is_over && self.called.len() < CALLS {
                    self.called.push(id.to_owned());
                }
                self.call(title);
            }
        }
    }

    /// Records the name of the conversation. A turn has one conversation: the first that is named.
    pub fn name(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| is_name(name) && !self.named) {
            self.named = true;
            self.said.push(Said::Conversation(name.to_owned()));
        }
    }

    pub fn fail(&mut self, trouble: Trouble) {
        self.close = Some(Close::Failed(trouble));
    }

    /// Returns whether the agent has neither said nor done anything.
    pub fn is_empty(&self) -> bool {
        self.words.is_blank() && !self.worked
    }

    pub fn take_words(&mut self) -> String {
        std::mem::take(&mut self.words).finish()
    }

    fn break_line(&mut self) {
        if self.last_told.is_some_and(|last| last != '\n') {
            self.tell("\n".to_owned());
        }
    }

    fn tell(&mut self, text: String) {
        if let Some(last) = text.chars().last() {
            self.last_told = Some(last);
            self.said.push(Said::Text(text));
        }
    }
}
