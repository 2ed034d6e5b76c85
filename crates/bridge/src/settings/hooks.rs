//! Our entries in the hooks of settings that are JSON.
//!
//! Invariants:
//! - Only entries whose command is ours are changed or taken away.
//! - An entry of ours stands in a rule of its own, without a matcher: it is for everything.

use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::command::{self, Program};
use super::json::{self, Container};
use super::{Before, Unfit, table};
use crate::{Agent, Moment};

/// How an agent writes what is to be run.
struct Shape {
    /// Whether the list of an event holds rules, each with a list of hooks.
    has_rules: bool,
    /// What stands in front of the command.
    kind: &'static str,
    command: &'static str,
    timeout: &'static str,
}

fn shape(agent: Agent) -> Shape {
    const KIND: &str = r#""type": "command", "#;
    match agent {
        Agent::Copilot => Shape { has_rules: false, kind: KIND, command: "bash", timeout: "timeoutSec" },
        Agent::Cursor => Shape { has_rules: false, kind: "", command: "command", timeout: "timeout" },
        _ => Shape { has_rules: true, kind: KIND, command: "command", timeout: "timeout" },
    }
}

/// Whether the agent wants to know the version of its format.
fn has_version(agent: Agent) -> bool {
    matches!(agent, Agent::Copilot | Agent::Cursor)
}

/// What is to be written at one moment.
struct Wanted {
    event: &'static str,
    command: String,
    timeout: u64,
}

impl Wanted {
    fn all(agent: Agent, program: &Program) -> Vec<Self> {
        let wanted = |moment: &Moment| {
            let patience = table::patience(agent, *moment);
            Some(Self {
                event: table::event(agent, *moment)?,
                command: command::line(program, agent, *moment, table::within(patience)),
                timeout: table::timeout(agent, patience),
            })
        };
        Moment::ALL.iter().filter_map(wanted).collect()
    }

    fn hook(&self, shape: &Shape) -> String {
        let Shape { kind, command, timeout, .. } = shape;
        format!("{{{kind}\"{command}\": {}, \"{timeout}\": {}}}", json::quoted(&self.command), self.timeout)
    }

    fn entry(&self, shape: &Shape) -> String {
        let hook = self.hook(shape);
        if shape.has_rules { format!("{{\"hooks\": [{hook}]}}") } else { hook }
    }
}

/// An entry of ours as it was found.
#[derive(Debug)]
struct Found {
    event: String,
    /// Its place in the list of the event.
    rule: usize,
    /// Its place in the rule's list of hooks, if it is not alone there.
    among: Option<usize>,
    hook: Range<usize>,
    command: String,
    timeout: Option<String>,
    values: Option<[Range<usize>; 2]>,
}

/// Our entries, in their order.
fn found(hooks: &Object<'_>, agent: Agent) -> Vec<Found> {
    let shape = shape(agent);
    let mut found = Vec::new();
    for event in &hooks.properties {
        let Value::Array(rules) = &event.value else { continue };
        for (rule, element) in rules.elements.iter().enumerate() {
            let Value::Object(object) = element else { continue };
            let inside =
                if shape.has_rules { object.get_array("hooks").map(|list| list.elements.as_slice()) } else { None };
            let candidates = inside.unwrap_or(std::slice::from_ref(element));
            for (at, hook) in candidates.iter().enumerate() {
                let Value::Object(hook) = hook else { continue };
                let Some(command) = json::string(hook, shape.command) else { continue };
                if !command::is_ours(command, agent) {
                    continue;
                }
                let value = |name| hook.get(name).map(|member| member.value.range());
                let range = |range: jsonc_parser::common::Range| range.start..range.end;
                found.push(Found {
                    event: event.name.as_str().to_owned(),
                    rule,
                    among: (candidates.len() > 1).then_some(at),
                    hook: range(hook.range()),
                    command: command.to_owned(),
                    timeout: hook.get_number(shape.timeout).map(|number| number.value.to_owned()),
                    values: value(shape.command).zip(value(shape.timeout)).map(|(a, b)| [range(a), range(b)]),
                });
            }
        }
    }
    found
}

fn found_in(text: &str, agent: Agent) -> Result<Vec<Found>, Unfit> {
    let Some(root) = json::root(text)? else { return Ok(Vec::new()) };
    Ok(json::object(&root, "hooks", "hooks")?.map(|hooks| found(hooks, agent)).unwrap_or_default())
}

/// Whether any entry of ours is there.
pub fn has(text: &str, agent: Agent) -> Result<bool, Unfit> {
    Ok(!found_in(text, agent)?.is_empty())
}

/// The text with our entries: added, or brought up to date where they are.
pub fn with(text: &str, agent: Agent, program: &Program) -> Result<String, Unfit> {
    let wanted = Wanted::all(agent, program);
    let mut text = prepared(text, agent, &wanted)?;
    // What is not wanted, or is there twice.
    while let Some(surplus) = {
        let found = found_in(&text, agent)?;
        let is_wanted = |event: &str| wanted.iter().any(|wanted| wanted.event == event);
        let mut seen = Vec::new();
        found.into_iter().find(|found| {
            let first = !seen.contains(&found.event);
            seen.push(found.event.clone());
            !first || !is_wanted(&found.event)
        })
    } {
        text = without_one(&text, &surplus, None);
        text = pruned(&text, &surplus.event, Before::Unknown);
    }
    for wanted in &wanted {
        text = with_one(&text, agent, wanted)?;
    }
    Ok(text)
}

