//! Values with expressions in them: `{"goal": "Review: ${task.goal}", "labels": ["review", "${task.labels}"]}`.
//!
//! - A text that is nothing but one expression becomes its value, whatever kind that is.
//! - A list that comes of an expression in a list is put in piece by piece.
//! - `{fromContext: "a.b"}` is the value at that path of the context. `$${` is a plain `${`.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::dialect::{self, Asked};
use super::place;
use super::tokens::{open_text, quoted};
use crate::expression::{Allowance, ExpressionError, ExpressionFault, Formula, Names};

/// A value of which only the form is known.
#[derive(Debug, Clone)]
pub enum Pattern {
    Plain(Value),
    Whole(Formula),
    Text(Vec<Piece>),
    List(Vec<Pattern>),
    Fields(Vec<(String, Pattern)>),
}

/// A part of a text.
#[derive(Debug, Clone)]
pub enum Piece {
    Plain(String),
    Filled(Formula),
}

impl Piece {
    /// Without what marks an expression, where that would not be within quotes.
    fn bare(&self) -> Option<String> {
        match self {
            Self::Plain(text) => (!text.contains(['\'', '"'])).then(|| text.clone()),
            Self::Filled(formula) if formula.text().contains(' ') => Some(format!("({})", formula.text())),
            Self::Filled(formula) => Some(formula.text().to_owned()),
        }
    }
}

/// A pattern that cannot be used, and the text in which that is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct PatternError {
    /// The text in which it stands.
    pub text: String,
    pub error: ExpressionError,
}

impl Pattern {
    /// A value of a step.
    pub fn parse(value: &Value) -> Result<Self, PatternError> {
        Self::parse_with(value, &Names::workflow())
    }

    /// A value whose expressions know these names.
    pub fn parse_with(value: &Value, names: &Names) -> Result<Self, PatternError> {
        let parse = |value: &Value| Self::parse_with(value, names);
        Ok(match value {
            Value::String(text) => {
                Self::text(text, names).map_err(|error| PatternError { text: text.clone(), error })?
            }
            Value::Array(items) => Self::List(items.iter().map(parse).collect::<Result<_, _>>()?),
            Value::Object(fields) => match from_context(fields) {
                Some(path) => {
                    let path = path.as_str().unwrap_or_default();
                    at_path(path, names)
                        .map(Self::Whole)
                        .map_err(|error| PatternError { text: path.to_owned(), error })?
                }
                None => Self::Fields(
                    fields
                        .iter()
                        .map(|(name, value)| Ok((name.clone(), parse(value)?)))
                        .collect::<Result<_, PatternError>>()?,
                ),
            },
            plain => Self::Plain(plain.clone()),
        })
    }

    fn text(text: &str, names: &Names) -> Result<Self, ExpressionError> {
        let mut pieces = pieces(text, Asked::Value, names)?;
        Ok(match pieces.as_slice() {
            [] => Self::Plain(Value::String(String::new())),
            [Piece::Plain(plain)] => Self::Plain(Value::String(plain.clone())),
            [Piece::Filled(_)] => match pieces.remove(0) {
                Piece::Filled(formula) => Self::Whole(formula),
                Piece::Plain(plain) => Self::Plain(Value::String(plain)),
            },
            _ => Self::Text(pieces),
        })
    }

    /// The value that it is in a context. All of its expressions together may come to no more than one alone.
    pub fn fill(&self, context: &Value) -> Result<Value, ExpressionFault> {
        self.fill_within(context, &mut Allowance::default())
    }

