//! The one expression language: conditions of hooks, rules, templates of prompts and feedback, values in workflows.
//!
//! ```text
//! text ─ javascript, bounds ─► tokens ─ minijinja ─► syntax tree ─ check, marks ─► compiled, with the names that it uses
//!                                                                              │
//!                                     context (JSON) ─ only those names ──────►│──► true or false, or a text
//! ```
//!
//! Invariants:
//! - A name, filter, test or function that is not known is an error when the text is read, with its place.
//! - Nothing is read twice: what was parsed is shared by its clones.
//! - Whatever the text and the context, reading and evaluating end within a tenth of a second and some ten megabytes: what
//!   is done with values is counted, inside filters and operators, too (`work`, `marks`).
//! - Nothing is escaped, included, loaded or called back.
//!
//! Not here: what a context holds for which point (`hooks`); where a text stands in a file (`cli`).

mod bounds;
mod check;
mod context;
mod error;
pub(crate) mod javascript;
mod language;
mod marks;
mod names;
#[cfg(test)]
mod tests;
mod work;

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use minijinja::machinery::{parse, parse_expr};
use minijinja::{Environment, Expression};
use serde_json::Value;

use self::bounds::Form;
pub(crate) use self::bounds::OUTPUT;
use self::check::Check;
use self::context::Used;
pub use self::error::{ExpressionError, ExpressionFault};
use self::language::ENVIRONMENT;
pub use self::names::Names;
use self::work::WORK;

/// The name of the only template of its environment.
const TEMPLATE: &str = "template";

/// An expression: `task.labels`, `'agent' in task.labels and iteration > 2`.
#[derive(Debug, Clone)]
pub struct Formula(Arc<Compiled>);

/// An expression of which only the truth counts.
pub type Condition = Formula;

/// What evaluations that belong together may spend: no more than one alone.
#[derive(Debug)]
pub struct Allowance {
    /// Of values that they come to.
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
    /// What minijinja compiles: the text with marks that count its work.
    marked: String,
    /// Compiled when it is first evaluated: most conditions of a configuration are not asked by a command.
    expression: OnceLock<Expression<'static, 'static>>,
}

/// A text with expressions in it: `{{ task.goal }} failed: {{ reason }}`.
#[derive(Debug, Clone)]
pub struct Template(Arc<CompiledTemplate>);

struct CompiledTemplate {
    text: String,
    used: Used,
    environment: Environment<'static>,
}

impl Formula {
    pub fn parse(text: &str, names: &Names) -> Result<Self, ExpressionError> {
        Self::parse_as(text, text, names)
    }

    /// Reads an expression that is shown as it was written elsewhere.
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

    /// Whether it uses a name.
    pub fn uses(&self, name: &str) -> bool {
        self.0.used.names(name)
    }

    /// Whether it holds. A value that is no truth value counts as in Python: empty and zero do not hold.
    pub fn holds(&self, context: &Value) -> Result<bool, ExpressionFault> {
        self.0.value(context, &mut { WORK }).map(|value| value.is_true())
    }

    /// What it comes to.
    pub fn value(&self, context: &Value) -> Result<Value, ExpressionFault> {
        self.value_within(context, &mut Allowance::default())
    }

    /// The same, where others share what may be spent.
    pub fn value_within(&self, context: &Value, left: &mut Allowance) -> Result<Value, ExpressionFault> {
        let value = self.0.value(context, &mut left.work)?;
        context::json(&value, &mut left.bytes).ok_or_else(|| self.too_long())
    }

    /// The same, written into a text. There it may take more room than the value does.
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

    /// The names that it uses below a path: of `steps.a.data` it is `a`, below `steps`.
    pub fn below(&self, path: &[&str]) -> Vec<&str> {
        self.0.used.below(path)
    }

    /// The paths of all values that it uses.
    pub(crate) fn paths(&self) -> Vec<Vec<&str>> {
        self.0.used.paths()
    }

    /// As it was written.
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
        let marked = marks::expression(text, &tree);
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
        let value = work::within(left, || self.expression()?.eval(used.of(context)?));
        let value = value.map_err(|error| ExpressionFault::of(text, &error))?;
        if value.is_undefined() { Err(ExpressionFault::undefined(text)) } else { Ok(value) }
    }
}

impl Template {
    pub fn parse(text: &str, names: &Names) -> Result<Self, ExpressionError> {
        bounds::check(text, Form::Template)?;
        let tree = parse(text, TEMPLATE, Default::default()).map_err(|error| ExpressionError::syntax(&error, text))?;
        let mut check = Check::new(names);
        check.statement(&tree)?;
        let used = check.used;
        let mut environment = ENVIRONMENT.clone();
        let added = environment.add_template_owned(TEMPLATE, marks::template(text, &tree));
        added.map_err(|error| ExpressionError::syntax(&error, ""))?;
        Ok(Self(Arc::new(CompiledTemplate { text: text.to_owned(), used, environment })))
    }

    /// Whether it uses a name.
    pub fn uses(&self, name: &str) -> bool {
        self.0.used.names(name)
    }

    /// The names that it uses below a path.
    pub fn below(&self, path: &[&str]) -> Vec<&str> {
        self.0.used.below(path)
    }

    /// The text with every expression replaced by its value. Nothing is escaped.
    pub fn render(&self, context: &Value) -> Result<String, ExpressionFault> {
        let CompiledTemplate { text, used, environment } = &*self.0;
        let template = environment.get_template(TEMPLATE).map_err(|error| ExpressionFault::of(text, &error))?;
        let mut page = Page::default();
        let render = || template.render_captured_to(used.of(context)?, &mut page).map(drop);
        match work::within(&mut { WORK }, render) {
            Ok(()) => {}
            Err(_) if page.is_full => {
                return Err(ExpressionFault::new(text, format!("its result is longer than {OUTPUT} bytes")));
            }
            Err(error) => return Err(ExpressionFault::of(text, &error)),
        }
        String::from_utf8(page.bytes).map_err(|_| ExpressionFault::new(text, "its result is not text"))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

/// What a template has become so far, up to a bound.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > OUTPUT {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Debug for CompiledTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
