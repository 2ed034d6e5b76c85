//! Expressions as people write them who come from JavaScript, in our language where they mean the same there.
//!
//! Read are `||`, `&&`, `!`, `===`, `!==`, `null` and `undefined`, and some methods (`methods`). What has another meaning here,
//! or none, is refused with the way to write it (`habits`).
//!
//! `a || b` is `b` where `a` is missing, null or an empty text: 0 and false are values. Where a truth is asked for, it is
//! the `or` of JavaScript. `!a` holds where `a` is missing.

use super::habits;
use super::methods::{self, Call};
use crate::expression::ExpressionError;

/// Brackets and signs that are looked into. What has more is refused by the language anyway.
const NESTED: usize = 256;
const LONGEST: usize = 64 * 1024;

/// A piece of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'t> {
    pub kind: Kind,
    pub at: usize,
    /// As it is written.
    pub text: &'t str,
    /// In our language.
    ours: &'t str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Space,
    /// A text in quotes.
    Text,
    Number,
    Word,
    /// A word after a dot.
    Field,
    Sign,
    Open,
    Close,
    /// `&&` or `and`.
    And,
    /// `||`.
    Or,
    /// `!`.
    Not,
}

impl Token<'_> {
    pub fn is(&self, text: &str) -> bool {
        self.text == text && !matches!(self.kind, Kind::Text | Kind::Field)
    }

    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// What ends an operand of `||` beside brackets.
    pub fn ends_operands(&self) -> bool {
        [",", ":", "=", "if", "else", "or"].iter().any(|sign| self.is(sign))
    }

    /// Whether it is the end of something that has fields.
    pub fn ends_a_value(&self) -> bool {
        match self.kind {
            Kind::Word => !KEYWORDS.contains(&self.text),
            Kind::Text | Kind::Number | Kind::Field | Kind::Close => true,
            Kind::Space | Kind::Sign | Kind::Open | Kind::And | Kind::Or | Kind::Not => false,
        }
    }

    fn compares(&self) -> bool {
        matches!(self.kind, Kind::And | Kind::Not)
            || ["==", "===", "!=", "!==", "<", ">", "<=", ">=", "not", "in", "is"].iter().any(|sign| self.is(sign))
    }
}

/// What an expression is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Value,
    Truth,
}

/// The expression in our language. It is the very same text if nothing had to be said otherwise.
pub fn translate(text: &str, asked: Asked) -> Result<String, ExpressionError> {
    if text.len() > LONGEST {
        return Ok(text.to_owned());
    }
    let tokens = read(text)?;
    let nested = tokens.iter().filter(|token| matches!(token.kind, Kind::Or | Kind::Not | Kind::Open)).count();
    let is_readable = nested <= NESTED;
    habits::check(text, &tokens, is_readable)?;
    let is_ours = |(place, token): (usize, &Token<'_>)| {
        token.text == token.ours && !matches!(token.kind, Kind::Or | Kind::Not) && Call::at(&tokens, place).is_none()
    };
    Ok(if !is_readable || tokens.iter().enumerate().all(is_ours) { text.to_owned() } else { written(&tokens, asked) })
}

/// Signs of more than one letter, and ours for them.
const SIGNS: &[(&str, &str, Kind)] = &[
    ("===", "==", Kind::Sign),
    ("!==", "!=", Kind::Sign),
    ("==", "==", Kind::Sign),
    ("!=", "!=", Kind::Sign),
    ("<=", "<=", Kind::Sign),
    (">=", ">=", Kind::Sign),
    ("||", "||", Kind::Or),
    ("&&", "and", Kind::And),
    ("!", "not", Kind::Not),
    ("(", "(", Kind::Open),
    ("[", "[", Kind::Open),
    ("{", "{", Kind::Open),
    (")", ")", Kind::Close),
    ("]", "]", Kind::Close),
    ("}", "}", Kind::Close),
];
const WORDS: &[(&str, &str)] = &[("null", "none"), ("undefined", "none"), (RESULTS, "steps")];
/// Words of ours that are no values.
const KEYWORDS: &[&str] = &["in", "is", "not", "or", "if", "else"];
/// What came of steps, elsewhere.
const RESULTS: &str = "stepResults";

