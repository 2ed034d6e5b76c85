//! The settings of a runner, built from the project's configuration and the environment.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windlass_agents::Agent;
use windlass_config::{self as config, Config, DurationSetting, plan};
use windlass_engine::Rules;
use windlass_hooks::Mask;
use windlass_process::Launcher;
use windlass_runner::{CachePatterns, Delivery, Gatekeepers, HookFinder, Protected, RunnerSettings, TurnAllowance};
use windlass_tools::validation::{AgentCommands, Permission, Standing};
use windlass_vcs::forge;

use crate::project::Project;
use crate::store_records::StoreMarks;
use crate::{Code, Failure, SUPERVISE, environment, workflows};

/// Returns the settings under which hooks run. `told` is true if a person trusts the store for this command.
pub fn settings(
    (project, told): (&Project, bool),
    config: &Arc<Config>,
    rules: Rules,
    records: PathBuf,
    launcher: Option<Launcher>,
) -> RunnerSettings {
    let mask = mask(config);
    RunnerSettings {
        // Only a session runs validators that agents have registered, and sets its own permission.
        permission: permission(config, standing(false)),
        validation: config.validation_rules(),
        hooks: hook_finder(config.clone()),
        workflows: workflows::finder(project, config, told),
        rules,
        project: project.root.clone(),
        directory: project.root.clone(),
        records,
        environment: inherited(project, told),
        prompt: None,
        protected: protected_files(config).hiding(mask.clone()),
        mask,
        delivery: delivery(project, config),
        launcher,
    }
}

/// Returns the variables for child programs, with the trust token of a store that counts for this command alone.
fn inherited(project: &Project, told: bool) -> Vec<(OsString, OsString)> {
    let token = told.then(|| StoreMarks::of(project)).flatten().map(|marks| marks.token());
    let token = token.map(|token| ("WINDLASS_TRUSTED_STORE".into(), token.into()));
    environment::inherited().into_iter().chain(token).collect()
}

/// Returns the delivery settings: worktrees, checkouts, base branch and forge.
pub fn delivery(project: &Project, config: &Config) -> Delivery {
    let settings = &config.settings;
    Delivery {
        worktrees: project.worktrees(),
        checkouts: project.checkouts(),
        lock: project.directory().join("merge.lock"),
        base: settings.base_branch.as_ref().map(|branch| branch.value.clone()),
        remote: settings.forge.remote.as_ref().map(|remote| remote.value.clone()),
        forge: forge::Settings {
            kind: settings.forge.kind.map(|kind| match kind {
                config::ForgeKind::Github => forge::Kind::GitHub,
                config::ForgeKind::Gitlab => forge::Kind::GitLab,
            }),
            api: settings.forge.api.as_ref().map(|api| api.value.clone()),
            project: None,
        },
        method: match settings.merge.method {
            config::MergeMethod::Merge => forge::Method::Merge,
            config::MergeMethod::Squash => forge::Method::Squash,
            config::MergeMethod::Rebase => forge::Method::Rebase,
        },
        caches: cache_patterns(config),
        tests: settings.test_command.as_ref().map(|command| command.value.clone()),
        // Only a session has its work judged, and sets its own gatekeepers.
        gatekeepers: Gatekeepers::default(),
    }
}

/// Returns whether programs that judge an agent's work may run.
pub fn standing(trusted: bool) -> Standing {
    match trusted {
        _ if environment::is_judging() => Standing::Nested,
        true => Standing::Trusted,
        false => Standing::Untrusted,
    }
}

/// Returns the mask of the configured secrets.
pub fn mask(config: &Config) -> Mask {
    let secrets = config.settings.secrets.iter().filter_map(|name| {
        let value = environment::secret(name)?;
        Some((name.value.clone(), value.into_encoded_bytes()))
    });
    Mask::new(secrets)
}

/// Returns the launcher of supervisors, which end their programs when this process ends.
pub fn launcher() -> Result<Launcher, Failure> {
    Launcher::own(SUPERVISE)
        .map_err(|error| Failure::new(Code::System, "cannot find this very program").caused_by(error))
}

/// Returns a function that finds the runnable hook of a name.
pub fn hook_finder(config: Arc<Config>) -> HookFinder {
    Box::new(move |name| plan::find_runnable(&config, name))
}

/// Returns the permission for commands that agents register.
pub fn permission(config: &Config, standing: Standing) -> Permission {
    let agent_commands = match config.agent_commands() {
        config::AgentCommands::Allow => AgentCommands::Allow,
        config::AgentCommands::Named => AgentCommands::Named,
        config::AgentCommands::Deny => AgentCommands::Deny,
    };
    Permission { standing, agent_commands, validators: config.validators() }
}

/// Returns the protected files: a session must not change them.
pub fn protected_files(config: &Config) -> Protected {
    Protected::new(&config.settings.protected.iter().map(|pattern| pattern.value.clone()).collect::<Vec<_>>())
        .expect("the patterns were checked when they were read")
}

/// Returns the patterns of caches, which a gate finds in its checkout although git does not track them.
fn cache_patterns(config: &Config) -> CachePatterns {
    CachePatterns::new(config.settings.caches.iter().map(|pattern| pattern.as_str()))
        .expect("the patterns were checked when they were read")
}

/// The default time without output after which a working agent counts as hanging.
pub const SILENCE: Duration = Duration::from_mins(30);

/// Returns the time limits of a turn: its total time, and the time without output.
pub fn turn_allowance(config: &Config, agent: &Agent) -> TurnAllowance {
    let limits = &config.settings.limits;
    let silence = limits.silence.map(DurationSetting::duration).or(agent.streams().then_some(SILENCE));
    TurnAllowance { time: limits.turn_time.map(DurationSetting::duration), silence }
}
