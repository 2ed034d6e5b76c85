//! Import of hooks in Claude Code's format, which other agents share: events, groups with a matcher, hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass_bridge::AgentHookEvent;
use windlass_engine::HookPoint;

use super::json_fields::{
    self, bool_field, expect_list, expect_object, find_entry, key_text, number_field, text_field, text_list_field,
};
use super::{HookImport, ImportDialect, ImportRemark, ImportedAction, ImportedHook, ImportedSetting, command, matcher};
use crate::{ConfigNode, ConfigProblem, NodeValue, plan, quote_text};

/// Keys beside the events in some agents' `hooks`.
const NON_EVENT_KEYS: &[&str] = &["enabled", "disabled", "notifications"];
const GROUP_KEYS: &[&str] = &["matcher", "hooks", "sequential", "description"];
const HOOK_KEYS: &[&str] = &[
    "type",
    "command",
    "commandWindows",
    "timeout",
    "name",
    "description",
    "statusMessage",
    "async",
    "asyncRewake",
    "once",
    "if",
    "shell",
    "args",
];
/// The maximum timeout of a hook here.
const MAX_TIMEOUT: Duration = Duration::from_hours(7 * 24);
/// codemie's retry limit if the value is 0 or absent.
const CODEMIE_DEFAULT_RETRIES: u32 = 5;

/// Imports a file in this dialect.
pub fn import_settings(from: ImportDialect, tree: &ConfigNode, source: &str) -> Result<HookImport, ConfigProblem> {
    let mut reading = SettingsImporter {
        source,
        switched_off: BTreeSet::new(),
        all_off: false,
        seen: BTreeSet::new(),
        import: HookImport {
            from,
            hooks: Vec::new(),
            tuned: Vec::new(),
            settings: Vec::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
        },
    };
    expect_object(tree, "the file")?;
    let tree = if from == ImportDialect::Codemie { reading.find_active_profile(tree)? } else { tree };
    reading.read_switches(tree)?;
    if let Some((_, hooks)) = find_entry(tree, "hooks") {
        for (event, groups) in expect_object(hooks, "`hooks`")? {
            reading.import_event(event, groups)?;
        }
    }
    if from == ImportDialect::Codemie {
        reading.import_codemie_settings(tree)?;
    }
    reading.add_general_notes(tree);
    Ok(reading.import)
}

struct SettingsImporter<'a> {
    source: &'a str,
    /// Names and commands of disabled hooks.
    switched_off: BTreeSet<String>,
    all_off: bool,
    /// Identity of the hooks so far, to find duplicates.
    seen: BTreeSet<(HookPoint, ImportedAction, Option<String>, Option<Duration>)>,
    import: HookImport,
}

/// The event and the matcher of a hook.
#[derive(Clone, Copy)]
struct HookPlacement<'a> {
    event: &'a str,
    moment: AgentHookEvent,
    matcher: Option<&'a str>,
}

impl<'a> SettingsImporter<'a> {
    fn line_number(&self, node: &ConfigNode) -> usize {
        self.source[..node.at.start].matches('\n').count() + 1
    }

    fn add_left_out(&mut self, node: &ConfigNode, what: &str, why: impl AsRef<str>) {
        let line = self.line_number(node);
        self.import.left_out.push(ImportRemark::at_line(line, format!("{what}: {}", why.as_ref())));
    }

    fn add_note(&mut self, node: &ConfigNode, text: impl Into<String>) {
        let note = ImportRemark::at_line(self.line_number(node), text);
        self.import.notes.push(note);
    }

    /// Reads which hooks the file disables: all, or some by name.
    fn read_switches(&mut self, tree: &ConfigNode) -> Result<(), ConfigProblem> {
        self.all_off = bool_field(tree, "disableAllHooks")? == Some(true);
        for section in ["hooks", "hooksConfig"] {
            let Some((_, settings)) = find_entry(tree, section) else { continue };
            expect_object(settings, &format!("`{section}`"))?;
            if matches!(find_entry(settings, "enabled"), Some((_, ConfigNode { value: NodeValue::Bool(false), .. }))) {
                self.all_off = true;
            }
            if matches!(find_entry(settings, "disabled"), Some((_, ConfigNode { value: NodeValue::List(_), .. }))) {
                let names = text_list_field(settings, "disabled")?.unwrap_or_default();
                self.switched_off.extend(names.into_iter().map(str::to_owned));
            }
        }
        if self.all_off {
            self.import.notes.push(ImportRemark::for_whole_file(
                "this file switches all of its hooks off: they are written with `enabled: false`",
            ));
        }
        Ok(())
    }

