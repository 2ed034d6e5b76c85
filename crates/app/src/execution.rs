//! Commands that run their hooks before they return.
//!
//! ```text
//! command ─► caller ─► which configuration, and is it trusted ─► commit ─► its pending hooks, one after another
//! ```
//!
//! Invariants:
//! - A command without pending hooks has no cost for them: no lock file, no signal handlers.
//! - Settings of an untrusted configuration have no effect.
//! - A failing hook becomes a notice, and the command still succeeds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{
    Authority, Command, CommandOrigin, ConfigTrust, EngineRules, Event, EventRecord, EventType, HookOutcome, OwnerName,
    PlannedHook, StateView, TaskTypes, Timestamp, payload,
};
use windlass_process::{OwnerLock, RunControl, SupervisorLauncher, signals};
use windlass_runner::{EffectRunner, RunnerEnv, RunnerEvent, RunnerSettings};
use windlass_store::Store;

use crate::caller::{CallerContext, requires_person};
use crate::context::OpenedProject;
use crate::fleet::{self, FleetMembership};
use crate::person::ConcernedSessions;
use crate::project::Project;
use crate::runner_settings::{build_runner_settings, build_secret_mask};
use crate::trust::{self, TrustState};
use crate::{Failure, FailureCode, FrontEnd, Notice, environment, hints};

/// The directory of records for the hooks of commands.
const RECORDS_DIRECTORY: &str = "commands";
/// The note while another task is merged first.
pub const MERGE_QUEUE_NOTE: &str = "waiting for another task to be merged";

impl OpenedProject {
    /// Lets the engine decide a command, and returns when its events are durable and their hooks have run.
    pub fn execute_command(&mut self, command: &Command, authority: Authority) -> Result<Vec<EventRecord>, Failure> {
        execute(self, command, authority)
    }
}

/// Detects the caller, lets the engine decide a command, and runs its effects.
fn execute(opened: &mut OpenedProject, command: &Command, authority: Authority) -> Result<Vec<EventRecord>, Failure> {
    // Only a person may override the rules.
    let inside = match authority {
        Authority::Forced => CallerContext::detect_for_person(opened, ConcernedSessions::every_session_for(command))?,
        Authority::Person | Authority::Holder(_) => CallerContext::detect_for_command(opened, command)?,
    };
    execute_with_caller(opened, inside, command, authority)
}

/// Returns the origin of a command that a person gives to this process.
pub(crate) fn person_origin(authority: Authority, at: Timestamp) -> CommandOrigin {
    CommandOrigin { by: environment::user_name(), at, authority, run: None, via: None }
}

/// Executes a command of a known caller, and publishes its events if the configuration asks for it.
pub fn execute_with_caller(
    opened: &mut OpenedProject,
    inside: CallerContext,
    command: &Command,
    authority: Authority,
) -> Result<Vec<EventRecord>, Failure> {
    let config = Config::from_source(inside.load_config_source(opened)?)?;
    let counts = trust::is_config_effective(&opened.project, &config, opened.trust || inside.config.is_some())?;
    let publishes = counts && config.settings.fleet.publish == Some(true);
    let records = execute_under_config(opened, inside, (config, counts), command, authority)?;
    if publishes {
        fleet::publish_after_command(opened);
    }
    Ok(records)
}

fn execute_under_config(
    opened: &mut OpenedProject,
    inside: CallerContext,
    (config, counts): (Config, bool),
    command: &Command,
    authority: Authority,
) -> Result<Vec<EventRecord>, Failure> {
    // Hooks of a removed configuration cannot run, and the task would bypass them.
    if !counts && !config.has_file() && requires_person(command) {
        return Err(trust::trust_failure(&config, TrustState::Changed));
    }
    let CallerContext { run, via, .. } = inside;
    // The log has readers other than the user, so the user name is masked, too.
    let mask = build_secret_mask(&config);
    let person = opened.person.clone().unwrap_or_else(environment::user_name);
    let by = mask.mask_text(&person).into_owned();
    let origin = CommandOrigin { by, at: environment::current_timestamp(), authority, run, via };
    if !counts && config.affects_tasks() {
        trust::note_untrusted_defaults(&*opened.front_end);
    }
    if plan::plan_hooks(&config).is_empty() {
        let nonce = random_u128()?;
        let rules = if counts { plan::pure_rules(&config) } else { plan::pure_rules(&config.without_trust()) }?;
        let command = mask.mask_command(command);
        return opened.store.execute_command(&rules, &origin, &command, nonce).map_err(hints::execute_failure);
    }
    let trusted = if counts { ConfigTrust::Yes } else { ConfigTrust::No };
    let (control, received) = listen_to_signals()?;
    let config = Arc::new(config);
    let done = HookExecution::new(opened, &config, &control).with_trust(trusted).run_with_effects(|dispatch| {
        let records = dispatch.commit_command_as(&origin, command).map_err(hints::run_failure)?;
        dispatch.run_pending_effects().map_err(hints::run_failure)?;
        Ok(records)
    });
    done.map_err(|failure| failure.with_signal(received.first_signal()))
}

