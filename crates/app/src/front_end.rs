//! What a person should hear while a command goes on, and the front end that shows it.

use std::fmt::{self, Debug, Display};

use windlass_text as text;

use crate::Failure;

/// A message to the person who waits for a command.
#[derive(Debug)]
pub enum Notice<'a> {
    Note(&'a str),
    /// A note that is shown once, however often it is due.
    NoteOnce(&'static str),
    Warning(&'a str),
    /// Something failed after the command itself had succeeded.
    Failure(&'a Failure),
}

/// One line that a terminal does not obey: a notice may hold text of agents and hooks.
impl Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) => write!(f, "note: {}", text::line(text)),
            Self::NoteOnce(text) => write!(f, "note: {}", text::line(text)),
            Self::Warning(text) => write!(f, "warning: {}", text::line(text)),
            Self::Failure(failure) => write!(f, "error: {}", text::line(&failure.message)),
        }
    }
}

/// A program that people use Windlass by: a command line, a web page, a library.
pub trait FrontEnd: Debug + Send + Sync {
    fn show(&self, notice: Notice<'_>);
}

/// A front end that shows nothing.
#[derive(Debug)]
pub struct SilentFrontEnd;

impl FrontEnd for SilentFrontEnd {
    fn show(&self, _: Notice<'_>) {}
}
