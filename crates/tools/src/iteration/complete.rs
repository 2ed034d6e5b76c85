//! `iteration_complete`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Event, Promise, SeriesId, TaskId, Timestamp};

use super::{OpenSeries, SERIES_FIELD, find_open_series};
use crate::error::{CallerHint, ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const COMPLETE: ToolDefinition = ToolDefinition {
    name: "iteration_complete",
    description: "End a series with one of its promises: COMPLETE completes the task, BLOCKED and ESCALATE block it \
                  for a person.",
    example: r#"{"iterationId": "IT-12", "completionPromise": "COMPLETE"}"#,
    effect: ToolEffect::Writes,
    fields: &[SERIES_FIELD, ToolField::required("completionPromise", "", FieldKind::Promise)],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CompleteSeriesInput {
    iteration_id: SeriesId,
    completion_promise: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompleteSeriesOutput {
    task_id: TaskId,
    completed_at: Timestamp,
    total_iterations: u32,
    completion_promise: Promise,
    /// Hint for a call inside a turn: the gates have to judge the work first.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
}

/// Parses a promise, as a word or as a tag.
pub(crate) fn parse_promise(text: &str) -> Result<Promise, ToolError> {
    text.parse().map_err(|error: String| ToolError::new(ToolErrorCode::Invalid, error))
}

pub(crate) fn complete_series<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: CompleteSeriesInput,
) -> Result<CompleteSeriesOutput, ToolError> {
    let promise = parse_promise(&given.completion_promise)?;
    let live = find_open_series(call.host.store(), given.iteration_id)?;
    let (task, series) = (live.task.id, live.series.id);
    if !live.series.completion_promises.contains(&promise) {
        return Err(unlisted_promise_error(call, &live, promise)?);
    }
    let command = Command::CompleteSeries { task, series, promise };
    let records = match promise {
        Promise::Complete => call.execute_command(&command)?,
        Promise::Blocked | Promise::Escalate => call.block_task(task, &command)?,
    };
    let claimed = records.iter().any(|record| matches!(record.envelope.event, Event::CompletionClaimed(_)));
    Ok(CompleteSeriesOutput {
        task_id: task,
        completed_at: records.first().expect("the end of a series is an event").envelope.timestamp,
        total_iterations: live.series.iteration,
        completion_promise: promise,
        next: claimed.then_some("recorded as a claim: end your turn, and the gates judge it"),
    })
}

/// Returns an error with a hint for a promise that the series does not accept.
fn unlisted_promise_error<G: ToolHost>(
    call: &ToolCall<'_, G>,
    live: &OpenSeries,
    promise: Promise,
) -> Result<ToolError, ToolError> {
    let listed: Vec<&str> = live.series.completion_promises.iter().map(|promise| promise.name()).collect();
    let listed = listed.join(", ");
    let message = format!("{} was not started with {}, but with {listed}", live.series.id, promise.name());
    let error = ToolError::new(ToolErrorCode::Refused, message);
    Ok(match promise {
        Promise::Complete => error
            .with_hint(format!("end it with {listed}"))
            .with_hint(CallerHint::tool("iteration_start", "starts one with COMPLETE")),
        Promise::Blocked | Promise::Escalate => error.with_hint(call.stuck_task_hint(&live.task)?),
    })
}
