//! The plan of a configuration: the pending hooks that each event causes, how each of them runs, and the terms of a session.
//!
//! Not here: which agents judge a change, and the time of a turn (`app`).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use windlass_engine::{
    CompletionMode, ConfigTrust, EngineLimits, EngineRules, EventType, HookClass, HookEffect, HookFailurePolicy,
    HookPlan, HookPoint, HookRegistry, HookScope, OwnerName, PlannedHook, RegistryError, RetryLimitAction,
    SessionTerms, TaskTypes, TypeName, UsdCost, ValidationScope, WORKFLOW_HOOK_PREFIX,
};
use windlass_expr::ToolMatcher;
use windlass_hooks as hooks;

use crate::hooks::DEFAULT_REVIEW;
use crate::{BuiltinHook, Config, HookKind, HookSpec, RoleSettings};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const GATE_TIMEOUT: Duration = Duration::from_mins(10);
/// The default timeout of a gatekeeper, for each of its briefs.
const REVIEW_TIMEOUT: Duration = Duration::from_mins(30);
/// The default timeout of all steps of a workflow together. Each step has its own timeout too.
const WORKFLOW_TIMEOUT: Duration = Duration::from_hours(1);
const DEFAULT_MAX_OUTPUT: usize = 16 * 1024;
/// The default wait before the first retry.
const DEFAULT_BACKOFF: Duration = Duration::from_secs(1);

/// Returns the hook as the runner takes it, if this version can run it.
pub fn runnable_hook(hook: &HookSpec) -> Option<hooks::RunnableHook> {
    let kind = match &hook.kind {
        HookKind::Command(script) => hooks::RunnableKind::Command(script.clone()),
        HookKind::Http(request) => hooks::RunnableKind::Http(request.webhook_address()),
        HookKind::Rules(rules) => hooks::RunnableKind::Rules(rules.clone()),
        HookKind::Desktop => hooks::RunnableKind::Desktop,
        HookKind::Builtin(builtin) => hooks::RunnableKind::Step(delivery_step(*builtin)?),
        HookKind::Gatekeeper(briefs) => hooks::RunnableKind::Step(hooks::DeliveryStep::Review(briefs.clone())),
        HookKind::Prompt(template) => hooks::RunnableKind::Prompt(template.clone()),
        HookKind::Workflow(id) => hooks::RunnableKind::Workflow(hooks::WorkflowRequest {
            id: id.clone(),
            context: hook.context.clone(),
            idempotent: hook.entry.idempotent.unwrap_or(false),
        }),
    };
    let entry = &hook.entry;
    // At the stop gate a retry is another turn, which takes time itself.
    let usual = if hook.all_points().any(HookPoint::is_stop) { Duration::ZERO } else { DEFAULT_BACKOFF };
    let retry = entry.retry.as_ref().map(|retry| hooks::RetrySchedule {
        max: retry.max.as_ref().map_or(1, |max| max.value),
        backoff: retry.backoff.as_ref().map_or(usual, |backoff| backoff.value.duration()),
        jitter: retry.jitter.unwrap_or(true),
    });
    Some(hooks::RunnableHook {
        name: hook.name.clone(),
        kind,
        timeout: hook_timeout(hook),
        pipes: entry.pipe_output.map(Into::into),
        max_output: hook_max_output(hook),
        retry,
        feedback: hook.feedback.clone(),
    })
}

/// Returns the delivery step of a built-in hook.
fn delivery_step(builtin: BuiltinHook) -> Option<hooks::DeliveryStep> {
    match builtin {
        BuiltinHook::RebaseOnMain => Some(hooks::DeliveryStep::RebaseOnMain),
        BuiltinHook::RunTests => Some(hooks::DeliveryStep::RunTests),
        BuiltinHook::CreatePr => Some(hooks::DeliveryStep::CreatePr),
        BuiltinHook::MergePr => Some(hooks::DeliveryStep::MergePr),
        // The name without briefs means one brief of that name.
        BuiltinHook::Gatekeeper => Some(hooks::DeliveryStep::Review(vec![DEFAULT_REVIEW.to_owned()])),
        BuiltinHook::AutoLabelByKeyword
        | BuiltinHook::AutoCreateReviewTask
        | BuiltinHook::CheckDependencySatisfaction
        | BuiltinHook::TrackAgentTaskLifecycle => None,
    }
}

