//! The hooks that can be run, by name. Of many only those are built that somebody asks for.

use std::collections::BTreeMap;

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
