//! Tasks and events as a person sees them.

pub mod bridge;
pub mod drive;
mod event_line;
pub mod pipeline;
pub mod workflow;

use windlass_app::hook_runs::HookRunOutcome;
use windlass_app::project::Project;
use windlass_app::session_view::SessionView;
use windlass_engine::{
    Event, EventRecord, EventSubject, HookOutcome, NextAction, SessionEndKind, Task, TaskId, TaskState, Timestamp,
};
use windlass_text as text;

use crate::output::{CommandResult, MessageWriter, Output, Tone};

pub use event_line::{
    describe_gate_answer, find_retry_moment, format_event_rows, format_feedback_count, print_event, summarize_event,
};
pub use windlass_app::time_format::{describe_lease_holder, format_local_time, format_millis, format_time_between};

/// The longest text that is shown, wrapped at the width of the terminal.
pub const MAX_SHOWN_TEXT: usize = 1000;
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

/// Prints tasks as an aligned table.
pub fn print_task_table(tasks: &[Task], out: &mut Output) -> CommandResult {
    let width = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let ids = width(&mut tasks.iter().map(|task| task.id.to_string().len()));
    let states = width(&mut tasks.iter().map(|task| task.state.name().len()));
    for task in tasks {
        let id = text::pad_to_width(&task.id.to_string(), ids);
        let state = text::pad_to_width(task.state.name(), states);
        let line = format!(
            "{}  {}  {}  ",
            out.paint(Tone::Strong, id),
            out.paint(state_tone(task.state), state),
            out.paint(Tone::Faint, format_args!("P{}", task.priority))
        );
        let used = ids + states + 8;
        let waits = match count_open_dependencies(task) {
            0 => String::new(),
            open => format!(" (waits for {open})"),
        };
        let labels: String = task.labels.iter().map(|label| format!(" #{}", text::clean_line(label))).collect();
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used + waits.len()).max(20));
        let goal = text::fit_to_width(&task.goal, room);
        let left = room.saturating_sub(text::display_width(&goal));
        let labels = if text::display_width(&labels) <= left { labels } else { String::new() };
        let (waits, labels) = (out.paint(Tone::Faint, waits), out.paint(Tone::Faint, labels));
        out.print_line(format_args!("{line}{goal}{labels}{waits}"))?;
    }
    Ok(())
}

/// Prints a task as one line.
pub fn print_task_line(task: &Task, out: &mut Output) -> CommandResult {
    print_task_table(std::slice::from_ref(task), out)
}

/// Prints the other consequences of a command about one task: tasks that waited for it, reviews, failures of hooks.
pub fn print_consequences(subject: TaskId, records: &[EventRecord], out: &mut Output) -> CommandResult {
    print_event_consequences(Some(EventSubject::Task(subject)), records, out)
}

/// Prints the consequences of a command for every task.
pub fn print_all_consequences(records: &[EventRecord], out: &mut Output) -> CommandResult {
    print_event_consequences(None, records, out)
}

fn print_event_consequences(subject: Option<EventSubject>, records: &[EventRecord], out: &mut Output) -> CommandResult {
    let mut messages = MessageWriter::new();
    for record in records {
        let node = record.envelope.node;
        match &record.envelope.event {
            Event::HookError(error) if error.effect.is_some() => {}
            Event::HookError(error) => {
                messages.print_warning(&format!("hook `{}` failed: {}", error.hook_name, error.error));
            }
            Event::ActionError(error) => {
                messages.print_warning(&format!("{} failed: {}", error.action_type, error.error))
            }
            _ if out.is_json() || Some(node) == subject => {}
            Event::TaskReady(_) => out.print_line(format_args!("{} {node} is ready", out.paint(Tone::Good, "→")))?,
            Event::TaskWaiting(_) => {
                out.print_line(format_args!("{} {node} waits again", out.paint(Tone::Warning, "→")))?
            }
            Event::TaskBlocked(blocked) => {
                let reason = text::clean_line(&blocked.reason).into_owned();
                out.print_line(format_args!("{} {node} is blocked: {reason}", out.paint(Tone::Bad, "→")))?;
            }
            Event::TaskCreated(created) => {
                let goal = text::fit_to_width(&created.goal, 100);
                out.print_line(format_args!("{} {node} created: {goal}", out.paint(Tone::Name, "→")))?;
            }
            Event::LeaseExpired(expired) => {
                let owner = &expired.owner;
                out.print_line(format_args!(
                    "{} the lease of {owner} on {node} ran out",
                    out.paint(Tone::Warning, "→")
                ))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Formats a moment for the width of the terminal: a narrow one gets no year, a narrower one no day.
pub fn format_short_moment(at: Timestamp, out: &Output) -> String {
    let at = format_local_time(at);
    match out.columns() {
        Some(..80) => at[11..].to_owned(),
        Some(80..100) => at[5..].to_owned(),
        _ => at,
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

/// Warns of obstacles in the place of files that Windlass and git read.
pub fn print_obstacles(project: &Project, out: &mut Output) -> CommandResult {
    windlass_app::unreadable_files::list_unreadable_files(project).iter().try_for_each(|obstacle| {
        out.print_line(out.paint(Tone::Warning, format!("{obstacle}: remove it, or put a file in its place")))
    })
}
