//! Tools for a series of iterations that an agent runs by itself.

pub(crate) mod complete;
pub(crate) mod next;
pub(crate) mod start;
pub(crate) mod validate;

use serde::Serialize;
use windlass_engine::validation::ValidationRule;
use windlass_engine::{Event, IterationSeries, Promise, Refusal, Seq, SeriesId, StateView, Task, TaskState, payload};
use windlass_store::SqliteStore;

use crate::error::{CallerHint, ToolError, ToolErrorCode};
use crate::schema::{FieldKind, IdKind, ToolField};

pub(crate) use complete::{COMPLETE, complete_series};
pub(crate) use next::{NEXT, advance_series};
pub(crate) use start::{START, start_series};
pub(crate) use validate::{VALIDATE, validate_iteration};

/// ID of a series.
pub(crate) const SERIES_FIELD: ToolField = ToolField::required("iterationId", "", FieldKind::Id(IdKind::Series));

/// An open series.
pub(crate) struct OpenSeries {
    pub task: Task,
    pub series: IterationSeries,
    pub started: payload::SeriesStarted,
}

/// Returns the open series of an ID.
pub(crate) fn find_open_series(store: &SqliteStore, id: SeriesId) -> Result<OpenSeries, ToolError> {
    let unknown = || {
        ToolError::new(ToolErrorCode::NotFound, format!("there is no series of iterations {id}"))
            .with_hint(CallerHint::tool("iteration_start", "starts one and returns its id"))
            .with_hint(CallerHint::tool("task_get", "shows the open one"))
    };
    let snapshot = store.begin_snapshot()?;
    let envelope = store.read_event(Seq(id.0))?.ok_or_else(unknown)?.envelope;
    let (Event::SeriesStarted(started), Some(task)) = (envelope.event, envelope.node.task_id()) else {
        return Err(unknown());
    };
    let task = snapshot.find_task(task)?.ok_or(Refusal::UnknownTask(task))?;
    match task.evaluation.find_series(id).cloned() {
        Some(series) => Ok(OpenSeries { task, series, started }),
        None => Err(closed_series_error(id, &task)),
    }
}

/// Explains why a series is not open, with a hint.
fn closed_series_error(id: SeriesId, task: &Task) -> ToolError {
    let is_over = |why: String| ToolError::new(ToolErrorCode::Refused, format!("{id} is over; {why}"));
    if let Some(other) = &task.evaluation.series {
        return is_over(format!("{} continues in {}", task.id, other.id))
            .with_hint(format!("continue with {}", other.id));
    }
    let error = is_over(format!("{} is {}", task.id, task.state));
    match closed_task_hint(task) {
        Some(hint) => error.with_hint(hint),
        None => error.with_hint(CallerHint::tool("iteration_start", "starts another series")),
    }
}

/// Returns a hint for a task that is not open for work.
pub(crate) fn closed_task_hint(task: &Task) -> Option<CallerHint> {
    Some(match task.state {
        TaskState::Completed => CallerHint::tool("task_create", "makes another task: this one is completed"),
        TaskState::Failed => CallerHint::command(format!("windlass task reopen {}", task.id), "reopens it"),
        TaskState::Deleted => CallerHint::tool("task_list", "shows the tasks"),
        TaskState::Blocked => {
            CallerHint::tool("task_update", "with state ready unblocks it, once a person has answered")
        }
        _ => return None,
    })
}

/// Settings of a series.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SeriesSettings {
    max_iterations: u32,
    completion_promises: Vec<Promise>,
    validation_rules: Vec<ValidationRule>,
    circuit_breaker_threshold: u32,
    strict: bool,
}

impl From<payload::SeriesStarted> for SeriesSettings {
    fn from(started: payload::SeriesStarted) -> Self {
        Self {
            max_iterations: started.max_iterations,
            completion_promises: started.completion_promises,
            validation_rules: started.validation_rules,
            circuit_breaker_threshold: started.circuit_breaker_threshold,
            strict: started.strict,
        }
    }
}
