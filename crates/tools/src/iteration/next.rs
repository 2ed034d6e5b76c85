//! `iteration_next`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Event, SeriesId};

use super::{Config, SERIES, find};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::tool::{Effect, Tool};

pub(crate) const NEXT: Tool = Tool {
    name: "iteration_next",
    description: "Go on to the next iteration of a series.",
    example: r#"{"iterationId": "IT-12"}"#,
    effect: Effect::Writes,
    fields: &[SERIES],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Next {
    iteration_id: SeriesId,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    iteration_id: SeriesId,
    iteration_number: u32,
    remaining_iterations: u32,
    config: Config,
}

pub(crate) fn next<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Next) -> Result<Answer, ToolError> {
    let live = find(call.ground.store(), given.iteration_id)?;
    let records = call.execute(&Command::AdvanceSeries { task: live.task.id, series: live.series.id })?;
    let number = records.iter().find_map(|record| match &record.envelope.event {
        Event::SeriesAdvanced(advanced) => Some(advanced.iteration),
        _ => None,
    });
    let iteration_number = number.expect("the next iteration is an event");
    Ok(Answer {
        iteration_id: live.series.id,
        iteration_number,
        remaining_iterations: live.series.max_iterations.saturating_sub(iteration_number),
        config: live.started.into(),
    })
}
