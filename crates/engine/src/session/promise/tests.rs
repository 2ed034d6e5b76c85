//! Tests of the rule for claims, by example and against a model of regular expressions.

use proptest::prelude::*;
use regex_lite::{Regex, RegexBuilder};

use super::*;

const COMPLETE: &str = "<promise>COMPLETE</promise>";
const BLOCKED: &str = "<promise>BLOCKED</promise>";

/// Asserts what messages claim. `C` stands for the tag COMPLETE, `B` for BLOCKED, `E` for ESCALATE.
#[track_caller]
fn check(expected: &[Promise], messages: &[&str]) {
    for message in messages {
        assert_eq!(find_promises(&with_tags(message)), expected, "{message:?}");
    }
}

fn with_tags(message: &str) -> String {
    let tags = [("{C}", Promise::Complete), ("{B}", Promise::Blocked), ("{E}", Promise::Escalate)];
    tags.iter().fold(message.to_owned(), |text, (mark, promise)| text.replace(mark, promise.tag()))
}

#[test]
fn complete_at_end_of_last_line_counts() {
    let messages = [
        "{C}",
        "All tests pass. {C}",
        "All tests pass.\n\n{C}",
        "{C}\n",
        "{C}  \n\n \t\n",
        "Done.\r\n{C}\r\n\r\n",
        "**{C}**",
        "**Done: {C}.**",
        "__{C}__!",
        "*{C}* .",
        "- {C}",
        "> {C}",
        "# {C}",
        "`{C}`",
        "**`{C}`**.",
        "`` {C} ``",
        "Done.\n```\n{C}",
        "What follows is not interpreted: I am not done, so no {C}",
        "{C} and again {C}",
    ];
    check(&[Promise::Complete], &messages);
    check(&[Promise::Complete], &["<PROMISE>complete</Promise>", "Done <promise>Complete</promise>"]);
}

#[test]
fn complete_elsewhere_does_not_count() {
    let messages = [
        "",
        "{C}\nI still have to run the tests.",
        "{C} is what I say when it works",
        "Say `{C}`",
        "- `{C}`",
        "`echo {C}`",
        "\"{C}\"",
        "({C})",
        "{C}?",
        "{C}..",
        "{C} 🎉",
        "```\n{C}\n```",
        "<promise>COMPLETE</promise",
        "<promise> COMPLETE </promise>",
        "<promise>\nCOMPLETE\n</promise>",
        "<promise>DONE</promise>",
        "{C}\u{200b}",
        "<pro\u{200b}mise>COMPLETE</promise>",
    ];
    check(&[], &messages);
}

#[test]
fn stuck_at_edge_of_any_line_counts() {
    let messages = [
        "{B}",
        "{B}: I need the key of the staging server.\nWhich one is it?",
        "I need a key. {B}\nThat is all.",
        "**{B}** no key",
        "`{B}`",
        "```\ncode\n```\n{B}",
        "~~~\n```\n~~~\n{B}",
        "I am not {B}",
    ];
    check(&[Promise::Blocked], &messages);
    check(&[Promise::Escalate], &["{E}", "{E} the tests are wrong", "Please look: {E}."]);
    check(&[Promise::Escalate, Promise::Blocked], &["{B}\n{E}", "{E} {B}"]);
}

#[test]
fn stuck_elsewhere_does_not_count() {
    let messages = [
        "I could say {B} here",
        "End with `{B}` instead.",
        "Say `{B}`",
        "`{B}` is the tag",
        "```\n{B}\n```",
        "````\n```\n{B}\n```\n````",
        "```sh\n{B}",
    ];
    check(&[], &messages);
}

#[test]
fn stuck_outweighs_complete() {
    check(&[Promise::Blocked], &["{B}\n{C}", "{C}\n{B}", "{B} {C}", "{C} {B}"]);
    assert_eq!(find_promise(&with_tags("{E}\nDone. {C}")), Some(Promise::Escalate));
}

#[test]
fn uncounted_complete_is_explained() {
    let why = |message: &str| explain_uncounted_claim(&with_tags(message));
    let elsewhere = why("{C}\nBye.").unwrap();
    assert!(elsewhere.contains("not on the last line"), "{elsewhere}");
    let beside = why("Bye.\nSay `{C}`").unwrap();
    assert!(beside.contains("does not end with it"), "{beside}");
    assert_eq!(why("```\n<promise>complete</promise>\n```"), Some(elsewhere));
    for message in ["Bye.", "{C}", "{B}\n{C}", "{C}\n{B}", "I could say {B} here"] {
        assert_eq!(why(message), None, "{message:?}");
    }
    for sentence in [elsewhere, beside] {
        assert_eq!(neutralize_claims(sentence), sentence, "the prompt says it as it stands");
    }
}

