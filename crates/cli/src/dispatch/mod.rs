//! Whoever appends an event runs its hooks before its command returns.
//!
//! ```text
//! command ─► inside whose run? ─► which configuration, and is it trusted ─► commit ─► hooks of ours, one after another
//! ```
//!
//! Invariants:
//! - A command that owes no hook pays for none: no lock file, no signals.
//! - Nothing of a configuration counts that no person trusts.
//! - A failing hook is told to people, and the command still succeeds.

mod bridged;
mod dead;
mod inside;
mod person;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_engine::{
    Authority, Command, Event, HookOutcome, Origin, OwnerName, Record, Rules, Trusted, Types, View, payload,
};
use windlass_hooks::Mask;
use windlass_process::{Control, Launcher, Roster, is_alive, signals};
use windlass_runner::{Delivery, Dispatch, Gatekeepers, Outside, Settings, Told};
use windlass_store::Store;
use windlass_tools::validation::Standing;
use windlass_vcs::forge;

pub use bridged::{Bridged, Calling, answer_call};
pub use dead::{Reach, Settled, interrupted, left_by_the_dead, orphaned_cancellations, settle_dead};
pub use inside::{Inside, is_for_persons};
pub use person::{ConcernedSessions, require_person};

use crate::config::{self, Config, Written};
use crate::context::Opened;
use crate::failure::{Code, Failure};
use crate::output::Messages;
use crate::project::Project;
use crate::store_records::StoreMarks;
use crate::trust::{self, Trust};
use crate::{SUPERVISE, environment, plan, remedy, show, workflow};

/// Where commands keep what their hooks write.
const RECORDS: &str = "commands";

/// Has the engine decide a command, and runs what it owes.
pub fn execute(opened: &mut Opened, command: &Command, authority: Authority) -> Result<Vec<Record>, Failure> {
    // An override is a person's.
    let inside = match authority {
        Authority::Forced => Inside::look_for_person(opened, ConcernedSessions::every(command))?,
        Authority::Person | Authority::Holder(_) => Inside::look_for(opened, command)?,
    };
    execute_inside(opened, inside, command, authority)
}

/// The same, where it is known from inside which run it is given.
pub fn execute_inside(
    opened: &mut Opened,
    inside: Inside,
    command: &Command,
    authority: Authority,
) -> Result<Vec<Record>, Failure> {
    let config = Config::parse(inside.written(opened)?)?;
    let counts = trust::counts(&opened.project, &config, opened.trust || inside.config.is_some())?;
    // Hooks of a configuration that is gone cannot be run, and the task would go past them.
    if !counts && !config.exists() && is_for_persons(command) {
        return Err(trust::refuse(&config, Trust::Changed));
    }
    let Inside { run, via, .. } = inside;
    // Whoever speaks, the log is read by others.
    let mask = mask(&config);
    let by = mask.text(&environment::user()).into_owned();
    let origin = Origin { by, at: environment::now(), authority, run, via };
    if !counts && config.decides_about_tasks() {
        trust::note_defaults();
    }
    if plan::planned_hooks(&config).is_empty() {
        let nonce = random()?;
        let rules = if counts { plan::pure_rules(&config) } else { plan::pure_rules(&config.without_say()) }?;
        let command = mask.command(command);
        return opened.store.execute(&rules, &origin, &command, nonce).map_err(remedy::execute);
    }
    let trusted = if counts { Trusted::Yes } else { Trusted::No };
    let (control, received) = listen()?;
    let done = with(opened, &Arc::new(config), trusted, &control, |dispatch| {
        let records = dispatch.give_for(&origin, command).map_err(remedy::run)?;
        dispatch.settle().map_err(remedy::run)?;
        Ok(records)
    });
    done.map_err(|failure| failure.by(received.first()))
}

/// The types of tasks that hold here, and the agent of the session from inside which this command is given.
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
            trust::note_defaults();
        }
    }
    let types = if counts { plan::types(&config) } else { Types::default() };
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let session = inside.run.map(|run| snapshot.session(&run.session)).transpose().map_err(remedy::view)?.flatten();
    Ok((types, session.map(|session| session.agent)))
}

/// Returns a configuration as far as it counts: all of it where a person trusts it, or where a run works with it (`is_ours`).
pub fn heeded(opened: &Opened, config: Config, is_ours: bool) -> Result<Config, Failure> {
    if trust::counts(&opened.project, &config, opened.trust || is_ours)? {
        return Ok(config);
    }
    if config.has_say() {
        trust::note_defaults();
    }
    Ok(config.without_say())
}

/// A configuration that was recorded; an empty one is that of a project without a file.
pub fn recorded(project: &Project, text: &str) -> Written {
    let file = project.config_file();
    if text.is_empty() { Written::missing(file) } else { Written::of(&file, text) }
}

