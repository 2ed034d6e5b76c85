//! The terminal as a front end: notices go to standard error.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use windlass_app::{FrontEnd, Notice};

use crate::output::Messages;

/// A front end that prints notices to standard error.
#[derive(Debug, Default)]
pub struct TerminalFrontEnd {
    shown_once: Mutex<BTreeSet<&'static str>>,
}

impl FrontEnd for TerminalFrontEnd {
    fn show(&self, notice: Notice<'_>) {
        match notice {
            Notice::Note(text) => Messages::new().note(text),
            Notice::Warning(text) => Messages::new().warning(text),
            Notice::Failure(failure) => Messages::new().failure(failure),
            Notice::NoteOnce(text) => {
                if self.shown_once.lock().unwrap_or_else(PoisonError::into_inner).insert(text) {
                    Messages::new().note(text);
                }
            }
        }
    }
}
