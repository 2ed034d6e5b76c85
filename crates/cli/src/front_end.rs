//! The terminal as a front end: notices go to standard error.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use windlass_app::{FrontEnd, Notice};

use crate::output::MessageWriter;

/// A front end that prints notices to standard error.
#[derive(Debug, Default)]
pub struct TerminalFrontEnd {
    shown_once: Mutex<BTreeSet<&'static str>>,
}

impl FrontEnd for TerminalFrontEnd {
    fn show_notice(&self, notice: Notice<'_>) {
        match notice {
            Notice::Note(text) => MessageWriter::new().print_note(text),
            Notice::Warning(text) => MessageWriter::new().print_warning(text),
            Notice::Failure(failure) => MessageWriter::new().print_failure(failure),
            Notice::NoteOnce(text) => {
                if self.shown_once.lock().unwrap_or_else(PoisonError::into_inner).insert(text) {
                    MessageWriter::new().print_note(text);
                }
            }
        }
    }
}
