//! Lists of the hooks that would run at each point, in their order, with the place that defines each.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_engine::{EventType, HookPoint, HookRegistry, HookScope, RegistryError, VALIDATION_RULES_NAME};

use crate::{BuiltinHook, Config, DEFAULT_PRIORITY, HookKind, HookSpec, PipeSetting, hook_points, plan};

/// The work that hooks would run for.
#[derive(Debug, Clone, Default)]
pub struct WorkSubject {
    /// The type of the task.
    pub kind: Option<String>,
    pub agent: Option<String>,
}

/// A hook in a list.
pub enum ListedHook<'c> {
    Configured(&'c HookSpec),
    /// A registry hook without settings in the configuration.
    BuiltIn {
        name: String,
        priority: i64,
        enabled: bool,
        description: String,
    },
    /// The names of the validation rules.
    Validation {
        rules: Vec<String>,
    },
    /// The default hook for tasks in worktrees, without a list in the configuration.
    Default {
        worktrees: bool,
    },
}

/// The hooks of one point, in order.
pub struct HookListing<'c> {
    pub point: HookPoint,
    pub event: Option<EventType>,
    pub rows: Vec<ListedHook<'c>>,
}

impl<'c> ListedHook<'c> {
    pub fn name(&self) -> &str {
        match self {
            Self::Configured(hook) => &hook.name,
            Self::BuiltIn { name, .. } => name,
            Self::Validation { .. } => VALIDATION_RULES_NAME,
            Self::Default { .. } => plan::DEFAULT_SUBMIT_HOOK,
        }
    }

    /// Returns the priority; `None` for a hook that runs before every priority.
    pub fn priority(&self) -> Option<i64> {
        match self {
            Self::Configured(hook) => {
                Some(hook.entry.priority.or_else(|| registry_priority(hook)).unwrap_or(DEFAULT_PRIORITY))
            }
            Self::BuiltIn { priority, .. } => Some(*priority),
            Self::Validation { .. } => None,
            Self::Default { .. } => Some(DEFAULT_PRIORITY),
        }
    }

    /// Returns the kind as one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Configured(hook) => match hook.kind {
                HookKind::Command(_) => "command",
                HookKind::Builtin(_) => "built-in",
                HookKind::Rules(_) => "rules",
                HookKind::Prompt(_) => "prompt",
                HookKind::Http(_) => "http",
                HookKind::Workflow(_) => "workflow",
                HookKind::Gatekeeper(_) => "gatekeeper",
                HookKind::Desktop => "desktop",
            },
            Self::BuiltIn { .. } | Self::Default { .. } => "built-in",
            Self::Validation { .. } => "validation",
        }
    }

    /// Describes what the hook runs.
    pub fn describe_effect(&self) -> String {
        match self {
            Self::Configured(hook) => hook.describe_effect().unwrap_or_else(|| match &hook.kind {
                HookKind::Rules(rules) if rules.len() == 1 => "1 rule".to_owned(),
                HookKind::Rules(rules) => format!("{} rules", rules.len()),
                HookKind::Builtin(builtin) if hook.entry.description.is_none() => registry_description(*builtin),
                _ => hook.entry.description.clone().unwrap_or_default(),
            }),
            Self::BuiltIn { description, .. } => description.clone(),
            Self::Validation { rules } => rules.join(", "),
            Self::Default { .. } => BuiltinHook::CreatePr.describe_effect().unwrap_or_default().to_owned(),
        }
    }

    /// Describes the place of the definition.
    pub fn describe_place(&self) -> String {
        match self {
            Self::Configured(hook) => match &hook.scope {
                HookScope::Project | HookScope::Worktrees => format!("line {}", hook.line),
                HookScope::TaskType(name) => format!("line {}, task type {name}", hook.line),
                HookScope::Agent(name) => format!("line {}, agent {name}", hook.line),
            },
            Self::BuiltIn { .. } => "built in".to_owned(),
            Self::Validation { .. } => "before the others, under `validation`".to_owned(),
            Self::Default { .. } => "default, for tasks in worktrees".to_owned(),
        }
    }

    /// Returns why the hook never runs at a point.
    pub fn inactive_reason(&self, point: &HookPoint) -> Option<String> {
        match self {
            Self::Configured(hook) => plan::inactive_reason(hook, point),
            Self::BuiltIn { enabled: false, .. } => Some("it is off by default; `use` switches it on".to_owned()),
            Self::BuiltIn { .. } | Self::Validation { .. } | Self::Default { worktrees: true } => None,
            Self::Default { worktrees: false } => {
                Some("it is for tasks in worktrees, and `worktrees` is false".to_owned())
            }
        }
    }

    /// Returns whether the hook runs inside the commit of its event.
    fn runs_in_commit(&self) -> bool {
        match self {
            Self::Configured(hook) => matches!(hook.kind, HookKind::Builtin(builtin) if builtin.is_registered()),
            Self::BuiltIn { .. } => true,
            Self::Validation { .. } | Self::Default { .. } => false,
        }
    }

    pub fn to_json(&self, point: &HookPoint) -> Value {
        let mut row = json!({
            "name": self.name(),
            "kind": self.kind(),
            "what": self.describe_effect(),
            "priority": self.priority(),
            "definedAt": self.describe_place(),
            "runs": self.inactive_reason(point).is_none(),
            "note": self.inactive_reason(point),
        });
        if let Self::Configured(hook) = self {
            row["line"] = json!(hook.line);
            row["when"] = json!(hook.entry.when.as_ref().map(|when| &when.value));
            row["timeoutMs"] = json!(u64::try_from(plan::hook_timeout(hook).as_millis()).unwrap_or(u64::MAX));
            row["pipeOutput"] = json!(hook.entry.pipe_output.unwrap_or(PipeSetting::Fixed(false)));
        }
        row
    }
}

