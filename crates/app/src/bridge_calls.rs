//! Runs the hooks of a call from an agent's own hook system.
//!
//! ```text
//! inside a run of ours? ─ yes ─► the configuration of the run ───────────┐
//!        └─ no ─► hooks for this point and tool in the file? ─► trusted? ─┴─► commit ─► hooks ─► what they come to
//!                      └─ no ─► nothing is opened, nothing recorded
//! ```
//!
//! Invariants:
//! - Inside a hook of ours nobody is called: an agent that a hook asks for help would be judged by that hook again.
//! - What a running session does by itself is left to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windlass_bridge::Moment;
use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{Authority, Command, EventType, Origin, PlannedHook, RunId, View, would_enqueue};
use windlass_runner::{Called, Replied, Told};
use windlass_store::{Lifetime, Store};

use crate::caller::Inside;
use crate::context::Opened;
use crate::execution::{HookExecution, listen, random};
use crate::project::{self, Project};
use crate::runner_settings::{launcher, mask};
use crate::trust::{self, Trust};
use crate::{Failure, SilentFrontEnd, environment, hints, store_records};

/// What came of a call.
pub enum Bridged {
    /// Nothing is configured for it, or it is somebody else's to judge.
    Nothing,
    /// Hooks are there, and nobody trusts them.
    Untrusted,
    Replied(Replied),
}

/// A call, and how it is to be taken.
pub struct Calling {
    pub called: Called,
    /// Where the agent works.
    pub directory: PathBuf,
    pub moment: Moment,
    /// How long the agent waits.
    pub within: Option<Duration>,
    /// A person trusts the project for this call.
    pub trust: bool,
}

impl Calling {
    /// Takes over what a configuration says about every call.
    fn apply(&mut self, config: &Config) {
        self.called.call.max_retries = config.settings.limits.max_hook_retries;
        self.called.call.about = mask(config).text(&self.called.call.about).into_owned();
    }
}

/// Has the hooks of a call run, if there are any.
pub fn answer_call(project: Project, mut calling: Calling) -> Result<Bridged, Failure> {
    let Calling { moment, trust, .. } = calling;
    if environment::effect().is_some() || environment::is_judging() {
        return Ok(Bridged::Nothing);
    }
    // What holds inside a run is what the run works with, whatever has become of the file.
    if environment::run().is_some() {
        let mut opened = open(&project, trust)?;
        let inside = Inside::look(&opened)?;
        if inside.config.is_some() {
            return answer_inside(&mut opened, inside, calling);
        }
    }
    // A run that is over has no say: a person has the agent.
    let config = Config::parse(ConfigSource::load(&project.root)?)?;
    let planned = planned_for_calls(&config);
    if planned.is_empty() {
        return Ok(Bridged::Nothing);
    }
    calling.apply(&config);
    let is_trusted = || Ok::<_, Failure>(trust || trust::state(&project, &config)? == Trust::Trusted);
    if !would_enqueue(&calling.called.call, &planned) {
        // Hooks that stand elsewhere are not asked either, and nobody would hear of it.
        if is_noticed(moment) && !is_trusted()? {
            return Ok(Bridged::Untrusted);
        }
        let counts = calling.called.call.anew && moment == Moment::UserPromptSubmit;
        let counts = counts && planned.iter().any(|planned| planned.hook.point.is_stop());
        return if counts { forget(&project, &config, &calling.called, trust) } else { Ok(Bridged::Nothing) };
    }
    if !is_trusted()? {
        return Ok(Bridged::Untrusted);
    }
    run_hooks(&mut open(&project, trust)?, &Arc::new(config), &person(None), calling)
}

/// Has the hooks of a call run that comes from inside a session.
fn answer_inside(opened: &mut Opened, inside: Inside, mut calling: Calling) -> Result<Bridged, Failure> {
    // The session judges by itself what it knows of.
    if is_its_own(calling.moment) {
        return Ok(Bridged::Nothing);
    }
    let config = Config::parse(inside.written(opened)?)?;
    calling.apply(&config);
    if !planned_for_calls(&config).iter().any(|planned| planned.is_for(&calling.called.call)) {
        return Ok(Bridged::Nothing);
    }
    run_hooks(opened, &Arc::new(config), &person(inside.run), calling)
}

/// Returns the hooks that agents' own hook systems may call, in the order in which they run.
fn planned_for_calls(config: &Config) -> Vec<PlannedHook> {
    plan::planned_hooks(config).remove(&EventType::BridgeCalled).unwrap_or_default()
}

fn open(project: &Project, trust: bool) -> Result<Opened, Failure> {
    // A project that came with a repository has no store yet.
    let store = store_records::create(project, Lifetime::Command, trust)?;
    Ok(Opened { store, project: project.clone(), trust, front_end: Arc::new(SilentFrontEnd) })
}

/// A person has spoken, and no hook hears it: what is remembered of the conversation is over all the same.
fn forget(project: &Project, config: &Config, called: &Called, trust: bool) -> Result<Bridged, Failure> {
    // Then nothing is remembered.
    if !project.store_file().exists() {
        return Ok(Bridged::Nothing);
    }
    let mut store = store_records::open(project, Lifetime::Command, trust)?;
    let row = store.snapshot().map_err(hints::store)?.conversation(&called.call.caller).map_err(hints::view)?;
    if row.is_some_and(|row| !row.was_told(&called.call.prompt)) {
        let call = Command::Call(Box::new(called.call.clone()));
        let rules = plan::pure_rules(config)?;
        store.execute(&rules, &person(None), &call, random()?).map_err(hints::execute)?;
    }
    Ok(Bridged::Nothing)
}

fn person(run: Option<RunId>) -> Origin {
    Origin { by: environment::user(), at: environment::now(), authority: Authority::Person, run, via: None }
}

/// Where a person hears that nothing is checked. Once a turn is enough.
fn is_noticed(moment: Moment) -> bool {
    matches!(moment, Moment::SessionStart | Moment::UserPromptSubmit | Moment::Stop)
}

/// What a running session has hooks for by itself.
fn is_its_own(moment: Moment) -> bool {
    matches!(moment, Moment::Stop | Moment::SessionStart | Moment::SessionEnd)
}

fn run_hooks(opened: &mut Opened, config: &Arc<Config>, origin: &Origin, calling: Calling) -> Result<Bridged, Failure> {
    let Calling { called, directory, moment, within, .. } = calling;
    let (control, received) = listen()?;
    if let Some(time) = within {
        let control = control.clone();
        // Ends with the process, if not before.
        thread::spawn(move || {
            if control.wait(time) {
                control.cancel()
            }
        });
    }
    // An agent that loses its patience kills us, and a gate may run for long: nothing of it is to survive.
    let launcher = matches!(moment, Moment::Stop | Moment::SubagentStop).then(launcher).transpose()?;
    // The agent has worked in its worktree, so the hooks look there.
    let directory = project::worktree(&opened.project, &directory);
    // The agent is told in the answer, and nowhere else.
    let mut unheard = |_: Told<'_>| {};
    let execution = HookExecution::new(opened, config, &control).in_directory(directory).supervised(launcher);
    let replied = execution
        .observed_by(&mut unheard)
        .run(|dispatch| dispatch.answer_call(origin, called).map_err(hints::run))
        .map_err(|failure| failure.by(received.first()))?;
    Ok(replied.map_or(Bridged::Nothing, Bridged::Replied))
}
