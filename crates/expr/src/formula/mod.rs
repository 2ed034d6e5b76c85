//! Expressions that are parsed once and evaluated as often as needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::Expression;
use minijinja::machinery::parse_expr;
use serde_json::Value;

use crate::bounds::{self, Form, OUTPUT};
use crate::check::Check;
use crate::context::{self, Used};
use crate::cost::{self, WORK};
use crate::error::{ExpressionError, ExpressionFault};
use crate::language::ENVIRONMENT;
use crate::names::Names;
use crate::{javascript, metering};

/// An expression: `task.labels`, `'agent' in task.labels and iteration > 2`.
#[derive(Debug, Clone)]
pub struct Formula(Arc<Compiled>);

/// An expression that is evaluated for its truth value.
pub type Condition = Formula;

/// The shared budget of several evaluations: as much as a single one may use.
#[derive(Debug)]
pub struct Allowance {
    /// Bytes of resulting values.
    bytes: usize,
    work: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: OUTPUT, work: WORK }
    }
}

struct Compiled {
    text: String,
    used: Used,
    /// The text that minijinja compiles, with metering marks.
    marked: String,
    /// Compiled at the first evaluation: a command evaluates few conditions of a configuration.
    expression: OnceLock<Expression<'static, 'static>>,
}

impl Formula {
    pub fn parse(text: &str, names: &Names) -> Result<Self, ExpressionError> {
        Self::parse_as(text, text, names)
    }

    /// Parses an expression whose errors show the text `written`.
    pub(crate) fn parse_as(text: &str, written: &str, names: &Names) -> Result<Self, ExpressionError> {
        if text.trim().is_empty() {
            return Err(ExpressionError::new("an expression must not be empty"));
        }
        if text.trim_start().starts_with("{{") || text.trim_start().starts_with("{%") {
            let problem = ExpressionError::new("an expression is written without braces");
            return Err(problem.suggest("write it as in `iteration > 2`"));
        }
        let rewritten = javascript::rewrite(text);
        Compiled::parse(&rewritten.text, written, names)
            .map(Self)
            .map_err(|error| ExpressionError { at: error.at.map(|at| rewritten.source_range(&at)), ..error })
    }

    /// Returns whether the expression uses a name.
    pub fn uses(&self, name: &str) -> bool {
        self.0.used.names(name)
    }

    /// Returns the truth value of the expression. As in Python, empty values and zero are false.
    pub fn holds(&self, context: &Value) -> Result<bool, ExpressionFault> {
        self.0.value(context, &mut { WORK }).map(|value| value.is_true())
    }

    /// Evaluates the expression.
    pub fn value(&self, context: &Value) -> Result<Value, ExpressionFault> {
        self.value_within(context, &mut Allowance::default())
    }

    /// Evaluates the expression within a shared budget.
    pub fn value_within(&self, context: &Value, left: &mut Allowance) -> Result<Value, ExpressionFault> {
        let value = self.0.value(context, &mut left.work)?;
        context::json(&value, &mut left.bytes).ok_or_else(|| self.too_long())
    }

    /// Evaluates the expression and renders its value. The rendered text may need more of the budget than the value.
    pub(crate) fn written_within(
        &self,
        context: &Value,
        left: &mut Allowance,
        write: impl FnOnce(&Value) -> String,
    ) -> Result<String, ExpressionFault> {
        let before = left.bytes;
        let text = write(&self.value_within(context, left)?);
        left.bytes = before.checked_sub(text.len()).ok_or_else(|| self.too_long())?.min(left.bytes);
        Ok(text)
    }

    fn too_long(&self) -> ExpressionFault {
        ExpressionFault::new(&self.0.text, format!("its value has more than {OUTPUT} bytes"))
    }

    /// Returns the names used directly below a path: for `steps.a.data` the name `a` is below `steps`.
    pub fn below(&self, path: &[&str]) -> Vec<&str> {
        self.0.used.below(path)
    }

    /// Returns the paths of all values that the expression uses.
    pub(crate) fn paths(&self) -> Vec<Vec<&str>> {
        self.0.used.paths()
    }

    /// Returns the expression as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl Compiled {
    fn parse(text: &str, written: &str, names: &Names) -> Result<Arc<Self>, ExpressionError> {
        bounds::check(text, Form::Expression)?;
        let tree = parse_expr(text).map_err(|error| ExpressionError::syntax(&error, text))?;
        let mut check = Check::new(names);
        check.expression(&tree)?;
        let used = check.used;
        let marked = metering::expression(text, &tree);
        Ok(Arc::new(Self { text: written.to_owned(), used, marked, expression: OnceLock::new() }))
    }

    fn expression(&self) -> Result<&Expression<'static, 'static>, minijinja::Error> {
        if let Some(expression) = self.expression.get() {
            return Ok(expression);
        }
        let expression = ENVIRONMENT.compile_expression_owned(self.marked.clone())?;
        Ok(self.expression.get_or_init(|| expression))
    }

    fn value(&self, context: &Value, left: &mut u64) -> Result<minijinja::Value, ExpressionFault> {
        let Self { text, used, .. } = self;
        let value = cost::within(left, || self.expression()?.eval(used.of(context)?));
        let value = value.map_err(|error| ExpressionFault::of(text, &error))?;
        if value.is_undefined() { Err(ExpressionFault::undefined(text)) } else { Ok(value) }
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests;
