//! Steps that create and change tasks. Literal values are checked when the file is read, not when the step runs.

use windlass_engine::workflow::What;
use windlass_engine::{TaskId, TypeName};
use windlass_expr::snake_case;

use super::fields::{Fields, Form, form};
use crate::{ConfigNode, ConfigProblem, NodeValue};

const CREATE: &[&str] = &[
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
const UPDATE: &[&str] =
    &["taskId", "action", "payload", "reason", "labels", "result", "artifacts", "requiredKnowledge", "needs"];
const CHANGES: &[&str] = &[
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
const TEXTS: &[&str] =
    &["goal", "body", "deliverables", "labels", "reason", "result", "artifacts", "requiredKnowledge", "needs"];
const PAYLOAD: &[&str] = &["reason", "labels", "result", "artifacts", "requiredKnowledge", "needs", "context"];
pub fn create(node: &ConfigNode, source: &str) -> Result<What, ConfigProblem> {
    let fields = Fields::of(node, source, "a `create_task`", CREATE)?;
    fields.needed("goal", ("a `goal`: what is to be done", "'Review ${task.goal}'"))?;
    let pattern = fields.pattern()?;
    ["goal", "body", "type"].into_iter().try_for_each(|name| fields.is_text(name))?;
    ["deliverables", "labels"].into_iter().try_for_each(|name| fields.are_texts(name))?;
    for name in ["depends", "dependsOn"] {
        fields.is_list(name, |item| is_task(name, item))?;
    }
    ["parentTaskId", "reviews"].into_iter().try_for_each(|name| is_task_or_filled(&fields, name, source))?;
    if let Some(node) = fields.get("report") {
        is_truth_value("report", node, source)?;
    }
    if let Some(node) = fields.get("priority") {
        is_priority(node, source)?;
    }
    if let Some(ConfigNode { value: NodeValue::Text(kind), at }) = fields.get("type")
        && !kind.contains("${")
    {
        let wrong =
            |error| ConfigProblem::new(format!("`type`: {error}")).suggest("write it as in `type: bug`".to_owned());
        kind.parse::<TypeName>().map_err(|error| wrong(error).at(at.clone()))?;
    }
    no_braces(&fields)?;
    Ok(What::CreateTask(pattern))
}

pub fn update(node: &ConfigNode, source: &str) -> Result<What, ConfigProblem> {
    let fields = Fields::of(node, source, "an `update_task`", UPDATE)?;
    fields.needed(
        "taskId",
        ("a `taskId`: `T7`, `${task.id}` or `{fromContext: steps.make.data.taskId}`", "'${task.id}'"),
    )?;
    let action = fields.needed("action", (&format!("an `action`: one of {}", CHANGES.join(", ")), "complete"))?;
    let pattern = fields.pattern()?;
    is_task_or_filled(&fields, "taskId", source)?;
    fields.is_text("action")?;
    let payload = fields.get("payload");
    let inner = match payload {
        Some(node) if form(node, source)? == Form::Written => {
            Some(Fields::of(node, source, "the `payload` of an `update_task`", PAYLOAD)?)
        }
        _ => None,
    };
    for given in [Some(&fields), inner.as_ref()].into_iter().flatten() {
        ["reason", "result"].into_iter().try_for_each(|name| given.is_text(name))?;
        ["labels", "artifacts", "requiredKnowledge", "needs"].into_iter().try_for_each(|name| given.are_texts(name))?;
        no_braces(given)?;
    }
    let NodeValue::Text(word) = &action.value else { return Ok(What::UpdateTask(pattern)) };
    if word.contains("${") {
        return Ok(What::UpdateTask(pattern));
    }
    if !CHANGES.contains(&snake_case(word).as_str()) {
        return Err(ConfigProblem::unknown("action", word, CHANGES).at(action.at.clone()));
    }
    let takes: &[&str] = match snake_case(word).as_str() {
        "start" => &["context"],
        "complete" => &["result", "artifacts"],
        "block" => &["reason", "requiredKnowledge", "needs"],
        "fail" => &["reason"],
        "set_labels" | "add_labels" | "remove_labels" => &["labels"],
        _ => &[],
    };
    let what = format!("the action `{word}`");
    Fields::of(node, source, &what, &[&["taskId", "action", "payload"], takes].concat())?;
    if let Some(node) = payload.filter(|_| inner.is_some()) {
        Fields::of(node, source, &what, takes)?;
    }
    let needed = match snake_case(word).as_str() {
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
        return Err(problem.suggest(format!("write `payload: {{{name}: {value}}}`")).at(action.at.clone()));
    }
    Ok(What::UpdateTask(pattern))
}

fn is_task_or_filled(fields: &Fields<'_>, name: &str, source: &str) -> Result<(), ConfigProblem> {
    match fields.get(name) {
        Some(node) if form(node, source)? == Form::Written => is_task(name, node),
        _ => Ok(()),
    }
}

/// Checks a literal task id.
fn is_task(name: &str, node: &ConfigNode) -> Result<(), ConfigProblem> {
    if matches!(&node.value, NodeValue::Text(text) if text.parse::<TaskId>().is_ok()) {
        return Ok(());
    }
    Err(ConfigProblem::new(format!("`{name}` is the id of a task"))
        .suggest("write `T7`, `${task.id}` or `{fromContext: steps.make.data.taskId}`".to_owned())
        .at(node.at.clone()))
}

fn is_truth_value(name: &str, node: &ConfigNode, source: &str) -> Result<(), ConfigProblem> {
    match (&node.value, form(node, source)?) {
        (NodeValue::Bool(_), _) | (_, Form::Filled) => Ok(()),
        _ => Err(ConfigProblem::new(format!("`{name}` is `true` or `false`"))
            .suggest(format!("write `{name}: true`"))
            .at(node.at.clone())),
    }
}

fn is_priority(node: &ConfigNode, source: &str) -> Result<(), ConfigProblem> {
    match (&node.value, form(node, source)?) {
        (_, Form::Filled) | (NodeValue::Integer(0..=4), _) => Ok(()),
        _ => Err(ConfigProblem::new("`priority` is a number from 0 (most urgent) to 4")
            .suggest("write `priority: 1`, or `priority: '${task.priority}'`".to_owned())
            .at(node.at.clone())),
    }
}

/// Refuses double braces in texts: they have a meaning elsewhere in the configuration, and none here.
fn no_braces(fields: &Fields<'_>) -> Result<(), ConfigProblem> {
    TEXTS.iter().filter_map(|name| fields.get(name)).try_for_each(is_without_braces)
}

fn is_without_braces(node: &ConfigNode) -> Result<(), ConfigProblem> {
    let text = match &node.value {
        NodeValue::Text(text) => text,
        NodeValue::List(items) => return items.iter().try_for_each(is_without_braces),
        _ => return Ok(()),
    };
    let inside = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
    // Inside an expression, braces are a text or a map.
    let mut plain = inside.filter(|inside| !inside.contains("${") && !inside.starts_with(['\'', '"']));
    let Some(inside) = plain.next() else { return Ok(()) };
    Err(ConfigProblem::new("`{{ … }}` is not filled in here")
        .suggest(format!("write `${{{}}}`; plain braces are `${{'{{{{'}}`", inside.trim()))
        .at(node.at.clone()))
}
