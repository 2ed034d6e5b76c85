//! The hooks of one event, made when they are first asked for.
//!
//! Of a thousand hooks most commands meet one. What it takes to build the others, and to compile their conditions, is left
//! until an event comes that they are for.
//!
//! Invariants:
//! - Making them happens once, and clones share what was made.
//! - Whoever hands them over makes the same ones whenever he is asked: nothing outside is looked at while deciding.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use super::owing::Planned;

type Make = Box<dyn FnOnce() -> Vec<Planned> + Send>;

/// The hooks of one event, in the order in which they run.
#[derive(Clone)]
pub struct PlannedHooks(Arc<LazyLock<Vec<Planned>, Make>>);

impl PlannedHooks {
    /// Hooks that are made when they are first asked for.
    pub fn later(make: impl FnOnce() -> Vec<Planned> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }
}

impl Default for PlannedHooks {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<Planned>> for PlannedHooks {
    fn from(planned: Vec<Planned>) -> Self {
        Self::later(|| planned)
    }
}

impl Deref for PlannedHooks {
    type Target = Vec<Planned>;

    fn deref(&self) -> &Vec<Planned> {
        &self.0
    }
}

impl DerefMut for PlannedHooks {
    /// What others share stays as it is for them.
    fn deref_mut(&mut self) -> &mut Vec<Planned> {
        if Arc::get_mut(&mut self.0).is_none() {
            *self = self.to_vec().into();
        }
        Arc::get_mut(&mut self.0).expect("nobody shares it now")
    }
}

impl fmt::Debug for PlannedHooks {
    /// What nobody has asked for yet is not made to be looked at.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlannedHooks").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::debt::{HookClass, OnFailure, OwedHook};

    fn hook(name: &str) -> Planned {
        let (hook, point) = (name.to_owned(), "task_started".to_owned());
        OwedHook { hook, point, class: HookClass::Other, on_failure: OnFailure::Ignore, send_backs: None }.into()
    }

    fn names(hooks: &PlannedHooks) -> Vec<&str> {
        hooks.iter().map(|planned| planned.hook.hook.as_str()).collect()
    }

    #[test]
    fn they_are_made_once_and_only_when_asked_for() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let hooks = PlannedHooks::later(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            vec![hook("one")]
        });
        let clone = hooks.clone();
        let _ = format!("{hooks:?}");
        assert_eq!(made.load(Ordering::Relaxed), 0);
        assert_eq!([names(&hooks), names(&clone), names(&hooks)], [["one"]; 3]);
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_change_is_not_seen_by_clones() {
        let mut hooks = PlannedHooks::from(vec![hook("one")]);
        let before = hooks.clone();
        hooks.push(hook("two"));
        assert_eq!(names(&hooks), ["one", "two"]);
        assert_eq!(names(&before), ["one"]);
    }
}
