//! The text of a configuration with one of its hooks switched on or off.
//!
//! ```text
//! text ─► tree ─ place ─► where the hook stands ─ ways ─► texts that may say it ─ check ─► the first that says just that
//! ```
//!
//! Invariants:
//! - Text in, text out: nothing is read, written or started here.
//! - What comes out says what was there, and that this hook is on or off. If anything else would change, nothing comes out.
//! - Comments, order and layout stay.
//!
//! Not here: a hook that stands nowhere yet (`import::edit` adds it); what people call it, and writing (`commands/hooks`).

mod place;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
mod ways;

use crate::config::{self, Config, Node, Value};
use crate::import::Obstacle;
use place::Place;

/// The field that says whether a hook runs.
const ENABLED: &str = "enabled";

/// The text of a configuration with its hook of that number switched.
pub fn edit(config: &Config, hook: usize, on: bool) -> Result<String, Obstacle> {
    let lost = || Obstacle::Layout("the hook cannot be found in the text".to_owned());
    let text: &str = config.text();
    let tree = config::tree(text).map_err(|problem| Obstacle::Layout(problem.to_string()))?;
    let places = place::all(&tree).filter(|places| places.len() == config.hooks.len()).ok_or_else(lost)?;
    let place = places.get(hook).ok_or_else(lost)?;
    let entry = place::at(&tree, place).ok_or_else(lost)?;
    let meant = Meant { config, tree: &tree, hook, place, on };
    let mut nearest = Miss::Unreadable;
    for edits in ways::ways(text, entry, on) {
        let edited = applied(text, edits);
        match meant.check(&edited) {
            Ok(()) => return Ok(edited),
            Err(miss) => nearest = nearest.max(miss),
        }
    }
    Err(nearest.obstacle())
}

/// What a text is to say: everything that the configuration says, and whether one hook is on.
struct Meant<'c> {
    config: &'c Config,
    tree: &'c Node,
    /// The number of the hook, and where it stands in the tree.
    hook: usize,
    place: &'c Place,
    on: bool,
}

impl Meant<'_> {
    fn check(&self, edited: &str) -> Result<(), Miss> {
        let Self { config, hook, on, .. } = *self;
        let new = config::tree(edited).map_err(|_| Miss::Unreadable)?;
        if !is_switched(self.tree, &new, Some(self.place), on) {
            return Err(Miss::Shared);
        }
        let after = Config::of(config.file(), edited).map_err(|error| Miss::Wrong(error.into_problem()))?;
        let (before, now) = (config.hooks.get(hook), after.hooks.get(hook));
        let same = before.zip(now).is_some_and(|(before, now)| before.name == now.name && now.enabled() == on);
        match same && config.hooks.len() == after.hooks.len() {
            true => Ok(()),
            false => Err(Miss::Shared),
        }
    }
}

/// How near a text came that is not the one that was meant, farthest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    Unreadable,
    Shared,
    Wrong(String),
}

impl Miss {
    fn obstacle(self) -> Obstacle {
        match self {
            Self::Unreadable => Obstacle::Layout("it is written in a way that leaves no safe place for it".to_owned()),
            Self::Shared => Obstacle::Shared,
            Self::Wrong(why) => Obstacle::Wrong(why),
        }
    }
}

/// Whether two trees are the same but for the hook at a place, if it is in them.
fn is_switched(old: &Node, new: &Node, place: Option<&[usize]>, on: bool) -> bool {
    if place.is_some_and(<[usize]>::is_empty) {
        return is_entry(old, new, on);
    }
    let below = |index: usize| place.and_then(|place| place.split_first()).filter(|(next, _)| **next == index);
    let same = |index: usize, old: &Node, new: &Node| is_switched(old, new, below(index).map(|(_, rest)| rest), on);
    match (&old.value, &new.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(old), Value::Bool(new)) => old == new,
        (Value::Integer(old), Value::Integer(new)) => old == new,
        (Value::Unsigned(old), Value::Unsigned(new)) => old == new,
        (Value::Float(old), Value::Float(new)) => old.to_bits() == new.to_bits(),
        (Value::Text(old), Value::Text(new)) => old == new,
        (Value::List(old), Value::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).enumerate().all(|(index, (old, new))| same(index, old, new))
        }
        (Value::Map(old), Value::Map(new)) => {
            let mut pairs = old.iter().zip(new).enumerate();
            old.len() == new.len()
                && pairs.all(|(index, (old, new))| is_same(&old.0, &new.0) && same(index, &old.1, &new.1))
        }
        _ => false,
    }
}

fn is_same(old: &Node, new: &Node) -> bool {
    is_switched(old, new, None, false)
}

/// Whether a hook says what it said, and that it is on or off.
fn is_entry(old: &Node, new: &Node, on: bool) -> bool {
    let Value::Map(fields) = &new.value else { return false };
    let flags: Vec<_> = fields.iter().filter(|(name, _)| is_flag(name)).map(|(_, flag)| &flag.value).collect();
    if !matches!(flags.as_slice(), [Value::Bool(flag)] if *flag == on) {
        return false;
    }
    let rest: Vec<_> = fields.iter().filter(|(name, _)| !is_flag(name)).collect();
    match &old.value {
        Value::Map(fields) => {
            let old: Vec<_> = fields.iter().filter(|(name, _)| !is_flag(name)).collect();
            let mut pairs = old.iter().zip(&rest);
            old.len() == rest.len() && pairs.all(|(old, new)| is_same(&old.0, &new.0) && is_same(&old.1, &new.1))
        }
        Value::Text(_) => matches!(rest.as_slice(), [(name, word)] if is(name, "use") && is_same(old, word)),
        _ => false,
    }
}

fn is_flag(name: &Node) -> bool {
    is(name, ENABLED)
}

fn is(name: &Node, text: &str) -> bool {
    matches!(&name.value, Value::Text(name) if name == text)
}

/// The text with everything put into its place.
fn applied(text: &str, edits: Vec<ways::Edit>) -> String {
    let mut edited = text.to_owned();
    // From the end, so that what comes before stays where it is.
    for (place, new) in edits.into_iter().rev() {
        edited.replace_range(place, &new);
    }
    edited
}