/// Returns the task types that apply here, and the agent of the session that this command comes from.
pub fn load_task_types(opened: &OpenedProject) -> Result<(TaskTypes, Option<String>), Failure> {
    let inside = CallerContext::detect_from_variables(opened)?;
    let config = Config::from_source(inside.load_config_source(opened)?)?;
    let counts = trust::is_config_effective(&opened.project, &config, opened.trust || inside.config.is_some())?;
    if !counts {
        let state = trust::find_trust_state(&opened.project, &config)?;
        // With the defaults every agent may work on everything.
        if state == TrustState::Changed || config.restricts_agents() {
            return Err(trust::trust_failure(&config, state));
        }
        if config.affects_tasks() {
            trust::note_untrusted_defaults(&*opened.front_end);
        }
    }
    let types = if counts { plan::plan_task_types(&config) } else { TaskTypes::default() };
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let session =
        inside.run.map(|run| snapshot.find_session(&run.session)).transpose().map_err(hints::view_failure)?.flatten();
    Ok((types, session.map(|session| session.agent)))
}

/// Returns a configuration as far as it counts: all of it if a person trusts it, or if a run works with it (`is_ours`).
pub fn restrict_to_trusted(opened: &OpenedProject, config: Config, is_ours: bool) -> Result<Config, Failure> {
    if trust::is_config_effective(&opened.project, &config, opened.trust || is_ours)? {
        return Ok(config);
    }
    if config.has_trusted_settings() {
        trust::note_untrusted_defaults(&*opened.front_end);
    }
    Ok(config.without_trust())
}

/// Returns the source of a recorded configuration. An empty text is the configuration of a project without a file.
pub fn recorded_config_source(project: &Project, text: &str) -> ConfigSource {
    let file = project.config_file();
    if text.is_empty() { ConfigSource::for_missing_file(file) } else { ConfigSource::from_text(&file, text) }
}

