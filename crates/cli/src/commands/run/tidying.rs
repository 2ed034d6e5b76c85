//! What is done about the changes of others before anything is worked on: merges are noted, and worktrees put away.

use std::sync::Arc;

use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::execution::{self, HookExecution};
use windlass_app::{Failure, hints};
use windlass_config::{Config, plan};
use windlass_engine::Trusted;
use windlass_process::{Control, Roster};

use super::super::change::open_changes;
use super::effective_config;
use super::in_place::grounds;
use crate::output::Messages;

/// Notes which changes others have merged, and puts away what is left of tasks that are over.
pub fn tidy(opened: &mut Opened, config: &Arc<Config>, (roster, control): (&Roster, &Control)) -> Result<(), Failure> {
    let in_use = execution::worktrees_in_use(opened)?;
    let rules = plan::rules(config, &execution::owner_name(roster), Trusted::Yes)?;
    let tidied = HookExecution::new(opened, config, control)
        .owned_by(roster, rules)
        .run(|dispatch| dispatch.note_landed(&in_use).and_then(|()| dispatch.sweep(&in_use)).map_err(hints::run))?;
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
    let config = match effective_config(
        &*context.front_end,
        &opened.project,
        config,
        context.trust || inside.config.is_some(),
    ) {
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
    let roster = execution::enlist(&opened.project)?;
    let (control, received) = execution::listen()?;
    let tidied = tidy(opened, &Arc::new(config), (&roster, &control));
    tidied.map_err(|failure| failure.by(received.first()))
}
