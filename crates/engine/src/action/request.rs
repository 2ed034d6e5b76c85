//! Actions as a hook's answer words them.
//!
//! Names are read in camelCase and in snake_case, with `-` as well. A field that the action does not have is refused, and so
//! is a value of the wrong type. Whether the action can be carried out is for `decide` to say.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Action, TaskAction, is_stateless};
use crate::command::NewTask;
use crate::event::{Event, EventType, Node, payload};
use crate::id::FactType;
use crate::limits::check_value;
use crate::naming::{nearest, snake_case};
use crate::refusal::Refusal;
use crate::task::{Priority, ReportRequest};

/// An action that nobody has looked at yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub payload: Value,
}

const TYPES: &str = "create_task, update_task, execute_workflow or log";
const CHANGES: &str = "start, complete, block, unblock, ready, fail, set_labels, add_labels or remove_labels";

/// The fields of each payload, and the other names that some of them have.
const NEW_TASK: &[&str] =
    &["goal", "body", "deliverables", "labels", "priority", "type", "report", "reviews", "depends_on", "parent"];
const NEW_TASK_ALIASES: &[&str] =
    &["description", "desired_deliverables", "kind", "depends", "dependencies", "parent_id", "parent_task_id"];
const TASK_CHANGE: &[&str] = &["task_id", "action", "payload"];
const WORKFLOW: &[&str] = &["workflow_id", "context", "task_id"];
/// The log has its own clock: a `timestamp` is read for compatibility and does not count.
const LOG: &[&str] = &["type", "node_id", "data", "timestamp"];

impl ActionRequest {
    /// What is asked for.
    pub(crate) fn parse(&self) -> Result<Action, Refusal> {
        self.parse_as(Author::Hook)
    }

    /// The same, of whoever has written it.
    pub(crate) fn parse_as(&self, author: Author) -> Result<Action, Refusal> {
        let fields = Fields::of(author, "payload", &self.payload)?;
        match snake_case(&self.kind).as_str() {
            "create_task" => fields.new_task().map(Action::CreateTask),
            "update_task" => fields.task_change(),
            "execute_workflow" => fields.workflow(),
            "log" => fields.event(),
            _ => Err(Refusal::invalid("the action", format!("`{}` is not known; it is one of {TYPES}", self.kind))),
        }
    }
}

/// Who has written an action, and so what may be told about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    Hook,
    /// A step of a workflow, whose values come of expressions.
    Step,
}

/// The payload of an action, by names in snake case.
struct Fields<'a> {
    found: &'a Map<String, Value>,
    author: Author,
}

impl<'a> Fields<'a> {
    fn of(author: Author, name: &str, value: &'a Value) -> Result<Self, Refusal> {
        match value {
            Value::Object(found) => Ok(Self { found, author }),
            other => Err(wrong(name, "an object", other)),
        }
    }

    /// Refuses a field that the payload does not have.
    fn only(&self, place: &str, known: &[&str]) -> Result<(), Refusal> {
        self.only_known(place, known, &[])
    }

