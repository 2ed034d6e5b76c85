//! Changes of the live view for the events of a session.

use std::time::Instant;

use windlass_engine::{Event, Purpose, Record, payload};
use windlass_runner::RunnerEvent;

use super::View;
use super::area::Area;
use crate::commands::run::progress::session_name;
use crate::show;

/// Updates the live view for a runner event.
pub fn update_view(view: &View, told: RunnerEvent<'_>) {
    let at = Instant::now();
    match told {
        RunnerEvent::Output(stream, bytes) => view.change(|area| area.hear(stream, bytes)),
        RunnerEvent::Waiting(time) => view.change(|area| area.begin_waiting(at, time)),
        RunnerEvent::Notice(words) => view.notify(words),
        // Only one worker merges at a time.
        RunnerEvent::Queueing => view.change(|area| area.begin(at, "merge", show::pipeline::QUEUEING)),
        RunnerEvent::Note(_) => {}
        RunnerEvent::Asking => view.change(|area| area.begin(at, AGENT, "works")),
        RunnerEvent::TakesUp(task) => view.change(|area| area.take_up(task)),
        RunnerEvent::Event(record) => view.change(|area| update_area(area, at, record)),
    }
}

const AGENT: &str = "the agent";

/// Updates an area for an event of the log.
fn update_area(area: &mut Area, at: Instant, record: &Record) {
    area.used = area.used.plus(record.envelope.event.usage());
    match &record.envelope.event {
        Event::SessionStarted(payload::SessionStarted { terms, .. })
        | Event::SessionResumed(payload::SessionResumed { terms, .. }) => {
            area.session = session_name(record);
            area.most = terms.max_iterations;
            area.sent_back.1 = terms.max_hook_retries;
        }
        Event::IterationStarted(started) => {
            area.iteration = started.run.iteration;
            area.task = record.envelope.node.task().map(|task| task.to_string());
            area.sent_back.0 = 0;
        }
        Event::TurnStarted(started) => area.begin(at, AGENT, &describe_turn(started)),
        Event::GateDecided(decided) => {
            area.sent_back = (decided.retries, decided.max_retries.unwrap_or(area.sent_back.1));
        }
        Event::HookStarted(started) => {
            let again = if started.attempt > 1 { format!(", attempt {}", started.attempt) } else { String::new() };
            area.begin(at, &started.hook, &format!("runs{again}"));
        }
        Event::TurnFinished(_)
        | Event::HookFinished(_)
        | Event::DeliveryFinished(_)
        | Event::IterationFailed(_)
        | Event::DeliveryFailed(_)
        | Event::IterationInterrupted(_)
        | Event::DeliveryInterrupted(_) => area.rest(),
        _ => {}
    }
}

/// Describes a turn of the agent.
fn describe_turn(started: &payload::TurnStarted) -> String {
    let what = match started.purpose {
        Purpose::Work | Purpose::SendBack => "works",
        Purpose::Recovery => "recovers",
        Purpose::Delivery | Purpose::UnjudgedDelivery(_) => "listens",
    };
    match started.feedback {
        0 => what.to_owned(),
        pieces => format!("{what}, with {}", show::pieces(pieces)),
    }
}
