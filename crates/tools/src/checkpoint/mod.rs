//! The tools for checkpoints: saved places to resume from.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod resume;

use serde::Serialize;
use windlass_engine::{CheckpointId, CheckpointRef, CheckpointTrigger, Event, Seq, SeriesId, Timestamp, payload};
use windlass_store::SqliteStore;

use crate::error::ToolError;

pub(crate) use create::{CREATE, create_checkpoint};
pub(crate) use list::{LIST, list_checkpoints};
pub(crate) use resume::{RESUME, resume_checkpoint};

/// Summary of a checkpoint.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckpointSummary {
    id: CheckpointId,
    /// Number of the checkpoint among those of its task, from 1.
    sequence: u32,
    trigger: CheckpointTrigger,
    execution_phase: Option<String>,
    execution_step: Option<u64>,
    has_draft: bool,
    draft_type: Option<String>,
    /// Size of the draft before it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_cut_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration_id: Option<SeriesId>,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl CheckpointSummary {
    fn from_created(id: CheckpointId, created_at: Timestamp, made: &payload::CheckpointCreated) -> Self {
        Self {
            id,
            sequence: made.sequence,
            trigger: made.trigger,
            execution_phase: made.execution_phase.clone(),
            execution_step: made.execution_step,
            has_draft: made.draft_content.is_some(),
            draft_type: made.draft_type.clone(),
            draft_cut_from: made.draft_bytes,
            iteration_id: made.series,
            created_at,
            expires_at: made.expires_at,
        }
    }
}

/// Returns the content of a checkpoint, and its time.
fn load_checkpoint(
    store: &SqliteStore,
    kept: &CheckpointRef,
) -> Result<Option<(Timestamp, payload::CheckpointCreated)>, ToolError> {
    Ok(store.read_event(Seq(kept.id.0))?.and_then(|record| match record.envelope.event {
        Event::CheckpointCreated(made) => Some((record.envelope.timestamp, made)),
        _ => None,
    }))
}
