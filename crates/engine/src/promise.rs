//! What an agent claims about its work, read from its final message.
//!
//! A tag counts at the start or the end of a line, in any case, where the agent speaks for itself:
//!
//! | left out | why |
//! | --- | --- |
//! | fenced and indented code, backticks, quotes, tables, diffs, `<pre>`, `<think>`, what a search printed | it is shown, not said |
//! | a line that stands in the prompt beside the same neighbour, or has more on it than the tag | it is an echo of the prompt |
//! | the same about what the agent said before, where a line announces it ("I said:") | it is a replay of what was said before |
//! | `not`, `will`, `until`, … in the same sentence as COMPLETE, be it broken over two lines | it is a negation, or a plan |
//! | a sentence that needs COMPLETE to be whole, unless it says outright that it holds ("I can say") | it speaks of saying it |
//! | a line above that announces COMPLETE for later, as a duty, or as a step of a plan | the instruction is restated |
//! | "then output", "Remaining:", "e.g.", "told to print", ❌ before COMPLETE | it is a step to come, or an example |
//! | COMPLETE before BLOCKED, ESCALATE, a second thought ("Wait, …", "Ignore the line above"), a failure ("Two tests still fail") or the work ("Let me look …") | it is taken back, or too early |
//!
//! Marks around the tag (emphasis, bullets, headings, punctuation) change nothing. That the agent is stuck is believed even
//! where it says so with a `not`.
//!
//! Not here: which lines are shown and which are said (`speech`), which are repeated (`echo`), which words deny something
//! (`negation`), speak of saying it (`saying`) or take it back (`retraction`).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::echo::Echoes;
use crate::negation::{self, words};
use crate::retraction;
use crate::saying;
use crate::speech::{self, Line};

/// A claim. It is never believed without the gates; that the agent is stuck is always believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Promise {
    Complete,
    Escalate,
    Blocked,
}

impl Promise {
    /// In the order in which they count where a message has several.
    pub const ALL: [Self; 3] = [Self::Complete, Self::Escalate, Self::Blocked];

    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "COMPLETE",
            Self::Escalate => "ESCALATE",
            Self::Blocked => "BLOCKED",
        }
    }

    /// As an agent writes it.
    pub fn tag(self) -> String {
        format!("{OPEN}{}{CLOSE}", self.name())
    }
}

impl FromStr for Promise {
    type Err = String;

    /// Takes the word alone or as a tag, in either case.
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_lowercase();
        let word = lower.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)).unwrap_or(&lower).trim();
        let named = PROMISES.iter().find(|(_, name)| *name == word).map(|(promise, _)| *promise);
        named.ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            format!("`{text}` is no promise; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// In the order in which they count where a message has several.
const PROMISES: [(Promise, &str); 3] =
    [(Promise::Complete, "complete"), (Promise::Escalate, "escalate"), (Promise::Blocked, "blocked")];

pub(crate) const OPEN: &str = "<promise>";
pub(crate) const CLOSE: &str = "</promise>";
/// How much of a line is looked at, and how much of a message: the end of it.
const LINE: usize = 8 * 1024;
const MESSAGE: usize = 256 * 1024;
/// What stands for an open tag where others are quoted.
pub(crate) const TAKEN_APART: &str = "[promise]";

/// The elements of HTML that only say how something looks.
const LOOKS: [&str; 8] = ["b", "i", "u", "em", "p", "strong", "mark", "center"];

/// Words that begin a sentence about the tag, where they follow it.
const ABOUT_IT: [&str; 20] = [
    "is", "was", "will", "would", "should", "must", "can", "may", "has", "comes", "goes", "means", "only", "tag",
    "requires", "needs", "depends", "follows", "remains", "to",
];
/// The same, also in brackets.
const AFTER_WHICH: [&str; 9] = ["when", "once", "if", "until", "unless", "after", "assuming", "provided", "except"];

/// The claim in a message that answers this prompt: COMPLETE before ESCALATE before BLOCKED, unless it is taken back.
pub fn detect(message: &str, prompt: &str) -> Option<Promise> {
    detect_all(message, prompt).into_iter().next()
}

/// All claims in a message that answers this prompt, in the order in which they count.
pub fn detect_all(message: &str, prompt: &str) -> Vec<Promise> {
    let message = &message[message.ceil_char_boundary(message.len().saturating_sub(MESSAGE))..];
    let message = joined(&plain(message)).to_lowercase();
    if !message.contains(OPEN) {
        // As most messages are, and every turn waits for this.
        return Vec::new();
    }
    let lines = speech::own_lines(&message);
    let echoes = Echoes::of(prompt, &lines);
    let said = |at: usize| lines[at].is_said.then(|| claim(lines[at].text, above(&lines, at))).flatten();
    let own = |at: usize| said(at).filter(|_| !echoes.has(at)).map(|claim| (at, claim));
    let claims: Vec<(usize, Claim<'_>)> = (0..lines.len()).filter_map(own).collect();
    let is_stuck = |claim: &Claim<'_>| claim.promise != Promise::Complete;
    let stuck = claims.iter().rfind(|(_, claim)| is_stuck(claim)).map(|(at, _)| *at);
    let second_thought = lines.iter().rposition(|line| line.is_said && retraction::takes_back(line.text));
    // Whatever takes a claim back stands below it.
    let taken_back = stuck.max(second_thought);
    let stands = |(at, claim): &&(usize, Claim<'_>)| {
        is_stuck(claim) || (taken_back.is_none_or(|below| below <= *at) && !retraction::takes_back(claim.after))
    };
    let standing: Vec<Promise> = claims.iter().filter(stands).map(|(_, claim)| claim.promise).collect();
    Promise::ALL.into_iter().filter(|promise| standing.contains(promise)).collect()
}

/// What is said right above a line, if anything. Beyond the end of a paragraph or of an item only what cannot end there.
fn above<'m>(lines: &[Line<'m>], at: usize) -> &'m str {
    let before = lines[..at].iter().rposition(|line| !line.text.is_empty());
    let Some((place, line)) = before.map(|place| (place, &lines[place])).filter(|(_, line)| line.is_said) else {
        return "";
    };
    let is_begun = saying::goes_on(line.text) || (place + 1 == at && !speech::bullet(line.text).0);
    if is_begun { line.text } else { "" }
}

