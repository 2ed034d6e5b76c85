//! Output that comes in pieces, as it is shown: without what only a terminal understands.

use super::{Mask, Stream};
use crate::text::Cleaner;

/// Masks output as it comes and is shown. Values are looked for in its bytes, of which those that are no text are not shown, and
/// in what is left of it then.
pub struct Shown<'m> {
    plain: Stream<'m>,
    cleaner: Cleaner,
    cleaned: Stream<'m>,
}

impl<'m> Shown<'m> {
    pub(super) fn new(mask: &'m Mask) -> Self {
        Self { plain: mask.stream(), cleaner: Cleaner::default(), cleaned: mask.stream() }
    }

    /// Takes more, and gives what is sure.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.cleaned.mask.is_empty() {
            return bytes.to_vec();
        }
        let plain = self.plain.push(bytes);
        self.cleaned.push(self.cleaner.push(&plain).as_bytes())
    }

    /// Gives what was held back.
    pub fn finish(mut self) -> Vec<u8> {
        let mut shown = self.cleaned.push(self.cleaner.push(&self.plain.finish()).as_bytes());
        shown.extend(self.cleaned.push(self.cleaner.finish().as_bytes()));
        shown.extend(self.cleaned.finish());
        shown
    }
}

/// Looks for values in what comes in pieces.
pub(super) struct Search<'m> {
    mask: &'m Mask,
    seen: Vec<u8>,
    pub(super) found: bool,
}

impl<'m> Search<'m> {
    pub(super) fn new(mask: &'m Mask) -> Self {
        Self { mask, seen: Vec::new(), found: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen.extend_from_slice(bytes);
        self.found |= self.mask.finder.as_ref().is_some_and(|finder| finder.is_match(&self.seen));
        self.seen.drain(..self.seen.len().saturating_sub(self.mask.longest.saturating_sub(1)));
    }
}
