//! Steps that create and change tasks. Literal values are checked when the file is read, not when the step runs.

use windlass_engine::workflow::StepOperation;
use windlass_engine::{TaskId, TypeName};
use windlass_expr::to_snake_case;

use super::fields::{MapFields, ValueForm, value_form};
use crate::{ConfigNode, ConfigProblem, NodeValue};

const CREATE_KEYS: &[&str] = &[
    "goal",
    "body",
    "deliverables",
    "labels",
    "priority",
    "type",
    "report",
    "reviews",
    "parentTaskId",
    "depends",
    "dependsOn",
];
const UPDATE_KEYS: &[&str] =
    &["taskId", "action", "payload", "reason", "labels", "result", "artifacts", "requiredKnowledge", "needs"];
const TASK_ACTIONS: &[&str] = &[
    "start",
    "complete",
    "block",
    "unblock",
    "ready",
    "transition_to_ready",
    "fail",
    "set_labels",
    "add_labels",
    "remove_labels",
];
/// Text fields of both step types, in which `{{ … }}` is refused.
const TEXT_KEYS: &[&str] =
    &["goal", "body", "deliverables", "labels", "reason", "result", "artifacts", "requiredKnowledge", "needs"];
const PAYLOAD_KEYS: &[&str] = &["reason", "labels", "result", "artifacts", "requiredKnowledge", "needs", "context"];
pub fn read_create_task(node: &ConfigNode, source: &str) -> Result<StepOperation, ConfigProblem> {
    let fields = MapFields::with_known_keys(node, source, "a `create_task`", CREATE_KEYS)?;
    fields.require_field("goal", ("a `goal`: the work to do", "'Review ${task.goal}'"))?;
    let pattern = fields.combined_pattern()?;
    ["goal", "body", "type"].into_iter().try_for_each(|name| fields.check_text(name))?;
    ["deliverables", "labels"].into_iter().try_for_each(|name| fields.check_text_list(name))?;
    for name in ["depends", "dependsOn"] {
        fields.check_list(name, |item| check_task_id(name, item))?;
    }
    ["parentTaskId", "reviews"].into_iter().try_for_each(|name| check_task_or_expression(&fields, name, source))?;
    if let Some(node) = fields.get("report") {
        check_bool_value("report", node, source)?;
    }
    if let Some(node) = fields.get("priority") {
        check_priority(node, source)?;
    }
    if let Some(ConfigNode { value: NodeValue::Text(kind), at }) = fields.get("type")
        && !kind.contains("${")
    {
        let wrong = |error| {
            ConfigProblem::new(format!("`type`: {error}")).with_suggestion("write it as in `type: bug`".to_owned())
        };
        kind.parse::<TypeName>().map_err(|error| wrong(error).with_range(at.clone()))?;
    }
    check_no_braces(&fields)?;
    Ok(StepOperation::CreateTask(pattern))
}