    fn import_event(&mut self, written: &'a ConfigNode, groups: &'a ConfigNode) -> Result<(), ConfigProblem> {
        let event = key_text(written).unwrap_or_default();
        if NON_EVENT_KEYS.contains(&event) {
            return Ok(());
        }
        let groups = expect_list(groups, &format!("`{event}`"))?;
        let Some(moment) = self.import.from.find_event(event) else {
            if groups.is_empty() {
                return Ok(());
            }
            self.add_left_out(written, event, "Windlass has no point for this event");
            return Ok(());
        };
        for group in groups {
            let entries = expect_object(group, &format!("an entry of `{event}`"))?;
            let Some((_, hooks)) = find_entry(group, "hooks") else {
                return Err(ConfigProblem::new(format!("an entry of `{event}` has no `hooks`"))
                    .with_suggestion(
                        "an entry is `{\"matcher\": \"…\", \"hooks\": [{\"type\": \"command\", \"command\": \"…\"}]}`"
                            .to_owned(),
                    )
                    .with_range(group.at.start..group.at.start + 1));
            };
            let hooks = expect_list(hooks, "`hooks`")?;
            if let Some((node, name)) = json_fields::find_unknown_key(entries, GROUP_KEYS) {
                self.add_left_out(node, event, describe_unknown_key(name));
                continue;
            }
            let place = HookPlacement { event, moment, matcher: text_field(group, "matcher")? };
            for hook in hooks {
                self.import_hook(place, hook)?;
            }
        }
        Ok(())
    }

    fn import_hook(&mut self, place: HookPlacement<'_>, hook: &ConfigNode) -> Result<(), ConfigProblem> {
        let entries = expect_object(hook, &format!("a hook of `{}`", place.event))?;
        let Some(kind) = text_field(hook, "type")? else {
            return Err(ConfigProblem::new(format!("a hook of `{}` has no `type`", place.event))
                .with_suggestion("write `\"type\": \"command\"` for a command".to_owned())
                .with_range(hook.at.start..hook.at.start + 1));
        };
        if kind != "command" {
            let why = match kind {
                "http" => "hooks of the type `http` are not imported; write it as `http:` by hand".to_owned(),
                _ => {
                    format!(
                        "hooks of the type {} have no counterpart here; a `command` can do the same",
                        quote_text(kind)
                    )
                }
            };
            self.add_left_out(hook, place.event, why);
            return Ok(());
        }
        let timeout = self.read_timeout(hook)?;
        let Some(command) = text_field(hook, "command")? else {
            return Err(ConfigProblem::new("this hook has no `command`").with_range(hook.at.start..hook.at.start + 1));
        };
        let title = format!("{} {}", place.event, quote_text(command));
        if let Some((node, name)) = json_fields::find_unknown_key(entries, HOOK_KEYS) {
            self.add_left_out(node, &title, describe_unknown_key(name));
            return Ok(());
        }
        if let Some(why) = find_incompatibility(hook)? {
            self.add_left_out(hook, &title, why);
            return Ok(());
        }
        let matcher = match self.translate_group_matcher(place) {
            Ok(matcher) => matcher,
            Err(why) => {
                self.add_left_out(hook, &title, why);
                return Ok(());
            }
        };
        let timeout = timeout.or_else(|| self.differing_default_timeout(place));
        let wanted = ImportedHook { matcher, timeout, ..self.build_imported_hook(place, hook, command)? };
        // Agents run a hook once, even if the file repeats it.
        if self.seen.insert((wanted.point.clone(), wanted.what.clone(), wanted.matcher.clone(), wanted.timeout)) {
            if let Some(name) = command::find_foreign_variable(command) {
                let agent = self.import.from.title();
                self.add_note(hook, format!("`${name}` is set by {agent} alone; under `windlass run` it is empty"));
            }
            self.import.hooks.push(wanted);
        }
        Ok(())
    }

