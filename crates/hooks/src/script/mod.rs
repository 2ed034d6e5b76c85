//! The command of a hook: shell text in which a few placeholders stand for values of the run.
//!
//! ```text
//! text ─ template ─► PlaceholderMarks ─ scanner ─► PlaceholderContexts, or UnsafeTemplate ─► HookScript ─ fill_values ─► shell text
//! ```
//!
//! Invariants:
//! - Only checked values become shell text. Free text becomes a reference to its variable, in double quotes, and only where
//!   the shell does not evaluate the result a second time.
//! - The scanner refuses shell text that it cannot follow if that contains free text, and only then.
//! - Everything else reaches the shell byte for byte.
//!
//! Not here: the variables themselves and the files of long values (`input`, `input_files`). Nor how a script uses a
//! variable of its own: the author answers for `x={{error}}; eval "$x"`.

mod argv;
mod commands;
mod evaluators;
mod refusal;
mod scanner;
mod template;
#[cfg(test)]
mod tests;
mod word;

use std::ops::Range;

pub use argv::{FilledWord, UnsafeArgument, WordOrigin, check_argv, check_filled_words};
pub use refusal::UnsafeTemplate;
use template::{PlaceholderMark, PlaceholderName};

/// A command that is safe to fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookScript {
    text: String,
    /// In the order of the text.
    slots: Vec<ScriptSlot>,
}

/// The values of a command's placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptValues<'a> {
    /// Letters, digits, `_` and `-`.
    pub session: &'a str,
    /// Digits.
    pub iteration: &'a str,
    /// `T12`, or empty.
    pub task_id: &'a str,
    pub task_content: InputChannel,
    pub error: InputChannel,
}

/// The channel of free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputChannel {
    /// In `WINDLASS_TASK_CONTENT` or `WINDLASS_ERROR`.
    Variable,
    /// The file that `WINDLASS_TASK_CONTENT_FILE` or `WINDLASS_ERROR_FILE` names. A shell drops the newlines at the end of
    /// what it reads from there.
    File,
}

/// The context of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceholderContext {
    /// A checked value, at any place.
    Anywhere,
    /// Free text as a word, or as a part of one.
    Bare,
    /// Free text within double quotes.
    Quoted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ScriptSlot {
    name: PlaceholderName,
    at: Range<usize>,
    place: PlaceholderContext,
}

impl HookScript {
    pub fn parse(text: &str) -> Result<Self, UnsafeTemplate> {
        let marks = template::find_placeholders(text);
        let slots = match marks.iter().find(|mark| mark.name.is_free_text()) {
            None => marks
                .into_iter()
                .map(|PlaceholderMark { name, at }| ScriptSlot { name, at, place: PlaceholderContext::Anywhere })
                .collect(),
            Some(first) => {
                let places =
                    scanner::locate_marks(text, &marks).map_err(|stop| stop.into_unsafe_template(&marks, first))?;
                let slot = |(PlaceholderMark { name, at }, place)| Some(ScriptSlot { name, at, place: place? });
                // A mark without a place is in a comment, and stays as it is.
                marks.into_iter().zip(places).filter_map(slot).collect()
            }
        };
        Ok(Self { text: text.to_owned(), slots })
    }

    /// Returns the text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn fill_values(&self, values: &ScriptValues<'_>) -> String {
        let mut filled = String::with_capacity(self.text.len());
        let mut from = 0;
        for slot in &self.slots {
            filled.push_str(&self.text[from..slot.at.start]);
            filled.push_str(&slot.filled_text(values));
            from = slot.at.end;
        }
        filled.push_str(&self.text[from..]);
        filled
    }
}

impl ScriptSlot {
    fn filled_text(&self, values: &ScriptValues<'_>) -> String {
        let carrier = match self.name {
            PlaceholderName::Session => return values.session.to_owned(),
            PlaceholderName::Iteration => return values.iteration.to_owned(),
            PlaceholderName::TaskId => return values.task_id.to_owned(),
            PlaceholderName::TaskContent => values.task_content,
            PlaceholderName::Error => values.error,
        };
        let variable = self.name.variable_name();
        let reference = match carrier {
            InputChannel::Variable => format!("${{{variable}}}"),
            InputChannel::File => format!("$(cat \"${variable}_FILE\")"),
        };
        match self.place {
            PlaceholderContext::Quoted => reference,
            PlaceholderContext::Bare | PlaceholderContext::Anywhere => format!("\"{reference}\""),
        }
    }
}
