//! The switch for hooks of the configuration, which only a person may use.

use windlass_config::edit::{self as config_edit, EditObstacle, HookField};
use windlass_config::{BuiltinHook, Config, HookKind, HookSpec, plan};
use windlass_engine::{HookPoint, HookRegistry, Refusal};
use windlass_expr::nearest_name;
use windlass_text as text;

use crate::caller::CallerContext;
use crate::context::CommandContext;
use crate::person::ConcernedSessions;
use crate::project::Project;
use crate::{Failure, FailureCode, environment, hints};

/// Refuses an agent. An agent can unset variables, but cannot change its parent processes.
pub fn refuse_agent_caller(context: &CommandContext, project: &Project, what: &'static str) -> Result<(), Failure> {
    let named = environment::run_variable().is_some()
        || environment::effect_variable().is_some()
        || environment::is_judging_process();
    // Without a store no session runs.
    let inside = named
        || project.store_file().exists() && {
            let inside =
                CallerContext::detect_for_person(&context.open_project_to_read()?, ConcernedSessions::Every(None))?;
            inside.run.is_some() || inside.via.is_some()
        };
    match inside {
        true => Err(hints::refusal_failure(&Refusal::NoPerson { what })),
        false => Ok(()),
    }
}

/// The hook that a name means.
pub enum SwitchableHook {
    /// A hook of the configuration, by its index.
    Written(usize),
    /// A hook of the registry that the configuration does not mention.
    Registered(BuiltinHook),
    /// The default for work in worktrees if the configuration has no `before_submit`.
    DefaultDelivery,
}

impl SwitchableHook {
    /// Finds the hook with this name. `on` is the wanted state, for the hint of a failure.
    pub fn find_by_name(config: &Config, name: &str, on: bool) -> Result<Self, Failure> {
        if let Some(index) = config.hooks.iter().position(|hook| hook.name == name) {
            return Ok(Self::Written(index));
        }
        let is_usual = !config.has_project_list(&HookPoint::BeforeSubmit);
        if name == plan::DEFAULT_SUBMIT_HOOK && is_usual {
            return Ok(Self::DefaultDelivery);
        }
        let Some(builtin) = BuiltinHook::parse(name) else { return Err(unknown_hook_failure(config, name)) };
        let numbered = config.hooks.iter().enumerate();
        let using: Vec<usize> =
            numbered.filter(|(_, hook)| uses_builtin(hook, builtin)).map(|(index, _)| index).collect();
        match (using.as_slice(), is_usual && builtin == BuiltinHook::CreatePr) {
            ([], true) => Ok(Self::DefaultDelivery),
            ([], false) if builtin.is_registered() => Ok(Self::Registered(builtin)),
            ([], false) => {
                let unused = Failure::new(FailureCode::NotFound, format!("no hook uses `{builtin}`"));
                Err(match on {
                    true => unused
                        .with_hint(format!("write `- {builtin}` under the point of `hooks` at which it is to run")),
                    false => unused.with_hint("`windlass hooks list` shows what runs"),
                })
            }
            ([index], false) => Ok(Self::Written(*index)),
            (several, usual) => Err(ambiguous_builtin_failure(config, builtin, several, usual)),
        }
    }

    /// Returns its name, as `windlass hooks list` shows it.
    pub fn name(&self, config: &Config) -> String {
        match self {
            Self::Written(index) => config.hooks[*index].name.clone(),
            Self::Registered(builtin) => builtin.to_string(),
            Self::DefaultDelivery => plan::DEFAULT_SUBMIT_HOOK.to_owned(),
        }
    }

    /// Returns whether it is enabled.
    pub fn is_enabled(&self, config: &Config) -> bool {
        match self {
            Self::Written(index) => config.hooks[*index].is_enabled(),
            Self::Registered(builtin) => {
                HookRegistry::with_builtins().get(builtin.name()).is_some_and(|hook| hook.enabled)
            }
            Self::DefaultDelivery => true,
        }
    }

    /// Returns the configuration with the hook switched on or off.
    pub fn edit_config(&self, config: &Config, on: bool) -> Result<Config, EditObstacle> {
        match self.builtin_to_add() {
            Ok((builtin, point)) => {
                let fragment = format!("hooks:\n  {point}:\n    - use: {builtin}\n      enabled: {on}\n");
                config_edit::append_fragment(config, &fragment)
            }
            Err(index) => config_edit::set_hook_field(config, index, HookField::Enabled(on)),
        }
    }

