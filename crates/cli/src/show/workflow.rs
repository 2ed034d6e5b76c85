//! Workflows and their steps, in words.

use serde_json::{Map, Value, json};
use windlass_config::workflow::WorkflowDefinition;
use windlass_engine::workflow::{Step, What};
use windlass_engine::{Event, payload};
use windlass_expr::snake_case;
use windlass_text as text;

/// Summarizes an event of a workflow; returns `None` for any other.
pub fn summary(event: &Event) -> Option<String> {
    Some(match event {
        Event::WorkflowTriggered(triggered) => triggered.workflow_id.clone(),
        Event::WorkflowStarted(started) => started.workflow_id.clone(),
        Event::WorkflowStepStarted(started) if started.attempt > 1 => format!("{}, once more", started.step),
        Event::WorkflowStepStarted(started) => started.step.clone(),
        Event::WorkflowStepFinished(finished) => step(finished),
        Event::WorkflowCompleted(completed) => format!("{}: {}", completed.workflow_id, count(completed.steps)),
        Event::WorkflowFailed(failed) => format!("{}: {}", failed.workflow_id, failed.error),
        _ => return None,
    })
}

fn step(finished: &payload::WorkflowStepFinished) -> String {
    let result = &finished.result;
    let next = finished.next.as_ref().map(|next| format!(" → {next}")).unwrap_or_default();
    match &result.error {
        Some(error) => format!("{} failed: {}{next}", result.step_id, text::fit(error, 200)),
        None => format!("{} ok{next}", result.step_id),
    }
}

/// Formats a number of steps.
pub fn count(steps: u32) -> String {
    if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") }
}

/// A step for people: its kind, its next steps, and its actions as they are written.
pub struct Row {
    /// The number of steps that enclose it.
    pub depth: usize,
    pub id: String,
    pub what: String,
    pub does: Vec<String>,
}

/// Builds the rows of a workflow; nested steps follow the one around them. The texts are not cleaned.
pub fn rows(defined: &WorkflowDefinition) -> Vec<Row> {
    let mut rows = Vec::new();
    for (step, written) in defined.workflow.steps.iter().zip(listed(&defined.written)) {
        add(step, written, 0, &mut rows);
    }
    rows
}

fn add(step: &Step, written: &Value, depth: usize, rows: &mut Vec<Row>) {
    let config = field(written, "config");
    let what = format!("{}{}", step.kind(), leads(step));
    rows.push(Row { depth, id: step.id.clone(), what, does: does(step, config) });
    for (step, written) in step.within().iter().zip(listed(config)) {
        add(step, written, depth + 1, rows);
    }
}

/// Returns the steps for programs.
pub fn steps(defined: &WorkflowDefinition) -> Vec<Value> {
    let steps = defined.workflow.steps.iter().zip(listed(&defined.written));
    steps.map(|(step, written)| as_json(step, written)).collect()
}

fn as_json(step: &Step, written: &Value) -> Value {
    let config = field(written, "config");
    let mut shown = json!({
        "id": step.id, "type": step.kind(), "config": config,
        "onSuccess": step.on_success, "onFailure": step.on_failure,
    });
    match &step.what {
        What::Choose { on_true, on_false, .. } => {
            shown["onTrue"] = json!(on_true);
            shown["onFalse"] = json!(on_false);
        }
        What::Parallel { steps, .. } => {
            let within = steps.iter().zip(listed(config));
            shown["steps"] = within.map(|(step, written)| as_json(step, written)).collect();
        }
        _ => {}
    }
    shown
}

/// Returns the nested steps of a step as they are written.
fn listed(written: &Value) -> &[Value] {
    field(written, "steps").as_array().map_or(&[], Vec::as_slice)
}

fn field<'v>(written: &'v Value, name: &str) -> &'v Value {
    let found = written.as_object().and_then(|fields| fields.iter().find(|(key, _)| snake_case(key) == name));
    found.map_or(&Value::Null, |(_, value)| value)
}

/// Lists the actions of a step: the words of its program, then its other fields.
fn does(step: &Step, config: &Value) -> Vec<String> {
    let empty = Map::new();
    let fields = config.as_object().unwrap_or(&empty);
    let is_told = |key: &str| matches!(snake_case(key).as_str(), "command" | "args" | "steps" | "on_true" | "on_false");
    let rest = fields.iter().filter(|(key, _)| !is_told(key)).map(|(key, value)| format!("{key}: {}", plain(value)));
    let program = matches!(step.what, What::Run(_)).then(|| {
        let args = match field(config, "args") {
            Value::Null => &[][..],
            Value::Array(args) => args,
            other => std::slice::from_ref(other),
        };
        let words: Vec<String> = std::iter::once(field(config, "command")).chain(args).map(word).collect();
        words.join(" ")
    });
    program.into_iter().chain(rest).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a word of a command, in quotes if it could be taken for several.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"'".contains(c)) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// Formats the next steps of a step.
fn leads(step: &Step) -> String {
    let mut ways = Vec::new();
    let mut way = |word: &str, next: Option<&String>| ways.extend(next.map(|next| format!("{word} {next}")));
    if let What::Choose { on_true, on_false, .. } = &step.what {
        way("if so", on_true.as_ref());
        way("if not", on_false.as_ref());
    }
    way("then", step.on_success.as_ref());
    way("if it fails", step.on_failure.as_ref());
    if ways.is_empty() { String::new() } else { format!("  → {}", ways.join(", ")) }
}