    fn build_imported_hook(
        &self,
        place: HookPlacement<'_>,
        hook: &ConfigNode,
        command: &str,
    ) -> Result<ImportedHook, ConfigProblem> {
        let from = self.import.from;
        let point = place.moment.point_name().clone();
        let given = text_field(hook, "name")?.filter(|name| is_valid_hook_name(name));
        let nickname = || command::derive_hook_name(command).unwrap_or_else(|| point.to_string());
        let name = given.map_or_else(|| format!("{}-{}", from.name(), nickname()), str::to_owned);
        let is_off = |called: &str| self.switched_off.contains(called);
        let off = self.all_off || is_off(&name) || is_off(command);
        let description = text_field(hook, "description")?
            .or(text_field(hook, "statusMessage")?)
            .filter(|text| !text.trim().is_empty());
        Ok(ImportedHook {
            point,
            line: self.line_number(hook),
            what: ImportedAction::Command(command::protect_command(command)),
            name,
            matcher: None,
            timeout: None,
            pipe_output: from.shows_output_to_model(place.moment),
            enabled: off.then_some(false),
            priority: None,
            description: description.map(str::to_owned),
            metadata: BTreeMap::new(),
        })
    }

    /// Returns the dialect's default timeout if it differs from the default here.
    fn differing_default_timeout(&self, place: HookPlacement<'_>) -> Option<Duration> {
        let usual = self.import.from.default_timeout();
        // At the end of a session agents wait for nobody, whatever they say elsewhere.
        let same =
            usual == plan::default_timeout(place.moment.point_name()) || place.moment == AgentHookEvent::SessionEnd;
        (!same).then_some(usual)
    }

    /// Reads the timeout of a hook.
    fn read_timeout(&self, hook: &ConfigNode) -> Result<Option<Duration>, ConfigProblem> {
        let unit = self.import.from.timeout_unit();
        let (Some(written), Some((_, at))) = (number_field(hook, "timeout")?, find_entry(hook, "timeout")) else {
            return Ok(None);
        };
        match unit.to_duration(written).filter(|time| *time <= MAX_TIMEOUT) {
            Some(time) => Ok(Some(time)),
            None => Err(ConfigProblem::new("`timeout`: must be longer than 0 and no longer than 7 days")
                .with_range(at.at.clone())),
        }
    }

    /// Translates the matcher if the event uses one.
    fn translate_group_matcher(&self, place: HookPlacement<'_>) -> Result<Option<String>, String> {
        let (from, moment) = (self.import.from, place.moment);
        let Some(text) =
            place.matcher.filter(|text| from.uses_matcher(moment) && !matcher::matches_everything(from, text))
        else {
            return Ok(None);
        };
        let is_tool = matches!(moment, AgentHookEvent::PreToolUse | AgentHookEvent::PostToolUse);
        // codemie matches tools at every event.
        if !is_tool && (moment.matched_field().is_none() || from == ImportDialect::Codemie) {
            return Err(format!(
                "its matcher {} selects by a value that does not exist at this point; let the command check its standard input",
                quote_text(text)
            ));
        }
        if is_tool { matcher::translate_matcher(from, text) } else { matcher::translate_word_matcher(from, text) }
    }

