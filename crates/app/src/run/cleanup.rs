//! The cleanup before a run: records external merges, and removes worktrees of finished tasks.

use std::sync::Arc;

use windlass_config::{Config, plan};
use windlass_engine::ConfigTrust;
use windlass_process::{OwnerLock, RunControl};

use super::session_config::find_effective_config;
use super::workspace_choice::find_workspace_mode;
use crate::caller::CallerContext;
use crate::changes::list_open_changes;
use crate::context::OpenedProject;
use crate::execution::{self, HookExecution};
use crate::{Failure, Notice, hints};

/// Records the changes that others have merged, and removes the worktrees of finished tasks.
pub fn clean_up_tasks(
    opened: &mut OpenedProject,
    config: &Arc<Config>,
    (owner_lock, control): (&OwnerLock, &RunControl),
) -> Result<(), Failure> {
    let in_use = execution::worktrees_in_use(opened)?;
    let rules = plan::engine_rules(config, &execution::owner_name(owner_lock), ConfigTrust::Yes)?;
    let tidied =
        HookExecution::new(opened, config, control).with_owner(owner_lock, rules).run_with_effects(|dispatch| {
            dispatch
                .record_external_merges(&in_use)
                .and_then(|()| dispatch.sweep_worktrees(&in_use))
                .map_err(hints::run_failure)
        })?;
    for (id, why) in tidied.into_iter().filter_map(|(id, swept)| Some((id, swept.err()?))) {
        opened.front_end.show_notice(Notice::Note(&format!("the worktree of {id} stays: {why}")));
    }
    Ok(())
}

/// Cleans up for a run without a ready task, which needs no configuration otherwise.
pub fn clean_up_without_work(opened: &mut OpenedProject) -> Result<(), Failure> {
    let inside = CallerContext::detect_from_variables(opened)?;
    let Ok(config) = Config::from_source(inside.load_config_source(opened)?) else { return Ok(()) };
    let in_place =
        find_workspace_mode(&opened.project, &config).is_ok_and(|workspace_mode| workspace_mode.is_in_place());
    let trust_option = opened.trust || inside.config.is_some();
    let config = match find_effective_config(&*opened.front_end, &opened.project, config, trust_option) {
        Ok(config) => config,
        Err(failure) if !in_place && !list_open_changes(opened)?.is_empty() => {
            let unchecked = format!("merged changes are not looked for: {}", failure.message);
            opened.front_end.show_notice(Notice::Note(&unchecked));
            return Ok(());
        }
        Err(_) => return Ok(()),
    };
    if find_workspace_mode(&opened.project, &config).is_ok_and(|workspace_mode| workspace_mode.is_in_place()) {
        return Ok(());
    }
    let owner_lock = execution::acquire_owner_lock(&opened.project)?;
    let (control, received) = execution::listen_to_signals()?;
    let tidied = clean_up_tasks(opened, &Arc::new(config), (&owner_lock, &control));
    tidied.map_err(|failure| failure.with_signal(received.first_signal()))
}