/// Returns the description of a registry hook.
fn registry_description(builtin: BuiltinHook) -> String {
    HookRegistry::with_builtins().get(builtin.name()).map(|hook| hook.description.clone()).unwrap_or_default()
}

/// Returns the default priority of a registry hook.
fn registry_priority(hook: &HookSpec) -> Option<i64> {
    let HookKind::Builtin(builtin) = hook.kind else { return None };
    HookRegistry::with_builtins().get(builtin.name()).map(|hook| hook.priority)
}

/// Returns the hooks of every point that has any.
pub fn list_planned_hooks<'c>(config: &'c Config, who: &WorkSubject) -> Result<Vec<HookListing<'c>>, RegistryError> {
    let registry = plan::pure_rules(config)?.registry;
    let facts: BTreeSet<HookPoint> = config
        .hooks
        .iter()
        .flat_map(HookSpec::all_points)
        .filter(|point| matches!(point, HookPoint::Fact(_)))
        .cloned()
        .collect();
    let points = hook_points().chain(facts).chain([HookPoint::Notify]);
    let planned =
        points.map(|point| list_hooks_at(config, &registry, who, &point)).filter(|planned| !planned.rows.is_empty());
    Ok(planned.collect())
}

/// Returns the hooks of a point.
pub fn list_hooks_at<'c>(
    config: &'c Config,
    registry: &HookRegistry,
    who: &WorkSubject,
    point: &HookPoint,
) -> HookListing<'c> {
    let event = point.event_types().first().copied();
    let (kind, agent) = (who.kind.as_deref(), who.agent.as_deref());
    let own = kind.is_some_and(|kind| config.task_type_overrides().any(|given| given == (kind, point.clone())));
    let is_own_point = event.is_some_and(|event| event.name() == point.name());
    // A registry hook runs at all of its events, wherever the file configures it.
    let of_registry = |hook: &HookSpec| match hook.kind {
        HookKind::Builtin(builtin) if builtin.is_registered() && is_own_point => {
            registry.get(builtin.name()).is_some_and(|known| event.is_some_and(|event| known.events.contains(&event)))
        }
        _ => false,
    };
    let is_at = |hook: &HookSpec| hook.all_points().any(|other| other == point) || of_registry(hook);
    let meant = |hook: &&HookSpec| is_at(hook) && hook.scope.includes_work(kind, agent, own);
    let mut rows: Vec<ListedHook<'c>> = config.hooks.iter().filter(meant).map(ListedHook::Configured).collect();
    let configured = |name: &str| {
        let same = |hook: &HookSpec| matches!(hook.kind, HookKind::Builtin(builtin) if builtin.name() == name);
        config.hooks.iter().any(same)
    };
    let built_in = registry.hooks().filter(|hook| {
        is_own_point && event.is_some_and(|event| hook.events.contains(&event)) && !configured(&hook.name)
    });
    rows.extend(built_in.map(|hook| ListedHook::BuiltIn {
        name: hook.name.clone(),
        priority: hook.priority,
        enabled: hook.enabled,
        description: hook.description.clone(),
    }));
    if point.is_stop() {
        let kind = kind.and_then(|kind| kind.parse().ok());
        let rules: Vec<String> =
            config.validation_rules().rules_for_type(kind.as_ref()).iter().map(|rule| rule.name.clone()).collect();
        rows.extend((!rules.is_empty()).then_some(ListedHook::Validation { rules }));
    }
    if *point == HookPoint::BeforeSubmit && !config.defines_point(point, who.kind.as_deref()) {
        rows.push(ListedHook::Default { worktrees: config.settings.worktrees.unwrap_or(true) });
    }
    rows.sort_by_key(|row| (!row.runs_in_commit(), matches!(row, ListedHook::Default { .. }), row.priority()));
    HookListing { point: point.clone(), event, rows }
}
