//! `task_next`: returns the next ready task.

use serde::{Deserialize, Serialize};
use windlass_engine::{Refusal, StateView, Task, WorkspaceMode};

use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const NEXT: ToolDefinition = ToolDefinition {
    name: "task_next",
    description: "Find the most urgent task that is ready for you; its id is null if there is none. Does not claim it.",
    example: "{}",
    effect: ToolEffect::ReadOnly,
    fields: &[],
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextTaskInput {}

/// The answer that nothing is ready is no error: an agent that works through all tasks gets it in the end.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum NextTaskOutput {
    Task(Box<Task>),
    Nothing { id: (), hint: String },
}

pub(crate) fn find_next_task<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    _: NextTaskInput,
) -> Result<NextTaskOutput, ToolError> {
    let types = call.host.task_types()?;
    let run = call.host.calling_run()?;
    let snapshot = call.host.store().begin_snapshot()?;
    // A caller without a session gets a task that is open to all.
    let session = run.map(|run| snapshot.find_session(&run.session)).transpose()?.flatten();
    let nothing = |hint: String| Ok(NextTaskOutput::Nothing { id: (), hint });
    match types.next_task_for(
        &snapshot,
        session.as_ref().map(|session| session.agent.as_str()),
        &[],
        WorkspaceMode::InPlace,
    ) {
        Ok(Some(id)) => match snapshot.find_task(id)? {
            Some(task) => Ok(NextTaskOutput::Task(Box::new(task))),
            None => Err(Refusal::UnknownTask(id).into()),
        },
        Ok(None) => nothing("nothing is ready; `task_list` shows what waits".to_owned()),
        Err(refusal @ Refusal::NothingForAgent { .. }) => nothing(refusal.to_string()),
        Err(refusal) => Err(refusal.into()),
    }
}
