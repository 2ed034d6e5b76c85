//! An excerpt of output of which memory has only the start and the end: it adds the lines between that explain a failure,
//! from the spill file.
//!
//! ```text
//! head ─ file ─ tail ─ masked, cleaned ─► text ─ blocks ─ line_score ─► lines ─► start │ found: first and last │ recent
//! ```
//!
//! Invariants:
//! - Memory is bounded for any amount of output and any length of a line.
//! - The mask sees everything before anything is cut. No part of a value is left at a gap.
//! - If the file on disk is not the one that was written, the excerpt uses only what memory has.
//!
//! Not here: which lines explain a failure (`line_score`), and which of them the agent gets (`excerpt`).

use std::collections::{HashSet, VecDeque};
use std::io::{self, Read, Seek, SeekFrom};
use std::mem;

use windlass_process::{Captured, Finished, Spilled};

use crate::mask::{Mask, Shown, pieces};
use crate::signs::{Numbered, Weight, weigh};
use crate::telling::{PIECE, say_missing, split};
use crate::text::Cleaner;

/// The size of the text that is scanned at once.
const BLOCK: usize = 64 * 1024;
/// The bytes of the first and of the last lines that are kept of each kind.
const FOUND: usize = 16 * 1024;
/// The cost of a line beside its own bytes: a mark of missing bytes may precede it.
const MARK: usize = 32;
/// The number of lines after an error that explain it further.
const AFTER: usize = 2;

/// Masks the captured output of a run, and adds relevant lines from its spill file. The run's output must not be changed before.
pub fn sifted(mut run: Finished, mask: &Mask) -> Finished {
    for kept in [&mut run.stdout, &mut run.stderr] {
        let spilled = kept.spilled.as_ref().filter(|_| kept.left_out() > 0);
        match spilled.map(|spilled| sift(kept, spilled, mask)) {
            Some(Ok(text)) => {
                (kept.total, kept.head, kept.tail) = (text.len() as u64, text.into_bytes(), Vec::new());
            }
            Some(Err(_)) | None => mask.captured(kept),
        }
    }
    run
}

fn sift(kept: &Captured, spilled: &Spilled, mask: &Mask) -> io::Result<String> {
    let (from, to) = (kept.head.len() as u64, kept.total - kept.tail.len() as u64);
    let between = to.min(spilled.kept).checked_sub(from).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut file = spilled.open()?;
    file.seek(SeekFrom::Start(from))?;
    // Never less than memory has: a response that was too long stays too long.
    let mut sieve = Sieve::new(kept.head.len() + PIECE, kept.tail.len() + PIECE);
    let mut text = Text::new(mask);
    sieve.push(&text.push(&kept.head));
    pieces(&mut file.take(between), |piece| {
        sieve.push(&text.push(piece));
        Ok(true)
    })?;
    match to - from - between {
        0 => sieve.push(&text.push(&kept.tail)),
        // The text before the gap and the possible beginning of a value are dropped together.
        missing => {
            let (tail, more) = mask.after_gap(&kept.tail);
            text = Text::new(mask);
            sieve.miss(missing + more as u64);
            sieve.push(&text.push(&tail));
        }
    }
    sieve.push(&text.finish());
    Ok(sieve.finish())
}

/// Turns bytes into clean text without secrets.
struct Text<'m> {
    shown: Shown<'m>,
    cleaner: Cleaner,
}

impl<'m> Text<'m> {
    fn new(mask: &'m Mask) -> Self {
        Self { shown: mask.shown(), cleaner: Cleaner::default() }
    }

    fn push(&mut self, bytes: &[u8]) -> String {
        self.cleaner.push(&self.shown.push(bytes))
    }

    fn finish(mut self) -> String {
        self.cleaner.push(&self.shown.finish()) + &self.cleaner.finish()
    }
}

/// A line, or a piece of a long one.
struct Line {
    /// The number of bytes before it.
    at: u64,
    text: Box<str>,
    weight: Weight,
}

/// Builds the excerpt from text as it arrives.
struct Sieve {
    /// The text that is not yet split into lines, and its position.
    rest: String,
    at: u64,
    /// Whether it begins within a line.
    within: bool,
    start: String,
    /// The room left for the start, until it is full.
    room: Option<usize>,
    recent: Recent,
    names: Found,
    errors: Found,
    /// The first names: test runners often repeat the failed tests.
    seen: HashSet<Box<str>>,
    /// The number of lines since the last error.
    since: usize,
    numbered: Numbered,
}

