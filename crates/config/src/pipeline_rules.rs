//! Checks of delivery: pipelines that can never pass, and gates that check nothing.
//!
//! Invariants:
//! - An error is only a pipeline that can never pass. A hook with a condition may never run, so it does not count.
//!
//! Not here: checks of single hooks (`hooks`); the tasks of a project (`app`).

use std::collections::BTreeSet;
use std::iter;

use windlass_engine::{HookPoint, HookScope};

use super::builtin::BuiltinHook;
use super::error::{ConfigProblem, find_position, quote_text, suggest_known_name};
use super::hook_settings::HookLists;
use super::hooks::{HookKind, HookSpec};
use super::settings::{CompletionSetting, Settings, TaskType};
use super::settings_check::{is_agent_name, known_agent_names};
use crate::parse_hook_point;

/// A warning about a setting that is valid and probably not intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The line and the column, if the warning has a place in the file.
    pub place: Option<(usize, usize)>,
    pub message: String,
    pub suggestion: Option<String>,
}

/// The hooks for tasks of one type, or for tasks without a type.
struct TaskTypeHooks<'a> {
    settings: &'a Settings,
    hooks: &'a [HookSpec],
    kind: Option<(&'a str, &'a TaskType)>,
}

impl<'a> TaskTypeHooks<'a> {
    /// Returns the hooks of tasks without a type, then those of each type.
    fn for_all_types(settings: &'a Settings, hooks: &'a [HookSpec]) -> impl Iterator<Item = Self> {
        let kinds = settings.task_types.iter().map(|(name, task_type)| Some((name.as_str(), &task_type.value)));
        iter::once(None).chain(kinds).map(move |kind| Self { settings, hooks, kind })
    }

    /// Returns the hooks that run at a point, in order, with those of the agents that `is_meant` selects.
    fn hooks_at(&self, point: &HookPoint, is_meant: impl Fn(&str) -> bool) -> Vec<&'a HookSpec> {
        let is_here = |hook: &&HookSpec| {
            hook.is_enabled()
                && hook.all_points().any(|other| other == point)
                && match &hook.scope {
                    HookScope::Project | HookScope::Worktrees => !self.has_own_list(point),
                    HookScope::TaskType(name) => self.kind.is_some_and(|(kind, _)| kind == name.as_str()),
                    HookScope::Agent(name) => is_meant(name),
                }
        };
        let mut hooks: Vec<&HookSpec> = self.hooks.iter().filter(is_here).collect();
        hooks.sort_by_key(|hook| hook.priority());
        hooks
    }

    /// Returns whether the task type has its own list at a point.
    fn has_own_list(&self, point: &HookPoint) -> bool {
        self.kind.is_some_and(|(_, task_type)| defines_point(&task_type.hooks, point))
    }

    /// Returns whether these tasks have their own checks at a gate. A type without a list uses the project's.
    fn decides_gate(&self, point: &HookPoint) -> bool {
        let has_own_rules = |(_, task_type): (&str, &TaskType)| point.is_stop() && task_type.validation.is_some();
        self.kind.is_none_or(has_own_rules) || self.has_own_list(point)
    }

    /// Returns whether validation rules apply to these tasks.
    fn has_validation_rules(&self) -> bool {
        let own = self.kind.and_then(|(_, task_type)| task_type.validation.as_ref());
        own.or(self.settings.validation.as_ref()).is_some_and(|rules| !rules.is_empty())
    }

    /// Refuses a pipeline that can never pass, with the hooks of an agent.
    fn check_pipeline(&self, agent: Option<&String>) -> Result<(), ConfigProblem> {
        let mut merge = self.hooks_at(&HookPoint::BeforeMerge, |name| agent.is_some_and(|agent| agent == name));
        merge.retain(|hook| hook.when.is_none());
        if let (Some((name, task_type)), true) =
            (self.kind, merge.iter().any(|hook| runs_builtin(hook, BuiltinHook::Gatekeeper)))
            && let Some(names) = task_type.agents.gatekeeper.as_ref().filter(|names| names.is_empty())
        {
            return Err(ConfigProblem::new(format!(
                "tasks of the type `{name}` are judged, and no agent may judge them"
            ))
            .with_suggestion("name an agent, or leave `gatekeeper` out of `agents` for the default one".to_owned())
            .with_range(names.at.clone()));
        }
        let Some(index) = merge.iter().position(|hook| runs_builtin(hook, BuiltinHook::MergePr)) else { return Ok(()) };
        let needs_change = |hook: &&&HookSpec| {
            runs_builtin(hook, BuiltinHook::CreatePr) || runs_builtin(hook, BuiltinHook::Gatekeeper)
        };
        if let Some(late) = merge[index + 1..].iter().find(needs_change) {
            return Err(ConfigProblem::new(format!(
                "{} runs after `merge_pr`, when the change is merged",
                quote_text(&late.name)
            ))
            .with_suggestion("let it run before `merge_pr`".to_owned())
            .with_range(late.at.clone()));
        }
        // Without a list, the default hook opens a change.
        let has_list = self.has_own_list(&HookPoint::BeforeSubmit)
            || defines_point(&self.settings.hooks, &HookPoint::BeforeSubmit);
        if has_list && !self.hooks.iter().any(|hook| hook.is_enabled() && runs_builtin(hook, BuiltinHook::CreatePr)) {
            return Err(ConfigProblem::new("`merge_pr` has nothing to merge: no hook is `create_pr`")
                .with_suggestion("add `create_pr` to `before_submit`".to_owned())
                .with_range(merge[index].at.clone()));
        }
        Ok(())
    }
}

