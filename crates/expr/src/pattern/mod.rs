//! JSON values that contain expressions: `{"goal": "Review: ${task.goal}", "labels": ["review", "${task.labels}"]}`.
//!
//! - A text that consists of one expression becomes its value, of any type.
//! - A list that results from an expression in a list is spliced into that list.
//! - `{fromContext: "a.b"}` is the value at that path of the context. `$${` is a literal `${`.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::error::{EvaluationError, ExpressionError};
use crate::expression::{EvaluationBudget, ValueExpression};
use crate::javascript::quoted_length;
use crate::names::ExpressionNames;

/// A parsed value whose expressions have no values yet.
#[derive(Debug, Clone)]
pub enum ValuePattern {
    Plain(Value),
    Expression(ValueExpression),
    /// Literal texts and expressions, in order.
    Text(Vec<ValuePattern>),
    List(Vec<ValuePattern>),
    Fields(Vec<(String, ValuePattern)>),
}

/// An error in a pattern, with the text that contains it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct PatternError {
    /// The text that contains the error.
    pub text: String,
    pub error: ExpressionError,
}

impl ValuePattern {
    /// Parses a value of a workflow step.
    pub fn parse(value: &Value) -> Result<Self, PatternError> {
        Self::parse_with_names(value, &ExpressionNames::for_workflow())
    }

    /// Parses a value whose expressions use these names.
    pub fn parse_with_names(value: &Value, names: &ExpressionNames) -> Result<Self, PatternError> {
        let parse = |value: &Value| Self::parse_with_names(value, names);
        Ok(match value {
            Value::String(text) => {
                Self::parse_text(text, names).map_err(|error| PatternError { text: text.clone(), error })?
            }
            Value::Array(items) => Self::List(items.iter().map(parse).collect::<Result<_, _>>()?),
            Value::Object(fields) => match context_reference(fields) {
                Some(path) => {
                    let path = path.as_str().unwrap_or_default();
                    parse_context_path(path, names)
                        .map(Self::Expression)
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

    fn parse_text(text: &str, names: &ExpressionNames) -> Result<Self, ExpressionError> {
        let mut pieces = parse_text_pieces(text, names)?;
        Ok(match pieces.len() {
            0 => Self::Plain(Value::String(String::new())),
            1 => pieces.remove(0),
            _ => Self::Text(pieces),
        })
    }

    /// Evaluates the pattern in a context. All of its expressions together may use the budget of a single one.
    pub fn fill_values(&self, context: &Value) -> Result<Value, EvaluationError> {
        self.fill_within_budget(context, &mut EvaluationBudget::default())
    }

    /// Evaluates the pattern within a shared budget.
    pub fn fill_within_budget(&self, context: &Value, left: &mut EvaluationBudget) -> Result<Value, EvaluationError> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Expression(formula) => formula.evaluate_within(context, left)?,
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Self::Expression(formula) => {
                            text.push_str(&formula.evaluate_to_text(context, left, value_in_text)?)
                        }
                        piece => text.push_str(piece.leading_text()),
                    }
                }
                Value::String(text)
            }
            Self::List(items) => {
                let mut list = Vec::new();
                for item in items {
                    match (item, item.fill_within_budget(context, left)?) {
                        (Self::Expression(_), Value::Array(items)) => list.extend(items),
                        (_, value) => list.push(value),
                    }
                }
                Value::Array(list)
            }
            Self::Fields(fields) => {
                let filled =
                    fields.iter().map(|(name, pattern)| Ok((name.clone(), pattern.fill_within_budget(context, left)?)));
                Value::Object(filled.collect::<Result<Map<_, _>, EvaluationError>>()?)
            }
        })
    }

    /// Returns the value of a pattern without expressions.
    pub fn constant_value(&self) -> Option<&Value> {
        match self {
            Self::Plain(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the text of the pattern, with `0` for each expression, if all expressions are ids and numbers.
    pub fn checked_text(&self) -> Option<String> {
        match self {
            Self::Plain(Value::String(text)) => Some(text.clone()),
            Self::Plain(value) => Some(value.to_string()),
            Self::Expression(formula) => uses_only_checked_values(formula).then(|| "0".to_owned()),
            Self::Text(pieces) => pieces.iter().map(Self::checked_text).collect(),
            Self::List(_) | Self::Fields(_) => None,
        }
    }

    /// Returns whether the pattern holds free text: more than ids, numbers and the project's directory.
    pub fn has_free_text(&self) -> bool {
        let is_known =
            |formula: &ValueExpression| formula.value_paths() == [["project_dir"]] || uses_only_checked_values(formula);
        self.collect_expressions().into_iter().any(|formula| !is_known(formula))
    }

    /// Returns whether the text begins with a literal, an id or a number.
    pub fn starts_with_checked_text(&self) -> bool {
        match self {
            Self::Text(pieces) => pieces.first().is_none_or(|piece| piece.checked().is_some()),
            other => other.checked_text().is_some(),
        }
    }

    /// Returns the text before the first expression.
    pub fn leading_text(&self) -> &str {
        match self {
            Self::Plain(Value::String(text)) => text,
            Self::Text(pieces) => pieces.first().map_or("", Self::leading_text),
            _ => "",
        }
    }

    /// Returns the expressions of the pattern.
    pub fn collect_expressions(&self) -> Vec<&ValueExpression> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Expression(formula) => vec![formula],
            Self::Text(items) | Self::List(items) => items.iter().flat_map(Self::collect_expressions).collect(),
            Self::Fields(fields) => fields.iter().flat_map(|(_, pattern)| pattern.collect_expressions()).collect(),
        }
    }
}