    /// The same, of one of several that share what may be spent.
    pub fn fill_within(&self, context: &Value, left: &mut Allowance) -> Result<Value, ExpressionFault> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Whole(formula) => formula.value_within(context, left)?,
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Plain(plain) => text.push_str(plain),
                        Piece::Filled(formula) => text.push_str(&formula.written_within(context, left, in_text)?),
                    }
                }
                Value::String(text)
            }
            Self::List(items) => {
                let mut list = Vec::new();
                for item in items {
                    match (item, item.fill_within(context, left)?) {
                        (Self::Whole(_), Value::Array(items)) => list.extend(items),
                        (_, value) => list.push(value),
                    }
                }
                Value::Array(list)
            }
            Self::Fields(fields) => {
                let filled =
                    fields.iter().map(|(name, pattern)| Ok((name.clone(), pattern.fill_within(context, left)?)));
                Value::Object(filled.collect::<Result<Map<_, _>, ExpressionFault>>()?)
            }
        })
    }

    /// Its value, where that does not depend on anything.
    pub fn plain(&self) -> Option<&Value> {
        match self {
            Self::Plain(value) => Some(value),
            _ => None,
        }
    }

    /// Its text, if all of its expressions come to ids and numbers: a `0` stands for each.
    pub fn checked(&self) -> Option<String> {
        let zero = |formula: &Formula| is_checked(formula).then(|| "0".to_owned());
        match self {
            Self::Plain(Value::String(text)) => Some(text.clone()),
            Self::Plain(value) => Some(value.to_string()),
            Self::Whole(formula) => zero(formula),
            Self::Text(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Plain(text) => Some(text.clone()),
                    Piece::Filled(formula) => zero(formula),
                })
                .collect(),
            Self::List(_) | Self::Fields(_) => None,
        }
    }

    /// Whether it holds text of which nothing is known: more than ids, numbers and the project's directory.
    pub fn is_free(&self) -> bool {
        let is_known = |formula: &Formula| formula.paths() == [["project_dir"]] || is_checked(formula);
        self.formulas().into_iter().any(|formula| !is_known(formula))
    }

    /// Whether its text begins with what is known, with an id or with a number.
    pub fn begins_checked(&self) -> bool {
        match self {
            Self::Text(pieces) => match pieces.first() {
                Some(Piece::Filled(formula)) => is_checked(formula),
                _ => true,
            },
            other => other.checked().is_some(),
        }
    }

    /// The text before its first expression.
    pub fn beginning(&self) -> &str {
        match self {
            Self::Plain(Value::String(text)) => text,
            Self::Text(pieces) => match pieces.first() {
                Some(Piece::Plain(text)) => text,
                _ => "",
            },
            _ => "",
        }
    }

    pub(super) fn formulas(&self) -> Vec<&Formula> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Whole(formula) => vec![formula],
            Self::Text(pieces) => pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Filled(formula) => Some(formula),
                    Piece::Plain(_) => None,
                })
                .collect(),
            Self::List(items) => items.iter().flat_map(Self::formulas).collect(),
            Self::Fields(fields) => fields.iter().flat_map(|(_, pattern)| pattern.formulas()).collect(),
        }
    }
}

/// Whether an expression uses only ids and numbers that Windlass itself gives. What lies in `context` may have been given
/// instead, but for `steps` and `workflow`.
fn is_checked(formula: &Formula) -> bool {
    formula.paths().iter().all(|path| {
        let path = match path.as_slice() {
            ["context", own @ ..] if matches!(own, ["steps" | "workflow", ..]) => own,
            path => path,
        };
        matches!(
            path,
            ["session" | "iteration" | "task_id" | "taskId"]
                | ["task", "id" | "priority"]
                | ["workflow", "id"]
                | ["steps", _, "data", "exitCode" | "taskId"]
        )
    })
}

/// An expression of a workflow, in whichever habit it is written.
fn formula(text: &str, asked: Asked, names: &Names) -> Result<Formula, ExpressionError> {
    let ours = dialect::translate(text, asked)?;
    let same = ours == text;
    Formula::parse_as(&ours, text.trim(), names).map_err(|error| match same {
        true => error,
        false => ExpressionError { at: error.at.and_then(|at| place::written(text, &ours, &at)), ..error },
    })
}

