//! The agent that a task's type names.

use windlass_config::{Config, plan};
use windlass_engine::{StateView as _, TaskId};
use windlass_store::SqliteStore;

use crate::{Failure, hints};

/// Returns the agent for a task by its type: the default agent if it may work on the task, else the first one that may.
pub fn find_task_agent(store: &SqliteStore, id: TaskId, config: &Config) -> Result<Option<String>, Failure> {
    let task = store.begin_snapshot().map_err(hints::store_failure)?.find_task(id).map_err(hints::view_failure)?;
    let types = plan::plan_task_types(config);
    let Some(names) = task.as_ref().and_then(|task| types.allowed_agents(task.kind.as_ref())) else { return Ok(None) };
    let usual = config.settings.agent.as_ref().filter(|agent| names.contains(agent.as_str()));
    Ok(usual.map(|agent| agent.value.clone()).or_else(|| names.first().cloned()))
}
