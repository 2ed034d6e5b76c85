//! Tools for stop hooks, which decide when the work on a task may stop.

pub(crate) mod clear;
mod command;
pub(crate) mod evaluate;
pub(crate) mod list;
pub(crate) mod register;

use serde_json::{Map, Value};
use windlass_engine::{Event, RegisteredStopHook, Seq, StopHookRef, Task};
use windlass_store::SqliteStore;

use crate::error::ToolError;

pub(crate) use clear::{CLEAR, clear_hooks};
pub(crate) use command::run_command_hook as ask_command;
pub(crate) use evaluate::{EVALUATE, evaluate_hooks};
pub use list::StopHookList;
pub(crate) use list::{LIST, list_hooks};
pub(crate) use register::{REGISTER, register_hook};

/// Returns the hooks of a task with their content, in the order of registration.
pub fn registered_hooks(store: &SqliteStore, task: &Task) -> Result<Vec<RegisteredStopHook>, ToolError> {
    let mut hooks = Vec::with_capacity(task.evaluation.hooks.len());
    for known in &task.evaluation.hooks {
        // The row names it, so the log has it.
        let Some(record) = store.read_event(Seq(known.id.0))? else { continue };
        if let Event::HookRegistered(said) = record.envelope.event {
            let StopHookRef { id, enabled, inside } = *known;
            hooks.push(RegisteredStopHook { id, hook: said.hook, enabled, inside, metadata: said.metadata });
        }
    }
    Ok(hooks)
}

/// Returns the metadata of a hook, with its type.
fn typed_metadata(hook: &RegisteredStopHook) -> Map<String, Value> {
    let mut metadata = hook.metadata.clone();
    metadata.insert("type".to_owned(), Value::from(hook.hook.name()));
    metadata
}
