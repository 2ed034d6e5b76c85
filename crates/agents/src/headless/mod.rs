//! Known agents by their own command lines: a new process for each prompt, in the conversation before, whose output is a
//! stream of events.
//!
//! ```text
//!   driver: prompt ─► command line (claude, codex, …) ─► process ─► lines ─► hearing ─► reader of the dialect ─► account
//!                                                                               └─► how the turn ended, what it used
//! ```
//!
//! Invariants:
//! - Neither an exit code nor a field that says "success" is believed by itself: a turn has ended well only where its
//!   stream says how it ended, and says nothing else.
//! - Only the agent's last message after its last tool call are its words: no tool's output, and no echo of a prompt.
//! - Memory is bounded, whatever comes.
//!
//! Not here: starting programs (`process`), the log of conversations (`runner`).

mod account;
mod cause;
mod claude;
mod codex;
mod driver;
mod gemini;
mod goose;
mod handing;
mod hearing;
mod line;
mod opencode;

use std::path::Path;

use windlass_process::{Capture, Environment, Invocation, Spec};

#[cfg(test)]
use account::Span;
pub(crate) use driver::HeadlessDriver;
#[cfg(any(test, fuzzing))]
pub(crate) use hearing::{Ended, Heard, Hearing, Said};
pub(crate) use line::{bare, parse};

use crate::acp::McpServer;
use crate::agent::quoted;
use crate::command::prompted;
use crate::{Access, Agent, Setup};

/// The longest name of a conversation that is taken from an agent.
const NAME: usize = 200;

/// The agents whose command lines and streams are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Goose,
}

/// Where a prompt is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// In a new conversation, by the name that we give it where the agent lets us.
    New(Option<&'a str>),
    /// In the one before.
    Before(&'a str),
}

/// A command line in parts: what a person adds stands between them.
struct Words {
    first: Vec<String>,
    last: Vec<String>,
}

impl Words {
    fn new(first: &[&str], last: &[&str]) -> Self {
        let mut words = Self { first: Vec::new(), last: last.iter().map(|word| (*word).to_owned()).collect() };
        words.add(first);
        words
    }

    /// Adds words before those of the person.
    fn add(&mut self, more: &[&str]) {
        self.first.extend(more.iter().map(|word| (*word).to_owned()));
    }

    /// Adds an option of a conversation's name, by which it is begun or taken up.
    fn add_conversation(&mut self, place: Place<'_>, begin: &str, resume: &[&str]) {
        match place {
            Place::New(Some(name)) => self.add(&[begin, name]),
            Place::New(None) => {}
            Place::Before(name) => self.add(&[resume, &[name]].concat()),
        }
    }

    fn add_model(&mut self, option: &str, setup: &Setup) {
        if let Some(model) = &setup.model {
            self.add(&[option, model]);
        }
    }
}

impl Dialect {
    /// The program that speaks it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
        }
    }

    /// The name of a new conversation, where we give it: from random bytes.
    pub fn name(self, random: u128) -> Option<String> {
        match self {
            Self::Claude | Self::Gemini => Some(uuid(random)),
            Self::Goose => Some(format!("windlass-{random:032x}")),
            Self::Codex | Self::Opencode => None,
        }
    }

    /// Whether its process stays for a while when its turn is over, with nothing more to do.
    pub fn lingers(self) -> bool {
        self == Self::Codex
    }

    /// Settings without which it would ask somebody, or could do more than it may.
    pub fn environment(self, access: Access) -> &'static [(&'static str, &'static str)] {
        match (self, access) {
            (Self::Goose, Access::Full) => &[("GOOSE_MODE", "auto")],
            (Self::Goose, Access::ReadOnly) => goose::LOOKING,
            (Self::Opencode, Access::ReadOnly) => opencode::LOOKING,
            (Self::Gemini, Access::ReadOnly) => gemini::LOOKING,
            (Self::Claude | Self::Codex | Self::Opencode | Self::Gemini, _) => &[],
        }
    }

    /// Whether there is a way to hand it tools.
    pub fn takes_tools(self) -> bool {
        self != Self::Gemini
    }

    /// The environment of a turn, with tools that it is handed.
    pub fn with_tools(self, tools: Option<&McpServer>, around: Environment) -> Environment {
        match tools {
            Some(server) => handing::environment(self, server, around),
            None => around,
        }
    }

    fn words(self, place: Place<'_>, setup: &Setup) -> Words {
        match self {
            Self::Claude => claude::words(place, setup),
            Self::Codex => codex::words(place, setup),
            Self::Opencode => opencode::words(place, setup),
            Self::Gemini => gemini::words(place, setup),
            Self::Goose => goose::words(place, setup),
        }
    }
}

/// The script that says a prompt, which comes on standard input, in a conversation, with tools that the agent is handed.
fn script(agent: &Agent, dialect: Dialect, place: Place<'_>, tools: Option<&McpServer>) -> String {
    let Words { mut first, last } = dialect.words(place, &agent.setup);
    // Before other options: one that takes as many values as come is ended by the next.
    let behind = first.iter().position(|word| word.starts_with('-')).unwrap_or(first.len());
    first.splice(behind..behind, tools.map(|server| handing::words(dialect, server)).unwrap_or_default());
    let mut script = agent.program(dialect).to_owned();
    for word in first.iter().chain(&agent.setup.args).chain(&last) {
        script.push(' ');
        script.push_str(&quoted(word));
    }
    script
}

/// A run that says a prompt.
fn spec(script: String, prompt: &str, directory: &Path, environment: Environment) -> Spec {
    // It is heard as it comes.
    let capture = Capture { head: 0, tail: 0, spill: None };
    prompted(Invocation::Shell(script.into()), prompt, directory, environment, capture)
}

/// Whether a conversation can be named so on a command line: an agent says what it likes.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    !name.is_empty() && name.len() <= NAME && !name.starts_with('-') && name.chars().all(fits)
}

/// Whether a person has given one of these options, alone or with a value: after `=`, or behind a single letter.
fn has_option(setup: &Setup, options: &[&str]) -> bool {
    let given = |word: &str, option: &str| match option.strip_prefix("--") {
        Some(_) => word.split('=').next() == Some(option),
        None => word.starts_with(option),
    };
    setup.args.iter().any(|word| options.iter().any(|option| given(word, option)))
}

/// Version 4, as programs expect it.
fn uuid(random: u128) -> String {
    let marked = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{marked:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests;
