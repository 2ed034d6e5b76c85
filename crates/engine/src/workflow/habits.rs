//! Habits of JavaScript that cannot be read: each is refused with the way to write it here.

use super::dialect::{Kind, Token, closing};
use super::methods::{Call, Method};
use crate::expression::{ExpressionError, Names};

/// Signs, and what to write.
const SIGNS: &[(&str, &str, &str)] = &[
    ("?.", "`?.` is not part of the language", "write `… | default('')` for what may be missing"),
    ("??", "`??` is not part of the language", "write `… | default(…)`"),
    ("=>", "functions are not part of the language", "write a filter: `task.labels | select('in', […])`"),
    ("?", "`? :` is not part of the language", "write `A if CONDITION else B`"),
    ("`", "texts stand in `'` or `\"`", "write the parts one after the other: `Hello ${task.goal}`"),
];

const PATTERNS: &str = "write `… is startingwith('…')`, `… is endingwith('…')` or `'…' in …`";

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
            return Err(ExpressionError::new(*message).at(at..at + sign.len()).suggest(*instead));
        }
    }
    Ok(())
}

/// Refuses words and methods; those that can be read only where nothing is.
pub fn check(text: &str, tokens: &[Token<'_>], is_readable: bool) -> Result<(), ExpressionError> {
    for (place, token) in tokens.iter().enumerate() {
        let found = match (token.kind, token.text) {
            (Kind::Field, "length") => {
                Some(("`.length` is not part of the language".to_owned(), "write `… | length`".to_owned()))
            }
            (Kind::Word, "typeof") => {
                let instead = "write `… is string`, `… is number` or `… is defined`";
                Some(("`typeof` is not part of the language".to_owned(), instead.to_owned()))
            }
            (Kind::Field, _) => dashed(text, tokens, place).or_else(|| {
                let is_read = is_readable && Call::at(tokens, place).is_some();
                if is_read { None } else { method(text, tokens, place) }
            }),
            (Kind::Or, _) if is_lonely(tokens, place) => Some((
                "`||` has a value on either side".to_owned(),
                "write it as in `context.who || 'nobody'`".to_owned(),
            )),
            _ => None,
        };
        if let Some((message, instead)) = found {
            return Err(ExpressionError::new(message).at(token.at..token.end()).suggest(instead));
        }
    }
    Ok(())
}

fn is_lonely(tokens: &[Token<'_>], or: usize) -> bool {
    let said = |token: &&Token<'_>| token.kind != Kind::Space;
    let is_none = |token: Option<&Token<'_>>, bracket: Kind| {
        token.is_none_or(|token| token.kind == bracket || token.kind == Kind::Or || token.ends_operands())
    };
    is_none(tokens[..or].iter().rfind(said), Kind::Open) || is_none(tokens[or + 1..].iter().find(said), Kind::Close)
}

/// `steps.a-b.success` is `steps['a-b'].success`.
fn dashed(text: &str, tokens: &[Token<'_>], place: usize) -> Option<(String, String)> {
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

fn method(text: &str, tokens: &[Token<'_>], place: usize) -> Option<(String, String)> {
    let name = tokens[place].text;
    let open = place + 1;
    tokens.get(open).filter(|token| token.is("("))?;
    let message = format!("values have no methods: `{name}`");
    if matches!(name, "test" | "match") {
        return Some((message, PATTERNS.to_owned()));
    }
    let value = text.get(tokens[beginning(tokens, place)].at..tokens[place - 1].at).unwrap_or_default().trim();
    // `context` has again what has a name of its own.
    let own = value.strip_prefix("context.").filter(|own| {
        let root = own.split(['.', '[']).next().unwrap_or_default();
        Names::workflow().all().any(|name| name == root)
    });
    let value = Some(own.unwrap_or(value)).filter(|value| !value.is_empty()).unwrap_or("…");
    let close = tokens.get(closing(tokens, open)).map_or(text.len(), |token| token.at);
    let given = text[tokens[open].end()..close].trim();
    let instead = match (Method::named(name), name) {
        (Some(method), _) => method.ours(value, given),
        (None, "indexOf") => Method::Includes.ours(value, given),
        (None, "toString") => format!("{value} | string"),
        (None, _) => return None,
    };
    Some((message, format!("write `{instead}`")))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::dialect::{Asked, translate};

    #[track_caller]
    fn check(text: &str, instead: &str) {
        let error = translate(text, Asked::Value).expect_err(text);
        let said = error.suggestion.clone().unwrap_or_default();
        assert!(said.contains(instead) && said.len() < 120, "{text}: {error:?}");
    }

    #[test]
    fn signs() {
        check("a ? b : c", "A if CONDITION else B");
        check("a?.b", "default('')");
        check("a ?? b", "default(…)");
        check("a.length > 2", "| length");
        check("`x`", "one after the other");
        check("a.map(x => x)", "filter");
        check("a ||", "context.who || 'nobody'");
        check("(|| a)", "context.who || 'nobody'");
        assert!(translate("'never closed", Asked::Value).is_err());
    }

    #[track_caller]
    fn reads(text: &str, ours: &str) {
        assert_eq!(translate(text, Asked::Value).unwrap(), ours, "{text}");
    }

    #[test]
    fn methods_that_mean_the_same_are_read() {
        reads("context.task.labels.includes('agent')", "(('agent') in context.task.labels)");
        reads("a.b\n  .includes( 'VALUE' )", "(('VALUE') in a.b)");
        reads("a.get('x')[0].get(1).c", "((a[('x')])[0][(1)]).c");
        reads("'x' in a.get('b') and [a.get('c')]", "'x' in (a[('b')]) and [(a[('c')])]");
        reads("a.includes([1, 2])", "(([1, 2]) in a)");
        reads("a.includes('x') || b.has('y')", "((('x') in a)) | default((('y') in b), true)");
        reads("f(a.startsWith('x') || b)", "f(((a is startingwith(('x')))) | default(b, true))");
        reads(
            "!context.mine['x'].includes( 'a' ) && b",
            "(not ((('a') in context.mine['x'])) | otherwise(false)) and b",
        );
        reads("task.goal.startsWith('a')", "(task.goal is startingwith(('a')))");
        reads("task.goal.toLowerCase() == 'a'", "(task.goal | lower) == 'a'");
        reads("a and task.goal.toUpperCase().endsWith('A')", "a and ((task.goal | upper) is endingwith(('A')))");
        reads("a.includes(b || c.toUpperCase())", "(((b) | otherwise((c | upper))) in a)");
        reads("data.includes == 1", "data.includes == 1");
    }

    #[test]
    fn methods_that_do_not_are_refused() {
        check("context.task.labels.indexOf('agent') >= 0", "`'agent' in task.labels`");
        check("a.includes('b', 2)", "`'b', 2 in a`");
        check("a.includes('b']", "`'b' in a`");
        check("context.flag.toString() === 'true'", "`context.flag | string`");
        check(&format!("{}a.includes('b')", "!".repeat(300)), "`'b' in a`");
        check("/^a?/i.test(task.goal)", "startingwith");
        check("a.test(b)", "startingwith");
        check("typeof a === 'string'", "is string");
        check("a.includes(", "`");
        check(".includes('a')", "`");
        check("a.includes()", "`");
    }

    #[test]
    fn results_of_steps() {
        reads("context.stepResults.get('x').error", "(context.steps[('x')]).error");
        reads("context.stepResults['x']", "context.steps['x']");
        reads("stepResults.x.data.taskId", "steps.x.data.taskId");
        reads("data.stepResults", "data.stepResults");
        check("stepResults.get(", "`steps[]`");
    }

    #[test]
    fn names_with_dashes() {
        check("steps.a-b.success", "`steps['a-b'].success`");
        check("steps.a-b.data.stdout.includes('x')", "`steps['a-b'].data.stdout`");
        check("context.steps.a-b-2.data.taskId == 1", "`context.steps['a-b-2'].data.taskId`");
        check("data.my-name", "`data['my-name']`");
        assert!(translate("data.count-1 + context.n-iteration", Asked::Value).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([a-c!|&.() \\[\\]{}:,='/-]|steps|context|stepResults|includes\\(|get| if | in |é){0,40}") {
            let _ = translate(&text, Asked::Value);
            let _ = translate(&text, Asked::Truth);
        }
    }
}