/// A claim, and what follows it on its line.
struct Claim<'m> {
    promise: Promise,
    after: &'m str,
}

/// What a line claims, if it is said and not only mentioned: of several claims the last one, as over several lines. The line
/// above may have begun its sentence.
fn claim<'m>(line: &'m str, above: &str) -> Option<Claim<'m>> {
    let mut rest = &line[line.ceil_char_boundary(line.len().saturating_sub(LINE))..];
    let mut last = None;
    while let Some(claim) = first_claim(rest, if last.is_none() { above } else { "" }) {
        rest = claim.after;
        last = Some(claim);
    }
    last
}

fn first_claim<'m>(line: &'m str, above: &str) -> Option<Claim<'m>> {
    let line = line.trim();
    let mut from = 0;
    while let Some(place) = line[from..].find(OPEN).map(|place| from + place) {
        from = place + OPEN.len();
        let end = line[from..].find(CLOSE).map(|end| from + end)?;
        let word = line[from..end].trim();
        let Some((promise, _)) = PROMISES.iter().find(|(_, name)| *name == word) else { continue };
        let (before, after) = without_markup(&line[..place], &line[end + CLOSE.len()..]);
        let starts = is_ornament_before(before);
        let ends = is_ornament_after(after) && is_text_before(before);
        let broken = starts && is_begun_as_negated(above, *promise);
        if (starts && !broken && !is_about(after, *promise)) || (ends && !broken && !is_negated(before, *promise)) {
            return Some(Claim { promise: *promise, after });
        }
    }
    None
}

/// What stands before and after a tag, without the HTML that only says how it looks.
fn without_markup<'m>(mut before: &'m str, mut after: &'m str) -> (&'m str, &'m str) {
    let inner =
        |text: &'m str| LOOKS.iter().find_map(|name| text.strip_suffix('>')?.strip_suffix(name)?.strip_suffix('<'));
    let outer =
        |text: &'m str| LOOKS.iter().find_map(|name| text.strip_prefix("</")?.strip_prefix(name)?.strip_prefix('>'));
    while let Some(rest) = inner(before.trim_end()) {
        before = rest;
    }
    while let Some(rest) = outer(after.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '.')) {
        after = rest;
    }
    (before, after)
}

/// What may stand before a tag that begins its line: emphasis, a bullet, a number, a heading, a ticked box.
fn is_ornament_before(before: &str) -> bool {
    let (bullet, rest) = speech::bullet(before);
    let rest = rest.trim();
    let rest = rest.strip_prefix("[x]").filter(|_| bullet).unwrap_or(rest).trim();
    let rest = rest.trim_start_matches('#').trim();
    rest.chars().all(|letter| matches!(letter, '*' | '_'))
}

