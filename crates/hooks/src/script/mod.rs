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

pub use argv::{FilledWord, UnsafeArgument, WordOrigin, check_argv, check_filled};
pub use refusal::UnsafeTemplate;
use template::{Mark, Name};

/// A command that is safe to fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    text: String,
    /// In the order of the text.
    slots: Vec<Slot>,
}

/// The values of a command's placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values<'a> {
    /// Letters, digits, `_` and `-`.
    pub session: &'a str,
    /// Digits.
    pub iteration: &'a str,
    /// `T12`, or empty.
    pub task_id: &'a str,
    pub task_content: Carrier,
    pub error: Carrier,
}

/// The channel of free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// In `WINDLASS_TASK_CONTENT` or `WINDLASS_ERROR`.
    Variable,
    /// The file that `WINDLASS_TASK_CONTENT_FILE` or `WINDLASS_ERROR_FILE` names. A shell drops the newlines at the end of
    /// what it reads from there.
    File,
}

/// The context of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A checked value, at any place.
    Anywhere,
    /// Free text as a word, or as a part of one.
    Bare,
    /// Free text within double quotes.
    Quoted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    name: Name,
    at: Range<usize>,
    place: Place,
}

impl Script {
    pub fn parse(text: &str) -> Result<Self, UnsafeTemplate> {
        let marks = template::marks(text);
        let slots = match marks.iter().find(|mark| mark.name.is_free()) {
            None => marks.into_iter().map(|Mark { name, at }| Slot { name, at, place: Place::Anywhere }).collect(),
            Some(first) => {
                let places = scanner::places(text, &marks).map_err(|stop| stop.of(&marks, first))?;
                let slot = |(Mark { name, at }, place)| Some(Slot { name, at, place: place? });
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

    pub fn fill(&self, values: &Values<'_>) -> String {
        let mut filled = String::with_capacity(self.text.len());
        let mut from = 0;
        for slot in &self.slots {
            filled.push_str(&self.text[from..slot.at.start]);
            filled.push_str(&slot.filling(values));
            from = slot.at.end;
        }
        filled.push_str(&self.text[from..]);
        filled
    }
}

impl Slot {
    fn filling(&self, values: &Values<'_>) -> String {
        let carrier = match self.name {
            Name::Session => return values.session.to_owned(),
            Name::Iteration => return values.iteration.to_owned(),
            Name::TaskId => return values.task_id.to_owned(),
            Name::TaskContent => values.task_content,
            Name::Error => values.error,
        };
        let variable = self.name.variable();
        let reference = match carrier {
            Carrier::Variable => format!("${{{variable}}}"),
            Carrier::File => format!("$(cat \"${variable}_FILE\")"),
        };
        match self.place {
            Place::Quoted => reference,
            Place::Bare | Place::Anywhere => format!("\"{reference}\""),
        }
    }
}
