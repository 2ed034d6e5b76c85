//! The rows of each screen, built from the views of `windlass-app`.
//!
//! ```text
//! ViewData, RowContext ─► ScreenRow, …
//! ```
//!
//! Not here: the state of the program (`model`), colours and places on the terminal (`view`).

mod change;
mod log;
mod now;
mod session;
mod task;
mod task_graph;
mod why;

use std::collections::BTreeSet;

use windlass_app::time_format;
use windlass_app::tone::TextTone;
use windlass_engine::{TaskState, Timestamp};

use crate::page::{RowSubject, ScreenPage, ViewData};
use crate::row::{RowList, RowTarget, ScreenRow};

/// What the rows depend on besides the data.
#[derive(Debug, Clone, Copy)]
pub struct RowContext<'a> {
    pub width: u16,
    /// The time now, in milliseconds.
    pub now: i64,
    /// The targets that the person has folded or unfolded.
    pub toggled: &'a BTreeSet<RowTarget>,
    /// Whether no more pages of a long list are loaded.
    pub is_full: bool,
}

impl RowContext<'_> {
    /// Returns how long ago a time was.
    fn age(self, at: i64) -> String {
        time_format::format_time_between(Timestamp::from_millis(at), Timestamp::from_millis(self.now))
    }

    fn is_toggled(self, target: &RowTarget) -> bool {
        self.toggled.contains(target)
    }
}

/// Builds the rows of a page.
pub fn build_rows(data: &ViewData, context: RowContext<'_>) -> Vec<ScreenRow> {
    let mut list = RowList::new(context.width);
    match data {
        ViewData::Now(view) => now::add_rows(&mut list, view, context),
        ViewData::Tasks(page) => task::add_list_rows(&mut list, page, context),
        ViewData::Task { details, graph } => task::add_detail_rows(&mut list, details, graph, context),
        ViewData::Sessions(page) => session::add_list_rows(&mut list, page, context),
        ViewData::Session(timeline) => session::add_timeline_rows(&mut list, timeline, context),
        ViewData::Why(view) => why::add_rows(&mut list, view, context),
        ViewData::Empty => why::add_empty_rows(&mut list),
        ViewData::Changes(changes) => change::add_list_rows(&mut list, changes, context),
        ViewData::Change(details) => change::add_detail_rows(&mut list, details, context),
        ViewData::Log { page, has_older } => log::add_rows(&mut list, page, *has_older, context),
    }
    list.rows
}

/// Returns whether a page shows a running process.
pub fn shows_running_process(data: &ViewData) -> bool {
    match data {
        ViewData::Now(view) => view.working.iter().any(|session| session.is_running),
        ViewData::Tasks(page) => page.tasks.iter().any(|task| task.session.is_some() && !task.is_deserted),
        ViewData::Task { details, .. } => details.sessions.iter().any(|session| session.is_running),
        ViewData::Sessions(page) => page.sessions.iter().any(|session| session.is_running),
        ViewData::Session(timeline) => timeline.session.is_running,
        ViewData::Why(_) | ViewData::Empty | ViewData::Changes(_) | ViewData::Change(_) | ViewData::Log { .. } => false,
    }
}

/// Returns the page that Enter opens at a target, if it opens one.
pub fn find_opened_page(data: &ViewData, target: &RowTarget) -> Option<ScreenPage> {
    match (target, data) {
        (RowTarget::Waiting(name), ViewData::Now(view)) => now::find_waiting_page(view, name),
        (RowTarget::Task(id), _) => Some(ScreenPage::Task(id.clone())),
        (RowTarget::Session(name), _) => Some(ScreenPage::Session(name.clone())),
        (RowTarget::Change(task), _) => Some(ScreenPage::Change(task.clone())),
        (RowTarget::Event(seq), ViewData::Log { page, .. }) => log::find_entry_page(page, *seq),
        _ => None,
    }
}

/// Returns what the commands of a person are about at a target.
pub fn find_subject(data: &ViewData, target: Option<&RowTarget>) -> RowSubject {
    match data {
        ViewData::Now(view) => now::find_subject(view, target),
        ViewData::Tasks(page) => task::find_list_subject(page, target),
        ViewData::Task { details, graph } => task::find_detail_subject(details, graph, target),
        ViewData::Sessions(page) => session::find_list_subject(page, target),
        ViewData::Session(timeline) => session::find_timeline_subject(timeline),
        ViewData::Why(view) => why::find_subject(view),
        ViewData::Empty => RowSubject::default(),
        ViewData::Changes(changes) => change::find_list_subject(changes, target),
        ViewData::Change(details) => change::find_detail_subject(details),
        ViewData::Log { page, .. } => log::find_subject(page, target),
    }
}

/// Returns the target of the event that a row names as a cause.
pub fn find_cause(data: &ViewData, target: &RowTarget) -> Option<RowTarget> {
    match (data, target) {
        (ViewData::Why(view), RowTarget::Event(seq)) => why::find_cause(view, *seq),
        (ViewData::Why(_), RowTarget::Cause(seq)) => Some(*seq),
        (ViewData::Session(timeline), RowTarget::Event(seq)) => session::find_cause(timeline, *seq),
        _ => None,
    }
    .map(RowTarget::Event)
}

/// Formats the time of day of an event.
fn format_clock(at: i64) -> String {
    time_format::format_local_time(Timestamp::from_millis(at)).split_off(11)
}

/// Returns the mark of a state, which also shows it without colours.
fn tone_mark(tone: TextTone) -> &'static str {
    match tone {
        TextTone::Good => "✓",
        TextTone::Bad => "✗",
        TextTone::Warning => "!",
        TextTone::Name | TextTone::Strong => "●",
        TextTone::Plain | TextTone::Faint => "·",
    }
}

/// Returns the mark of a task's state.
fn state_mark(state: TaskState) -> &'static str {
    match state {
        TaskState::Completed => "✓",
        TaskState::Failed => "✗",
        TaskState::Blocked => "!",
        TaskState::Ready | TaskState::NeedsContinuation => "○",
        TaskState::Created | TaskState::Deleted => "·",
        TaskState::Active | TaskState::Submitted => "●",
    }
}

/// Returns the first line of a text.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the mark of something that can be folded.
fn fold_mark(is_open: bool) -> &'static str {
    if is_open { "▾ " } else { "▸ " }
}

/// Formats an amount of money and tokens; empty if there is none.
fn format_usage(usage: &windlass_app::views::UsageTotals) -> String {
    let tokens = usage.input_tokens + usage.output_tokens;
    let cost = usage.cost_usd.map(|cost| format!("${cost:.2}"));
    let tokens = (tokens > 0).then(|| match tokens {
        0..1000 => format!("{tokens} tokens"),
        1000..1_000_000 => format!("{}k tokens", tokens / 1000),
        _ => format!("{}.{}M tokens", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    });
    tokens.into_iter().chain(cost).collect::<Vec<_>>().join(" · ")
}
