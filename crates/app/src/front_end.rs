//! What a person should hear while a command goes on, and the front end that shows it.

use std::fmt::{self, Debug, Display};

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

impl Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) => write!(f, "note: {text}"),
            Self::NoteOnce(text) => write!(f, "note: {text}"),
            Self::Warning(text) => write!(f, "warning: {text}"),
            Self::Failure(failure) => write!(f, "error: {failure}"),
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
