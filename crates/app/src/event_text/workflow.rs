//! Workflows and their steps, in words.

use serde_json::{Map, Value, json};
use windlass_config::workflow::WorkflowDefinition;
use windlass_engine::workflow::{StepOperation, WorkflowStep};
use windlass_engine::{Event, payload};
use windlass_expr::to_snake_case;
use windlass_text as text;

/// Summarizes an event of a workflow; returns `None` for any other.
pub fn summarize_workflow_event(event: &Event) -> Option<String> {
    Some(match event {
        Event::WorkflowTriggered(triggered) => triggered.workflow_id.clone(),
        Event::WorkflowStarted(started) => started.workflow_id.clone(),
        Event::WorkflowStepStarted(started) if started.attempt > 1 => {
            format!("{}, attempt {}", started.step, started.attempt)
        }
        Event::WorkflowStepStarted(started) => started.step.clone(),
        Event::WorkflowStepFinished(finished) => format_step_result(finished),
        Event::WorkflowCompleted(completed) => {
            format!("{}: {}", completed.workflow_id, format_step_count(completed.steps))
        }
        Event::WorkflowFailed(failed) => format!("{}: {}", failed.workflow_id, failed.error),
        _ => return None,
    })
}

fn format_step_result(finished: &payload::WorkflowStepFinished) -> String {
    let result = &finished.result;
    let next = finished.next.as_ref().map(|next| format!(" → {next}")).unwrap_or_default();
    match &result.error {
        Some(error) => format!("{} failed: {}{next}", result.step_id, text::fit_to_width(error, 200)),
        None => format!("{} ok{next}", result.step_id),
    }
}

/// Formats a number of steps.
pub fn format_step_count(steps: u32) -> String {
    if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") }
}

/// A step for people: its kind, its next steps, and its actions as they are written.
pub struct StepRow {
    /// The number of steps that enclose it.
    pub depth: usize,
    pub id: String,
    pub what: String,
    pub does: Vec<String>,
}

/// Builds the rows of a workflow; nested steps follow the one around them. The texts are not cleaned.
pub fn build_step_rows(defined: &WorkflowDefinition) -> Vec<StepRow> {
    let mut rows = Vec::new();
    for (step, written) in defined.workflow.steps.iter().zip(nested_steps(&defined.content)) {
        add_step_row(step, written, 0, &mut rows);
    }
    rows
}

fn add_step_row(step: &WorkflowStep, written: &Value, depth: usize, rows: &mut Vec<StepRow>) {
    let config = find_field(written, "config");
    let what = format!("{}{}", step.kind_name(), format_next_steps(step));
    rows.push(StepRow { depth, id: step.id.clone(), what, does: list_step_actions(step, config) });
    for (step, written) in step.nested_steps().iter().zip(nested_steps(config)) {
        add_step_row(step, written, depth + 1, rows);
    }
}

/// Returns the steps for programs.
pub fn steps_to_json(defined: &WorkflowDefinition) -> Vec<Value> {
    let steps = defined.workflow.steps.iter().zip(nested_steps(&defined.content));
    steps.map(|(step, written)| step_to_json(step, written)).collect()
}

fn step_to_json(step: &WorkflowStep, written: &Value) -> Value {
    let config = find_field(written, "config");
    let mut shown = json!({
        "id": step.id, "type": step.kind_name(), "config": config,
        "onSuccess": step.on_success, "onFailure": step.on_failure,
    });
    match &step.operation {
        StepOperation::Choose { on_true, on_false, .. } => {
            shown["onTrue"] = json!(on_true);
            shown["onFalse"] = json!(on_false);
        }
        StepOperation::Parallel { steps, .. } => {
            let within = steps.iter().zip(nested_steps(config));
            shown["steps"] = within.map(|(step, written)| step_to_json(step, written)).collect();
        }
        _ => {}
    }
    shown
}

/// Returns the nested steps of a step as they are written.
fn nested_steps(written: &Value) -> &[Value] {
    find_field(written, "steps").as_array().map_or(&[], Vec::as_slice)
}

fn find_field<'v>(written: &'v Value, name: &str) -> &'v Value {
    let found = written.as_object().and_then(|fields| fields.iter().find(|(key, _)| to_snake_case(key) == name));
    found.map_or(&Value::Null, |(_, value)| value)
}

/// Lists the actions of a step: the words of its program, then its other fields.
fn list_step_actions(step: &WorkflowStep, config: &Value) -> Vec<String> {
    let empty = Map::new();
    let fields = config.as_object().unwrap_or(&empty);
    let is_told =
        |key: &str| matches!(to_snake_case(key).as_str(), "command" | "args" | "steps" | "on_true" | "on_false");
    let rest =
        fields.iter().filter(|(key, _)| !is_told(key)).map(|(key, value)| format!("{key}: {}", format_value(value)));
    let program = matches!(step.operation, StepOperation::Run(_)).then(|| {
        let args = match find_field(config, "args") {
            Value::Null => &[][..],
            Value::Array(args) => args,
            other => std::slice::from_ref(other),
        };
        let words: Vec<String> = std::iter::once(find_field(config, "command")).chain(args).map(quote_word).collect();
        words.join(" ")
    });
    program.into_iter().chain(rest).collect()
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a word of a command, in quotes if it could be taken for several.
fn quote_word(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"'".contains(c)) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// Formats the next steps of a step.
fn format_next_steps(step: &WorkflowStep) -> String {
    let mut ways = Vec::new();
    let mut way = |word: &str, next: Option<&String>| ways.extend(next.map(|next| format!("{word} {next}")));
    if let StepOperation::Choose { on_true, on_false, .. } = &step.operation {
        way("if so", on_true.as_ref());
        way("if not", on_false.as_ref());
    }
    way("then", step.on_success.as_ref());
    way("if it fails", step.on_failure.as_ref());
    if ways.is_empty() { String::new() } else { format!("  → {}", ways.join(", ")) }
}
