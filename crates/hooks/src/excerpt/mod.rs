//! Excerpts of long output: its first lines, its last lines, and from between them the lines that explain a failure.
//!
//! ```text
//! text ─ split_units ─► units ─ line_score ─► scores ─ ExcerptChoice ─► kept units ─ print_units ─► lines, with a mark at each gap
//! ```
//!
//! A unit is a line, or a piece of a line that is too long to be kept or dropped as a whole. `choose_units` takes units in
//! the order of their scores as long as there is room; the excerpt prints them in their own order.
//!
//! Invariants:
//! - The result is never longer than the limit, and text that fits stays untouched.
//! - Every line of it is a line of the text, a piece of a very long one, or a mark with the number of missing bytes.
//! - The missing bytes are counted once: a mark in the input counts for the bytes that it names.
//! - Time and memory are linear in the text.
//!
//! Not here: the scores of lines (`line_score`).

use std::collections::HashSet;

use crate::line_score::{LineScore, NumberedFailures, score_lines};

/// The longest piece of a line that is kept or dropped as a whole.
pub(crate) const MAX_PIECE_BYTES: usize = 512;
/// Lines around an error: first the next one, which usually explains more.
const NEARBY_LINES: [isize; 3] = [1, -1, 2];

/// A line with its end, or a piece of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineUnit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The position of the first letter of the line; `None` for a later piece.
    pub(crate) anchor: Option<usize>,
    pub(crate) weight: LineScore,
    /// The number of missing bytes, if the unit is a mark.
    missing: Option<u64>,
}

/// Returns an excerpt of at most `most` bytes. If there is no room for a mark, returns as much of the start as fits.
pub fn excerpt_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mark = longest_mark_bytes(text);
    let Some(room) = most.checked_sub(mark) else { return text[..text.floor_char_boundary(most)].to_owned() };
    let mut units = split_units(text, (room / 4).clamp(16, MAX_PIECE_BYTES));
    score_lines(text, &mut units, &mut NumberedFailures::default());
    let mut choice = ExcerptChoice { kept: vec![false; units.len()], units: &units, used: mark, most, mark };
    choose_units(text, &mut choice, room);
    choice.close_gaps();
    print_units(text, &units, &choice.kept)
}

/// Returns the line that best explains a failure: the last one, unless it has no score and an earlier line is an error.
pub(crate) fn most_relevant_line(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let mut units = split_units(text, MAX_PIECE_BYTES);
    score_lines(text, &mut units, &mut NumberedFailures::default());
    let last = text.lines().next_back()?;
    let of_last = units.iter().rev().find_map(|unit| unit.anchor.map(|_| unit.weight));
    let most = units.iter().filter(|unit| unit.anchor.is_some()).max_by_key(|unit| unit.weight)?;
    let dull = of_last == Some(LineScore::None) && most.weight >= LineScore::Error;
    Some(if dull { &text[most.start..most.end] } else { last }.trim())
}

/// Takes the units with the highest scores first.
fn choose_units(text: &str, choice: &mut ExcerptChoice<'_>, room: usize) {
    choice.take_ends(room / 10, room / 5);
    let names = order_outside_in(&distinct_units(text, choice.units, LineScore::Name));
    let errors = order_outside_in(&units_with_score(choice.units, LineScore::Error));
    // The first error is often the cause of the others, and the last one the result.
    for unit in errors.iter().take(2).chain(&names).chain(&errors) {
        choice.take_unit(*unit);
    }
    for distance in NEARBY_LINES {
        for unit in &errors {
            if let Some(near) = unit.checked_add_signed(distance).filter(|_| choice.kept[*unit]) {
                choice.take_unit(near);
            }
        }
    }
    for unit in order_outside_in(&units_with_score(choice.units, LineScore::Hint)) {
        choice.take_unit(unit);
    }
    choice.take_ends(room, room);
}

/// The kept units, and their cost.
struct ExcerptChoice<'u> {
    units: &'u [LineUnit],
    kept: Vec<bool>,
    /// The bytes of the kept units, and of a mark for every gap.
    used: usize,
    most: usize,
    mark: usize,
}