    /// The same, where some fields have other names too.
    fn only_known(&self, place: &str, known: &[&str], aliases: &[&str]) -> Result<(), Refusal> {
        let is_known = |name: &str| known.contains(&name) || aliases.contains(&name);
        let Some(name) = self.found.keys().find(|name| !is_known(&snake_case(name))) else { return Ok(()) };
        let meant = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "it takes none".to_owned(),
            None => format!("it takes {}", known.join(", ")),
        };
        let name: String = name.chars().take(40).collect();
        Err(Refusal::invalid("the action", format!("has no field `{name}` in {place}: {meant}")))
    }

    fn new_task(&self) -> Result<NewTask, Refusal> {
        self.only_known("the payload of `create_task`", NEW_TASK, NEW_TASK_ALIASES)?;
        Ok(NewTask {
            goal: self.needed_text("goal")?,
            body: self.text(&["body", "description"])?,
            deliverables: self.texts(&["deliverables", "desired_deliverables"])?.unwrap_or_default(),
            labels: self.texts(&["labels"])?.unwrap_or_default(),
            priority: self.priority()?,
            kind: self.parsed(&["type", "kind"])?,
            report: self.report()?,
            depends_on: self.all_parsed(&["depends_on", "depends", "dependencies"])?,
            parent: self.parsed(&["parent_task_id", "parent_id", "parent"])?,
        })
    }

    /// Reads whether a new task ends with a report: `report: true`, or the task that it reviews.
    fn report(&self) -> Result<Option<ReportRequest>, Refusal> {
        let reviews = self.parsed(&["reviews"])?;
        match self.value("report") {
            Some(Value::Bool(wanted)) => {
                Ok((*wanted || reviews.is_some()).then_some(ReportRequest { reviews, by_type: false }))
            }
            Some(other) => Err(wrong("report", "a truth value", other)),
            None => Ok(reviews.map(|id| ReportRequest { reviews: Some(id), by_type: false })),
        }
    }

    fn task_change(&self) -> Result<Action, Refusal> {
        let task = self.parsed(&["task_id"])?.ok_or_else(|| missing("taskId"))?;
        let wanted = self.needed_text("action")?;
        let nothing = Value::Object(Map::new());
        let inner = Fields::of(self.author, "payload", self.value("payload").unwrap_or(&nothing))?;
        let needed = change_fields(&snake_case(&wanted));
        let place = format!("the payload of `{wanted}`");
        if let Some(needed) = needed {
            inner.only(&place, needed)?;
            self.only(&place, &[TASK_CHANGE, needed].concat())?;
        }
        // What an action needs may stand beside its name, or in a payload of its own.
        let text = |names: &[&str]| Ok::<_, Refusal>(inner.text(names)?.or(self.text(names)?));
        let texts = |names: &[&str]| Ok::<_, Refusal>(inner.texts(names)?.or(self.texts(names)?));
        let reason = || text(&["reason"])?.ok_or_else(|| missing("reason"));
        let labels = || texts(&["labels"])?.ok_or_else(|| missing("labels"));
        let action = match snake_case(&wanted).as_str() {
            "ready" | "transition_to_ready" => TaskAction::Ready { after: None },
            "start" => {
                let context = inner.value("context").or_else(|| self.value("context"));
                TaskAction::Start { context: context.cloned().unwrap_or_default() }
            }
            "complete" => TaskAction::Complete {
                result: text(&["result"])?,
                artifacts: texts(&["artifacts"])?.unwrap_or_default(),
            },
            "block" => TaskAction::Block {
                reason: reason()?,
                required_knowledge: texts(&["required_knowledge", "needs"])?.unwrap_or_default(),
            },
            "unblock" => TaskAction::Unblock,
            "fail" => TaskAction::Fail { reason: reason()? },
            "set_labels" => TaskAction::SetLabels(labels()?),
            "add_labels" => TaskAction::AddLabels(labels()?),
            "remove_labels" => TaskAction::RemoveLabels(labels()?),
            _ => return Err(Refusal::invalid("`action`", format!("`{wanted}` is not known; it is one of {CHANGES}"))),
        };
        Ok(Action::UpdateTask { task, action })
    }

    fn workflow(&self) -> Result<Action, Refusal> {
        self.only("the payload of `execute_workflow`", WORKFLOW)?;
        let context = match self.value("context") {
            None => Map::new(),
            Some(Value::Object(fields)) => fields.clone(),
            Some(other) => return Err(wrong("context", "an object", other)),
        };
        let task = self.parsed(&["task_id"])?;
        Ok(Action::ExecuteWorkflow { id: self.needed_text("workflow_id")?, context, task })
    }

    fn event(&self) -> Result<Action, Refusal> {
        self.only("the payload of `log`", LOG)?;
        let name = self.needed_text("type")?;
        let node = self.parsed(&["node_id"])?.unwrap_or(Node::System);
        let nothing = Value::Object(Map::new());
        let data = self.value("data").unwrap_or(&nothing);
        let given = Fields::of(self.author, "data", data)?;
        if name.contains('.') {
            let kind: FactType = parsed("type", &name)?;
            check_value("`data`", data)?;
            return Ok(Action::Log { node, event: payload::FactLogged { kind, data: given.found.clone() }.into() });
        }
        let kind = log_type(&name)?;
        let fields: Vec<String> = kind.data_fields().unwrap_or_default().iter().map(|name| snake_case(name)).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        given.only(&format!("the data of `{kind}`"), &fields)?;
        let data = given.laid_over(usual_data(kind, node));
        let event = Event::read(kind, &data).map_err(|error| Refusal::invalid("`data`", format!("{error}")))?;
        Ok(Action::Log { node, event })
    }

    /// These values where they are among the usual ones, and the usual ones elsewhere.
    fn laid_over(&self, mut usual: Value) -> Value {
        for (name, value) in usual.as_object_mut().into_iter().flatten() {
            if let Some(given) = self.value(&snake_case(name)) {
                *value = given.clone();
            }
        }
        usual
    }

    fn priority(&self) -> Result<Priority, Refusal> {
        match self.value("priority") {
            None => Ok(Priority::default()),
            Some(Value::Number(number)) => parsed("priority", &number.to_string()),
            Some(other) => Err(wrong("priority", "a number from 0 to 4", other)),
        }
    }

    /// A field in whichever spelling, with its name as it is written; one that is null is not there.
    fn written(&self, name: &str) -> Option<(&'a str, &'a Value)> {
        let found = self.found.iter().find(|(key, _)| snake_case(key) == name);
        found.map(|(key, value)| (key.as_str(), value)).filter(|(_, value)| !value.is_null())
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.written(name).map(|(_, value)| value)
    }

    fn text(&self, names: &[&str]) -> Result<Option<String>, Refusal> {
        match names.iter().find_map(|name| self.written(name)) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text.clone())),
            Some((name, other)) => Err(self.no_text(name, "a text", other)),
        }
    }

    /// A text of a certain form.
    fn parsed<T: FromStr<Err: ToString>>(&self, names: &[&str]) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(names)? else { return Ok(None) };
        let name = names.iter().find_map(|name| self.written(name)).map_or("", |(name, _)| name);
        parsed(name, &text).map(Some)
    }

    fn all_parsed<T: FromStr<Err: ToString>>(&self, names: &[&str]) -> Result<Vec<T>, Refusal> {
        let name = names.iter().find_map(|name| self.written(name)).map_or("", |(name, _)| name);
        self.texts(names)?.unwrap_or_default().iter().map(|text| parsed(name, text)).collect()
    }

    fn needed_text(&self, name: &'static str) -> Result<String, Refusal> {
        self.text(&[name])?.ok_or_else(|| missing(name))
    }

    fn texts(&self, names: &[&str]) -> Result<Option<Vec<String>>, Refusal> {
        let Some((name, value)) = names.iter().find_map(|name| self.written(name)) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(wrong(name, "a list of texts", value)) };
        let wanted = "a list of texts";
        let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(|| self.no_text(name, wanted, item));
        items.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Something that is no text, with the way to make one of it.
    fn no_text(&self, name: &str, wanted: &str, found: &Value) -> Refusal {
        match (self.author, found) {
            (Author::Step, Value::Number(_) | Value::Bool(_)) => {
                wrong(name, &format!("{wanted}; `${{… | string}}` makes a text of it"), found)
            }
            _ => wrong(name, wanted, found),
        }
    }
}

