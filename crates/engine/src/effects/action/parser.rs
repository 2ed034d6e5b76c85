//! Reads actions from a hook's answer.
//!
//! Names may be in camelCase or snake_case, with `-` as well, and a null field counts as missing. An unknown field is refused,
//! and so is a value of the wrong type. `decide` checks whether the action can be performed.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};
use windlass_expr::{read_json, to_snake_case};

use super::request::ActionRequest;
use super::{HookAction, TaskAction, is_stateless_event};
use crate::command::NewTask;
use crate::command::limits::check_json_value;
use crate::command::refusal::Refusal;
use crate::log::event::{Event, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{FactType, TaskId, TypeName};
use crate::task::{ReportRequest, TaskPriority};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTaskFields {
    goal: String,
    #[serde(alias = "description")]
    body: Option<String>,
    #[serde(default, alias = "desired_deliverables")]
    deliverables: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    priority: TaskPriority,
    #[serde(rename = "type", alias = "kind")]
    kind: Option<TypeName>,
    /// Whether it ends with a report. A task that reviews another one does so always.
    #[serde(default)]
    report: bool,
    reviews: Option<TaskId>,
    #[serde(default, alias = "depends", alias = "dependencies")]
    depends_on: Vec<TaskId>,
    #[serde(alias = "parent_id", alias = "parent_task_id")]
    parent: Option<TaskId>,
}

/// The fields of an update may stand beside its name, or in a payload of their own.
#[derive(Deserialize)]
struct TaskUpdateFields {
    task_id: TaskId,
    action: String,
    #[serde(default)]
    payload: Map<String, Value>,
    #[serde(flatten)]
    beside: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum TaskActionFields {
    #[serde(alias = "transition_to_ready")]
    Ready {},
    Start {
        #[serde(default)]
        context: Value,
    },
    Complete {
        result: Option<String>,
        #[serde(default)]
        artifacts: Vec<String>,
    },
    Block {
        reason: String,
        #[serde(default, alias = "needs")]
        required_knowledge: Vec<String>,
    },
    Unblock {},
    Fail {
        reason: String,
    },
    SetLabels {
        labels: Vec<String>,
    },
    AddLabels {
        labels: Vec<String>,
    },
    RemoveLabels {
        labels: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkflowFields {
    workflow_id: String,
    #[serde(default)]
    context: Map<String, Value>,
    task_id: Option<TaskId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogEventFields {
    #[serde(rename = "type")]
    kind: String,
    node_id: Option<EventSubject>,
    #[serde(default)]
    data: Map<String, Value>,
    /// The log has its own clock: the field is accepted for compatibility and ignored.
    #[serde(default, rename = "timestamp")]
    _timestamp: IgnoredAny,
}

impl ActionRequest {
    /// Returns the requested action.
    pub(crate) fn parse_action(&self) -> Result<HookAction, Refusal> {
        let given = match &self.payload {
            Value::Object(fields) => Value::Object(to_snake_case_fields(fields)?),
            other => other.clone(),
        };
        match to_snake_case(&self.kind).as_str() {
            "create_task" => read_payload(given).map(NewTaskFields::into_action),
            "update_task" => read_payload(given).and_then(TaskUpdateFields::into_action),
            "execute_workflow" => {
                let WorkflowFields { workflow_id: id, context, task_id: task } = read_payload(given)?;
                Ok(HookAction::ExecuteWorkflow { id, context, task })
            }
            "log" => read_payload(given).and_then(LogEventFields::into_action),
            _ => {
                let known = "create_task, update_task, execute_workflow or log";
                Err(Refusal::invalid_input("the action", format!("`{}` is not known; it is one of {known}", self.kind)))
            }
        }
    }
}

fn to_snake_case_fields(fields: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let mut named = Map::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let name = to_snake_case(name);
        if named.insert(name.clone(), value.clone()).is_some() {
            let name: String = name.chars().take(40).collect();
            return Err(Refusal::invalid_input(
                "the action",
                format!("has the field `{name}` twice, in two spellings"),
            ));
        }
    }
    Ok(named)
}

fn read_payload<T: DeserializeOwned>(given: Value) -> Result<T, Refusal> {
    read_json(given).map_err(|error| Refusal::invalid_input("the action", format!("cannot be read: {error}")))
}

impl NewTaskFields {
    fn into_action(self) -> HookAction {
        let Self { goal, body, deliverables, labels, priority, kind, report, reviews, depends_on, parent } = self;
        let report = (report || reviews.is_some()).then_some(ReportRequest { reviews, by_type: false });
        HookAction::CreateTask(NewTask { goal, body, deliverables, labels, priority, kind, report, depends_on, parent })
    }
}

impl TaskUpdateFields {
    fn into_action(mut self) -> Result<HookAction, Refusal> {
        self.beside.extend(to_snake_case_fields(&self.payload)?);
        let action = match read_payload(json!({(to_snake_case(&self.action)): self.beside}))? {
            TaskActionFields::Ready {} => TaskAction::Ready { after: None },
            TaskActionFields::Start { context } => TaskAction::Start { context },
            TaskActionFields::Complete { result, artifacts } => TaskAction::Complete { result, artifacts },
            TaskActionFields::Block { reason, required_knowledge } => TaskAction::Block { reason, required_knowledge },
            TaskActionFields::Unblock {} => TaskAction::Unblock,
            TaskActionFields::Fail { reason } => TaskAction::Fail { reason },
            TaskActionFields::SetLabels { labels } => TaskAction::SetLabels(labels),
            TaskActionFields::AddLabels { labels } => TaskAction::AddLabels(labels),
            TaskActionFields::RemoveLabels { labels } => TaskAction::RemoveLabels(labels),
        };
        Ok(HookAction::UpdateTask { task: self.task_id, action })
    }
}

impl LogEventFields {
    fn into_action(self) -> Result<HookAction, Refusal> {
        let Self { kind: name, node_id, data, .. } = self;
        let node = node_id.unwrap_or(EventSubject::System);
        if name.contains('.') {
            let why = |error| Refusal::invalid_input("the action", format!("cannot use `type`: {error}"));
            let kind: FactType = name.parse().map_err(why)?;
            check_json_value("`data`", &Value::Object(data.clone()))?;
            return Ok(HookAction::Log { node, event: payload::FactLogged { kind, data }.into() });
        }
        let kind = parse_log_type(&name)?;
        let mut event = default_event_data(kind, node);
        for (name, value) in to_snake_case_fields(&data)? {
            let mut fields = event.as_object_mut().into_iter().flatten();
            match fields.find(|(field, _)| to_snake_case(field) == name) {
                Some((_, field)) => *field = value,
                None => {
                    let name: String = name.chars().take(40).collect();
                    return Err(Refusal::invalid_input(
                        "the action",
                        format!("has no field `{name}` in the data of `{kind}`"),
                    ));
                }
            }
        }
        let event = Event::read(kind, &event).map_err(|error| Refusal::invalid_input("`data`", format!("{error}")))?;
        Ok(HookAction::Log { node, event })
    }
}

/// Returns the built-in event type that a hook may log.
fn parse_log_type(name: &str) -> Result<EventType, Refusal> {
    let is_loggable = |kind: &EventType| is_stateless_event(*kind) && *kind != EventType::FactLogged;
    name.parse::<EventType>().ok().filter(is_loggable).ok_or_else(|| {
        let name: String = name.chars().take(40).collect();
        let known = EventType::ALL.iter().filter(|kind| is_loggable(kind)).map(|kind| kind.name());
        let known = known.collect::<Vec<_>>().join(", ");
        let why = format!("cannot make a `{name}`: write {known}, or a type with a namespace such as `review.passed`");
        Refusal::invalid_input("a log action", why)
    })
}

/// Returns the default data of an event, for the fields that a hook leaves out.
fn default_event_data(kind: EventType, node: EventSubject) -> Value {
    match kind {
        EventType::DependencySatisfied => json!({"dependentTaskId": node, "completedTaskId": null}),
        EventType::AutoLabelSuggestion => json!({"labels": [], "keywords": []}),
        EventType::AgentMetrics => {
            let priority = TaskPriority::default();
            json!({"goal": "", "labels": [], "priority": priority, "durationMs": null, "deliverables": []})
        }
        _ => json!({}),
    }
}
