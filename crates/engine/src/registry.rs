//! The registry of pure hooks: what runs inside the commit of an event, in which order.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::action::Action;
use crate::builtins;
use crate::event::{EventType, Record};
use crate::view::{View, ViewError};

/// Why a hook gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum HookFault {
    /// The hook's own failure: recorded, and the others run all the same.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    View(#[from] ViewError),
}

/// Sees an event and the state after its command, and answers what to do. It runs inside a commit: it must be quick
/// and may touch nothing outside.
pub type Handler = Arc<dyn Fn(&Record, &dyn View) -> Result<Vec<Action>, HookFault> + Send + Sync>;

/// A pure hook.
#[derive(Clone)]
pub struct Hook {
    pub name: String,
    pub events: Vec<EventType>,
    /// Lower runs first; equal ones in order of registration.
    pub priority: i64,
    pub enabled: bool,
    pub description: String,
    pub handler: Handler,
}

impl Hook {
    /// Runs the hook. One that panics has failed, and takes nobody with it: it may be anybody's closure.
    pub(crate) fn ask(&self, record: &Record, view: &dyn View) -> Result<Vec<Action>, HookFault> {
        catch_unwind(AssertUnwindSafe(|| (self.handler)(record, view))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
            Err(HookFault::Failed(format!("it panicked: {}", said.unwrap_or("without a word"))))
        })
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, events, priority, enabled, .. } = self;
        f.debug_struct("Hook")
            .field("name", name)
            .field("events", events)
            .field("priority", priority)
            .field("enabled", enabled)
            .finish_non_exhaustive()
    }
}

/// A hook that cannot be registered or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("a hook needs a name")]
    NoName,
    #[error("hook `{0}` listens to no event")]
    NoEvents(String),
    #[error("there is already a hook `{0}`")]
    Duplicate(String),
    #[error("there is no hook `{0}`")]
    Unknown(String),
}

/// The hooks in order of registration, and by event in the order in which they run.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    hooks: Vec<Hook>,
    by_event: BTreeMap<EventType, Vec<usize>>,
}

impl Registry {
    /// The registry with its built-ins, each as it is by default.
    pub fn with_builtins() -> Self {
        let mut registry = Self::default();
        for hook in builtins::all() {
            registry.register(hook).expect("the built-ins are well formed");
        }
        registry
    }

    pub fn register(&mut self, hook: Hook) -> Result<(), RegistryError> {
        if hook.name.trim().is_empty() {
            return Err(RegistryError::NoName);
        }
        if hook.events.is_empty() {
            return Err(RegistryError::NoEvents(hook.name));
        }
        if self.get(&hook.name).is_some() {
            return Err(RegistryError::Duplicate(hook.name));
        }
        self.hooks.push(hook);
        self.order();
        Ok(())
    }

    pub fn unregister(&mut self, name: &str) -> Result<Hook, RegistryError> {
        let place = self.hooks.iter().position(|hook| hook.name == name);
        let hook = self.hooks.remove(place.ok_or_else(|| RegistryError::Unknown(name.to_owned()))?);
        self.order();
        Ok(hook)
    }

    /// Switches a hook on or off, and moves it if a priority is given.
    pub fn configure(&mut self, name: &str, enabled: bool, priority: Option<i64>) -> Result<(), RegistryError> {
        let hook = self.hooks.iter_mut().find(|hook| hook.name == name);
        let hook = hook.ok_or_else(|| RegistryError::Unknown(name.to_owned()))?;
        hook.enabled = enabled;
        hook.priority = priority.unwrap_or(hook.priority);
        self.order();
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.name == name)
    }

    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// The enabled hooks of an event, in the order in which they run.
    pub fn for_event(&self, event: EventType) -> impl Iterator<Item = &Hook> {
        self.by_event.get(&event).into_iter().flatten().map(|place| &self.hooks[*place])
    }

    fn order(&mut self) {
        self.by_event.clear();
        let mut places: Vec<usize> = (0..self.hooks.len()).filter(|place| self.hooks[*place].enabled).collect();
        places.sort_by_key(|place| self.hooks[*place].priority);
        for place in places {
            for event in &self.hooks[place].events {
                self.by_event.entry(*event).or_default().push(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str, priority: i64) -> Hook {
        Hook {
            name: name.to_owned(),
            events: vec![EventType::TaskCreated],
            priority,
            enabled: true,
            description: String::new(),
            handler: Arc::new(|_, _| Ok(vec![])),
        }
    }

    fn order(registry: &Registry) -> Vec<&str> {
        registry.for_event(EventType::TaskCreated).map(|hook| hook.name.as_str()).collect()
    }

    #[test]
    fn lower_priorities_run_first_and_ties_keep_their_order() {
        let mut registry = Registry::default();
        for (name, priority) in [("late", 100), ("first", 0), ("also late", 100), ("negative", -1)] {
            registry.register(hook(name, priority)).unwrap();
        }
        assert_eq!(order(&registry), ["negative", "first", "late", "also late"]);
        registry.configure("late", false, None).unwrap();
        registry.configure("negative", true, Some(500)).unwrap();
        assert_eq!(order(&registry), ["first", "also late", "negative"]);
        registry.unregister("first").unwrap();
        assert_eq!(order(&registry), ["also late", "negative"]);
    }

    #[test]
    fn a_hook_needs_a_name_of_its_own_and_an_event() {
        let mut registry = Registry::default();
        registry.register(hook("one", 1)).unwrap();
        assert_eq!(registry.register(hook("one", 2)), Err(RegistryError::Duplicate("one".to_owned())));
        assert_eq!(registry.register(hook(" ", 2)), Err(RegistryError::NoName));
        let deaf = Hook { events: vec![], ..hook("deaf", 1) };
        assert_eq!(registry.register(deaf), Err(RegistryError::NoEvents("deaf".to_owned())));
        assert_eq!(registry.configure("two", true, None), Err(RegistryError::Unknown("two".to_owned())));
    }
}
