//! Import of `automation-hooks.json`: registry hooks by name, each with whether and when it runs.
//!
//! Such a file configures existing hooks and defines none. So it applies to the built-in hooks of these names, and to hooks of
//! the configuration.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::Registry;

use super::field::{entry, flag, integer, key, list, map, stranger, string, text, texts};
use super::{Dialect, HookImport, ImportRemark, ImportedAction, ImportedHook, ImportedTuning};
use crate::{Builtin, ConfigNode, ConfigProblem, NodeValue, parse_hook_point, quoted};

const HOOK: &[&str] = &["name", "enabled", "priority", "eventTypes", "metadata", "description"];

pub fn import(tree: &ConfigNode, source: &str) -> Result<HookImport, ConfigProblem> {
    let mut import = HookImport {
        from: Dialect::Automation,
        hooks: Vec::new(),
        tuned: Vec::new(),
        settings: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    map(tree, "the file")?;
    if let Some((_, ConfigNode { value: NodeValue::Text(version), at })) = entry(tree, "version")
        && version != "1.0"
    {
        return Err(ConfigProblem::new(format!("the version {} of this format is not known", quoted(version)))
            .suggest("only 1.0 is".to_owned())
            .at(at.clone()));
    }
    let Some((_, hooks)) = entry(tree, "hooks") else {
        return Err(ConfigProblem::new("there are no `hooks` in this file")
            .suggest("expected `{\"version\": \"1.0\", \"hooks\": [{\"name\": \"…\"}]}`".to_owned()));
    };
    let registry = Registry::with_builtins();
    let mut names = BTreeSet::new();
    for hook in list(hooks, "`hooks`")? {
        let line = source[..hook.at.start].matches('\n').count() + 1;
        let entries = map(hook, "a hook")?;
        let Some(name) = text(hook, "name")? else {
            return Err(ConfigProblem::new("this hook has no `name`").at(hook.at.start..hook.at.start + 1));
        };
        if let Some((_, name)) = stranger(entries, HOOK) {
            import.notes.push(ImportRemark::on(line, format!("{} has no meaning here", quoted(name))));
        }
        if !names.insert(name) {
            return Err(ConfigProblem::new(format!("the hook {} is given twice", quoted(name)))
                .suggest("keep one of them".to_owned())
                .at(hook.at.start..hook.at.start + 1));
        }
        let known = Builtin::parse(name).filter(|builtin| builtin.is_registered());
        let (Some(builtin), Some(registered)) = (known, registry.get(name)) else {
            let (enabled, priority) = (flag(hook, "enabled")?, integer(hook, "priority")?);
            let names_events = texts(hook, "eventTypes")?.is_some();
            import.tuned.push(ImportedTuning { line, name: name.to_owned(), enabled, priority, names_events });
            continue;
        };
        let own: Vec<&str> = registered.events.iter().map(|event| event.name()).collect();
        let mut wished = texts(hook, "eventTypes")?.unwrap_or_else(|| own.clone());
        wished.sort_unstable_by_key(|event| own.iter().position(|other| other == event));
        if wished != own {
            import.notes.push(ImportRemark::on(
                line,
                format!("{} runs at {}, whatever `eventTypes` says", quoted(name), own.join(", ")),
            ));
        }
        let point = own
            .first()
            .and_then(|event| parse_hook_point(event))
            .expect("a built-in hook has an event, which is a point");
        let (description, metadata) = words(hook)?;
        import.hooks.push(ImportedHook {
            point,
            line,
            what: ImportedAction::Use(builtin),
            name: name.to_owned(),
            matcher: None,
            timeout: None,
            pipe_output: false,
            enabled: flag(hook, "enabled")?,
            priority: integer(hook, "priority")?,
            description,
            metadata,
        });
    }
    Ok(import)
}

/// Returns the description of a hook, and its other metadata.
fn words(hook: &ConfigNode) -> Result<(Option<String>, BTreeMap<String, String>), ConfigProblem> {
    let mut description = text(hook, "description")?.map(str::to_owned);
    let mut rest = BTreeMap::new();
    if let Some((_, metadata)) = entry(hook, "metadata") {
        for (name, value) in map(metadata, "`metadata`")? {
            let name = key(name).unwrap_or_default();
            let value = string(value, &format!("`{name}`"))?.to_owned();
            match name {
                "description" => description = Some(value),
                _ => drop(rest.insert(name.to_owned(), value)),
            }
        }
    }
    Ok((description, rest))
}