/// Returns whether an expression uses only ids and numbers that Windlass itself sets. Values in `context` may come from the caller,
/// except `steps` and `workflow`.
fn uses_only_checked_values(formula: &ValueExpression) -> bool {
    formula.value_paths().iter().all(|path| {
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

/// Parses a predicate: an expression, alone or as `${…}`.
pub fn parse_predicate(text: &str) -> Result<ValueExpression, ExpressionError> {
    match ValuePattern::parse_text(text, &ExpressionNames::for_workflow())? {
        ValuePattern::Expression(formula) => Ok(formula),
        ValuePattern::Plain(_) => {
            ValueExpression::parse_with_source(text, text.trim(), &ExpressionNames::for_workflow())
        }
        _ => Err(ExpressionError::new("a predicate is one expression")
            .with_suggestion("write it without `${…}`, as in `task.priority < 2`")),
    }
}

fn context_reference(fields: &Map<String, Value>) -> Option<&Value> {
    let (name, path) = fields.iter().next().filter(|_| fields.len() == 1)?;
    matches!(name.as_str(), "fromContext" | "from_context").then_some(path).filter(|path| path.is_string())
}

/// Parses a path of the context: names with dots between them, each optionally followed by list indexes.
fn parse_context_path(path: &str, names: &ExpressionNames) -> Result<ValueExpression, ExpressionError> {
    let mut text = "context".to_owned();
    for part in path.strip_prefix("context.").unwrap_or(path).split('.') {
        let (name, places) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_name = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
        let is_place = |place: &str| place.strip_suffix(']').is_some_and(|place| place.parse::<u32>().is_ok());
        if name.is_empty() || !name.chars().all(is_name) || !places.split('[').skip(1).all(is_place) {
            let problem = ExpressionError::new("`fromContext` is a path: names with dots between them");
            return Err(problem.with_suggestion("write an expression as `${…}`"));
        }
        let _ = write!(text, "['{name}']{places}");
    }
    // The ranges of the error belong to the generated text, not to the path.
    ValueExpression::parse_with_source(&text, path, names).map_err(|error| ExpressionError { at: None, ..error })
}

/// Splits a text into its expressions and the literals between them.
fn parse_text_pieces(text: &str, names: &ExpressionNames) -> Result<Vec<ValuePattern>, ExpressionError> {
    let (mut pieces, mut plain, mut at) = (Vec::new(), String::new(), 0);
    let end_plain = |plain: &mut String, pieces: &mut Vec<ValuePattern>| {
        if !plain.is_empty() {
            pieces.push(ValuePattern::Plain(Value::String(std::mem::take(plain))));
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
        let Some(length) = find_closing_brace(&text[inside..]) else {
            let problem = ExpressionError::new("this `${` has no `}`").with_range(start..text.len());
            return Err(problem.with_suggestion("close it, and the texts in it; `$${` is a plain `${`"));
        };
        let end = inside + length;
        let written = &text[inside..end];
        let formula = ValueExpression::parse_with_source(written, written.trim(), names).map_err(|error| {
            let at = error.at.map_or(inside..end, |at| inside + at.start..inside + at.end);
            ExpressionError { at: Some(at), ..error }
        })?;
        pieces.push(ValuePattern::Expression(formula));
        at = end + 1;
    }
    plain.push_str(&text[at..]);
    end_plain(&mut plain, &mut pieces);
    Ok(pieces)
}

/// Returns the offset of the brace that closes an expression.
fn find_closing_brace(text: &str) -> Option<usize> {
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

/// Renders a value inside a text. Null becomes an empty text.
fn value_in_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
