//! The details of `windlass task show` that agents register for their own work.

use crate::context::OpenedProject;
use crate::{Failure, hints, time_format};
use windlass_engine::{Event, Seq, Task, Timestamp};

use crate::event_text::drive;

/// Collects the registered stop hooks, the present series, and the checkpoints that can be resumed.
pub fn collect_drive_details(
    opened: &OpenedProject,
    task: &Task,
    now: Timestamp,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut details = Vec::new();
    let mut hooks = Vec::new();
    for hook in &task.evaluation.hooks {
        if let Some((_, Event::HookRegistered(said))) = read_event_at(opened, hook.id.0)? {
            hooks.push(drive::format_stop_hook(hook.id, said.hook.name(), hook.enabled));
        }
    }
    if !hooks.is_empty() {
        details.push(("stop hooks", format!("{}: {}", hooks.len(), hooks.join(", "))));
    }
    details.extend(task.evaluation.series.as_ref().map(|series| ("series", drive::format_series(series))));
    for kept in task.evaluation.live_checkpoints_at(now) {
        if let Some((at, Event::CheckpointCreated(made))) = read_event_at(opened, kept.id.0)? {
            let ago = time_format::format_time_between(at, now);
            details.push(("checkpoint", format!("{}, {ago} ago", drive::format_checkpoint(kept.id, &made))));
        }
    }
    Ok(details)
}

/// Reads the event at a position, with its time.
fn read_event_at(opened: &OpenedProject, at: u64) -> Result<Option<(Timestamp, Event)>, Failure> {
    let record = opened.store.read_event(Seq(at)).map_err(hints::store_failure)?;
    Ok(record.map(|record| (record.envelope.timestamp, record.envelope.event)))
}