    /// Returns codemie's active profile, or the whole file if it has no `profiles`.
    fn find_active_profile(&mut self, tree: &'a ConfigNode) -> Result<&'a ConfigNode, ConfigProblem> {
        let Some((written, profiles)) = find_entry(tree, "profiles") else { return Ok(tree) };
        let profiles = expect_object(profiles, "`profiles`")?;
        let active = text_field(tree, "activeProfile")?;
        let name = active.or_else(|| profiles.first().and_then(|(name, _)| key_text(name)));
        let found = profiles.iter().find(|(found, _)| key_text(found) == name);
        let Some((name, profile)) = found else {
            let missing =
                format!("there is no profile {}, which `activeProfile` names", quote_text(name.unwrap_or_default()));
            return Err(ConfigProblem::new(missing).with_range(written.at.clone()));
        };
        let others = profiles
            .iter()
            .filter(|(other, profile)| key_text(other) != key_text(name) && find_entry(profile, "hooks").is_some());
        for (other, _) in others {
            self.add_left_out(
                other,
                &format!("the profile {}", quote_text(key_text(other).unwrap_or_default())),
                "it is not active",
            );
        }
        self.add_note(
            name,
            format!("the hooks are those of the profile {}", quote_text(key_text(name).unwrap_or_default())),
        );
        expect_object(profile, "a profile").map(|_| profile)
    }

    /// Imports codemie's retry limit. In codemie a failing stop hook lets the agent end, and so does a stop hook at its retry limit.
    fn import_codemie_settings(&mut self, tree: &ConfigNode) -> Result<(), ConfigProblem> {
        if let Some((_, written)) = find_entry(tree, "maxHookRetries") {
            let wrong = || {
                ConfigProblem::new("`maxHookRetries`: expected a whole number, 0 or more")
                    .with_range(written.at.clone())
            };
            let retries = match written.value {
                NodeValue::Null | NodeValue::Integer(0) => {
                    let text =
                        format!("`maxHookRetries`: codemie uses {CODEMIE_DEFAULT_RETRIES} for a missing value or 0");
                    self.add_note(written, text);
                    CODEMIE_DEFAULT_RETRIES
                }
                NodeValue::Integer(number) => u32::try_from(number).map_err(|_| wrong())?,
                _ => return Err(wrong()),
            };
            self.import.settings.push(ImportedSetting::MaxHookRetries(retries));
        }
        if self.import.hooks.iter().any(|hook| hook.point == HookPoint::Stop) {
            self.import.settings.extend([ImportedSetting::NotStrict, ImportedSetting::CompleteAtLimit]);
        }
        Ok(())
    }

    /// Adds notes about the whole file.
    fn add_general_notes(&mut self, tree: &ConfigNode) {
        let from = self.import.from;
        let at = |moment: AgentHookEvent| self.import.hooks.iter().any(|hook| hook.point == *moment.point_name());
        let mut notes = Vec::new();
        if at(AgentHookEvent::Stop) && from != ImportDialect::Codemie {
            notes.push("a stop hook that exits with neither 0 nor 2 lets the agent end there; under `windlass run` it is another iteration, unless the configuration says `strict: false`".to_owned());
        }
        if from == ImportDialect::Gemini && !self.import.hooks.is_empty() {
            notes.push("Gemini CLI treats every exit code from 2 on as a block; here only 2 blocks".to_owned());
        }
        let sets_variables = matches!(find_entry(tree, "env"), Some((_, ConfigNode { value: NodeValue::Map(set), .. })) if !set.is_empty());
        if sets_variables && !self.import.hooks.is_empty() {
            notes.push(format!("the variables under `env` of this file are set by {} alone", from.title()));
        }
        self.import.notes.extend(notes.into_iter().map(ImportRemark::for_whole_file));
    }
}

fn describe_unknown_key(name: &str) -> String {
    format!("what {} means is unknown; remove it if the hook works without it, and import again", quote_text(name))
}

/// Returns whether a hook can have this name here.
fn is_valid_hook_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.len() <= 100
        && !name.contains(char::is_control)
        && name != windlass_engine::REGISTERED_HOOKS_NAME
        && name != windlass_engine::VALIDATION_RULES_NAME
}

/// Returns why a hook with these fields would behave differently here.
fn find_incompatibility(hook: &ConfigNode) -> Result<Option<&'static str>, ConfigProblem> {
    let is = |name: &str| bool_field(hook, name).map(|flag| flag == Some(true));
    if is("async")? || is("asyncRewake")? {
        return Ok(Some("it runs in the background there (`async`), and would be waited for here"));
    }
    if is("once")? {
        return Ok(Some("it runs once in a session there (`once`), and would run every time here"));
    }
    if text_field(hook, "if")?.is_some() {
        return Ok(Some("it runs only for some uses of a tool (`if`); write the condition as `when`"));
    }
    if text_list_field(hook, "args")?.is_some() || text_field(hook, "shell")?.is_some_and(|shell| shell != "sh") {
        return Ok(Some("it is not a text for `sh` there (`args`, `shell`); write it as a `command` by hand"));
    }
    let command = text_field(hook, "command")?.unwrap_or_default();
    Ok(match command {
        _ if command.trim().is_empty() => Some("its command is empty"),
        _ if command.contains('\0') => Some("no command can have a zero byte"),
        _ if command::calls_windlass_hook(command) => {
            Some("this is Windlass itself, which runs the hooks of the configuration")
        }
        _ => None,
    })
}