    /// Returns the built-in to add and its point, or the index of the hook that is there.
    fn builtin_to_add(&self) -> Result<(BuiltinHook, HookPoint), usize> {
        match self {
            Self::Written(index) => Err(*index),
            Self::Registered(builtin) => {
                let registry = HookRegistry::with_builtins();
                let event = registry.get(builtin.name()).and_then(|hook| hook.events.first());
                Ok((*builtin, HookPoint::Event(*event.expect("a built-in hook has an event"))))
            }
            Self::DefaultDelivery => Ok((BuiltinHook::CreatePr, HookPoint::BeforeSubmit)),
        }
    }

    /// Returns the failure of an edit, with the text that a person can write by hand.
    pub fn explain_edit_obstacle(&self, config: &Config, on: bool, obstacle: &EditObstacle) -> Failure {
        let file = config.file().display();
        let name = self.name(config);
        let failure = Failure::new(
            FailureCode::Config,
            format!(
                "cannot switch `{}` {} in `{file}`: {obstacle}",
                text::clean_line(&name),
                if on { "on" } else { "off" }
            ),
        );
        let by_hand = match (self.builtin_to_add(), obstacle) {
            (_, EditObstacle::Invalid(_)) => "correct what it names first".to_owned(),
            (Err(index), EditObstacle::Layout) => {
                let hook = &config.hooks[index];
                let (place, line) = (hook.describe_place(), hook.line);
                let entry = match hook.kind {
                    HookKind::Builtin(builtin) => format!("{{use: {builtin}, enabled: {on}}}"),
                    _ => format!("enabled: {on}"),
                };
                format!("write `{entry}` to the hook of {place} at {file}:{line} by hand, without an anchor")
            }
            (Ok((builtin, point)), EditObstacle::Layout) => {
                format!("write `- {{use: {builtin}, enabled: {on}}}` under `{point}` of `hooks` in {file} by hand")
            }
        };
        failure.with_hint(format!("{by_hand}; nothing was written"))
    }
}

fn uses_builtin(hook: &HookSpec, builtin: BuiltinHook) -> bool {
    match hook.kind {
        HookKind::Builtin(other) => other == builtin,
        HookKind::Gatekeeper(_) => builtin == BuiltinHook::Gatekeeper,
        _ => false,
    }
}

fn ambiguous_builtin_failure(config: &Config, builtin: BuiltinHook, using: &[usize], usual: bool) -> Failure {
    let file = config.file().display();
    let written = using.iter().map(|index| &config.hooks[*index]);
    let written = written.map(|hook| format!("`{}` ({file}:{})", text::clean_line(&hook.name), hook.line));
    let places: Vec<String> = written.chain(usual.then(|| format!("`{}`", plan::DEFAULT_SUBMIT_HOOK))).collect();
    Failure::new(FailureCode::Usage, format!("several hooks use `{builtin}`"))
        .with_hint(format!("say which one: {}", places.join(", ")))
}

fn unknown_hook_failure(config: &Config, name: &str) -> Failure {
    let registry = HookRegistry::with_builtins();
    let mut names: Vec<&str> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
    names.extend(registry.hooks().map(|hook| hook.name.as_str()));
    names.extend(BuiltinHook::all_names());
    // A built-in hook is named `place:built-in`; a person may type the place alone.
    let placed = format!("{name}:");
    let near = names.iter().find(|other| other.starts_with(&placed)).copied().or_else(|| nearest_name(name, &names));
    let failure = Failure::new(FailureCode::NotFound, format!("there is no hook `{}`", text::clean_line(name)));
    failure.with_hint(match near {
        Some(near) => format!("did you mean `{}`?", text::clean_line(near)),
        None => hook_list_hint(name),
    })
}

/// Returns which command lists the meant hook. Registered hooks are listed with their task.
pub fn hook_list_hint(name: &str) -> String {
    match name.starts_with("HOOK-") {
        true => "`windlass hooks list --task ID` shows the hooks that are registered for a task".to_owned(),
        false => "`windlass hooks list` shows them all".to_owned(),
    }
}
