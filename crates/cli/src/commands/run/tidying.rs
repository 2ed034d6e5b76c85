//! What is done about the changes of others before anything is worked on: merges are noted, and worktrees put away.

use std::sync::Arc;

use windlass_engine::Trusted;
use windlass_process::{Control, Roster};

use super::super::change::open_changes;
use super::effective_config;
use super::in_place::grounds;
use crate::config::Config;
use crate::context::{Context, Opened};
use crate::dispatch::{self, Inside};
use crate::failure::Failure;
use crate::output::Messages;
use crate::{plan, remedy};

/// Notes which changes others have merged, and puts away what is left of tasks that are over.
pub fn tidy(opened: &mut Opened, config: &Arc<Config>, (roster, control): (&Roster, &Control)) -> Result<(), Failure> {
    let in_use = dispatch::worktrees_in_use(opened)?;
    let rules = plan::rules(config, &dispatch::owner(roster), Trusted::Yes)?;
    let tidied = dispatch::with_rules(opened, config, rules, (roster, control, &mut dispatch::tell), |dispatch| {
        dispatch.note_landed(&in_use).and_then(|()| dispatch.sweep(&in_use)).map_err(remedy::run)
    })?;
    for (id, why) in tidied.into_iter().filter_map(|(id, swept)| Some((id, swept.err()?))) {
        Messages::new().note(&format!("the worktree of {id} stays: {why}"));
    }
    Ok(())
}

/// The same for a run that has nothing to work on. It needs no configuration otherwise.
pub fn tidy_for_nobody(opened: &mut Opened, context: &Context) -> Result<(), Failure> {
    let inside = Inside::look(opened)?;
    let Ok(config) = Config::parse(inside.written(opened)?) else { return Ok(()) };
    let in_place = grounds(&opened.project, &config).is_ok_and(|grounds| grounds.is_in_place());
    let config = match effective_config(&opened.project, config, context.trust || inside.config.is_some()) {
        Ok(config) => config,
        Err(failure) if !in_place && !open_changes(opened)?.is_empty() => {
            Messages::new().note(&format!("nobody looks which changes are merged: {}", failure.message));
            return Ok(());
        }
        Err(_) => return Ok(()),
    };
    if grounds(&opened.project, &config).is_ok_and(|grounds| grounds.is_in_place()) {
        return Ok(());
    }
    let roster = dispatch::enlist(&opened.project)?;
    let (control, received) = dispatch::listen()?;
    let tidied = tidy(opened, &Arc::new(config), (&roster, &control));
    tidied.map_err(|failure| failure.by(received.first()))
}
