//! `iteration_complete`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Event, Promise, SeriesId, TaskId, Timestamp};

use super::{Live, SERIES, find};
use crate::error::{CallerHint, Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Kind};
use crate::tool::{Effect, Tool};

pub(crate) const COMPLETE: Tool = Tool {
    name: "iteration_complete",
    description: "End a series with one of its promises: COMPLETE completes the task, BLOCKED and ESCALATE block it \
                  for a person.",
    example: r#"{"iterationId": "IT-12", "completionPromise": "COMPLETE"}"#,
    effect: Effect::Writes,
    fields: &[SERIES, Field::required("completionPromise", "", Kind::Promise)],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Complete {
    iteration_id: SeriesId,
    completion_promise: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    task_id: TaskId,
    completed_at: Timestamp,
    total_iterations: u32,
    completion_promise: Promise,
    /// Hint for a call inside a turn: the gates have to judge the work first.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
}

/// Parses a promise, as a word or as a tag.
pub(crate) fn promise(text: &str) -> Result<Promise, ToolError> {
    text.parse().map_err(|error: String| ToolError::new(Code::Invalid, error))
}

pub(crate) fn complete<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Complete) -> Result<Answer, ToolError> {
    let promise = promise(&given.completion_promise)?;
    let live = find(call.ground.store(), given.iteration_id)?;
    let (task, series) = (live.task.id, live.series.id);
    if !live.series.completion_promises.contains(&promise) {
        return Err(unlisted(call, &live, promise)?);
    }
    let command = Command::CompleteSeries { task, series, promise };
    let records = match promise {
        Promise::Complete => call.execute(&command)?,
        Promise::Blocked | Promise::Escalate => call.block(task, &command)?,
    };
    let claimed = records.iter().any(|record| matches!(record.envelope.event, Event::CompletionClaimed(_)));
    Ok(Answer {
        task_id: task,
        completed_at: records.first().expect("the end of a series is an event").envelope.timestamp,
        total_iterations: live.series.iteration,
        completion_promise: promise,
        next: claimed.then_some("recorded as a claim: end your turn, and the gates judge it"),
    })
}

/// Returns an error with a hint for a promise that the series does not accept.
fn unlisted<G: ToolHost>(call: &ToolCall<'_, G>, live: &Live, promise: Promise) -> Result<ToolError, ToolError> {
    let listed: Vec<&str> = live.series.completion_promises.iter().map(|promise| promise.name()).collect();
    let listed = listed.join(", ");
    let message = format!("{} was not started with {}, but with {listed}", live.series.id, promise.name());
    let error = ToolError::new(Code::Refused, message);
    Ok(match promise {
        Promise::Complete => error
            .hint(format!("end it with {listed}"))
            .hint(CallerHint::tool("iteration_start", "begins one with COMPLETE")),
        Promise::Blocked | Promise::Escalate => error.hint(call.stuck(&live.task)?),
    })
}
