//! Import of hooks in Claude Code's format, which other agents share: events, groups with a matcher, hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass_bridge::AgentHookEvent;
use windlass_engine::HookPoint;

use super::field::{self, entry, flag, key, list, map, number, text, texts};
use super::{Dialect, HookImport, ImportRemark, ImportedAction, ImportedHook, ImportedSetting, command, matcher};
use crate::{ConfigNode, ConfigProblem, NodeValue, plan, quoted};

/// Keys beside the events in some agents' `hooks`.
const BESIDE_EVENTS: &[&str] = &["enabled", "disabled", "notifications"];
const GROUP: &[&str] = &["matcher", "hooks", "sequential", "description"];
const HOOK: &[&str] = &[
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
const LONGEST: Duration = Duration::from_hours(7 * 24);
/// codemie's retry limit if the value is 0 or absent.
const CODEMIE_RETRIES: u32 = 5;

/// Imports a file in this dialect.
pub fn import(from: Dialect, tree: &ConfigNode, source: &str) -> Result<HookImport, ConfigProblem> {
    let mut reading = Reading {
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
    map(tree, "the file")?;
    let tree = if from == Dialect::Codemie { reading.active_profile(tree)? } else { tree };
    reading.switches(tree)?;
    if let Some((_, hooks)) = entry(tree, "hooks") {
        for (event, groups) in map(hooks, "`hooks`")? {
            reading.event(event, groups)?;
        }
    }
    if from == Dialect::Codemie {
        reading.codemie(tree)?;
    }
    reading.general(tree);
    Ok(reading.import)
}

struct Reading<'a> {
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
struct Place<'a> {
    event: &'a str,
    moment: AgentHookEvent,
    matcher: Option<&'a str>,
}

impl<'a> Reading<'a> {
    fn line(&self, node: &ConfigNode) -> usize {
        self.source[..node.at.start].matches('\n').count() + 1
    }

    fn leave_out(&mut self, node: &ConfigNode, what: &str, why: impl AsRef<str>) {
        let line = self.line(node);
        self.import.left_out.push(ImportRemark::on(line, format!("{what}: {}", why.as_ref())));
    }

    fn note(&mut self, node: &ConfigNode, text: impl Into<String>) {
        let note = ImportRemark::on(self.line(node), text);
        self.import.notes.push(note);
    }

    /// Reads which hooks the file disables: all, or some by name.
    fn switches(&mut self, tree: &ConfigNode) -> Result<(), ConfigProblem> {
        self.all_off = flag(tree, "disableAllHooks")? == Some(true);
        for section in ["hooks", "hooksConfig"] {
            let Some((_, settings)) = entry(tree, section) else { continue };
            map(settings, &format!("`{section}`"))?;
            if matches!(entry(settings, "enabled"), Some((_, ConfigNode { value: NodeValue::Bool(false), .. }))) {
                self.all_off = true;
            }
            if matches!(entry(settings, "disabled"), Some((_, ConfigNode { value: NodeValue::List(_), .. }))) {
                let names = texts(settings, "disabled")?.unwrap_or_default();
                self.switched_off.extend(names.into_iter().map(str::to_owned));
            }
        }
        if self.all_off {
            self.import.notes.push(ImportRemark::general(
                "this file switches all of its hooks off: they are written with `enabled: false`",
            ));
        }
        Ok(())
    }

    fn event(&mut self, written: &'a ConfigNode, groups: &'a ConfigNode) -> Result<(), ConfigProblem> {
        let event = key(written).unwrap_or_default();
        if BESIDE_EVENTS.contains(&event) {
            return Ok(());
        }
        let groups = list(groups, &format!("`{event}`"))?;
        let Some(moment) = self.import.from.moment(event) else {
            if groups.is_empty() {
                return Ok(());
            }
            self.leave_out(written, event, "Windlass has no point for this event");
            return Ok(());
        };
        for group in groups {
            let entries = map(group, &format!("an entry of `{event}`"))?;
            let Some((_, hooks)) = entry(group, "hooks") else {
                return Err(ConfigProblem::new(format!("an entry of `{event}` has no `hooks`"))
                    .suggest(
                        "an entry is `{\"matcher\": \"…\", \"hooks\": [{\"type\": \"command\", \"command\": \"…\"}]}`"
                            .to_owned(),
                    )
                    .at(group.at.start..group.at.start + 1));
            };
            let hooks = list(hooks, "`hooks`")?;
            if let Some((node, name)) = field::stranger(entries, GROUP) {
                self.leave_out(node, event, stranger(name));
                continue;
            }
            let place = Place { event, moment, matcher: text(group, "matcher")? };
            for hook in hooks {
                self.hook(place, hook)?;
            }
        }
        Ok(())
    }

    fn hook(&mut self, place: Place<'_>, hook: &ConfigNode) -> Result<(), ConfigProblem> {
        let entries = map(hook, &format!("a hook of `{}`", place.event))?;
        let Some(kind) = text(hook, "type")? else {
            return Err(ConfigProblem::new(format!("a hook of `{}` has no `type`", place.event))
                .suggest("write `\"type\": \"command\"` for a command".to_owned())
                .at(hook.at.start..hook.at.start + 1));
        };
        if kind != "command" {
            let why = match kind {
                "http" => "hooks of the type `http` are not taken over; write it as `http:` by hand".to_owned(),
                _ => {
                    format!("hooks of the type {} have no counterpart here; a `command` can do the same", quoted(kind))
                }
            };
            self.leave_out(hook, place.event, why);
            return Ok(());
        }
        let timeout = self.timeout(hook)?;
        let Some(command) = text(hook, "command")? else {
            return Err(ConfigProblem::new("this hook has no `command`").at(hook.at.start..hook.at.start + 1));
        };
        let title = format!("{} {}", place.event, quoted(command));
        if let Some((node, name)) = field::stranger(entries, HOOK) {
            self.leave_out(node, &title, stranger(name));
            return Ok(());
        }
        if let Some(why) = unlike_ours(hook)? {
            self.leave_out(hook, &title, why);
            return Ok(());
        }
        let matcher = match self.matching(place) {
            Ok(matcher) => matcher,
            Err(why) => {
                self.leave_out(hook, &title, why);
                return Ok(());
            }
        };
        let timeout = timeout.or_else(|| self.usual_timeout(place));
        let wanted = ImportedHook { matcher, timeout, ..self.wanted(place, hook, command)? };
        // Agents run a hook once, even if the file repeats it.
        if self.seen.insert((wanted.point.clone(), wanted.what.clone(), wanted.matcher.clone(), wanted.timeout)) {
            if let Some(name) = command::foreign_variable(command) {
                let agent = self.import.from.title();
                self.note(hook, format!("`${name}` is set by {agent} alone; under `windlass run` it is empty"));
            }
            self.import.hooks.push(wanted);
        }
        Ok(())
    }

    fn wanted(&self, place: Place<'_>, hook: &ConfigNode, command: &str) -> Result<ImportedHook, ConfigProblem> {
        let from = self.import.from;
        let point = place.moment.point().clone();
        let given = text(hook, "name")?.filter(|name| is_name(name));
        let nickname = || command::nickname(command).unwrap_or_else(|| point.to_string());
        let name = given.map_or_else(|| format!("{}-{}", from.name(), nickname()), str::to_owned);
        let is_off = |called: &str| self.switched_off.contains(called);
        let off = self.all_off || is_off(&name) || is_off(command);
        let description =
            text(hook, "description")?.or(text(hook, "statusMessage")?).filter(|text| !text.trim().is_empty());
        Ok(ImportedHook {
            point,
            line: self.line(hook),
            what: ImportedAction::Command(command::untouched(command)),
            name,
            matcher: None,
            timeout: None,
            pipe_output: from.tells_the_model(place.moment),
            enabled: off.then_some(false),
            priority: None,
            description: description.map(str::to_owned),
            metadata: BTreeMap::new(),
        })
    }

    /// Returns the dialect's default timeout if it differs from the default here.
    fn usual_timeout(&self, place: Place<'_>) -> Option<Duration> {
        let usual = self.import.from.default_timeout();
        // At the end of a session agents wait for nobody, whatever they say elsewhere.
        let same = usual == plan::usual_timeout(place.moment.point()) || place.moment == AgentHookEvent::SessionEnd;
        (!same).then_some(usual)
    }

    /// Reads the timeout of a hook.
    fn timeout(&self, hook: &ConfigNode) -> Result<Option<Duration>, ConfigProblem> {
        let unit = self.import.from.unit();
        let (Some(written), Some((_, at))) = (number(hook, "timeout")?, entry(hook, "timeout")) else {
            return Ok(None);
        };
        match unit.of(written).filter(|time| *time <= LONGEST) {
            Some(time) => Ok(Some(time)),
            None => {
                Err(ConfigProblem::new("`timeout`: must be longer than 0 and no longer than 7 days").at(at.at.clone()))
            }
        }
    }

    /// Translates the matcher if the event uses one.
    fn matching(&self, place: Place<'_>) -> Result<Option<String>, String> {
        let (from, moment) = (self.import.from, place.moment);
        let Some(text) = place.matcher.filter(|text| from.heeds_matcher(moment) && !matcher::is_all(from, text)) else {
            return Ok(None);
        };
        let is_tool = matches!(moment, AgentHookEvent::PreToolUse | AgentHookEvent::PostToolUse);
        // codemie matches tools at every event.
        if !is_tool && (moment.matched_field().is_none() || from == Dialect::Codemie) {
            return Err(format!(
                "its matcher {} would choose by something that there is not at this point; have the command look at what comes on its standard input",
                quoted(text)
            ));
        }
        if is_tool { matcher::translate(from, text) } else { matcher::translate_word(from, text) }
    }

    /// Returns codemie's active profile, or the whole file if it has no `profiles`.
    fn active_profile(&mut self, tree: &'a ConfigNode) -> Result<&'a ConfigNode, ConfigProblem> {
        let Some((written, profiles)) = entry(tree, "profiles") else { return Ok(tree) };
        let profiles = map(profiles, "`profiles`")?;
        let active = text(tree, "activeProfile")?;
        let name = active.or_else(|| profiles.first().and_then(|(name, _)| key(name)));
        let found = profiles.iter().find(|(found, _)| key(found) == name);
        let Some((name, profile)) = found else {
            let missing =
                format!("there is no profile {}, which `activeProfile` names", quoted(name.unwrap_or_default()));
            return Err(ConfigProblem::new(missing).at(written.at.clone()));
        };
        let others =
            profiles.iter().filter(|(other, profile)| key(other) != key(name) && entry(profile, "hooks").is_some());
        for (other, _) in others {
            self.leave_out(
                other,
                &format!("the profile {}", quoted(key(other).unwrap_or_default())),
                "it is not active",
            );
        }
        self.note(name, format!("the hooks are those of the profile {}", quoted(key(name).unwrap_or_default())));
        map(profile, "a profile").map(|_| profile)
    }

    /// Imports codemie's retry limit. In codemie a failing stop hook lets the agent end, and so does a stop hook at its retry limit.
    fn codemie(&mut self, tree: &ConfigNode) -> Result<(), ConfigProblem> {
        if let Some((_, written)) = entry(tree, "maxHookRetries") {
            let wrong =
                || ConfigProblem::new("`maxHookRetries`: expected a whole number, 0 or more").at(written.at.clone());
            let retries = match written.value {
                NodeValue::Null | NodeValue::Integer(0) => {
                    let text =
                        format!("`maxHookRetries`: codemie takes {CODEMIE_RETRIES} where nothing or 0 is written");
                    self.note(written, text);
                    CODEMIE_RETRIES
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
    fn general(&mut self, tree: &ConfigNode) {
        let from = self.import.from;
        let at = |moment: AgentHookEvent| self.import.hooks.iter().any(|hook| hook.point == *moment.point());
        let mut notes = Vec::new();
        if at(AgentHookEvent::Stop) && from != Dialect::Codemie {
            notes.push("a stop hook that exits with neither 0 nor 2 lets the agent end there; under `windlass run` it is another iteration, unless the configuration says `strict: false`".to_owned());
        }
        if from == Dialect::Gemini && !self.import.hooks.is_empty() {
            notes.push("Gemini CLI takes every exit from 2 on for a block; here only 2 is one".to_owned());
        }
        let sets_variables =
            matches!(entry(tree, "env"), Some((_, ConfigNode { value: NodeValue::Map(set), .. })) if !set.is_empty());
        if sets_variables && !self.import.hooks.is_empty() {
            notes.push(format!("the variables under `env` of this file are set by {} alone", from.title()));
        }
        self.import.notes.extend(notes.into_iter().map(ImportRemark::general));
    }
}

fn stranger(name: &str) -> String {
    format!("what {} means is not known here; take it out if the hook can do without, and import again", quoted(name))
}

/// Returns whether a hook can have this name here.
fn is_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.len() <= 100
        && !name.contains(char::is_control)
        && name != windlass_engine::REGISTERED
        && name != windlass_engine::VALIDATION
}

/// Returns why a hook with these fields would behave differently here.
fn unlike_ours(hook: &ConfigNode) -> Result<Option<&'static str>, ConfigProblem> {
    let is = |name: &str| flag(hook, name).map(|flag| flag == Some(true));
    if is("async")? || is("asyncRewake")? {
        return Ok(Some("it runs in the background there (`async`), and would be waited for here"));
    }
    if is("once")? {
        return Ok(Some("it runs once in a session there (`once`), and would run every time here"));
    }
    if text(hook, "if")?.is_some() {
        return Ok(Some("it runs only for some uses of a tool (`if`); write the condition as `when`"));
    }
    if texts(hook, "args")?.is_some() || text(hook, "shell")?.is_some_and(|shell| shell != "sh") {
        return Ok(Some("it is no text for `sh` there (`args`, `shell`); write it as a `command` by hand"));
    }
    let command = text(hook, "command")?.unwrap_or_default();
    Ok(match command {
        _ if command.trim().is_empty() => Some("its command is empty"),
        _ if command.contains('\0') => Some("no command can have a zero byte"),
        _ if command::is_ours(command) => Some("this is Windlass itself, which runs the hooks of the configuration"),
        _ => None,
    })
}
