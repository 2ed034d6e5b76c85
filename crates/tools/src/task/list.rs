//! `task_list`

use serde::{Deserialize, Serialize};
use windlass_engine::{TaskId, TaskState};
use windlass_store::TaskFilter;

use super::ListedTask;
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, IdKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

/// Default number of tasks in a list.
const DEFAULT_LIST_LENGTH: usize = 50;

pub(crate) const LIST: ToolDefinition = ToolDefinition {
    name: "task_list",
    description: "List tasks, oldest first; by default the open ones.",
    example: r#"{"state": "ready"}"#,
    effect: ToolEffect::ReadOnly,
    fields: &[
        ToolField::optional("state", "", FieldKind::OneOf(STATE_NAMES)),
        ToolField::optional("label", "", FieldKind::Words(windlass_engine::EngineLimits::LABEL_BYTES)),
        ToolField::optional("limit", "default 50", FieldKind::Whole(1, 500)),
        ToolField::optional("after", "the `next` of the last answer", FieldKind::Id(IdKind::Task)),
    ],
};

const STATE_NAMES: &[&str] = &[
    "created",
    "ready",
    "active",
    "submitted",
    "completed",
    "blocked",
    "needs_continuation",
    "failed",
    "deleted",
    "all",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListTasksInput {
    state: Option<StateSelector>,
    label: Option<String>,
    limit: Option<usize>,
    after: Option<TaskId>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnyState {
    All,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum StateSelector {
    All(AnyState),
    One(TaskState),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListTasksOutput {
    tasks: Vec<ListedTask>,
    /// ID to continue after, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<TaskId>,
}

pub(crate) fn list_tasks<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: ListTasksInput,
) -> Result<ListTasksOutput, ToolError> {
    let states = match given.state {
        Some(StateSelector::All(AnyState::All)) => Vec::new(),
        Some(StateSelector::One(state)) => vec![state],
        None => TaskState::ALL
            .into_iter()
            .filter(|state| !matches!(state, TaskState::Completed | TaskState::Deleted))
            .collect(),
    };
    let filter =
        TaskFilter { states, labels: given.label.into_iter().collect(), after: given.after, ..TaskFilter::default() };
    let most = given.limit.unwrap_or(DEFAULT_LIST_LENGTH);
    let (mut tasks, mut more) = (Vec::new(), false);
    call.host.store().begin_snapshot()?.visit_tasks(&filter, |task| {
        more = tasks.len() == most;
        if !more {
            tasks.push(task);
        }
        !more
    })?;
    let next = tasks.last().map(|task| task.id).filter(|_| more);
    Ok(ListTasksOutput { tasks: tasks.into_iter().map(ListedTask::from).collect(), next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_cover_every_state() {
        let names = TaskState::ALL.map(TaskState::name);
        assert_eq!(STATE_NAMES, [&names[..], &["all"]].concat());
    }
}