/// The fields that a change of a task needs or takes; `None` for a change that does not exist.
fn change_fields(change: &str) -> Option<&'static [&'static str]> {
    Some(match change {
        "ready" | "transition_to_ready" | "unblock" => &[],
        "start" => &["context"],
        "complete" => &["result", "artifacts"],
        "block" => &["reason", "needs", "required_knowledge"],
        "fail" => &["reason"],
        "set_labels" | "add_labels" | "remove_labels" => &["labels"],
        _ => return None,
    })
}

/// A type of Windlass's own that a hook may log.
fn log_type(name: &str) -> Result<EventType, Refusal> {
    let loggable: Vec<&str> =
        EventType::ALL.iter().filter(|kind| is_loggable(**kind)).map(|kind| kind.name()).collect();
    match name.parse::<EventType>() {
        Ok(kind) if is_loggable(kind) => Ok(kind),
        Ok(kind) if is_stateless(kind) => Err(Refusal::invalid(
            "a log action",
            format!("cannot make a `{kind}` by that name: write the type of the fact, such as `review.passed`"),
        )),
        Ok(kind) => Err(Refusal::invalid("a log action", format!("cannot make a `{kind}`: that bears state"))),
        Err(unknown) => {
            let known = loggable.join(", ");
            let why =
                format!("cannot use `type`: {unknown}; write {known}, or one with a namespace such as `review.passed`");
            Err(Refusal::invalid("the action", why))
        }
    }
}

fn is_loggable(kind: EventType) -> bool {
    is_stateless(kind) && kind != EventType::FactLogged
}

/// What an event says of which only some is given.
fn usual_data(kind: EventType, node: Node) -> Value {
    match kind {
        EventType::DependencySatisfied => json!({"dependentTaskId": node, "completedTaskId": null}),
        EventType::AutoLabelSuggestion => json!({"labels": [], "keywords": []}),
        EventType::AgentMetrics => {
            let priority = Priority::default();
            json!({"goal": "", "labels": [], "priority": priority, "durationMs": null, "deliverables": []})
        }
        _ => json!({}),
    }
}

fn parsed<T: FromStr<Err: ToString>>(name: &str, text: &str) -> Result<T, Refusal> {
    let wrong = |error: T::Err| Refusal::invalid("the action", format!("cannot use `{name}`: {}", error.to_string()));
    text.parse().map_err(wrong)
}

fn missing(name: &str) -> Refusal {
    Refusal::invalid("the action", format!("needs `{name}`"))
}

fn wrong(name: &str, expected: &str, found: &Value) -> Refusal {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Refusal::invalid("the action", format!("has {found} as `{name}`, not {expected}"))
}
