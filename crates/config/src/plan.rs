//! The plan of a configuration: the pending hooks that each event causes, how each of them runs, and the terms of a session.
//!
//! Not here: which agents judge a change, and the time of a turn (`app`).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use windlass_engine::{
    Completion, Cost, Effects, EventType, HookClass, HookEffect, HookPoint, HookScope, Limits, OnFailure, OnRetryLimit,
    OwnerName, PlannedHook, Registry, RegistryError, Rules, Terms, Trusted, TypeName, Types, ValidationScope, WORKFLOW,
};
use windlass_expr::Matcher;
use windlass_hooks as hooks;

use crate::hooks::DEFAULT_REVIEW;
use crate::{Builtin, Config, HookKind, HookSpec, RoleSettings};

const TIMEOUT: Duration = Duration::from_secs(30);
const GATE_TIMEOUT: Duration = Duration::from_mins(10);
/// The default timeout of a gatekeeper, for each of its briefs.
const REVIEW_TIMEOUT: Duration = Duration::from_mins(30);
/// The default timeout of all steps of a workflow together. Each step has its own timeout too.
const WORKFLOW_TIMEOUT: Duration = Duration::from_hours(1);
const MAX_OUTPUT: usize = 16 * 1024;
/// The default wait before the first retry.
const BACKOFF: Duration = Duration::from_secs(1);

