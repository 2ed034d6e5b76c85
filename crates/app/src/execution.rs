//! Commands that run their hooks before they return.
//!
//! ```text
//! command ─► caller ─► which configuration, and is it trusted ─► commit ─► its pending hooks, one after another
//! ```
//!
//! Invariants:
//! - A command without pending hooks has no cost for them: no lock file, no signal handlers.
//! - Nothing of a configuration counts that no person trusts.
//! - A failing hook becomes a notice, and the command still succeeds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{
    Authority, Command, Event, EventType, HookOutcome, Origin, OwnerName, PlannedHook, Record, Rules, Timestamp,
    Trusted, Types, View, payload,
};
use windlass_process::{Control, Launcher, Roster, is_alive, signals};
use windlass_runner::{EffectRunner, RunnerEnv, RunnerEvent, RunnerSettings};
use windlass_store::Store;

use crate::caller::{Inside, is_for_persons};
use crate::context::Opened;
use crate::person::ConcernedSessions;
use crate::project::Project;
use crate::runner_settings::{mask, settings};
use crate::trust::{self, Trust};
use crate::{Code, Failure, FrontEnd, Notice, environment, hints};

/// The directory of records for the hooks of commands.
const RECORDS: &str = "commands";
/// The note while another task is merged first.
pub const QUEUEING: &str = "waiting for another task to be merged";

impl Opened {
    /// Lets the engine decide a command, and returns when its events are durable and their hooks have run.
    pub fn execute(&mut self, command: &Command, authority: Authority) -> Result<Vec<Record>, Failure> {
        execute(self, command, authority)
    }
}

/// Detects the caller, lets the engine decide a command, and runs its effects.
fn execute(opened: &mut Opened, command: &Command, authority: Authority) -> Result<Vec<Record>, Failure> {
    // Only a person may override the rules.
    let inside = match authority {
        Authority::Forced => Inside::look_for_person(opened, ConcernedSessions::every(command))?,
        Authority::Person | Authority::Holder(_) => Inside::look_for(opened, command)?,
    };
    execute_inside(opened, inside, command, authority)
}

/// Returns the origin of a command that a person gives to this process.
pub(crate) fn person_origin(authority: Authority, at: Timestamp) -> Origin {
    Origin { by: environment::user(), at, authority, run: None, via: None }
}

/// Executes a command of a known caller.
pub fn execute_inside(
    opened: &mut Opened,
    inside: Inside,
    command: &Command,
    authority: Authority,
) -> Result<Vec<Record>, Failure> {
    let config = Config::parse(inside.written(opened)?)?;
    let counts = trust::counts(&opened.project, &config, opened.trust || inside.config.is_some())?;
    // Hooks of a removed configuration cannot run, and the task would bypass them.
    if !counts && !config.exists() && is_for_persons(command) {
        return Err(trust::refuse(&config, Trust::Changed));
    }
    let Inside { run, via, .. } = inside;
    // The log has readers other than the user, so the user name is masked, too.
    let mask = mask(&config);
    let by = mask.text(&environment::user()).into_owned();
    let origin = Origin { by, at: environment::now(), authority, run, via };
    if !counts && config.decides_about_tasks() {
        trust::note_defaults(&*opened.front_end);
    }
    if plan::planned_hooks(&config).is_empty() {
        let nonce = random()?;
        let rules = if counts { plan::pure_rules(&config) } else { plan::pure_rules(&config.without_say()) }?;
        let command = mask.command(command);
        return opened.store.execute(&rules, &origin, &command, nonce).map_err(hints::execute);
    }
    let trusted = if counts { Trusted::Yes } else { Trusted::No };
    let (control, received) = listen()?;
    let config = Arc::new(config);
    let done = HookExecution::new(opened, &config, &control).trusted(trusted).run(|dispatch| {
        let records = dispatch.commit_as(&origin, command).map_err(hints::run)?;
        dispatch.run_pending().map_err(hints::run)?;
        Ok(records)
    });
    done.map_err(|failure| failure.by(received.first()))
}

