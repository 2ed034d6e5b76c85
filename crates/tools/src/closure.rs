//! Stop hooks that are code of the program which uses the tools as a library.
//!
//! The log knows them by their names: they are registered for good, and whoever judges has to know the code again. A hook
//! whose code nobody here knows fails, which asks for a person.

use std::collections::BTreeMap;

use serde_json::Map;
use windlass_engine::{AgentContext, Command, HookId, NewHook, StopHook, StopRuling, TaskId};
use windlass_process::Control;

use crate::desk::{Call, Desk, Ground};
use crate::error::ToolError;

/// What decides; an error asks for a person.
pub type Closure = Box<dyn Fn(&AgentContext) -> Result<StopRuling, String> + Send>;

/// Code by its name.
#[derive(Default)]
pub struct Closures(BTreeMap<String, Closure>);

impl Closures {
    pub(crate) fn ask(&self, name: &str, context: &AgentContext) -> Result<StopRuling, String> {
        match self.0.get(name) {
            Some(closure) => closure(context),
            None => Err(format!("`{name}` is code of another program, which has to ask it by itself")),
        }
    }
}

impl<G: Ground> Desk<G> {
    /// Knows from now on what stop hooks of this name decide: those that are registered already, too.
    pub fn know(
        &mut self,
        name: impl Into<String>,
        decide: impl Fn(&AgentContext) -> Result<StopRuling, String> + Send + 'static,
    ) {
        self.closures.0.insert(name.into(), Box::new(decide));
    }

    /// Registers code that is known for a task.
    pub fn register(&mut self, task: TaskId, name: &str) -> Result<HookId, ToolError> {
        let hook = StopHook::Closure { name: name.to_owned() };
        let command = Command::RegisterHook { task, new: NewHook { hook, enabled: true, metadata: Map::new() } };
        let control = Control::new();
        let mut call = Call { ground: &mut self.ground, control: &control, closures: &self.closures };
        let records = call.execute(&command)?;
        Ok(HookId(records.first().expect("what is registered has its event").seq.0))
    }
}
