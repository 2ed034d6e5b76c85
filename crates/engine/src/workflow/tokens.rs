//! The pieces of an expression, as people write them who come from JavaScript.

use super::habits;
use crate::expression::ExpressionError;

/// A piece of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'t> {
    pub kind: Kind,
    pub at: usize,
    /// As it is written.
    pub text: &'t str,
    /// In our language.
    pub ours: &'t str,
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

    pub fn compares(&self) -> bool {
        matches!(self.kind, Kind::And | Kind::Not)
            || ["==", "===", "!=", "!==", "<", ">", "<=", ">=", "not", "in", "is"].iter().any(|sign| self.is(sign))
    }
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

pub fn read(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
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
        let length = length.ok_or_else(|| open_text(text, at))?;
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

/// What to say of a quote that no other one follows.
pub fn open_text(text: &str, at: usize) -> ExpressionError {
    let quote = if text[at..].starts_with('\'') { "`'`" } else { "`\"`" };
    let end = text[at..].find('\n').map_or(text.len(), |line| at + line);
    ExpressionError::new("this text is not closed").at(at..end).suggest(format!("close it with {quote}"))
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
