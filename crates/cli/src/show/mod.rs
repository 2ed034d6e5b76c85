//! Tasks and events as a person sees them.

pub mod bridge;
pub mod drive;
mod event_line;
pub mod pipeline;
pub mod workflow;

use windlass_app::hook_runs::HookRunOutcome;
use windlass_app::project::Project;
use windlass_app::session_view::SessionView;
use windlass_engine::{Ending, Event, HookOutcome, Node, Record, State, Task, TaskId, Timestamp, Wanted};
use windlass_text as text;

use crate::output::{Done, Messages, Output, Tone};

pub use event_line::{answer, event, event_rows, pieces, retry_moment, summary};
pub use windlass_app::times::{holder, millis, moment, span};

/// The longest text that is shown, wrapped at the width of the terminal.
pub const LONG: usize = 1000;
/// Returns the tone of a state.
pub fn tone(state: State) -> Tone {
    match state {
        State::Ready => Tone::Good,
        State::Active | State::Submitted => Tone::Name,
        State::Completed | State::Deleted => Tone::Faint,
        State::Blocked | State::Failed => Tone::Bad,
        State::NeedsContinuation => Tone::Warning,
        State::Created => Tone::Plain,
    }
}

/// Counts the tasks that a task waits for. A task that is over waits for none.
pub fn waits(task: &Task) -> u64 {
    match task.state {
        State::Completed | State::Failed | State::Deleted => 0,
        _ => u64::from(task.open_dependencies),
    }
}

/// Prints tasks as an aligned table.
pub fn table(tasks: &[Task], out: &mut Output) -> Done {
    let width = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let ids = width(&mut tasks.iter().map(|task| task.id.to_string().len()));
    let states = width(&mut tasks.iter().map(|task| task.state.name().len()));
    for task in tasks {
        let id = text::pad(&task.id.to_string(), ids);
        let state = text::pad(task.state.name(), states);
        let line = format!(
            "{}  {}  {}  ",
            out.paint(Tone::Strong, id),
            out.paint(tone(task.state), state),
            out.paint(Tone::Faint, format_args!("P{}", task.priority))
        );
        let used = ids + states + 8;
        let waits = match waits(task) {
            0 => String::new(),
            open => format!(" (waits for {open})"),
        };
        let labels: String = task.labels.iter().map(|label| format!(" #{}", text::line(label))).collect();
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used + waits.len()).max(20));
        let goal = text::fit(&task.goal, room);
        let left = room.saturating_sub(text::width(&goal));
        let labels = if text::width(&labels) <= left { labels } else { String::new() };
        let (waits, labels) = (out.paint(Tone::Faint, waits), out.paint(Tone::Faint, labels));
        out.line(format_args!("{line}{goal}{labels}{waits}"))?;
    }
    Ok(())
}

/// Prints a task as one line.
pub fn line(task: &Task, out: &mut Output) -> Done {
    table(std::slice::from_ref(task), out)
}

/// Prints the other consequences of a command about one task: tasks that waited for it, reviews, failures of hooks.
pub fn consequences(subject: TaskId, records: &[Record], out: &mut Output) -> Done {
    tell(Some(Node::Task(subject)), records, out)
}

/// Prints the consequences of a command for every task.
pub fn all_consequences(records: &[Record], out: &mut Output) -> Done {
    tell(None, records, out)
}

