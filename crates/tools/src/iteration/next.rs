//! `iteration_next`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Event, SeriesId};

use super::{SERIES_FIELD, SeriesSettings, find_open_series};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const NEXT: ToolDefinition = ToolDefinition {
    name: "iteration_next",
    description: "Start the next iteration of a series.",
    example: r#"{"iterationId": "IT-12"}"#,
    effect: ToolEffect::Writes,
    fields: &[SERIES_FIELD],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NextIterationInput {
    iteration_id: SeriesId,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextIterationOutput {
    iteration_id: SeriesId,
    iteration_number: u32,
    remaining_iterations: u32,
    config: SeriesSettings,
}

pub(crate) fn advance_series<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: NextIterationInput,
) -> Result<NextIterationOutput, ToolError> {
    let live = find_open_series(call.host.store(), given.iteration_id)?;
    let records = call.execute_command(&Command::AdvanceSeries { task: live.task.id, series: live.series.id })?;
    let number = records.iter().find_map(|record| match &record.envelope.event {
        Event::SeriesAdvanced(advanced) => Some(advanced.iteration),
        _ => None,
    });
    let iteration_number = number.expect("the next iteration is an event");
    Ok(NextIterationOutput {
        iteration_id: live.series.id,
        iteration_number,
        remaining_iterations: live.series.max_iterations.saturating_sub(iteration_number),
        config: live.started.into(),
    })
}
