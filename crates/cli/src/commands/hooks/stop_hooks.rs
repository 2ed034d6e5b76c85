//! The stop hooks that are registered for a task: `windlass hooks list --task`, `enable HOOK-12` and `disable HOOK-12`.

use serde_json::{Value, json};
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode, hints};
use windlass_engine::{Authority, Command, HookId, Seq, TaskId};
use windlass_text as text;
use windlass_tools::{StopHookList, registered_hooks};

use crate::output::{CommandResult, Output, TextTone};

/// Enables or disables a registered stop hook.
pub fn switch_stop_hook(context: &CommandContext, hook: HookId, enabled: bool, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    // The id of a hook is the position of the event that registered it.
    let registered = opened.store.read_event(Seq(hook.0)).map_err(hints::store_failure)?;
    let unknown = || {
        Failure::new(FailureCode::NotFound, format!("there is no stop hook {hook}"))
            .with_hint("`windlass hooks list --task ID` shows those of a task")
    };
    let task = registered.and_then(|record| record.envelope.node.task_id()).ok_or_else(unknown)?;
    let before =
        opened.require_task(task)?.evaluation.hooks.iter().find(|known| known.id == hook).map(|known| known.enabled);
    opened.execute_command(&Command::SwitchHook { task, hook, enabled }, Authority::Person)?;
    let before = before.ok_or_else(unknown)?;
    if out.is_json() {
        return out.print_json(&json!({
            "hookId": hook, "taskId": task, "enabled": enabled, "changed": before != enabled, "written": true,
        }));
    }
    let asked = if enabled { "is enabled" } else { "is disabled" };
    out.print_line(format_args!("{} of {task} {asked}", out.paint(TextTone::Strong, hook)))
}

/// Lists the stop hooks of a task in the order in which they run.
pub fn list_stop_hooks(context: &CommandContext, task: TaskId, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let hooks = registered_hooks(&opened.store, &opened.require_task(task)?).map_err(Failure::from)?;
    if out.is_json() {
        return out.print_json(&StopHookList::new(task, hooks));
    }
    if hooks.is_empty() {
        return out.print_line(out.paint(TextTone::Faint, format_args!("{task} has no stop hooks")));
    }
    for hook in hooks {
        let off = if hook.enabled { "" } else { "  (disabled)" };
        let about = match hook.metadata.is_empty() {
            true => String::new(),
            false => format!("  {}", text::clean_line(&Value::Object(hook.metadata).to_string())),
        };
        let id = out.paint(TextTone::Strong, hook.id).to_string();
        out.print_line(format_args!("{id}  {}{off}{}", hook.hook.name(), out.paint(TextTone::Faint, about)))?;
    }
    Ok(())
}
