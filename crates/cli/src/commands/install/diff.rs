//! What differs between two texts, line by line.

use std::fmt::{self, Display};

/// So many lines around a change are shown.
const AROUND: usize = 2;
/// Beyond so many pairs of lines, what differs is shown as replaced: nobody reads it line by line.
const PAIRS: usize = 4_000_000;

/// A line of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    Same(&'a str),
    Added(&'a str),
    Removed(&'a str),
    /// So many lines are the same.
    Skipped(usize),
}

impl Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(line) => write!(f, "  {line}"),
            Self::Added(line) => write!(f, "+ {line}"),
            Self::Removed(line) => write!(f, "- {line}"),
            Self::Skipped(1) => f.write_str("  (1 line)"),
            Self::Skipped(lines) => write!(f, "  ({lines} lines)"),
        }
    }
}

pub fn rows<'a>(old: &'a str, new: &'a str) -> Vec<Row<'a>> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&'a str, &&'a str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut all: Vec<_> = old[..head].iter().map(|line| Row::Same(line)).collect();
    all.extend(middle(&old[head..old_end], &new[head..new_end]));
    all.extend(old[old_end..].iter().map(|line| Row::Same(line)));
    shortened(&all)
}

/// The longest common lines, by the table of their lengths.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Row<'a>> {
    let removed = || old.iter().map(|line| Row::Removed(line));
    let added = || new.iter().map(|line| Row::Added(line));
    if old.len().saturating_mul(new.len()) > PAIRS {
        return removed().chain(added()).collect();
    }
    let width = new.len() + 1;
    let mut common = vec![0_usize; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a * width + b] = match old[a] == new[b] {
                true => common[(a + 1) * width + b + 1] + 1,
                false => common[(a + 1) * width + b].max(common[a * width + b + 1]),
            };
        }
    }
    let (mut a, mut b, mut rows) = (0, 0, Vec::new());
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            rows.push(Row::Same(old[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == new.len() || (a < old.len() && common[(a + 1) * width + b] >= common[a * width + b + 1]) {
            rows.push(Row::Removed(old[a]));
            a += 1;
        } else {
            rows.push(Row::Added(new[b]));
            b += 1;
        }
    }
    rows
}

/// Only the lines around changes.
fn shortened<'a>(rows: &[Row<'a>]) -> Vec<Row<'a>> {
    let is_change = |row: &Row<'_>| !matches!(row, Row::Same(_));
    let is_near = |at: usize| {
        let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(rows.len()));
        rows[from..to].iter().any(is_change)
    };
    let mut shown = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        match shown.last_mut() {
            _ if is_near(at) => shown.push(*row),
            Some(Row::Skipped(lines)) => *lines += 1,
            _ => shown.push(Row::Skipped(1)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let rows: Vec<_> = rows(old, new).iter().map(Row::to_string).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        check("", "a\nb\n", &["+ a", "+ b"]);
        check("a\nb\n", "", &["- a", "- b"]);
        check("a\n", "a\n", &["  (1 line)"]);
        check("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n5\n6\n", &["  (2 lines)", "  3", "  4", "+ x", "  5", "  6"]);
        check("a\nb\nc\n", "a\nx\nc\n", &["  a", "- b", "+ x", "  c"]);
        check("a\nb\n", "x\na\ny\nb\n", &["+ x", "  a", "+ y", "  b"]);
    }
}
