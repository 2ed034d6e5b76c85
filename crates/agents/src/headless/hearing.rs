//! The reader of an event stream: its lines, and the meaning of its end.
//!
//! ```text
//!   bytes ─► lines ─► events of the dialect ─► TurnAccumulator
//!              └─► other lines: noise, which programs print when they start
//! ```

use windlass_engine::{Fault, Usage};
use windlass_process::{Exit, Stream};

use super::account::{Account, Close, Span};
use super::cause::{self, is_gone};
use super::dialect::Dialect;
use super::stream_event::Said;
use super::{claude, codex, gemini, goose, line, opencode};
use crate::TurnEnd;
use crate::acp::{LINE, Lines};
use crate::trouble::{self, Trouble};

/// How much of standard error is kept, from its end.
const COMPLAINTS: usize = 16 * 1024;
/// How much of an unknown line is quoted.
const SHOWN: usize = 120;

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Turn(TurnEnd),
    /// The previous conversation could not be resumed because it does not exist.
    Gone(String),
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    pub ended: Ended,
    /// The reported usage and its scope.
    pub usage: Usage,
    pub span: Span,
}

impl Heard {
    /// Returns the usage of the turn alone. `before` is the usage of the conversation before it.
    pub fn used(&self, before: Usage) -> Usage {
        let grown = |tokens: u64| self.usage.tokens() >= before.tokens().saturating_add(tokens);
        match self.span {
            Span::Conversation => self.usage.since(before),
            Span::Either(tokens) if grown(tokens) => self.usage.since(before),
            Span::Turn | Span::Either(_) => self.usage,
        }
    }
}

/// Reads the stream of one turn.
#[derive(Debug)]
pub struct Hearing {
    dialect: Dialect,
    lines: Lines,
    account: Account,
    /// Whether the agent was asked to resume a conversation.
    resumes: bool,
    /// Whether there was an event that the dialect knows.
    known: bool,
    /// The first line that was no such event.
    noise: Option<String>,
    complaints: Vec<u8>,
    /// Whether a line was too long. The rest of the stream is ignored.
    flooded: bool,
}

impl Hearing {
    pub fn new(dialect: Dialect, resumes: bool) -> Self {
        Self {
            dialect,
            lines: Lines::default(),
            account: Account::default(),
            resumes,
            known: false,
            noise: None,
            complaints: Vec::new(),
            flooded: false,
        }
    }

    /// Takes output and returns the new events.
    pub fn hear(&mut self, stream: Stream, bytes: &[u8]) -> Vec<Said> {
        match stream {
            Stream::Stdout if !self.flooded => {
                self.lines.push(bytes);
                self.read();
            }
            Stream::Stdout => {}
            Stream::Stderr => {
                self.complaints.extend_from_slice(bytes);
                let over = self.complaints.len().saturating_sub(COMPLAINTS);
                self.complaints.drain(..over);
            }
        }
        std::mem::take(&mut self.account.said)
    }

    /// Returns whether no more output is needed, so that the process may be ended.
    pub fn is_enough(&self) -> bool {
        self.flooded || self.dialect.lingers() && self.account.close.is_some()
    }