/// Does something with whoever runs hooks.
pub fn with<T>(
    opened: &mut Opened,
    config: &Arc<Config>,
    trusted: Trusted,
    control: &Control,
    work: impl FnOnce(&mut Dispatch<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with_telling(opened, config, trusted, (control, &mut tell), work)
}

/// The same, for somebody who tells what happens in other words.
pub fn with_telling<T>(
    opened: &mut Opened,
    config: &Arc<Config>,
    trusted: Trusted,
    (control, tell): (&Control, Tell<'_>),
    work: impl FnOnce(&mut Dispatch<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let roster = enlist(&opened.project)?;
    let rules = plan::rules(config, &owner(&roster), trusted)?;
    with_rules(opened, config, rules, (&roster, control, tell), work)
}

/// The same for what runs no hooks, and may run git.
pub fn with_git<T>(
    opened: &mut Opened,
    work: impl FnOnce(&mut Dispatch<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let config = Arc::new(heeded(opened, Config::parse(Written::load(&opened.project)?)?, false)?);
    let (control, received) = listen()?;
    with(opened, &config, Trusted::No, &control, work).map_err(|failure| failure.by(received.first()))
}

/// As whom somebody who runs programs owes hooks.
pub fn owner(roster: &Roster) -> OwnerName {
    roster.name().parse().expect("digits and dashes make a name")
}

/// Whoever is told what happens.
pub type Tell<'a> = &'a mut dyn FnMut(Told<'_>);

/// The same, for a process that runs programs for longer.
pub fn with_rules<T>(
    opened: &mut Opened,
    config: &Arc<Config>,
    rules: Rules,
    (roster, control, tell): (&Roster, &Control, Tell<'_>),
    work: impl FnOnce(&mut Dispatch<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let records = opened.project.make_records(RECORDS)?;
    let settings = settings((&opened.project, opened.trust), config, rules, records, None);
    let outside = Outside { now: &environment::now, random: &random_bytes, tell, shows_output: false };
    let mut dispatch =
        Dispatch::new(&mut opened.store, settings, roster, control.clone(), outside).map_err(remedy::run)?;
    work(&mut dispatch)
}

/// A control that follows the signals to this process.
pub fn listen() -> Result<(Control, signals::Received), Failure> {
    let control = Control::new();
    let received = signals::install(&control, |_| {})
        .map_err(|error| Failure::new(Code::System, "cannot listen to signals").caused_by(error))?;
    Ok((control, received))
}

/// What hooks are run with; and whether somebody has said that whatever is written may run.
pub fn settings(
    (project, told): (&Project, bool),
    config: &Arc<Config>,
    rules: Rules,
    records: PathBuf,
    launcher: Option<Launcher>,
) -> Settings {
    let mask = mask(config);
    Settings {
        // Only a session judges what agents have registered, and it says whether it may.
        permission: config.permission(standing(false)),
        validation: config.validation_rules(),
        hooks: plan::hooks(config.clone()),
        workflows: workflow::runnable(project, config, told),
        rules,
        project: project.root.clone(),
        directory: project.root.clone(),
        records,
        environment: inherited(project, told),
        prompt: None,
        protected: config.protected().hiding(mask.clone()),
        mask,
        delivery: delivery(project, config),
        launcher,
    }
}

/// What programs inherit. Where the store counts only because this command was told so, they are told too.
fn inherited(project: &Project, told: bool) -> Vec<(OsString, OsString)> {
    let token = told.then(|| StoreMarks::of(project)).flatten().map(|marks| marks.token());
    let token = token.map(|token| ("WINDLASS_TRUSTED_STORE".into(), token.into()));
    environment::inherited().into_iter().chain(token).collect()
}

/// The names of the worktrees that somebody alive works in.
pub fn worktrees_in_use(opened: &Opened) -> Result<Vec<String>, Failure> {
    if !opened.project.worktrees().is_dir() {
        return Ok(Vec::new());
    }
    let sessions = opened.store.snapshot().map_err(remedy::store)?.sessions().map_err(remedy::store)?;
    let owners = opened.project.owners();
    let used = sessions.into_iter().filter(|session| session.workspace.is_some());
    let used = used.filter(|session| is_alive(&owners, session.owner.as_str()));
    Ok(used.filter_map(|session| Some(session.workspace?.name)).collect())
}

/// Where work is done, and where it goes.
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
        caches: config.caches(),
        tests: settings.test_command.as_ref().map(|command| command.value.clone()),
        // Only a session has its work judged, and says by whom.
        gatekeepers: Gatekeepers::default(),
    }
}

/// Whether programs that judge an agent's work may be run.
pub fn standing(trusted: bool) -> Standing {
    match trusted {
        _ if environment::is_judging() => Standing::Nested,
        true => Standing::Trusted,
        false => Standing::Untrusted,
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

/// How supervisors are started: nothing that they run outlives whoever has started them.
pub fn launcher() -> Result<Launcher, Failure> {
    Launcher::own(SUPERVISE)
        .map_err(|error| Failure::new(Code::System, "cannot find this very program").caused_by(error))
}

/// Makes this process known as one that runs programs.
pub fn enlist(project: &Project) -> Result<Roster, Failure> {
    let place = project.owners();
    Roster::enlist(&place, nonce()?).map_err(|error| {
        Failure::new(Code::System, format!("cannot make a file in `{}`", place.display()))
            .hint(remedy::directory(&error))
            .caused_by(error)
    })
}

/// A number that nobody else has.
pub fn nonce() -> Result<u64, Failure> {
    Ok(u64::try_from(random()? & u128::from(u64::MAX)).expect("it was cut to size"))
}

pub fn random() -> Result<u128, Failure> {
    environment::random().map_err(|error| Failure::new(Code::System, "cannot get random bytes").caused_by(error))
}

pub fn random_bytes() -> io::Result<u128> {
    environment::random().map_err(io::Error::other)
}

/// People hear of hooks that went wrong, and of nothing else.
pub fn tell(told: Told<'_>) {
    let record = match told {
        Told::Event(record) => record,
        Told::Note(words) => return Messages::new().note(words),
        Told::Queueing => return Messages::new().note(show::pipeline::QUEUEING),
        _ => return,
    };
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
