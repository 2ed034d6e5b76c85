//! Events that reach the program, and requests that leave it.

use crossterm::event::KeyEvent;
use windlass_app::Failure;
use windlass_app::answer_choice::AnswerChoice;

use crate::page::{ViewData, ViewQuery};

/// Everything that can happen to the program.
#[derive(Debug)]
pub enum TopEvent {
    Key(KeyEvent),
    /// Text that was pasted. Its line ends are no keys.
    Paste(String),
    /// The terminal has this many columns and rows.
    Resized(u16, u16),
    /// The terminal has to be drawn anew.
    Continued,
    /// The log has grown.
    Committed,
    /// The time now. It comes once a second.
    Ticked(i64),
    Loaded(ViewQuery, Box<Result<ViewData, ErrorLine>>),
    /// The end of a command, with a sentence about what happens now.
    CommandEnded(StoreCommand, Result<String, ErrorLine>),
    /// A notice of the application while a command runs.
    Notice(ErrorLine),
    Live(LiveUpdate),
    /// A signal, a closed terminal or a defect ends the program.
    Ended,
}

/// An error or a notice in one line, with its hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLine {
    pub message: String,
    pub hint: Option<String>,
    pub is_error: bool,
}

impl ErrorLine {
    pub fn from_failure(failure: &Failure) -> Self {
        let message = failure.causes.iter().fold(failure.message.clone(), |all, cause| format!("{all}: {cause}"));
        Self { message, hint: failure.hint_with_options(), is_error: true }
    }
}

/// A change of the text that an agent is writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveUpdate {
    /// A turn of this session begins.
    TurnStarted(String),
    Lines(String, Vec<String>),
    TurnEnded(String),
}

/// Work for other threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopRequest {
    Load(ViewQuery),
    Execute(StoreCommand),
    /// Follow the output of this session, or of none.
    Follow(Option<String>),
    /// Stop the process, as Ctrl-Z does.
    Suspend,
    Redraw,
    Quit,
}

/// A command of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreCommand {
    Answer { subject: String, answer: AnswerChoice, text: Option<String> },
    Say { session: String, text: String },
    CancelSession { session: String, reason: Option<String> },
    MergeChange { task: String },
}

impl StoreCommand {
    /// Returns the text that the person has typed for it.
    pub fn typed_text(&self) -> Option<&str> {
        match self {
            Self::Answer { text, .. } => text.as_deref(),
            Self::Say { text, .. } => Some(text),
            Self::CancelSession { reason, .. } => reason.as_deref(),
            Self::MergeChange { .. } => None,
        }
    }

    /// Describes the command while it runs.
    pub fn describe_running(&self) -> String {
        match self {
            Self::Answer { subject, .. } => format!("answering {subject} …"),
            Self::Say { .. } => "sending …".to_owned(),
            Self::CancelSession { session, .. } => format!("ending {session} …"),
            Self::MergeChange { task } => format!("merging the change of {task} …"),
        }
    }
}
