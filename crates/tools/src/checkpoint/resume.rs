//! `checkpoint_resume`: the saved content, and how to go on from there.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::{CheckpointId, IterationSeries, SeriesId, SeriesSignal, Task, TaskId, TaskState, Timestamp};

use super::load_checkpoint;
use crate::error::{CallerHint, ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::iteration::{self, SeriesSettings};
use crate::schema::{FieldKind, IdKind, ToolField};
use crate::task::{TASK_ID_FIELD, first_line};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const RESUME: ToolDefinition = ToolDefinition {
    name: "checkpoint_resume",
    description: "Show what a checkpoint saved, the state of its iterations, and the next step.",
    example: r#"{"taskId": "T3"}"#,
    effect: ToolEffect::ReadOnly,
    fields: &[
        TASK_ID_FIELD,
        ToolField::optional("checkpointId", "default the newest", FieldKind::Id(IdKind::Checkpoint)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResumeCheckpointInput {
    task_id: TaskId,
    checkpoint_id: Option<CheckpointId>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeCheckpointOutput {
    id: CheckpointId,
    task_id: TaskId,
    sequence: u32,
    created_at: Timestamp,
    execution_phase: Option<String>,
    execution_step: Option<u64>,
    agent_context: Value,
    draft_content: Option<String>,
    draft_type: Option<String>,
    /// Size of the draft before it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_cut_from: Option<u64>,
    /// The open series.
    iteration: Option<SeriesProgress>,
    hook_count: usize,
    instructions: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SeriesProgress {
    iteration_id: SeriesId,
    iteration_number: u32,
    remaining_iterations: u32,
    config: SeriesSettings,
}

pub(crate) fn resume_checkpoint<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: ResumeCheckpointInput,
) -> Result<ResumeCheckpointOutput, ToolError> {
    let task = call.load_task(given.task_id)?;
    let now = call.host.now();
    let mut kept = task.evaluation.live_checkpoints_at(now);
    let found = match given.checkpoint_id {
        Some(id) => kept.find(|kept| kept.id == id),
        None => kept.next_back(),
    };
    let store = call.host.store();
    let held = found.map(|kept| load_checkpoint(store, kept)).transpose()?.flatten();
    let Some((kept, (created_at, made))) = found.zip(held) else {
        return Err(missing_checkpoint(&task, given.checkpoint_id));
    };
    let iteration = match &task.evaluation.series {
        None => None,
        Some(series) => {
            let live = iteration::find_open_series(store, series.id)?;
            Some(SeriesProgress {
                iteration_id: series.id,
                iteration_number: series.iteration,
                remaining_iterations: series.remaining_iterations(),
                config: live.started.into(),
            })
        }
    };
    let hook_count = task.evaluation.hooks.len();
    let stuck = call.stuck_task_hint(&task)?;
    Ok(ResumeCheckpointOutput {
        id: kept.id,
        task_id: task.id,
        sequence: made.sequence,
        created_at,
        instructions: resume_instructions(&task, &made, &stuck.to_string()),
        execution_phase: made.execution_phase,
        execution_step: made.execution_step,
        agent_context: made.agent_context,
        draft_content: made.draft_content,
        draft_type: made.draft_type,
        draft_cut_from: made.draft_bytes,
        iteration,
        hook_count,
    })
}

/// Reports that there is no checkpoint to resume from.
fn missing_checkpoint(task: &Task, id: Option<CheckpointId>) -> ToolError {
    let (message, hints) = match id {
        Some(id) => (
            format!("{} has no checkpoint {id} that is kept", task.id),
            vec![CallerHint::tool("checkpoint_list", "shows those to resume from")],
        ),
        None => (
            format!("{} has no checkpoint to resume from", task.id),
            vec![
                CallerHint::tool("checkpoint_create", "makes one"),
                CallerHint::tool("task_get", "shows the state of the task"),
            ],
        ),
    };
    ToolError { hints, ..ToolError::new(ToolErrorCode::NotFound, message) }
}

/// Returns instructions for the agent.
fn resume_instructions(task: &Task, made: &windlass_engine::payload::CheckpointCreated, stuck: &str) -> String {
    let head = match task.state {
        state if is_closed_state(state) => "Do no more work on",
        TaskState::Blocked => "Do not continue yet with",
        _ => "Continue with",
    };
    let mut lines = vec![format!("{head} {} ({}): {}", task.id, task.state, first_line(&task.goal))];
    match (&made.execution_phase, made.execution_step) {
        (Some(phase), Some(step)) => lines.push(format!("You were in phase {phase}, at step {step}.")),
        (Some(phase), None) => lines.push(format!("You were in phase {phase}.")),
        (None, Some(step)) => lines.push(format!("You were at step {step}.")),
        (None, None) => {}
    }
    if made.draft_content.is_some() {
        let cut = made.draft_bytes.map(|bytes| format!(" (cut: it had {bytes} bytes)")).unwrap_or_default();
        lines.push(format!("draftContent has your draft{cut}."));
    }
    lines.push(next_instruction(task, stuck));
    lines.join("\n")
}

/// Returns the next step: first by the state of the task, then by the signal of its series.
fn next_instruction(task: &Task, stuck: &str) -> String {
    match (task.state, &task.evaluation.series) {
        (state, _) if is_closed_state(state) => "There is nothing left to do.".to_owned(),
        (TaskState::Blocked, _) => {
            "A person has to answer first; then `task_update` with state ready unblocks it.".to_owned()
        }
        (_, Some(series)) => series_instruction(series, stuck),
        (_, None) => "No series of iterations is open: iteration_start starts one.".to_owned(),
    }
}

fn is_closed_state(state: TaskState) -> bool {
    matches!(state, TaskState::Completed | TaskState::Failed | TaskState::Deleted)
}

fn series_instruction(series: &IterationSeries, stuck: &str) -> String {
    let IterationSeries { id, iteration, max_iterations, .. } = series;
    let at = format!("{id} is at iteration {iteration} of {max_iterations}");
    match series.judged.map(|judged| judged.signal) {
        None => format!("{at}: do its work, then call iteration_validate."),
        Some(SeriesSignal::Complete) => format!("{at}, judged COMPLETE: call iteration_complete."),
        // No iteration follows the last one.
        Some(SeriesSignal::Continue) if series.remaining_iterations() == 0 => format!("{at}, its last: {stuck}."),
        Some(SeriesSignal::Continue) => format!("{at}, judged CONTINUE: call iteration_next."),
        Some(SeriesSignal::Blocked) => format!("{at}, judged BLOCKED: {stuck}."),
        Some(SeriesSignal::Escalate) => format!("{at}, judged ESCALATE: {stuck}."),
    }
}
