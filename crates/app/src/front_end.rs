//! Notices for the person who waits for a command, and the front end that shows them.

use std::fmt::{self, Debug, Display};

use windlass_text as text;

use crate::Failure;

/// A message to the person who waits for a command.
#[derive(Debug)]
pub enum Notice<'a> {
    Note(&'a str),
    /// A note that is shown at most once.
    NoteOnce(&'static str),
    Warning(&'a str),
    /// A failure after the command itself has succeeded.
    Failure(&'a Failure),
}

/// Cleaned to one line without control characters: a notice may hold text of agents and hooks.
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

/// A user interface of Windlass: a command line, a web page, a library.
pub trait FrontEnd: Debug + Send + Sync {
    fn show_notice(&self, notice: Notice<'_>);
}

/// A front end that shows nothing.
#[derive(Debug)]
pub struct SilentFrontEnd;

impl FrontEnd for SilentFrontEnd {
    fn show_notice(&self, _: Notice<'_>) {}
}
