//! Changes of the live view for the events of a session.

use std::time::Instant;

use windlass_engine::{Event, EventRecord, TurnPurpose, payload};
use windlass_runner::RunnerEvent;

use super::ViewHandle;
use super::area::StatusArea;
use crate::commands::run::progress::session_name;
use crate::show;

/// Updates the live view for a runner event.
pub fn update_view(view: &ViewHandle, told: RunnerEvent<'_>) {
    let at = Instant::now();
    match told {
        RunnerEvent::Output(stream, bytes) => view.update_areas(|area| area.append_output(stream, bytes)),
        RunnerEvent::Waiting(time) => view.update_areas(|area| area.begin_waiting(at, time)),
        RunnerEvent::Notice(words) => view.show_notice(words),
        // Only one worker merges at a time.
        RunnerEvent::Queueing => {
            view.update_areas(|area| area.begin_activity(at, "merge", show::pipeline::QUEUEING_NOTICE))
        }
        RunnerEvent::Note(_) => {}
        RunnerEvent::Prompting => view.update_areas(|area| area.begin_activity(at, AGENT_LABEL, "works")),
        RunnerEvent::TaskClaimed(task) => view.update_areas(|area| area.set_task(task)),
        RunnerEvent::Event(record) => view.update_areas(|area| apply_event(area, at, record)),
    }
}

const AGENT_LABEL: &str = "the agent";

/// Updates an area for an event of the log.
fn apply_event(area: &mut StatusArea, at: Instant, record: &EventRecord) {
    area.used = area.used.saturating_add(record.envelope.event.usage());
    match &record.envelope.event {
        Event::SessionStarted(payload::SessionStarted { terms, .. })
        | Event::SessionResumed(payload::SessionResumed { terms, .. }) => {
            area.session = session_name(record);
            area.max_iterations = terms.max_iterations;
            area.sent_back.1 = terms.max_hook_retries;
        }
        Event::IterationStarted(started) => {
            area.iteration = started.run.iteration;
            area.task = record.envelope.node.task_id().map(|task| task.to_string());
            area.sent_back.0 = 0;
        }
        Event::TurnStarted(started) => area.begin_activity(at, AGENT_LABEL, &describe_turn(started)),
        Event::GateDecided(decided) => {
            area.sent_back = (decided.retries, decided.max_retries.unwrap_or(area.sent_back.1));
        }
        Event::HookStarted(started) => {
            let again = if started.attempt > 1 { format!(", attempt {}", started.attempt) } else { String::new() };
            area.begin_activity(at, &started.hook, &format!("runs{again}"));
        }
        Event::TurnFinished(_)
        | Event::HookFinished(_)
        | Event::DeliveryFinished(_)
        | Event::IterationFailed(_)
        | Event::DeliveryFailed(_)
        | Event::IterationInterrupted(_)
        | Event::DeliveryInterrupted(_) => area.clear_activity(),
        _ => {}
    }
}

/// Describes a turn of the agent.
fn describe_turn(started: &payload::TurnStarted) -> String {
    let what = match started.purpose {
        TurnPurpose::Work | TurnPurpose::SendBack => "works",
        TurnPurpose::Recovery => "recovers",
        TurnPurpose::Delivery | TurnPurpose::UnjudgedDelivery(_) => "listens",
    };
    match started.feedback {
        0 => what.to_owned(),
        pieces => format!("{what}, with {}", show::pieces(pieces)),
    }
}
