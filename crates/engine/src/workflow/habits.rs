//! Habits of JavaScript that cannot be read: each is refused with the way to write it here.

#[cfg(test)]
mod tests;

use super::methods::Call;
use super::tokens::{Kind, Token, closing};
use crate::expression::foreign::{self, PATTERNS, TIME};
use crate::expression::{ExpressionError, Names};

/// Signs, and what to write.
const SIGNS: &[(&str, &str, &str)] = &[
    ("?.", "`?.` is not part of the language", "write `… | default('')` for what may be missing"),
    ("??", "`??` is not part of the language", "write `… || …`"),
    ("=>", "functions are not part of the language", "write a filter: `task.labels | select('in', […])`"),
    ("?", "`? :` is not part of the language", "write `A if CONDITION else B`"),
    ("`", "texts stand in `'` or `\"`", "write the parts one after the other: `Hello ${task.goal}`"),
    ("=~", "patterns are not part of the language", PATTERNS),
    ("!~", "patterns are not part of the language", PATTERNS),
    ("{{", "an expression is written without braces", "write it as in `task.priority < 2`"),
    ("{%", "an expression is written without braces", "write `A if CONDITION else B`"),
    (";", "an expression is one value", "leave the `;` out"),
];

/// Words, and what to write.
const WORDS: &[(&str, &str)] = &[
    ("typeof", "write `… is string`, `… is number` or `… is defined`"),
    ("instanceof", "write `… is string`, `… is sequence` or `… is mapping`"),
    ("new", "write a value: a text in quotes, a number, `[…]` or `{…}`"),
    ("return", "leave it out: an expression is its value"),
    ("await", "leave it out: nothing is waited for"),
    ("let", "write the value where it is needed"),
    ("const", "write the value where it is needed"),
    ("var", "write the value where it is needed"),
    ("function", "write a filter: `task.labels | select('in', […])`"),
    ("void", "write `none`"),
    ("AND", "write `and`"),
    ("OR", "write `or`"),
    ("NOT", "write `not`"),
    ("delete", "leave it out: an expression changes nothing"),
];

/// Signs that have a value on either side.
const COMPARISONS: &[&str] = &["==", "===", "!=", "!==", "<", ">", "<=", ">="];

/// Names before the one that has dashes: `context.steps.a-b`.
const DEEPEST: usize = 2;

/// How far a pattern is looked for.
const NEAR: usize = 1000;

/// Refuses a sign. `last` is the token before it.
pub fn sign(text: &str, at: usize, last: Option<&Token<'_>>) -> Result<(), ExpressionError> {
    let rest = &text[at..];
    let is_value =
        |token: &Token<'_>| !matches!(token.kind, Kind::Sign | Kind::Open | Kind::And | Kind::Or | Kind::Not);
    if rest.starts_with('/') && !last.is_some_and(is_value) && rest[..rest.floor_char_boundary(NEAR)].contains(".test(")
    {
        return Err(ExpressionError::new("patterns are not part of the language").at(at..text.len()).suggest(PATTERNS));
    }
    for (sign, message, instead) in SIGNS {
        if rest.starts_with(sign) {
            let inside =
                rest[..rest.floor_char_boundary(NEAR)].strip_prefix("{{").and_then(|rest| rest.split_once("}}"));
            let inside = inside.map(|(inside, _)| inside.trim()).filter(|inside| !inside.is_empty());
            let instead = inside.map_or_else(|| (*instead).to_owned(), |inside| format!("write `{inside}`"));
            return Err(ExpressionError::new(*message).at(at..at + sign.len()).suggest(instead));
        }
    }
    Ok(())
}

/// What is wrong, and what to write.
type Found = Option<(String, String)>;