/// An expression, alone or as `${…}`.
pub fn predicate(text: &str) -> Result<Formula, ExpressionError> {
    let names = Names::workflow();
    match pieces(text, Asked::Truth, &names)?.as_slice() {
        [Piece::Filled(formula)] => Ok(formula.clone()),
        [Piece::Plain(plain)] if plain == text => formula(text, Asked::Truth, &names),
        pieces => {
            let bare: Option<String> = pieces.iter().map(Piece::bare).collect();
            let bare = bare.and_then(|bare| formula(&bare, Asked::Truth, &names).ok());
            let suggestion = match bare {
                Some(formula) => format!("write it without `${{…}}`: `{}`", formula.text()),
                None => "write it as in `task.priority < 2`".to_owned(),
            };
            Err(ExpressionError::new("a predicate is one expression").suggest(suggestion))
        }
    }
}

fn from_context(fields: &Map<String, Value>) -> Option<&Value> {
    let (name, path) = fields.iter().next().filter(|_| fields.len() == 1)?;
    matches!(name.as_str(), "fromContext" | "from_context").then_some(path).filter(|path| path.is_string())
}

/// The value at a path of the context: names with dots between them, each of which may be followed by places in a list.
fn at_path(path: &str, names: &Names) -> Result<Formula, ExpressionError> {
    let mut text = "context".to_owned();
    let path_below = path.strip_prefix("context.").unwrap_or(path);
    let results = path_below.strip_prefix("stepResults.");
    let ours = results.map_or(Cow::Borrowed(path_below), |rest| format!("steps.{rest}").into());
    for part in ours.split('.') {
        let (name, places) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_name = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || "-_".contains(letter));
        let is_place = |place: &str| place.strip_suffix(']').is_some_and(|place| place.parse::<u32>().is_ok());
        if name.is_empty() || !is_name(name) || !places.split('[').skip(1).all(is_place) {
            let problem = ExpressionError::new("`fromContext` is a path: names with dots between them");
            return Err(problem.suggest("write an expression as `${…}`"));
        }
        let is_word = !name.contains('-') && !name.starts_with(|first: char| first.is_numeric());
        let _ = if is_word { write!(text, ".{name}{places}") } else { write!(text, "['{name}']{places}") };
    }
    // Its places are not those of what was written, and `context` need not be.
    let bare = |text: String| text.replace("`context.", "`");
    Formula::parse_as(&text, path, names).map_err(|ExpressionError { message, suggestion, .. }| ExpressionError {
        message: bare(message),
        at: None,
        suggestion: suggestion.map(bare),
    })
}

/// The expressions of a text, and what is between them.
fn pieces(text: &str, asked: Asked, names: &Names) -> Result<Vec<Piece>, ExpressionError> {
    let (mut pieces, mut plain) = (Vec::new(), String::new());
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        if text[..start].ends_with('$') {
            plain.push_str(&text[at..start - 1]);
            plain.push_str("${");
            at = start + 2;
            continue;
        }
        plain.push_str(&text[at..start]);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(std::mem::take(&mut plain)));
        }
        let inside = start + 2;
        let end = match end_of(&text[inside..]) {
            End::At(end) => inside + end,
            End::Never => return Err(unclosed(start, text.len())),
            End::InText(quote) => return Err(open_text(text, inside + quote)),
        };
        let formula = formula(&text[inside..end], asked, names).map_err(|error| {
            let error = doubled(&text[inside..end], names).unwrap_or(error);
            let at = error.at.map_or(inside..end, |at| inside + at.start..inside + at.end);
            ExpressionError { at: Some(at), ..error }
        })?;
        pieces.push(Piece::Filled(formula));
        at = end + 1;
    }
    plain.push_str(&text[at..]);
    if !plain.is_empty() {
        pieces.push(Piece::Plain(plain));
    }
    Ok(pieces)
}

