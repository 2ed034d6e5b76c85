//! Sentences below a claim that take it back, or show that the work only begins.
//!
//! Not here: sentences that deny what they hold themselves (`negation`).

use std::borrow::Cow;

use crate::negation::{self, words};
use crate::speech;

/// What begins a sentence that takes back what was said before it.
const SECOND_THOUGHTS: [&str; 18] = [
    "actually",
    "on reflection",
    "no wait",
    "oops",
    "whoops",
    "correction",
    "nevermind",
    "never mind",
    "hold on",
    "scratch that",
    "on second thought",
    "my mistake",
    "my bad",
    "not really",
    "just kidding",
    "kidding",
    "except that",
    "except for",
];
const TAKEN_BACK: [&str; 15] = [
    "i was wrong",
    "i am wrong",
    "i spoke too soon",
    "i take it back",
    "i take that back",
    "i retract",
    "i lied",
    "not done yet",
    "not finished yet",
    "not complete yet",
    "that was premature",
    "that is not true",
    "that's not true",
    "that was not true",
    "that was a mistake",
];
/// What follows a word that only looks like such a beginning.
const GOES_ON: [&str; 8] = ["of", "to", "for", "quite", "pretty", "very", "rather", "simple"];
/// What may come before such a beginning.
const FILLERS: [&str; 8] = ["hm", "hmm", "oh", "ah", "but", "sorry", "ok", "okay"];
/// What is not done, where a sentence takes back that it is.
const WORK: [&str; 9] = ["this is", "it is", "that is", "it's", "that's", "the task is", "the work is", "i am", "i'm"];
const DONE: [&str; 3] = ["done", "finished", "complete"];
/// What follows a `wait` that is a second thought.
const AFTER_A_WAIT: [&str; 6] = ["i", "no", "that", "there", "it", "not"];

/// What is done with words that do not count any more, and which words those are.
const UNSAY: [&str; 5] = ["ignore", "disregard", "strike", "scratch", "forget"];
const UNSAID: [&str; 9] = ["above", "line", "tag", "marker", "claim", "promise", "said", "wrote", "statement"];

/// What is said of work that nobody has waited for.
const AGREED: [&str; 5] = ["optional", "agreed", "asked", "requested", "scope"];
/// What begins a sentence that tells what has failed, what fails, and what is said of a failure that is over, or nobody's here.
const OWNS_UP: [&str; 7] = ["edit", "update", "but", "although", "however", "unfortunately", "sadly"];
const JUDGES: [&str; 8] = ["test", "tests", "build", "suite", "check", "checks", "lint", "ci"];
const EXPLAINED: [&str; 32] = [
    "fixed",
    "mended",
    "pass",
    "passes",
    "passed",
    "succeed",
    "succeeds",
    "green",
    "longer",
    "before",
    "previously",
    "unrelated",
    "flaky",
    "known",
    "expected",
    "documented",
    "sometimes",
    "if",
    "when",
    "can",
    "upstream",
    "too",
    "existing",
    "preexisting",
    "already",
    "was",
    "were",
    "had",
    "repaired",
    "resolved",
    "updated",
    "now",
];

/// What may come before a sentence about beginning.
const BEFORE_A_BEGINNING: [&str; 8] = ["now", "so", "first", "then", "and", "alright", "right", "next"];
/// What is done where the work begins.
const LOOK: [&str; 22] = [
    "look",
    "read",
    "check",
    "inspect",
    "examine",
    "explore",
    "investigate",
    "study",
    "understand",
    "find",
    "open",
    "see",
    "try",
    "start",
    "begin",
    "fix",
    "implement",
    "work",
    "get",
    "dig",
    "analyze",
    "analyse",
];
const BEGIN: [&str; 4] = ["begin", "start", "beginning", "starting"];
/// What follows it where it is the work that is begun.
const BEGUN: [&str; 12] =
    ["now", "with", "by", "on", "at", "from", "work", "working", "reading", "right", "here", "immediately"];
const GO_ON: [&str; 10] =
    ["look", "read", "check", "inspect", "examine", "explore", "investigate", "continue", "proceed", "work"];

/// Whether a text, in any of its sentences, takes back what was said before it: the work is not done, or only begins.
pub fn takes_back(text: &str) -> bool {
    // A list tells what was done: "- Ignore the tag".
    let is_item = speech::bullet(text).0;
    let text = without_code(text);
    text.split(['.', '!', '?', ';']).any(|whole| {
        let sentence = without_fillers(whole);
        let words = words(sentence).join(" ").replace('’', "'");
        words == "not"
            || SECOND_THOUGHTS.iter().any(|thought| is_begun_by(&words, thought))
            || TAKEN_BACK.iter().any(|phrase| words.contains(phrase))
            || denies_the_work(&words)
            || is_a_wait(sentence)
            || (!is_item && unsays(sentence))
            || (!is_item && owns_up_to_a_failure(whole))
            || is_unfinished(&words)
            || begins_the_work(&words)
    })
}

