//! The score of each line of output: how well it explains a failure.
//!
//! One pass over the text searches for words of test runners, compilers and linters. The code knows no tool's format: a
//! line that scores by mistake costs a little room.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::telling::Unit;

/// How well a line explains a failure, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    None,
    /// A source location, or the beginning of a report.
    Hint,
    /// An error.
    Error,
    /// The name of a failed test, or the number of failures.
    Name,
}

/// The required position of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Anywhere,
    /// After a digit.
    Number,
}

const SIGNS: &[(&str, At, Weight)] = &[
    ("FAIL", At::Start, Weight::Name),
    (" FAILED", At::Anywhere, Weight::Name),
    ("--- FAIL", At::Start, Weight::Name),
    ("not ok", At::Start, Weight::Name),
    ("TIMEOUT [", At::Start, Weight::Name),
    ("SIGABRT [", At::Start, Weight::Name),
    ("SIGSEGV [", At::Start, Weight::Name),
    ("ERROR ", At::Start, Weight::Name),
    ("●", At::Start, Weight::Name),
    ("✗", At::Start, Weight::Name),
    ("✕", At::Start, Weight::Name),
    ("✖", At::Start, Weight::Name),
    ("×", At::Start, Weight::Name),
    (" failed", At::Number, Weight::Name),
    (" failing", At::Number, Weight::Name),
    (" failures", At::Number, Weight::Name),
    (" errors", At::Number, Weight::Name),
    ("error:", At::Anywhere, Weight::Error),
    ("error[", At::Anywhere, Weight::Error),
    (" error ", At::Anywhere, Weight::Error),
    ("Error:", At::Anywhere, Weight::Error),
    ("ERROR", At::Anywhere, Weight::Error),
    ("fatal:", At::Anywhere, Weight::Error),
    ("FATAL", At::Anywhere, Weight::Error),
    ("panicked at", At::Anywhere, Weight::Error),
    ("panic:", At::Start, Weight::Error),
    ("assertion", At::Start, Weight::Error),
    ("AssertionError", At::Anywhere, Weight::Error),
    ("Exception", At::Anywhere, Weight::Error),
    ("Traceback", At::Start, Weight::Error),
    ("E   ", At::Start, Weight::Error),
    ("---- ", At::Start, Weight::Error),
    ("____", At::Start, Weight::Error),
    ("exit status", At::Anywhere, Weight::Error),
    ("exit code", At::Anywhere, Weight::Error),
    ("undefined reference to", At::Anywhere, Weight::Error),
    ("Segmentation fault", At::Anywhere, Weight::Error),
    ("##[error]", At::Anywhere, Weight::Error),
    ("-->", At::Start, Weight::Hint),
    ("left:", At::Start, Weight::Hint),
    ("right:", At::Start, Weight::Hint),
    ("Expected", At::Start, Weight::Hint),
    ("Received", At::Start, Weight::Hint),
];

/// The longest file name that is considered.
const NAME: usize = 200;

static FINDER: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::new(SIGNS.iter().map(|(sign, ..)| sign)).expect("a few short signs make a finder"));

/// A list of failures in the format of mocha: `2 failing`, and then `1) pump` and `2) valve`, with other lines between
/// them. Other numbered lists do not score.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    /// The next number, and the last one.
    next: u32,
    last: u32,
}

impl Numbered {
    /// Scores further lines.
    fn weigh(&mut self, text: &str, units: &mut [Unit]) {
        let mut names = false;
        for unit in units {
            let Some(line) = unit.anchor.and_then(|anchor| text.get(anchor..unit.end)) else { continue };
            let begins = self.takes(line.trim_end());
            // The number's line holds the name of the suite, the next line that of the test.
            if begins || names && !line.trim().is_empty() {
                unit.weight = Weight::Name;
            }
            names = begins;
        }
    }

    /// Returns whether the next entry of the list begins with a line.
    fn takes(&mut self, line: &str) -> bool {
        if let Some(count) = line.strip_suffix(" failing").and_then(|count| count.parse().ok()) {
            (self.next, self.last) = (1, count);
            return false;
        }
        let number = || line.split_once(") ").and_then(|(number, _)| number.parse().ok());
        let takes = (1..=self.last).contains(&self.next) && number() == Some(self.next);
        self.next += u32::from(takes);
        takes
    }
}

/// Scores every unit of a text. `numbered` carries the list that earlier text began.
pub(crate) fn weigh(text: &str, units: &mut [Unit], numbered: &mut Numbered) {
    numbered.weigh(text, units);
    for found in FINDER.find_overlapping_iter(text) {
        let (_, at, weight) = SIGNS[found.pattern().as_usize()];
        let unit = unit_at(units, found.start());
        let fits = match at {
            At::Anywhere => true,
            At::Start => unit.anchor == Some(found.start()),
            At::Number => is_some_number(text.as_bytes(), found.start()),
        };
        if fits {
            unit.weight = unit.weight.max(weight);
        }
    }
    for (colon, _) in text.match_indices(':') {
        let unit = unit_at(units, colon);
        if unit.weight < Weight::Error
            && let Some(weight) = place(&text.as_bytes()[..unit.end], unit.anchor, colon)
        {
            unit.weight = unit.weight.max(weight);
        }
    }
}

fn unit_at(units: &mut [Unit], byte: usize) -> &mut Unit {
    let after = units.partition_point(|unit| unit.start <= byte);
    &mut units[after - 1]
}

/// Returns whether a number other than zero ends there: `0 failed` explains nothing.
fn is_some_number(text: &[u8], end: usize) -> bool {
    let digits = text[..end].iter().rev().take(20).take_while(|byte| byte.is_ascii_digit());
    digits.into_iter().any(|digit| *digit != b'0')
}

/// Returns the score of a source location that ends at a colon, as in `pump.go:12:5: undefined: valve`. Compilers report
/// errors with such a location at the start of a line.
fn place(text: &[u8], anchor: Option<usize>, colon: usize) -> Option<Weight> {
    let ending = text[..colon].iter().rev().take(5).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let dot = colon.checked_sub(ending + 1).filter(|dot| ending > 0 && text[*dot] == b'.')?;
    let digits = |from: usize| text[from..].iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
    let line = digits(colon + 1);
    if line == 0 {
        return None;
    }
    let mut end = colon + 1 + line;
    if text.get(end) == Some(&b':') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    let starts =
        anchor.is_some_and(|anchor| dot - anchor.min(dot) <= NAME && !text[anchor.min(dot)..dot].contains(&b' '));
    Some(if starts && text.get(end) == Some(&b':') { Weight::Error } else { Weight::Hint })
}
