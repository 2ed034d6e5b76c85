//! The agent that a task's type names.

use windlass_config::{Config, plan};
use windlass_engine::{TaskId, View as _};
use windlass_store::Sqlite;

use crate::{Failure, hints};

/// Returns the agent for a task by its type: the default agent if it may work on the task, else the first one that may.
pub fn find_task_agent(store: &Sqlite, id: TaskId, config: &Config) -> Result<Option<String>, Failure> {
    let task = store.snapshot().map_err(hints::store)?.task(id).map_err(hints::view)?;
    let types = plan::types(config);
    let Some(names) = task.as_ref().and_then(|task| types.implementers(task.kind.as_ref())) else { return Ok(None) };
    let usual = config.settings.agent.as_ref().filter(|agent| names.contains(agent.as_str()));
    Ok(usual.map(|agent| agent.value.clone()).or_else(|| names.first().cloned()))
}
