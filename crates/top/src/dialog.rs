//! Dialogs: what is typed and chosen before a command runs.

use windlass_app::answer_choice::AnswerChoice;

use crate::event::StoreCommand;
use crate::line_editor::LineEditor;

/// A question to the person. Keys go to it until it is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogState {
    /// A filter of the rows; it counts while it is typed.
    Filter {
        input: LineEditor,
        before: String,
    },
    Answer {
        subject: String,
        question: String,
        answers: Vec<AnswerChoice>,
        chosen: usize,
        input: LineEditor,
    },
    Say {
        session: String,
        input: LineEditor,
    },
    /// The end of a session, with an optional reason.
    Cancel {
        session: String,
        input: LineEditor,
    },
    /// A command that needs a yes.
    Confirm {
        question: String,
        command: StoreCommand,
    },
    /// A command is running while the person wants to quit.
    Quit {
        question: String,
    },
}

impl DialogState {
    pub fn input(&self) -> Option<&LineEditor> {
        match self {
            Self::Filter { input, .. }
            | Self::Answer { input, .. }
            | Self::Say { input, .. }
            | Self::Cancel { input, .. } => Some(input),
            Self::Confirm { .. } | Self::Quit { .. } => None,
        }
    }

    pub fn input_mut(&mut self) -> Option<&mut LineEditor> {
        match self {
            Self::Filter { input, .. }
            | Self::Answer { input, .. }
            | Self::Say { input, .. }
            | Self::Cancel { input, .. } => Some(input),
            Self::Confirm { .. } | Self::Quit { .. } => None,
        }
    }

    /// Returns the key under which an unfinished text is kept.
    pub fn draft_key(&self) -> Option<String> {
        match self {
            Self::Answer { subject, .. } => Some(format!("answer {subject}")),
            Self::Say { session, .. } => Some(format!("say {session}")),
            Self::Cancel { session, .. } => Some(format!("cancel {session}")),
            Self::Filter { .. } | Self::Confirm { .. } | Self::Quit { .. } => None,
        }
    }

    /// Returns the command that the dialog asks for, if it is complete.
    pub fn command(&self) -> Option<StoreCommand> {
        match self {
            Self::Filter { .. } | Self::Quit { .. } => None,
            Self::Answer { subject, answers, chosen, input, .. } => Some(StoreCommand::Answer {
                subject: subject.clone(),
                answer: *answers.get(*chosen)?,
                text: Some(input.text()).filter(|_| !input.is_blank()),
            }),
            Self::Say { session, input } => {
                (!input.is_blank()).then(|| StoreCommand::Say { session: session.clone(), text: input.text() })
            }
            Self::Cancel { session, input } => Some(StoreCommand::CancelSession {
                session: session.clone(),
                reason: Some(input.text()).filter(|_| !input.is_blank()),
            }),
            Self::Confirm { command, .. } => Some(command.clone()),
        }
    }
}
