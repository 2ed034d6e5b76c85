//! Hints for errors of the engine and of the store.

use windlass_engine::{Refusal, ViewError};
use windlass_store::{ExecuteError, StoreError};

use crate::error::{CallerHint, ToolError, ToolErrorCode};

impl From<ExecuteError> for ToolError {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Refused(refusal) => refusal.into(),
            ExecuteError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        Self::from_error(ToolErrorCode::Store, &error)
            .with_hint(CallerHint::command("windlass doctor", "says what is wrong"))
    }
}

impl From<ViewError> for ToolError {
    fn from(error: ViewError) -> Self {
        match error.0.downcast::<StoreError>() {
            Ok(error) => (*error).into(),
            Err(error) => Self::from_error(ToolErrorCode::Store, &*error),
        }
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::UnknownTask(_) | Refusal::UnknownEdge { .. } => ToolErrorCode::NotFound,
            Refusal::Invalid { .. } | Refusal::UnknownType { .. } => ToolErrorCode::Invalid,
            Refusal::Untrusted { .. } => ToolErrorCode::Trust,
            Refusal::View(_) | Refusal::Apply(_) => ToolErrorCode::Store,
            _ => ToolErrorCode::Refused,
        };
        let mut error = Self::from_error(code, &refusal);
        if let Refusal::Invalid { what, why } = &refusal {
            // A subject without a space is the name of a field.
            let place = if why.starts_with('[') { "" } else { ": " };
            error.message = if what.contains(' ') { error.message } else { format!("{what}{place}{why}") };
        }
        match refusal {
            Refusal::UnknownTask(_) => error.with_hint(CallerHint::tool("task_list", "shows the tasks")),
            Refusal::IllegalMove { id, .. } => {
                error.with_hint(CallerHint::tool("task_get", format!("shows the state of {id}")))
            }
            Refusal::OpenDependencies { open, .. } => match open.first() {
                Some(first) => error.with_hint(format!("complete {first} first")),
                None => error,
            },
            Refusal::Held { lease, .. } => {
                error.with_hint(format!("leave it to {}, or take another task", lease.holder_name()))
            }
            Refusal::Untrusted { .. } => {
                error.with_hint(CallerHint::command("windlass trust", "shows what would run and asks"))
            }
            Refusal::NoPerson { .. } => {
                error.with_hint("end the turn with `<promise>BLOCKED</promise>` and say what is needed")
            }
            Refusal::OwnTask { .. } => error
                .with_hint(CallerHint::tool("note_add", "leaves a note about it"))
                .with_hint("`<promise>BLOCKED</promise>` at the end of the turn asks a person"),
            Refusal::Rejudged { .. } => error
                .with_hint(CallerHint::tool("note_add", "leaves a note about it"))
                .with_hint(CallerHint::tool("task_create", "makes a new task with them")),
            Refusal::GatedTask { id, .. } => error
                .with_hint(CallerHint::command(format!("windlass run --task {id}"), "works on it and judges the work"))
                .with_hint(CallerHint::tool("note_add", format!("with taskId {id} tells that run what you know"))),
            Refusal::NotForAgent { .. } => {
                error.with_hint(CallerHint::tool("task_next", "names one that you may work on"))
            }
            Refusal::NothingReady => error
                .with_hint(CallerHint::tool("task_list", "shows what waits"))
                .with_hint(CallerHint::tool("task_create", "makes a task")),
            Refusal::IllegalSeries { .. } => {
                error.with_hint(CallerHint::tool("task_get", "shows the state of its series"))
            }
            Refusal::TooManyHooks { task, .. } => {
                error.with_hint(CallerHint::tool("hook_clear", format!("with taskId {task} removes them")))
            }
            Refusal::RunEnded(_) => error.with_hint("nothing more can be claimed for it"),
            Refusal::Cycle { .. } => error.with_hint("leave one of these dependencies out"),
            Refusal::Apply(_) => error.with_hint("this is a defect of Windlass; nothing was changed"),
            _ => error,
        }
    }
}