/// Returns the hook as the runner takes it, if this version can run it.
pub fn runnable(hook: &HookSpec) -> Option<hooks::RunnableHook> {
    let kind = match &hook.kind {
        HookKind::Command(script) => hooks::RunnableKind::Command(script.clone()),
        HookKind::Http(request) => hooks::RunnableKind::Http(request.address()),
        HookKind::Rules(rules) => hooks::RunnableKind::Rules(rules.clone()),
        HookKind::Desktop => hooks::RunnableKind::Desktop,
        HookKind::Builtin(builtin) => hooks::RunnableKind::Step(step(*builtin)?),
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
    let usual = if hook.points().any(HookPoint::is_stop) { Duration::ZERO } else { BACKOFF };
    let retry = entry.retry.as_ref().map(|retry| hooks::Retry {
        max: retry.max.as_ref().map_or(1, |max| max.value),
        backoff: retry.backoff.as_ref().map_or(usual, |backoff| backoff.value.duration()),
        jitter: retry.jitter.unwrap_or(true),
    });
    Some(hooks::RunnableHook {
        name: hook.name.clone(),
        kind,
        timeout: timeout(hook),
        pipes: entry.pipe_output.map(Into::into),
        max_output: max_output(hook),
        retry,
        feedback: hook.feedback.clone(),
    })
}

/// Returns the delivery step of a built-in hook.
fn step(builtin: Builtin) -> Option<hooks::DeliveryStep> {
    match builtin {
        Builtin::RebaseOnMain => Some(hooks::DeliveryStep::RebaseOnMain),
        Builtin::RunTests => Some(hooks::DeliveryStep::RunTests),
        Builtin::CreatePr => Some(hooks::DeliveryStep::CreatePr),
        Builtin::MergePr => Some(hooks::DeliveryStep::MergePr),
        // The name without briefs means one brief of that name.
        Builtin::Gatekeeper => Some(hooks::DeliveryStep::Review(vec![DEFAULT_REVIEW.to_owned()])),
        Builtin::AutoLabelByKeyword
        | Builtin::AutoCreateReviewTask
        | Builtin::CheckDependencySatisfaction
        | Builtin::TrackAgentTaskLifecycle => None,
    }
}

/// The default hook of tasks in worktrees: it opens a change.
pub const USUAL: &str = "create_pr (default)";

fn usual() -> hooks::RunnableHook {
    hooks::RunnableHook {
        name: USUAL.to_owned(),
        kind: hooks::RunnableKind::Step(hooks::DeliveryStep::CreatePr),
        timeout: GATE_TIMEOUT,
        pipes: None,
        max_output: MAX_OUTPUT,
        retry: None,
        feedback: None,
    }
}

/// Returns the hook of a workflow that a person started.
fn asked_for(name: &str) -> hooks::RunnableHook {
    let id = name.trim_start_matches(WORKFLOW).to_owned();
    hooks::RunnableHook {
        name: name.to_owned(),
        kind: hooks::RunnableKind::Workflow(hooks::WorkflowRequest { id, context: Vec::new(), idempotent: false }),
        timeout: WORKFLOW_TIMEOUT,
        pipes: None,
        max_output: MAX_OUTPUT,
        retry: None,
        feedback: None,
    }
}

/// Plans the default hook, unless the project has its own list.
fn usually(config: &Config) -> Option<PlannedHook> {
    let hook = HookEffect {
        hook: USUAL.to_owned(),
        point: HookPoint::BeforeSubmit,
        class: HookClass::Vcs,
        on_failure: OnFailure::Block,
        send_backs: None,
    };
    let planned = PlannedHook { hook, scope: HookScope::Worktrees, matcher: Matcher::default(), when: None };
    (!config.has_own_list(&HookPoint::BeforeSubmit)).then_some(planned)
}

/// Returns the timeout of a hook.
pub fn timeout(hook: &HookSpec) -> Duration {
    let usual = match hook.kind {
        HookKind::Gatekeeper(_) | HookKind::Builtin(Builtin::Gatekeeper) => REVIEW_TIMEOUT,
        HookKind::Workflow(_) => WORKFLOW_TIMEOUT,
        _ if hook.points().any(HookPoint::is_gate) => GATE_TIMEOUT,
        _ => TIMEOUT,
    };
    hook.entry.timeout.as_ref().map_or(usual, |timeout| timeout.value.duration())
}

/// Returns the default timeout of a hook at a point.
pub fn usual_timeout(point: &HookPoint) -> Duration {
    if point.is_gate() { GATE_TIMEOUT } else { TIMEOUT }
}

/// Returns the maximum length of the output that the agent gets.
pub fn max_output(hook: &HookSpec) -> usize {
    let written = hook.entry.max_output.as_ref().and_then(|most| usize::try_from(most.value).ok());
    written.unwrap_or(MAX_OUTPUT).min(Limits::FEEDBACK)
}

/// Returns the runnable hook of that name, if this version can run it.
pub fn find_runnable(config: &Config, name: &str) -> Option<hooks::RunnableHook> {
    match name {
        USUAL => Some(usual()),
        asked if asked.starts_with(WORKFLOW) => Some(asked_for(asked)),
        name => runnable(config.hooks.iter().find(|hook| hook.name == name)?),
    }
}

/// Returns the engine's rules without effects.
pub fn pure_rules(config: &Config) -> Result<Rules, RegistryError> {
    let mut registry = Registry::with_builtins();
    for setting in config.builtin_settings() {
        registry.configure(setting.name, setting.enabled, setting.priority)?;
    }
    Ok(Rules { registry, effects: None, types: types(config) })
}

/// Returns the task types, and the agents that may work on each.
pub fn types(config: &Config) -> Types {
    let allowed = |roles: &RoleSettings| {
        let names = roles.implementer.as_ref()?;
        Some(names.iter().map(|name| name.value.clone()).collect())
    };
    let types = Types::new(config.task_types().map(|(kind, roles)| (name(kind), allowed(roles))));
    types.with_reports(config.report_types().map(name).collect())
}

/// Returns the engine's rules with the hooks that each event makes pending for this owner. Without trust the rules contain nothing
/// else of the configuration, and the engine refuses a command that would make a hook pending.
pub fn rules(config: &Config, owner: &OwnerName, trust: Trusted) -> Result<Rules, RegistryError> {
    let effects = Effects {
        config: config.text().clone(),
        owner: owner.clone(),
        project: config.project().to_string_lossy().into_owned(),
        trust,
        hooks: planned_hooks(config),
        overrides: config.overrides().map(|(kind, point)| (name(kind), point)).collect(),
        validation: validation(config),
    };
    let pure = match trust {
        Trusted::Yes => pure_rules(config)?,
        Trusted::No => pure_rules(&config.without_say())?,
    };
    Ok(Rules { effects: Some(effects), ..pure })
}

/// Returns which tasks have validation rules.
fn validation(config: &Config) -> ValidationScope {
    let rules = config.validation_rules();
    let types = rules.types.iter().map(|(kind, rules)| (kind.clone(), !rules.is_empty())).collect();
    ValidationScope { project: !rules.project.is_empty(), types }
}

/// Returns the rules of a session, which also delivers. By default it opens a pull request.
pub fn session_rules(config: &Config, owner: &OwnerName) -> Result<Rules, RegistryError> {
    let mut rules = rules(config, owner, Trusted::Yes)?;
    if let (Some(usual), Some(effects)) = (usually(config), &mut rules.effects) {
        effects.hooks.entry(EventType::SubmissionStarted).or_default().push(usual);
    }
    Ok(rules)
}

/// Returns the hooks that each event makes pending, in the order in which they run.
pub fn planned_hooks(config: &Config) -> BTreeMap<EventType, Vec<PlannedHook>> {
    let mut hooks: Vec<&HookSpec> = config.hooks.iter().filter(|hook| is_owing(hook)).collect();
    // The sort is stable: hooks of one priority keep the order of definition.
    hooks.sort_by_key(|hook| hook.priority());
    let mut planned: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for hook in hooks {
        for point in hook.points() {
            for event in point.events() {
                planned.entry(event).or_default().push(self::planned(hook, point, event));
            }
        }
    }
    planned
}

/// Returns whether some event makes this hook pending.
fn is_owing(hook: &HookSpec) -> bool {
    let runs = !matches!(hook.kind, HookKind::Builtin(builtin) if step(builtin).is_none());
    hook.enabled() && runs && hook.points().any(HookPoint::is_reachable)
}

fn name(kind: &str) -> TypeName {
    kind.parse().expect("the names of types were checked when they were read")
}

fn planned(hook: &HookSpec, point: &HookPoint, event: EventType) -> PlannedHook {
    let (matcher, when) = (hook.matcher.clone(), hook.when.clone());
    PlannedHook { hook: hook_effect(hook, point, event), scope: hook.scope.clone(), matcher, when }
}

fn hook_effect(hook: &HookSpec, point: &HookPoint, event: EventType) -> HookEffect {
    let gate = point.is_gate();
    let class = match (&hook.kind, hook.entry.idempotent) {
        _ if event == EventType::BridgeCalled => HookClass::Bridge,
        (HookKind::Builtin(Builtin::RebaseOnMain | Builtin::CreatePr | Builtin::MergePr), _) => HookClass::Vcs,
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
        on_failure: on_failure(hook, point),
        send_backs: hook.entry.retry.as_ref().filter(|_| gate).and_then(|retry| Some(retry.max.as_ref()?.value)),
    }
}

/// Returns how the engine treats a failure of the hook itself.
pub fn on_failure(hook: &HookSpec, point: &HookPoint) -> OnFailure {
    match hook.entry.on_failure {
        None => point.default_on_failure(),
        Some(crate::OnFailure::Ignore) => OnFailure::Ignore,
        Some(crate::OnFailure::Block) => OnFailure::Block,
        Some(crate::OnFailure::Escalate) => OnFailure::Escalate,
    }
}

pub fn terms(config: &Config, max_iterations: Option<u32>) -> Terms {
    let settings = &config.settings;
    Terms {
        max_iterations: max_iterations.unwrap_or(settings.limits.max_iterations.get()),
        max_hook_retries: settings.limits.max_hook_retries,
        max_failures: settings.limits.max_failures.get(),
        failure_span: settings
            .limits
            .failure_span
            .map_or(Terms::default().failure_span, crate::DurationSetting::duration),
        completion: match settings.completion.as_ref().map(|completion| completion.value) {
            None | Some(crate::Completion::Promise) => Completion::Promise,
            Some(crate::Completion::Gate) => Completion::Gate,
        },
        strict: settings.strict.unwrap_or(true),
        on_retry_limit: match settings.on_retry_limit {
            crate::OnRetryLimit::Complete => OnRetryLimit::Complete,
            crate::OnRetryLimit::Escalate => OnRetryLimit::Escalate,
            crate::OnRetryLimit::Ask => OnRetryLimit::Ask,
        },
        wall_time: settings.limits.wall_time.map(crate::DurationSetting::duration),
        cost: settings.limits.cost.as_ref().and_then(|cost| Cost::of_dollars(cost.value)),
        tokens: settings.limits.tokens.map(NonZeroU64::get),
        thrashing: settings.limits.thrashing,
        max_remediations: settings.limits.max_remediations,
        max_rejections: settings.limits.max_rejections,
    }
}

/// Returns why a hook never runs at a point.
pub fn silence(hook: &HookSpec, point: &HookPoint) -> Option<String> {
    if !hook.enabled() {
        return Some("it is switched off".to_owned());
    }
    if matches!(hook.kind, HookKind::Builtin(builtin) if builtin.is_registered()) {
        return None;
    }
    (!point.is_reachable()).then(|| format!("nothing runs at {point}: that event is what makes hooks possible"))
}

/// Returns the effectful hooks that do not run at every point that they name.
pub fn silent(config: &Config) -> impl Iterator<Item = &HookSpec> {
    let effectful = config.hooks.iter().filter(|hook| hook.enabled() && hook.effect().is_some());
    effectful.filter(|hook| hook.points().any(|point| silence(hook, point).is_some()))
}
