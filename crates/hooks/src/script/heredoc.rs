//! Here-documents: where they end, and that nothing in them opens what it does not close.

use super::lexer::Lexer;
use super::refusal::{Stop, Why};
use super::word::Word;

/// A here-document that is announced, and whose text is still to come.
#[derive(Debug)]
pub(super) struct Pending {
    delimiter: String,
    /// Whether tabs at the beginning of lines do not count.
    indented: bool,
    /// Whether its text is taken as it is.
    raw: bool,
}

impl Lexer<'_> {
    /// The delimiter, from behind `<<`.
    pub fn announce(&mut self) -> Result<(), Stop> {
        let indented = self.eat("-");
        self.blanks()?;
        let word = self.within(Why::HereDocument, Self::word)?;
        match word.literal {
            Some(delimiter) if self.at > word.start && !delimiter.contains('\n') => {
                self.pending.push(Pending { delimiter, indented, raw: !word.plain });
                Ok(())
            }
            _ => Err(Stop::Lost("a here-document whose end is not known")),
        }
    }

    /// The texts that begin on this line.
    pub fn bodies(&mut self) -> Result<(), Stop> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let end = self.end_of(&pending)?;
            self.refuse_between(start, end, Why::HereDocument)?;
            let after = self.at;
            if !pending.raw {
                self.at = start;
                self.expansions(end)?;
            }
            self.at = after;
        }
        Ok(())
    }

    /// Where the text ends; goes behind the line that ends it.
    fn end_of(&mut self, pending: &Pending) -> Result<usize, Stop> {
        while self.at < self.text.len() {
            let (start, rest) = (self.at, &self.text[self.at..]);
            let line = rest.split('\n').next().unwrap_or(rest);
            self.at = (start + line.len() + 1).min(self.text.len());
            let filled = self.marks.iter().find(|mark| (start..self.at).contains(&mark.at.start));
            let before = filled.filter(|mark| !mark.name.is_free()).map(|mark| &self.text[start..mark.at.start]);
            if before.is_some_and(|before| pending.delimiter.starts_with(before.trim_start_matches('\t'))) {
                return Err(Stop::Lost("a line of a here-document that may turn out to be its end"));
            }
            let line = if pending.indented { line.trim_start_matches('\t') } else { line };
            if line == pending.delimiter {
                return Ok(start);
            }
            if !pending.raw && line.ends_with('\\') {
                return Err(Stop::Lost("a backslash at the end of a line of a here-document"));
            }
        }
        Err(Stop::Lost("a here-document without an end"))
    }

    /// What is expanded in the text must end in it.
    fn expansions(&mut self, end: usize) -> Result<(), Stop> {
        let mut word = Word::new(self.at);
        while self.at < end {
            match self.peek() {
                Some('\\') => self.escape_in_double(&mut word)?,
                Some('$') => self.within(Why::HereDocument, |lexer| lexer.dollar_in_double(&mut word))?,
                Some('`') => self.backticks(&mut word)?,
                _ => {
                    self.next();
                }
            }
        }
        match self.at == end {
            true => Ok(()),
            false => Err(Stop::Lost("a here-document with something unclosed in it")),
        }
    }
}
