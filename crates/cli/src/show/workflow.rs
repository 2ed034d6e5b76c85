//! Workflows in words.

use windlass_engine::{Event, payload};

use crate::text;

/// What an event of a workflow says.
pub fn summary(event: &Event) -> Option<String> {
    Some(match event {
        Event::WorkflowTriggered(triggered) => triggered.workflow_id.clone(),
        Event::WorkflowStarted(started) => started.workflow_id.clone(),
        Event::WorkflowStepStarted(started) if started.attempt > 1 => format!("{}, once more", started.step),
        Event::WorkflowStepStarted(started) => started.step.clone(),
        Event::WorkflowStepFinished(finished) => step(finished),
        Event::WorkflowCompleted(completed) => format!("{}: {}", completed.workflow_id, count(completed.steps)),
        Event::WorkflowFailed(failed) => format!("{}: {}", failed.workflow_id, failed.error),
        _ => return None,
    })
}

fn step(finished: &payload::WorkflowStepFinished) -> String {
    let result = &finished.result;
    let next = finished.next.as_ref().map(|next| format!(" → {next}")).unwrap_or_default();
    match &result.error {
        Some(error) => format!("{} failed: {}{next}", result.step_id, text::fit(error, 200)),
        None => format!("{} ok{next}", result.step_id),
    }
}

/// So many steps.
pub fn count(steps: u32) -> String {
    if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") }
}
