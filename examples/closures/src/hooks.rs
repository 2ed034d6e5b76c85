//! The hooks of this program: plain closures.
//!
//! A closure receives an event and the state after the command that caused it, and returns actions. It changes nothing itself: each
//! action becomes part of the same commit, or is refused and recorded.

use windlass_engine::{Event, EventType, HookAction, HookRegistry, NewTask, PureHook, RegistryError, TaskAction};

/// Labels every new task of the most urgent priority.
pub fn label_urgent() -> PureHook {
    PureHook::new("label-urgent", [EventType::TaskCreated], |record, _view| {
        // The event of a new task holds all of its fields.
        let Event::TaskCreated(created) = &record.envelope.event else { return Ok(vec![]) };
        let Some(task) = record.envelope.node.task_id() else { return Ok(vec![]) };
        if u8::from(created.priority) > 0 {
            return Ok(vec![]);
        }
        Ok(vec![Action::UpdateTask { task, action: TaskAction::AddLabels(vec!["urgent".to_owned()]) }])
    })
    .priority(30)
    .description("labels what is most urgent")
}

/// Makes a task to announce every release that is completed.
pub fn announce_releases() -> PureHook {
    PureHook::new("announce-releases", [EventType::TaskCompleted], |record, view| {
        let Some(id) = record.envelope.node.task_id() else { return Ok(vec![]) };
        // The view answers questions about the present state. A failure of the store itself is passed on with `?`.
        let Some(task) = view.find_task(id)?.filter(|task| task.has_label("release")) else { return Ok(vec![]) };
        Ok(vec![Action::CreateTask(NewTask {
            goal: format!("Announce: {}", task.goal),
            priority: task.priority,
            parent: Some(id),
            ..NewTask::default()
        })])
    })
    .description("follows a release up with its announcement")
    .author("ada")
}

/// The built-ins and ours.
pub fn registry() -> Result<HookRegistry, RegistryError> {
    let mut registry = HookRegistry::with_builtins();
    registry.register(label_urgent())?;
    registry.register(announce_releases())?;
    Ok(registry)
}
