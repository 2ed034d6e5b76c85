//! What a configuration says, laid out so that one event's hooks can be had without reading the others'.
//!
//! ```text
//! length of the table │ table: name, start, length, digest of each part │ digest of key and table │ parts
//! ```
//!
//! The first part is the frame: everything but the hooks, and those of the registry. Then comes one part for each event
//! that has hooks. A hook is kept as the tree that it was read from, and is built by the same code as from the file.
//!
//! Invariants:
//! - An index gives what the file gives: it is made of a whole, valid configuration, and only if what can be read back from
//!   it is the same to the last field.
//! - A part is looked at only if it has the digest that the table says, and the table only if it belongs to the key.
//!
//! Not here: where indexes are kept (`shelf`), and what is done without one (`outline`).

mod packed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::mem;
use std::ops::Range;

use windlass_engine::{Digest, EventType};

use self::packed::{Packed, Unpacking};
use super::entry::Points;
use super::file::Settings;
use super::hooks::{self, Hook, Place, Scope};
use super::point::Point;
use super::reader;
use super::yaml::{self, Node, Value};
use super::{Config, Written, notices, prompt};

/// The name of the part that is no event's.
const FRAME: &str = "";

/// The parts of a configuration.
#[derive(Debug)]
pub struct Index {
    bytes: Vec<u8>,
    frame: Part,
    events: BTreeMap<EventType, Part>,
}

#[derive(Debug)]
struct Part {
    range: Range<usize>,
    digest: Digest,
}

impl Index {
    /// The bytes of a configuration's index, with those of its hooks that are meant. `None` where it cannot be had.
    pub fn pack(config: &Config, key: Digest, meant: impl Fn(&Hook) -> bool) -> Option<Vec<u8>> {
        let mut tree = yaml::parse(config.text()).ok()?;
        let origins = origins(config, take_hooks(&mut tree, config.text())?)?;
        let mut frame = Packed::beside(config.text());
        frame.node(&tree);
        list(&registered(config), &origins, &mut frame)?;
        let mut parts = BTreeMap::from([(FRAME, frame.bytes)]);
        let by_event = by_event(config, meant);
        for (event, hooks) in &by_event {
            let mut part = Packed::beside(config.text());
            list(hooks, &origins, &mut part)?;
            parts.insert(event.name(), part.bytes);
        }
        let bytes = assemble(&parts, key);
        Self::open(bytes.clone(), key)?.agrees(config, &by_event).then_some(bytes)
    }

    /// The index in these bytes, if they are one of this key.
    pub fn open(bytes: Vec<u8>, key: Digest) -> Option<Self> {
        let mut rest = Unpacking::beside("", &bytes);
        let length = rest.number()?;
        let table = rest.bytes(length)?;
        let digest = rest.bytes(size_of::<Digest>())?;
        if digest != sealed(key, table).0 {
            return None;
        }
        let body = bytes.len() - rest.rest.len();
        let mut parts = Unpacking::beside("", table).many(|table| {
            let name = table.text()?;
            let start = body.checked_add(table.number()?)?;
            let range = start..start.checked_add(table.number()?)?;
            let digest = Digest(table.bytes(size_of::<Digest>())?.try_into().ok()?);
            Some((name.to_owned(), Part { range, digest }))
        })?;
        let place = parts.iter().position(|(name, _)| name == FRAME)?;
        let (_, frame) = parts.swap_remove(place);
        let named = |(name, part): (String, Part)| Some((name.parse().ok()?, part));
        let events = parts.into_iter().map(named).collect::<Option<_>>()?;
        Some(Self { bytes, frame, events })
    }

    /// The events that have hooks.
    pub fn events(&self) -> impl Iterator<Item = EventType> {
        self.events.keys().copied()
    }

