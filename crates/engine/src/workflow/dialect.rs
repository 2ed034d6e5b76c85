//! Expressions as people write them who come from JavaScript, in our language where they mean the same there.
//!
//! Read are `||` as a default, `&&`, `!`, `===`, `!==`, `null` and `undefined`. What has another meaning here, or none, is
//! refused with the way to write it.

use std::ops::Range;

use crate::expression::ExpressionError;

/// A piece of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    /// A text in quotes, a name, a number, or a sign that is the same in both languages.
    Plain(&'t str),
    Open(&'t str),
    Close(&'t str),
    Comma,
    Or,
}

/// The expression in our language. It is the very same text if nothing had to be said otherwise.
pub fn translate(text: &str) -> Result<String, ExpressionError> {
    let mut tokens = Vec::new();
    let (mut at, mut is_ours) = (0, true);
    while at < text.len() {
        let (token, length) = next(text, at)?;
        is_ours &= matches!(token, Token::Plain(plain) if &text[at..at + length] == plain)
            || matches!(token, Token::Open(_) | Token::Close(_) | Token::Comma);
        tokens.push(token);
        at += length;
    }
    Ok(if is_ours { text.to_owned() } else { written(&tokens) })
}

/// The signs of JavaScript, and ours for them.
const SIGNS: &[(&str, &str)] = &[("===", "=="), ("!==", "!="), ("&&", " and "), ("!=", "!="), ("!", " not ")];
const WORDS: &[(&str, &str)] = &[("null", "none"), ("undefined", "none")];
/// What cannot be read, and what to write.
const REFUSED: &[(&str, &str, &str)] = &[
    ("?.", "`?.` is not part of the language", "write `… | default('')` for what may be missing"),
    ("??", "`??` is not part of the language", "write `… | default(…)`"),
    ("=>", "functions are not part of the language", "write a filter: `task.labels | select('in', […])`"),
    ("?", "`? :` is not part of the language", "write `A if CONDITION else B`"),
    ("`", "texts stand in `'` or `\"`", "write the parts one after the other: `Hello ${task.goal}`"),
];

fn next(text: &str, at: usize) -> Result<(Token<'_>, usize), ExpressionError> {
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    if let '\'' | '"' = first {
        let length = quoted(rest).ok_or_else(|| {
            let problem = ExpressionError::new("this text is not closed");
            problem.at(at..text.len())
        })?;
        return Ok((Token::Plain(&rest[..length]), length));
    }
    if first.is_alphabetic() || first == '_' {
        let length = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let word = &rest[..length];
        let is_field = text[..at].trim_end().ends_with('.');
        let ours = WORDS.iter().find(|(theirs, _)| *theirs == word && !is_field).map_or(word, |(_, ours)| ours);
        if is_field && word == "length" {
            let problem = ExpressionError::new("`.length` is not part of the language").at(at..at + length);
            return Err(problem.suggest("write `… | length`"));
        }
        return Ok((Token::Plain(ours), length));
    }
    for (sign, message, instead) in REFUSED {
        if rest.starts_with(sign) {
            let place: Range<usize> = at..at + sign.len();
            return Err(ExpressionError::new(*message).at(place).suggest(*instead));
        }
    }
    if rest.starts_with("||") {
        return Ok((Token::Or, 2));
    }
    if let Some((theirs, ours)) = SIGNS.iter().find(|(theirs, _)| rest.starts_with(theirs)) {
        return Ok((Token::Plain(ours), theirs.len()));
    }
    let length = first.len_utf8();
    let sign = &rest[..length];
    Ok(match sign {
        "(" | "[" | "{" => (Token::Open(sign), length),
        ")" | "]" | "}" => (Token::Close(sign), length),
        "," => (Token::Comma, length),
        _ => (Token::Plain(sign), length),
    })
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

/// Tokens as text. `a || b` is the first of the two that is something, as in JavaScript.
fn written(tokens: &[Token<'_>]) -> String {
    let mut depth = 0_usize;
    let mut parts = vec![vec![]];
    let mut commas = Vec::new();
    for token in tokens {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                commas.push(std::mem::replace(&mut parts, vec![vec![]]));
                continue;
            }
            Token::Or if depth == 0 => {
                parts.push(vec![]);
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is one").push(*token);
    }
    commas.push(parts);
    let alternatives = |parts: &Vec<Vec<Token<'_>>>| {
        let mut parts = parts.iter().rev().map(|part| inner(part));
        let last = parts.next().unwrap_or_default();
        parts.fold(last, |later, part| format!("({part}) | default(({later}), true)"))
    };
    commas.iter().map(alternatives).collect::<Vec<_>>().join(",")
}

/// The same where only brackets are left to be looked into.
fn inner(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            Token::Open(sign) => {
                let end = closing(tokens, at);
                text.push_str(sign);
                text.push_str(&written(&tokens[at + 1..end]));
                at = end;
                if let Some(Token::Close(sign)) = tokens.get(end) {
                    text.push_str(sign);
                }
            }
            Token::Plain(plain) | Token::Close(plain) => text.push_str(plain),
            Token::Comma => text.push(','),
            Token::Or => text.push_str(" or "),
        }
        at += 1;
    }
    text
}

fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => {
                depth -= 1;
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

    #[test]
    fn what_is_ours_stays_as_it_is() {
        for text in ["task.labels", "'a || b'", "a | default('x')", "steps['a b'].data", "not a and b != 2", "[1, 2]"] {
            assert_eq!(translate(text).unwrap(), text);
        }
    }

    #[test]
    fn habits_that_mean_the_same_are_read() {
        let check = |theirs: &str, ours: &str| assert_eq!(translate(theirs).unwrap(), ours, "{theirs}");
        check("a || 'b'", "(a ) | default(( 'b'), true)");
        check("a||b||c", "(a) | default(((b) | default((c), true)), true)");
        check("a === null", "a == none");
        check("a === 0", "a == 0");
        check("a !== 0", "a != 0");
        check("!a && b", " not a  and  b");
        check("(a || b) + 1", "((a) | default(( b), true)) + 1".replace("(a)", "(a )").as_str());
        check("f(a || b, c)", "f((a ) | default(( b), true), c)");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_way_to_write_it() {
        let check = |text: &str, instead: &str| {
            let error = translate(text).expect_err(text);
            assert!(error.suggestion.as_deref().is_some_and(|said| said.contains(instead)), "{text}: {error:?}");
        };
        check("a ? b : c", "A if CONDITION else B");
        check("a?.b", "default('')");
        check("a ?? b", "default(…)");
        check("a.length > 2", "| length");
        check("`x`", "one after the other");
        check("a.map(x => x)", "filter");
        assert!(translate("'never closed").is_err());
    }
}
