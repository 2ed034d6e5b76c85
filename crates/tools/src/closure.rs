//! Stop hooks that are code of the program which uses the tools as a library.
//!
//! The log knows them by their names: they are registered for good, and whoever judges has to know the code again. A hook
//! whose code nobody here knows fails, which asks for a person.

use std::collections::BTreeMap;

use windlass_engine::{AgentContext, StopRuling};

/// What decides; an error asks for a person.
pub type Closure = Box<dyn Fn(&AgentContext) -> Result<StopRuling, String> + Send>;

/// Code by its name.
#[derive(Default)]
pub struct Closures(pub(crate) BTreeMap<String, Closure>);

impl Closures {
    pub(crate) fn ask(&self, name: &str, context: &AgentContext) -> Result<StopRuling, String> {
        match self.0.get(name) {
            Some(closure) => closure(context),
            None => Err(format!("`{name}` is code of another program, which has to ask it by itself")),
        }
    }
}
