//! The hooks and workflows that can be run, by name. Of many only those are built that somebody asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_engine::workflow::Workflow;
use windlass_hooks::Hook;

type Find = Box<dyn Fn(&str) -> Option<Hook>>;

/// Finds hooks by their names.
pub struct Hooks(Find);

impl Hooks {
    /// Hooks that are looked for by whoever knows them.
    pub fn found_by(find: impl Fn(&str) -> Option<Hook> + 'static) -> Self {
        Self(Box::new(find))
    }

    pub fn get(&self, name: &str) -> Option<Hook> {
        (self.0)(name)
    }
}

impl From<BTreeMap<String, Hook>> for Hooks {
    fn from(hooks: BTreeMap<String, Hook>) -> Self {
        Self::found_by(move |name| hooks.get(name).cloned())
    }
}

/// A workflow, or why it cannot be used; nothing where there is none of that name.
pub type Defined = Result<Option<Arc<Workflow>>, String>;

/// Finds workflows by their ids.
pub struct Workflows(Box<dyn Fn(&str) -> Defined>);

impl Workflows {
    pub fn found_by(find: impl Fn(&str) -> Defined + 'static) -> Self {
        Self(Box::new(find))
    }

    pub fn get(&self, id: &str) -> Defined {
        (self.0)(id)
    }
}

impl Default for Workflows {
    fn default() -> Self {
        Self::found_by(|_| Ok(None))
    }
}