/// `${{ … }}`, where `${…}` is meant.
fn doubled(text: &str, names: &Names) -> Option<ExpressionError> {
    let bare = text.strip_prefix('{')?.strip_suffix('}')?.trim();
    let bare = formula(bare, Asked::Value, names).ok()?;
    let problem = ExpressionError::new("an expression has one pair of braces");
    Some(problem.suggest(format!("write `${{{}}}`", bare.text())))
}

fn unclosed(start: usize, end: usize) -> ExpressionError {
    ExpressionError {
        message: "this `${` has no `}`".to_owned(),
        at: Some(start..end),
        suggestion: Some("close it, or write `$${` for a plain `${`".to_owned()),
    }
}

/// Where an expression ends.
enum End {
    At(usize),
    Never,
    /// A text begins there that does not.
    InText(usize),
}

/// Where the brace is that closes an expression.
fn end_of(text: &str) -> End {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(letter) = text[at..].chars().next() {
        match letter {
            '\'' | '"' => match quoted(&text[at..]) {
                Some(length) => at += length - 1,
                None => return End::InText(at),
            },
            '{' => depth += 1,
            '}' if depth == 0 => return End::At(at),
            '}' => depth -= 1,
            _ => {}
        }
        at += letter.len_utf8();
    }
    End::Never
}