impl Sieve {
    /// Creates a builder that keeps this many bytes of the start and of the end.
    fn new(start: usize, end: usize) -> Self {
        Self {
            rest: String::new(),
            at: 0,
            within: false,
            start: String::new(),
            room: Some(start),
            recent: Recent::new(end, 0),
            names: Found::default(),
            errors: Found::default(),
            seen: HashSet::new(),
            since: AFTER,
            numbered: Numbered::default(),
        }
    }

    fn push(&mut self, text: &str) {
        self.rest.push_str(text);
        while self.rest.len() >= BLOCK {
            let block = &self.rest[..self.rest.floor_char_boundary(BLOCK)];
            let end = block.rfind('\n').map_or(block.len(), |last| last + 1);
            let after = self.rest.split_off(end);
            let block = mem::replace(&mut self.rest, after);
            self.look(&block);
        }
    }

    /// Records that bytes are missing here.
    fn miss(&mut self, bytes: u64) {
        let rest = mem::take(&mut self.rest);
        self.look(&rest);
        self.at += bytes;
        self.within = true;
    }

    fn look(&mut self, block: &str) {
        let mut units = split(block, PIECE);
        if let Some(first) = units.first_mut().filter(|_| self.within) {
            first.anchor = None;
        }
        weigh(block, &mut units, &mut self.numbered);
        for unit in &units {
            let text = &block[unit.start..unit.end];
            self.take(Line { at: self.at, text: text.into(), weight: unit.weight });
            self.at += text.len() as u64;
        }
        self.within = !block.ends_with('\n');
    }

    fn take(&mut self, line: Line) {
        self.room = self.room.and_then(|room| room.checked_sub(line.text.len()));
        // A gap may lie within the start.
        if self.room.is_some() && self.start.len() as u64 == line.at {
            self.start.push_str(&line.text);
            return;
        }
        self.room = None;
        self.recent.push(line);
        while let Some(line) = self.recent.over() {
            self.judge(line);
        }
    }

    /// Keeps a line from between if it has a score, or is next to an error.
    fn judge(&mut self, line: Line) {
        let before = self.recent.lines.front().is_some_and(|next| next.weight == Weight::Error);
        let near = before || self.since < AFTER;
        self.since = if line.weight == Weight::Error { 0 } else { self.since + 1 };
        match line.weight {
            Weight::Name if self.seen.contains(line.text.trim()) => {}
            Weight::Name => {
                if self.names.has_room {
                    self.seen.insert(line.text.trim().into());
                }
                self.names.push(line);
            }
            Weight::Error => self.errors.push(line),
            Weight::Hint | Weight::None if near => self.errors.push(line),
            Weight::Hint | Weight::None => {}
        }
    }

    fn finish(mut self) -> String {
        let rest = mem::take(&mut self.rest);
        self.look(&rest);
        let mut end = self.start.len() as u64;
        let mut text = self.start;
        let mut found: Vec<Line> = self.names.lines().chain(self.errors.lines()).collect();
        found.sort_by_key(|line| line.at);
        for line in found.into_iter().chain(self.recent.lines) {
            if line.at > end {
                say_missing(&mut text, line.at - end);
            }
            text.push_str(&line.text);
            end = line.at + line.text.len() as u64;
        }
        if self.at > end {
            say_missing(&mut text, self.at - end);
        }
        text
    }
}

/// The last lines, up to a number of bytes.
struct Recent {
    lines: VecDeque<Line>,
    bytes: usize,
    most: usize,
    /// The cost of a line beside its own bytes.
    more: usize,
}

impl Recent {
    fn new(most: usize, more: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, most, more }
    }

    fn push(&mut self, line: Line) {
        self.bytes += line.text.len() + self.more;
        self.lines.push_back(line);
    }

    /// Removes the first line if the lines exceed their room.
    fn over(&mut self) -> Option<Line> {
        let line = self.lines.pop_front_if(|_| self.bytes > self.most)?;
        self.bytes -= line.text.len() + self.more;
        Some(line)
    }
}

/// The first and the last lines of a kind.
struct Found {
    first: Vec<Line>,
    bytes: usize,
    has_room: bool,
    last: Recent,
}

impl Default for Found {
    fn default() -> Self {
        Self { first: Vec::new(), bytes: 0, has_room: true, last: Recent::new(FOUND, MARK) }
    }
}

impl Found {
    fn push(&mut self, line: Line) {
        self.bytes += line.text.len() + MARK;
        self.has_room &= self.bytes <= FOUND;
        if self.has_room {
            self.first.push(line);
        } else {
            self.last.push(line);
            while self.last.over().is_some() {}
        }
    }

    fn lines(self) -> impl Iterator<Item = Line> {
        self.first.into_iter().chain(self.last.lines)
    }
}

#[cfg(test)]
mod tests;
