//! `iteration_validate`: the state of the present iteration, and the next step.

use serde::{Deserialize, Serialize};
use windlass_engine::validation::RuleResult;
use windlass_engine::{
    Command, DetectedPromise, EvaluationPurpose, Event, Promise, RuleAction, SeriesId, SeriesSignal, payload,
};

use super::{SERIES_FIELD, find_open_series};
use crate::error::ToolError;
use crate::evaluation::{
    AGENT_OUTPUT_FIELD, EvaluationSubject, FILES_FIELD, evaluate_iteration, explain_uncounted_promise,
};
use crate::host::{ToolCall, ToolHost};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const VALIDATE: ToolDefinition = ToolDefinition {
    name: "iteration_validate",
    description: "Judge the work of an iteration: run its rules, ask its hooks. CONTINUE: follow the feedback, then iteration_next. \
                  COMPLETE: iteration_complete. BLOCKED or ESCALATE: task_update to blocked, for a person.",
    example: r#"{"iterationId": "IT-12", "agentOutput": "<promise>COMPLETE</promise>"}"#,
    effect: ToolEffect::Writes,
    fields: &[SERIES_FIELD, AGENT_OUTPUT_FIELD, FILES_FIELD],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ValidateIterationInput {
    iteration_id: SeriesId,
    agent_output: Option<String>,
    #[serde(default)]
    files_modified: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidateIterationOutput {
    iteration_number: u32,
    validation_passed: bool,
    completion_signal: SeriesSignal,
    #[serde(skip_serializing_if = "Option::is_none")]
    detected_promise: Option<Promise>,
    feedback: Vec<String>,
    results: Vec<RuleResult>,
    completion_promises_detected: Vec<DetectedPromise>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_decision: Option<ValidationDecision>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    checkpoint_created: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ValidationDecision {
    hook_id: String,
    action: RuleAction,
    reason: String,
    next_prompt: Option<String>,
}

pub(crate) fn validate_iteration<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: ValidateIterationInput,
) -> Result<ValidateIterationOutput, ToolError> {
    let live = find_open_series(call.host.store(), given.iteration_id)?;
    let unheard = explain_uncounted_promise(&live, given.agent_output.as_deref());
    let matter = EvaluationSubject {
        agent_output: given.agent_output,
        files_modified: given.files_modified,
        draft_content: None,
        draft_type: None,
    };
    let (judging, said) = evaluate_iteration(call, &live, EvaluationPurpose::Validation, matter)?;
    let decision = judging.decision.is_some().then(|| ValidationDecision {
        hook_id: said.hook.map_or_else(|| "default".to_owned(), |hook| hook.to_string()),
        action: said.ruling.action,
        reason: said.ruling.reason,
        next_prompt: said.ruling.next_prompt,
    });
    let (task, series) = (live.task.id, live.series.id);
    let records = call.execute_command(&Command::JudgeSeries { task, series, judging: Box::new(judging) })?;
    let checkpoint_created = records.iter().any(|record| matches!(record.envelope.event, Event::CheckpointCreated(_)));
    let finished = records.into_iter().find_map(|record| match record.envelope.event {
        Event::ValidationFinished(finished) => Some((record.envelope.timestamp, finished)),
        _ => None,
    });
    let (at, finished) = finished.expect("an iteration that was judged has its event");
    let payload::ValidationFinished { iteration, passed, signal, results, promises, mut feedback, .. } = finished;
    feedback.extend(unheard);
    Ok(ValidateIterationOutput {
        iteration_number: iteration,
        validation_passed: passed,
        completion_signal: signal,
        detected_promise: promises.first().copied(),
        feedback,
        results,
        completion_promises_detected: promises
            .into_iter()
            .map(|promise| DetectedPromise::from_promise(promise, at))
            .collect(),
        hook_decision: decision,
        checkpoint_created,
    })
}
