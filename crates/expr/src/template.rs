//! Templates: texts that contain expressions.

use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::Environment;
use minijinja::machinery::parse;
use serde_json::Value;

use crate::bounds::{self, MAX_OUTPUT_BYTES, SourceSyntax};
use crate::checker::SyntaxChecker;
use crate::context::UsedNames;
use crate::cost::{self, MAX_EVALUATION_WORK};
use crate::error::{EvaluationError, ExpressionError};
use crate::language::ENVIRONMENT;
use crate::metering;
use crate::names::ExpressionNames;

/// The name of the only template in its environment.
const TEMPLATE_NAME: &str = "template";

/// A text that contains expressions: `{{ task.goal }} failed: {{ reason }}`.
#[derive(Debug, Clone)]
pub struct TextTemplate(Arc<CompiledTemplate>);

struct CompiledTemplate {
    text: String,
    used: UsedNames,
    environment: Environment<'static>,
}

impl TextTemplate {
    pub fn parse(text: &str, names: &ExpressionNames) -> Result<Self, ExpressionError> {
        bounds::check_bounds(text, SourceSyntax::Template)?;
        let tree = parse(text, TEMPLATE_NAME, Default::default())
            .map_err(|error| ExpressionError::from_parser_error(&error, text))?;
        let mut check = SyntaxChecker::new(names);
        check.check_statement(&tree)?;
        let used = check.used;
        let mut environment = ENVIRONMENT.clone();
        let added = environment.add_template_owned(TEMPLATE_NAME, metering::mark_template(text, &tree));
        added.map_err(|error| ExpressionError::from_parser_error(&error, ""))?;
        Ok(Self(Arc::new(CompiledTemplate { text: text.to_owned(), used, environment })))
    }

    /// Returns whether the template uses a name.
    pub fn uses_name(&self, name: &str) -> bool {
        self.0.used.contains_name(name)
    }

    /// Returns the names that the template uses directly below a path.
    pub fn names_below(&self, path: &[&str]) -> Vec<&str> {
        self.0.used.names_below(path)
    }

    /// Renders the text with every expression replaced by its value. Nothing is escaped.
    pub fn render(&self, context: &Value) -> Result<String, EvaluationError> {
        let CompiledTemplate { text, used, environment } = &*self.0;
        let template = environment
            .get_template(TEMPLATE_NAME)
            .map_err(|error| EvaluationError::from_minijinja_error(text, &error))?;
        let mut page = BoundedOutput::default();
        let render = || template.render_captured_to(used.select_values(context)?, &mut page).map(drop);
        match cost::evaluate_within(&mut { MAX_EVALUATION_WORK }, render) {
            Ok(()) => {}
            Err(_) if page.is_full => {
                return Err(EvaluationError::new(text, format!("its result is longer than {OUTPUT} bytes")));
            }
            Err(error) => return Err(EvaluationError::from_minijinja_error(text, &error)),
        }
        String::from_utf8(page.bytes).map_err(|_| EvaluationError::new(text, "its result is not text"))
    }

    /// Returns the template as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

/// The rendered output so far, up to its maximum length.
#[derive(Default)]
struct BoundedOutput {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT_BYTES {
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

impl fmt::Debug for CompiledTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