/// Refuses words, functions and methods; those that can be read only where nothing is.
pub fn check(text: &str, tokens: &[Token<'_>], is_readable: bool) -> Result<(), ExpressionError> {
    if is_readable {
        brackets(tokens)?;
    }
    for (place, token) in tokens.iter().enumerate() {
        let found = match token.kind {
            Kind::Field if token.text == "length" && !is_called(tokens, place) => {
                let value = value(text, tokens, place);
                let instead = format!("write `{value} | length`, or `{value}['length']` for what is called so");
                Some(("`.length` is not part of the language".to_owned(), instead))
            }
            Kind::Word => {
                word(tokens, place).or_else(|| side_by_side(tokens, place)).or_else(|| function(text, tokens, place))
            }
            Kind::Text | Kind::Number => side_by_side(tokens, place),
            Kind::Field => dashed(text, tokens, place).or_else(|| {
                let is_read = is_readable && Call::at(tokens, place).is_some();
                if is_read { None } else { method(text, tokens, place) }
            }),
            Kind::Or if is_lonely(tokens, place) => Some((
                "`||` has a value on either side".to_owned(),
                "write it as in `context.who || 'nobody'`".to_owned(),
            )),
            Kind::And if token.text == "&&" && is_lonely(tokens, place) => Some((
                "`&&` has a value on either side".to_owned(),
                "write it as in `context.who && context.urgent`".to_owned(),
            )),
            Kind::Sign if COMPARISONS.contains(&token.text) && is_lonely(tokens, place) => Some((
                format!("`{}` has a value on either side", token.text),
                format!("write it as in `task.priority {} 2`", token.text),
            )),
            Kind::Not if has_nothing_after(tokens, place) => {
                Some(("`!` stands before a value".to_owned(), "write it as in `!context.urgent`".to_owned()))
            }
            _ => None,
        };
        if let Some((message, instead)) = found {
            return Err(ExpressionError::new(message).at(token.at..token.end()).suggest(instead));
        }
    }
    Ok(())
}

/// Refuses a bracket that is not closed, or not by its own kind.
fn brackets(tokens: &[Token<'_>]) -> Result<(), ExpressionError> {
    let mut open: Vec<&Token<'_>> = Vec::new();
    let unclosed = |open: &Token<'_>| {
        let close = match open.text {
            "(" => ")",
            "[" => "]",
            _ => "}",
        };
        ExpressionError::new(format!("this `{}` is not closed", open.text))
            .at(open.at..open.end())
            .suggest(format!("close it with `{close}`"))
    };
    for token in tokens {
        match token.kind {
            Kind::Open => open.push(token),
            // One that closes nothing is the parser's to complain about.
            Kind::Close => match open.pop() {
                Some(last) if !matches!((last.text, token.text), ("(", ")") | ("[", "]") | ("{", "}")) => {
                    return Err(unclosed(last));
                }
                _ => {}
            },
            _ => {}
        }
    }
    open.pop().map_or(Ok(()), |last| Err(unclosed(last)))
}

fn word(tokens: &[Token<'_>], place: usize) -> Found {
    let (word, instead) = WORDS.iter().find(|(word, _)| *word == tokens[place].text)?;
    let next = tokens[place + 1..].iter().find(|token| token.kind != Kind::Space);
    let instead = if next.is_some_and(|next| next.text == "Date") { TIME } else { instead };
    Some((format!("`{word}` is not part of the language"), instead.to_owned()))
}

/// Two values with nothing between them. A test may have what it is given right behind it.
fn side_by_side(tokens: &[Token<'_>], place: usize) -> Found {
    let mut before = tokens[..place].iter().rev().filter(|token| token.kind != Kind::Space);
    let (value, last) = (&tokens[place], before.next()?);
    let is_test = before.next().is_some_and(|token| token.is("is") || token.is("not"));
    let are_texts = value.kind == Kind::Text && last.kind == Kind::Text;
    if is_test || are_texts || !last.ends_a_value() || !value.ends_a_value() {
        return None;
    }
    let instead = "write `and`, `or`, `==` or another sign between them".to_owned();
    Some(("two values stand side by side".to_owned(), instead))
}

fn is_called(tokens: &[Token<'_>], place: usize) -> bool {
    tokens.get(place + 1).is_some_and(|token| token.is("("))
}

/// A function that there is not. What stands behind `|` or `is` is none.
fn function(text: &str, tokens: &[Token<'_>], place: usize) -> Found {
    let name = &tokens[place];
    let mut before = tokens[..place].iter().rev().filter(|token| token.kind != Kind::Space);
    let last = before.next();
    let is_ours = last.is_some_and(|last| last.is("|") || last.is("is") || last.is("not"));
    if is_ours || !is_called(tokens, place) || !name.ends_a_value() || foreign::is_function(name.text) {
        return None;
    }
    let instead = foreign::function(name.text, given(text, tokens, place + 1));
    Some((format!("unknown function `{}`", name.text), instead))
}

fn is_lonely(tokens: &[Token<'_>], sign: usize) -> bool {
    let before = tokens[..sign].iter().rfind(|token| token.kind != Kind::Space);
    is_nothing(before, Kind::Open) || has_nothing_after(tokens, sign)
}

fn has_nothing_after(tokens: &[Token<'_>], sign: usize) -> bool {
    is_nothing(tokens[sign + 1..].iter().find(|token| token.kind != Kind::Space), Kind::Close)
}

fn is_nothing(token: Option<&Token<'_>>, bracket: Kind) -> bool {
    let joins = |token: &Token<'_>| matches!(token.kind, Kind::Or | Kind::And) || token.ends_operands();
    token.is_none_or(|token| token.kind == bracket || joins(token))
}

/// `steps.a-b.success` is `steps['a-b'].success`.
fn dashed(text: &str, tokens: &[Token<'_>], place: usize) -> Found {
    let path = path(tokens, place);
    let (_, parents) = path.split_last()?;
    let of_steps = matches!(parents, ["steps"] | ["context", "steps"]);
    if !of_steps && !matches!(parents, ["data"] | ["context"] | ["context", "data"]) {
        return None;
    }
    let mut end = place + 1;
    let mut is_name = of_steps;
    while tokens.get(end).is_some_and(|token| token.is("-"))
        && let Some(word) = tokens.get(end + 1).filter(|word| matches!(word.kind, Kind::Word | Kind::Number))
    {
        // A number may be taken off a number, and so may what has a name.
        is_name |= word.kind == Kind::Word && !Names::workflow().all().any(|name| name == word.text);
        end += 2;
    }
    if end == place + 1 || !is_name {
        return None;
    }
    let name = &text[tokens[place].at..tokens[end - 1].end()];
    let instead = format!("write `{}['{name}']{}`", parents.join("."), below(text, tokens, end));
    Some((format!("`{name}` is one name less another here"), instead))
}

fn method(text: &str, tokens: &[Token<'_>], place: usize) -> Found {
    let name = tokens[place].text;
    if !is_called(tokens, place) {
        return None;
    }
    let instead = foreign::method(&value(text, tokens, place), name, given(text, tokens, place + 1));
    Some((format!("values have no methods: `{name}`"), instead))
}

/// The value that a field is of, as it is written in our language.
fn value(text: &str, tokens: &[Token<'_>], field: usize) -> String {
    let start = tokens[beginning(tokens, field)].at;
    let value = text.get(start..tokens[field].at).unwrap_or_default().trim_end();
    let value = value.strip_suffix('.').unwrap_or(value).trim();
    // `context` has again what has a name of its own.
    let own = value.strip_prefix("context.").filter(|own| {
        let root = own.split(['.', '[']).next().unwrap_or_default();
        Names::workflow().all().any(|name| name == root)
    });
    let value = own.unwrap_or(value);
    if value.is_empty() { "…".to_owned() } else { value.to_owned() }
}

/// What stands in brackets.
fn given<'t>(text: &'t str, tokens: &[Token<'_>], open: usize) -> &'t str {
    let close = tokens.get(closing(tokens, open)).map_or(text.len(), |token| token.at);
    text[tokens[open].end()..close].trim()
}

/// The fields that are written right after a place.
fn below<'t>(text: &'t str, tokens: &[Token<'_>], start: usize) -> &'t str {
    let mut end = start;
    while let (Some(dot), Some(field)) = (tokens.get(end), tokens.get(end + 1))
        && dot.is(".")
        && field.kind == Kind::Field
        && !tokens.get(end + 2).is_some_and(|token| token.is("("))
    {
        end += 2;
    }
    if end == start { "" } else { &text[tokens[start].at..tokens[end - 1].end()] }
}

/// The name and the fields up to a place, if nothing else is among them.
fn path<'t>(tokens: &[Token<'t>], place: usize) -> Vec<&'t str> {
    let (mut path, mut at) = (vec![tokens[place].text], place);
    while tokens[at].kind == Kind::Field {
        // Nothing that is asked for is further down.
        if path.len() > DEEPEST {
            return Vec::new();
        }
        match at.checked_sub(2).map(|before| &tokens[before]) {
            Some(parent) if tokens[at - 1].is(".") && matches!(parent.kind, Kind::Word | Kind::Field) => {
                path.push(parent.text);
                at -= 2;
            }
            _ => return Vec::new(),
        }
    }
    path.reverse();
    path
}

/// Where the value begins that a field is of.
fn beginning(tokens: &[Token<'_>], field: usize) -> usize {
    let mut at = field;
    while let Some(before) = at.checked_sub(1) {
        at = match tokens[before].kind {
            Kind::Close => opening(tokens, before),
            Kind::Word if !matches!(tokens[before].text, "in" | "is" | "not" | "or" | "if" | "else") => before,
            Kind::Field | Kind::Text | Kind::Number => before,
            Kind::Sign if tokens[before].is(".") => before,
            // A path may go on in the next line.
            Kind::Space if tokens[at].is(".") || tokens[..before].last().is_some_and(|token| token.is(".")) => before,
            _ => break,
        };
    }
    at
}

fn opening(tokens: &[Token<'_>], close: usize) -> usize {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match tokens[at].kind {
            Kind::Close => depth += 1,
            Kind::Open => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}
