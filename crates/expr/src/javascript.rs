//! JavaScript syntax that an expression may use, rewritten token by token. The parser accepts or refuses everything else.
//!
//! | written | read as |
//! | --- | --- |
//! | `a === b`, `a !== b`, `null` | `a == b`, `a != b`, `none` |
//! | `a && b`, `!a` | `a and b`, `not a` |
//! | `a \|\| b` | `a or b`; where `a` is only a name, it may be missing |
//! | `a.includes(b)`, `a.startsWith(b)` | `a is containing(b)`, `a is startingwith(b)` |
//! | `a.length` | `a \| length` |

use std::ops::Range;

/// JavaScript tokens and their replacements. A token comes before its own prefixes.
const JAVASCRIPT_FORMS: &[(&str, &str)] = &[
    ("===", "=="),
    ("!==", "!="),
    ("!=", "!="),
    ("!", " not "),
    ("&&", " and "),
    ("||", " or "),
    (".includes(", " is containing("),
    (".startsWith(", " is startingwith("),
    (".length", " | length"),
    ("null", "none"),
];
/// Replaces `||` after a name that may be missing.
const OR_IF_MISSING: &str = " | default(none) or ";

/// An expression with its JavaScript syntax replaced.
pub struct RewrittenText {
    pub text: String,
    /// Ranges of replaced tokens: in the rewritten text and in the source.
    replaced: Vec<(Range<usize>, Range<usize>)>,
}

/// The kind of operand that has been read so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandPart {
    Empty,
    /// Names, and constants in brackets.
    Path,
    Other,
}

impl RewrittenText {
    /// Maps a range of the rewritten text to the source.
    pub fn source_range(&self, at: &Range<usize>) -> Range<usize> {
        let mut range = at.clone();
        for (ours, theirs) in &self.replaced {
            match at.start {
                start if start >= ours.end => range.start = theirs.end + (start - ours.end),
                start if start >= ours.start => range.start = theirs.start,
                _ => {}
            }
            match at.end {
                end if end >= ours.end => range.end = theirs.end + (end - ours.end),
                end if end > ours.start => range.end = theirs.end,
                _ => {}
            }
        }
        range
    }
}

/// Replaces the JavaScript syntax in an expression.
pub fn rewrite_javascript(source: &str) -> RewrittenText {
    let mut rewritten = RewrittenText { text: String::with_capacity(source.len()), replaced: Vec::new() };
    let (mut at, mut operand) = (0, OperandPart::Empty);
    while at < source.len() {
        let token = first_token(&source[at..]);
        let ours = match JAVASCRIPT_FORMS.iter().find(|(form, _)| *form == token) {
            Some(("||", _)) if operand == OperandPart::Path => OR_IF_MISSING,
            form => form.map_or(token, |(_, ours)| ours),
        };
        if ours != token {
            let start = rewritten.text.len();
            rewritten.replaced.push((start..start + ours.len(), at..at + token.len()));
        }
        rewritten.text.push_str(ours);
        operand = operand_after(operand, token);
        at += token.len();
    }
    rewritten
}

/// Returns the first token of a text: a JavaScript token, a quoted text, a word or field, or one character.
fn first_token(text: &str) -> &str {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_cut = |form: &str| form.ends_with(is_word) && text[form.len()..].starts_with(is_word);
    let form = JAVASCRIPT_FORMS.iter().find(|(form, _)| text.starts_with(form) && !is_cut(form));
    let is_name = text.starts_with(|first| is_word(first) || first == '.');
    let end = text.char_indices().skip(1).find(|(_, letter)| !is_name || !is_word(*letter));
    let length = form.map(|(form, _)| form.len()).or_else(|| quoted_length(text));
    &text[..length.or(end.map(|(at, _)| at)).unwrap_or(text.len())]
}