#[test]
fn long_message_is_read_whole() {
    let filler = "All is well, and here is <promise> some more. ".repeat(20_000);
    assert_eq!(find_promises(&format!("{filler}{COMPLETE}")), [Promise::Complete]);
    assert_eq!(find_promises(&format!("{BLOCKED}\n{filler}\n{COMPLETE}")), [Promise::Blocked]);
    let lines = "```\n*_`\n".repeat(100_000);
    assert_eq!(find_promises(&format!("{lines}{COMPLETE}")), [Promise::Complete]);
}

#[test]
fn last_words_leave_out_claim() {
    let words = |message: &str| excerpt_last_words(&with_tags(message));
    assert_eq!(words("I need the key.\n{B}\n").as_deref(), Some("I need the key."));
    assert_eq!(words("I need the key: **{B}**").as_deref(), Some("I need the key:"));
    assert_eq!(words("{E} Which of them?").as_deref(), Some("Which of them?"));
    assert_eq!(words("So be it.\n```\n{C}\n```\n").as_deref(), Some("So be it."));
    assert_eq!(words("  - item  \n`{C}`").as_deref(), Some("- item"));
    assert_eq!(words("{C}"), None);
    assert_eq!(words("### {B}"), None);
    let long = words(&"é".repeat(300)).unwrap();
    assert!(long.len() <= MAX_LAST_WORDS_BYTES && long.len() > MAX_LAST_WORDS_BYTES - 2);
}

#[test]
fn quoted_text_holds_no_tag() {
    assert_eq!(neutralize_claims("a\r\n<PROMISE>COMPLETE</promise>"), "a\n[promise]COMPLETE</promise>");
    assert_eq!(neutralize_claims("<pro\u{1b}[0mmise>\t<promise>"), "<pro [0mmise>\t[promise]");
}

#[test]
fn promise_is_read_as_word_or_tag() {
    assert_eq!(" complete ".parse(), Ok(Promise::Complete));
    assert_eq!("<promise>Blocked</promise>".parse(), Ok(Promise::Blocked));
    assert_eq!(
        "DONE".parse::<Promise>(),
        Err("`DONE` is not a promise; the promises are COMPLETE, ESCALATE, BLOCKED".to_owned())
    );
}

/// The same rule, as regular expressions over single lines.
struct NaiveModel {
    complete: Regex,
    stuck: [(Promise, Regex); 2],
}

impl NaiveModel {
    fn new() -> Self {
        let compile = |text: &str| RegexBuilder::new(text).case_insensitive(true).build().unwrap();
        let tail = r"[*_\s]*[.!,;:…。！]?[*_\s]*$";
        let ends = |name: &str| {
            let tag = format!("<promise>{name}</promise>");
            format!(r"^(?:.*{tag}|[*_\s]*`+\s*{tag}\s*`+){tail}")
        };
        let edge = |name: &str| compile(&format!(r"(?:^[*_\s]*<promise>{name}</promise>)|(?:{})", ends(name)));
        Self {
            complete: compile(&ends("complete")),
            stuck: [(Promise::Escalate, edge("escalate")), (Promise::Blocked, edge("blocked"))],
        }
    }

    fn read(&self, message: &str) -> Vec<Promise> {
        // The expressions know only the white space of ASCII.
        let message = message.replace(|letter: char| letter != '\n' && letter.is_whitespace(), " ");
        let lines: Vec<&str> = message.split('\n').map(str::trim).collect();
        let mut said = Vec::new();
        let mut fence = String::new();
        for line in &lines {
            let ticks = line.len() - line.trim_start_matches('`').len();
            let waves = line.len() - line.trim_start_matches('~').len();
            let marks = if ticks >= 3 && !line[ticks..].contains('`') {
                ticks
            } else if waves >= 3 {
                waves
            } else {
                0
            };
            if fence.is_empty() && marks == 0 {
                said.push(*line);
            } else if fence.is_empty() {
                fence = line[..marks].to_owned();
            } else if marks == line.len() && line.contains(&fence) {
                fence.clear();
            }
        }
        let claims = |regex: &Regex| said.iter().any(|line| regex.is_match(line));
        let stuck: Vec<Promise> =
            self.stuck.iter().filter(|(_, regex)| claims(regex)).map(|(promise, _)| *promise).collect();
        let last = lines.iter().rfind(|line| !line.is_empty());
        let complete = last.is_some_and(|line| self.complete.is_match(line));
        if stuck.is_empty() && complete { vec![Promise::Complete] } else { stuck }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rule_agrees_with_naive_model(pieces in prop::collection::vec(prop::sample::select(vec![
        "{C}", "{C}", "{B}", "{E}", "<promise>complete</PROMISE>", "<promise>", "COMPLETE", "</promise>",
        "\n", "\n", "\r\n", " ", "\t", "\u{a0}", "\u{200b}", "*", "**", "_", "`", "``", "```", "````", "~~~", "sh",
        ".", "!", "?", ":", "…", "。", "\"", "(", ")", "> ", "- ", "word", "é", "Done.",
    ]), 0..14)) {
        let message = with_tags(&pieces.concat());
        prop_assert_eq!(find_promises(&message), NaiveModel::new().read(&message), "{:?}", message);
    }
}
