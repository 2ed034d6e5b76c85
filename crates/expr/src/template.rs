//! Templates: texts that contain expressions.

use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::Environment;
use minijinja::machinery::parse;
use serde_json::Value;

use crate::bounds::{self, Form, OUTPUT};
use crate::check::Check;
use crate::context::Used;
use crate::cost::{self, WORK};
use crate::error::{ExpressionError, ExpressionFault};
use crate::language::ENVIRONMENT;
use crate::metering;
use crate::names::Names;

/// The name of the only template in its environment.
const TEMPLATE: &str = "template";

/// A text that contains expressions: `{{ task.goal }} failed: {{ reason }}`.
#[derive(Debug, Clone)]
pub struct Template(Arc<CompiledTemplate>);

struct CompiledTemplate {
    text: String,
    used: Used,
    environment: Environment<'static>,
}

impl Template {
    pub fn parse(text: &str, names: &Names) -> Result<Self, ExpressionError> {
        bounds::check(text, Form::Template)?;
        let tree = parse(text, TEMPLATE, Default::default()).map_err(|error| ExpressionError::syntax(&error, text))?;
        let mut check = Check::new(names);
        check.statement(&tree)?;
        let used = check.used;
        let mut environment = ENVIRONMENT.clone();
        let added = environment.add_template_owned(TEMPLATE, metering::template(text, &tree));
        added.map_err(|error| ExpressionError::syntax(&error, ""))?;
        Ok(Self(Arc::new(CompiledTemplate { text: text.to_owned(), used, environment })))
    }

    /// Returns whether the template uses a name.
    pub fn uses(&self, name: &str) -> bool {
        self.0.used.names(name)
    }

    /// Returns the names that the template uses directly below a path.
    pub fn below(&self, path: &[&str]) -> Vec<&str> {
        self.0.used.below(path)
    }

    /// Renders the text with every expression replaced by its value. Nothing is escaped.
    pub fn render(&self, context: &Value) -> Result<String, ExpressionFault> {
        let CompiledTemplate { text, used, environment } = &*self.0;
        let template = environment.get_template(TEMPLATE).map_err(|error| ExpressionFault::of(text, &error))?;
        let mut page = Page::default();
        let render = || template.render_captured_to(used.of(context)?, &mut page).map(drop);
        match cost::within(&mut { WORK }, render) {
            Ok(()) => {}
            Err(_) if page.is_full => {
                return Err(ExpressionFault::new(text, format!("its result is longer than {OUTPUT} bytes")));
            }
            Err(error) => return Err(ExpressionFault::of(text, &error)),
        }
        String::from_utf8(page.bytes).map_err(|_| ExpressionFault::new(text, "its result is not text"))
    }

    /// Returns the template as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

/// The rendered output so far, up to its maximum length.
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

impl fmt::Debug for CompiledTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