/// A value within a text: as it would be read aloud. Nothing is nothing.
fn in_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::expression::OUTPUT;

    fn filled(pattern: &Value) -> Value {
        let context = json!({
            "task": {"goal": "Mend \"it\"", "labels": ["agent", "pump"], "priority": 0},
            "steps": {"a": {"data": {"taskId": "T7"}}},
            "context": {"who": null, "no": false, "deep": {"list": [1, 2]}, "a-b": {"1st": {"length": 3}}},
        });
        Pattern::parse(pattern).expect("a pattern").fill(&context).expect("filled")
    }

    #[test]
    fn a_whole_text_keeps_its_type_and_a_part_becomes_text() {
        assert_eq!(filled(&json!("${task.priority}")), json!(0));
        assert_eq!(filled(&json!("P${task.priority}: ${task.labels}")), json!("P0: [\"agent\",\"pump\"]"));
        assert_eq!(filled(&json!("Review: ${task.goal}")), json!("Review: Mend \"it\""));
        assert_eq!(filled(&json!(["review", "${task.labels}", "x"])), json!(["review", "agent", "pump", "x"]));
        assert_eq!(filled(&json!({"a": [["${task.labels}"]], "b": 2})), json!({"a": [["agent", "pump"]], "b": 2}));
        assert_eq!(filled(&json!("$${task.goal} ${'}'} {}")), json!("${task.goal} } {}"));
    }

    #[test]
    fn many_expressions_come_to_no_more_than_one() {
        let context = json!({"task": {"goal": "x".repeat(OUTPUT / 8)}});
        let many = |times| Pattern::parse(&json!({"a": ["${task.goal}".repeat(times)]})).expect("a pattern");
        assert!(many(7).fill(&context).is_ok());
        assert!(many(8).fill(&context).expect_err("too much").reason.contains("more than"));
        // In a text they take the room that they have there.
        let context = json!({"task": {"labels": ["\u{1}".repeat(OUTPUT / 8)]}});
        let in_text = Pattern::parse(&json!("Of ${task.labels}${task.labels}")).expect("a pattern");
        assert!(in_text.fill(&context).expect_err("too much").reason.contains("more than"));
    }

    #[test]
    fn a_fault_is_told_in_the_words_of_the_author() {
        let fault = |pattern: Value| {
            let pattern = Pattern::parse(&pattern).expect("a pattern");
            pattern.fill(&json!({"context": {}, "task": {}})).expect_err("a fault").to_string()
        };
        let told = fault(json!("Hi ${ context.a === 1 || !context.b.c > 2 }"));
        assert!(told.starts_with("cannot evaluate `context.a === 1 || !context.b.c > 2`: "), "{told}");
        assert_eq!(fault(json!({"fromContext": "a-b"})), "cannot evaluate `a-b`: its value is undefined");
    }

    #[test]
    fn ids_may_come_from_the_context() {
        assert_eq!(filled(&json!({"fromContext": "deep.list[1]"})), json!(2));
        assert_eq!(filled(&json!({"fromContext": "who"})), json!(null));
        assert_eq!(filled(&json!({"fromContext": "a-b.1st.length"})), json!(3));
        assert_eq!(filled(&json!({"fromContext": "context.deep.list[1]"})), json!(2));
        assert!(Pattern::parse(&json!({"fromContext": "context.stepResults.a.data.taskId"})).is_ok());
        let wrong = Pattern::parse(&json!({"fromContext": "task.idd"})).expect_err("no such field").error;
        assert_eq!(
            (wrong.message.as_str(), wrong.suggestion.as_deref()),
            ("unknown name `task.idd`", Some("did you mean `task.id`?"))
        );
        for wrong in ["", "a..b", "a b", "a['b']", "a[b]", "who || 2"] {
            assert!(Pattern::parse(&json!({"fromContext": wrong})).is_err(), "{wrong}");
        }
        assert_eq!(filled(&json!({"fromContext": "x", "other": 1})), json!({"fromContext": "x", "other": 1}));
    }

    #[test]
    fn habits_are_understood() {
        assert_eq!(filled(&json!("${context.who || 'nobody'}")), json!("nobody"));
        assert_eq!(filled(&json!("${task.priority || 2} ${context.no || true}")), json!("0 false"));
        assert_eq!(filled(&json!("${context.missing || ''}${context.who || '' || 'x'}")), json!("x"));
        assert_eq!(filled(&json!("${'x' if context.no || task.goal else 'y'}")), json!("x"));
        assert_eq!(filled(&json!("${ {'reason': context.r || 'none'} }")), json!({"reason": "none"}));
        assert_eq!(filled(&json!("${!task.labels == false}")), json!(true));
        assert_eq!(filled(&json!("${!context.missing} ${!context.no.such} ${!context.no}")), json!("true true true"));
        assert_eq!(filled(&json!("${context.no.such.thing || 'x'} ${!!context.missing}")), json!("x false"));
        assert_eq!(filled(&json!("${context.no.such is defined} ${context.no.such | default(1)}")), json!("false 1"));
        let holds = |text: &str| {
            predicate(text).expect(text).value(&json!({"task": {"priority": 0}, "context": {"no": false}}))
        };
        assert_eq!(holds("context.no || task.priority === 0"), Ok(json!(true)));
        assert_eq!(holds("${context.nothing || context.no}"), Ok(json!(false)));
        assert_eq!(filled(&json!("${task.priority === 0 && task.labels}")), json!(["agent", "pump"]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        let refused = |text: &str| Pattern::parse(&json!(text)).expect_err(text).error;
        assert_eq!(refused("Hi ${!task.goal ||\n task.gaol}").at, Some(20..29));
        assert_eq!(refused("Hi ${context.who || 'x}").at, Some(20..23));
        assert!(refused("Hi ${context.who || 'x}").message.contains("is not closed"));
        assert_eq!(refused("Hi ${task.gaol}").at, Some(5..14));
        assert!(refused("${task.goal").message.contains("no `}`"));
        assert!(refused("${tsak.goal}").suggestion.unwrap().contains("task"));
        assert!(refused("${context.task.gaol}").suggestion.unwrap().contains("goal"));
        assert!(refused("${}").message.contains("empty"));
        let wrong = Pattern::parse(&json!({"fromContext": "list[1]]"})).expect_err("no path");
        assert_eq!((wrong.error.at, wrong.text.as_str()), (None, "list[1]]"));
    }
}