fn read(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let token = next(text, at, &tokens)?;
        at = token.end();
        tokens.push(token);
    }
    Ok(tokens)
}

fn next<'t>(text: &'t str, at: usize, before: &[Token<'t>]) -> Result<Token<'t>, ExpressionError> {
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    let upto = |end: Option<usize>| &rest[..end.unwrap_or(rest.len())];
    let plain = |kind, text| Token { kind, at, text, ours: text };
    if let '\'' | '"' = first {
        let length = quoted(rest);
        let length = length.ok_or_else(|| ExpressionError::new("this text is not closed").at(at..text.len()))?;
        return Ok(plain(Kind::Text, upto(Some(length))));
    }
    if first.is_whitespace() {
        return Ok(plain(Kind::Space, upto(rest.find(|letter: char| !letter.is_whitespace()))));
    }
    let word = upto(rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    if first.is_ascii_digit() {
        return Ok(plain(Kind::Number, word));
    }
    let mut said = before.iter().rev().filter(|token| token.kind != Kind::Space);
    let last = said.next();
    if !word.is_empty() {
        return Ok(match WORDS.iter().find(|(theirs, _)| *theirs == word) {
            Some((RESULTS, ours)) if is_below_context(before) => Token { kind: Kind::Field, at, text: word, ours },
            _ if last.is_some_and(|last| last.is(".")) => plain(Kind::Field, word),
            _ if word == "and" => plain(Kind::And, word),
            // `is undefined` is ours.
            Some((_, ours)) if !last.is_some_and(|last| last.is("is") || last.is("not")) => {
                Token { kind: Kind::Word, at, text: word, ours }
            }
            _ => plain(Kind::Word, word),
        });
    }
    habits::sign(text, at, last)?;
    Ok(match SIGNS.iter().find(|(theirs, _, _)| rest.starts_with(theirs)) {
        Some((theirs, ours, kind)) => Token { kind: *kind, at, text: upto(Some(theirs.len())), ours },
        None => plain(Kind::Sign, upto(Some(first.len_utf8()))),
    })
}

/// Whether what comes next is a name in `context`.
fn is_below_context(before: &[Token<'_>]) -> bool {
    matches!(before, [.., context, dot] if dot.is(".") && context.kind == Kind::Word && context.is("context"))
}

/// How long a text in quotes is, with them.
pub fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return Some(at + quote.len_utf8()),
            _ => {}
        }
    }
    None
}