/// Returns the task types that apply here, and the agent of the session that this command comes from.
pub fn types(opened: &Opened) -> Result<(Types, Option<String>), Failure> {
    let inside = Inside::look(opened)?;
    let config = Config::parse(inside.written(opened)?)?;
    let counts = trust::counts(&opened.project, &config, opened.trust || inside.config.is_some())?;
    if !counts {
        let state = trust::state(&opened.project, &config)?;
        // With the defaults every agent may work on everything.
        if state == Trust::Changed || config.restricts_agents() {
            return Err(trust::refuse(&config, state));
        }
        if config.decides_about_tasks() {
            trust::note_defaults(&*opened.front_end);
        }
    }
    let types = if counts { plan::types(&config) } else { Types::default() };
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let session = inside.run.map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?.flatten();
    Ok((types, session.map(|session| session.agent)))
}

/// Returns a configuration as far as it counts: all of it if a person trusts it, or if a run works with it (`is_ours`).
pub fn trusted_part(opened: &Opened, config: Config, is_ours: bool) -> Result<Config, Failure> {
    if trust::counts(&opened.project, &config, opened.trust || is_ours)? {
        return Ok(config);
    }
    if config.has_say() {
        trust::note_defaults(&*opened.front_end);
    }
    Ok(config.without_say())
}

/// Returns the source of a recorded configuration. An empty text is the configuration of a project without a file.
pub fn recorded(project: &Project, text: &str) -> ConfigSource {
    let file = project.config_file();
    if text.is_empty() { ConfigSource::missing(file) } else { ConfigSource::of(&file, text) }
}

