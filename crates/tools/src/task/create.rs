//! `task_create`

use serde::Deserialize;
use windlass_engine::{Command, Limits, NewTask, Priority, ReportRequest, Task, TaskId, TypeName};

use super::{DELIVERABLES, LABELS, PRIORITY};
use crate::error::{Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Id, Kind};
use crate::tool::{Effect, Tool};

pub(crate) const CREATE: Tool = Tool {
    name: "task_create",
    description: "Add a task. It is ready once everything in dependsOn is completed.",
    example: r#"{"goal": "Fix the login", "priority": 1, "dependsOn": ["T1"]}"#,
    effect: Effect::Writes,
    fields: &[
        Field::optional("goal", "in a line (or give title)", Kind::Words(Limits::GOAL)),
        Field::optional("title", "", Kind::Words(Limits::GOAL)),
        Field::optional("body", "or description", Kind::Text(Limits::BODY)),
        Field::optional("description", "", Kind::Text(Limits::BODY)),
        Field::optional("deliverables", "", DELIVERABLES),
        Field::optional("labels", "", LABELS),
        PRIORITY,
        Field::optional("type", "", Kind::Id(Id::Type)),
        Field::optional("dependsOn", "", Kind::List(&Kind::Id(Id::Task), 0, Limits::DEPENDENCIES)),
        Field::optional("parent", "", Kind::Id(Id::Task)),
        Field::optional("report", "ends with a report, no change", Kind::Flag),
        Field::optional("reviews", "a report about this task's change", Kind::Id(Id::Task)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Create {
    goal: Option<String>,
    title: Option<String>,
    body: Option<String>,
    description: Option<String>,
    #[serde(default)]
    deliverables: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    priority: Priority,
    #[serde(rename = "type")]
    kind: Option<TypeName>,
    #[serde(default)]
    depends_on: Vec<TaskId>,
    parent: Option<TaskId>,
    #[serde(default)]
    report: bool,
    reviews: Option<TaskId>,
}

pub(crate) fn create<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Create) -> Result<Task, ToolError> {
    let goal = only(("goal", given.goal), ("title", given.title))?.ok_or_else(|| {
        ToolError::new(Code::Invalid, "goal: is missing; give a line that says what is to be reached, as goal or title")
    })?;
    let new = NewTask {
        goal,
        body: only(("body", given.body), ("description", given.description))?,
        deliverables: given.deliverables,
        labels: given.labels,
        priority: given.priority,
        kind: given.kind,
        report: (given.report || given.reviews.is_some())
            .then_some(ReportRequest { reviews: given.reviews, by_type: false }),
        depends_on: given.depends_on,
        parent: given.parent,
    };
    let records = call.execute(&Command::CreateTask(new))?;
    let id = records.first().and_then(|record| record.envelope.node.task());
    call.task(id.expect("the first event of a new task is its own"))
}

/// Returns the value of two fields with the same meaning.
fn only(one: (&str, Option<String>), other: (&str, Option<String>)) -> Result<Option<String>, ToolError> {
    match (one.1, other.1) {
        (Some(_), Some(_)) => {
            let (one, other) = (one.0, other.0);
            Err(ToolError::new(Code::Invalid, format!("{other}: {one} is given too, and they mean the same; give one")))
        }
        (given, same) => Ok(given.or(same)),
    }
}