/// The default hook of tasks in worktrees: it opens a change.
pub const DEFAULT_SUBMIT_HOOK: &str = "create_pr (default)";

fn default_submit_hook() -> hooks::RunnableHook {
    hooks::RunnableHook {
        name: DEFAULT_SUBMIT_HOOK.to_owned(),
        kind: hooks::RunnableKind::Step(hooks::DeliveryStep::CreatePr),
        timeout: GATE_TIMEOUT,
        pipes: None,
        max_output: DEFAULT_MAX_OUTPUT,
        retry: None,
        feedback: None,
    }
}

/// Returns the hook of a workflow that a person started.
fn requested_workflow_hook(name: &str) -> hooks::RunnableHook {
    let id = name.trim_start_matches(WORKFLOW_HOOK_PREFIX).to_owned();
    hooks::RunnableHook {
        name: name.to_owned(),
        kind: hooks::RunnableKind::Workflow(hooks::WorkflowRequest { id, context: Vec::new(), idempotent: false }),
        timeout: WORKFLOW_TIMEOUT,
        pipes: None,
        max_output: DEFAULT_MAX_OUTPUT,
        retry: None,
        feedback: None,
    }
}

/// Plans the default hook, unless the project has its own list.
fn planned_submit_hook(config: &Config) -> Option<PlannedHook> {
    let hook = HookEffect {
        hook: DEFAULT_SUBMIT_HOOK.to_owned(),
        point: HookPoint::BeforeSubmit,
        class: HookClass::Vcs,
        on_failure: HookFailurePolicy::Block,
        send_backs: None,
    };
    let planned = PlannedHook { hook, scope: HookScope::Worktrees, matcher: ToolMatcher::default(), when: None };
    (!config.has_project_list(&HookPoint::BeforeSubmit)).then_some(planned)
}

/// Returns the timeout of a hook.
pub fn hook_timeout(hook: &HookSpec) -> Duration {
    let usual = match hook.kind {
        HookKind::Gatekeeper(_) | HookKind::Builtin(BuiltinHook::Gatekeeper) => REVIEW_TIMEOUT,
        HookKind::Workflow(_) => WORKFLOW_TIMEOUT,
        _ if hook.all_points().any(HookPoint::is_gate) => GATE_TIMEOUT,
        _ => DEFAULT_TIMEOUT,
    };
    hook.entry.timeout.as_ref().map_or(usual, |timeout| timeout.value.duration())
}

/// Returns the default timeout of a hook at a point.
pub fn default_timeout(point: &HookPoint) -> Duration {
    if point.is_gate() { GATE_TIMEOUT } else { DEFAULT_TIMEOUT }
}

/// Returns the maximum length of the output that the agent gets.
pub fn hook_max_output(hook: &HookSpec) -> usize {
    let written = hook.entry.max_output.as_ref().and_then(|most| usize::try_from(most.value).ok());
    written.unwrap_or(DEFAULT_MAX_OUTPUT).min(EngineLimits::FEEDBACK_BYTES)
}

/// Returns the runnable hook of that name, if this version can run it.
pub fn find_runnable_hook(config: &Config, name: &str) -> Option<hooks::RunnableHook> {
    match name {
        DEFAULT_SUBMIT_HOOK => Some(default_submit_hook()),
        asked if asked.starts_with(WORKFLOW_HOOK_PREFIX) => Some(requested_workflow_hook(asked)),
        name => runnable_hook(config.hooks.iter().find(|hook| hook.name == name)?),
    }
}

