//! Tools for a series of iterations that an agent runs by itself.

pub(crate) mod complete;
pub(crate) mod next;
pub(crate) mod start;
pub(crate) mod validate;

use serde::Serialize;
use windlass_engine::validation::ValidationRule;
use windlass_engine::{Event, Promise, Refusal, Seq, Series, SeriesId, State, Task, View, payload};
use windlass_store::Sqlite;

use crate::error::{CallerHint, Code, ToolError};
use crate::shape::{Field, Id, Kind};

pub(crate) use complete::{COMPLETE, complete};
pub(crate) use next::{NEXT, next};
pub(crate) use start::{START, start};
pub(crate) use validate::{VALIDATE, validate};

/// ID of a series.
pub(crate) const SERIES: Field = Field::required("iterationId", "", Kind::Id(Id::Series));

/// An open series.
pub(crate) struct Live {
    pub task: Task,
    pub series: Series,
    pub started: payload::SeriesStarted,
}

/// Returns the open series of an ID.
pub(crate) fn find(store: &Sqlite, id: SeriesId) -> Result<Live, ToolError> {
    let unknown = || {
        ToolError::new(Code::NotFound, format!("there is no series of iterations {id}"))
            .hint(CallerHint::tool("iteration_start", "begins one and tells its id"))
            .hint(CallerHint::tool("task_get", "tells the one that is under way"))
    };
    let snapshot = store.snapshot()?;
    let envelope = store.event(Seq(id.0))?.ok_or_else(unknown)?.envelope;
    let (Event::SeriesStarted(started), Some(task)) = (envelope.event, envelope.node.task()) else {
        return Err(unknown());
    };
    let task = snapshot.task(task)?.ok_or(Refusal::UnknownTask(task))?;
    match task.drive.series(id).cloned() {
        Some(series) => Ok(Live { task, series, started }),
        None => Err(over(id, &task)),
    }
}

/// Explains why a series is not open, with a hint.
fn over(id: SeriesId, task: &Task) -> ToolError {
    let is_over = |why: String| ToolError::new(Code::Refused, format!("{id} is over; {why}"));
    if let Some(other) = &task.drive.series {
        return is_over(format!("{} goes on in {}", task.id, other.id)).hint(format!("go on with {}", other.id));
    }
    let error = is_over(format!("{} is {}", task.id, task.state));
    match way_out(task) {
        Some(hint) => error.hint(hint),
        None => error.hint(CallerHint::tool("iteration_start", "begins another series")),
    }
}

/// Returns a hint for a task that is not open for work.
pub(crate) fn way_out(task: &Task) -> Option<CallerHint> {
    Some(match task.state {
        State::Completed => {
            CallerHint::tool("task_create", "makes another task: there is nothing left to do on this one")
        }
        State::Failed => CallerHint::command(format!("windlass task reopen {}", task.id), "takes it up again"),
        State::Deleted => CallerHint::tool("task_list", "shows the tasks"),
        State::Blocked => CallerHint::tool("task_update", "with state ready unblocks it, once a person has answered"),
        _ => return None,
    })
}

/// Settings of a series.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    max_iterations: u32,
    completion_promises: Vec<Promise>,
    validation_rules: Vec<ValidationRule>,
    circuit_breaker_threshold: u32,
    strict: bool,
}

impl From<payload::SeriesStarted> for Config {
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
