//! The state of a turn, accumulated from the stream of any agent.

use std::time::Duration;

use windlass_engine::AgentUsage;

use super::command_line::is_conversation_name;
use super::stream_event::StreamEvent;
use crate::acp::ClippedText;
use crate::failure::AgentFailure;
use crate::rate_limit_reset::RateLimitReset;

/// The longest title of a tool call in the transcript.
const MAX_TITLE_LENGTH: usize = 120;
/// The most open calls that are tracked.
const MAX_OPEN_CALLS: usize = 1000;

/// The accumulated state of a turn.
#[derive(Debug, Default)]
pub(super) struct TurnAccumulator {
    /// The current message: the text after the last tool call.
    words: ClippedText,
    message: Option<String>,
    /// Whether the agent has called a tool.
    worked: bool,
    /// Whether the stream has named its conversation.
    named: bool,
    pub usage: AgentUsage,
    pub span: UsageScope,
    /// How the turn ended, as the stream says. The latest statement counts.
    pub end: Option<StreamEnd>,
    /// The last reported error. It need not have ended the turn.
    pub error: Option<String>,
    /// The delay before the agent's next attempt, as the service asked for it.
    pub retry: Option<Duration>,
    /// When the rate limit resets, if the stream says so.
    pub reset: Option<RateLimitReset>,
    /// Events for observers.
    pub events: Vec<StreamEvent>,
    last_char: Option<char>,
    /// Open calls: several may run at once, also beyond the next message.
    called: Vec<String>,
}

/// The scope of reported usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageScope {
    #[default]
    Turn,
    /// The whole conversation so far.
    Conversation,
    /// The turn or the conversation, depending on the agent's version. The turn alone has used at least this many tokens.
    TurnOrConversation(u64),
}

/// How a turn ended, as the stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Success, with the answer if the stream repeats it.
    Done(Option<String>),
    Failed(AgentFailure),
}

impl TurnAccumulator {
    /// Adds text to a message, or begins another message.
    pub fn add_message_text(&mut self, message: Option<&str>, text: &str) {
        if message != self.message.as_deref() {
            self.words = ClippedText::default();
            self.message = message.map(str::to_owned);
            self.begin_new_line();
        }
        self.words.push(text);
        self.emit_text(text.to_owned());
    }

    /// Adds text like `add_message_text`, for an agent that sends whole paragraphs.
    pub fn add_message_paragraph(&mut self, message: Option<&str>, text: &str) {
        let follows = message == self.message.as_deref() && !self.words.is_blank();
        self.add_message_text(message, &if follows { format!("\n{text}") } else { text.to_owned() });
    }

    /// Records a tool call. The text before it is not the final message.
    pub fn record_tool_call(&mut self, title: &str) {
        self.worked = true;
        self.words = ClippedText::default();
        self.message = None;
        self.begin_new_line();
        let title: String = title.lines().next().unwrap_or_default().chars().take(MAX_TITLE_LENGTH).collect();
        self.emit_text(format!("[{title}]\n"));
    }

    /// Records a tool call that the stream reports at its start and at its end.
    pub fn record_tool_call_once(&mut self, id: &str, title: &str, is_over: bool) {
        match self.called.iter().position(|called| called == id) {
            Some(at) if is_over => drop(self.called.swap_remove(at)),
            Some(_) => {}
            None => {
                if !is_over && self.called.len() < MAX_OPEN_CALLS {
                    self.called.push(id.to_owned());
                }
                self.record_tool_call(title);
            }
        }
    }

    /// Records the name of the conversation. A turn has one conversation: the first that is named.
    pub fn record_conversation(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| is_conversation_name(name) && !self.named) {
            self.named = true;
            self.events.push(StreamEvent::Conversation(name.to_owned()));
        }
    }

    pub fn record_failure(&mut self, trouble: AgentFailure) {
        self.end = Some(StreamEnd::Failed(trouble));
    }

    /// Returns whether the agent has neither said nor done anything.
    pub fn is_empty(&self) -> bool {
        self.words.is_blank() && !self.worked
    }

    pub fn take_message(&mut self) -> String {
        std::mem::take(&mut self.words).into_string()
    }

    fn begin_new_line(&mut self) {
        if self.last_char.is_some_and(|last| last != '\n') {
            self.emit_text("\n".to_owned());
        }
    }

    fn emit_text(&mut self, text: String) {
        if let Some(last) = text.chars().last() {
            self.last_char = Some(last);
            self.events.push(StreamEvent::Text(text));
        }
    }
}
