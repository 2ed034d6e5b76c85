//! Events, tasks, sessions and hook runs in words, for every front end. A front end chooses colours by the [`Tone`].

pub mod bridge;
pub mod drive;
pub mod pipeline;
mod summary;
pub mod workflow;

use windlass_engine::{Event, EventRecord, GateVerdict, HookOutcome, NextAction, SessionEndKind, Task, TaskState};

use crate::hook_runs::HookRunOutcome;
use crate::session_view::SessionView;
use crate::tone::Tone;

pub use summary::{describe_gate_answer, find_retry_moment, format_feedback_count, summarize_event};

/// Returns the tone of a state.
pub fn state_tone(state: TaskState) -> Tone {
    match state {
        TaskState::Ready => Tone::Good,
        TaskState::Active | TaskState::Submitted => Tone::Name,
        TaskState::Completed | TaskState::Deleted => Tone::Faint,
        TaskState::Blocked | TaskState::Failed => Tone::Bad,
        TaskState::NeedsContinuation => Tone::Warning,
        TaskState::Created => Tone::Plain,
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
pub fn describe_run_outcome(run: HookRunOutcome) -> (Tone, &'static str) {
    match run {
        HookRunOutcome::Ended(outcome) => describe_hook_outcome(outcome),
        HookRunOutcome::Error => (Tone::Bad, "error"),
        HookRunOutcome::Running => (Tone::Name, "is running"),
        HookRunOutcome::Left => (Tone::Warning, "was left"),
    }
}

/// Describes the outcome of a hook.
pub fn describe_hook_outcome(outcome: HookOutcome) -> (Tone, &'static str) {
    match outcome {
        HookOutcome::Success => (Tone::Good, "ok"),
        HookOutcome::Skip => (Tone::Faint, "skipped"),
        HookOutcome::Block => (Tone::Warning, "blocks"),
        HookOutcome::Continue => (Tone::Warning, "wants another iteration"),
        HookOutcome::Again => (Tone::Plain, "judged again"),
        HookOutcome::Escalate => (Tone::Warning, "asks for a person"),
        HookOutcome::Failure => (Tone::Bad, "failed"),
        HookOutcome::TimedOut => (Tone::Bad, "timed out"),
        HookOutcome::Cancelled => (Tone::Faint, "cancelled"),
        HookOutcome::Interrupted => (Tone::Warning, "was interrupted"),
    }
}

/// Describes the ending of a session.
pub fn describe_ending(ending: SessionEndKind) -> (Tone, &'static str) {
    match ending {
        SessionEndKind::Completed => (Tone::Good, "complete"),
        SessionEndKind::Limit => (Tone::Warning, "ended"),
        SessionEndKind::Escalated => (Tone::Warning, "a person is needed"),
        SessionEndKind::Cancelled => (Tone::Warning, "cancelled"),
        SessionEndKind::Error => (Tone::Bad, "failed"),
    }
}

/// Describes an event in which a session takes up a task or leaves it.
pub fn describe_task_event(record: &EventRecord) -> Option<(Tone, String)> {
    let id = record.envelope.node;
    if record.envelope.session.is_none() || record.envelope.metadata.depth > 0 {
        return None;
    }
    Some(match &record.envelope.event {
        Event::TaskClaimed(_) => (Tone::Plain, format!("works on {id}")),
        Event::TaskCompleted(_) => (Tone::Good, format!("{id} is completed")),
        Event::TaskBlocked(blocked) => (Tone::Warning, format!("{id} is blocked: {}", blocked.reason)),
        Event::TaskNeedsContinuation(left) => (Tone::Warning, format!("{id} needs continuation: {}", left.reason)),
        _ => return None,
    })
}

/// Describes the state of a session.
pub fn describe_session_state(view: &SessionView) -> (Tone, String) {
    match (view.session.ending_kind().filter(|_| view.session.is_over()), view.alive, &view.session.stopping) {
        (Some(ending), ..) => {
            let (tone, word) = describe_ending(ending);
            (tone, word.to_owned())
        }
        _ if view.session.next_action() == NextAction::Answer => (Tone::Warning, "asks a person".to_owned()),
        (None, true, None) => (Tone::Name, "running".to_owned()),
        (None, true, Some(_)) => (Tone::Name, "ending".to_owned()),
        (None, false, None) => (Tone::Warning, "unfinished".to_owned()),
        (None, false, Some(_)) => (Tone::Warning, "unfinished, end pending".to_owned()),
    }
}

/// Returns the tone of an event in a list.
pub fn event_tone(event: &Event) -> Tone {
    match event {
        Event::TaskCompleted(_) | Event::ChangeMerged(_) => Tone::Good,
        Event::TaskBlocked(_)
        | Event::TaskNeedsContinuation(_)
        | Event::TaskReopened(_)
        | Event::IterationPostponed(_)
        | Event::IterationInterrupted(_)
        | Event::DeliveryInterrupted(_)
        | Event::SessionStopping(_)
        | Event::HookRetrying(_) => Tone::Warning,
        Event::TaskFailed(_)
        | Event::TaskRejected(_)
        | Event::PipelineFailed(_)
        | Event::IterationFailed(_)
        | Event::DeliveryFailed(_)
        | Event::HookError(_)
        | Event::ActionError(_) => Tone::Bad,
        Event::HookFinished(finished) => describe_hook_outcome(finished.outcome).0,
        Event::SessionEnded(ended) => describe_ending(ended.ending).0,
        Event::TaskCreated(_) | Event::SessionStarted(_) | Event::FeedbackQueued(_) | Event::GateAnswered(_) => {
            Tone::Name
        }
        Event::GateDecided(decided) => match decided.verdict {
            GateVerdict::Pass => Tone::Good,
            GateVerdict::Escalate => Tone::Bad,
            GateVerdict::Fail | GateVerdict::Continue | GateVerdict::Block => Tone::Warning,
        },
        _ => Tone::Plain,
    }
}
