//! Output that arrives in chunks and is displayed, without terminal control sequences.

use super::{MaskedStream, SecretMask};
use crate::text::OutputCleaner;

/// Masks output as it arrives and is displayed. It searches the raw bytes, then the text that cleaning leaves.
pub struct MaskedDisplayStream<'m> {
    plain: MaskedStream<'m>,
    cleaner: OutputCleaner,
    cleaned: MaskedStream<'m>,
}

impl<'m> MaskedDisplayStream<'m> {
    pub(super) fn new(mask: &'m SecretMask) -> Self {
        Self { plain: mask.stream(), cleaner: OutputCleaner::default(), cleaned: mask.stream() }
    }

    /// Takes a chunk, and returns the text that is complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.cleaned.mask.is_empty() {
            return bytes.to_vec();
        }
        let plain = self.plain.push(bytes);
        self.cleaned.push(self.cleaner.push(&plain).as_bytes())
    }

    /// Returns the rest.
    pub fn finish(mut self) -> Vec<u8> {
        let mut shown = self.cleaned.push(self.cleaner.push(&self.plain.finish()).as_bytes());
        shown.extend(self.cleaned.push(self.cleaner.finish().as_bytes()));
        shown.extend(self.cleaned.finish());
        shown
    }
}

/// Searches for values in chunks of text.
pub(super) struct SecretSearch<'m> {
    mask: &'m SecretMask,
    seen: Vec<u8>,
    pub(super) found: bool,
}

impl<'m> SecretSearch<'m> {
    pub(super) fn new(mask: &'m SecretMask) -> Self {
        Self { mask, seen: Vec::new(), found: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen.extend_from_slice(bytes);
        self.found |= self.mask.finder.as_ref().is_some_and(|finder| finder.is_match(&self.seen));
        self.seen.drain(..self.seen.len().saturating_sub(self.mask.longest.saturating_sub(1)));
    }
}
