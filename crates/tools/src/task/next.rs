//! `task_next`: returns the next ready task.

use serde::{Deserialize, Serialize};
use windlass_engine::{Grounds, Refusal, Task, View};

use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::tool::{Effect, Tool};

pub(crate) const NEXT: Tool = Tool {
    name: "task_next",
    description: "The most urgent task that is ready for you; its id is null where none is. Does not claim it.",
    example: "{}",
    effect: Effect::ReadOnly,
    fields: &[],
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Next {}

/// The answer that nothing is ready is no error: an agent that works through all tasks gets it in the end.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Found {
    Task(Box<Task>),
    Nothing { id: (), hint: String },
}

pub(crate) fn next<G: ToolHost>(call: &mut ToolCall<'_, G>, _: Next) -> Result<Found, ToolError> {
    let types = call.ground.types()?;
    let run = call.ground.run()?;
    let snapshot = call.ground.store().snapshot()?;
    // A caller without a session gets a task that is open to all.
    let session = run.map(|run| snapshot.session(&run.session)).transpose()?.flatten();
    let nothing = |hint: String| Ok(Found::Nothing { id: (), hint });
    match types.next_for(&snapshot, session.as_ref().map(|session| session.agent.as_str()), &[], Grounds::InPlace) {
        Ok(Some(id)) => match snapshot.task(id)? {
            Some(task) => Ok(Found::Task(Box::new(task))),
            None => Err(Refusal::UnknownTask(id).into()),
        },
        Ok(None) => nothing("nothing is ready; `task_list` shows what waits".to_owned()),
        Err(refusal @ Refusal::NothingForAgent { .. }) => nothing(refusal.to_string()),
        Err(refusal) => Err(refusal.into()),
    }
}