    fn read(&mut self) {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => self.take(&line),
                Ok(None) => return,
                Err(_) => {
                    self.flooded = true;
                    self.lines = Lines::default();
                    return;
                }
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        let account = &mut self.account;
        let known = line::event(line).is_some_and(|event| match self.dialect {
            Dialect::Claude => claude::read(account, &event),
            Dialect::Codex => codex::read(account, &event),
            Dialect::Opencode => opencode::read(account, &event),
            Dialect::Gemini => gemini::read(account, &event),
            Dialect::Goose => goose::read(account, &event),
        });
        self.known |= known;
        if !known && self.noise.is_none() && !line.trim_ascii().is_empty() {
            let text = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN)]);
            self.noise = Some(text.trim().chars().take(SHOWN).collect());
        }
    }

    /// Returns the outcome of the turn after the end of its process.
    pub fn end(mut self, exit: Exit) -> Heard {
        // The last line may lack its line end.
        self.hear(Stream::Stdout, b"\n");
        let ended = self.ended(exit);
        Heard { ended, usage: self.account.usage, span: self.account.span }
    }

    fn ended(&mut self, exit: Exit) -> Ended {
        if self.flooded {
            let why = format!("it wrote a line of more than {} MiB", LINE >> 20);
            return Ended::Turn(TurnEnd::failed(Fault::Garbage, why));
        }
        match self.account.close.take() {
            Some(Close::Failed(trouble)) => self.failed(trouble),
            // A completed stream counts, however the process exited.
            Some(Close::Done(words)) => Ended::Turn(self.done(words)),
            None => self.broken_off(exit),
        }
    }

    fn done(&mut self, words: Option<String>) -> TurnEnd {
        if self.account.is_empty() && words.as_deref().is_none_or(|words| words.trim().is_empty()) {
            return TurnEnd::failed(Fault::Empty, "the agent ended its turn without a word");
        }
        // A result may come without the answer, which the messages already had.
        let said = words.filter(|words| !words.trim().is_empty()).unwrap_or_else(|| self.account.take_words());
        // goose marks its own messages, so a message of the model is always an answer.
        let found = (self.dialect != Dialect::Goose).then(|| trouble::instead_of_an_answer(&said)).flatten();
        match found {
            Some(trouble) => trouble.end(self.dialect.program()),
            None => TurnEnd::Said(said),
        }
    }

    fn failed(&self, trouble: Trouble) -> Ended {
        match trouble {
            Trouble::Failed { said, .. } if self.resumes && self.account.is_empty() && is_gone(&said) => {
                Ended::Gone(said)
            }
            trouble => Ended::Turn(trouble.end(self.dialect.program())),
        }
    }

    /// Returns the end of a turn whose process exited before its stream was complete.
    fn broken_off(&self, exit: Exit) -> Ended {
        let turn = |fault, why: String| Ended::Turn(TurnEnd::failed(fault, why));
        let end = match exit {
            Exit::Cancelled => return Ended::Turn(TurnEnd::Cancelled),
            Exit::TimedOut => return Ended::Turn(TurnEnd::TimedOut),
            Exit::Silent => return turn(Fault::Silent, self.explained("it wrote nothing for too long")),
            Exit::Lost => return turn(Fault::Crashed, "its supervisor died".to_owned()),
            Exit::Code(code) => format!("exit {code}"),
            Exit::Signal(signal) => format!("ended by signal {signal}"),
        };
        let complaints = String::from_utf8_lossy(&self.complaints);
        if matches!(exit, Exit::Code(126 | 127)) && !self.known && self.noise.is_none() {
            return Ended::Turn(TurnEnd::Broken(self.explained("the program cannot be started")));
        }
        let noise = self.noise.as_deref().unwrap_or_default();
        let told = self.account.error.as_deref().map(cause::of_words);
        let told = told.or_else(|| match exit {
            Exit::Code(0) => None,
            _ => trouble::of_failure(noise, &complaints),
        });
        if let Some(told) = told {
            return self.failed(told);
        }
        if !self.known && self.resumes && exit != Exit::Code(0) && is_gone(&complaints) {
            return Ended::Gone(self.last_complaint().unwrap_or(end));
        }
        match (self.known, &self.noise, exit) {
            (true, _, _) => {
                turn(Fault::Crashed, self.explained(&format!("it ended in the middle of its turn ({end})")))
            }
            (false, Some(noise), _) => turn(
                Fault::Garbage,
                format!("it wrote nothing that `{}` writes ({end}), but `{noise}`", self.dialect.program()),
            ),
            (false, None, Exit::Code(0)) => turn(Fault::Garbage, self.explained("it wrote nothing at all (exit 0)")),
            (false, None, Exit::Signal(_)) => turn(Fault::Crashed, self.explained(&end)),
            (false, None, _) => self.failed(cause::of_words(&self.explained(&end))),
        }
    }

    /// Appends the last complaint on standard error to a description.
    fn explained(&self, end: &str) -> String {
        match self.last_complaint() {
            Some(complaint) => format!("{end}: {complaint}"),
            None => end.to_owned(),
        }
    }

    /// Returns the last line that begins with "error", else the last line.
    fn last_complaint(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.complaints);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
        let last = lines.clone().next()?;
        let telling = lines.find(|line| line.to_lowercase().starts_with("error"));
        Some(telling.unwrap_or(last).to_owned())
    }
}
