//! Why a turn failed: by what a service answered, else by what the agent says about it.

use std::sync::LazyLock;
use std::time::Duration;

use regex_lite::Regex;
use windlass_engine::Fault;

use crate::reset::Reset;
use crate::trouble::{self, Trouble};

/// What is told of an error.
const TOLD: usize = 2000;
/// What is looked at of it.
const LOOKED: usize = 16 * 1024;

/// Words by which faults are told apart, where nothing else tells. The first that fits counts.
const FAULTS: [(Fault, &str); 5] = [
    (Fault::Empty, r"empty response|no text or thoughts"),
    (
        Fault::Refused,
        r"content[_ -]?filter|safeguards? flagged|blocked by .{0,40}(safety|policy|filter)|\brefus(ed|al)\b",
    ),
    (
        Fault::OutOfTokens,
        r"max_(output_)?tokens|output token (limit|maximum)|context[_ ](length|window)|(prompt|input|request) is too (long|large)|maximum context|too many tokens|token limit",
    ),
    (Fault::OutOfTurns, r"max(imum)?[_ ]?(number of )?turns|(maximum|too many) (steps|iterations)"),
    (
        Fault::Outage,
        r"\b(error|status|code|http)\D{0,12}5\d\d\b|\b5\d\d (internal|bad gateway|service|server|gateway)|(server|internal)[_ ]error|overloaded|high demand|unavailable|stream disconnected|(connection|network|fetch|request) (error|failed|refused|reset|closed)|error sending request|econn(refused|reset)|enotfound|could not (resolve|connect)|timed out",
    ),
];

static SIGNS: LazyLock<Vec<(Fault, Regex)>> = LazyLock::new(|| {
    let sign = |(fault, text): &(Fault, &str)| (*fault, Regex::new(&format!("(?i){text}")).expect("a pattern"));
    FAULTS.iter().map(sign).collect()
});

static GONE: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"(?i)no (previous )?(session|conversation|rollout|thread)s? found|no such (session|conversation|thread)|(session|conversation|thread)\b.{0,80}(not found|does not exist|no such)|error resuming session|cannot resume session|thread/resume failed";
    Regex::new(text).expect("a pattern")
});

/// Whether an agent says that the conversation which it is to take up is not there.
pub(super) fn is_gone(words: &str) -> bool {
    GONE.is_match(words)
}

/// Returns the trouble that an agent's words tell of.
pub(super) fn of_words(words: &str) -> Trouble {
    trouble::of_failure("", words).unwrap_or_else(|| {
        let looked = looked(words);
        let fault = SIGNS.iter().find(|(_, sign)| sign.is_match(looked)).map_or(Fault::Failed, |(fault, _)| *fault);
        of_fault(fault, words)
    })
}

/// Returns the trouble that the answer of the model's service means.
pub(super) fn of_status(status: u64, words: &str, retry: Option<Duration>) -> Trouble {
    let said = told(words);
    match (status, trouble::of_failure("", words)) {
        // That nothing was paid is in the words only, and so is until when.
        (429 | 529, Some(locked @ Trouble::Locked { .. })) => locked,
        (429 | 529, known) => {
            let read = match known {
                Some(Trouble::Limited { reset, .. }) => reset,
                _ => Reset::read(looked(words)),
            };
            Trouble::Limited { said, reset: retry.map(Reset::After).or(read) }
        }
        (401 | 403, known) => {
            Trouble::Locked { said, paid: !matches!(known, Some(Trouble::Locked { paid: false, .. })) }
        }
        (402, _) => Trouble::Locked { said, paid: false },
        (408 | 500..=599, _) => Trouble::Failed { said, fault: Fault::Outage },
        (413, _) => Trouble::Failed { said, fault: Fault::OutOfTokens },
        _ => of_words(words),
    }
}

pub(super) fn of_fault(fault: Fault, words: &str) -> Trouble {
    Trouble::Failed { said: told(words), fault }
}

/// As much of it as is looked at: an error may be as long as a line of a stream, and patterns take their time.
fn looked(words: &str) -> &str {
    &words[..words.floor_char_boundary(LOOKED)]
}

fn told(words: &str) -> String {
    let words = words.trim();
    words[..words.floor_char_boundary(TOLD)].to_owned()
}
