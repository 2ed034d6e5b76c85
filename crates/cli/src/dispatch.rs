//! Whoever appends an event runs its hooks before its command returns.
//!
//! ```text
//! command ─► inside whose run? ─► which configuration, and is it trusted ─► commit ─► hooks of ours, one after another
//! ```
//!
//! Invariants:
//! - A command that owes no hook pays for none: no lock file, no signals, no look at trust.
//! - A failing hook is told to people, and the command still succeeds.

use std::io;
use std::path::PathBuf;

use windlass_engine::{
    Authority, Command, ConfigDigest, Debt, DebtId, Effect, Event, HookOutcome, Origin, OwnerName, Record, Rules,
    RunId, Trusted, View, payload,
};
use windlass_hooks::Mask;
use windlass_process::{Control, Launcher, Roster, is_alive, signals, sweep};
use windlass_runner::{Dispatch, Outside, Settings, Told};
use windlass_store::Store;

use crate::config::Config;
use crate::context::Opened;
use crate::failure::{Code, Failure};
use crate::output::Messages;
use crate::project::Project;
use crate::trust::{self, Trust};
use crate::{environment, plan, remedy};

/// Where commands keep what their hooks write.
const RECORDS: &str = "commands";

/// Has the engine decide a command, and runs what it owes.
pub fn execute(opened: &mut Opened, command: &Command, authority: Authority) -> Result<Vec<Record>, Failure> {
    let inside = Inside::look(opened)?;
    let config = inside.configuration(opened)?;
    let Inside { run, via, .. } = inside;
    let origin = Origin { by: environment::user(), at: environment::now(), authority, run, via };
    if plan::owing(&config).next().is_none() {
        let nonce = random()?;
        return opened.store.execute(&plan::pure_rules(&config)?, &origin, command, nonce).map_err(remedy::execute);
    }
    let trusted = opened.trust || inside.config.is_some() || trust::state(&opened.project, &config)? == Trust::Trusted;
    let trusted = if trusted { Trusted::Yes } else { Trusted::No };
    let (control, received) = listen()?;
    let done = with(opened, &config, trusted, &control, |dispatch| {
        let records = dispatch.give_for(&origin, command).map_err(remedy::run)?;
        dispatch.settle().map_err(remedy::run)?;
        Ok(records)
    });
    done.map_err(|failure| failure.by(received.first()))
}

/// Takes over the hooks that the dead have left, each under the configuration that it was owed under. Answers how many
/// there were, and for how many nobody has given trust.
pub fn settle_dead(opened: &mut Opened, control: &Control) -> Result<(usize, usize), Failure> {
    let project = opened.project.clone();
    sweep(&project.owners())
        .map_err(|error| Failure::new(Code::System, "cannot end what an earlier command has left").caused_by(error))?;
    let left = left_by_the_dead(opened)?;
    let mut configs: Vec<ConfigDigest> = left.iter().map(|debt| debt.config).collect();
    configs.sort_unstable();
    configs.dedup();
    let (mut settled, mut untrusted) = (0, 0);
    for digest in configs {
        let text = opened.store.snapshot().map_err(remedy::store)?.config(digest).map_err(remedy::view)?;
        let config = recorded(&project, text.as_deref().unwrap_or_default())?;
        if !may_run(opened, &config)? {
            untrusted += left.iter().filter(|debt| debt.config == digest).count();
            continue;
        }
        let is_dead = |owner: &OwnerName| !is_alive(&project.owners(), owner.as_str());
        settled += with(opened, &config, Trusted::Yes, control, |dispatch| {
            dispatch.take_over(digest, is_dead).map_err(remedy::run)
        })?;
    }
    Ok((settled, untrusted))
}

/// Hooks whose owner is dead, and that no session waits for.
pub fn left_by_the_dead(opened: &Opened) -> Result<Vec<Debt>, Failure> {
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let mut debts = snapshot.debts().map_err(remedy::store)?;
    let waited: Vec<DebtId> =
        snapshot.sessions().map_err(remedy::store)?.into_iter().flat_map(|session| session.owed).collect();
    let owners = opened.project.owners();
    debts.retain(|debt| {
        matches!(debt.effect, Effect::Hook(_)) && !waited.contains(&debt.id) && !is_alive(&owners, debt.owner.as_str())
    });
    Ok(debts)
}

/// An older configuration than the present one is trusted only in so many words.
fn may_run(opened: &Opened, config: &Config) -> Result<bool, Failure> {
    let present = Config::load(&opened.project).is_ok_and(|present| present.text() == config.text());
    Ok(opened.trust || (present && trust::state(&opened.project, config)? == Trust::Trusted))
}

fn recorded(project: &Project, text: &str) -> Result<Config, Failure> {
    if text.is_empty() { Ok(Config::absent(project)) } else { Ok(Config::of(&project.config_file(), text)?) }
}

