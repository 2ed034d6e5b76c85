//! Long output made short: its first lines, its last lines, and from between them the lines that tell what is wrong.
//!
//! ```text
//! text ─ split ─► units ─ signs ─► weights ─ Choice ─► kept units ─ print ─► lines, and between them how much is missing
//! ```
//!
//! A unit is a line, or a piece of a line that is too long to be kept or dropped as a whole. Units are taken in the order
//! of their worth (`choose`) as long as there is room, and printed in their own order.
//!
//! Invariants:
//! - The result is never longer than wanted, and what fits is not touched.
//! - Every line of it is a line of the text, a piece of a very long one, or says how many bytes are missing.
//! - The missing bytes are counted once: a line that says so itself counts for what it says.
//! - Time and memory grow with the text only.
//!
//! Not here: which lines tell (`signs`).

use std::collections::HashSet;

use crate::signs::{Numbered, Weight, weigh};

/// The longest piece of a line that is kept or dropped as a whole.
pub(crate) const PIECE: usize = 512;
/// Lines around one that tells: first the next one, which usually says more.
const AROUND: [isize; 3] = [1, -1, 2];

/// A line with its end, or a piece of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where the first letter of its line is; nowhere, if the unit is a later piece.
    pub(crate) anchor: Option<usize>,
    pub(crate) weight: Weight,
    /// What it says itself that is missing.
    missing: Option<u64>,
}

/// At most so many bytes of a text. Where there is not even room to say how much is missing, as much of the start as fits.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mark = longest_mark(text);
    let Some(room) = most.checked_sub(mark) else { return text[..text.floor_char_boundary(most)].to_owned() };
    let mut units = split(text, (room / 4).clamp(16, PIECE));
    weigh(text, &mut units, &mut Numbered::default());
    let mut choice = Choice { kept: vec![false; units.len()], units: &units, used: mark, most, mark };
    choose(text, &mut choice, room);
    choice.close_gaps();
    print(text, &units, &choice.kept)
}

/// The one line that says best what is wrong: the last one, unless it tells nothing and one before it does.
pub(crate) fn one_line(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let mut units = split(text, PIECE);
    weigh(text, &mut units, &mut Numbered::default());
    let last = text.lines().next_back()?;
    let of_last = units.iter().rev().find_map(|unit| unit.anchor.map(|_| unit.weight));
    let most = units.iter().filter(|unit| unit.anchor.is_some()).max_by_key(|unit| unit.weight)?;
    let dull = of_last == Some(Weight::None) && most.weight >= Weight::Error;
    Some(if dull { &text[most.start..most.end] } else { last }.trim())
}

/// Takes what is worth most first.
fn choose(text: &str, choice: &mut Choice<'_>, room: usize) {
    choice.ends(room / 10, room / 5);
    let names = outside_in(&distinct(text, choice.units, Weight::Name));
    let errors = outside_in(&of(choice.units, Weight::Error));
    // The first error is often the cause of the others, and the last one what it came to.
    for unit in errors.iter().take(2).chain(&names).chain(&errors) {
        choice.take(*unit);
    }
    for distance in AROUND {
        for unit in &errors {
            if let Some(near) = unit.checked_add_signed(distance).filter(|_| choice.kept[*unit]) {
                choice.take(near);
            }
        }
    }
    for unit in outside_in(&of(choice.units, Weight::Hint)) {
        choice.take(unit);
    }
    choice.ends(room, room);
}

/// What is kept, and what it costs.
struct Choice<'u> {
    units: &'u [Unit],
    kept: Vec<bool>,
    /// The bytes of what is kept, and of a mark for every gap.
    used: usize,
    most: usize,
    mark: usize,
}

impl Choice<'_> {
    /// Keeps a unit if there is room for it. What says that something is missing is never kept: it becomes part of a gap.
    fn take(&mut self, unit: usize) -> bool {
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

    /// Keeps the first and the last units, by turns, at most so many bytes of each.
    fn ends(&mut self, of_start: usize, of_end: usize) {
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
                // An old gap is no end: what lies behind it is as near to the start, or to the end, as there is.
                if self.units[unit].missing.is_none() {
                    let length = self.units[unit].len();
                    open[side] = length <= left[side] && self.take(unit);
                    left[side] = left[side].saturating_sub(length);
                }
            }
        }
    }

    /// Keeps what is shorter than the line that says it is missing.
    fn close_gaps(&mut self) {
        let mut start = 0;
        while start < self.units.len() {
            let end = (start..self.units.len()).find(|unit| self.kept[*unit]).unwrap_or(self.units.len());
            let gap = &self.units[start..end];
            let bytes: usize = gap.iter().map(Unit::len).sum();
            if bytes < self.mark && gap.iter().all(|unit| unit.missing.is_none()) {
                self.kept[start..end].fill(true);
            }
            start = end + 1;
        }
    }
}

impl Unit {
    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Lines, and pieces of those that are longer than that.
pub(crate) fn split(text: &str, piece: usize) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let mut anchor = Some(start + (line.len() - line.trim_start().len()));
        let missing = said_missing(line);
        while start < end {
            let next =
                if end - start <= piece || missing.is_some() { end } else { text.floor_char_boundary(start + piece) };
            units.push(Unit { start, end: next, anchor, weight: Weight::None, missing });
            (start, anchor) = (next, None);
        }
    }
    units
}

/// The units of a weight, in order.
fn of(units: &[Unit], weight: Weight) -> Vec<usize> {
    (0..units.len()).filter(|unit| units[*unit].weight == weight).collect()
}

/// The same, each text once: runners like to repeat at the end what has failed.
fn distinct(text: &str, units: &[Unit], weight: Weight) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut found = of(units, weight);
    found.retain(|unit| seen.insert(text[units[*unit].start..units[*unit].end].trim()));
    found
}

/// First, last, second, last but one, and so on.
fn outside_in(units: &[usize]) -> Vec<usize> {
    let (first, second) = units.split_at(units.len().div_ceil(2));
    let mut last = second.iter().rev();
    first.iter().flat_map(|unit| [Some(unit), last.next()]).flatten().copied().collect()
}

fn print(text: &str, units: &[Unit], kept: &[bool]) -> String {
    let mut printed = String::new();
    let mut missing: Option<u64> = None;
    for (unit, kept) in units.iter().zip(kept) {
        if *kept {
            missing.take().into_iter().for_each(|missing| say_missing(&mut printed, missing));
            printed.push_str(&text[unit.start..unit.end]);
        } else {
            let more = unit.missing.unwrap_or(unit.len() as u64);
            missing = Some(missing.unwrap_or_default().saturating_add(more));
        }
    }
    missing.into_iter().for_each(|missing| say_missing(&mut printed, missing));
    printed
}

/// Adds a line that says how many bytes are missing there.
pub(crate) fn say_missing(printed: &mut String, missing: u64) {
    let between = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
    printed.push_str(&format!("{between}[{missing} bytes left out]\n"));
}

/// How many bytes a line stands for that says that some are missing.
pub fn said_missing(line: &str) -> Option<u64> {
    line.trim_end().strip_prefix('[')?.strip_suffix(" bytes left out]")?.parse().ok()
}

/// The length of the longest line that can say how much of a text is missing, with the line end that it may need.
fn longest_mark(text: &str) -> usize {
    let said = text.lines().filter_map(said_missing).fold(text.len() as u64, u64::saturating_add);
    format!("\n[{said} bytes left out]\n").len()
}

#[cfg(test)]
mod tests;
