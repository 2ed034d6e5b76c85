//! Expressions as people write them who come from JavaScript, in our language where they mean the same there.
//!
//! Read are `||`, `&&`, `!`, `===`, `!==`, `null` and `undefined`, and some methods (`methods`). What has another meaning here,
//! or none, is refused with the way to write it (`habits`).
//!
//! `a || b` is `b` where `a` is missing, null or an empty text: 0 and false are values. Where a truth is asked for, it is
//! the `or` of JavaScript.
//!
//! What is missing is a no for `||`, `&&` and `!`, and null for `== null`. For our own words it is an error, as ever.

use super::habits;
use super::methods::{self, Call, Method};
use super::tokens::{Kind, Token, closing, read};
use crate::expression::ExpressionError;

/// Brackets and signs that are looked into. What has more is refused by the language anyway.
const NESTED: usize = 256;
const LONGEST: usize = 64 * 1024;

/// What an expression is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Value,
    Truth,
    /// A truth, by one of the signs of JavaScript: what is missing is a no.
    Guard,
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

/// Tokens as text: operands of `||`, and what is weaker than it between them.
fn written(tokens: &[Token<'_>], asked: Asked) -> String {
    let parts = split(tokens, Token::ends_operands);
    let is_list = parts.iter().any(|(_, end)| end.is_some_and(|end| matches!(end.text, "," | ":" | "=")));
    let mut text = String::new();
    let mut before: Option<&Token<'_>> = None;
    for (part, end) in parts {
        let beside = |word: &str| [before, end].into_iter().flatten().any(|token| token.is(word));
        let asked = match before.is_some_and(|token| token.is("if")) || beside("or") {
            true => Asked::Truth,
            false if is_list => Asked::Value,
            false => asked,
        };
        text.push_str(alternatives(part, asked).trim());
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
    if parts.len() < 2 {
        return together(tokens, asked);
    }
    if asked != Asked::Value || parts.iter().any(|(part, _)| is_truth(part)) {
        let parts = parts.iter().map(|(part, _)| together(part, Asked::Guard).trim().to_owned());
        return parts.collect::<Vec<_>>().join(" or ");
    }
    let mut later = String::new();
    let mut is_plain = true;
    for (part, end) in parts.iter().rev() {
        let value = together(part, asked);
        let (value, rest) = (value.trim(), later.trim());
        later = match end {
            None => value.to_owned(),
            // What is not needed is not looked at, where that could fail. It is said twice, so there is nothing of the kind in it.
            Some(_) if !is_plain && is_value(part) && !part.iter().any(|token| token.kind == Kind::Or) => {
                format!("({value} if ({value} | otherwise(none)) is not none else ({rest}))")
            }
            Some(_) => format!("({value}) | otherwise({rest})"),
        };
        is_plain &= is_path(part) || trimmed(part).len() < 2;
    }
    later
}

/// Whether it can be looked at without harm, be it there or not.
fn is_path(tokens: &[Token<'_>]) -> bool {
    let mut calls = (0..tokens.len()).filter_map(|place| Call::at(tokens, place));
    is_value(tokens) && calls.all(|call| call.method == Method::Get)
}

/// Whether it is asked for a truth, within brackets around all of it, too.
fn is_truth(tokens: &[Token<'_>]) -> bool {
    let tokens = trimmed(tokens);
    match is_bracket(tokens) {
        true => is_truth(&tokens[1..tokens.len() - 1]),
        false => split(tokens, Token::compares).len() > 1 || methods::asks(tokens),
    }
}

/// What `&&` and `and` join.
fn together(tokens: &[Token<'_>], asked: Asked) -> String {
    let parts = split(tokens, |token| token.kind == Kind::And);
    if parts.len() < 2 {
        return negated(tokens, asked);
    }
    let mut before: Option<&Token<'_>> = None;
    let mut joined = Vec::new();
    for (part, end) in parts {
        let is_theirs = [before, end].into_iter().flatten().any(|token| token.is("&&"));
        joined.push(negated(part, if is_theirs { Asked::Guard } else { Asked::Truth }).trim().to_owned());
        before = end;
    }
    joined.join(" and ")
}

/// What may stand behind a `not`, which is ours.
fn negated(tokens: &[Token<'_>], asked: Asked) -> String {
    let is_not = |token: &Token<'_>| token.kind == Kind::Space || token.is("not");
    let start = tokens.iter().position(|token| !is_not(token)).unwrap_or(0);
    let (nots, rest) = tokens.split_at(start);
    let asked = if nots.iter().any(|token| token.is("not")) { Asked::Truth } else { asked };
    plain(nots, Asked::Value) + &equalities(rest, asked)
}

/// What is compared with null may be missing.
fn equalities(tokens: &[Token<'_>], asked: Asked) -> String {
    let parts = split(tokens, |token| ["==", "===", "!=", "!=="].iter().any(|sign| token.is(sign)));
    if parts.len() < 2 {
        return operand_of(tokens, asked);
    }
    let is_null = |place: usize| parts.get(place).is_some_and(|(part, _)| is_null(part));
    let mut text = String::new();
    for (place, (part, sign)) in parts.iter().enumerate() {
        let is_asked = place.checked_sub(1).is_some_and(is_null) || is_null(place + 1);
        // What is compared is a value, whatever is asked for.
        let value = plain(part, Asked::Value);
        match is_asked && (is_value(part) || is_bracket(trimmed(part))) {
            true => text.push_str(&format!("({}) | default(none)", value.trim())),
            false => text.push_str(value.trim()),
        }
        text.push_str(&sign.map_or_else(String::new, |sign| format!(" {} ", sign.ours)));
    }
    text
}

/// One operand of `||` or `&&`, or all there is.
fn operand_of(tokens: &[Token<'_>], asked: Asked) -> String {
    match asked {
        _ if is_bracket(tokens) => plain(tokens, asked),
        Asked::Guard if is_value(tokens) => format!("({}) | default(false)", plain(tokens, Asked::Value).trim()),
        // What is looked into is a value, whatever is asked for.
        _ => plain(tokens, Asked::Value),
    }
}

fn is_null(tokens: &[Token<'_>]) -> bool {
    matches!(trimmed(tokens), [token] if token.kind == Kind::Word && matches!(token.text, "null" | "undefined"))
}

/// Whether it is something with what is looked up in it, and nothing else: such a thing may be missing.
fn is_value(tokens: &[Token<'_>]) -> bool {
    let tokens = trimmed(tokens);
    let mut at = match tokens {
        [word] if ["true", "false", "none"].contains(&word.ours) => return false,
        [word, ..] if word.kind == Kind::Word => 1,
        [open, ..] if open.is("(") && !is_bracket(tokens) => closing(tokens, 0) + 1,
        _ => return false,
    };
    while let Some(token) = tokens.get(at) {
        at = match token.kind {
            Kind::Space | Kind::Field => at + 1,
            Kind::Open if is_looked_into(tokens, at) => closing(tokens, at) + 1,
            Kind::Sign if token.is(".") => at + 1,
            _ => return false,
        };
    }
    !methods::asks(tokens)
}

fn trimmed<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let said = |token: &Token<'_>| token.kind != Kind::Space;
    let start = tokens.iter().position(said).unwrap_or(tokens.len());
    let end = tokens.iter().rposition(said).map_or(start, |last| last + 1);
    &tokens[start..end]
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
                let given = match trimmed(&tokens[open + 1..close]) {
                    [word] => word.ours.to_owned(),
                    given => format!("({})", written(given, Asked::Value)),
                };
                let on = text.split_off(value);
                let on = on.trim_end().strip_suffix('.').unwrap_or(&on).trim_end();
                let ours = method.ours(on, &given);
                // A path stays one, so that what is missing on the way is seen.
                text.push_str(&if method == Method::Get { ours } else { format!("({ours})") });
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
                let inner = trimmed(&tokens[at + 1..end]);
                let asked = if is_bracket(inner) { Asked::Guard } else { Asked::Value };
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
        check("a === 0", "a == 0");
        check("a !== 0", "a != 0");
        check("!a && b", "(not (a) | otherwise(false)) and (b) | default(false)");
        check("a&&b == 2", "(a) | default(false) and b == 2");
    }

    #[test]
    fn an_alternative_is_taken_where_there_is_nothing() {
        check("a || 'b'", "(a) | otherwise('b')");
        check("a||b||c", "(a) | otherwise((b) | otherwise(c))");
        check("(a || b) + 1", "((a) | otherwise(b)) + 1");
        check("range(a || b, c)", "range((a) | otherwise(b), c)");
        check("(a || false) == true", "((a) | otherwise(false)) == true");
    }

    #[test]
    fn where_a_truth_is_asked_for_an_alternative_is_an_or() {
        check("a === 1 || b", "a == 1 or (b) | default(false)");
        check("(a || b) && c", "((a) | default(false) or (b) | default(false)) and (c) | default(false)");
        check("!(a || b)", "(not ((a) | default(false) or (b) | default(false)) | otherwise(false))");
        assert_eq!(translate("a || b", Asked::Truth).unwrap(), "(a) | default(false) or (b) | default(false)");
        assert_eq!(translate("(a || 0) < 2", Asked::Truth).unwrap(), "((a) | otherwise(0)) < 2");
    }

    #[test]
    fn what_is_missing_is_a_no_for_their_signs_alone() {
        check(
            "a.b && c[0].d && e.get('f')",
            "(a.b) | default(false) and (c[0].d) | default(false) and (e['f']) | default(false)",
        );
        check("a and b && c", "a and (b) | default(false) and (c) | default(false)");
        check("a or b || c", "a or (b) | default(false) or (c) | default(false)");
        check("(a and b) && c", "(a and b) and (c) | default(false)");
        check("not a && b", "not a and (b) | default(false)");
        check("(a or b) || not (c)", "(a or b) or not (c)");
        check("a | length && b is defined", "a | length and b is defined");
        check("a && b < 2 && true && 'x'", "(a) | default(false) and b < 2 and true and 'x'");
        assert_eq!(translate("(a) === b", Asked::Truth).unwrap(), "(a) == b");
    }

    #[test]
    fn what_is_missing_is_null() {
        check("a.b === null", "(a.b) | default(none) == none");
        check("a.get('b') != undefined", "(a['b']) | default(none) != none");
        check("null === a", "none == (a) | default(none)");
        check("not a == null && b", "not (a) | default(none) == none and (b) | default(false)");
        check("(a || b).c !== null", "(((a) | otherwise(b)).c) | default(none) != none");
        check("(a || b) == null", "(((a) | otherwise(b))) | default(none) == none");
        check("a + 1 == null", "a + 1 == none");
        check("a == none", "a == none");
        check("a | first == null", "a | first == none");
    }

    #[test]
    fn an_alternative_ends_where_our_own_forms_go_on() {
        check("'x' if a || b else 'y'", "'x' if (a) | default(false) or (b) | default(false) else 'y'");
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
    }

    #[test]
    fn what_is_too_intricate_is_left_to_the_language() {
        let deep = "(".repeat(5_000) + "!a";
        check(&deep, &deep);
        let long = "!".repeat(70_000);
        check(&long, &long);
    }
}