impl ExcerptChoice<'_> {
    /// Keeps a unit if there is room for it. A mark is never kept: it becomes part of a gap.
    fn take_unit(&mut self, unit: usize) -> bool {
        if unit >= self.units.len() || self.units[unit].missing.is_some() {
            return false;
        }
        if self.kept[unit] {
            return true;
        }
        let before = unit == 0 || self.kept[unit - 1];
        let after = unit + 1 == self.units.len() || self.kept[unit + 1];
        let used = self.used + self.units[unit].len();
        let used = match (before, after) {
            (true, true) => used - self.mark,
            (false, false) => used + self.mark,
            _ => used,
        };
        if used > self.most {
            return false;
        }
        (self.used, self.kept[unit]) = (used, true);
        true
    }

    /// Keeps the first and the last units, by turns, up to a number of bytes of each.
    fn take_ends(&mut self, of_start: usize, of_end: usize) {
        let count = self.units.len();
        let (mut left, mut open, mut next) = ([of_end, of_start], [true, true], [0, 0]);
        while open.contains(&true) {
            for side in [0, 1] {
                if !open[side] || next[side] == count {
                    open[side] = false;
                    continue;
                }
                let unit = if side == 0 { count - 1 - next[side] } else { next[side] };
                next[side] += 1;
                // A mark does not end a side: the units behind it are the nearest to the start, or to the end.
                if self.units[unit].missing.is_none() {
                    let length = self.units[unit].len();
                    open[side] = length <= left[side] && self.take_unit(unit);
                    left[side] = left[side].saturating_sub(length);
                }
            }
        }
    }

    /// Keeps gaps that are shorter than their marks.
    fn close_gaps(&mut self) {
        let mut start = 0;
        while start < self.units.len() {
            let end = (start..self.units.len()).find(|unit| self.kept[*unit]).unwrap_or(self.units.len());
            let gap = &self.units[start..end];
            let bytes: usize = gap.iter().map(LineUnit::len).sum();
            if bytes < self.mark && gap.iter().all(|unit| unit.missing.is_none()) {
                self.kept[start..end].fill(true);
            }
            start = end + 1;
        }
    }
}

impl LineUnit {
    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Splits text into lines, and lines that are longer than `piece` into pieces.
pub(crate) fn split_units(text: &str, piece: usize) -> Vec<LineUnit> {
    let mut units = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let mut anchor = Some(start + (line.len() - line.trim_start().len()));
        let missing = parse_missing_mark(line);
        while start < end {
            let next =
                if end - start <= piece || missing.is_some() { end } else { text.floor_char_boundary(start + piece) };
            units.push(LineUnit { start, end: next, anchor, weight: LineScore::None, missing });
            (start, anchor) = (next, None);
        }
    }
    units
}

/// Returns the units of a score, in order.
fn units_with_score(units: &[LineUnit], weight: LineScore) -> Vec<usize> {
    (0..units.len()).filter(|unit| units[*unit].weight == weight).collect()
}

/// Returns the same, each text once: test runners often repeat the failures at the end.
fn distinct_units(text: &str, units: &[LineUnit], weight: LineScore) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut found = units_with_score(units, weight);
    found.retain(|unit| seen.insert(text[units[*unit].start..units[*unit].end].trim()));
    found
}

/// Returns first, last, second, last but one, and so on.
fn order_outside_in(units: &[usize]) -> Vec<usize> {
    let (first, second) = units.split_at(units.len().div_ceil(2));
    let mut last = second.iter().rev();
    first.iter().flat_map(|unit| [Some(unit), last.next()]).flatten().copied().collect()
}

fn print_units(text: &str, units: &[LineUnit], kept: &[bool]) -> String {
    let mut printed = String::new();
    let mut missing: Option<u64> = None;
    for (unit, kept) in units.iter().zip(kept) {
        if *kept {
            missing.take().into_iter().for_each(|missing| push_missing_mark(&mut printed, missing));
            printed.push_str(&text[unit.start..unit.end]);
        } else {
            let more = unit.missing.unwrap_or(unit.len() as u64);
            missing = Some(missing.unwrap_or_default().saturating_add(more));
        }
    }
    missing.into_iter().for_each(|missing| push_missing_mark(&mut printed, missing));
    printed
}

/// Adds a mark with the number of missing bytes.
pub(crate) fn push_missing_mark(printed: &mut String, missing: u64) {
    let between = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
    printed.push_str(&format!("{between}[{missing} bytes left out]\n"));
}

/// Returns the number of missing bytes that a mark names.
pub fn parse_missing_mark(line: &str) -> Option<u64> {
    line.trim_end().strip_prefix('[')?.strip_suffix(" bytes left out]")?.parse().ok()
}

/// Returns the length of the longest possible mark for a text, with the line end that it may need.
fn longest_mark_bytes(text: &str) -> usize {
    let said = text.lines().filter_map(parse_missing_mark).fold(text.len() as u64, u64::saturating_add);
    format!("\n[{said} bytes left out]\n").len()
}

#[cfg(test)]
mod tests;
