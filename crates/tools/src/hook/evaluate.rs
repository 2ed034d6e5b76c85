//! `hook_evaluate`: runs the hooks of a task for its present iteration.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{Asked, Command, Event, Limits, RuleAction, SeriesId, TaskId};

use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::iteration::{SERIES, find};
use crate::judging::{FILES, Matter, OUTPUT, judge};
use crate::shape::{Field, Kind};
use crate::tool::{Effect, Tool};

pub(crate) const EVALUATE: Tool = Tool {
    name: "hook_evaluate",
    description: "Ask only the stop hooks about the present iteration. iteration_validate does it too.",
    example: r#"{"iterationId": "IT-12", "agentOutput": "<promise>COMPLETE</promise>"}"#,
    effect: Effect::Writes,
    fields: &[
        SERIES,
        OUTPUT,
        FILES,
        Field::optional("draftContent", "", Kind::Text(Limits::DRAFT_TAKEN)),
        Field::optional("draftType", "", Kind::Words(Limits::LABEL)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Evaluate {
    iteration_id: SeriesId,
    agent_output: Option<String>,
    #[serde(default)]
    files_modified: Vec<String>,
    draft_content: Option<String>,
    draft_type: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// `default` if no hook is registered.
    hook_id: String,
    task_id: TaskId,
    iteration: u32,
    action: RuleAction,
    reason: String,
    next_prompt: Option<String>,
    checkpoint_created: bool,
    metadata: Map<String, Value>,
}

pub(crate) fn evaluate<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Evaluate) -> Result<Answer, ToolError> {
    let live = find(call.ground.store(), given.iteration_id)?;
    let matter = Matter {
        agent_output: given.agent_output,
        files_modified: given.files_modified,
        draft_content: given.draft_content,
        draft_type: given.draft_type,
    };
    let (judging, said) = judge(call, &live, Asked::Hooks, matter)?;
    let (task, series, iteration) = (live.task.id, live.series.id, judging.iteration);
    let records = call.execute(&Command::JudgeSeries { task, series, judging: Box::new(judging) })?;
    let made = |record: &windlass_engine::Record| matches!(record.envelope.event, Event::CheckpointCreated(_));
    Ok(Answer {
        hook_id: said.hook.map_or_else(|| "default".to_owned(), |hook| hook.to_string()),
        task_id: task,
        iteration,
        action: said.ruling.action,
        reason: said.ruling.reason,
        next_prompt: said.ruling.next_prompt,
        checkpoint_created: records.iter().any(made),
        metadata: said.ruling.metadata,
    })
}
