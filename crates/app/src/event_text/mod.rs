//! Events, tasks, sessions and hook runs in words, for every front end. A front end chooses colours by the [`TextTone`].

pub mod bridge;
pub mod drive;
pub mod pipeline;
mod summary;
pub mod workflow;

use windlass_engine::{Event, EventRecord, GateVerdict, HookOutcome, NextAction, SessionEndKind, Task, TaskState};

use crate::hook_runs::HookRunOutcome;
use crate::session_view::SessionView;
use crate::tone::TextTone;

pub use summary::{
    describe_gate_answer, describe_interruption, find_retry_moment, format_feedback_count, summarize_event,
};

/// Returns the tone of a state.
pub fn state_tone(state: TaskState) -> TextTone {
    match state {
        TaskState::Ready => TextTone::Good,
        TaskState::Active | TaskState::Submitted => TextTone::Name,
        TaskState::Completed | TaskState::Deleted => TextTone::Faint,
        TaskState::Blocked | TaskState::Failed => TextTone::Bad,
        TaskState::NeedsContinuation => TextTone::Warning,
        TaskState::Created => TextTone::Plain,
    }
}

/// Counts the tasks that a task waits for. A task that is over waits for none.
pub fn count_open_dependencies(task: &Task) -> u64 {
    match task.state {
        TaskState::Completed | TaskState::Failed | TaskState::Deleted => 0,
        _ => u64::from(task.open_dependencies),
    }
}

/// Describes the outcome of a hook run in the history.
pub fn describe_run_outcome(run: HookRunOutcome) -> (TextTone, &'static str) {
    match run {
        HookRunOutcome::Ended(outcome) => describe_hook_outcome(outcome),
        HookRunOutcome::Error => (TextTone::Bad, "error"),
        HookRunOutcome::Running => (TextTone::Name, "is running"),
        HookRunOutcome::Left => (TextTone::Warning, "was left"),
    }
}

/// Describes the outcome of a hook.
pub fn describe_hook_outcome(outcome: HookOutcome) -> (TextTone, &'static str) {
    match outcome {
        HookOutcome::Success => (TextTone::Good, "ok"),
        HookOutcome::Skip => (TextTone::Faint, "skipped"),
        HookOutcome::Block => (TextTone::Warning, "blocks"),
        HookOutcome::Continue => (TextTone::Warning, "wants another iteration"),
        HookOutcome::Again => (TextTone::Plain, "judged again"),
        HookOutcome::Escalate => (TextTone::Warning, "asks for a person"),
        HookOutcome::Failure => (TextTone::Bad, "failed"),
        HookOutcome::TimedOut => (TextTone::Bad, "timed out"),
        HookOutcome::Cancelled => (TextTone::Faint, "cancelled"),
        HookOutcome::Interrupted => (TextTone::Warning, "was interrupted"),
    }
}

/// Describes the ending of a session.
pub fn describe_ending(ending: SessionEndKind) -> (TextTone, &'static str) {
    match ending {
        SessionEndKind::Completed => (TextTone::Good, "complete"),
        SessionEndKind::Limit => (TextTone::Warning, "ended"),
        SessionEndKind::Escalated => (TextTone::Warning, "a person is needed"),
        SessionEndKind::Cancelled => (TextTone::Warning, "cancelled"),
        SessionEndKind::Error => (TextTone::Bad, "failed"),
    }
}

/// Describes an event in which a session takes up a task or leaves it.
pub fn describe_task_event(record: &EventRecord) -> Option<(TextTone, String)> {
    let id = record.envelope.node;
    if record.envelope.session.is_none() || record.envelope.metadata.depth > 0 {
        return None;
    }
    Some(match &record.envelope.event {
        Event::TaskClaimed(_) => (TextTone::Plain, format!("works on {id}")),
        Event::TaskCompleted(_) => (TextTone::Good, format!("{id} is completed")),
        Event::TaskBlocked(blocked) => (TextTone::Warning, format!("{id} is blocked: {}", blocked.reason)),
        Event::TaskNeedsContinuation(left) => (TextTone::Warning, format!("{id} needs continuation: {}", left.reason)),
        _ => return None,
    })
}

/// Describes the state of a session.
pub fn describe_session_state(view: &SessionView) -> (TextTone, String) {
    match (view.session.ending_kind().filter(|_| view.session.is_over()), view.alive, &view.session.stopping) {
        (Some(ending), ..) => {
            let (tone, word) = describe_ending(ending);
            (tone, word.to_owned())
        }
        _ if view.session.next_action() == NextAction::Answer => (TextTone::Warning, "asks a person".to_owned()),
        (None, true, None) => (TextTone::Name, "running".to_owned()),
        (None, true, Some(_)) => (TextTone::Name, "ending".to_owned()),
        (None, false, None) => (TextTone::Warning, "unfinished".to_owned()),
        (None, false, Some(_)) => (TextTone::Warning, "unfinished, end pending".to_owned()),
    }
}

/// Returns the person or the agent who gave the command of an event. The name of a session's runner means nothing to a person.
pub fn find_author(record: &EventRecord) -> Option<&str> {
    let by = record.envelope.metadata.triggered_by.as_str();
    let is_runner = by.starts_with("run-") && record.envelope.session.is_some();
    (!is_runner).then_some(by)
}

/// Returns the tone of an event in a list.
pub fn event_tone(event: &Event) -> TextTone {
    match event {
        Event::TaskCompleted(_) | Event::ChangeMerged(_) => TextTone::Good,
        Event::TaskBlocked(_)
        | Event::TaskNeedsContinuation(_)
        | Event::TaskReopened(_)
        | Event::IterationPostponed(_)
        | Event::IterationInterrupted(_)
        | Event::DeliveryInterrupted(_)
        | Event::SessionStopping(_)
        | Event::HookRetrying(_) => TextTone::Warning,
        Event::TaskFailed(_)
        | Event::TaskRejected(_)
        | Event::PipelineFailed(_)
        | Event::IterationFailed(_)
        | Event::DeliveryFailed(_)
        | Event::HookError(_)
        | Event::ActionError(_) => TextTone::Bad,
        Event::HookFinished(finished) => describe_hook_outcome(finished.outcome).0,
        Event::SessionEnded(ended) => describe_ending(ended.ending).0,
        Event::TaskCreated(_) | Event::SessionStarted(_) | Event::FeedbackQueued(_) | Event::GateAnswered(_) => {
            TextTone::Name
        }
        Event::GateDecided(decided) => match decided.verdict {
            GateVerdict::Pass => TextTone::Good,
            GateVerdict::Escalate => TextTone::Bad,
            GateVerdict::Fail | GateVerdict::Continue | GateVerdict::Block => TextTone::Warning,
        },
        _ => TextTone::Plain,
    }
}
