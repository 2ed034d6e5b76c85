//! The cleanup before a run: records external merges, and removes worktrees of finished tasks.

use std::sync::Arc;

use windlass_config::{Config, plan};
use windlass_engine::Trusted;
use windlass_process::{Control, Roster};

use super::session_config::find_effective_config;
use super::work_place::find_grounds;
use crate::caller::Inside;
use crate::changes::list_open_changes;
use crate::context::Opened;
use crate::execution::{self, HookExecution};
use crate::{Failure, Notice, hints};

/// Records the changes that others have merged, and removes the worktrees of finished tasks.
pub fn clean_up_tasks(
    opened: &mut Opened,
    config: &Arc<Config>,
    (roster, control): (&Roster, &Control),
) -> Result<(), Failure> {
    let in_use = execution::worktrees_in_use(opened)?;
    let rules = plan::rules(config, &execution::owner_name(roster), Trusted::Yes)?;
    let tidied = HookExecution::new(opened, config, control).owned_by(roster, rules).run(|dispatch| {
        dispatch.record_external_merges(&in_use).and_then(|()| dispatch.sweep(&in_use)).map_err(hints::run)
    })?;
    for (id, why) in tidied.into_iter().filter_map(|(id, swept)| Some((id, swept.err()?))) {
        opened.front_end.show(Notice::Note(&format!("the worktree of {id} stays: {why}")));
    }
    Ok(())
}

/// Cleans up for a run without a ready task, which needs no configuration otherwise.
pub fn clean_up_without_work(opened: &mut Opened) -> Result<(), Failure> {
    let inside = Inside::look(opened)?;
    let Ok(config) = Config::parse(inside.written(opened)?) else { return Ok(()) };
    let in_place = find_grounds(&opened.project, &config).is_ok_and(|grounds| grounds.is_in_place());
    let told = opened.trust || inside.config.is_some();
    let config = match find_effective_config(&*opened.front_end, &opened.project, config, told) {
        Ok(config) => config,
        Err(failure) if !in_place && !list_open_changes(opened)?.is_empty() => {
            let unchecked = format!("merged changes are not looked for: {}", failure.message);
            opened.front_end.show(Notice::Note(&unchecked));
            return Ok(());
        }
        Err(_) => return Ok(()),
    };
    if find_grounds(&opened.project, &config).is_ok_and(|grounds| grounds.is_in_place()) {
        return Ok(());
    }
    let roster = execution::enlist(&opened.project)?;
    let (control, received) = execution::listen()?;
    let tidied = clean_up_tasks(opened, &Arc::new(config), (&roster, &control));
    tidied.map_err(|failure| failure.by(received.first()))
}
