//! Import of `automation-hooks.json`: registry hooks by name, each with whether and when it runs.
//!
//! Such a file configures existing hooks and defines none. So it applies to the built-in hooks of these names, and to hooks of
//! the configuration.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::HookRegistry;

use super::json_fields::{
    bool_field, expect_list, expect_object, expect_text, find_entry, find_unknown_key, integer_field, key_text,
    text_field, text_list_field,
};
use super::{HookImport, ImportDialect, ImportRemark, ImportedAction, ImportedHook, ImportedTuning};
use crate::{BuiltinHook, ConfigNode, ConfigProblem, NodeValue, parse_hook_point, quote_text};

const HOOK_KEYS: &[&str] = &["name", "enabled", "priority", "eventTypes", "metadata", "description"];

pub fn import_automation(tree: &ConfigNode, source: &str) -> Result<HookImport, ConfigProblem> {
    let mut import = HookImport {
        from: ImportDialect::Automation,
        hooks: Vec::new(),
        tuned: Vec::new(),
        settings: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    expect_object(tree, "the file")?;
    if let Some((_, ConfigNode { value: NodeValue::Text(version), at })) = find_entry(tree, "version")
        && version != "1.0"
    {
        return Err(ConfigProblem::new(format!("the version {} of this format is not known", quote_text(version)))
            .with_suggestion("only 1.0 is".to_owned())
            .with_range(at.clone()));
    }
    let Some((_, hooks)) = find_entry(tree, "hooks") else {
        return Err(ConfigProblem::new("there are no `hooks` in this file")
            .with_suggestion("expected `{\"version\": \"1.0\", \"hooks\": [{\"name\": \"…\"}]}`".to_owned()));
    };
    let registry = HookRegistry::with_builtins();
    let mut names = BTreeSet::new();
    for hook in expect_list(hooks, "`hooks`")? {
        let line = source[..hook.at.start].matches('\n').count() + 1;
        let entries = expect_object(hook, "a hook")?;
        let Some(name) = text_field(hook, "name")? else {
            return Err(ConfigProblem::new("this hook has no `name`").with_range(hook.at.start..hook.at.start + 1));
        };
        if let Some((_, name)) = find_unknown_key(entries, HOOK_KEYS) {
            import.notes.push(ImportRemark::at_line(line, format!("{} has no meaning here", quote_text(name))));
        }
        if !names.insert(name) {
            return Err(ConfigProblem::new(format!("the hook {} is given twice", quote_text(name)))
                .with_suggestion("keep one of them".to_owned())
                .with_range(hook.at.start..hook.at.start + 1));
        }
        let known = BuiltinHook::parse(name).filter(|builtin| builtin.is_registered());
        let (Some(builtin), Some(registered)) = (known, registry.get(name)) else {
            let (enabled, priority) = (bool_field(hook, "enabled")?, integer_field(hook, "priority")?);
            let names_events = text_list_field(hook, "eventTypes")?.is_some();
            import.tuned.push(ImportedTuning { line, name: name.to_owned(), enabled, priority, names_events });
            continue;
        };
        let own: Vec<&str> = registered.events.iter().map(|event| event.name()).collect();
        let mut wished = text_list_field(hook, "eventTypes")?.unwrap_or_else(|| own.clone());
        wished.sort_unstable_by_key(|event| own.iter().position(|other| other == event));
        if wished != own {
            import.notes.push(ImportRemark::at_line(
                line,
                format!("{} runs at {}; `eventTypes` has no effect", quote_text(name), own.join(", ")),
            ));
        }
        let point = own
            .first()
            .and_then(|event| parse_hook_point(event))
            .expect("a built-in hook has an event, which is a point");
        let (description, metadata) = read_description(hook)?;
        import.hooks.push(ImportedHook {
            point,
            line,
            what: ImportedAction::Use(builtin),
            name: name.to_owned(),
            matcher: None,
            timeout: None,
            pipe_output: false,
            enabled: bool_field(hook, "enabled")?,
            priority: integer_field(hook, "priority")?,
            description,
            metadata,
        });
    }
    Ok(import)
}

/// Returns the description of a hook, and its other metadata.
fn read_description(hook: &ConfigNode) -> Result<(Option<String>, BTreeMap<String, String>), ConfigProblem> {
    let mut description = text_field(hook, "description")?.map(str::to_owned);
    let mut rest = BTreeMap::new();
    if let Some((_, metadata)) = find_entry(hook, "metadata") {
        for (name, value) in expect_object(metadata, "`metadata`")? {
            let name = key_text(name).unwrap_or_default();
            let value = expect_text(value, &format!("`{name}`"))?.to_owned();
            match name {
                "description" => description = Some(value),
                _ => drop(rest.insert(name.to_owned(), value)),
            }
        }
    }
    Ok((description, rest))
}
