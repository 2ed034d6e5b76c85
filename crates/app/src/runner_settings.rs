//! The settings of a runner, built from the project's configuration and the environment.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windlass_agents::Agent;
use windlass_config::{self as config, Config, DurationSetting, plan};
use windlass_engine::EngineRules;
use windlass_hooks::SecretMask;
use windlass_process::SupervisorLauncher;
use windlass_runner::{
    AnswerLinkMaker, CachePatterns, DeliverySettings, GatekeeperSettings, HookFinder, ProtectedFiles, RunnerSettings,
    TurnLimits,
};
use windlass_tools::validation::{AgentCommandPermission, ExecutionTrust, ProgramPermission};
use windlass_vcs::forge;

use crate::fleet::FleetMembership;
use crate::project::Project;
use crate::store_records::StoreMarks;
use crate::web_access::AccessRecords;
use crate::{Failure, FailureCode, SUPERVISE_ARGUMENT, environment, workflows};

/// Returns the settings under which hooks run. `trust_option` is true if a person trusts the store for this command.
pub fn build_runner_settings(
    (project, trust_option): (&Project, bool),
    config: &Arc<Config>,
    rules: EngineRules,
    records: PathBuf,
    launcher: Option<SupervisorLauncher>,
) -> RunnerSettings {
    let mask = build_secret_mask(config);
    RunnerSettings {
        // Only a session runs validators that agents have registered, and sets its own permission.
        permission: validator_permission(config, validator_trust(false)),
        validation: config.validation_rules(),
        hooks: build_hook_finder(config.clone()),
        workflows: workflows::build_workflow_finder(project, config, trust_option),
        rules,
        answer_links: build_answer_links(project),
        project: project.root.clone(),
        directory: project.root.clone(),
        records,
        environment: hook_environment(project, trust_option),
        prompt: None,
        protected: protected_files(config).with_mask(mask.clone()),
        mask,
        delivery: delivery_settings(project, config),
        launcher,
    }
}

/// Returns the maker of links for notices. A notice without a link is better than none.
fn build_answer_links(project: &Project) -> AnswerLinkMaker {
    let project = project.clone();
    Box::new(move |subject| AccessRecords::for_project(&project).ok()?.create_question_link(subject).ok()?)
}

/// Returns the variables for child programs, with the trust token of a store that counts for this command alone.
fn hook_environment(project: &Project, trust_option: bool) -> Vec<(OsString, OsString)> {
    let token = trust_option.then(|| StoreMarks::read_marks(project)).flatten().map(|marks| marks.trust_token());
    let token = token.map(|token| ("WINDLASS_TRUSTED_STORE".into(), token.into()));
    environment::inherited_environment().into_iter().chain(token).collect()
}

/// Returns the delivery settings: worktrees, checkouts, base branch and forge.
pub fn delivery_settings(project: &Project, config: &Config) -> DeliverySettings {
    let settings = &config.settings;
    DeliverySettings {
        shares_work: matches!(FleetMembership::find(project), Ok(Some(_))),
        worktrees: project.worktree_directory(),
        checkouts: project.checkout_directory(),
        lock: project.project_directory().join("merge.lock"),
        base: settings.base_branch.as_ref().map(|branch| branch.value.clone()),
        remote: settings.forge.remote.as_ref().map(|remote| remote.value.clone()),
        forge: forge::ForgeOptions {
            kind: settings.forge.kind.map(|kind| match kind {
                config::ForgeKind::Github => forge::ForgeVendor::GitHub,
                config::ForgeKind::Gitlab => forge::ForgeVendor::GitLab,
            }),
            api: settings.forge.api.as_ref().map(|api| api.value.clone()),
            project: None,
        },
        method: match settings.merge.method {
            config::MergeMethod::Merge => forge::ForgeMergeMethod::Merge,
            config::MergeMethod::Squash => forge::ForgeMergeMethod::Squash,
            config::MergeMethod::Rebase => forge::ForgeMergeMethod::Rebase,
        },
        caches: cache_patterns(config),
        tests: settings.test_command.as_ref().map(|command| command.value.clone()),
        // Only a session has its work judged, and sets its own gatekeepers.
        gatekeepers: GatekeeperSettings::default(),
    }
}

/// Returns whether programs that judge an agent's work may run.
pub fn validator_trust(trusted: bool) -> ExecutionTrust {
    match trusted {
        _ if environment::is_judging_process() => ExecutionTrust::Nested,
        true => ExecutionTrust::Trusted,
        false => ExecutionTrust::Untrusted,
    }
}

/// Returns the mask of the configured secrets.
pub fn build_secret_mask(config: &Config) -> SecretMask {
    let secrets = config.settings.secrets.iter().filter_map(|name| {
        let value = environment::secret_value(name)?;
        Some((name.value.clone(), value.into_encoded_bytes()))
    });
    SecretMask::new(secrets)
}

/// Returns the launcher of supervisors, which end their programs when this process ends.
pub fn supervisor_launcher() -> Result<SupervisorLauncher, Failure> {
    SupervisorLauncher::for_own_program(SUPERVISE_ARGUMENT)
        .map_err(|error| Failure::new(FailureCode::System, "cannot find this very program").with_cause(error))
}

/// Returns a function that finds the runnable hook of a name.
pub fn build_hook_finder(config: Arc<Config>) -> HookFinder {
    Box::new(move |name| plan::find_runnable_hook(&config, name))
}

/// Returns the permission for commands that agents register.
pub fn validator_permission(config: &Config, trust: ExecutionTrust) -> ProgramPermission {
    let agent_commands = match config.agent_command_policy() {
        config::AgentCommandSetting::Allow => AgentCommandPermission::Allow,
        config::AgentCommandSetting::Named => AgentCommandPermission::Named,
        config::AgentCommandSetting::Deny => AgentCommandPermission::Deny,
    };
    ProgramPermission { trust, agent_commands, validators: config.validator_commands() }
}

/// Returns the protected files: a session must not change them.
pub fn protected_files(config: &Config) -> ProtectedFiles {
    ProtectedFiles::new(&config.settings.protected.iter().map(|pattern| pattern.value.clone()).collect::<Vec<_>>())
        .expect("the patterns were checked when they were read")
}

/// Returns the patterns of caches, which a gate finds in its checkout although git does not track them.
fn cache_patterns(config: &Config) -> CachePatterns {
    CachePatterns::new(config.settings.caches.iter().map(|pattern| pattern.as_str()))
        .expect("the patterns were checked when they were read")
}

/// The default time without output after which a working agent counts as hanging.
pub const DEFAULT_OUTPUT_IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Returns the time limits of a turn: its total time, and the time without output.
pub fn turn_allowance(config: &Config, agent: &Agent) -> TurnLimits {
    let limits = &config.settings.limits;
    let silence =
        limits.silence.map(DurationSetting::duration).or(agent.streams_output().then_some(DEFAULT_OUTPUT_IDLE_TIMEOUT));
    TurnLimits { time: limits.turn_time.map(DurationSetting::duration), idle_timeout: silence }
}
