//! What a configuration means to the loop: which hooks are owed when, how each is run, and on what terms.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_engine::{
    Completion, Effects, EventType, HookClass, OnFailure, OnRetryLimit, OwedHook, OwnerName, Rules, Terms,
};
use windlass_hooks as hooks;

use crate::config::{self, Config, Hook, Kind, Scope};
use crate::context;
use crate::failure::{Code, Failure};
use crate::output::Messages;

/// The event that each moment of the loop comes with.
const MOMENTS: &[(&str, EventType)] = &[
    ("session_start", EventType::SessionStarted),
    ("pre_iteration", EventType::IterationStarted),
    ("stop", EventType::TurnFinished),
    ("post_iteration", EventType::IterationCompleted),
    ("session_end", EventType::SessionEnded),
];

const TIMEOUT: Duration = Duration::from_secs(30);
const GATE_TIMEOUT: Duration = Duration::from_mins(10);
const MAX_OUTPUT: usize = 16 * 1024;
const PRIORITY: i64 = 100;

/// The command of a hook that this version can run as it is written.
fn command(hook: &Hook) -> Option<&str> {
    let entry = &hook.entry;
    let plain = entry.when.is_none() && entry.feedback.is_none() && entry.retry.is_none();
    let known = |command: &str| !["{{task_content}}", "{{error}}"].iter().any(|name| command.contains(name));
    match &hook.kind {
        Kind::Command(command) if plain && known(command) && hook.scope == Scope::Project && hook.enabled() => {
            Some(command)
        }
        _ => None,
    }
}

/// The points of a hook at which the loop runs it, with their events.
fn moments(hook: &Hook) -> impl Iterator<Item = (&'static str, EventType)> {
    hook.points().filter_map(|point| MOMENTS.iter().find(|(name, _)| *name == point.name()).copied())
}

/// The hooks that the loop runs, by name.
pub fn hooks(config: &Config) -> BTreeMap<String, hooks::Hook> {
    let runnable = config.hooks.iter().filter_map(|hook| Some((hook, command(hook)?)));
    let settings = runnable.map(|(hook, command)| {
        let gate = moments(hook).any(|(point, _)| point == "stop");
        let timeout = hook.entry.timeout.as_ref().map(|timeout| timeout.duration());
        let max_output = hook.entry.max_output.as_ref().and_then(|most| usize::try_from(most.value).ok());
        let hook = hooks::Hook {
            name: hook.name.clone(),
            command: command.to_owned(),
            timeout: timeout.unwrap_or(if gate { GATE_TIMEOUT } else { TIMEOUT }),
            pipes: hook.entry.pipe_output.unwrap_or(false),
            max_output: max_output.unwrap_or(MAX_OUTPUT).min(windlass_engine::Limits::FEEDBACK / 2),
        };
        (hook.name.clone(), hook)
    });
    settings.collect()
}

/// The engine's rules, with what each event makes owed to this owner.
pub fn rules(config: &Config, owner: &OwnerName) -> Result<Rules, Failure> {
    let mut owed: BTreeMap<EventType, Vec<(i64, OwedHook)>> = BTreeMap::new();
    for hook in config.hooks.iter().filter(|hook| command(hook).is_some()) {
        let priority = hook.entry.priority.unwrap_or(PRIORITY);
        for (point, event) in moments(hook) {
            owed.entry(event).or_default().push((priority, owed_hook(hook, point)));
        }
    }
    let in_order = |mut hooks: Vec<(i64, OwedHook)>| {
        // Equal ones stay in the order of definition.
        hooks.sort_by_key(|(priority, _)| *priority);
        hooks.into_iter().map(|(_, hook)| hook).collect()
    };
    let hooks = owed.into_iter().map(|(event, hooks)| (event, in_order(hooks))).collect();
    let effects = Effects { config: config.text().to_owned(), owner: owner.clone(), hooks };
    Ok(Rules { effects: Some(effects), ..context::rules(config)? })
}

