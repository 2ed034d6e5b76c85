//! A configuration of which only those hooks are built that somebody asks for.
//!
//! ```text
//! text ─ digest ─► index on the shelf? ─ yes ─► frame at once, the hooks of an event when it comes
//!                         └─ no ─► read whole, as ever; and its index is put on the shelf for the next command
//! ```
//!
//! Invariants:
//! - It gives the hooks that the whole configuration gives, whatever is on the shelf.
//! - A configuration that is wrong has no index: it is read whole, and its mistakes are shown, every time.
//! - After it was read nothing outside is looked at, so hooks may be asked for in the middle of a decision.
//!
//! Not here: what an index is (`config::Index`), and where it is kept (`shelf`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use windlass_engine::{Digest, EventType};

use crate::config::{Config, ConfigError, Hook, Index, Point, Written};
use crate::plan;
use crate::shelf::Shelf;

/// A shorter text is understood as quickly as an index is found.
const SHORT: usize = 1024;

/// A configuration and its hooks.
#[derive(Debug)]
pub struct Outline {
    frame: Config,
    /// `None` where the frame is the whole.
    index: Option<Kept>,
    built: Mutex<BTreeMap<EventType, Arc<[Hook]>>>,
    /// Read where the index turned out to be of no use.
    whole: OnceLock<Config>,
}

#[derive(Debug)]
struct Kept {
    index: Index,
    shelf: Shelf,
    key: Digest,
}

impl Outline {
    /// What was written, as far as it is needed.
    pub fn of(written: Written) -> Result<Self, ConfigError> {
        match written.text().len() {
            0..SHORT => Config::parse(written).map(Self::from),
            _ => Self::with(Shelf::find(), written),
        }
    }

    fn with(shelf: Option<Shelf>, written: Written) -> Result<Self, ConfigError> {
        let Some(shelf) = shelf else { return Config::parse(written).map(Self::from) };
        let key = shelf.key(written.text().digest());
        if let Some(index) = shelf.read(key).and_then(|bytes| Index::open(bytes, key))
            && let Some(frame) = index.frame(written.clone())
        {
            return Ok(Self::new(frame, Some(Kept { index, shelf, key })));
        }
        let config = Config::parse(written)?;
        shelf.keep(key, || Index::pack(&config, key, plan::is_owing));
        Ok(Self::from(config))
    }

    fn new(frame: Config, index: Option<Kept>) -> Self {
        Self { frame, index, built: Mutex::default(), whole: OnceLock::new() }
    }

    /// The configuration. Of its hooks only those of the registry and of `notify` are sure to be there.
    pub fn frame(&self) -> &Config {
        &self.frame
    }

    /// The events that have hooks which are owed.
    pub fn events(&self) -> Vec<EventType> {
        let owing = self.frame.hooks.iter().filter(|hook| plan::is_owing(hook));
        let mut events: BTreeSet<_> = owing.flat_map(Hook::points).flat_map(Point::events).collect();
        events.extend(self.index.iter().flat_map(|kept| kept.index.events()));
        events.into_iter().collect()
    }

    /// The hooks that an event makes owed, in the order of definition.
    pub fn hooks_of(&self, event: EventType) -> Arc<[Hook]> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.entry(event).or_insert_with(|| self.build(event)).clone()
    }

    fn build(&self, event: EventType) -> Arc<[Hook]> {
        let meant = |hook: &&Hook| hook.is_at(event) && plan::is_owing(hook);
        match self.index.as_ref().and_then(|kept| kept.index.hooks_of(event, self.frame.text())) {
            Some(indexed) => indexed.into_iter().chain(self.frame.hooks.iter().filter(meant).cloned()).collect(),
            None => self.whole().hooks.iter().filter(meant).cloned().collect(),
        }
    }

    /// The hook of that name. Whatever is owed was built before.
    pub fn hook(&self, name: &str) -> Option<Hook> {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let named = |hook: &&Hook| hook.name == name;
        let found = built.values().flat_map(|hooks| hooks.iter()).find(named);
        found.or_else(|| self.whole().hooks.iter().find(named)).cloned()
    }

    fn whole(&self) -> &Config {
        match &self.index {
            None => &self.frame,
            Some(_) => self.whole.get_or_init(|| {
                Config::of(self.frame.file(), self.frame.text()).expect("only what was read whole has an index")
            }),
        }
    }
}

impl From<Config> for Outline {
    fn from(config: Config) -> Self {
        Self::new(config, None)
    }
}

impl Drop for Outline {
    /// An index that was of no use is made anew by whoever comes next.
    fn drop(&mut self) {
        if let (Some(kept), Some(_)) = (&self.index, self.whole.get()) {
            kept.shelf.forget(kept.key);
        }
    }
}

#[cfg(test)]
#[path = "outline_tests.rs"]
pub mod tests;
