//! The score of each line of output: how well it explains a failure.
//!
//! One pass over the text searches for words of test runners, compilers and linters. The code knows no tool's format: a
//! line that scores by mistake costs a little room.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::excerpt::LineUnit;

/// How well a line explains a failure, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LineScore {
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
enum SignPosition {
    Start,
    Anywhere,
    /// After a digit.
    Number,
}

const FAILURE_SIGNS: &[(&str, SignPosition, LineScore)] = &[
    ("FAIL", SignPosition::Start, LineScore::Name),
    (" FAILED", SignPosition::Anywhere, LineScore::Name),
    ("--- FAIL", SignPosition::Start, LineScore::Name),
    ("not ok", SignPosition::Start, LineScore::Name),
    ("TIMEOUT [", SignPosition::Start, LineScore::Name),
    ("SIGABRT [", SignPosition::Start, LineScore::Name),
    ("SIGSEGV [", SignPosition::Start, LineScore::Name),
    ("ERROR ", SignPosition::Start, LineScore::Name),
    ("●", SignPosition::Start, LineScore::Name),
    ("✗", SignPosition::Start, LineScore::Name),
    ("✕", SignPosition::Start, LineScore::Name),
    ("✖", SignPosition::Start, LineScore::Name),
    ("×", SignPosition::Start, LineScore::Name),
    (" failed", SignPosition::Number, LineScore::Name),
    (" failing", SignPosition::Number, LineScore::Name),
    (" failures", SignPosition::Number, LineScore::Name),
    (" errors", SignPosition::Number, LineScore::Name),
    ("error:", SignPosition::Anywhere, LineScore::Error),
    ("error[", SignPosition::Anywhere, LineScore::Error),
    (" error ", SignPosition::Anywhere, LineScore::Error),
    ("Error:", SignPosition::Anywhere, LineScore::Error),
    ("ERROR", SignPosition::Anywhere, LineScore::Error),
    ("fatal:", SignPosition::Anywhere, LineScore::Error),
    ("FATAL", SignPosition::Anywhere, LineScore::Error),
    ("panicked at", SignPosition::Anywhere, LineScore::Error),
    ("panic:", SignPosition::Start, LineScore::Error),
    ("assertion", SignPosition::Start, LineScore::Error),
    ("AssertionError", SignPosition::Anywhere, LineScore::Error),
    ("Exception", SignPosition::Anywhere, LineScore::Error),
    ("Traceback", SignPosition::Start, LineScore::Error),
    ("E   ", SignPosition::Start, LineScore::Error),
    ("---- ", SignPosition::Start, LineScore::Error),
    ("____", SignPosition::Start, LineScore::Error),
    ("exit status", SignPosition::Anywhere, LineScore::Error),
    ("exit code", SignPosition::Anywhere, LineScore::Error),
    ("undefined reference to", SignPosition::Anywhere, LineScore::Error),
    ("Segmentation fault", SignPosition::Anywhere, LineScore::Error),
    ("##[error]", SignPosition::Anywhere, LineScore::Error),
    ("-->", SignPosition::Start, LineScore::Hint),
    ("left:", SignPosition::Start, LineScore::Hint),
    ("right:", SignPosition::Start, LineScore::Hint),
    ("Expected", SignPosition::Start, LineScore::Hint),
    ("Received", SignPosition::Start, LineScore::Hint),
];

/// The longest file name that is considered.
const MAX_FILE_NAME_BYTES: usize = 200;

static SIGN_FINDER: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::new(FAILURE_SIGNS.iter().map(|(sign, ..)| sign)).expect("a few short signs make a finder")
});

/// A list of failures in the format of mocha: `2 failing`, and then `1) pump` and `2) valve`, with other lines between
/// them. Other numbered lists do not score.
#[derive(Debug, Default)]
pub(crate) struct NumberedFailures {
    /// The next number, and the last one.
    next: u32,
    last: u32,
}

impl NumberedFailures {
    /// Scores further lines.
    fn score_numbered_lines(&mut self, text: &str, units: &mut [LineUnit]) {
        let mut names = false;
        for unit in units {
            let Some(line) = unit.anchor.and_then(|anchor| text.get(anchor..unit.end)) else { continue };
            let begins = self.takes_next_number(line.trim_end());
            // The number's line holds the name of the suite, the next line that of the test.
            if begins || names && !line.trim().is_empty() {
                unit.weight = LineScore::Name;
            }
            names = begins;
        }
    }

    /// Returns whether the next entry of the list begins with a line.
    fn takes_next_number(&mut self, line: &str) -> bool {
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
pub(crate) fn score_lines(text: &str, units: &mut [LineUnit], numbered: &mut NumberedFailures) {
    numbered.score_numbered_lines(text, units);
    for found in SIGN_FINDER.find_overlapping_iter(text) {
        let (_, at, weight) = FAILURE_SIGNS[found.pattern().as_usize()];
        let unit = unit_at_byte(units, found.start());
        let fits = match at {
            SignPosition::Anywhere => true,
            SignPosition::Start => unit.anchor == Some(found.start()),
            SignPosition::Number => is_nonzero_number(text.as_bytes(), found.start()),
        };
        if fits {
            unit.weight = unit.weight.max(weight);
        }
    }
    for (colon, _) in text.match_indices(':') {
        let unit = unit_at_byte(units, colon);
        if unit.weight < LineScore::Error
            && let Some(weight) = source_location_score(&text.as_bytes()[..unit.end], unit.anchor, colon)
        {
            unit.weight = unit.weight.max(weight);
        }
    }
}

fn unit_at_byte(units: &mut [LineUnit], byte: usize) -> &mut LineUnit {
    let after = units.partition_point(|unit| unit.start <= byte);
    &mut units[after - 1]
}

/// Returns whether a number other than zero ends there: `0 failed` explains nothing.
fn is_nonzero_number(text: &[u8], end: usize) -> bool {
    let digits = text[..end].iter().rev().take(20).take_while(|byte| byte.is_ascii_digit());
    digits.into_iter().any(|digit| *digit != b'0')
}

/// Returns the score of a source location that ends at a colon, as in `pump.go:12:5: undefined: valve`. Compilers report
/// errors with such a location at the start of a line.
fn source_location_score(text: &[u8], anchor: Option<usize>, colon: usize) -> Option<LineScore> {
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
    let starts = anchor.is_some_and(|anchor| {
        dot - anchor.min(dot) <= MAX_FILE_NAME_BYTES && !text[anchor.min(dot)..dot].contains(&b' ')
    });
    Some(if starts && text.get(end) == Some(&b':') { LineScore::Error } else { LineScore::Hint })
}
