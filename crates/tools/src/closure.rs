//! Stop hooks that are code of a program which uses the tools as a library.
//!
//! The log knows them by their names: a registration stays, so each process that evaluates them has to register the code again. A
//! hook without code here fails, which asks for a person.

use std::collections::BTreeMap;

use windlass_engine::{AgentContext, StopRuling};

/// Code of a stop hook. An error asks for a person.
pub type StopHookClosure = Box<dyn Fn(&AgentContext) -> Result<StopRuling, String> + Send>;

/// Code of stop hooks, by name.
#[derive(Default)]
pub struct StopHookClosures(pub(crate) BTreeMap<String, StopHookClosure>);

impl StopHookClosures {
    pub(crate) fn call_closure(&self, name: &str, context: &AgentContext) -> Result<StopRuling, String> {
        match self.0.get(name) {
            Some(closure) => closure(context),
            None => Err(format!("`{name}` is code of another program, which must call it itself")),
        }
    }
}
