//! The registry of pure hooks: the hooks that run inside the commit of an event, and their order.
//!
//! Invariants:
//! - Every hook has a unique name and at least one event.
//! - Lower priorities run first, equal ones in order of registration. Disabling and enabling a hook keeps its place.
//! - Registering, finding and moving a hook takes logarithmic time in the number of hooks; so does an event with few hooks.
//!
//! Not here: hooks that run programs (`decide/hook_selection.rs`), and the actions of the hooks (`decide/cascade.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::effects::action::HookAction;
use crate::effects::builtins;
use crate::log::event::EventRecord;
use crate::log::event_type::EventType;
use crate::view::{StateView, ViewError};

/// The failure of a pure hook.
#[derive(Debug, thiserror::Error)]
pub enum PureHookError {
    /// The hook's own failure: it is recorded, and the others still run.
    #[error("{0}")]
    Failed(String),
    /// The store's failure: it ends the whole command.
    #[error(transparent)]
    View(#[from] ViewError),
}

impl PureHookError {
    /// Returns the hook's own failure, with its message.
    ///
    /// ```
    /// # use windlass_engine::PureHookError;
    /// let number: Result<u32, PureHookError> = "seven".parse().map_err(PureHookError::failed);
    /// assert_eq!(number.unwrap_err().to_string(), "invalid digit found in string");
    /// ```
    pub fn failed(why: impl Display) -> Self {
        Self::Failed(why.to_string())
    }
}

/// A function that sees an event and the state after its command, and returns actions. It runs inside a commit: it must be
/// quick and must have no effects outside.
pub type PureHookHandler =
    Arc<dyn Fn(&EventRecord, &dyn StateView) -> Result<Vec<HookAction>, PureHookError> + Send + Sync>;

/// A pure hook.
#[derive(Clone)]
#[non_exhaustive]
pub struct PureHook {
    pub name: String,
    pub events: Vec<EventType>,
    /// Lower runs first; equal ones in order of registration.
    pub priority: i64,
    pub enabled: bool,
    pub description: String,
    /// Free data of the hook's author. The rules do not use it.
    pub metadata: Map<String, Value>,
    handler: PureHookHandler,
}

impl PureHook {
    /// The default priority.
    pub const DEFAULT_PRIORITY: i64 = 100;

    /// Returns a hook for these events: enabled, and of priority [`PureHook::DEFAULT_PRIORITY`].
    ///
    /// ```
    /// use windlass_engine::{EventType, HookAction, HookRegistry, PureHook, TaskAction};
    ///
    /// let hook = PureHook::new("label-new", [EventType::TaskCreated], |record, _view| {
    ///     let Some(task) = record.envelope.node.task_id() else { return Ok(vec![]) };
    ///     Ok(vec![HookAction::UpdateTask { task, action: TaskAction::AddLabels(vec!["new".to_owned()]) }])
    /// });
    /// let mut registry = HookRegistry::with_builtins();
    /// registry.register(hook.priority(30).description("labels every new task"))?;
    /// # Ok::<(), windlass_engine::RegistryError>(())
    /// ```
    pub fn new(
        name: impl Into<String>,
        events: impl IntoIterator<Item = EventType>,
        handler: impl Fn(&EventRecord, &dyn StateView) -> Result<Vec<HookAction>, PureHookError> + Send + Sync + 'static,
    ) -> Self {
        let mut heard = BTreeSet::new();
        Self {
            name: name.into(),
            events: events.into_iter().filter(|event| heard.insert(*event)).collect(),
            priority: Self::DEFAULT_PRIORITY,
            enabled: true,
            description: String::new(),
            metadata: Map::new(),
            handler: Arc::new(handler),
        }
    }

    #[must_use]
    pub fn priority(self, priority: i64) -> Self {
        Self { priority, ..self }
    }

    /// Makes the hook registered but inactive until it is enabled.
    #[must_use]
    pub fn disabled(self) -> Self {
        Self { enabled: false, ..self }
    }

    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    #[must_use]
    pub fn author(self, author: impl Into<String>) -> Self {
        self.metadata([("author".to_owned(), Value::String(author.into()))].into_iter().collect())
    }

    #[must_use]
    pub fn version(self, version: impl Into<String>) -> Self {
        self.metadata([("version".to_owned(), Value::String(version.into()))].into_iter().collect())
    }

    /// Adds metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata.extend(metadata);
        self
    }

    /// Runs the hook. A panic is a failure of the hook, for programs that use this library and unwind: the closure is theirs. The
    /// release build of `windlass` aborts on a panic.
    pub(crate) fn run_handler(
        &self,
        record: &EventRecord,
        view: &dyn StateView,
    ) -> Result<Vec<HookAction>, PureHookError> {
        catch_unwind(AssertUnwindSafe(|| (self.handler)(record, view))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
            Err(PureHookError::Failed(format!("it panicked: {}", said.unwrap_or("without a message"))))
        })
    }
}