/// Returns the engine's rules without effects.
pub fn pure_rules(config: &Config) -> Result<EngineRules, RegistryError> {
    let mut registry = HookRegistry::with_builtins();
    for setting in config.builtin_settings() {
        registry.configure_hook(setting.name, setting.enabled, setting.priority)?;
    }
    Ok(EngineRules { registry, effects: None, types: plan_task_types(config) })
}

/// Returns the task types, and the agents that may work on each.
pub fn plan_task_types(config: &Config) -> TaskTypes {
    let allowed = |roles: &RoleSettings| {
        let names = roles.implementer.as_ref()?;
        Some(names.iter().map(|name| name.value.clone()).collect())
    };
    let types = TaskTypes::new(config.task_types().map(|(kind, roles)| (task_type_name(kind), allowed(roles))));
    types.with_reports(config.report_types().map(task_type_name).collect())
}

/// Returns the engine's rules with the hooks that each event makes pending for this owner. Without trust the rules contain nothing
/// else of the configuration, and the engine refuses a command that would make a hook pending.
pub fn engine_rules(config: &Config, owner: &OwnerName, trust: ConfigTrust) -> Result<EngineRules, RegistryError> {
    let effects = HookPlan {
        config: config.text().clone(),
        owner: owner.clone(),
        project: config.project_directory().to_string_lossy().into_owned(),
        trust,
        hooks: plan_hooks(config),
        overrides: config.task_type_overrides().map(|(kind, point)| (task_type_name(kind), point)).collect(),
        validation: validation_scope(config),
    };
    let pure = match trust {
        ConfigTrust::Yes => pure_rules(config)?,
        ConfigTrust::No => pure_rules(&config.without_trust())?,
    };
    Ok(EngineRules { effects: Some(effects), ..pure })
}

/// Returns which tasks have validation rules.
fn validation_scope(config: &Config) -> ValidationScope {
    let rules = config.validation_rules();
    let types = rules.types.iter().map(|(kind, rules)| (kind.clone(), !rules.is_empty())).collect();
    ValidationScope { project: !rules.project.is_empty(), types }
}

/// Returns the rules of a session, which also delivers. By default it opens a pull request.
pub fn session_rules(config: &Config, owner: &OwnerName) -> Result<EngineRules, RegistryError> {
    let mut rules = engine_rules(config, owner, ConfigTrust::Yes)?;
    if let (Some(usual), Some(effects)) = (planned_submit_hook(config), &mut rules.effects) {
        effects.hooks.entry(EventType::SubmissionStarted).or_default().push(usual);
    }
    Ok(rules)
}

/// Returns the hooks that each event makes pending, in the order in which they run.
pub fn plan_hooks(config: &Config) -> BTreeMap<EventType, Vec<PlannedHook>> {
    let mut hooks: Vec<&HookSpec> = config.hooks.iter().filter(|hook| is_planned(hook)).collect();
    // The sort is stable: hooks of one priority keep the order of definition.
    hooks.sort_by_key(|hook| hook.priority());
    let mut planned: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for hook in hooks {
        for point in hook.all_points() {
            for event in point.event_types() {
                planned.entry(event).or_default().push(self::plan_hook(hook, point, event));
            }
        }
    }
    planned
}

/// Returns whether some event makes this hook pending.
fn is_planned(hook: &HookSpec) -> bool {
    let runs = !matches!(hook.kind, HookKind::Builtin(builtin) if step(builtin).is_none());
    hook.is_enabled() && runs && hook.all_points().any(HookPoint::is_reachable)
}

fn task_type_name(kind: &str) -> TypeName {
    kind.parse().expect("the names of types were checked when they were read")
}

fn plan_hook(hook: &HookSpec, point: &HookPoint, event: EventType) -> PlannedHook {
    let (matcher, when) = (hook.matcher.clone(), hook.when.clone());
    PlannedHook { hook: hook_effect(hook, point, event), scope: hook.scope.clone(), matcher, when }
}

