//! `iteration_start`

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_engine::validation::{ValidationRule, ValidationRuleKind};
use windlass_engine::{Command, EngineLimits, Event, NewIterationSeries, Promise, Seq, SeriesId, TaskId, Timestamp};

use super::{SeriesSettings, closed_task_hint};
use crate::error::{ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, ToolField};
use crate::task::TASK_ID_FIELD;
use crate::tool::{ToolDefinition, ToolEffect};

/// Default number of failed iterations in a row before a person is asked.
const DEFAULT_FAILURE_LIMIT: u32 = 3;

pub(crate) const START: ToolDefinition = ToolDefinition {
    name: "iteration_start",
    description: "Start a series of iterations on a task, which becomes active. Then work, call iteration_validate, \
                  and as it answers iteration_next or iteration_complete.",
    example: r#"{"taskId": "T3", "maxIterations": 5, "completionPromises": ["COMPLETE", "BLOCKED"]}"#,
    effect: ToolEffect::Writes,
    fields: &[
        TASK_ID_FIELD,
        ToolField::required("maxIterations", "", FieldKind::Whole(1, EngineLimits::SERIES_ITERATIONS as u64)),
        ToolField::required("completionPromises", "", FieldKind::List(&FieldKind::Promise, 1, Promise::ALL.len())),
        ToolField::optional("validationRules", "checked by iteration_validate", FieldKind::Own(rules_schema)),
        ToolField::optional(
            "circuitBreakerThreshold",
            "failures in a row until it escalates; default 3",
            FieldKind::Whole(1, EngineLimits::BREAKER_THRESHOLD as u64),
        ),
        ToolField::optional("strict", "COMPLETE needs every rule to pass; default false", FieldKind::Flag),
    ],
};

fn rules_schema() -> Value {
    json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ValidationRuleKind::NAMES},
            "name": {"type": "string"},
            "config": {
                "type": "object",
                "description": "command{command, expectedExitCode=0, timeout=60000 ms}; content_pattern{pattern, \
                                target: agent_output|task_notes, mustMatch=true}; coverage{minCoverage, \
                                format: lcov|json|cobertura, reportPath}; file_existence{paths, allMustExist=true}; \
                                custom{validatorId}",
            },
        },
        "required": ["type", "name", "config"],
    }})
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StartSeriesInput {
    task_id: TaskId,
    max_iterations: u32,
    completion_promises: Vec<String>,
    validation_rules: Option<Value>,
    circuit_breaker_threshold: Option<u32>,
    strict: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartSeriesOutput {
    iteration_id: SeriesId,
    task_id: TaskId,
    iteration_number: u32,
    max_iterations: u32,
    config: SeriesSettings,
    created_at: Timestamp,
}

pub(crate) fn start_series<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: StartSeriesInput,
) -> Result<StartSeriesOutput, ToolError> {
    let new = NewIterationSeries {
        max_iterations: given.max_iterations,
        promises: given
            .completion_promises
            .iter()
            .map(|text| super::complete::parse_promise(text))
            .collect::<Result<_, _>>()?,
        rules: parse_permitted_rules(call, &given.validation_rules.unwrap_or_default())?,
        breaker: given.circuit_breaker_threshold.unwrap_or(DEFAULT_FAILURE_LIMIT),
        strict: given.strict.unwrap_or(false),
    };
    let task = call.load_task(given.task_id)?;
    if let Some(hint) = closed_task_hint(&task) {
        let message = format!("no series can be started on {}: it is {}", task.id, task.state);
        return Err(ToolError::new(ToolErrorCode::Refused, message).with_hint(hint));
    }
    let records = call.execute_command(&Command::StartSeries { task: given.task_id, new })?;
    let started = records.into_iter().find_map(|record| match record.envelope.event {
        Event::SeriesStarted(started) => Some((record.seq, record.envelope.timestamp, started)),
        _ => None,
    });
    let (Seq(at), created_at, started) = started.expect("a series starts with its event");
    Ok(StartSeriesOutput {
        iteration_id: SeriesId(at),
        task_id: given.task_id,
        iteration_number: 1,
        max_iterations: started.max_iterations,
        config: started.into(),
        created_at,
    })
}

/// Parses the rules, and checks the permission of those that run programs.
fn parse_permitted_rules<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: &Value,
) -> Result<Vec<ValidationRule>, ToolError> {
    let rules =
        ValidationRule::read_rule_list("validationRules", given, call.host.project_directory()).map_err(|wrong| {
            ToolError::new(ToolErrorCode::Invalid, format!("{}: {}; {}", wrong.path, wrong.cause, wrong.remedy))
        })?;
    if !rules.iter().any(ValidationRule::runs_program) {
        return Ok(rules);
    }
    let workshop = call.host.validator_env()?;
    for (place, rule) in rules.iter().enumerate() {
        workshop.permission.permitted_program(rule).map_err(|refused| {
            let message = format!("validationRules[{place}]: {refused}");
            ToolError::new(refused.code, message).with_hint(refused.remedy.clone())
        })?;
    }
    Ok(rules)
}