fn operand_after(operand: OperandPart, token: &str) -> OperandPart {
    match token {
        "and" | "or" | "not" | "if" | "else" | "&&" | "||" | "!" | "," | ":" | "{" => OperandPart::Empty,
        "in" | "is" | ".length" => OperandPart::Other,
        token if token.ends_with('(') => OperandPart::Empty,
        token if token.starts_with(|first: char| first.is_whitespace() || "[].".contains(first)) => operand,
        token if token.starts_with(|first: char| first.is_alphanumeric() || "_'\"".contains(first)) => match operand {
            OperandPart::Other => OperandPart::Other,
            OperandPart::Empty | OperandPart::Path => OperandPart::Path,
        },
        _ => OperandPart::Other,
    }
}

/// Returns the length of the quoted text at the start, quotes included. Without a closing quote that is the whole text.
pub fn quoted_length(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let mut is_escaped = false;
    let closing = text.char_indices().skip(1).find(|(_, letter)| {
        let closes = *letter == quote && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        closes
    });
    Some(closing.map_or(text.len(), |(at, _)| at + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{ExpressionNames, ValueExpression, laws};

    #[test]
    fn javascript_forms_become_jinja() {
        for (source, ours) in [
            ("a === 1&&b !== null", "a == 1 and b != none"),
            ("!a.includes('x')", " not a is containing('x')"),
            ("a.startsWith('b') != c", "a is startingwith('b') != c"),
            ("a.length > 2 and a.lengthy", "a | length > 2 and a.lengthy"),
            ("'a || null' in a.null and nullable", "'a || null' in a.null and nullable"),
            ("a.b['c'][0] || d", "a.b['c'][0]  | default(none) or  d"),
            ("a == b || 1 in c || f(d) || e", "a == b  or  1 in c  or  f(d)  or  e"),
            ("[a || b]", "[a  | default(none) or  b]"),
        ] {
            assert_eq!(rewrite_javascript(source).text, ours, "{source}");
        }
    }

    #[test]
    fn rewritten_range_maps_to_source_range() {
        let source = "é === null || !task.gaol";
        let rewritten = rewrite_javascript(source);
        let start = rewritten.text.find("task").expect("a name");
        assert_eq!(&source[rewritten.source_range(&(start..start + 9))], "task.gaol");
        let or = rewritten.text.find("or").expect("an operator");
        assert_eq!(&source[rewritten.source_range(&(or..or + 2))], "||");
        let none = rewritten.text.find("none").expect("a constant");
        assert_eq!(&source[rewritten.source_range(&(none..or))], "null ||");
    }

    /// Expressions, each with its expected truth value.
    fn guard_expressions() -> impl Strategy<Value = (String, bool)> {
        let leaves = [
            ("context.yes", true),
            ("context.no", false),
            ("context.one === 1", true),
            ("context.one !== 1", false),
            ("context.nothing === null", true),
            ("context.list.includes('x')", true),
            ("context.text.startsWith('b')", false),
            ("context.list.length", true),
            ("(context.missing || context.yes)", true),
            ("(context.no.such['thing'] || context.no)", false),
        ];
        let leaf = prop::sample::select(leaves.to_vec()).prop_map(|(text, holds)| (text.to_owned(), holds));
        leaf.prop_recursive(4, 16, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|(text, holds)| (format!("!({text})"), !holds)),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| (format!("({}) && ({})", a.0, b.0), a.1 && b.1)),
                (inner.clone(), inner).prop_map(|(a, b)| (format!("({})||({})", a.0, b.0), a.1 || b.1)),
            ]
        })
    }

    proptest! {
        #[test]
        fn guards_mean_what_they_mean_in_javascript((text, holds) in guard_expressions()) {
            let context = json!({"context": {
                "yes": true, "no": false, "one": 1, "nothing": null, "list": ["x"], "text": "abc",
            }});
            prop_assert_eq!(ValueExpression::parse(&text, &ExpressionNames::for_workflow()).unwrap().is_satisfied(&context), Ok(holds), "{}", text);
        }

        #[test]
        fn random_javascript_text_is_parsed_or_refused_with_place(
            text in "([a-c!|&.() \\[\\]{}:,='/-]|\\.includes\\(|\\.length|task|null|===| in |é|\\$\\{){0,40}"
        ) {
            laws::check_expression(text.as_bytes());
            laws::check_pattern(text.as_bytes());
        }
    }
}
