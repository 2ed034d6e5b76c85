//! Resolves the hooks of a configuration: scope, points, name, and what runs.
//!
//! Invariants:
//! - A hook has exactly one kind.
//! - No two hooks have the same name, and no hook of the registry is configured twice.
//! - A command has free text only where the shell takes it for text.
//!
//! Not here: compiling expressions (`expression_compiler`), maximum numbers (`hook_limits`), running anything.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

use serde_json::json;
use windlass_engine::{DecisionRule, HookPoint, HookRegistry, HookScope, REGISTERED_HOOKS_NAME, VALIDATION_RULES_NAME};
use windlass_expr::{Condition, ExpressionNames, TextTemplate, ToolMatcher, ValuePattern};
use windlass_hooks::HookScript;

use super::builtin::BuiltinHook;
use super::error::{ConfigProblem, quote_text};
use super::expression_compiler::{ExpressionCompiler, event_data_fields};
use super::hook_limits;
use super::hook_settings::{HOOK_KIND_KEYS, HookLists, HookSettings, RequestSettings, WordOrMap};
use super::reader::LocatedValue;
use super::request::check_request;
use super::settings::Settings;
use super::value_checks::{MAX_REVIEW_NAME, check_name, require_text, with_place};
use super::workflow_context::parse_workflow_context;
use crate::{hook_point_names, parse_hook_point};

/// The maximum length of a hook's name: variables, events and messages carry it.
const MAX_NAME_BYTES: usize = 128;
/// The priority of a hook without one.
pub const DEFAULT_PRIORITY: i64 = 100;
/// The brief of a gatekeeper without one.
pub const DEFAULT_REVIEW: &str = "review";

/// The action of a hook.
#[derive(Debug, Clone)]
pub enum HookKind {
    Command(HookScript),
    Builtin(BuiltinHook),
    Rules(Vec<DecisionRule>),
    Prompt(TextTemplate),
    Http(RequestSettings),
    Workflow(String),
    Gatekeeper(Vec<String>),
    /// A desktop notification.
    Desktop,
}

/// A checked hook of the project.
#[derive(Debug, Clone)]
pub struct HookSpec {
    pub scope: HookScope,
    pub point: HookPoint,
    /// Further points at which the hook runs.
    pub events: Vec<HookPoint>,
    pub name: String,
    pub kind: HookKind,
    /// The condition; without one, the hook always runs.
    pub when: Option<Condition>,
    /// The tools for which the hook runs.
    pub matcher: ToolMatcher,
    /// The template of the feedback to the agent; without one, the default form.
    pub feedback: Option<TextTemplate>,
    /// The context of a workflow, by name.
    pub context: Vec<(String, ValuePattern)>,
    /// The place in the file: the byte range, and the line.
    pub at: Range<usize>,
    pub line: usize,
    /// The remaining settings. `take_hook_kind` has removed the action from them, except for the id of a workflow.
    pub entry: HookSettings,
}

