//! Tools for tasks.

pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod next;
pub(crate) mod update;

use serde::Serialize;
use windlass_engine::{EngineLimits, Task, TaskId, TaskPriority, TaskState, TypeName};

use crate::schema::{FieldKind, IdKind, ToolField};

pub(crate) use create::{CREATE, create_task};
pub(crate) use get::{GET, get_task};
pub use get::{TaskGetReport, newest_notes};
pub(crate) use list::{LIST, list_tasks};
pub(crate) use next::{NEXT, find_next_task};
pub(crate) use update::{UPDATE, update_task};

/// ID of a task.
pub(crate) const TASK_ID_FIELD: ToolField = ToolField::required("taskId", "", FieldKind::Id(IdKind::Task));

const LABELS_KIND: FieldKind =
    FieldKind::List(&FieldKind::Words(EngineLimits::LABEL_BYTES), 0, EngineLimits::LABEL_COUNT);
const DELIVERABLES_KIND: FieldKind =
    FieldKind::List(&FieldKind::Words(EngineLimits::DELIVERABLE_BYTES), 0, EngineLimits::DELIVERABLE_COUNT);
const PRIORITY_FIELD: ToolField =
    ToolField::optional("priority", "0 is most urgent; default 2", FieldKind::Whole(0, 4));

/// Summary of a task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedTask {
    id: TaskId,
    /// First line of the goal, cut to a short text.
    goal: String,
    state: TaskState,
    priority: TaskPriority,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<TypeName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    open_dependencies: u32,
    /// Reason why the task does not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks in this way")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl From<Task> for ListedTask {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            goal: first_line(&task.goal),
            state: task.state,
            priority: task.priority,
            kind: task.kind,
            labels: task.labels,
            open_dependencies: task.open_dependencies,
            reason: task.blocked.map(|blocked| blocked.reason).or(task.reason).map(|reason| first_line(&reason)),
            held_by: task.lease.map(|lease| lease.holder_name()),
        }
    }
}

/// Maximum size of a line in a list.
const MAX_LINE_BYTES: usize = 200;

pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.floor_char_boundary(MAX_LINE_BYTES) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    }
}
