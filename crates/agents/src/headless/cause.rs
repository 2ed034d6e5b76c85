//! The cause of a failed turn: from the service's status code, else from the agent's message.

use std::sync::LazyLock;
use std::time::Duration;

use regex_lite::Regex;
use windlass_engine::Fault;

use crate::reset::Reset;
use crate::trouble::{self, Trouble};

/// How much of an error is reported.
const TOLD: usize = 2000;
/// How much of an error is searched.
const LOOKED: usize = 16 * 1024;

/// Patterns that tell faults apart if nothing else does. The first match counts.
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

/// Returns whether an agent says that the conversation to resume does not exist.
pub(super) fn is_gone(words: &str) -> bool {
    GONE.is_match(words)
}

/// Returns the failure that a message describes.
pub(super) fn of_words(words: &str) -> Trouble {
    trouble::of_failure("", words).unwrap_or_else(|| {
        let looked = looked(words);
        let fault = SIGNS.iter().find(|(_, sign)| sign.is_match(looked)).map_or(Fault::Failed, |(fault, _)| *fault);
        of_fault(fault, words)
    })
}

/// Returns the failure that a status code of the model's service stands for.
pub(super) fn of_status(status: u64, words: &str, retry: Option<Duration>) -> Trouble {
    let said = told(words);
    match (status, trouble::of_failure("", words)) {
        // Only the message says that a payment is missing, or when a limit resets.
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

/// Limits the text that is searched: an error may be as long as a line of the stream, and the patterns are slow.
fn looked(words: &str) -> &str {
    &words[..words.floor_char_boundary(LOOKED)]
}

fn told(words: &str) -> String {
    let words = words.trim();
    words[..words.floor_char_boundary(TOLD)].to_owned()
}
