//! The cause of a failed turn: from the service's status code, else from the agent's message.

use std::sync::LazyLock;
use std::time::Duration;

use regex_lite::Regex;
use windlass_engine::TurnFailure;

use crate::failure::{self, AgentFailure};
use crate::rate_limit_reset::RateLimitReset;

/// How much of an error is reported.
const MAX_REPORTED_LENGTH: usize = 2000;
/// How much of an error is searched.
const MAX_SEARCHED_LENGTH: usize = 16 * 1024;

/// Patterns that tell faults apart if nothing else does. The first match counts.
const FAULT_PATTERNS: [(TurnFailure, &str); 5] = [
    (TurnFailure::Empty, r"empty response|no text or thoughts"),
    (
        TurnFailure::Refused,
        r"content[_ -]?filter|safeguards? flagged|blocked by .{0,40}(safety|policy|filter)|\brefus(ed|al)\b",
    ),
    (
        TurnFailure::OutOfTokens,
        r"max_(output_)?tokens|output token (limit|maximum)|context[_ ](length|window)|(prompt|input|request) is too (long|large)|maximum context|too many tokens|token limit",
    ),
    (TurnFailure::OutOfTurns, r"max(imum)?[_ ]?(number of )?turns|(maximum|too many) (steps|iterations)"),
    (
        TurnFailure::Outage,
        r"\b(error|status|code|http)\D{0,12}5\d\d\b|\b5\d\d (internal|bad gateway|service|server|gateway)|(server|internal)[_ ]error|overloaded|high demand|unavailable|stream disconnected|(connection|network|fetch|request) (error|failed|refused|reset|closed)|error sending request|econn(refused|reset)|enotfound|could not (resolve|connect)|timed out",
    ),
];

static FAULT_REGEXES: LazyLock<Vec<(TurnFailure, Regex)>> = LazyLock::new(|| {
    let sign = |(fault, text): &(TurnFailure, &str)| (*fault, Regex::new(&format!("(?i){text}")).expect("a pattern"));
    FAULT_PATTERNS.iter().map(sign).collect()
});

static CONVERSATION_GONE_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"(?i)no (previous )?(session|conversation|rollout|thread)s? found|no such (session|conversation|thread)|(session|conversation|thread)\b.{0,80}(not found|does not exist|no such)|error resuming session|cannot resume session|thread/resume failed";
    Regex::new(text).expect("a pattern")
});

/// Returns whether an agent says that the conversation to resume does not exist.
pub(super) fn is_conversation_gone(words: &str) -> bool {
    CONVERSATION_GONE_REGEX.is_match(words)
}

/// Returns the failure that a message describes.
pub(super) fn failure_from_message(words: &str) -> AgentFailure {
    failure::classify_failed_output("", words).unwrap_or_else(|| {
        let looked = limit_searched_text(words);
        let fault = FAULT_REGEXES
            .iter()
            .find(|(_, sign)| sign.is_match(looked))
            .map_or(TurnFailure::Failed, |(fault, _)| *fault);
        failure_from_fault(fault, words)
    })
}

/// Returns the failure that a status code of the model's service stands for.
pub(super) fn failure_from_status(status: u64, words: &str, retry: Option<Duration>) -> AgentFailure {
    let said = limit_reported_text(words);
    match (status, failure::classify_failed_output("", words)) {
        // Only the message says that a payment is missing, or when a limit resets.
        (429 | 529, Some(locked @ AgentFailure::AccessDenied { .. })) => locked,
        (429 | 529, known) => {
            let read = match known {
                Some(AgentFailure::RateLimited { reset, .. }) => reset,
                _ => RateLimitReset::parse_reset_time(limit_searched_text(words)),
            };
            AgentFailure::RateLimited { said, reset: retry.map(RateLimitReset::After).or(read) }
        }
        (401 | 403, known) => {
            AgentFailure::AccessDenied { said, paid: !matches!(known, Some(Trouble::Locked { paid: false, .. })) }
        }
        (402, _) => AgentFailure::AccessDenied { said, paid: false },
        (408 | 500..=599, _) => AgentFailure::Failed { said, fault: TurnFailure::Outage },
        (413, _) => AgentFailure::Failed { said, fault: TurnFailure::OutOfTokens },
        _ => failure_from_message(words),
    }
}

pub(super) fn failure_from_fault(fault: TurnFailure, words: &str) -> AgentFailure {
    AgentFailure::Failed { said: limit_reported_text(words), fault }
}

/// Limits the text that is searched: an error may be as long as a line of the stream, and the patterns are slow.
fn limit_searched_text(words: &str) -> &str {
    &words[..words.floor_char_boundary(MAX_SEARCHED_LENGTH)]
}

fn limit_reported_text(words: &str) -> String {
    let words = words.trim();
    words[..words.floor_char_boundary(MAX_REPORTED_LENGTH)].to_owned()
}