pub fn read_update_task(node: &ConfigNode, source: &str) -> Result<StepOperation, ConfigProblem> {
    let fields = MapFields::with_known_keys(node, source, "an `update_task`", UPDATE_KEYS)?;
    fields.require_field(
        "taskId",
        ("a `taskId`: `T7`, `${task.id}` or `{fromContext: steps.make.data.taskId}`", "'${task.id}'"),
    )?;
    let action =
        fields.require_field("action", (&format!("an `action`: one of {}", TASK_ACTIONS.join(", ")), "complete"))?;
    let pattern = fields.combined_pattern()?;
    check_task_or_expression(&fields, "taskId", source)?;
    fields.check_text("action")?;
    let payload = fields.get("payload");
    let inner = match payload {
        Some(node) if value_form(node, source)? == ValueForm::Literal => {
            Some(MapFields::with_known_keys(node, source, "the `payload` of an `update_task`", PAYLOAD_KEYS)?)
        }
        _ => None,
    };
    for given in [Some(&fields), inner.as_ref()].into_iter().flatten() {
        ["reason", "result"].into_iter().try_for_each(|name| given.check_text(name))?;
        ["labels", "artifacts", "requiredKnowledge", "needs"]
            .into_iter()
            .try_for_each(|name| given.check_text_list(name))?;
        check_no_braces(given)?;
    }
    let NodeValue::Text(word) = &action.value else { return Ok(StepOperation::UpdateTask(pattern)) };
    if word.contains("${") {
        return Ok(StepOperation::UpdateTask(pattern));
    }
    if !TASK_ACTIONS.contains(&to_snake_case(word).as_str()) {
        return Err(ConfigProblem::unknown_name("action", word, TASK_ACTIONS).with_range(action.at.clone()));
    }
    let takes: &[&str] = match to_snake_case(word).as_str() {
        "start" => &["context"],
        "complete" => &["result", "artifacts"],
        "block" => &["reason", "requiredKnowledge", "needs"],
        "fail" => &["reason"],
        "set_labels" | "add_labels" | "remove_labels" => &["labels"],
        _ => &[],
    };
    let what = format!("the action `{word}`");
    MapFields::with_known_keys(node, source, &what, &[&["taskId", "action", "payload"], takes].concat())?;
    if let Some(node) = payload.filter(|_| inner.is_some()) {
        MapFields::with_known_keys(node, source, &what, takes)?;
    }
    let needed = match to_snake_case(word).as_str() {
        "block" | "fail" => Some("reason"),
        "set_labels" | "add_labels" | "remove_labels" => Some("labels"),
        _ => None,
    };
    let is_given =
        |name: &str| fields.get(name).is_some() || inner.as_ref().is_some_and(|inner| inner.get(name).is_some());
    // An expression may supply it.
    let is_open = payload.is_some() && inner.is_none();
    if let Some(name) = needed.filter(|name| !is_open && !is_given(name)) {
        let value = if name == "reason" { "why" } else { "[one]" };
        let problem = ConfigProblem::new(format!("the action `{word}` needs `{name}`"));
        return Err(problem
            .with_suggestion(format!("write `payload: {{{name}: {value}}}`"))
            .with_range(action.at.clone()));
    }
    Ok(StepOperation::UpdateTask(pattern))
}

fn check_task_or_expression(fields: &MapFields<'_>, name: &str, source: &str) -> Result<(), ConfigProblem> {
    match fields.get(name) {
        Some(node) if value_form(node, source)? == ValueForm::Literal => check_task_id(name, node),
        _ => Ok(()),
    }
}

/// Checks a literal task id.
fn check_task_id(name: &str, node: &ConfigNode) -> Result<(), ConfigProblem> {
    if matches!(&node.value, NodeValue::Text(text) if text.parse::<TaskId>().is_ok()) {
        return Ok(());
    }
    Err(ConfigProblem::new(format!("`{name}` is the id of a task"))
        .with_suggestion("write `T7`, `${task.id}` or `{fromContext: steps.make.data.taskId}`".to_owned())
        .with_range(node.at.clone()))
}

fn check_bool_value(name: &str, node: &ConfigNode, source: &str) -> Result<(), ConfigProblem> {
    match (&node.value, value_form(node, source)?) {
        (NodeValue::Bool(_), _) | (_, ValueForm::Expression) => Ok(()),
        _ => Err(ConfigProblem::new(format!("`{name}` is `true` or `false`"))
            .with_suggestion(format!("write `{name}: true`"))
            .with_range(node.at.clone())),
    }
}

fn check_priority(node: &ConfigNode, source: &str) -> Result<(), ConfigProblem> {
    match (&node.value, value_form(node, source)?) {
        (_, ValueForm::Expression) | (NodeValue::Integer(0..=4), _) => Ok(()),
        _ => Err(ConfigProblem::new("`priority` is a number from 0 (most urgent) to 4")
            .with_suggestion("write `priority: 1`, or `priority: '${task.priority}'`".to_owned())
            .with_range(node.at.clone())),
    }
}

/// Refuses double braces in texts: they have a meaning elsewhere in the configuration, and none here.
fn check_no_braces(fields: &MapFields<'_>) -> Result<(), ConfigProblem> {
    TEXT_KEYS.iter().filter_map(|name| fields.get(name)).try_for_each(check_text_without_braces)
}

fn check_text_without_braces(node: &ConfigNode) -> Result<(), ConfigProblem> {
    let text = match &node.value {
        NodeValue::Text(text) => text,
        NodeValue::List(items) => return items.iter().try_for_each(check_text_without_braces),
        _ => return Ok(()),
    };
    let inside = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
    // Inside an expression, braces are a text or a map.
    let mut plain = inside.filter(|inside| !inside.contains("${") && !inside.starts_with(['\'', '"']));
    let Some(inside) = plain.next() else { return Ok(()) };
    Err(ConfigProblem::new("`{{ … }}` is not filled in here")
        .with_suggestion(format!("write `${{{}}}`; plain braces are `${{'{{{{'}}`", inside.trim()))
        .with_range(node.at.clone()))
}