impl fmt::Debug for PureHook {
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

/// The error of a hook that cannot be registered or found.
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

/// The number of a registration, in ascending order. It breaks ties.
type RegistrationOrder = u64;

/// The hooks in order of registration, and by event in the order in which they run.
#[derive(Debug, Clone, Default)]
pub struct HookRegistry {
    hooks: BTreeMap<RegistrationOrder, PureHook>,
    names: BTreeMap<String, RegistrationOrder>,
    /// Enabled hooks only.
    by_event: BTreeMap<EventType, BTreeSet<(i64, RegistrationOrder)>>,
    next: RegistrationOrder,
}

impl HookRegistry {
    /// Returns the registry with its built-in hooks in their default state.
    pub fn with_builtins() -> Self {
        let mut registry = Self::default();
        for hook in builtins::builtin_hooks() {
            registry.register(hook).expect("the built-ins are well formed");
        }
        registry
    }

    /// Adds a hook. A hook of the same name is never replaced: two parts of a program could disable each other unnoticed.
    pub fn register(&mut self, hook: PureHook) -> Result<(), RegistryError> {
        if hook.name.trim().is_empty() {
            return Err(RegistryError::NoName);
        }
        if hook.events.is_empty() {
            return Err(RegistryError::NoEvents(hook.name));
        }
        if self.names.contains_key(&hook.name) {
            return Err(RegistryError::Duplicate(hook.name));
        }
        let turn = self.next;
        self.next += 1;
        self.names.insert(hook.name.clone(), turn);
        self.insert_hook(turn, hook);
        Ok(())
    }

    /// Removes a hook and returns it.
    pub fn unregister(&mut self, name: &str) -> Result<PureHook, RegistryError> {
        let turn = self.find_registration(name)?;
        self.names.remove(name);
        Ok(self.remove_hook(turn))
    }

    pub fn enable_hook(&mut self, name: &str) -> Result<(), RegistryError> {
        self.change_hook(name, |hook| hook.enabled = true)
    }

    /// Disables a hook; it stays registered.
    pub fn disable_hook(&mut self, name: &str) -> Result<(), RegistryError> {
        self.change_hook(name, |hook| hook.enabled = false)
    }

    pub fn set_priority(&mut self, name: &str, priority: i64) -> Result<(), RegistryError> {
        self.change_hook(name, |hook| hook.priority = priority)
    }

    /// Enables or disables a hook, and moves it if a priority is given.
    pub fn configure_hook(&mut self, name: &str, enabled: bool, priority: Option<i64>) -> Result<(), RegistryError> {
        self.change_hook(name, |hook| {
            hook.enabled = enabled;
            hook.priority = priority.unwrap_or(hook.priority);
        })
    }

    pub fn get(&self, name: &str) -> Option<&PureHook> {
        self.names.get(name).map(|turn| &self.hooks[turn])
    }

    /// Returns all hooks, disabled ones included, in order of registration.
    pub fn hooks(&self) -> impl ExactSizeIterator<Item = &PureHook> + DoubleEndedIterator {
        self.hooks.values()
    }

    /// Returns the enabled hooks of an event, in the order in which they run.
    pub fn hooks_for_event(&self, event: EventType) -> impl Iterator<Item = &PureHook> {
        self.by_event.get(&event).into_iter().flatten().map(|(_, turn)| &self.hooks[turn])
    }

    fn find_registration(&self, name: &str) -> Result<RegistrationOrder, RegistryError> {
        self.names.get(name).copied().ok_or_else(|| RegistryError::Unknown(name.to_owned()))
    }

    /// Changes anything but the name and the events.
    fn change_hook(&mut self, name: &str, change: impl FnOnce(&mut PureHook)) -> Result<(), RegistryError> {
        let turn = self.find_registration(name)?;
        let mut hook = self.remove_hook(turn);
        change(&mut hook);
        self.insert_hook(turn, hook);
        Ok(())
    }

    fn insert_hook(&mut self, turn: RegistrationOrder, hook: PureHook) {
        for event in hook.events.iter().filter(|_| hook.enabled) {
            self.by_event.entry(*event).or_default().insert((hook.priority, turn));
        }
        self.hooks.insert(turn, hook);
    }

    fn remove_hook(&mut self, turn: RegistrationOrder) -> PureHook {
        let hook = self.hooks.remove(&turn).expect("a turn that was given out");
        for event in &hook.events {
            if let Some(heard) = self.by_event.get_mut(event) {
                heard.remove(&(hook.priority, turn));
            }
        }
        hook
    }
}

#[cfg(test)]
mod tests;
