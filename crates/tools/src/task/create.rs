//! `task_create`

use serde::Deserialize;
use windlass_engine::{Command, EngineLimits, NewTask, ReportRequest, Task, TaskId, TaskPriority, TypeName};

use super::{DELIVERABLES_KIND, LABELS_KIND, PRIORITY_FIELD};
use crate::error::{ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, IdKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const CREATE: ToolDefinition = ToolDefinition {
    name: "task_create",
    description: "Add a task. It is ready once everything in dependsOn is completed.",
    example: r#"{"goal": "Fix the login", "priority": 1, "dependsOn": ["T1"]}"#,
    effect: ToolEffect::Writes,
    fields: &[
        ToolField::optional("goal", "in a line (or give title)", FieldKind::Words(EngineLimits::GOAL_BYTES)),
        ToolField::optional("title", "", FieldKind::Words(EngineLimits::GOAL_BYTES)),
        ToolField::optional("body", "or description", FieldKind::Text(EngineLimits::BODY_BYTES)),
        ToolField::optional("description", "", FieldKind::Text(EngineLimits::BODY_BYTES)),
        ToolField::optional("deliverables", "", DELIVERABLES_KIND),
        ToolField::optional("labels", "", LABELS_KIND),
        PRIORITY_FIELD,
        ToolField::optional("type", "", FieldKind::Id(IdKind::Type)),
        ToolField::optional(
            "dependsOn",
            "",
            FieldKind::List(&FieldKind::Id(IdKind::Task), 0, EngineLimits::DEPENDENCY_COUNT),
        ),
        ToolField::optional("parent", "", FieldKind::Id(IdKind::Task)),
        ToolField::optional("report", "ends with a report, no change", FieldKind::Flag),
        ToolField::optional("reviews", "a report about this task's change", FieldKind::Id(IdKind::Task)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateTaskInput {
    goal: Option<String>,
    title: Option<String>,
    body: Option<String>,
    description: Option<String>,
    #[serde(default)]
    deliverables: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    priority: TaskPriority,
    #[serde(rename = "type")]
    kind: Option<TypeName>,
    #[serde(default)]
    depends_on: Vec<TaskId>,
    parent: Option<TaskId>,
    #[serde(default)]
    report: bool,
    reviews: Option<TaskId>,
}

pub(crate) fn create_task<G: ToolHost>(call: &mut ToolCall<'_, G>, given: CreateTaskInput) -> Result<Task, ToolError> {
    let goal = pick_one_alias(("goal", given.goal), ("title", given.title))?.ok_or_else(|| {
        ToolError::new(ToolErrorCode::Invalid, "goal: is missing; give one line with the goal, as goal or title")
    })?;
    let new = NewTask {
        goal,
        body: pick_one_alias(("body", given.body), ("description", given.description))?,
        deliverables: given.deliverables,
        labels: given.labels,
        priority: given.priority,
        kind: given.kind,
        report: (given.report || given.reviews.is_some())
            .then_some(ReportRequest { reviews: given.reviews, by_type: false }),
        depends_on: given.depends_on,
        parent: given.parent,
    };
    let records = call.execute_command(&Command::CreateTask(new))?;
    let id = records.first().and_then(|record| record.envelope.node.task_id());
    call.load_task(id.expect("the first event of a new task is its own"))
}

/// Returns the value of two fields with the same meaning.
fn pick_one_alias(one: (&str, Option<String>), other: (&str, Option<String>)) -> Result<Option<String>, ToolError> {
    match (one.1, other.1) {
        (Some(_), Some(_)) => {
            let (one, other) = (one.0, other.0);
            Err(ToolError::new(
                ToolErrorCode::Invalid,
                format!("{other}: {one} is given too, and they mean the same; give one"),
            ))
        }
        (given, same) => Ok(given.or(same)),
    }
}
