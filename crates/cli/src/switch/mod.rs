//! The text of a configuration with one of its hooks switched on or off, or with another word on when it runs.
//!
//! ```text
//! text ─► tree ─ place ─► where the hook stands ─ ways ─► texts that may say it ─ check ─► the first that says just that
//! ```
//!
//! Invariants:
//! - Text in, text out: nothing is read, written or started here.
//! - What comes out says what was there, and this one thing of this hook. If anything else would change, nothing comes out.
//! - Comments, order and layout stay.
//!
//! Not here: a hook that stands nowhere yet (`import::edit` adds it); what people call it, and writing (`commands/hooks`).

mod place;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
mod ways;

use std::fmt;

use crate::config::{self, Config, Hook, Node, Point, Value};
use crate::import::Obstacle;
use place::Place;

/// What can be said of a hook that stands somewhere already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Enabled(bool),
    Priority(i64),
    /// The further points at which it runs.
    Events(Vec<Point>),
}

impl Said {
    /// The field that says it.
    fn field(&self) -> &'static str {
        match self {
            Self::Enabled(_) => "enabled",
            Self::Priority(_) => "priority",
            Self::Events(_) => "events",
        }
    }

    /// How it is written, with the quotes that the text around it has.
    fn written(&self, quote: &str) -> String {
        match self {
            Self::Enabled(on) => on.to_string(),
            Self::Priority(priority) => priority.to_string(),
            Self::Events(points) => {
                let points: Vec<String> = points.iter().map(|point| format!("{quote}{point}{quote}")).collect();
                format!("[{}]", points.join(", "))
            }
        }
    }

    fn is_said_by(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Enabled(on), Value::Bool(said)) => on == said,
            (Self::Priority(priority), Value::Integer(said)) => priority == said,
            (Self::Events(points), Value::List(said)) => {
                let mut pairs = points.iter().zip(said);
                points.len() == said.len() && pairs.all(|(point, said)| is(said, point.name()))
            }
            _ => false,
        }
    }

    fn holds_of(&self, hook: &Hook) -> bool {
        match self {
            Self::Enabled(on) => hook.enabled() == *on,
            Self::Priority(priority) => hook.entry.priority == Some(*priority),
            Self::Events(points) => hook.events == *points,
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.written(""))
    }
}

/// The text of a configuration with its hook of that number switched.
pub fn edit(config: &Config, hook: usize, on: bool) -> Result<String, Obstacle> {
    set(config, hook, &Said::Enabled(on))
}

/// The text of a configuration in which this is said of its hook of that number.
pub fn set(config: &Config, hook: usize, said: &Said) -> Result<String, Obstacle> {
    let lost = || Obstacle::Layout("the hook cannot be found in the text".to_owned());
    let text: &str = config.text();
    let tree = config::tree(text).map_err(|problem| Obstacle::Layout(problem.to_string()))?;
    let places = place::all(&tree).filter(|places| places.len() == config.hooks.len()).ok_or_else(lost)?;
    let place = places.get(hook).ok_or_else(lost)?;
    let entry = place::at(&tree, place).ok_or_else(lost)?;
    let meant = Meant { config, tree: &tree, hook, place, said };
    let mut nearest = Miss::Unreadable;
    for edits in ways::ways(text, entry, said) {
        let edited = applied(text, edits);
        match meant.check(&edited) {
            Ok(()) => return Ok(edited),
            Err(miss) => nearest = nearest.max(miss),
        }
    }
    Err(nearest.obstacle())
}

/// What a text is to say: everything that the configuration says, and this of one hook.
struct Meant<'c> {
    config: &'c Config,
    tree: &'c Node,
    /// The number of the hook, and where it stands in the tree.
    hook: usize,
    place: &'c Place,
    said: &'c Said,
}

impl Meant<'_> {
    fn check(&self, edited: &str) -> Result<(), Miss> {
        let Self { config, hook, said, .. } = *self;
        let new = config::tree(edited).map_err(|_| Miss::Unreadable)?;
        if !is_switched(self.tree, &new, Some(self.place), said) {
            return Err(Miss::Shared);
        }
        let after = Config::of(config.file(), edited).map_err(|error| Miss::Wrong(error.into_problem()))?;
        let (before, now) = (config.hooks.get(hook), after.hooks.get(hook));
        let same = before.zip(now).is_some_and(|(before, now)| before.name == now.name && said.holds_of(now));
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
fn is_switched(old: &Node, new: &Node, place: Option<&[usize]>, said: &Said) -> bool {
    if place.is_some_and(<[usize]>::is_empty) {
        return is_entry(old, new, said);
    }
    let below = |index: usize| place.and_then(|place| place.split_first()).filter(|(next, _)| **next == index);
    let same = |index: usize, old: &Node, new: &Node| is_switched(old, new, below(index).map(|(_, rest)| rest), said);
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

/// Whether two trees say the same.
pub fn is_same(old: &Node, new: &Node) -> bool {
    is_switched(old, new, None, &Said::Enabled(false))
}

/// Whether a hook says what it said, and this.
fn is_entry(old: &Node, new: &Node, said: &Said) -> bool {
    let Value::Map(fields) = &new.value else { return false };
    let is_it = |name: &Node| is(name, said.field());
    let found: Vec<_> = fields.iter().filter(|(name, _)| is_it(name)).map(|(_, value)| &value.value).collect();
    if !matches!(found.as_slice(), [value] if said.is_said_by(value)) {
        return false;
    }
    let rest: Vec<_> = fields.iter().filter(|(name, _)| !is_it(name)).collect();
    match &old.value {
        Value::Map(fields) => {
            let old: Vec<_> = fields.iter().filter(|(name, _)| !is_it(name)).collect();
            let mut pairs = old.iter().zip(&rest);
            old.len() == rest.len() && pairs.all(|(old, new)| is_same(&old.0, &new.0) && is_same(&old.1, &new.1))
        }
        Value::Text(_) => matches!(rest.as_slice(), [(name, word)] if is(name, "use") && is_same(old, word)),
        _ => false,
    }
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
