//! The log as it grows: one row for each event.

use windlass_app::tone::TextTone;
use windlass_app::views::{LogEntry, LogPage};

use super::{RowContext, format_clock};
use crate::page::{RowSubject, ScreenPage};
use crate::row::{RowList, RowTarget, ScreenRow};

pub fn add_rows(list: &mut RowList, page: &LogPage, has_older: bool, context: RowContext<'_>) {
    if has_older {
        let older = match context.is_full {
            true => "… older events: filter to see more",
            false => "… older events: ↑ at the first one loads them",
        };
        list.push_note(TextTone::Faint, older);
    }
    for entry in &page.entries {
        list.push(entry_row(entry));
    }
    if page.entries.is_empty() {
        list.push_note(TextTone::Faint, "no events match the filter");
    }
}

fn entry_row(entry: &LogEntry) -> ScreenRow {
    let subject = entry.task.as_deref().or(entry.session.as_deref()).unwrap_or_default();
    // What hooks and actions caused is indented below its cause.
    let indent = " ".repeat(usize::try_from(entry.depth.min(4)).unwrap_or_default());
    ScreenRow::new(Some(RowTarget::Event(entry.seq)))
        .with(TextTone::Faint, format!("{} ", format_clock(entry.at)))
        .with_column(TextTone::Name, subject, 6)
        .with(entry.tone, format!(" {indent}{} ", entry.kind))
        .with(TextTone::Plain, &entry.summary)
}

fn find_entry(page: &LogPage, seq: u64) -> Option<&LogEntry> {
    page.entries.iter().find(|entry| entry.seq == seq)
}

/// Returns the page about the subject of an event.
pub fn find_entry_page(page: &LogPage, seq: u64) -> Option<ScreenPage> {
    let entry = find_entry(page, seq)?;
    match (&entry.session, &entry.task) {
        (Some(session), _) => Some(ScreenPage::Session(session.clone())),
        (None, Some(task)) => Some(ScreenPage::Task(task.clone())),
        (None, None) => None,
    }
}

pub fn find_subject(page: &LogPage, target: Option<&RowTarget>) -> RowSubject {
    let Some(RowTarget::Event(seq)) = target else { return RowSubject::default() };
    let entry = find_entry(page, *seq);
    entry
        .map(|entry| RowSubject { task: entry.task.clone(), session: entry.session.clone(), ..RowSubject::default() })
        .unwrap_or_default()
}