/// The text with everything that ours is written into.
fn prepared(text: &str, agent: Agent, wanted: &[Wanted]) -> Result<String, Unfit> {
    let mut text = json::with_root(text)?;
    let mut add = |name: &str, value: &str| -> Result<(), Unfit> {
        let root = json::root(&text)?.expect("it was made above");
        if json::member(&root, name, name)?.is_none() {
            text = Container::from(&root).append(&text, &format!("\"{name}\": {value}"));
        }
        Ok(())
    };
    if has_version(agent) {
        add("version", "1")?;
    }
    add("hooks", "{}")?;
    for wanted in wanted {
        let root = json::root(&text)?.expect("it was made above");
        let hooks = json::object(&root, "hooks", "hooks")?.expect("it was made above");
        if json::array(hooks, wanted.event, &format!("hooks.{}", wanted.event))?.is_none() {
            text = Container::from(hooks).append(&text, &format!("\"{}\": []", wanted.event));
        }
    }
    Ok(text)
}

fn with_one(text: &str, agent: Agent, wanted: &Wanted) -> Result<String, Unfit> {
    let shape = shape(agent);
    let Some(found) = found_in(text, agent)?.into_iter().find(|found| found.event == wanted.event) else {
        let list = json::container(text, &["hooks", wanted.event]).expect("it was made before");
        return Ok(list.append(text, &wanted.entry(&shape)));
    };
    let mut text = text.to_owned();
    if found.command == wanted.command && found.timeout.as_deref() == Some(&wanted.timeout.to_string()) {
        return Ok(text);
    }
    match found.values {
        // The later one first, so that the other one stays where it is.
        Some([command, timeout]) => {
            let mut values = [(command, json::quoted(&wanted.command)), (timeout, wanted.timeout.to_string())];
            values.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
            values.into_iter().for_each(|(range, value)| text.replace_range(range, &value));
        }
        None => text.replace_range(found.hook, &wanted.hook(&shape)),
    }
    Ok(text)
}

/// The text without our entries, and without what was made only for them.
pub fn without(text: &str, agent: Agent, before: Before<'_>) -> Result<String, Unfit> {
    let mut text = text.to_owned();
    let mut events = Vec::new();
    while let Some(found) = found_in(&text, agent)?.pop() {
        text = without_one(&text, &found, before.text());
        text = pruned(&text, &found.event, before);
        events.push(found.event);
    }
    if events.is_empty() {
        return Ok(text);
    }
    // Lists that were made and then emptied by somebody else are ours all the same.
    for moment in Moment::ALL {
        if let (Before::Known(_), Some(event)) = (before, table::event(agent, *moment)) {
            text = pruned(&text, event, before);
        }
    }
    if json::container(&text, &["hooks"]).is_some_and(|hooks| hooks.is_bare(&text)) && !before.has(&["hooks"]) {
        text = json::without_member(&text, &[], "hooks", before.text()).unwrap_or(text);
    }
    if has_version(agent) && !before.has_member("version") && needs_no_version(&text, before)? {
        text = json::without_member(&text, &[], "version", before.text()).unwrap_or(text);
    }
    Ok(text)
}

/// Whether the version was only for us: nobody has added hooks since that would be lost without it.
fn needs_no_version(text: &str, before: Before<'_>) -> Result<bool, Unfit> {
    let Some(root) = json::root(text)? else { return Ok(true) };
    let is_alone = matches!(root.properties.as_slice(), [one] if one.name.as_str() == "version");
    let had_hooks = before.has(&["hooks"]);
    Ok(is_alone || (before != Before::Unknown && (had_hooks || root.get("hooks").is_none())))
}

fn without_one(text: &str, found: &Found, before: Option<&str>) -> String {
    let root = json::root(text).ok().flatten();
    let rules = root.as_ref().and_then(|root| root.get_object("hooks")).and_then(|hooks| hooks.get_array(&found.event));
    let rules = rules.expect("the entry was found in it");
    let inside = found.among.zip(rules.elements[found.rule].as_object().and_then(|rule| rule.get_array("hooks")));
    if let Some((index, list)) = inside {
        return Container::from(list).remove(text, index, None);
    }
    let was = before.and_then(|before| Some((before, json::container(before, &["hooks", &found.event])?)));
    Container::from(rules).remove(text, found.rule, was.as_ref().map(|(text, was)| (*text, was)))
}

/// The text without the list of an event that is empty and was not there before.
fn pruned(text: &str, event: &str, before: Before<'_>) -> String {
    let is_bare = json::container(text, &["hooks", event]).is_some_and(|list| list.is_bare(text));
    let pruned = (is_bare && !before.has(&["hooks", event]))
        .then(|| json::without_member(text, &["hooks"], event, before.text()))
        .flatten();
    pruned.unwrap_or_else(|| text.to_owned())
}
