//! What a stream has said so far, whichever agent's it is.

use std::time::Duration;

use windlass_engine::Usage;

use super::stream_event::Said;
use super::words::is_name;
use crate::acp::Text;
use crate::reset::Reset;
use crate::trouble::Trouble;

/// What is told of a tool's call.
const TITLE: usize = 120;
/// The most calls that are kept in mind at once.
const CALLS: usize = 1000;

/// What is known of a turn.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The message that is being said: what follows its last tool call.
    words: Text,
    message: Option<String>,
    /// It has called a tool.
    worked: bool,
    /// Its conversation was told.
    named: bool,
    pub usage: Usage,
    pub span: Span,
    /// How the stream says that the turn ended. What comes later counts.
    pub close: Option<Close>,
    /// The last error that it told, which may or may not be the end of it.
    pub error: Option<String>,
    /// How long it was told to wait before it asks again.
    pub retry: Option<Duration>,
    /// When it may be asked again, where it is told so.
    pub reset: Option<Reset>,
    /// For whoever watches.
    pub said: Vec<Said>,
    last_told: Option<char>,
    /// Calls that have begun: several at once, and some outlast what is said meanwhile.
    called: Vec<String>,
}

/// Since when what is told to be used was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Span {
    #[default]
    Turn,
    /// Since the conversation began.
    Conversation,
    /// That depends on its version. This turn alone has used so many tokens at least.
    Either(u64),
}

/// How a stream says that its turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Close {
    /// Well, with these words if the stream says them again.
    Done(Option<String>),
    Failed(Trouble),
}

impl Account {
    /// Words of a message, after what was said in it before.
    pub fn say(&mut self, message: Option<&str>, text: &str) {
        if message != self.message.as_deref() {
            self.words = Text::default();
            self.message = message.map(str::to_owned);
            self.break_line();
        }
        self.words.push(text);
        self.tell(text.to_owned());
    }

    /// The same for an agent that tells whole paragraphs.
    pub fn say_paragraph(&mut self, message: Option<&str>, text: &str) {
        let follows = message == self.message.as_deref() && !self.words.is_blank();
        self.say(message, &if follows { format!("\n{text}") } else { text.to_owned() });
    }

    /// It turns to work: what was said before is not its last word.
    pub fn call(&mut self, title: &str) {
        self.worked = true;
        self.words = Text::default();
        self.message = None;
        self.break_line();
        let title: String = title.lines().next().unwrap_or_default().chars().take(TITLE).collect();
        self.tell(format!("[{title}]\n"));
    }

    /// The same, for a call that is told when it begins and when it is over.
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

    /// The conversation that this is said in. There is one in a turn: the first that is told.
    pub fn name(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| is_name(name) && !self.named) {
            self.named = true;
            self.said.push(Said::Conversation(name.to_owned()));
        }
    }

    pub fn fail(&mut self, trouble: Trouble) {
        self.close = Some(Close::Failed(trouble));
    }

    /// Whether it has neither said nor done anything.
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