/// Tokens as text: operands of `||`, and what is weaker than it between them.
fn written(tokens: &[Token<'_>], asked: Asked) -> String {
    let parts = split(tokens, Token::ends_operands);
    let is_list = parts.iter().any(|(_, end)| end.is_some_and(|end| matches!(end.text, "," | ":" | "=")));
    let mut text = String::new();
    let mut before: Option<&Token<'_>> = None;
    for (part, end) in parts {
        let beside = |word: &str| [before, end].into_iter().flatten().any(|token| token.is(word));
        let is_asked = before.is_some_and(|token| token.is("if")) || beside("or");
        let asked = match is_asked || asked == Asked::Truth && !is_list {
            true => Asked::Truth,
            false => Asked::Value,
        };
        text.push_str(&alternatives(part, asked));
        // A word needs spaces around it, a sign has none before it.
        match end.map(|end| (end.kind, end.ours)) {
            Some((Kind::Word, word)) => text.push_str(&format!(" {word} ")),
            Some((_, "=")) => text.push('='),
            Some((_, sign)) => text.push_str(&format!("{sign} ")),
            None => {}
        }
        before = end;
    }
    text
}

/// The parts between tokens that are not within brackets, each with the token that ends it.
fn split<'a, 't>(
    tokens: &'a [Token<'t>],
    at: impl Fn(&Token<'t>) -> bool,
) -> Vec<(&'a [Token<'t>], Option<&'a Token<'t>>)> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (place, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0 && at(token) => {
                parts.push((&tokens[start..place], Some(token)));
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push((&tokens[start..], None));
    parts
}

fn alternatives(tokens: &[Token<'_>], asked: Asked) -> String {
    let parts = split(tokens, |token| token.kind == Kind::Or);
    let compares = |part: &[Token<'_>]| split(part, Token::compares).len() > 1;
    let is_truth = |(part, _): &(&[Token<'_>], _)| compares(part) || methods::asks(part);
    let asked = if parts.len() > 1 && parts.iter().any(is_truth) { Asked::Truth } else { asked };
    let mut parts = parts.into_iter().rev().map(|(part, _)| together(part, asked));
    let last = parts.next().unwrap_or_default();
    parts.fold(last, |later, part| match (part.trim(), later.trim(), asked) {
        (part, later, Asked::Truth) => format!("({part}) | default({later}, true)"),
        (part, later, Asked::Value) => format!("({part}) | otherwise({later})"),
    })
}

/// What `&&` joins.
fn together(tokens: &[Token<'_>], asked: Asked) -> String {
    let parts = split(tokens, |token| token.kind == Kind::And);
    let asked = if parts.len() > 1 { Asked::Truth } else { asked };
    let one = |(part, _): &(&[Token<'_>], Option<&Token<'_>>)| {
        let negated = part.iter().position(|token| token.kind != Kind::Space && !token.is("not")).unwrap_or(0);
        let asked = if part[..negated].iter().any(|token| token.is("not")) { Asked::Truth } else { asked };
        // What is compared or looked into is a value, whatever is asked for.
        plain(part, if is_bracket(&part[negated..]) { asked } else { Asked::Value }).trim().to_owned()
    };
    parts.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn is_bracket(tokens: &[Token<'_>]) -> bool {
    let end = tokens.iter().rposition(|token| token.kind != Kind::Space);
    tokens.first().is_some_and(|token| token.is("(")) && Some(closing(tokens, 0)) == end
}

/// Tokens as text where only brackets, `!` and methods are left to be looked into.
fn plain(tokens: &[Token<'_>], asked: Asked) -> String {
    let mut text = String::new();
    // Where the value begins that a method may be called on.
    let mut value = 0;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.kind {
            Kind::Field if let Some(Call { method, open, close }) = Call::at(tokens, at) => {
                let given = format!("({})", written(&tokens[open + 1..close], Asked::Value));
                let on = text.split_off(value);
                let on = on.trim_end().strip_suffix('.').unwrap_or(&on).trim_end();
                text.push_str(&format!("({})", method.ours(on, &given)));
                at = close;
            }
            Kind::Open => {
                if !is_looked_into(tokens, at) {
                    value = text.len();
                }
                let end = closing(tokens, at);
                let asked = if token.is("(") { asked } else { Asked::Value };
                text.push_str(token.ours);
                text.push_str(&written(&tokens[at + 1..end], asked));
                at = end;
                text.push_str(tokens.get(end).map_or("", |end| end.ours));
            }
            Kind::Not => {
                let end = operand(tokens, at + 1);
                let inner = &tokens[at + 1..end];
                let asked = if is_bracket(inner) { Asked::Truth } else { Asked::Value };
                let value = plain(inner, asked);
                text.push_str(&match (value.trim(), is_bracket(inner)) {
                    ("", _) => "(not )".to_owned(),
                    (value, true) => format!("(not {value} | otherwise(false))"),
                    (value, false) => format!("(not ({value}) | otherwise(false))"),
                });
                at = end - 1;
            }
            Kind::Word | Kind::Text | Kind::Number => {
                value = text.len();
                text.push_str(token.ours);
            }
            _ => text.push_str(token.ours),
        }
        at += 1;
    }
    text
}

/// Whether a bracket is about the value before it.
fn is_looked_into(tokens: &[Token<'_>], open: usize) -> bool {
    let before = tokens[..open].iter().rfind(|token| token.kind != Kind::Space);
    !tokens[open].is("{") && before.is_some_and(Token::ends_a_value)
}

/// Where the operand of a `!` ends: a value with what is looked up in it, filters and tests.
fn operand(tokens: &[Token<'_>], start: usize) -> usize {
    let skip = |mut at: usize| {
        while tokens.get(at).is_some_and(|token| token.kind == Kind::Space) {
            at += 1;
        }
        at
    };
    let value = |mut at: usize| {
        at = skip(at);
        while tokens.get(at).is_some_and(|token| token.kind == Kind::Not || token.is("-") || token.is("not")) {
            at = skip(at + 1);
        }
        match tokens.get(at) {
            Some(token) if token.kind == Kind::Open => (closing(tokens, at) + 1).min(tokens.len()),
            Some(_) => at + 1,
            None => at,
        }
    };
    let mut end = value(start);
    loop {
        let next = skip(end);
        end = match tokens.get(next) {
            Some(token) if token.is("(") || token.is("[") => (closing(tokens, next) + 1).min(tokens.len()),
            Some(token) if token.is(".") || token.is("|") || token.is("is") || token.is("in") || token.is("not") => {
                value(next + 1)
            }
            _ => return end,
        };
    }
}

pub fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(theirs: &str, ours: &str) {
        assert_eq!(translate(theirs, Asked::Value).unwrap(), ours, "{theirs}");
    }

    #[test]
    fn what_is_ours_stays_as_it_is() {
        for text in ["task.labels", "'a || b'", "a | default('x')", "steps['a b'].data", "not a and b != 2", "[1, 2]"] {
            check(text, text);
        }
        check("a is undefined and b is not undefined", "a is undefined and b is not undefined");
        check("data.count-1", "data.count-1");
    }

    #[test]
    fn habits_that_mean_the_same_are_read() {
        check("a === null", "a == none");
        check("a === 0", "a == 0");
        check("a !== 0", "a != 0");
        check("!a && b", "(not (a) | otherwise(false)) and b");
        check("a&&b", "a and b");
    }

    #[test]
    fn an_alternative_is_taken_where_there_is_nothing() {
        check("a || 'b'", "(a) | otherwise('b')");
        check("a||b||c", "(a) | otherwise((b) | otherwise(c))");
        check("(a || b) + 1", "((a) | otherwise(b)) + 1");
        check("f(a || b, c)", "f((a) | otherwise(b), c)");
        check("(a || false) == true", "((a) | otherwise(false)) == true");
    }

    #[test]
    fn where_a_truth_is_asked_for_an_alternative_is_an_or() {
        check("a === 1 || b", "(a == 1) | default(b, true)");
        check("(a || b) && c", "((a) | default(b, true)) and c");
        check("!(a || b)", "(not ((a) | default(b, true)) | otherwise(false))");
        assert_eq!(translate("a || b", Asked::Truth).unwrap(), "(a) | default(b, true)");
        assert_eq!(translate("(a || 0) < 2", Asked::Truth).unwrap(), "((a) | otherwise(0)) < 2");
    }

    #[test]
    fn an_alternative_ends_where_our_own_forms_go_on() {
        check("'x' if a || b else 'y'", "'x' if (a) | default(b, true) else 'y'");
        check("{'reason': a || 'none'}", "{'reason': (a) | otherwise('none')}");
        check("range(end=a || 2)", "range(end=(a) | otherwise(2))");
    }

    #[test]
    fn a_negation_binds_as_tightly_as_there() {
        check("!a == true", "(not (a) | otherwise(false)) == true");
        check("!a.b['c'].d == e", "(not (a.b['c'].d) | otherwise(false)) == e");
        check("!!a", "(not ((not (a) | otherwise(false))) | otherwise(false))");
        check("!a | default(false)", "(not (a | default(false)) | otherwise(false))");
        check("!'x' in a", "(not ('x' in a) | otherwise(false))");
        check("!", "(not )");
    }

    #[test]
    fn what_is_too_intricate_is_left_to_the_language() {
        let deep = "(".repeat(5_000) + "!a";
        check(&deep, &deep);
        let long = "!".repeat(70_000);
        check(&long, &long);
    }
}
