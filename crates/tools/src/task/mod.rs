//! Tools for tasks.

pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod next;
pub(crate) mod update;

use serde::Serialize;
use windlass_engine::{Limits, Priority, State, Task, TaskId, TypeName};

use crate::shape::{Field, Id, Kind};

pub(crate) use create::{CREATE, create};
pub(crate) use get::{GET, get};
pub use get::{TaskDetails, notes};
pub(crate) use list::{LIST, list};
pub(crate) use next::{NEXT, next};
pub(crate) use update::{UPDATE, update};

/// ID of a task.
pub(crate) const TASK: Field = Field::required("taskId", "", Kind::Id(Id::Task));

const LABELS: Kind = Kind::List(&Kind::Words(Limits::LABEL), 0, Limits::LABELS);
const DELIVERABLES: Kind = Kind::List(&Kind::Words(Limits::DELIVERABLE), 0, Limits::DELIVERABLES);
const PRIORITY: Field = Field::optional("priority", "0 is most urgent; default 2", Kind::Whole(0, 4));

/// Summary of a task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Glance {
    id: TaskId,
    /// First line of the goal, cut to a short text.
    goal: String,
    state: State,
    priority: Priority,
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

impl From<Task> for Glance {
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
            held_by: task.lease.map(|lease| lease.holder()),
        }
    }
}

/// Maximum size of a line in a list.
const SHORT: usize = 200;

pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.floor_char_boundary(SHORT) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    }
}
