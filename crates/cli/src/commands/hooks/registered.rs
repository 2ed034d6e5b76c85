//! The stop hooks that are registered for a task: `windlass hooks list --task`, `enable HOOK-12` and `disable HOOK-12`.

use serde_json::{Value, json};
use windlass_app::context::Context;
use windlass_app::{Code, Failure, hints};
use windlass_engine::{Authority, Command, HookId, Seq, TaskId};
use windlass_text as text;
use windlass_tools::{StopHookList, registered};

use crate::output::{Done, Output, Tone};

/// Enables or disables a registered stop hook.
pub fn switch(context: &Context, hook: HookId, enabled: bool, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    // The id of a hook is the position of the event that registered it.
    let registered = opened.store.event(Seq(hook.0)).map_err(hints::store)?;
    let unknown = || {
        Failure::new(Code::NotFound, format!("there is no stop hook {hook}"))
            .hint("`windlass hooks list --task ID` shows those of a task")
    };
    let task = registered.and_then(|record| record.envelope.node.task()).ok_or_else(unknown)?;
    let before = opened.task(task)?.drive.hooks.iter().find(|known| known.id == hook).map(|known| known.enabled);
    opened.execute(&Command::SwitchHook { task, hook, enabled }, Authority::Person)?;
    let before = before.ok_or_else(unknown)?;
    if out.is_json() {
        return out.object(&json!({
            "hookId": hook, "taskId": task, "enabled": enabled, "changed": before != enabled, "written": true,
        }));
    }
    let asked = if enabled { "is asked from now on" } else { "is not asked any more" };
    out.line(format_args!("{} of {task} {asked}", out.paint(Tone::Strong, hook)))
}

/// Lists the stop hooks of a task in the order in which they run.
pub fn list(context: &Context, task: TaskId, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let hooks = registered(&opened.store, &opened.task(task)?).map_err(Failure::from)?;
    if out.is_json() {
        return out.object(&StopHookList::new(task, hooks));
    }
    if hooks.is_empty() {
        return out.line(out.paint(Tone::Faint, format_args!("{task} has no stop hooks")));
    }
    for hook in hooks {
        let off = if hook.enabled { "" } else { "  (disabled)" };
        let about = match hook.metadata.is_empty() {
            true => String::new(),
            false => format!("  {}", text::line(&Value::Object(hook.metadata).to_string())),
        };
        let id = out.paint(Tone::Strong, hook.id).to_string();
        out.line(format_args!("{id}  {}{off}{}", hook.hook.name(), out.paint(Tone::Faint, about)))?;
    }
    Ok(())
}
