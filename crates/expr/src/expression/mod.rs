//! Expressions that are parsed once and evaluated as often as needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::Expression;
use minijinja::machinery::parse_expr;
use serde_json::Value;

use crate::bounds::{self, MAX_OUTPUT_BYTES, SourceSyntax};
use crate::checker::SyntaxChecker;
use crate::context::{self, UsedNames};
use crate::cost::{self, MAX_EVALUATION_WORK};
use crate::error::{EvaluationError, ExpressionError};
use crate::language::ENVIRONMENT;
use crate::names::ExpressionNames;
use crate::{javascript, metering};

/// An expression: `task.labels`, `'agent' in task.labels and iteration > 2`.
#[derive(Debug, Clone)]
pub struct ValueExpression(Arc<CompiledExpression>);

/// An expression that is evaluated for its truth value.
pub type Condition = ValueExpression;

/// The shared budget of several evaluations: as much as a single one may use.
#[derive(Debug)]
pub struct EvaluationBudget {
    /// Bytes of resulting values.
    bytes: usize,
    work: u64,
}

impl Default for EvaluationBudget {
    fn default() -> Self {
        Self { bytes: MAX_OUTPUT_BYTES, work: MAX_EVALUATION_WORK }
    }
}

struct CompiledExpression {
    text: String,
    used: UsedNames,
    /// The text that minijinja compiles, with metering marks.
    marked: String,
    /// Compiled at the first evaluation: a command evaluates few conditions of a configuration.
    expression: OnceLock<Expression<'static, 'static>>,
}

impl ValueExpression {
    pub fn parse(text: &str, names: &ExpressionNames) -> Result<Self, ExpressionError> {
        Self::parse_with_source(text, text, names)
    }

    /// Parses an expression whose errors show the text `written`.
    pub(crate) fn parse_with_source(
        text: &str,
        written: &str,
        names: &ExpressionNames,
    ) -> Result<Self, ExpressionError> {
        if text.trim().is_empty() {
            return Err(ExpressionError::new("an expression must not be empty"));
        }
        if text.trim_start().starts_with("{{") || text.trim_start().starts_with("{%") {
            let problem = ExpressionError::new("an expression is written without braces");
            return Err(problem.with_suggestion("write it as in `iteration > 2`"));
        }
        let rewritten = javascript::rewrite_javascript(text);
        CompiledExpression::parse(&rewritten.text, written, names)
            .map(Self)
            .map_err(|error| ExpressionError { at: error.at.map(|at| rewritten.source_range(&at)), ..error })
    }

    /// Returns whether the expression uses a name.
    pub fn uses_name(&self, name: &str) -> bool {
        self.0.used.contains_name(name)
    }

    /// Returns the truth value of the expression. As in Python, empty values and zero are false.
    pub fn is_satisfied(&self, context: &Value) -> Result<bool, EvaluationError> {
        self.0.evaluate_with_work(context, &mut { MAX_EVALUATION_WORK }).map(|value| value.is_true())
    }

    /// Evaluates the expression.
    pub fn evaluate(&self, context: &Value) -> Result<Value, EvaluationError> {
        self.evaluate_within(context, &mut EvaluationBudget::default())
    }

    /// Evaluates the expression within a shared budget.
    pub fn evaluate_within(&self, context: &Value, left: &mut EvaluationBudget) -> Result<Value, EvaluationError> {
        let value = self.0.evaluate_with_work(context, &mut left.work)?;
        context::convert_to_json(&value, &mut left.bytes).ok_or_else(|| self.value_too_long_error())
    }

    /// Evaluates the expression and renders its value. The rendered text may need more of the budget than the value.
    pub(crate) fn evaluate_to_text(
        &self,
        context: &Value,
        left: &mut EvaluationBudget,
        write: impl FnOnce(&Value) -> String,
    ) -> Result<String, EvaluationError> {
        let before = left.bytes;
        let text = write(&self.evaluate_within(context, left)?);
        left.bytes = before.checked_sub(text.len()).ok_or_else(|| self.value_too_long_error())?.min(left.bytes);
        Ok(text)
    }

    fn value_too_long_error(&self) -> EvaluationError {
        EvaluationError::new(&self.0.text, format!("its value has more than {OUTPUT} bytes"))
    }

    /// Returns the names used directly below a path: for `steps.a.data` the name `a` is below `steps`.
    pub fn names_below(&self, path: &[&str]) -> Vec<&str> {
        self.0.used.names_below(path)
    }

    /// Returns the paths of all values that the expression uses.
    pub(crate) fn value_paths(&self) -> Vec<Vec<&str>> {
        self.0.used.value_paths()
    }

    /// Returns the expression as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl CompiledExpression {
    fn parse(text: &str, written: &str, names: &ExpressionNames) -> Result<Arc<Self>, ExpressionError> {
        bounds::check_bounds(text, SourceSyntax::Expression)?;
        let tree = parse_expr(text).map_err(|error| ExpressionError::from_parser_error(&error, text))?;
        let mut check = SyntaxChecker::new(names);
        check.check_expression(&tree)?;
        let used = check.used;
        let marked = metering::mark_expression(text, &tree);
        Ok(Arc::new(Self { text: written.to_owned(), used, marked, expression: OnceLock::new() }))
    }

    fn minijinja_expression(&self) -> Result<&Expression<'static, 'static>, minijinja::Error> {
        if let Some(expression) = self.expression.get() {
            return Ok(expression);
        }
        let expression = ENVIRONMENT.compile_expression_owned(self.marked.clone())?;
        Ok(self.expression.get_or_init(|| expression))
    }

    fn evaluate_with_work(&self, context: &Value, left: &mut u64) -> Result<minijinja::Value, EvaluationError> {
        let Self { text, used, .. } = self;
        let value = cost::evaluate_within(left, || self.minijinja_expression()?.eval(used.select_values(context)?));
        let value = value.map_err(|error| EvaluationError::from_minijinja_error(text, &error))?;
        if value.is_undefined() { Err(EvaluationError::undefined_value(text)) } else { Ok(value) }
    }
}

impl fmt::Debug for CompiledExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests;
