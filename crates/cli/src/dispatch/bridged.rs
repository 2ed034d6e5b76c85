//! Runs the hooks of a call from an agent's own hook system.
//!
//! ```text
//! hooks for this point and tool? ─ no ─► nothing is opened, nothing recorded
//!        └─ yes ─► trusted? ─► inside a run of ours? ─► commit ─► hooks ─► what they come to
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
use windlass_engine::{Authority, Command, Origin, RunId, Trusted, View, would_owe};
use windlass_runner::{Called, Dispatch, Outside, Replied, Settings};
use windlass_store::{Lifetime, Store};

use super::{Inside, RECORDS, enlist, launcher, listen, mask, owner, random, random_bytes, settings};
use crate::config::Written;
use crate::context::Opened;
use crate::failure::Failure;
use crate::outline::Outline;
use crate::project::{self, Project};
use crate::trust::{self, Trust};
use crate::{environment, plan, remedy, store_records};

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

/// Has the hooks of a call run, if there are any.
pub fn answer_call(project: Project, mut calling: Calling) -> Result<Bridged, Failure> {
    let Calling { moment, trust, .. } = calling;
    if environment::debt().is_some() || environment::is_judging() {
        return Ok(Bridged::Nothing);
    }
    let written = Written::load(&project)?;
    let driven = environment::run().is_some();
    let outline = Outline::of(written)?;
    let planned = plan::bridged(&outline);
    if planned.is_empty() && !driven {
        return Ok(Bridged::Nothing);
    }
    calling.called.call.max_retries = outline.frame().settings.limits.max_hook_retries;
    calling.called.call.about = mask(outline.frame()).text(&calling.called.call.about).into_owned();
    let is_trusted = || Ok::<_, Failure>(trust || trust::state(&project, outline.frame())? == Trust::Trusted);
    if !driven && !would_owe(&calling.called.call, &planned) {
        // Hooks that stand elsewhere are not asked either, and nobody would hear of it.
        if is_noticed(moment) && !is_trusted()? {
            return Ok(Bridged::Untrusted);
        }
        let counts = calling.called.call.anew && moment == Moment::UserPromptSubmit;
        let counts = counts && planned.iter().any(|planned| planned.hook.point == Moment::Stop.point());
        return if counts { forget(&project, &outline, &calling.called, trust) } else { Ok(Bridged::Nothing) };
    }
    if !driven && !is_trusted()? {
        return Ok(Bridged::Untrusted);
    }
    // A project that came with a repository has no store yet.
    let store = store_records::create(&project, Lifetime::Command, trust)?;
    let mut opened = Opened { store, project: project.clone(), trust };
    let inside = Inside::look(&opened)?;
    let outline = match inside.config {
        // The session judges by itself what it knows of.
        Some(_) if is_its_own(moment) => return Ok(Bridged::Nothing),
        Some(_) => Outline::of(inside.written(&opened)?)?,
        // It was started by a run that is over: then a person has it.
        None if driven && !is_trusted()? => return Ok(Bridged::Untrusted),
        None => outline,
    };
    if driven && !plan::bridged(&outline).iter().any(|planned| planned.is_for(&calling.called.call)) {
        return Ok(Bridged::Nothing);
    }
    let origin = person(inside.config.and(inside.run));
    run_hooks(&mut opened, &Arc::new(outline), &origin, calling)
}

/// A person has spoken, and no hook hears it: what is remembered of the conversation is over all the same.
fn forget(project: &Project, outline: &Outline, called: &Called, trust: bool) -> Result<Bridged, Failure> {
    // Then nothing is remembered.
    if !project.store_file().exists() {
        return Ok(Bridged::Nothing);
    }
    let mut store = store_records::open(project, Lifetime::Command, trust)?;
    let row = store.snapshot().map_err(remedy::store)?.conversation(&called.call.caller).map_err(remedy::view)?;
    if row.is_some_and(|row| !row.was_told(&called.call.prompt)) {
        let call = Command::Call(Box::new(called.call.clone()));
        let rules = plan::pure_rules(outline.frame())?;
        store.execute(&rules, &person(None), &call, random()?).map_err(remedy::execute)?;
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

fn run_hooks(
    opened: &mut Opened,
    outline: &Arc<Outline>,
    origin: &Origin,
    calling: Calling,
) -> Result<Bridged, Failure> {
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
    let roster = enlist(&opened.project)?;
    let rules = plan::rules(outline, &owner(&roster), Trusted::Yes)?;
    let records = opened.project.make_records(RECORDS)?;
    // An agent that loses its patience kills us, and a gate may run for long: nothing of it is to survive.
    let launcher = matches!(moment, Moment::Stop | Moment::SubagentStop).then(launcher).transpose()?;
    let settings = settings((&opened.project, opened.trust), outline, rules, records, launcher);
    // What the agent has done is in its worktree, and so is what is to be looked at.
    let settings = Settings { directory: project::worktree(&opened.project, &directory), ..settings };
    // Whoever waits is told in the answer, and nowhere else.
    let outside = Outside { now: &environment::now, random: &random_bytes, tell: &mut |_| {}, shows_output: false };
    let mut dispatch = Dispatch::new(&mut opened.store, settings, &roster, control, outside).map_err(remedy::run)?;
    let replied = dispatch.answer_call(origin, called).map_err(remedy::run);
    let replied = replied.map_err(|failure| failure.by(received.first()))?;
    Ok(replied.map_or(Bridged::Nothing, Bridged::Replied))
}