    /// The configuration without any hooks but those of the registry and of `notify`. `None` where the index is damaged.
    pub fn frame(&self, written: Written) -> Option<Config> {
        let mut part = self.part(&self.frame, written.text())?;
        let settings: Settings = reader::read(&part.node()?, written.text()).ok()?;
        let mut hooks = built(part, written.text())?;
        hooks.extend(notices::hooks(&settings, &hooks, written.text()).ok()?);
        let prompt = prompt(&settings, written.text()).ok()?;
        Some(Config { written, settings, hooks, prompt })
    }

    /// The hooks of an event, in the order of definition. `None` where the index is damaged.
    pub fn hooks_of(&self, event: EventType, text: &str) -> Option<Vec<Hook>> {
        match self.events.get(&event) {
            None => Some(Vec::new()),
            Some(part) => built(self.part(part, text)?, text),
        }
    }

    fn part<'a>(&'a self, part: &Part, text: &'a str) -> Option<Unpacking<'a>> {
        let bytes = self.bytes.get(part.range.clone())?;
        (Digest::of(bytes) == part.digest).then_some(Unpacking::beside(text, bytes))
    }

    /// Whether what the index gives is what the file gives.
    fn agrees(&self, config: &Config, by_event: &BTreeMap<EventType, Vec<&Hook>>) -> bool {
        let Some(frame) = self.frame(config.written.clone()) else { return false };
        let hooks_agree = |(event, written): (&EventType, &Vec<&Hook>)| {
            self.hooks_of(*event, config.text()).is_some_and(|hooks| same(&hooks, written))
        };
        same(&frame.settings, &without_hooks(&config.settings))
            && same(&frame.hooks, &config.hooks.iter().filter(|hook| is_framed(hook)).collect::<Vec<_>>())
            && same(&frame.prompt, &config.prompt)
            && self.events.keys().eq(by_event.keys())
            && by_event.iter().all(hooks_agree)
    }
}

/// The hooks that are meant, by the events that they come with, in the order of definition.
fn by_event(config: &Config, meant: impl Fn(&Hook) -> bool) -> BTreeMap<EventType, Vec<&Hook>> {
    let mut by_event: BTreeMap<_, Vec<&Hook>> = BTreeMap::new();
    for hook in config.hooks.iter().filter(|hook| !is_framed(hook) && meant(hook)) {
        let events: BTreeSet<EventType> = hook.points().flat_map(Point::events).collect();
        events.into_iter().for_each(|event| by_event.entry(event).or_default().push(hook));
    }
    by_event
}

/// Everything that is known of a thing is in how it shows itself: these have no equality of their own.
fn same(one: &impl Debug, other: &impl Debug) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

/// The digest of a table, which belongs to one key alone.
fn sealed(key: Digest, table: &[u8]) -> Digest {
    key.chain(Digest::of(table))
}

fn registered(config: &Config) -> Vec<&Hook> {
    config.hooks.iter().filter(|hook| hook.is_registered()).collect()
}

/// Whether a hook comes with the frame: the registry's, and those that `notify` means.
fn is_framed(hook: &Hook) -> bool {
    hook.is_registered() || hook.point == Point::NOTIFY
}

fn without_hooks(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    let emptied = |points: &mut Points| points.0.iter_mut().for_each(|(_, entries)| *entries = Some(Vec::new()));
    emptied(&mut settings.hooks);
    settings.task_types.values_mut().for_each(|task_type| emptied(&mut task_type.value.hooks));
    settings.agents.values_mut().for_each(|agent| emptied(&mut agent.value.hooks));
    settings
}

/// The trees of hooks, in the order in which they stand at their place.
type Trees = BTreeMap<(Scope, Point), Vec<Node>>;

