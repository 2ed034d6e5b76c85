//! An event as a line: its position, time, subject, type, and a summary.

use windlass_app::event_text::summarize_event;
use windlass_engine::{EventRecord, EventSubject};
use windlass_text as text;

use super::format_short_moment;
use crate::output::{CommandResult, Output, TextTone};

/// With fewer columns beside the head, the text begins in the next row.
const MIN_TEXT_COLUMNS: usize = 30;

/// Prints an event as one line.
pub fn print_event(record: &EventRecord, out: &mut Output) -> CommandResult {
    let (head, used) = format_event_head(record, out);
    let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used));
    out.print_line(format!("{head}{}", text::fit_to_width(&summarize_event(record), room)).trim_end())
}

/// Formats an event with a text as rows. The text wraps at `indent`.
pub fn format_event_rows(record: &EventRecord, tone: TextTone, what: &str, indent: usize, out: &Output) -> Vec<String> {
    let (head, used) = format_event_head(record, out);
    let columns = out.columns().unwrap_or(usize::MAX);
    let below = columns.saturating_sub(indent).max(MIN_TEXT_COLUMNS);
    // A column of a few letters is hard to read.
    let rows = match columns.saturating_sub(used) {
        room @ ..MIN_TEXT_COLUMNS if text::display_width(what) > room => {
            [vec![String::new()], text::wrap_to_width(what, below, below)].concat()
        }
        room => text::wrap_to_width(what, room, below),
    };
    let row = |(number, row): (usize, &String)| match number {
        0 => format!("{head}{}", out.paint(tone, row)).trim_end().to_owned(),
        _ => format!("{}{}", " ".repeat(indent), out.paint(tone, row)),
    };
    rows.iter().enumerate().map(row).collect()
}

/// Formats the beginning of an event's line, and returns its width.
fn format_event_head(record: &EventRecord, out: &Output) -> (String, usize) {
    let node = match record.envelope.node {
        EventSubject::System => String::new(),
        EventSubject::Task(id) => id.to_string(),
    };
    let depth = usize::from(record.envelope.metadata.depth);
    let kind = format!("{}{}", "  ".repeat(depth.min(4)), record.envelope.event.shown_type_name());
    let at = format_short_moment(record.envelope.timestamp, out);
    let used = 6 + 2 + at.len() + 2 + 6 + 1 + text::display_width(&kind).max(24) + 2;
    let head = format!(
        "{}  {}  {} {}  ",
        out.paint(TextTone::Faint, format_args!("{:>6}", record.seq.0)),
        out.paint(TextTone::Faint, &at),
        out.paint(TextTone::Strong, text::pad_to_width(&node, 6)),
        out.paint(TextTone::Name, text::pad_to_width(&kind, 24)),
    );
    (head, used)
}
