//! Tasks and events as a person sees them.

mod event_line;

use windlass_app::project::Project;
use windlass_engine::{Event, EventRecord, EventSubject, Task, TaskId, Timestamp};
use windlass_text as text;

use crate::output::{CommandResult, MessageWriter, Output, TextTone};

pub use event_line::{format_event_rows, print_event};
pub use windlass_app::event_text::{
    bridge, count_open_dependencies, describe_ending, describe_gate_answer, describe_hook_outcome,
    describe_run_outcome, describe_session_state, describe_task_event, drive, find_retry_moment, format_feedback_count,
    pipeline, state_tone, summarize_event, workflow,
};
pub use windlass_app::time_format::{describe_lease_holder, format_local_time, format_millis, format_time_between};

/// The longest text that is shown, wrapped at the width of the terminal.
pub const MAX_SHOWN_TEXT: usize = 1000;

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
            out.paint(TextTone::Strong, id),
            out.paint(state_tone(task.state), state),
            out.paint(TextTone::Faint, format_args!("P{}", task.priority))
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
        let (waits, labels) = (out.paint(TextTone::Faint, waits), out.paint(TextTone::Faint, labels));
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
            Event::TaskReady(_) => {
                out.print_line(format_args!("{} {node} is ready", out.paint(TextTone::Good, "→")))?
            }
            Event::TaskWaiting(_) => {
                out.print_line(format_args!("{} {node} waits again", out.paint(TextTone::Warning, "→")))?
            }
            Event::TaskBlocked(blocked) => {
                let reason = text::clean_line(&blocked.reason).into_owned();
                out.print_line(format_args!("{} {node} is blocked: {reason}", out.paint(TextTone::Bad, "→")))?;
            }
            Event::TaskCreated(created) => {
                let goal = text::fit_to_width(&created.goal, 100);
                out.print_line(format_args!("{} {node} created: {goal}", out.paint(TextTone::Name, "→")))?;
            }
            Event::LeaseExpired(expired) => {
                let owner = &expired.owner;
                out.print_line(format_args!(
                    "{} the lease of {owner} on {node} ran out",
                    out.paint(TextTone::Warning, "→")
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

/// Warns of obstacles in the place of files that Windlass and git read.
pub fn print_obstacles(project: &Project, out: &mut Output) -> CommandResult {
    windlass_app::unreadable_files::list_unreadable_files(project).iter().try_for_each(|obstacle| {
        out.print_line(out.paint(TextTone::Warning, format!("{obstacle}: remove it, or put a file in its place")))
    })
}
