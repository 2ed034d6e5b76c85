//! Habits of JavaScript that cannot be read: each is refused with the way to write it here.

use super::methods::Call;
use super::tokens::{Kind, Token, closing};
use crate::expression::foreign::{self, PATTERNS, TIME};
use crate::expression::{ExpressionError, Names};

/// Signs, and what to write.
const SIGNS: &[(&str, &str, &str)] = &[
    ("?.", "`?.` is not part of the language", "write `… | default('')` for what may be missing"),
    ("??", "`??` is not part of the language", "write `… | default(…)`"),
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
    ("delete", "leave it out: an expression changes nothing"),
];

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
                let instead = format!("write `{} | length`", value(text, tokens, place));
                Some(("`.length` is not part of the language".to_owned(), instead))
            }
            Kind::Word => word(tokens, place).or_else(|| function(text, tokens, place)),
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

fn is_lonely(tokens: &[Token<'_>], or: usize) -> bool {
    let said = |token: &&Token<'_>| token.kind != Kind::Space;
    let is_none = |token: Option<&Token<'_>>, bracket: Kind| {
        token.is_none_or(|token| token.kind == bracket || token.kind == Kind::Or || token.ends_operands())
    };
    is_none(tokens[..or].iter().rfind(said), Kind::Open) || is_none(tokens[or + 1..].iter().find(said), Kind::Close)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde_json::json;

    use super::super::Pattern;
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
        reads("context.task.labels.includes('agent')", "('agent' in context.task.labels)");
        reads("a.b\n  .includes( 'VALUE' )", "('VALUE' in a.b)");
        reads("a.get('x')[0].get(1).c", "a['x'][0][1].c");
        reads("a.get(b + 1)", "a[(b + 1)]");
        reads("'x' in a.get('b') and [a.get('c')]", "'x' in a['b'] and [a['c']]");
        reads("a.includes([1, 2])", "(([1, 2]) in a)");
        reads("a.includes('x') || b.has('y')", "('x' in a) or ('y' in b)");
        reads("f | length(a.startsWith('x') || b)", "f | length((a is startingwith('x')) or (b) | default(false))");
        reads(
            "!context.mine['x'].includes( 'a' ) && b['c']",
            "(not (('a' in context.mine['x'])) | otherwise(false)) and (b['c']) | default(false)",
        );
        reads("task.goal.startsWith('a')", "(task.goal is startingwith('a'))");
        reads("task.goal.toLowerCase() == 'a'", "(task.goal | lower) == 'a'");
        reads("a and task.goal.toUpperCase().endsWith('A')", "a and ((task.goal | upper) is endingwith('A'))");
        reads("a.includes(b || c.toUpperCase())", "(((b) | otherwise((c | upper))) in a)");
        reads("data.includes == 1", "data.includes == 1");
    }

    #[test]
    fn methods_that_do_not_are_refused() {
        check("context.task.labels.indexOf('agent') >= 0", "`'agent' in task.labels`");
        check("a.includes('b', 2)", "`'b' in a`");
        check("context.flag.toString() === 'true'", "`context.flag | string`");
        check(&format!("{}a.includes('b')", "!".repeat(300)), "`'b' in a`");
        check("/^a?/i.test(task.goal)", "startingwith");
        check("a.test(b)", "startingwith");
        check(".includes('a')", "`");
        check("a.includes()", "`");
    }

    /// What is offered can be written, and means something.
    #[track_caller]
    fn leads_to(text: &str, instead: &str, value: &serde_json::Value) {
        let error = translate(text, Asked::Value).expect_err(text);
        let said = error.suggestion.clone().unwrap_or_default();
        assert!(said.starts_with(&format!("write `{instead}`")), "{text}: {error:?}");
        let context = json!({
            "task": {"goal": "Mend, it", "labels": ["b", "a"], "priority": 2},
            "context": {"n": 2.75, "map": {"k": "v"}, "text": " x "},
        });
        let filled = Pattern::parse(&json!(format!("${{{instead}}}"))).expect(instead).fill(&context);
        assert_eq!(filled.expect(instead), *value, "{instead}");
    }

    #[test]
    fn hints_work_when_they_are_followed() {
        leads_to("task.goal.split(', ')", "task.goal | split(', ')", &json!(["Mend", "it"]));
        leads_to("context.task.labels.join(', ')", "task.labels | join(', ')", &json!("b, a"));
        leads_to("task.goal.replace('it', 'us')", "task.goal | replace('it', 'us')", &json!("Mend, us"));
        leads_to("task.goal.replace(/it/g, 'us')", "task.goal | replace('from', 'to')", &json!("Mend, it"));
        leads_to("context.text.trim()", "context.text | trim", &json!("x"));
        leads_to("task.labels.sort()", "task.labels | sort", &json!(["a", "b"]));
        leads_to("task.labels.contains('a')", "'a' in task.labels", &json!(true));
        leads_to("!task.labels.contains('a') && task.goal", "'a' in task.labels", &json!(true));
        leads_to("task.goal.startswith('M')", "task.goal is startingwith('M')", &json!(true));
        leads_to("task.goal.EndsWith('M')", "task.goal is endingwith('M')", &json!(false));
        leads_to("task.goal.toLowercase()", "task.goal | lower", &json!("mend, it"));
        leads_to("task.goal.substring(0, 4)", "task.goal[0:4]", &json!("Mend"));
        leads_to("task.goal.substr(1, 2)", "task.goal[1:1 + 2]", &json!("en"));
        leads_to("task.labels.slice(1)", "task.labels[1:]", &json!(["a"]));
        leads_to("context.map.get('x', 'no')", "context.map['x'] | default('no')", &json!("no"));
        leads_to("context.map.keys()", "context.map | list", &json!(["k"]));
        leads_to("task.labels.concat(['c'])", "task.labels + ['c']", &json!(["b", "a", "c"]));
        leads_to("context.n.toFixed(0)", "context.n | round(0)", &json!(3.0));
        leads_to("task.labels.filter(context.f)", "task.labels | select('in', ['a', 'b'])", &json!(["b", "a"]));
        leads_to("task.labels.map(context.f)", "task.labels | map('upper')", &json!(["B", "A"]));
        leads_to("(task.labels || []).length", "(task.labels || []) | length", &json!(2));
        leads_to("task.labels.length > 1", "task.labels | length", &json!(2));
        leads_to("task.labels\n  .length", "task.labels | length", &json!(2));
        leads_to("{{ task.priority }} > 1", "task.priority", &json!(2));
    }

    #[test]
    fn functions() {
        leads_to("Math.max(1, task.priority)", "[1, task.priority] | max", &json!(2));
        leads_to("Math.min(...task.labels)", "task.labels | min", &json!("a"));
        leads_to("Math.round(context.n + 1)", "(context.n + 1) | round", &json!(4.0));
        leads_to("Math.floor(context.n)", "context.n // 1", &json!(2.0));
        leads_to("JSON.stringify(context.map)", "context.map | tojson", &json!("{\"k\": \"v\"}"));
        leads_to("Object.keys(context.map)", "context.map | list", &json!(["k"]));
        leads_to("Object.entries(context.map)", "context.map | items", &json!([["k", "v"]]));
        leads_to("Object.values(context.map)", "context.map | items | map(attribute=1)", &json!(["v"]));
        leads_to("Array.isArray(task.labels)", "task.labels is sequence", &json!(true));
        leads_to("parseInt('7', 10) + 1", "'7' | int", &json!(7));
        leads_to("parseFloat('7.5')", "'7.5' | float", &json!(7.5));
        leads_to("Number('7') > 2", "'7' | int", &json!(7));
        leads_to("String(task.priority)", "task.priority | string", &json!("2"));
        leads_to("isNaN('x')", "'x' is not number", &json!(true));
        leads_to("len(task.labels)", "task.labels | length", &json!(2));
        leads_to("contains(task.labels, 'a')", "'a' in task.labels", &json!(true));
        leads_to("default(context.no, 3)", "context.no | default(3)", &json!(3));
        check("JSON.parse(data.x)", "`storeAs`");
        check("Date.now() > 3", "`event.timestamp`");
        check("new Date() > 3", "`event.timestamp`");
        check("Date()", "`event.timestamp`");
        check("fetch('x')", "the only function is `range`");
        check("console.log(task)", "leave it out");
        reads("range(3) || 'a' is in(['a']) || not (a)", "(range(3)) | default(false) or 'a' is in(['a']) or not (a)");
    }

    #[test]
    fn words_and_what_is_not_closed() {
        check("typeof a === 'string'", "is string");
        check("a instanceof Array", "is sequence");
        check("new Set([1])", "`[…]`");
        check("return true", "leave it out");
        check("true;", "leave the `;` out");
        check("task.goal =~ /x/", "startingwith");
        check("{{ task.goal", "task.priority < 2");
        check("a &&", "context.who && context.urgent");
        let open = |text: &str| {
            let error = translate(text, Asked::Value).expect_err(text);
            (error.message, error.at.expect("a place").start, error.suggestion.unwrap_or_default())
        };
        let bracket = |at, bracket: &str, close: &str| {
            (format!("this `{bracket}` is not closed"), at, format!("close it with `{close}`"))
        };
        assert_eq!(open("task.labels.includes("), bracket(20, "(", ")"));
        assert_eq!(open("a.includes('b']"), bracket(10, "(", ")"));
        assert_eq!(open("stepResults.get("), bracket(15, "(", ")"));
        assert_eq!(open("[1, (2), {'a': 3}"), bracket(0, "[", "]"));
        assert_eq!(open("a == 'b"), ("this text is not closed".to_owned(), 5, "close it with `'`".to_owned()));
    }

    #[test]
    fn results_of_steps() {
        reads("context.stepResults.get('x').error", "context.steps['x'].error");
        reads("context.stepResults['x']", "context.steps['x']");
        reads("stepResults.x.data.taskId", "steps.x.data.taskId");
        reads("data.stepResults", "data.stepResults");
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
        fn no_text_panics(text in "([a-c!|&.() \\[\\]{}:,='/-]|steps|context|stepResults|includes\\(|get| if | in |é|null|==|;|Math\\.max\\(|parseInt\\(|slice| not |\\$\\{){0,40}") {
            let _ = translate(&text, Asked::Value);
            let _ = translate(&text, Asked::Truth);
            let _ = Pattern::parse(&json!(format!("${{{text}}}")));
        }
    }
}