impl HookSpec {
    /// Returns the priority among the hooks of an event: lower runs first. Notices come last.
    pub fn priority(&self) -> i64 {
        if self.point == HookPoint::Notify {
            return i64::MAX;
        }
        self.entry.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// Returns the briefs that the hook's gatekeepers review by.
    pub fn review_briefs(&self) -> impl Iterator<Item = &str> {
        let (names, alone) = match &self.kind {
            HookKind::Gatekeeper(names) => (names.as_slice(), None),
            HookKind::Builtin(BuiltinHook::Gatekeeper) => (&[][..], Some(DEFAULT_REVIEW)),
            _ => (&[][..], None),
        };
        names.iter().map(String::as_str).chain(alone)
    }

    /// Returns every point at which the hook runs, in the order of definition.
    pub fn all_points(&self) -> impl Iterator<Item = &HookPoint> {
        iter::once(&self.point).chain(&self.events)
    }

    /// Describes the hook's points and scope.
    pub fn describe_place(&self) -> String {
        let points: Vec<_> = self.all_points().map(HookPoint::name).collect();
        let points = points.join(", ");
        match &self.scope {
            HookScope::Project | HookScope::Worktrees => points,
            HookScope::TaskType(name) => format!("{points} (task type {name})"),
            HookScope::Agent(name) => format!("{points} (agent {name})"),
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.entry.enabled.unwrap_or(true)
    }

    /// Returns whether the hook only configures a registry hook, which runs inside a commit.
    pub fn is_registered(&self) -> bool {
        matches!(self.kind, HookKind::Builtin(builtin) if builtin.is_registered())
    }

    /// Returns a warning and a hint for a stop hook that is a single program: most programs exit with 1 when they fail, and only exit
    /// code 2 sends the agent back.
    pub fn exit_hint(&self) -> Option<(String, String)> {
        let HookKind::Command(script) = &self.kind else { return None };
        let text = script.text().trim();
        let counts = matches!(self.entry.on_failure, None | Some(super::hook_settings::FailureSetting::Ignore));
        let stops = self.all_points().any(HookPoint::is_stop);
        (stops && counts && is_single_program(text)).then(|| {
            let message =
                format!("at `stop` only exit 2 sends the agent back, and most programs fail with exit 1: `{text}`");
            (message, format!("write `{text} || exit 2`, or `on_failure: block` beside it"))
        })
    }

    /// Describes what the hook runs; `None` for a hook that only reads known state.
    pub fn describe_effect(&self) -> Option<String> {
        match &self.kind {
            HookKind::Command(script) => Some(script.text().to_owned()),
            HookKind::Builtin(builtin) => builtin.describe_effect().map(|effect| format!("{builtin} ({effect})")),
            HookKind::Rules(_) => None,
            HookKind::Prompt(prompt) => Some(format!("prompt: {}", prompt.text())),
            HookKind::Http(request) => Some(request.describe_request()),
            // The context may contain the program that the workflow runs.
            HookKind::Workflow(id) => Some(match &self.entry.context {
                Some(context) => format!("workflow: {id}, given {}", json!(context.value)),
                None => format!("workflow: {id}"),
            }),
            HookKind::Gatekeeper(briefs) => {
                Some(format!("gatekeeper: {} (an agent judges the change)", briefs.join(", ")))
            }
            HookKind::Desktop => Some("a notice on the desktop".to_owned()),
        }
    }
}

/// Resolves every hook of the file, in the order of definition: the project's, then the task types', then the agents'.
pub fn resolve_hooks(settings: &Settings, source: &str) -> Result<Vec<HookSpec>, ConfigProblem> {
    let newlines = source.match_indices('\n').map(|(offset, _)| offset).collect();
    let mut hooks = HookCollector { source, newlines, hooks: Vec::new(), names: BTreeMap::new() };
    hooks.collect_points(&HookScope::Project, &settings.hooks)?;
    for (name, task_type) in &settings.task_types {
        hooks.collect_points(&HookScope::TaskType(name.type_name()), &task_type.hooks)?;
    }
    for (name, agent) in &settings.agents {
        hooks.collect_points(&HookScope::Agent(name.clone()), &agent.hooks)?;
    }
    Ok(hooks.hooks)
}

struct HookCollector<'a> {
    source: &'a str,
    /// Offsets of the line ends of the file.
    newlines: Vec<usize>,
    hooks: Vec<HookSpec>,
    /// Used names, each with the line that uses it.
    names: BTreeMap<String, usize>,
}

impl HookCollector<'_> {
    fn collect_points(&mut self, scope: &HookScope, points: &HookLists) -> Result<(), ConfigProblem> {
        let mut seen = BTreeMap::new();
        for (written, entries) in &points.0 {
            let point = parse_point_key(written)?;
            if matches!(scope, HookScope::TaskType(_)) && !point.has_task() {
                return Err(ConfigProblem::new(format!(
                    "a task type has no hooks at `{point}`: a session works on tasks of any type"
                ))
                .with_suggestion(
                    "write it under the `hooks` at the top of the file, or at `pre_iteration` here".to_owned(),
                )
                .with_range(written.at.clone()));
            }
            if let Some(line) = seen.insert(point.clone(), self.line_number(written.at.start)) {
                let problem = ConfigProblem::new(format!("the point `{point}` is given twice, in two spellings"));
                return Err(problem
                    .with_suggestion(format!("the first one is on line {line}"))
                    .with_range(written.at.clone()));
            }
            let Some(entries) = entries else {
                let problem = ConfigProblem::new(format!("`{point}`: expected a list of hooks, found nothing"));
                return Err(problem.with_suggestion("write `[]` for none".to_owned()).with_range(written.at.clone()));
            };
            for (index, entry) in entries.iter().enumerate() {
                self.add_hook_entry(scope, (&point, index), entry)?;
            }
        }
        Ok(())
    }

