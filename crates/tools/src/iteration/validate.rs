//! `iteration_validate`: the state of the present iteration, and the next step.

use serde::{Deserialize, Serialize};
use windlass_engine::validation::RuleResult;
use windlass_engine::{Asked, Command, Event, Promise, RuleAction, SeenPromise, SeriesId, Signal, payload};

use super::{SERIES, find};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::judging::{FILES, Matter, OUTPUT, judge, unheard};
use crate::tool::{Effect, Tool};

pub(crate) const VALIDATE: Tool = Tool {
    name: "iteration_validate",
    description: "After the work of an iteration: run its rules, ask its hooks. CONTINUE: heed feedback, iteration_next. \
                  COMPLETE: iteration_complete. BLOCKED or ESCALATE: task_update to blocked, for a person.",
    example: r#"{"iterationId": "IT-12", "agentOutput": "<promise>COMPLETE</promise>"}"#,
    effect: Effect::Writes,
    fields: &[SERIES, OUTPUT, FILES],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Validate {
    iteration_id: SeriesId,
    agent_output: Option<String>,
    #[serde(default)]
    files_modified: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    iteration_number: u32,
    validation_passed: bool,
    completion_signal: Signal,
    #[serde(skip_serializing_if = "Option::is_none")]
    detected_promise: Option<Promise>,
    feedback: Vec<String>,
    results: Vec<RuleResult>,
    completion_promises_detected: Vec<SeenPromise>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_decision: Option<Decision>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    checkpoint_created: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    hook_id: String,
    action: RuleAction,
    reason: String,
    next_prompt: Option<String>,
}

pub(crate) fn validate<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Validate) -> Result<Answer, ToolError> {
    let live = find(call.ground.store(), given.iteration_id)?;
    let unheard = unheard(&live, given.agent_output.as_deref());
    let matter = Matter {
        agent_output: given.agent_output,
        files_modified: given.files_modified,
        draft_content: None,
        draft_type: None,
    };
    let (judging, said) = judge(call, &live, Asked::Validation, matter)?;
    let decision = judging.decision.is_some().then(|| Decision {
        hook_id: said.hook.map_or_else(|| "default".to_owned(), |hook| hook.to_string()),
        action: said.ruling.action,
        reason: said.ruling.reason,
        next_prompt: said.ruling.next_prompt,
    });
    let (task, series) = (live.task.id, live.series.id);
    let records = call.execute(&Command::JudgeSeries { task, series, judging: Box::new(judging) })?;
    let checkpoint_created = records.iter().any(|record| matches!(record.envelope.event, Event::CheckpointCreated(_)));
    let finished = records.into_iter().find_map(|record| match record.envelope.event {
        Event::ValidationFinished(finished) => Some((record.envelope.timestamp, finished)),
        _ => None,
    });
    let (at, finished) = finished.expect("an iteration that was judged has its event");
    let payload::ValidationFinished { iteration, passed, signal, results, promises, mut feedback, .. } = finished;
    feedback.extend(unheard);
    Ok(Answer {
        iteration_number: iteration,
        validation_passed: passed,
        completion_signal: signal,
        detected_promise: promises.first().copied(),
        feedback,
        results,
        completion_promises_detected: promises.into_iter().map(|promise| SeenPromise::at(promise, at)).collect(),
        hook_decision: decision,
        checkpoint_created,
    })
}
