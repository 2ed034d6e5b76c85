//! `hook_evaluate`: runs the hooks of a task for its present iteration.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{Command, EngineLimits, EvaluationPurpose, Event, RuleAction, SeriesId, TaskId};

use crate::error::ToolError;
use crate::evaluation::{AGENT_OUTPUT_FIELD, EvaluationSubject, FILES_FIELD, evaluate_iteration};
use crate::host::{ToolCall, ToolHost};
use crate::iteration::{SERIES_FIELD, find_open_series};
use crate::schema::{FieldKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const EVALUATE: ToolDefinition = ToolDefinition {
    name: "hook_evaluate",
    description: "Ask only the stop hooks about the present iteration. iteration_validate does it too.",
    example: r#"{"iterationId": "IT-12", "agentOutput": "<promise>COMPLETE</promise>"}"#,
    effect: ToolEffect::Writes,
    fields: &[
        SERIES_FIELD,
        AGENT_OUTPUT_FIELD,
        FILES_FIELD,
        ToolField::optional("draftContent", "", FieldKind::Text(EngineLimits::ACCEPTED_DRAFT_BYTES)),
        ToolField::optional("draftType", "", FieldKind::Words(EngineLimits::LABEL_BYTES)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EvaluateHooksInput {
    iteration_id: SeriesId,
    agent_output: Option<String>,
    #[serde(default)]
    files_modified: Vec<String>,
    draft_content: Option<String>,
    draft_type: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvaluateHooksOutput {
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

pub(crate) fn evaluate_hooks<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: EvaluateHooksInput,
) -> Result<EvaluateHooksOutput, ToolError> {
    let live = find_open_series(call.host.store(), given.iteration_id)?;
    let matter = EvaluationSubject {
        agent_output: given.agent_output,
        files_modified: given.files_modified,
        draft_content: given.draft_content,
        draft_type: given.draft_type,
    };
    let (judging, said) = evaluate_iteration(call, &live, EvaluationPurpose::Hooks, matter)?;
    let (task, series, iteration) = (live.task.id, live.series.id, judging.iteration);
    let records = call.execute_command(&Command::JudgeSeries { task, series, judging: Box::new(judging) })?;
    let made = |record: &windlass_engine::EventRecord| matches!(record.envelope.event, Event::CheckpointCreated(_));
    Ok(EvaluateHooksOutput {
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