fn owed_hook(hook: &Hook, point: &str) -> OwedHook {
    let class = match (point, hook.entry.idempotent) {
        ("stop", _) => HookClass::Gate,
        (_, Some(true)) => HookClass::Idempotent,
        _ => HookClass::Other,
    };
    let on_failure = match hook.entry.on_failure {
        None | Some(config::OnFailure::Ignore) => OnFailure::Ignore,
        Some(config::OnFailure::Block) => OnFailure::Block,
        Some(config::OnFailure::Escalate) => OnFailure::Escalate,
    };
    OwedHook { hook: hook.name.clone(), point: point.to_owned(), class, on_failure }
}

pub fn terms(config: &Config, max_iterations: Option<u32>) -> Terms {
    let settings = &config.settings;
    Terms {
        max_iterations: max_iterations.unwrap_or(settings.limits.max_iterations.get()),
        max_hook_retries: settings.limits.max_hook_retries,
        max_failures: settings.limits.max_failures.get(),
        completion: match settings.completion {
            config::Completion::Promise => Completion::Promise,
            config::Completion::Gate => Completion::Gate,
        },
        strict: settings.strict.unwrap_or(true),
        on_retry_limit: match settings.on_retry_limit {
            config::OnRetryLimit::Complete => OnRetryLimit::Complete,
            config::OnRetryLimit::Escalate | config::OnRetryLimit::Ask => OnRetryLimit::Escalate,
        },
    }
}

/// A gate that cannot be kept must not stand open.
pub fn check_gates(config: &Config) -> Result<(), Failure> {
    let gate = |hook: &&Hook| hook.enabled() && hook.points().any(|point| point.name() == "stop");
    match config.hooks.iter().filter(gate).find(|hook| command(hook).is_none()) {
        None => Ok(()),
        Some(hook) => Err(Failure::new(Code::Config, format!("this version cannot run the stop hook `{}`", hook.name))
            .caused_by("it is not a plain command: `when`, `retry`, `feedback` and other kinds of hooks come later")
            .hint("write it as a command, or switch it off with `enabled: false`")),
    }
}

/// Hooks that would run something, and that this version does not run at every point that they name.
pub fn unused(config: &Config) -> Vec<&Hook> {
    let used = |hook: &Hook| command(hook).is_some() && hook.points().count() == moments(hook).count();
    config.hooks.iter().filter(|hook| hook.enabled() && hook.effect().is_some() && !used(hook)).collect()
}

/// A hook that somebody wrote for the loop and that does not run must not be silent about it.
pub fn warn_of_unused(config: &Config) {
    let of_the_loop = |hook: &Hook| {
        hook.points().any(|point| point.name() == "on_error" || point.name().parse::<EventType>().is_ok())
            || moments(hook).next().is_some()
    };
    let unused = unused(config).into_iter().filter(|hook| of_the_loop(hook));
    let unused: Vec<&str> = unused.map(|hook| hook.name.as_str()).collect();
    if !unused.is_empty() {
        let unused = unused.join(", ");
        Messages::new()
            .warning(&format!("this version does not run these hooks, or not at all their points: {unused}"));
    }
    let unheeded = unheeded(config);
    if !unheeded.is_empty() {
        Messages::new().warning(&format!("this version does not heed these settings yet: {}", unheeded.join(", ")));
    }
}

/// Settings that somebody may rely on, and that the loop does not know yet.
fn unheeded(config: &Config) -> Vec<&'static str> {
    let settings = &config.settings;
    let off_the_gates = |hook: &Hook| {
        let counts = matches!(hook.entry.on_failure, Some(config::OnFailure::Block | config::OnFailure::Escalate));
        counts && moments(hook).any(|(point, _)| point != "stop")
    };
    let all = [
        ("secrets", !settings.secrets.is_empty()),
        ("protected", !settings.protected.is_empty()),
        ("notify", !settings.notify.is_empty()),
        ("limits.wall_time", settings.limits.wall_time.is_some()),
        ("limits.cost", settings.limits.cost.is_some()),
        ("on_retry_limit: ask", settings.on_retry_limit == config::OnRetryLimit::Ask),
        ("on_failure of hooks other than stop", config.hooks.iter().any(off_the_gates)),
    ];
    all.into_iter().filter(|(_, used)| *used).map(|(name, _)| name).collect()
}
