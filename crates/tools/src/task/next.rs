//! `task_next`: what can be worked on now.

use serde::Deserialize;
use windlass_engine::{Refusal, Task};

use crate::catalogue::{Effect, Tool};
use crate::desk::{Call, Ground};
use crate::error::ToolError;

pub(crate) const NEXT: Tool = Tool {
    name: "task_next",
    description: "The most urgent task that is ready. Does not claim it.",
    twin: "windlass task next",
    effect: Effect::ReadOnly,
    fields: &[],
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Next {}

pub(crate) fn next<G: Ground>(call: &mut Call<'_, G>, _: Next) -> Result<Task, ToolError> {
    let mut ready = call.ground.store().snapshot()?.ready(1)?;
    ready.pop().ok_or_else(|| Refusal::NothingReady.into())
}