/// Does something with whoever runs hooks.
fn with<T>(
    opened: &mut Opened,
    config: &Config,
    trusted: Trusted,
    control: &Control,
    work: impl FnOnce(&mut Dispatch<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let roster = enlist(&opened.project)?;
    let owner: OwnerName = roster.name().parse().expect("digits and dashes make a name");
    let rules = plan::rules(config, &owner, trusted)?;
    let records = opened.project.make_records(RECORDS)?;
    let settings = settings(&opened.project, config, rules, records, None);
    let outside = Outside { now: &environment::now, random: &random_bytes, tell: &mut tell };
    let mut dispatch =
        Dispatch::new(&mut opened.store, settings, &roster, control.clone(), outside).map_err(remedy::run)?;
    work(&mut dispatch)
}

/// A control that follows the signals to this process.
pub fn listen() -> Result<(Control, signals::Received), Failure> {
    let control = Control::new();
    let received = signals::install(&control, |_| {})
        .map_err(|error| Failure::new(Code::System, "cannot listen to signals").caused_by(error))?;
    Ok((control, received))
}

/// What hooks are run with.
pub fn settings(
    project: &Project,
    config: &Config,
    rules: Rules,
    records: PathBuf,
    launcher: Option<Launcher>,
) -> Settings {
    Settings {
        hooks: plan::hooks(config),
        rules,
        directory: project.root.clone(),
        records,
        environment: environment::inherited(),
        mask: mask(config),
        protected: config.protected(),
        launcher,
    }
}

/// What nobody may see.
pub fn mask(config: &Config) -> Mask {
    let secrets = config.settings.secrets.iter().filter_map(|name| {
        let value = environment::secret(name)?;
        Some((name.value.clone(), value.into_encoded_bytes()))
    });
    Mask::new(secrets)
}

/// Makes this process known as one that runs programs.
pub fn enlist(project: &Project) -> Result<Roster, Failure> {
    let place = project.owners();
    let nonce = u64::try_from(random()? & u128::from(u64::MAX)).expect("it was cut to size");
    Roster::enlist(&place, nonce).map_err(|error| {
        Failure::new(Code::System, format!("cannot make a file in `{}`", place.display()))
            .caused_by(error)
            .hint("check whose directory it is, and whether it can be written to")
    })
}

pub fn random() -> Result<u128, Failure> {
    environment::random().map_err(|error| Failure::new(Code::System, "cannot get random bytes").caused_by(error))
}

pub fn random_bytes() -> io::Result<u128> {
    environment::random().map_err(io::Error::other)
}

/// People hear of hooks that went wrong, and of nothing else.
fn tell(told: Told<'_>) {
    let Told::Event(record) = told else { return };
    let said = match &record.envelope.event {
        Event::HookFinished(finished) => went_wrong(finished),
        // The end of its run has said so already.
        Event::HookError(failed) if failed.debt.is_some() => None,
        Event::HookError(failed) => Some(format!("hook `{}` failed: {}", failed.hook_name, failed.error)),
        Event::ActionError(failed) => Some(format!("cannot carry out `{}`: {}", failed.action_type, failed.error)),
        _ => None,
    };
    if let Some(said) = said {
        Messages::new().warning(&crate::text::line(&said));
    }
}

fn went_wrong(finished: &payload::HookFinished) -> Option<String> {
    let what = match finished.outcome {
        HookOutcome::Success | HookOutcome::Skip => return None,
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

/// The turn or the hook from inside which this command is given.
struct Inside {
    run: Option<RunId>,
    via: Option<DebtId>,
    /// What whoever runs it works with, while that lives.
    config: Option<ConfigDigest>,
}

impl Inside {
    fn look(opened: &Opened) -> Result<Self, Failure> {
        // Names of runs and hooks mean something else, or nothing, in another project.
        if environment::project_of_run().is_some_and(|project| project != opened.project.root) {
            return Ok(Self { run: None, via: None, config: None });
        }
        let run = environment::run().map(|run| run.parse::<RunId>()).transpose().map_err(|error| {
            Failure::from_error(Code::Usage, &error).hint("WINDLASS_RUN is set by Windlass for the programs it starts")
        })?;
        let debt = environment::debt().and_then(|debt| debt.parse::<DebtId>().ok());
        if run.is_none() && debt.is_none() {
            return Ok(Self { run, via: None, config: None });
        }
        let alive = |owner: &OwnerName| is_alive(&opened.project.owners(), owner.as_str());
        let snapshot = opened.store.snapshot().map_err(remedy::store)?;
        // A hook that is over has no say any more: what it left running is anybody's.
        let debt = debt.map(|id| snapshot.debt(id)).transpose().map_err(remedy::view)?.flatten();
        let debt = debt.filter(|debt| debt.attempts > 0 && alive(&debt.owner));
        let session = run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(remedy::view)?;
        let session = session.flatten().filter(|session| alive(&session.owner));
        let config = debt.as_ref().map(|debt| debt.config).or(session.map(|session| session.config));
        Ok(Self { run, via: debt.map(|debt| debt.id), config })
    }

    /// What holds inside a run is what the run works with; elsewhere it is the file.
    fn configuration(&self, opened: &Opened) -> Result<Config, Failure> {
        let Some(digest) = self.config else { return Config::load(&opened.project) };
        let text = opened.store.snapshot().map_err(remedy::store)?.config(digest).map_err(remedy::view)?;
        recorded(&opened.project, text.as_deref().unwrap_or_default())
    }
}