/// An observer of the events while hooks run.
pub type RunnerEventObserver<'a> = &'a mut dyn FnMut(RunnerEvent<'_>);

/// A builder for running the hooks of a command.
pub struct HookExecution<'a> {
    opened: &'a mut OpenedProject,
    config: &'a Arc<Config>,
    control: RunControl,
    trusted: ConfigTrust,
    owner: Option<(&'a OwnerLock, EngineRules)>,
    directory: Option<PathBuf>,
    launcher: Option<SupervisorLauncher>,
    observer: Option<RunnerEventObserver<'a>>,
    planned: Option<(EventType, Vec<PlannedHook>)>,
}

impl<'a> HookExecution<'a> {
    /// Starts with a trusted configuration, a new owner, and the front end as the observer.
    pub fn new(opened: &'a mut OpenedProject, config: &'a Arc<Config>, control: &RunControl) -> Self {
        Self {
            opened,
            config,
            control: control.clone(),
            trusted: ConfigTrust::Yes,
            owner: None,
            directory: None,
            launcher: None,
            observer: None,
            planned: None,
        }
    }

    pub fn with_trust(self, trusted: ConfigTrust) -> Self {
        Self { trusted, ..self }
    }

    /// Uses the owner lock and the rules of this process, which runs programs already.
    pub fn with_owner(self, owner_lock: &'a OwnerLock, rules: EngineRules) -> Self {
        Self { owner: Some((owner_lock, rules)), ..self }
    }

    /// Runs hooks in another directory than the project's root.
    pub fn in_directory(self, directory: PathBuf) -> Self {
        Self { directory: Some(directory), ..self }
    }

    /// Runs hooks under a supervisor, which ends them when this process ends.
    pub fn with_supervisor(self, launcher: Option<SupervisorLauncher>) -> Self {
        Self { launcher, ..self }
    }

    pub fn with_observer(self, observer: RunnerEventObserver<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Uses these hooks for an event, in place of those that the configuration plans.
    pub fn with_planned_hooks(self, event: EventType, planned: Vec<PlannedHook>) -> Self {
        Self { planned: Some((event, planned)), ..self }
    }

    /// Runs `work` with an effect runner.
    pub fn run_with_effects<T>(
        self,
        work: impl FnOnce(&mut EffectRunner<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Self { opened, config, control, trusted, owner, directory, launcher, observer, planned } = self;
        let (own_roster, mut rules);
        let owner_lock = match owner {
            Some((owner_lock, given)) => {
                rules = given;
                owner_lock
            }
            None => {
                own_roster = acquire_owner_lock(&opened.project)?;
                rules = plan::engine_rules(config, &owner_name(&own_roster), trusted)?;
                &own_roster
            }
        };
        if let (Some((event, hooks)), Some(effects)) = (planned, &mut rules.effects) {
            effects.hooks.insert(event, hooks);
        }
        let records = opened.project.create_record_directory(RECORDS_DIRECTORY)?;
        let usual = build_runner_settings((&opened.project, opened.trust), config, rules, records, launcher);
        let settings = RunnerSettings { directory: directory.unwrap_or(usual.directory), ..usual };
        let front_end = opened.front_end.clone();
        let mut observer = observer;
        let mut observe = |event: RunnerEvent<'_>| match &mut observer {
            Some(observer) => observer(event),
            None => show_failed_hook(&*front_end, &event),
        };
        let outside = RunnerEnv {
            now: &environment::current_timestamp,
            random: &random_u128_or_io_error,
            observe: &mut observe,
            shows_output: false,
        };
        let dispatch = EffectRunner::new(&mut opened.store, settings, owner_lock, control, outside);
        work(&mut dispatch.map_err(hints::run_failure)?)
    }
}

/// Runs `work` with an effect runner that runs no hooks, and may run git.
pub fn run_git_work<T>(
    opened: &mut OpenedProject,
    work: impl FnOnce(&mut EffectRunner<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let config = Config::from_source(ConfigSource::load(&opened.project.root)?)?;
    let config = Arc::new(restrict_to_trusted(opened, config, false)?);
    let (control, received) = listen_to_signals()?;
    let done = HookExecution::new(opened, &config, &control).with_trust(ConfigTrust::No).run_with_effects(work);
    done.map_err(|failure| failure.with_signal(received.first_signal()))
}

/// Returns the name under which this process owns hooks.
pub fn owner_name(owner_lock: &OwnerLock) -> OwnerName {
    owner_lock.name().parse().expect("the generated name has only valid characters")
}

/// Returns a control that the signals to this process cancel.
pub fn listen_to_signals() -> Result<(RunControl, signals::SignalHandlers), Failure> {
    let control = RunControl::new();
    let received = signals::install_handlers(&control, |_| {})
        .map_err(|error| Failure::new(FailureCode::System, "cannot listen to signals").with_cause(error))?;
    Ok((control, received))
}

/// Registers this process as one that runs programs for the project.
pub fn acquire_owner_lock(project: &Project) -> Result<OwnerLock, Failure> {
    let (place, nonce) = (project.owner_directory(), random_nonce()?);
    let acquired = match FleetMembership::find(project)? {
        Some(membership) => OwnerLock::acquire_in_fleet(&place, nonce, &membership.machine(project)),
        None => OwnerLock::acquire(&place, nonce),
    };
    acquired.map_err(|error| {
        Failure::new(FailureCode::System, format!("cannot make a file in `{}`", place.display()))
            .with_hint(hints::directory_error_hint(&error))
            .with_cause(error)
    })
}

/// Returns a random number.
pub fn random_nonce() -> Result<u64, Failure> {
    Ok(u64::try_from(random_u128()? & u128::from(u64::MAX)).expect("it was cut to size"))
}

pub fn random_u128() -> Result<u128, Failure> {
    environment::random_u128()
        .map_err(|error| Failure::new(FailureCode::System, "cannot get random bytes").with_cause(error))
}

pub fn random_u128_or_io_error() -> io::Result<u128> {
    environment::random_u128().map_err(io::Error::other)
}

/// Returns the names of the worktrees that a living session works in.
pub fn worktrees_in_use(opened: &OpenedProject) -> Result<Vec<String>, Failure> {
    if !opened.project.worktree_directory().is_dir() {
        return Ok(Vec::new());
    }
    let sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.all_sessions().map_err(hints::store_failure)?;
    let used = sessions.into_iter().filter(|session| session.workspace.is_some());
    let used = used.filter(|session| !session.is_over() || opened.is_session_running_here(session));
    let used = used.filter(|session| opened.is_session_running(session));
    Ok(used.filter_map(|session| Some(session.workspace?.name)).collect())
}

/// Shows failed hooks to a person, and no other hooks.
pub fn show_failed_hook(front_end: &dyn FrontEnd, event: &RunnerEvent<'_>) {
    let record = match event {
        RunnerEvent::Event(record) => record,
        RunnerEvent::Note(words) => return front_end.show_notice(Notice::Note(words)),
        RunnerEvent::Queueing => return front_end.show_notice(Notice::Note(MERGE_QUEUE_NOTE)),
        _ => return,
    };
    let said = match &record.envelope.event {
        Event::HookFinished(finished) => describe_failed_hook(finished),
        // The end of its run has been shown already.
        Event::HookError(failed) if failed.effect.is_some() => None,
        Event::HookError(failed) => Some(format!("hook `{}` failed: {}", failed.hook_name, failed.error)),
        Event::ActionError(failed) => Some(format!("cannot carry out `{}`: {}", failed.action_type, failed.error)),
        _ => None,
    };
    if let Some(said) = said {
        front_end.show_notice(Notice::Warning(&said));
    }
}

fn describe_failed_hook(finished: &payload::HookFinished) -> Option<String> {
    let what = match finished.outcome {
        HookOutcome::Success | HookOutcome::Skip | HookOutcome::Again => return None,
        HookOutcome::Failure => "failed",
        HookOutcome::TimedOut => "was too slow",
        HookOutcome::Cancelled => "was cancelled",
        HookOutcome::Interrupted => "was interrupted",
        HookOutcome::Block | HookOutcome::Continue => "says no",
        HookOutcome::Escalate => "asks for a person",
    };
    let why = finished.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!("hook `{}` {what}{why}", finished.hook))
}
