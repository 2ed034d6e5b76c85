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

use windlass_process::{CapturedOutput, ProgramOutcome, SpillFile};

use crate::excerpt::{MAX_PIECE_BYTES, push_missing_mark, split_units};
use crate::line_score::{LineScore, NumberedFailures, score_lines};
use crate::mask::{MaskedDisplayStream, SecretMask, read_chunks};
use crate::text::OutputCleaner;

/// The size of the text that is scanned at once.
const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// The bytes of the first and of the last lines that are kept of each kind.
const MAX_FOUND_BYTES: usize = 16 * 1024;
/// The cost of a line beside its own bytes: a mark of missing bytes may precede it.
const GAP_MARK_BYTES: usize = 32;
/// The number of lines after an error that explain it further.
const LINES_AFTER_ERROR: usize = 2;

/// Masks the captured output of a run, and adds relevant lines from its spill file. The run's output must not be changed before.
pub fn excerpt_run(mut run: ProgramOutcome, mask: &SecretMask) -> ProgramOutcome {
    for kept in [&mut run.stdout, &mut run.stderr] {
        let spilled = kept.spilled.as_ref().filter(|_| kept.omitted_byte_count() > 0);
        match spilled.map(|spilled| excerpt_stream(kept, spilled, mask)) {
            Some(Ok(text)) => {
                (kept.total, kept.head, kept.tail) = (text.len() as u64, text.into_bytes(), Vec::new());
            }
            Some(Err(_)) | None => mask.mask_captured(kept),
        }
    }
    run
}

fn excerpt_stream(kept: &CapturedOutput, spilled: &SpillFile, mask: &SecretMask) -> io::Result<String> {
    let (from, to) = (kept.head.len() as u64, kept.total - kept.tail.len() as u64);
    let between = to.min(spilled.kept).checked_sub(from).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut file = spilled.open_unchanged()?;
    file.seek(SeekFrom::Start(from))?;
    // Never less than memory has: a response that was too long stays too long.
    let mut excerpt = SpillExcerptBuilder::new(kept.head.len() + MAX_PIECE_BYTES, kept.tail.len() + MAX_PIECE_BYTES);
    let mut text = CleanTextStream::new(mask);
    excerpt.push(&text.push(&kept.head));
    read_chunks(&mut file.take(between), |piece| {
        excerpt.push(&text.push(piece));
        Ok(true)
    })?;
    match to - from - between {
        0 => excerpt.push(&text.push(&kept.tail)),
        // The text before the gap and the possible beginning of a value are dropped together.
        missing => {
            let (tail, more) = mask.mask_after_gap(&kept.tail);
            text = CleanTextStream::new(mask);
            excerpt.skip_missing(missing + more as u64);
            excerpt.push(&text.push(&tail));
        }
    }
    excerpt.push(&text.finish());
    Ok(excerpt.finish())
}

/// Turns bytes into clean text without secrets.
struct CleanTextStream<'m> {
    shown: MaskedDisplayStream<'m>,
    cleaner: OutputCleaner,
}

impl<'m> CleanTextStream<'m> {
    fn new(mask: &'m SecretMask) -> Self {
        Self { shown: mask.open_display_stream(), cleaner: OutputCleaner::default() }
    }

    fn push(&mut self, bytes: &[u8]) -> String {
        self.cleaner.push(&self.shown.push(bytes))
    }

    fn finish(mut self) -> String {
        self.cleaner.push(&self.shown.finish()) + &self.cleaner.finish()
    }
}

/// A line, or a piece of a long one.
struct ScoredLine {
    /// The number of bytes before it.
    at: u64,
    text: Box<str>,
    weight: LineScore,
}

/// Builds the excerpt from text as it arrives.
struct SpillExcerptBuilder {
    /// The text that is not yet split into lines, and its position.
    rest: String,
    at: u64,
    /// Whether it begins within a line.
    within: bool,
    start: String,
    /// The room left for the start, until it is full.
    start_room: Option<usize>,
    recent: RecentLines,
    names: FoundLines,
    errors: FoundLines,
    /// The first names: test runners often repeat the failed tests.
    seen: HashSet<Box<str>>,
    /// The number of lines since the last error.
    since: usize,
    numbered: NumberedFailures,
}

impl SpillExcerptBuilder {
    /// Creates a builder that keeps this many bytes of the start and of the end.
    fn new(start: usize, end: usize) -> Self {
        Self {
            rest: String::new(),
            at: 0,
            within: false,
            start: String::new(),
            start_room: Some(start),
            recent: RecentLines::new(end, 0),
            names: FoundLines::default(),
            errors: FoundLines::default(),
            seen: HashSet::new(),
            since: LINES_AFTER_ERROR,
            numbered: NumberedFailures::default(),
        }
    }

