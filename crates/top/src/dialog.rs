//! Dialogs: what is typed and chosen before a command runs.

use windlass_app::answer_choice::AnswerChoice;
use windlass_text as text;

use crate::answer_text::{AnswerText, TextSpace};
use crate::event::StoreCommand;
use crate::line_editor::LineEditor;

/// The widest dialog, and the columns beside it and of its frame.
const MAX_DIALOG_WIDTH: u16 = 76;
const SIDE_COLUMNS: u16 = 4;
/// The most rows of the typed text, and of the text above the answers.
pub const MAX_INPUT_ROWS: usize = 5;
const MAX_TEXT_ROWS: usize = 20;
/// The rows of the screen besides the text, the answers and the typed text of a dialog.
const OTHER_ROWS: usize = 9;

/// Returns the width of a dialog on a terminal with this many columns.
pub fn dialog_width(columns: u16) -> u16 {
    columns.saturating_sub(SIDE_COLUMNS).min(MAX_DIALOG_WIDTH)
}

/// Returns the columns of the text in a dialog, on a terminal with this many columns.
pub fn text_columns(columns: u16) -> usize {
    dialog_width(columns).saturating_sub(SIDE_COLUMNS).into()
}

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
        text: AnswerText,
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

    /// Returns the space of the text above the answers, on a terminal of this size.
    pub fn text_space(&self, (columns, lines): (u16, u16)) -> TextSpace {
        let columns = text_columns(columns);
        let answers = if let Self::Answer { answers, .. } = self { answers.len() } else { 0 };
        let typed = self.input().map_or(0, |input| text::display_width(&text::clean_line(&input.text())));
        let input_rows = (typed / columns.saturating_sub(2).max(1) + 1).min(MAX_INPUT_ROWS);
        let rows = usize::from(lines).saturating_sub(OTHER_ROWS + answers + input_rows).clamp(1, MAX_TEXT_ROWS);
        TextSpace { columns, rows }
    }

    /// Scrolls the text above the answers.
    pub fn scroll_text(&mut self, is_down: bool, size: (u16, u16)) {
        let space = self.text_space(size);
        if let Self::Answer { text, .. } = self {
            text.scroll_page(is_down, space);
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
