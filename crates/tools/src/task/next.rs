//! `task_next`: what can be worked on now.

use serde::{Deserialize, Serialize};
use windlass_engine::Task;

use crate::catalogue::{Effect, Tool};
use crate::desk::{Call, Ground};
use crate::error::ToolError;

pub(crate) const NEXT: Tool = Tool {
    name: "task_next",
    description: "The most urgent task that is ready; its id is null where none is. Does not claim it.",
    twin: "windlass task next",
    effect: Effect::ReadOnly,
    fields: &[],
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Next {}

/// That nothing is ready is an answer like any other: an agent that works through tasks gets it in the end.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Found {
    Task(Box<Task>),
    Nothing { id: (), hint: &'static str },
}

pub(crate) fn next<G: Ground>(call: &mut Call<'_, G>, _: Next) -> Result<Found, ToolError> {
    let mut ready = call.ground.store().snapshot()?.ready(1)?;
    Ok(match ready.pop() {
        Some(task) => Found::Task(Box::new(task)),
        None => Found::Nothing { id: (), hint: "nothing is ready; `task_list` shows what waits" },
    })
}