fn defines_point(points: &HookLists, point: &HookPoint) -> bool {
    points.0.iter().any(|(written, _)| parse_hook_point(written).as_ref() == Some(point))
}

fn runs_builtin(hook: &HookSpec, builtin: BuiltinHook) -> bool {
    match &hook.kind {
        HookKind::Builtin(own) => *own == builtin,
        HookKind::Gatekeeper(_) => builtin == BuiltinHook::Gatekeeper,
        _ => false,
    }
}

/// Refuses pipelines that can never pass.
pub fn check_all_pipelines(settings: &Settings, hooks: &[HookSpec]) -> Result<(), ConfigProblem> {
    let mut agents = iter::once(None).chain(settings.agents.keys().map(Some));
    agents.try_for_each(|agent| {
        TaskTypeHooks::for_all_types(settings, hooks).try_for_each(|flow| flow.check_pipeline(agent))
    })
}

/// Returns warnings in the order of the file, without duplicates.
pub fn find_warnings(settings: &Settings, hooks: &[HookSpec], source: &str) -> Vec<ConfigWarning> {
    let mut found: Vec<ConfigProblem> = find_open_completion(settings, hooks);
    found.extend(find_unknown_agents(settings));
    found.extend(find_unused_briefs(settings, hooks));
    found.extend(hooks.iter().filter(|hook| hook.is_enabled()).filter_map(|hook| {
        let (message, hint) = hook.exit_hint()?;
        Some(ConfigProblem::new(message).with_suggestion(hint).with_range(hook.at.clone()))
    }));
    found.sort_by_key(|problem| problem.at.as_ref().map(|at| at.start));
    let mut seen = BTreeSet::new();
    found.retain(|problem| seen.insert(problem.message.clone()));
    let warning = |problem: ConfigProblem| {
        let place = problem.at.map(|at| find_position(source, at));
        ConfigWarning { place, message: problem.message, suggestion: problem.suggestion }
    };
    found.into_iter().map(warning).collect()
}

/// Returns a problem for each group of tasks that `completion: gate` completes without any check.
fn find_open_completion(settings: &Settings, hooks: &[HookSpec]) -> Vec<ConfigProblem> {
    let Some(gate) = settings.completion.as_ref().filter(|completion| completion.value == CompletionSetting::Gate)
    else {
        return Vec::new();
    };
    let open = TaskTypeHooks::for_all_types(settings, hooks).filter(|flow| {
        flow.decides_gate(&HookPoint::Stop)
            && !flow.has_validation_rules()
            && flow.hooks_at(&HookPoint::Stop, |_| false).is_empty()
    });
    open.map(|flow| {
        let whose = flow.kind.map(|(name, _)| format!(" for tasks of the type `{name}`")).unwrap_or_default();
        let message = format!(
            "`completion: gate` without a `stop` hook{whose}: work counts as complete when a turn ends, and nothing checks it"
        );
        ConfigProblem::new(message).with_suggestion("add `stop: [run_tests]` under `hooks`".to_owned()).with_range(gate.at.clone())
    })
    .collect()
}

/// Returns the names in lists of agents that select no agent.
fn find_unknown_agents(settings: &Settings) -> impl Iterator<Item = ConfigProblem> {
    let roles = settings.task_types.values().map(|task_type| &task_type.agents);
    let names =
        roles.flat_map(|roles| [&roles.implementer, &roles.gatekeeper]).flatten().flat_map(|names| names.iter());
    let unknown = names.filter(|name| !is_agent_name(name, settings));
    unknown.map(|name| {
        let near =
            suggest_known_name(name, &known_agent_names(settings)).filter(|hint| hint.starts_with("did you mean"));
        let hint = near.unwrap_or_else(|| "define it under `agents`".to_owned());
        ConfigProblem::new(format!("{} is not a known agent", quote_text(name)))
            .with_suggestion(hint)
            .with_range(name.at.clone())
    })
}

/// Returns the briefs that no gatekeeper uses.
fn find_unused_briefs(settings: &Settings, hooks: &[HookSpec]) -> impl Iterator<Item = ConfigProblem> {
    let asked: BTreeSet<&str> = hooks.iter().flat_map(HookSpec::review_briefs).collect();
    settings.briefs.iter().filter(move |(name, _)| !asked.contains(name.as_str())).map(|(name, text)| {
        ConfigProblem::new(format!("no `gatekeeper` asks for the brief {}", quote_text(name)))
            .with_range(text.at.clone())
    })
}

/// Returns the gates whose only checks run the project's tests, for the default agent, each with the task type that has its own
/// list there.
pub fn find_test_gates<'a>(settings: &'a Settings, hooks: &'a [HookSpec]) -> Vec<(HookPoint, Option<&'a str>)> {
    let is_usual = |name: &str| settings.agent.as_ref().is_some_and(|agent| agent.value == name);
    let is_step = |hook: &HookSpec| {
        [BuiltinHook::RebaseOnMain, BuiltinHook::CreatePr, BuiltinHook::MergePr]
            .iter()
            .any(|step| runs_builtin(hook, *step))
    };
    let mut gates = Vec::new();
    for point in HookPoint::NAMED.into_iter().filter(HookPoint::is_gate) {
        for flow in TaskTypeHooks::for_all_types(settings, hooks).filter(|flow| flow.decides_gate(&point)) {
            let mut checks = flow.hooks_at(&point, is_usual);
            checks.retain(|hook| !is_step(hook));
            let has_rules = point.is_stop() && flow.has_validation_rules();
            if !has_rules && !checks.is_empty() && checks.iter().all(|hook| runs_builtin(hook, BuiltinHook::RunTests)) {
                gates.push((point.clone(), flow.kind.map(|(name, _)| name)));
            }
        }
    }
    gates
}