/// An observer of the events while hooks run.
pub type Observer<'a> = &'a mut dyn FnMut(RunnerEvent<'_>);

/// A builder for running the hooks of a command.
pub struct HookExecution<'a> {
    opened: &'a mut Opened,
    config: &'a Arc<Config>,
    control: Control,
    trusted: Trusted,
    owner: Option<(&'a Roster, Rules)>,
    directory: Option<PathBuf>,
    launcher: Option<Launcher>,
    observer: Option<Observer<'a>>,
    planned: Option<(EventType, Vec<PlannedHook>)>,
}

impl<'a> HookExecution<'a> {
    /// Starts with a trusted configuration, a new owner, and the front end as the observer.
    pub fn new(opened: &'a mut Opened, config: &'a Arc<Config>, control: &Control) -> Self {
        Self {
            opened,
            config,
            control: control.clone(),
            trusted: Trusted::Yes,
            owner: None,
            directory: None,
            launcher: None,
            observer: None,
            planned: None,
        }
    }

    pub fn trusted(self, trusted: Trusted) -> Self {
        Self { trusted, ..self }
    }

    /// Uses the owner lock and the rules of this process, which runs programs already.
    pub fn owned_by(self, roster: &'a Roster, rules: Rules) -> Self {
        Self { owner: Some((roster, rules)), ..self }
    }

    /// Runs hooks in another directory than the project's root.
    pub fn in_directory(self, directory: PathBuf) -> Self {
        Self { directory: Some(directory), ..self }
    }

    /// Runs hooks under a supervisor, which ends them when this process ends.
    pub fn supervised(self, launcher: Option<Launcher>) -> Self {
        Self { launcher, ..self }
    }

    pub fn observed_by(self, observer: Observer<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Uses these hooks for an event, in place of those that the configuration plans.
    pub fn with_planned(self, event: EventType, planned: Vec<PlannedHook>) -> Self {
        Self { planned: Some((event, planned)), ..self }
    }

    /// Runs `work` with an effect runner.
    pub fn run<T>(self, work: impl FnOnce(&mut EffectRunner<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let Self { opened, config, control, trusted, owner, directory, launcher, observer, planned } = self;
        let (own_roster, mut rules);
        let roster = match owner {
            Some((roster, given)) => {
                rules = given;
                roster
            }
            None => {
                own_roster = enlist(&opened.project)?;
                rules = plan::rules(config, &owner_name(&own_roster), trusted)?;
                &own_roster
            }
        };
        if let (Some((event, hooks)), Some(effects)) = (planned, &mut rules.effects) {
            effects.hooks.insert(event, hooks);
        }
        let records = opened.project.make_records(RECORDS)?;
        let usual = settings((&opened.project, opened.trust), config, rules, records, launcher);
        let settings = RunnerSettings { directory: directory.unwrap_or(usual.directory), ..usual };
        let front_end = opened.front_end.clone();
        let mut observer = observer;
        let mut tell = |told: RunnerEvent<'_>| match &mut observer {
            Some(observer) => observer(told),
            None => show_failed_hook(&*front_end, &told),
        };
        let outside = RunnerEnv { now: &environment::now, random: &random_bytes, tell: &mut tell, shows_output: false };
        let dispatch = EffectRunner::new(&mut opened.store, settings, roster, control, outside);
        work(&mut dispatch.map_err(hints::run)?)
    }
}

/// Runs `work` with an effect runner that runs no hooks, and may run git.
pub fn run_git_work<T>(
    opened: &mut Opened,
    work: impl FnOnce(&mut EffectRunner<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let config = Config::parse(ConfigSource::load(&opened.project.root)?)?;
    let config = Arc::new(trusted_part(opened, config, false)?);
    let (control, received) = listen()?;
    let done = HookExecution::new(opened, &config, &control).trusted(Trusted::No).run(work);
    done.map_err(|failure| failure.by(received.first()))
}

/// Returns the name under which this process owns hooks.
pub fn owner_name(roster: &Roster) -> OwnerName {
    roster.name().parse().expect("digits and dashes make a name")
}

/// Returns a control that the signals to this process cancel.
pub fn listen() -> Result<(Control, signals::Received), Failure> {
    let control = Control::new();
    let received = signals::install(&control, |_| {})
        .map_err(|error| Failure::new(Code::System, "cannot listen to signals").caused_by(error))?;
    Ok((control, received))
}

/// Registers this process as one that runs programs for the project.
pub fn enlist(project: &Project) -> Result<Roster, Failure> {
    let place = project.owners();
    Roster::enlist(&place, nonce()?).map_err(|error| {
        Failure::new(Code::System, format!("cannot make a file in `{}`", place.display()))
            .hint(hints::directory(&error))
            .caused_by(error)
    })
}

/// Returns a random number.
pub fn nonce() -> Result<u64, Failure> {
    Ok(u64::try_from(random()? & u128::from(u64::MAX)).expect("it was cut to size"))
}

pub fn random() -> Result<u128, Failure> {
    environment::random().map_err(|error| Failure::new(Code::System, "cannot get random bytes").caused_by(error))
}

pub fn random_bytes() -> io::Result<u128> {
    environment::random().map_err(io::Error::other)
}

/// Returns the names of the worktrees that a living session works in.
pub fn worktrees_in_use(opened: &Opened) -> Result<Vec<String>, Failure> {
    if !opened.project.worktrees().is_dir() {
        return Ok(Vec::new());
    }
    let sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
    let owners = opened.project.owners();
    let used = sessions.into_iter().filter(|session| session.workspace.is_some());
    let used = used.filter(|session| is_alive(&owners, session.owner.as_str()));
    Ok(used.filter_map(|session| Some(session.workspace?.name)).collect())
}

/// Shows failed hooks to a person, and no other hooks.
pub fn show_failed_hook(front_end: &dyn FrontEnd, told: &RunnerEvent<'_>) {
    let record = match told {
        RunnerEvent::Event(record) => record,
        RunnerEvent::Note(words) => return front_end.show(Notice::Note(words)),
        RunnerEvent::Queueing => return front_end.show(Notice::Note(QUEUEING)),
        _ => return,
    };
    let said = match &record.envelope.event {
        Event::HookFinished(finished) => went_wrong(finished),
        // The end of its run has been shown already.
        Event::HookError(failed) if failed.effect.is_some() => None,
        Event::HookError(failed) => Some(format!("hook `{}` failed: {}", failed.hook_name, failed.error)),
        Event::ActionError(failed) => Some(format!("cannot carry out `{}`: {}", failed.action_type, failed.error)),
        _ => None,
    };
    if let Some(said) = said {
        front_end.show(Notice::Warning(&said));
    }
}

fn went_wrong(finished: &payload::HookFinished) -> Option<String> {
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
