//! `iteration_start`

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_engine::validation::{RuleKind, ValidationRule};
use windlass_engine::{Command, Event, Limits, NewSeries, Promise, Seq, SeriesId, TaskId, Timestamp};

use super::{Config, way_out};
use crate::error::{Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Kind};
use crate::task::TASK;
use crate::tool::{Effect, Tool};

/// Default number of failed iterations in a row before a person is asked.
const BREAKER: u32 = 3;

pub(crate) const START: Tool = Tool {
    name: "iteration_start",
    description: "Begin a series of iterations on a task, which becomes active. Then: work, iteration_validate, and as \
                  it answers iteration_next or iteration_complete.",
    example: r#"{"taskId": "T3", "maxIterations": 5, "completionPromises": ["COMPLETE", "BLOCKED"]}"#,
    effect: Effect::Writes,
    fields: &[
        TASK,
        Field::required("maxIterations", "", Kind::Whole(1, Limits::SERIES as u64)),
        Field::required("completionPromises", "", Kind::List(&Kind::Promise, 1, Promise::ALL.len())),
        Field::optional("validationRules", "checked by iteration_validate", Kind::Own(rules_schema)),
        Field::optional(
            "circuitBreakerThreshold",
            "failures in a row until it escalates; default 3",
            Kind::Whole(1, Limits::BREAKER as u64),
        ),
        Field::optional("strict", "COMPLETE needs every rule to pass; default false", Kind::Flag),
    ],
};

fn rules_schema() -> Value {
    json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": RuleKind::NAMES},
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
pub(crate) struct Start {
    task_id: TaskId,
    max_iterations: u32,
    completion_promises: Vec<String>,
    validation_rules: Option<Value>,
    circuit_breaker_threshold: Option<u32>,
    strict: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    iteration_id: SeriesId,
    task_id: TaskId,
    iteration_number: u32,
    max_iterations: u32,
    config: Config,
    created_at: Timestamp,
}

pub(crate) fn start<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Start) -> Result<Answer, ToolError> {
    let new = NewSeries {
        max_iterations: given.max_iterations,
        promises: given
            .completion_promises
            .iter()
            .map(|text| super::complete::promise(text))
            .collect::<Result<_, _>>()?,
        rules: rules(call, &given.validation_rules.unwrap_or_default())?,
        breaker: given.circuit_breaker_threshold.unwrap_or(BREAKER),
        strict: given.strict.unwrap_or(false),
    };
    let task = call.task(given.task_id)?;
    if let Some(hint) = way_out(&task) {
        let message = format!("no series can be started on {}: it is {}", task.id, task.state);
        return Err(ToolError::new(Code::Refused, message).hint(hint));
    }
    let records = call.execute(&Command::StartSeries { task: given.task_id, new })?;
    let started = records.into_iter().find_map(|record| match record.envelope.event {
        Event::SeriesStarted(started) => Some((record.seq, record.envelope.timestamp, started)),
        _ => None,
    });
    let (Seq(at), created_at, started) = started.expect("a series starts with its event");
    Ok(Answer {
        iteration_id: SeriesId(at),
        task_id: given.task_id,
        iteration_number: 1,
        max_iterations: started.max_iterations,
        config: started.into(),
        created_at,
    })
}

/// Parses the rules, and checks the permission of those that run programs.
fn rules<G: ToolHost>(call: &mut ToolCall<'_, G>, given: &Value) -> Result<Vec<ValidationRule>, ToolError> {
    let rules = ValidationRule::read_all("validationRules", given, call.ground.directory())
        .map_err(|wrong| ToolError::new(Code::Invalid, format!("{}: {}; {}", wrong.path, wrong.cause, wrong.remedy)))?;
    if !rules.iter().any(ValidationRule::runs_a_program) {
        return Ok(rules);
    }
    let workshop = call.ground.workshop()?;
    for (place, rule) in rules.iter().enumerate() {
        workshop.permission.program(rule).map_err(|refused| {
            let message = format!("validationRules[{place}]: {refused}");
            ToolError::new(refused.code, message).hint(refused.remedy.clone())
        })?;
    }
    Ok(rules)
}