/// What may stand after a tag that ends its line.
fn is_ornament_after(after: &str) -> bool {
    // Signs and pictures; but nothing that closes a quote, a bracket or a comment.
    after.chars().all(|letter| {
        letter.is_whitespace()
            || matches!(letter, '*' | '_' | '.' | '!' | ',' | ';' | ':' | '…')
            || (!letter.is_ascii() && !letter.is_alphanumeric() && !is_quote(letter))
    })
}

fn is_quote(letter: char) -> bool {
    matches!(
        letter,
        '"' | '\''
            | '`'
            | '“'
            | '”'
            | '„'
            | '‘'
            | '’'
            | '‚'
            | '«'
            | '»'
            | '‹'
            | '›'
            | '「'
            | '」'
            | '『'
            | '』'
    )
}

/// Whether what stands before a tag that ends its line is a sentence, not code or a quotation that has begun.
fn is_text_before(before: &str) -> bool {
    let text = before.trim_end_matches(['*', '_']);
    let touches = text
        .chars()
        .next_back()
        .is_some_and(|letter| is_quote(letter) || matches!(letter, '(' | '[' | '{' | '~' | '='));
    let trimmed = text.trim();
    let diff = trimmed.starts_with(['+', '-']) && !trimmed.starts_with("- ") && !trimmed.starts_with("+ ");
    let code = trimmed == "echo" || ["$ ", "//", "echo "].iter().any(|begins| trimmed.starts_with(begins));
    let opened = text.matches('"').count() % 2 == 1 || text.matches('`').count() % 2 == 1;
    let item = speech::bullet(text).1.trim_start();
    let unticked = item.starts_with("[ ]") || item.starts_with(OPEN_SIGNS);
    !(touches || diff || code || opened || unticked || is_found_by_a_search(trimmed))
}

/// Signs of what is open or has failed.
const OPEN_SIGNS: [char; 8] = ['☐', '⬜', '🔲', '❌', '✗', '✘', '⏳', '🚧'];

