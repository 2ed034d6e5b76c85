//! `iteration_next`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, SeriesId};

use super::{Config, SERIES, find};
use crate::catalogue::{Effect, Tool};
use crate::desk::{Call, Ground};
use crate::error::ToolError;

pub(crate) const NEXT: Tool = Tool {
    name: "iteration_next",
    description: "Go on to the next iteration of a series.",
    twin: "windlass iteration next",
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

pub(crate) fn next<G: Ground>(call: &mut Call<'_, G>, given: Next) -> Result<Answer, ToolError> {
    let live = find(call.ground.store(), given.iteration_id)?;
    call.execute(&Command::AdvanceSeries { task: live.task.id, series: live.series.id })?;
    let now = find(call.ground.store(), given.iteration_id)?;
    Ok(Answer {
        iteration_id: now.series.id,
        iteration_number: now.series.iteration,
        remaining_iterations: now.series.remaining(),
        config: now.started.into(),
    })
}
