//! Hints for errors of the engine and of the store.

use windlass_engine::{Refusal, ViewError};
use windlass_store::{ExecuteError, StoreError};

use crate::error::{CallerHint, Code, ToolError};

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
        Self::from_error(Code::Store, &error).hint(CallerHint::command("windlass doctor", "says what is wrong"))
    }
}

impl From<ViewError> for ToolError {
    fn from(error: ViewError) -> Self {
        match error.0.downcast::<StoreError>() {
            Ok(error) => (*error).into(),
            Err(error) => Self::from_error(Code::Store, &*error),
        }
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::UnknownTask(_) | Refusal::UnknownEdge { .. } => Code::NotFound,
            Refusal::Invalid { .. } | Refusal::UnknownType { .. } => Code::Invalid,
            Refusal::Untrusted { .. } => Code::Trust,
            Refusal::View(_) | Refusal::Apply(_) => Code::Store,
            _ => Code::Refused,
        };
        let mut error = Self::from_error(code, &refusal);
        if let Refusal::Invalid { what, why } = &refusal {
            // A subject without a space is the name of a field.
            let place = if why.starts_with('[') { "" } else { ": " };
            error.message = if what.contains(' ') { error.message } else { format!("{what}{place}{why}") };
        }
        match refusal {
            Refusal::UnknownTask(_) => error.hint(CallerHint::tool("task_list", "shows the tasks")),
            Refusal::IllegalMove { id, .. } => {
                error.hint(CallerHint::tool("task_get", format!("shows how {id} stands")))
            }
            Refusal::OpenDependencies { open, .. } => match open.first() {
                Some(first) => error.hint(format!("{first} has to be completed first")),
                None => error,
            },
            Refusal::Held { lease, .. } => error.hint(format!("leave it to {}, or take another task", lease.holder())),
            Refusal::Untrusted { .. } => {
                error.hint(CallerHint::command("windlass trust", "shows what would run and asks"))
            }
            Refusal::NoPerson { .. } => {
                error.hint("end the turn with `<promise>BLOCKED</promise>` and say what is needed")
            }
            Refusal::OwnTask { .. } => error
                .hint(CallerHint::tool("note_add", "leaves a note about it"))
                .hint("`<promise>BLOCKED</promise>` at the end of the turn asks a person"),
            Refusal::Rejudged { .. } => error
                .hint(CallerHint::tool("note_add", "leaves a note about it"))
                .hint(CallerHint::tool("task_create", "makes a new task with them")),
            Refusal::GatedTask { id, .. } => error
                .hint(CallerHint::command(format!("windlass run --task {id}"), "works on it and judges the work"))
                .hint(CallerHint::tool("note_add", format!("with taskId {id} tells that run what you know"))),
            Refusal::NotForAgent { .. } => error.hint(CallerHint::tool("task_next", "names one that you may work on")),
            Refusal::NothingReady => error
                .hint(CallerHint::tool("task_list", "shows what waits"))
                .hint(CallerHint::tool("task_create", "makes a task")),
            Refusal::IllegalSeries { .. } => error.hint(CallerHint::tool("task_get", "shows how its series stands")),
            Refusal::TooManyHooks { task, .. } => {
                error.hint(CallerHint::tool("hook_clear", format!("with taskId {task} takes them away")))
            }
            Refusal::RunEnded(_) => error.hint("nothing more can be claimed for it"),
            Refusal::Cycle { .. } => error.hint("leave one of these dependencies out"),
            Refusal::Apply(_) => error.hint("this is a defect of Windlass; nothing was changed"),
            _ => error,
        }
    }
}