/// "Ignore the line above", "disregard that".
fn unsays(sentence: &str) -> bool {
    let clause = words(sentence.split([',', ':', '—', '–']).next().unwrap_or_default());
    match clause.as_slice() {
        [verb, "that" | "this" | "it"] => UNSAY.contains(verb),
        [verb, what @ ..] => UNSAY.contains(verb) && what.iter().any(|word| UNSAID.contains(word)),
        [] => false,
    }
}

/// Whether a sentence tells of a failure that is there: "Edit: two tests fail", "The build is still broken".
fn owns_up_to_a_failure(sentence: &str) -> bool {
    let words = words(sentence);
    let opened = words.first().is_some_and(|word| OWNS_UP.contains(word) || negation::is_a_number(word));
    let fails = |at: usize| {
        let is_denied = words[at.saturating_sub(2)..at].iter().any(|word| matches!(*word, "no" | "not" | "0" | "zero"));
        let failed = matches!(words[at], "broken" | "red") || words[at].starts_with("fail");
        failed && !is_denied
    };
    let amended = matches!(words.first(), Some(&("edit" | "update")));
    let what = words.iter().position(|word| JUDGES.contains(word)).or(amended.then_some(0));
    let failed = what.is_some_and(|what| (what..words.len()).any(fails));
    (opened || words.contains(&"still")) && failed && !words.iter().any(|word| EXPLAINED.contains(word))
}

/// "I did not finish".
fn is_unfinished(words: &str) -> bool {
    let words = words.replace("n't", " not");
    let words: Vec<&str> = words.split(' ').collect();
    words.windows(4).any(|four| {
        let finishes = matches!(four[3], "finish" | "finished" | "complete" | "completed");
        matches!(four[0], "i" | "we") && four[2] == "not" && finishes
    }) && !words.iter().any(|word| AGREED.contains(word))
}

/// Whether a sentence says that its writer is about to do the work: "Let me look at the code first".
fn begins_the_work(words: &str) -> bool {
    let words = words.replace("i will ", "i'll ").replace("i am ", "i'm ");
    let words: Vec<&str> = words.split(' ').filter(|word| !BEFORE_A_BEGINNING.contains(word)).collect();
    match words.as_slice() {
        ["let", "me", verb, ..] => LOOK.contains(verb),
        ["i" | "we" | "i'll" | "we'll" | "i'm" | "we're" | "let's", verb, rest @ ..] if BEGIN.contains(verb) => {
            rest.first().is_none_or(|next| BEGUN.contains(next))
        }
        ["i'll" | "we'll" | "let's", verb, rest @ ..] => {
            let is_later =
                ["if", "back", "monitor", "watch", "tomorrow", "later"].iter().any(|word| rest.contains(word));
            GO_ON.contains(verb) && !is_later && rest.first() != Some(&"in")
        }
        ["starting" | "beginning", "with", "step", ..] | ["starting" | "beginning"] => true,
        _ => false,
    }
}

/// Whether a sentence begins with a second thought, and not with a word that only looks like one ("Actually running it …").
fn is_begun_by(words: &str, thought: &str) -> bool {
    let Some(rest) = words.strip_prefix(thought) else { return false };
    let next = rest.split(' ').nth(1).unwrap_or_default();
    let goes_on = next.ends_with("ing") || next.ends_with("ed") || GOES_ON.contains(&next);
    rest.is_empty() || rest.starts_with(' ') && !goes_on
}

/// Whether words say that the work is not done.
fn denies_the_work(words: &str) -> bool {
    WORK.iter().any(|work| {
        words.match_indices(work).any(|(place, _)| {
            let rest = words[place + work.len()..].strip_prefix(" not ");
            let whole = place == 0 || words[..place].ends_with(' ');
            whole && rest.and_then(|rest| rest.split(' ').next()).is_some_and(|word| DONE.contains(&word))
        })
    })
}

/// A line without what stands in backticks, which is shown.
fn without_code(line: &str) -> Cow<'_, str> {
    match line.matches('`').count() {
        0 | 1 => Cow::Borrowed(line),
        _ => Cow::Owned(line.split('`').step_by(2).collect()),
    }
}

/// A sentence without what people say while they think.
fn without_fillers(sentence: &str) -> &str {
    let mut rest = sentence.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    while let Some(word) = words(rest).first().filter(|word| FILLERS.contains(word)) {
        rest = rest[word.len()..].trim_start_matches(|letter: char| !letter.is_alphanumeric());
    }
    rest
}

/// Whether a sentence begins with a `wait` that stands alone, or before a word that shows that it is meant so.
fn is_a_wait(sentence: &str) -> bool {
    let sentence = sentence.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let Some(rest) = sentence.strip_prefix("wait") else { return false };
    match rest.trim_start().chars().next() {
        None => true,
        Some(letter) if letter.is_alphanumeric() => {
            rest.starts_with(' ') && words(rest).first().is_some_and(|next| AFTER_A_WAIT.contains(next))
        }
        Some(letter) => matches!(letter, ',' | '—' | '–' | '…' | ':') || rest.starts_with(" - "),
    }
}