fn hook_effect(hook: &HookSpec, point: &HookPoint, event: EventType) -> HookEffect {
    let gate = point.is_gate();
    let class = match (&hook.kind, hook.entry.idempotent) {
        _ if event == EventType::BridgeCalled => HookClass::Bridge,
        (HookKind::Builtin(BuiltinHook::RebaseOnMain | BuiltinHook::CreatePr | BuiltinHook::MergePr), _) => {
            HookClass::Vcs
        }
        _ if gate => HookClass::Gate,
        (HookKind::Http(_), _) => HookClass::Webhook,
        (HookKind::Workflow(_), _) => HookClass::Workflow,
        (HookKind::Rules(_) | HookKind::Desktop | HookKind::Prompt(_), _) | (_, Some(true)) => HookClass::Idempotent,
        _ => HookClass::Other,
    };
    HookEffect {
        hook: hook.name.clone(),
        point: point.clone(),
        class,
        on_failure: failure_policy(hook, point),
        send_backs: hook.entry.retry.as_ref().filter(|_| gate).and_then(|retry| Some(retry.max.as_ref()?.value)),
    }
}

/// Returns how the engine treats a failure of the hook itself.
pub fn failure_policy(hook: &HookSpec, point: &HookPoint) -> HookFailurePolicy {
    match hook.entry.on_failure {
        None => point.default_on_failure(),
        Some(crate::FailureSetting::Ignore) => HookFailurePolicy::Ignore,
        Some(crate::FailureSetting::Block) => HookFailurePolicy::Block,
        Some(crate::FailureSetting::Escalate) => HookFailurePolicy::Escalate,
    }
}

pub fn session_terms(config: &Config, max_iterations: Option<u32>) -> SessionTerms {
    let settings = &config.settings;
    SessionTerms {
        max_iterations: max_iterations.unwrap_or(settings.limits.max_iterations.get()),
        max_hook_retries: settings.limits.max_hook_retries,
        max_failures: settings.limits.max_failures.get(),
        failure_span: settings
            .limits
            .failure_span
            .map_or(SessionTerms::default().failure_span, crate::DurationSetting::duration),
        completion: match settings.completion.as_ref().map(|completion| completion.value) {
            None | Some(crate::CompletionSetting::Promise) => CompletionMode::Promise,
            Some(crate::CompletionSetting::Gate) => CompletionMode::Gate,
        },
        strict: settings.strict.unwrap_or(true),
        on_retry_limit: match settings.on_retry_limit {
            crate::RetryLimitSetting::Complete => RetryLimitAction::Complete,
            crate::RetryLimitSetting::Escalate => RetryLimitAction::Escalate,
            crate::RetryLimitSetting::Ask => RetryLimitAction::Ask,
        },
        wall_time: settings.limits.wall_time.map(crate::DurationSetting::duration),
        cost: settings.limits.cost.as_ref().and_then(|cost| UsdCost::from_dollars(cost.value)),
        tokens: settings.limits.tokens.map(NonZeroU64::get),
        thrashing: settings.limits.thrashing,
        max_remediations: settings.limits.max_remediations,
        max_rejections: settings.limits.max_rejections,
    }
}

/// Returns why a hook never runs at a point.
pub fn inactive_reason(hook: &HookSpec, point: &HookPoint) -> Option<String> {
    if !hook.is_enabled() {
        return Some("it is switched off".to_owned());
    }
    if matches!(hook.kind, HookKind::Builtin(builtin) if builtin.is_registered()) {
        return None;
    }
    (!point.is_reachable()).then(|| format!("nothing runs at {point}: that event is what makes hooks possible"))
}

/// Returns the effectful hooks that do not run at every point that they name.
pub fn find_inactive_hooks(config: &Config) -> impl Iterator<Item = &HookSpec> {
    let effectful = config.hooks.iter().filter(|hook| hook.is_enabled() && hook.describe_effect().is_some());
    effectful.filter(|hook| hook.all_points().any(|point| inactive_reason(hook, point).is_some()))
}