    fn push(&mut self, text: &str) {
        self.rest.push_str(text);
        while self.rest.len() >= MAX_BLOCK_BYTES {
            let block = &self.rest[..self.rest.floor_char_boundary(MAX_BLOCK_BYTES)];
            let end = block.rfind('\n').map_or(block.len(), |last| last + 1);
            let after = self.rest.split_off(end);
            let block = mem::replace(&mut self.rest, after);
            self.scan_block(&block);
        }
    }

    /// Records that bytes are missing here.
    fn skip_missing(&mut self, bytes: u64) {
        let rest = mem::take(&mut self.rest);
        self.scan_block(&rest);
        self.at += bytes;
        self.within = true;
    }

    fn scan_block(&mut self, block: &str) {
        let mut units = split_units(block, MAX_PIECE_BYTES);
        if let Some(first) = units.first_mut().filter(|_| self.within) {
            first.anchor = None;
        }
        score_lines(block, &mut units, &mut self.numbered);
        for unit in &units {
            let text = &block[unit.start..unit.end];
            self.take_line(ScoredLine { at: self.at, text: text.into(), weight: unit.weight });
            self.at += text.len() as u64;
        }
        self.within = !block.ends_with('\n');
    }

    fn take_line(&mut self, line: ScoredLine) {
        self.start_room = self.start_room.and_then(|room| room.checked_sub(line.text.len()));
        // A gap may lie within the start.
        if self.start_room.is_some() && self.start.len() as u64 == line.at {
            self.start.push_str(&line.text);
            return;
        }
        self.start_room = None;
        self.recent.push(line);
        while let Some(line) = self.recent.pop_excess_line() {
            self.keep_relevant_line(line);
        }
    }

    /// Keeps a line from between if it has a score, or is next to an error.
    fn keep_relevant_line(&mut self, line: ScoredLine) {
        let before = self.recent.lines.front().is_some_and(|next| next.weight == LineScore::Error);
        let near = before || self.since < LINES_AFTER_ERROR;
        self.since = if line.weight == LineScore::Error { 0 } else { self.since + 1 };
        match line.weight {
            LineScore::Name if self.seen.contains(line.text.trim()) => {}
            LineScore::Name => {
                if self.names.has_room {
                    self.seen.insert(line.text.trim().into());
                }
                self.names.push(line);
            }
            LineScore::Error => self.errors.push(line),
            LineScore::Hint | LineScore::None if near => self.errors.push(line),
            LineScore::Hint | LineScore::None => {}
        }
    }

    fn finish(mut self) -> String {
        let rest = mem::take(&mut self.rest);
        self.scan_block(&rest);
        let mut end = self.start.len() as u64;
        let mut text = self.start;
        let mut found: Vec<ScoredLine> = self.names.into_lines().chain(self.errors.into_lines()).collect();
        found.sort_by_key(|line| line.at);
        for line in found.into_iter().chain(self.recent.lines) {
            if line.at > end {
                push_missing_mark(&mut text, line.at - end);
            }
            text.push_str(&line.text);
            end = line.at + line.text.len() as u64;
        }
        if self.at > end {
            push_missing_mark(&mut text, self.at - end);
        }
        text
    }
}

/// The last lines, up to a number of bytes.
struct RecentLines {
    lines: VecDeque<ScoredLine>,
    bytes: usize,
    most: usize,
    /// The cost of a line beside its own bytes.
    more: usize,
}

impl RecentLines {
    fn new(most: usize, more: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, most, more }
    }

    fn push(&mut self, line: ScoredLine) {
        self.bytes += line.text.len() + self.more;
        self.lines.push_back(line);
    }

    /// Removes the first line if the lines exceed their room.
    fn pop_excess_line(&mut self) -> Option<ScoredLine> {
        let line = self.lines.pop_front_if(|_| self.bytes > self.most)?;
        self.bytes -= line.text.len() + self.more;
        Some(line)
    }
}

/// The first and the last lines of a kind.
struct FoundLines {
    first: Vec<ScoredLine>,
    bytes: usize,
    has_room: bool,
    last: RecentLines,
}

impl Default for FoundLines {
    fn default() -> Self {
        Self { first: Vec::new(), bytes: 0, has_room: true, last: RecentLines::new(MAX_FOUND_BYTES, GAP_MARK_BYTES) }
    }
}

impl FoundLines {
    fn push(&mut self, line: ScoredLine) {
        self.bytes += line.text.len() + GAP_MARK_BYTES;
        self.has_room &= self.bytes <= MAX_FOUND_BYTES;
        if self.has_room {
            self.first.push(line);
        } else {
            self.last.push(line);
            while self.last.pop_excess_line().is_some() {}
        }
    }

    fn into_lines(self) -> impl Iterator<Item = ScoredLine> {
        self.first.into_iter().chain(self.last.lines)
    }
}

#[cfg(test)]
mod tests;
