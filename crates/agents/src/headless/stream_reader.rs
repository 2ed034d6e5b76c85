//! The reader of an event stream: its lines, and the meaning of its end.
//!
//! ```text
//!   bytes ─► lines ─► events of the dialect ─► TurnAccumulator
//!              └─► other lines: noise, which programs print when they start
//! ```

use windlass_engine::{AgentUsage, TurnFailure};
use windlass_process::{OutputStream, ProgramExit};

use super::dialect::HeadlessDialect;
use super::failure_cause::{self, is_conversation_gone};
use super::stream_event::StreamEvent;
use super::turn_accumulator::{StreamEnd, TurnAccumulator, UsageScope};
use super::{claude, codex, gemini, goose, opencode, stream_line};
use crate::TurnEnd;
use crate::acp::{BoundedLineBuffer, MAX_LINE_LENGTH};
use crate::failure::{self, AgentFailure};

/// How much of standard error is kept, from its end.
const MAX_STDERR_TAIL: usize = 16 * 1024;
/// How much of an unknown line is quoted.
const MAX_QUOTED_CHARS: usize = 120;

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadlessTurnEnd {
    Turn(TurnEnd),
    /// The previous conversation could not be resumed because it does not exist.
    ConversationLost(String),
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadlessTurnReport {
    pub end: HeadlessTurnEnd,
    /// The reported usage and its scope.
    pub usage: AgentUsage,
    pub usage_scope: UsageScope,
}

impl HeadlessTurnReport {
    /// Returns the usage of the turn alone. `before` is the usage of the conversation before it.
    pub fn usage_since(&self, before: AgentUsage) -> AgentUsage {
        let grown = |tokens: u64| self.usage.total_tokens() >= before.total_tokens().saturating_add(tokens);
        match self.usage_scope {
            UsageScope::Conversation => self.usage.increase_since(before),
            UsageScope::TurnOrConversation(tokens) if grown(tokens) => self.usage.increase_since(before),
            UsageScope::Turn | UsageScope::TurnOrConversation(_) => self.usage,
        }
    }
}

/// Reads the stream of one turn.
#[derive(Debug)]
pub struct StreamReader {
    dialect: HeadlessDialect,
    lines: BoundedLineBuffer,
    turn: TurnAccumulator,
    /// Whether the agent was asked to resume a conversation.
    resumes: bool,
    /// Whether there was an event that the dialect knows.
    has_known_event: bool,
    /// The first line that was no such event.
    first_unknown_line: Option<String>,
    stderr_tail: Vec<u8>,
    /// Whether a line was too long. The rest of the stream is ignored.
    flooded: bool,
}

impl StreamReader {
    pub fn new(dialect: HeadlessDialect, resumes: bool) -> Self {
        Self {
            dialect,
            lines: BoundedLineBuffer::default(),
            turn: TurnAccumulator::default(),
            resumes,
            has_known_event: false,
            first_unknown_line: None,
            stderr_tail: Vec::new(),
            flooded: false,
        }
    }

    /// Takes output and returns the new events.
    pub fn receive_bytes(&mut self, stream: OutputStream, bytes: &[u8]) -> Vec<StreamEvent> {
        match stream {
            OutputStream::Stdout if !self.flooded => {
                self.lines.push(bytes);
                self.read_lines();
            }
            OutputStream::Stdout => {}
            OutputStream::Stderr => {
                self.stderr_tail.extend_from_slice(bytes);
                let over = self.stderr_tail.len().saturating_sub(MAX_STDERR_TAIL);
                self.stderr_tail.drain(..over);
            }
        }
        std::mem::take(&mut self.turn.events)
    }

    /// Returns whether no more output is needed, so that the process may be ended.
    pub fn is_finished(&self) -> bool {
        self.flooded || self.dialect.lingers_after_turn() && self.turn.end.is_some()
    }

    fn read_lines(&mut self) {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => self.handle_line(&line),
                Ok(None) => return,
                Err(_) => {
                    self.flooded = true;
                    self.lines = BoundedLineBuffer::default();
                    return;
                }
            }
        }
    }

    fn handle_line(&mut self, line: &[u8]) {
        let turn = &mut self.turn;
        let known = stream_line::parse_event_line(line).is_some_and(|event| match self.dialect {
            HeadlessDialect::Claude => claude::read_event(turn, &event),
            HeadlessDialect::Codex => codex::read_event(turn, &event),
            HeadlessDialect::Opencode => opencode::read_event(turn, &event),
            HeadlessDialect::Gemini => gemini::read_event(turn, &event),
            HeadlessDialect::Goose => goose::read_event(turn, &event),
        });
        self.has_known_event |= known;
        if !known && self.first_unknown_line.is_none() && !line.trim_ascii().is_empty() {
            let text = String::from_utf8_lossy(&line[..line.len().min(4 * MAX_QUOTED_CHARS)]);
            self.first_unknown_line = Some(text.trim().chars().take(MAX_QUOTED_CHARS).collect());
        }
    }

    /// Returns the outcome of the turn after the end of its process.
    pub fn finish_turn(mut self, exit: ProgramExit) -> HeadlessTurnReport {
        // The last line may lack its line end.
        self.receive_bytes(OutputStream::Stdout, b"\n");
        let ended = self.determine_end(exit);
        HeadlessTurnReport { end: ended, usage: self.turn.usage, usage_scope: self.turn.span }
    }

    fn determine_end(&mut self, exit: ProgramExit) -> HeadlessTurnEnd {
        if self.flooded {
            let why = format!("it wrote a line of more than {} MiB", MAX_LINE_LENGTH >> 20);
            return HeadlessTurnEnd::Turn(TurnEnd::from_failure(TurnFailure::Garbage, why));
        }
        match self.turn.end.take() {
            Some(StreamEnd::Failed(trouble)) => self.classify_failure(trouble),
            // A completed stream counts, however the process exited.
            Some(StreamEnd::Done(words)) => HeadlessTurnEnd::Turn(self.classify_answer(words)),
            None => self.classify_broken_stream(exit),
        }
    }

    fn classify_answer(&mut self, words: Option<String>) -> TurnEnd {
        if self.turn.is_empty() && words.as_deref().is_none_or(|words| words.trim().is_empty()) {
            return TurnEnd::from_failure(TurnFailure::Empty, "the agent ended its turn without a message");
        }
        // A result may come without the answer, which the messages already had.
        let said = words.filter(|words| !words.trim().is_empty()).unwrap_or_else(|| self.turn.take_message());
        // goose marks its own messages, so a message of the model is always an answer.
        let found = (self.dialect != HeadlessDialect::Goose).then(|| failure::classify_failure_answer(&said)).flatten();
        match found {
            Some(trouble) => trouble.into_turn_end(self.dialect.program_name()),
            None => TurnEnd::Answered(said),
        }
    }

    fn classify_failure(&self, trouble: AgentFailure) -> HeadlessTurnEnd {
        match trouble {
            AgentFailure::Failed { said, .. }
                if self.resumes && self.turn.is_empty() && is_conversation_gone(&said) =>
            {
                HeadlessTurnEnd::ConversationLost(said)
            }
            trouble => HeadlessTurnEnd::Turn(trouble.into_turn_end(self.dialect.program_name())),
        }
    }

    /// Returns the end of a turn whose process exited before its stream was complete.
    fn classify_broken_stream(&self, exit: ProgramExit) -> HeadlessTurnEnd {
        let failed = |fault, why: String| HeadlessTurnEnd::Turn(TurnEnd::from_failure(fault, why));
        let end = match exit {
            ProgramExit::Cancelled => return HeadlessTurnEnd::Turn(TurnEnd::Cancelled),
            ProgramExit::TimedOut => return HeadlessTurnEnd::Turn(TurnEnd::TimedOut),
            ProgramExit::OutputIdle => {
                return failed(TurnFailure::Silent, self.append_last_complaint("it wrote nothing for too long"));
            }
            ProgramExit::Lost => return failed(TurnFailure::Crashed, "its supervisor died".to_owned()),
            ProgramExit::Code(code) => format!("exit {code}"),
            ProgramExit::Signal(signal) => format!("ended by signal {signal}"),
        };
        let complaints = String::from_utf8_lossy(&self.stderr_tail);
        if matches!(exit, ProgramExit::Code(126 | 127)) && !self.has_known_event && self.first_unknown_line.is_none() {
            return HeadlessTurnEnd::Turn(TurnEnd::Broken(self.append_last_complaint("cannot start the program")));
        }
        let noise = self.first_unknown_line.as_deref().unwrap_or_default();
        let reported = self.turn.error.as_deref().map(failure_cause::failure_from_message);
        let reported = reported.or_else(|| match exit {
            ProgramExit::Code(0) => None,
            _ => failure::classify_failed_output(noise, &complaints),
        });
        if let Some(reported) = reported {
            return self.classify_failure(reported);
        }
        if !self.has_known_event && self.resumes && exit != ProgramExit::Code(0) && is_conversation_gone(&complaints) {
            return HeadlessTurnEnd::ConversationLost(self.last_stderr_complaint().unwrap_or(end));
        }
        match (self.has_known_event, &self.first_unknown_line, exit) {
            (true, _, _) => failed(
                TurnFailure::Crashed,
                self.append_last_complaint(&format!("it ended in the middle of its turn ({end})")),
            ),
            (false, Some(noise), _) => failed(
                TurnFailure::Garbage,
                format!("it wrote nothing that `{}` writes ({end}), but `{noise}`", self.dialect.program_name()),
            ),
            (false, None, ProgramExit::Code(0)) => {
                failed(TurnFailure::Garbage, self.append_last_complaint("it wrote nothing at all (exit 0)"))
            }
            (false, None, ProgramExit::Signal(_)) => failed(TurnFailure::Crashed, self.append_last_complaint(&end)),
            (false, None, _) => {
                self.classify_failure(failure_cause::failure_from_message(&self.append_last_complaint(&end)))
            }
        }
    }

    /// Appends the last complaint on standard error to a description.
    fn append_last_complaint(&self, end: &str) -> String {
        match self.last_stderr_complaint() {
            Some(complaint) => format!("{end}: {complaint}"),
            None => end.to_owned(),
        }
    }

    /// Returns the last line that begins with "error", else the last line.
    fn last_stderr_complaint(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.stderr_tail);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
        let last = lines.clone().next()?;
        let error_line = lines.find(|line| line.to_lowercase().starts_with("error"));
        Some(error_line.unwrap_or(last).to_owned())
    }
}