/// `src/prompt.rs:31:` or `README.md:`, as tools print that search.
fn is_found_by_a_search(before: &str) -> bool {
    let Some(rest) = before.strip_suffix(':') else { return false };
    let is_file = !rest.contains(' ') && rest.rsplit_once('.').is_some_and(|(_, kind)| !kind.is_empty());
    is_file
        || rest.rsplit_once(':').is_some_and(|(file, line)| {
            !file.is_empty()
                && !file.contains(' ')
                && !line.is_empty()
                && line.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Whether a sentence that ends with the tag says that it does not hold, or not yet.
fn is_negated(before: &str, promise: Promise) -> bool {
    let sentence = last_sentence(before);
    let near = last_clause(sentence);
    if promise != Promise::Complete {
        // Whoever is stuck says so with many a `not`.
        return negation::denies_the_next(near);
    }
    let (_, item) = speech::bullet(before);
    negation::denies_what_follows(near)
        || negation::plans(sentence)
        || negation::is_conditional(sentence)
        || negation::is_a_step(item)
        || negation::is_a_label(before)
        || negation::is_in_part(sentence)
        || saying::speaks_of_it(near)
        || saying::announces_it_for_later(sentence)
}

/// Whether the line above has begun a sentence that does so, or announces the tag for later. Whoever announces it ("so I'll
/// end with:") and has it follow means it.
fn is_begun_as_negated(above: &str, promise: Promise) -> bool {
    let sentence = last_sentence(above);
    let goes_on = negation::is_unfinished(above);
    if promise != Promise::Complete {
        return goes_on && is_negated(above, promise);
    }
    let is_about_it = goes_on || saying::announces_it(sentence);
    let is_conditional = negation::is_conditional(sentence);
    (is_about_it && (is_conditional || negation::denies_what_follows(last_clause(sentence))))
        || (is_conditional && sentence.trim_end().ends_with(':'))
        || (goes_on && (negation::plans_for_later(sentence) || negation::is_a_step(speech::bullet(sentence).1)))
        || negation::is_a_label(above)
        || saying::announces_it_for_later(sentence)
}

fn last_sentence(text: &str) -> &str {
    let is_digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
    let ends = |(place, mark): &(usize, &str)| {
        let after = &text[place + mark.len()..];
        // In "92.3%" it ends none.
        *mark != "." || !(is_digit(after.chars().next()) && is_digit(text[..*place].chars().next_back()))
    };
    let end = text.rmatch_indices(['.', '!', '?', '。', '！', '？']).find(ends);
    end.map_or(text, |(place, mark)| &text[place + mark.len()..])
}

/// The last clause of a sentence. A comma ends one only where nothing follows it.
fn last_clause(sentence: &str) -> &str {
    let ends = |place: &usize| !negation::is_unfinished(&sentence[..*place]);
    let marks = [':', ';', '—', '–', '：', '；'];
    let place = sentence.match_indices(marks).map(|(place, mark)| place + mark.len()).rfind(ends);
    let clause = &sentence[place.unwrap_or(0)..];
    if clause.trim_end().ends_with([',', '，', '、']) { "" } else { clause }
}

/// Whether what follows a tag that begins its line makes it a sentence about the tag.
fn is_about(after: &str, promise: Promise) -> bool {
    if after.trim_start().starts_with('?') {
        return true;
    }
    let alone = after.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    if promise == Promise::Complete && alone.starts_with("not yet") {
        return true;
    }
    // It begins a sentence of its own.
    if after.trim_start().starts_with(['.', '!', ':', ';', '—', '–']) {
        return false;
    }
    let sentence = after.split(['.', '!', '?', ';', ':']).next().unwrap_or_default();
    let said = words(sentence);
    let is_first = |list: &[&str]| said.first().is_some_and(|word| list.contains(word));
    // "… after three attempts", "… after mending it"
    if matches!(said[..], ["after", next, ..] if negation::is_a_number(next) || next.ends_with("ing")) {
        return false;
    }
    if sentence.trim_start().starts_with('(') {
        return is_first(&AFTER_WHICH);
    }
    is_first(&ABOUT_IT)
        || is_first(&AFTER_WHICH)
        || (promise == Promise::Complete && negation::denies_what_was(sentence))
}

/// A text that quotes others, without anything in it that could be taken for a claim.
pub fn without_claims(text: &str) -> String {
    let quoted = taken_apart(text);
    // What is seen as a tag only without what a terminal hides.
    let is_hidden = plain(&quoted).to_ascii_lowercase().contains(OPEN);
    if is_hidden { taken_apart(&plain(text)) } else { quoted }
}

fn taken_apart(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let mut done = 0;
    for (place, tag) in text.to_ascii_lowercase().match_indices(OPEN) {
        quoted.push_str(&text[done..place]);
        quoted.push_str(TAKEN_APART);
        done = place + tag.len();
    }
    quoted.push_str(&text[done..]);
    quoted
}

/// The last line of a message, but for its claims.
pub fn last_line(message: &str) -> Option<&str> {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && speech::fence_of(line).is_none());
    lines.rev().map(without_tags).find(|line| !line.is_empty())
}

/// How much of an agent's last line is kept.
const LAST_WORDS: usize = 300;

/// As much of it as is kept.
pub fn last_words(message: &str) -> Option<String> {
    last_line(message).map(|line| line[..line.floor_char_boundary(LAST_WORDS)].to_owned())
}

/// A line without a claim at its start or its end, and without the marks around it.
fn without_tags(line: &str) -> &str {
    let lower = line.to_ascii_lowercase();
    let (Some(start), Some(end)) = (lower.find(OPEN), lower.rfind(CLOSE).map(|end| end + CLOSE.len())) else {
        return line;
    };
    let Some((before, after)) = line.get(..start).zip(line.get(start.max(end)..)) else { return line };
    match (is_ornament_before(before), is_ornament_after(after)) {
        (true, true) => "",
        (true, false) => after.trim_start_matches(['*', '_']).trim(),
        (false, true) => before.trim_end_matches(['*', '_']).trim(),
        (false, false) => line,
    }
}

/// A message without what only a terminal understands. A lone carriage return ends a line.
pub(crate) fn plain(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut letters = message.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => match letters.next() {
                Some('[') => while letters.next().is_some_and(|letter| !('\x40'..='\x7e').contains(&letter)) {},
                Some(']') => while letters.next().is_some_and(|letter| letter != '\x07' && letter != '\\') {},
                _ => {}
            },
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => text.push('\n'),
            '\u{200b}' | '\u{feff}' => {}
            letter => text.push(letter),
        }
    }
    text
}

/// A tag that was written over three lines, on one.
pub(crate) fn joined(message: &str) -> String {
    let lines: Vec<&str> = message.lines().collect();
    let (mut text, mut at) = (String::with_capacity(message.len()), 0);
    while at < lines.len() {
        let is = |line: usize, tag: &str| lines.get(line).is_some_and(|line| line.trim().eq_ignore_ascii_case(tag));
        if is(at, OPEN) && is(at + 2, CLOSE) {
            text.extend([OPEN, lines[at + 1].trim(), CLOSE, "\n"]);
            at += 3;
        } else {
            text.extend([lines[at], "\n"]);
            at += 1;
        }
    }
    text
}

#[cfg(test)]
#[path = "promise_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "promise_talk_tests.rs"]
mod talk_tests;
