//! Values with expressions in them: `{"goal": "Review: ${task.goal}", "labels": ["review", "${task.labels}"]}`.
//!
//! - A text that is nothing but one expression becomes its value, whatever kind that is.
//! - A list that comes of an expression in a list is put in piece by piece.
//! - `{fromContext: "a.b"}` is the value at that path of the context. `$${` is a plain `${`.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::error::{ExpressionError, ExpressionFault};
use crate::formula::{Allowance, Formula};
use crate::javascript::quoted_length;
use crate::names::Names;

/// A value of which only the form is known.
#[derive(Debug, Clone)]
pub enum Pattern {
    Plain(Value),
    Whole(Formula),
    /// Plain texts and expressions, one after another.
    Text(Vec<Pattern>),
    List(Vec<Pattern>),
    Fields(Vec<(String, Pattern)>),
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
        let mut pieces = pieces(text, names)?;
        Ok(match pieces.len() {
            0 => Self::Plain(Value::String(String::new())),
            1 => pieces.remove(0),
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
                        Self::Whole(formula) => text.push_str(&formula.written_within(context, left, in_text)?),
                        piece => text.push_str(piece.beginning()),
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
        match self {
            Self::Plain(Value::String(text)) => Some(text.clone()),
            Self::Plain(value) => Some(value.to_string()),
            Self::Whole(formula) => is_checked(formula).then(|| "0".to_owned()),
            Self::Text(pieces) => pieces.iter().map(Self::checked).collect(),
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
            Self::Text(pieces) => pieces.first().is_none_or(|piece| piece.checked().is_some()),
            other => other.checked().is_some(),
        }
    }

    /// The text before its first expression.
    pub fn beginning(&self) -> &str {
        match self {
            Self::Plain(Value::String(text)) => text,
            Self::Text(pieces) => pieces.first().map_or("", Self::beginning),
            _ => "",
        }
    }

    /// Returns the expressions in it.
    pub fn formulas(&self) -> Vec<&Formula> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Whole(formula) => vec![formula],
            Self::Text(items) | Self::List(items) => items.iter().flat_map(Self::formulas).collect(),
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

/// Reads a predicate: an expression, alone or as `${…}`.
pub fn predicate(text: &str) -> Result<Formula, ExpressionError> {
    match Pattern::text(text, &Names::workflow())? {
        Pattern::Whole(formula) => Ok(formula),
        Pattern::Plain(_) => Formula::parse_as(text, text.trim(), &Names::workflow()),
        _ => Err(ExpressionError::new("a predicate is one expression")
            .suggest("write it without `${…}`, as in `task.priority < 2`")),
    }
}

fn from_context(fields: &Map<String, Value>) -> Option<&Value> {
    let (name, path) = fields.iter().next().filter(|_| fields.len() == 1)?;
    matches!(name.as_str(), "fromContext" | "from_context").then_some(path).filter(|path| path.is_string())
}

/// The value at a path of the context: names with dots between them, each of which may be followed by places in a list.
fn at_path(path: &str, names: &Names) -> Result<Formula, ExpressionError> {
    let mut text = "context".to_owned();
    for part in path.strip_prefix("context.").unwrap_or(path).split('.') {
        let (name, places) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_name = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
        let is_place = |place: &str| place.strip_suffix(']').is_some_and(|place| place.parse::<u32>().is_ok());
        if name.is_empty() || !name.chars().all(is_name) || !places.split('[').skip(1).all(is_place) {
            let problem = ExpressionError::new("`fromContext` is a path: names with dots between them");
            return Err(problem.suggest("write an expression as `${…}`"));
        }
        let _ = write!(text, "['{name}']{places}");
    }
    // The places of the error are not those of the path.
    Formula::parse_as(&text, path, names).map_err(|error| ExpressionError { at: None, ..error })
}

/// The expressions of a text, and what is between them.
fn pieces(text: &str, names: &Names) -> Result<Vec<Pattern>, ExpressionError> {
    let (mut pieces, mut plain, mut at) = (Vec::new(), String::new(), 0);
    let end_plain = |plain: &mut String, pieces: &mut Vec<Pattern>| {
        if !plain.is_empty() {
            pieces.push(Pattern::Plain(Value::String(std::mem::take(plain))));
        }
    };
    while let Some(found) = text[at..].find("${") {
        let (start, inside) = (at + found, at + found + 2);
        if text[..start].ends_with('$') {
            plain.push_str(&text[at..start - 1]);
            plain.push_str("${");
            at = inside;
            continue;
        }
        plain.push_str(&text[at..start]);
        end_plain(&mut plain, &mut pieces);
        let Some(length) = closing_brace(&text[inside..]) else {
            let problem = ExpressionError::new("this `${` has no `}`").at(start..text.len());
            return Err(problem.suggest("close it, and the texts in it; `$${` is a plain `${`"));
        };
        let end = inside + length;
        let written = &text[inside..end];
        let formula = Formula::parse_as(written, written.trim(), names).map_err(|error| {
            let at = error.at.map_or(inside..end, |at| inside + at.start..inside + at.end);
            ExpressionError { at: Some(at), ..error }
        })?;
        pieces.push(Pattern::Whole(formula));
        at = end + 1;
    }
    plain.push_str(&text[at..]);
    end_plain(&mut plain, &mut pieces);
    Ok(pieces)
}

/// Finds the brace that closes an expression.
fn closing_brace(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(letter) = text[at..].chars().next() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
        at += quoted_length(&text[at..]).unwrap_or(letter.len_utf8());
    }
    None
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
mod tests;