    fn add_hook_entry(
        &mut self,
        scope: &HookScope,
        (point, index): (&HookPoint, usize),
        written: &LocatedValue<WordOrMap<HookSettings>>,
    ) -> Result<(), ConfigProblem> {
        let line = self.line_number(written.at.start);
        let mut entry = match &written.value {
            WordOrMap::Word(name) => HookSettings { r#use: Some(name.clone()), ..HookSettings::default() },
            WordOrMap::Full(entry) => entry.clone(),
        };
        let events = parse_further_points(point, &entry.events)?;
        let points: Vec<HookPoint> = iter::once(point).chain(&events).cloned().collect();
        let data = event_data_fields(&points);
        let expressions = ExpressionCompiler { source: self.source, data: data.as_deref() };
        let kind = with_place(take_hook_kind(&mut entry, expressions), &written.at)?;
        if let HookKind::Builtin(builtin) = kind {
            with_place(self.check_registry_hook(scope, builtin), &written.at)?;
            with_place(check_builtin_point(builtin, point), &written.at)?;
        }
        with_place(points.iter().try_for_each(|point| check_kind_at_point(&kind, point)), &written.at)?;
        let name = match (&entry.name, &kind) {
            (Some(name), kind) => parse_hook_name(name, kind)?,
            (None, HookKind::Builtin(builtin)) if builtin.is_registered() => builtin.to_string(),
            (None, kind) => default_hook_name(scope, point, index, kind),
        };
        let named_at = entry.name.as_ref().map_or(&written.at, |name| &name.at);
        with_place(self.claim_name(&name, line), named_at)?;
        hook_limits::check_hook_limits(&entry, self.source)?;
        let (hook, feedback) = (ExpressionNames::for_hook(), ExpressionNames::for_feedback());
        let when = entry.when.as_ref().map(|text| expressions.compile_condition("when", text, &hook)).transpose()?;
        let feedback = entry
            .feedback
            .as_ref()
            .map(|text| expressions.compile_template("feedback", text, &feedback))
            .transpose()?;
        let matcher =
            entry.matcher.as_ref().map(|text| expressions.compile_matcher(text)).transpose()?.unwrap_or_default();
        let context = with_place(parse_workflow_context(&entry, &kind, &points, self.source), &written.at)?;
        let (scope, at) = (scope.clone(), written.at.clone());
        self.hooks.push(HookSpec {
            scope,
            point: point.clone(),
            events,
            name,
            kind,
            when,
            matcher,
            feedback,
            context,
            at,
            line,
            entry,
        });
        Ok(())
    }

    fn check_registry_hook(&self, scope: &HookScope, builtin: BuiltinHook) -> Result<(), ConfigProblem> {
        if !builtin.is_registered() {
            return Ok(());
        }
        if *scope != HookScope::Project {
            return Err(ConfigProblem::new(format!("`{builtin}` belongs to the whole project"))
                .with_suggestion("configure it under the `hooks` at the top of the file".to_owned()));
        }
        match self.hooks.iter().find(|hook| matches!(hook.kind, HookKind::Builtin(other) if other == builtin)) {
            Some(first) => Err(ConfigProblem::new(format!("`{builtin}` is configured twice"))
                .with_suggestion(format!("the first time is on line {}", first.line))),
            None => Ok(()),
        }
    }

    fn claim_name(&mut self, name: &str, line: usize) -> Result<(), ConfigProblem> {
        if [REGISTERED_HOOKS_NAME, VALIDATION_RULES_NAME].contains(&name) {
            return Err(ConfigProblem::new(format!("no hook can have the name `{name}`: Windlass uses it")));
        }
        match self.names.insert(name.to_owned(), line) {
            Some(first) => Err(ConfigProblem::new(format!("two hooks have the name {}", quote_text(name)))
                .with_suggestion(format!("the first one is on line {first}; give each its own name"))),
            None => Ok(()),
        }
    }

    fn line_number(&self, offset: usize) -> usize {
        self.newlines.partition_point(|newline| *newline < offset) + 1
    }
}

/// Checks the point of a registry hook: it runs at its own events, wherever the file lists it.
fn check_builtin_point(builtin: BuiltinHook, point: &HookPoint) -> Result<(), ConfigProblem> {
    let registry = HookRegistry::with_builtins();
    let Some(hook) = registry.get(builtin.name()) else { return Ok(()) };
    if point.event_types().iter().any(|event| hook.events.contains(event)) {
        return Ok(());
    }
    let events: Vec<&str> = hook.events.iter().map(|event| event.name()).collect();
    Err(ConfigProblem::new(format!("`{builtin}` does not run at `{point}`"))
        .with_suggestion(format!("it runs at {}: write it there", events.join(", "))))
}

/// Checks that a hook about a change runs only at points that have one.
fn check_kind_at_point(kind: &HookKind, point: &HookPoint) -> Result<(), ConfigProblem> {
    if matches!(kind, HookKind::Prompt(_)) && point.is_gate() {
        return Err(ConfigProblem::new(format!("`{point}` is a gate, and a `prompt` decides nothing"))
            .with_suggestion("write a `command` that says no, or put the prompt at `pre_iteration`".to_owned()));
    }
    let (name, points): (&str, &[HookPoint]) = match kind {
        HookKind::Builtin(builtin @ (BuiltinHook::RebaseOnMain | BuiltinHook::CreatePr)) => {
            (builtin.name(), &[HookPoint::BeforeSubmit, HookPoint::BeforeMerge])
        }
        HookKind::Builtin(builtin @ (BuiltinHook::MergePr | BuiltinHook::Gatekeeper)) => {
            (builtin.name(), &[HookPoint::BeforeMerge])
        }
        HookKind::Gatekeeper(_) => (BuiltinHook::Gatekeeper.name(), &[HookPoint::BeforeMerge]),
        _ => return Ok(()),
    };
    match points.contains(point) {
        true => Ok(()),
        false => Err(ConfigProblem::new(format!("`{name}` does not run at `{point}`")).with_suggestion(format!(
            "it runs at {}: write it there",
            points.iter().map(HookPoint::name).collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn parse_point_key(written: &LocatedValue<String>) -> Result<HookPoint, ConfigProblem> {
    if written.value == HookPoint::Notify.name() {
        return Err(ConfigProblem::new("notices are not written under `hooks`")
            .with_suggestion("write them under `notify` at the top of the file".to_owned())
            .with_range(written.at.clone()));
    }
    parse_hook_point(written).ok_or_else(|| {
        let problem = match written.contains('.') {
            true => ConfigProblem::new(format!("{} is not a valid type for an event of your own", quote_text(written)))
                .with_suggestion("write it in lower case with a namespace: `review.passed`".to_owned()),
            false => {
                let names = hook_point_names();
                ConfigProblem::unknown_name("point", written, &names.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        problem.with_range(written.at.clone())
    })
}

/// Parses the points under `events` and refuses duplicates.
fn parse_further_points(own: &HookPoint, events: &[LocatedValue<String>]) -> Result<Vec<HookPoint>, ConfigProblem> {
    let mut points = Vec::new();
    for written in events {
        let point = parse_point_key(written)?;
        if point == *own || points.contains(&point) {
            return Err(
                ConfigProblem::new(format!("this hook runs at `{point}` already")).with_range(written.at.clone())
            );
        }
        points.push(point);
    }
    Ok(points)
}

/// Returns the default name: the hook's place, and the name of a built-in.
fn default_hook_name(scope: &HookScope, point: &HookPoint, index: usize, kind: &HookKind) -> String {
    let name = match kind {
        HookKind::Builtin(builtin) => format!("{point}[{index}]:{builtin}"),
        HookKind::Gatekeeper(_) => format!("{point}[{index}]:gatekeeper"),
        _ => format!("{point}[{index}]"),
    };
    match scope {
        HookScope::Project | HookScope::Worktrees => name,
        HookScope::TaskType(kind) => format!("{kind}.{name}"),
        HookScope::Agent(agent) => format!("{agent}.{name}"),
    }
}

fn parse_hook_name(name: &LocatedValue<String>, kind: &HookKind) -> Result<String, ConfigProblem> {
    let own = |builtin: BuiltinHook| matches!(kind, HookKind::Builtin(own) if *own == builtin);
    if let Some(builtin) = BuiltinHook::parse(name).filter(|builtin| !own(*builtin)) {
        let problem = ConfigProblem::new(format!("no hook can have the name `{builtin}`: a built-in hook has it"));
        return Err(problem
            .with_suggestion(format!("write `use: {builtin}` for that hook, or another name"))
            .with_range(name.at.clone()));
    }
    with_place(check_name("a hook", name, MAX_NAME_BYTES), &name.at)?;
    Ok(name.value.clone())
}

/// Returns whether a command is one program with arguments. A script of the project is none: it may choose its exit codes.
fn is_single_program(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let (program, next) = (words.next().unwrap_or_default(), words.next());
    let script = match program {
        "sh" | "bash" | "dash" | "zsh" | "python" | "python3" | "node" | "ruby" | "perl" => next != Some("-m"),
        program => {
            program.contains('/') || matches!(program, "exit" | "true" | "false" | ":" | "echo" | "printf" | "cat")
        }
    };
    !script && !command.contains([';', '&', '|', '\n', '$', '`', '(', '{', '<', '>'])
}

/// Takes the hook's kind out of an entry.
fn take_hook_kind(entry: &mut HookSettings, expressions: ExpressionCompiler<'_>) -> Result<HookKind, ConfigProblem> {
    let kinds = [
        entry.command.take().map(|command| parse_script(command, expressions.source).map(HookKind::Command)),
        entry.r#use.take().map(|name| parse_builtin_name(&name).map(HookKind::Builtin)),
        entry
            .rules
            .take()
            .map(|rules| expressions.compile_rules(&require_entries("rules", rules)?).map(HookKind::Rules)),
        entry
            .prompt
            .take()
            .map(|prompt| compile_prompt(&prompt, expressions, &ExpressionNames::for_hook()).map(HookKind::Prompt)),
        entry.http.take().map(|http| check_request(http).map(HookKind::Http)),
        entry.workflow.clone().map(|id| Ok(HookKind::Workflow(require_text("workflow", id.value)?))),
        entry.gatekeeper.take().map(|names| check_review_names(names).map(HookKind::Gatekeeper)),
    ];
    let named: Vec<_> =
        HOOK_KIND_KEYS.iter().zip(&kinds).filter(|(_, kind)| kind.is_some()).map(|(kind, _)| *kind).collect();
    match (named.as_slice(), kinds.into_iter().flatten().next()) {
        ([_], Some(kind)) => kind,
        ([first, second, ..], _) => {
            Err(ConfigProblem::new(format!("a hook is either `{first}` or `{second}`, not both"))
                .with_suggestion("write two hooks".to_owned()))
        }
        _ => {
            let meant = entry.name.as_ref().and_then(|name| BuiltinHook::parse(name));
            let usual = || format!("add one of `{}`", HOOK_KIND_KEYS.join("`, `"));
            let hint = meant.map_or_else(usual, |builtin| format!("write `use: {builtin}`"));
            Err(ConfigProblem::new("this hook does not say what it runs").with_suggestion(hint))
        }
    }
}

/// Parses a command and checks its fields. Errors mark the unsafe field in the file.
pub fn parse_script(command: LocatedValue<String>, source: &str) -> Result<HookScript, ConfigProblem> {
    let LocatedValue { value, at } = command;
    let text = require_text("command", value)?;
    HookScript::parse(&text).map_err(|refused| {
        let template = &text[refused.at.clone()];
        let earlier = text[..refused.at.start].matches(template).count();
        let written = source.get(at.clone()).unwrap_or_default();
        let exact = written.match_indices(template).nth(earlier).map(|(offset, _)| at.start + offset);
        let place = exact.map_or(at, |start| start..start + template.len());
        ConfigProblem::new(refused.to_string()).with_suggestion(refused.instead).with_range(place)
    })
}

pub fn compile_prompt(
    written: &LocatedValue<String>,
    expressions: ExpressionCompiler<'_>,
    names: &ExpressionNames,
) -> Result<TextTemplate, ConfigProblem> {
    with_place(require_text("prompt", written.value.clone()), &written.at)?;
    expressions.compile_template("prompt", written, names)
}

/// Checks the names of reviews and refuses duplicates.
fn check_review_names(names: Vec<String>) -> Result<Vec<String>, ConfigProblem> {
    let names = require_entries("gatekeeper", names)?;
    names.iter().try_for_each(|name| check_name("a review", name, MAX_REVIEW_NAME))?;
    let twice = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name));
    match twice {
        Some((_, name)) => Err(ConfigProblem::new(format!("`gatekeeper` names {} twice", quote_text(name)))),
        None => Ok(names),
    }
}

fn require_entries<T>(key: &str, list: Vec<T>) -> Result<Vec<T>, ConfigProblem> {
    match list.is_empty() {
        true => Err(ConfigProblem::new(format!("`{key}` is an empty list"))),
        false => Ok(list),
    }
}

fn parse_builtin_name(name: &str) -> Result<BuiltinHook, ConfigProblem> {
    BuiltinHook::parse(name).ok_or_else(|| {
        let problem = ConfigProblem::unknown_name("built-in hook", name, &BuiltinHook::all_names());
        match name.contains([' ', '/']) {
            true => problem.with_suggestion("write a command as `- command: …`".to_owned()),
            false => problem,
        }
    })
}