fn tell(subject: Option<Node>, records: &[Record], out: &mut Output) -> Done {
    let mut messages = Messages::new();
    for record in records {
        let node = record.envelope.node;
        match &record.envelope.event {
            Event::HookError(error) if error.effect.is_some() => {}
            Event::HookError(error) => {
                messages.warning(&format!("hook `{}` failed: {}", error.hook_name, error.error));
            }
            Event::ActionError(error) => messages.warning(&format!("{} failed: {}", error.action_type, error.error)),
            _ if out.is_json() || Some(node) == subject => {}
            Event::TaskReady(_) => out.line(format_args!("{} {node} is ready", out.paint(Tone::Good, "→")))?,
            Event::TaskWaiting(_) => out.line(format_args!("{} {node} waits again", out.paint(Tone::Warning, "→")))?,
            Event::TaskBlocked(blocked) => {
                let reason = text::line(&blocked.reason).into_owned();
                out.line(format_args!("{} {node} is blocked: {reason}", out.paint(Tone::Bad, "→")))?;
            }
            Event::TaskCreated(created) => {
                let goal = text::fit(&created.goal, 100);
                out.line(format_args!("{} {node} created: {goal}", out.paint(Tone::Name, "→")))?;
            }
            Event::LeaseExpired(expired) => {
                let owner = &expired.owner;
                out.line(format_args!("{} the lease of {owner} on {node} ran out", out.paint(Tone::Warning, "→")))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Formats a moment for the width of the terminal: a narrow one gets no year, a narrower one no day.
pub fn short_moment(at: Timestamp, out: &Output) -> String {
    let at = moment(at);
    match out.columns() {
        Some(..80) => at[11..].to_owned(),
        Some(80..100) => at[5..].to_owned(),
        _ => at,
    }
}

/// Describes the outcome of a hook run in the history.
pub fn run_outcome(run: HookRunOutcome) -> (Tone, &'static str) {
    match run {
        HookRunOutcome::Ended(outcome) => outcome_words(outcome),
        HookRunOutcome::Error => (Tone::Bad, "error"),
        HookRunOutcome::Running => (Tone::Name, "is running"),
        HookRunOutcome::Left => (Tone::Warning, "was left"),
    }
}

/// Describes the outcome of a hook.
pub fn outcome_words(outcome: HookOutcome) -> (Tone, &'static str) {
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
pub fn ending_word(ending: Ending) -> (Tone, &'static str) {
    match ending {
        Ending::Completed => (Tone::Good, "complete"),
        Ending::Limit => (Tone::Warning, "ended"),
        Ending::Escalated => (Tone::Warning, "a person is needed"),
        Ending::Cancelled => (Tone::Warning, "cancelled"),
        Ending::Error => (Tone::Bad, "failed"),
    }
}

/// Describes an event in which a session takes up a task or leaves it.
pub fn of_task(record: &Record) -> Option<(Tone, String)> {
    let id = record.envelope.node;
    if record.envelope.session.is_none() || record.envelope.metadata.depth > 0 {
        return None;
    }
    Some(match &record.envelope.event {
        Event::TaskClaimed(_) => (Tone::Plain, format!("takes {id} up")),
        Event::TaskCompleted(_) => (Tone::Good, format!("{id} is completed")),
        Event::TaskBlocked(blocked) => (Tone::Warning, format!("{id} is blocked: {}", blocked.reason)),
        Event::TaskNeedsContinuation(left) => (Tone::Warning, format!("{id} is to be taken up again: {}", left.reason)),
        _ => return None,
    })
}

/// Describes the state of a session.
pub fn session_words(view: &SessionView) -> (Tone, String) {
    match (view.session.ended().filter(|_| view.session.is_over()), view.alive, &view.session.stopping) {
        (Some(ending), ..) => {
            let (tone, word) = ending_word(ending);
            (tone, word.to_owned())
        }
        _ if view.session.wanted() == Wanted::Answer => (Tone::Warning, "asks a person".to_owned()),
        (None, true, None) => (Tone::Name, "running".to_owned()),
        (None, true, Some(_)) => (Tone::Name, "ending".to_owned()),
        (None, false, None) => (Tone::Warning, "unfinished".to_owned()),
        (None, false, Some(_)) => (Tone::Warning, "unfinished, to be ended".to_owned()),
    }
}

/// Warns of obstacles in the place of files that Windlass and git read.
pub fn obstacles(project: &Project, out: &mut Output) -> Done {
    windlass_app::obstacles::find(project).iter().try_for_each(|obstacle| {
        out.line(out.paint(Tone::Warning, format!("{obstacle}: remove it, or put a file in its place")))
    })
}