/// Takes the hooks out of a tree, and leaves an empty list at every point.
fn take_hooks(tree: &mut Node, text: &str) -> Option<Trees> {
    let mut trees = Trees::new();
    for (key, value) in entries(tree) {
        let scope: fn(String) -> Scope = match reader::text(key, text)? {
            "hooks" => {
                take_points(&Scope::Project, value, text, &mut trees)?;
                continue;
            }
            "task_types" => Scope::TaskType,
            "agents" => Scope::Agent,
            _ => continue,
        };
        for (name, owner) in entries(value) {
            let scope = scope(reader::text(name, text)?.to_owned());
            for (key, points) in entries(owner) {
                if reader::text(key, text)? == "hooks" {
                    take_points(&scope, points, text, &mut trees)?;
                }
            }
        }
    }
    Some(trees)
}

fn take_points(scope: &Scope, points: &mut Node, text: &str, trees: &mut Trees) -> Option<()> {
    for (point, list) in entries(points) {
        let point = Point::parse(reader::text(point, text)?)?;
        let Value::List(hooks) = &mut list.value else { return None };
        trees.insert((scope.clone(), point), mem::take(hooks));
    }
    Some(())
}

/// The entries of a map; what is none has none.
fn entries(node: &mut Node) -> impl Iterator<Item = (&Node, &mut Node)> {
    let entries = match &mut node.value {
        Value::Map(entries) => entries.as_mut_slice(),
        _ => &mut [],
    };
    entries.iter_mut().map(|(key, value)| (&*key, value))
}

/// By a hook's name: which one it is at its place, and its tree.
type Origins<'a> = BTreeMap<&'a str, (usize, Node)>;

fn origins(config: &Config, trees: Trees) -> Option<Origins<'_>> {
    let mut trees: BTreeMap<_, _> =
        trees.into_iter().map(|(place, list)| (place, list.into_iter().enumerate())).collect();
    let mut origins = Origins::new();
    // What `notify` means stands nowhere as a hook.
    for Hook { scope, point, name, .. } in config.hooks.iter().filter(|hook| hook.point != Point::NOTIFY) {
        origins.insert(name, trees.get_mut(&(scope.clone(), *point))?.next()?);
    }
    Some(origins)
}

/// Hooks, each with its place and its tree.
fn list(hooks: &[&Hook], origins: &Origins<'_>, packed: &mut Packed<'_>) -> Option<()> {
    packed.number(hooks.len());
    for hook in hooks {
        let (index, tree) = origins.get(hook.name.as_str())?;
        match &hook.scope {
            Scope::Project => packed.number(0),
            Scope::TaskType(name) => {
                packed.number(1);
                packed.text(name);
            }
            Scope::Agent(name) => {
                packed.number(2);
                packed.text(name);
            }
        }
        packed.text(hook.point.name());
        packed.number(*index);
        packed.number(hook.line);
        packed.node(tree);
    }
    Some(())
}

fn built(mut part: Unpacking<'_>, text: &str) -> Option<Vec<Hook>> {
    let written = part.many(|part| {
        let scope = match part.number()? {
            0 => Scope::Project,
            1 => Scope::TaskType(part.text()?.to_owned()),
            2 => Scope::Agent(part.text()?.to_owned()),
            _ => return None,
        };
        let place = Place { point: Point::parse(part.text()?)?, index: part.number()?, line: part.number()? };
        Some((scope, place, reader::read(&part.node()?, text).ok()?))
    })?;
    hooks::build(&written, text).ok()
}

fn assemble(parts: &BTreeMap<&str, Vec<u8>>, key: Digest) -> Vec<u8> {
    let mut table = Packed::beside("");
    table.number(parts.len());
    let mut start = 0;
    for (name, part) in parts {
        table.text(name);
        table.number(start);
        table.number(part.len());
        table.bytes.extend(Digest::of(part).0);
        start += part.len();
    }
    let mut bytes = Packed::beside("");
    bytes.number(table.bytes.len());
    bytes.bytes.extend_from_slice(&table.bytes);
    bytes.bytes.extend(sealed(key, &table.bytes).0);
    parts.values().for_each(|part| bytes.bytes.extend_from_slice(part));
    bytes.bytes
}
