//! The home screen: what needs a person, who works on what, and what is next.

use windlass_app::tone::TextTone;
use windlass_app::views::{NowView, SessionSummary, WaitingItem, WaitingKind};

use super::session::{describe_progress, describe_resumption, session_subject};
use super::{RowContext, first_line, format_usage, task, tone_mark};
use crate::page::{RowSubject, ScreenPage};
use crate::row::{RowList, RowTarget, ScreenRow};

/// The lines of evidence that an item shows without being opened.
const MAX_EVIDENCE_ROWS: usize = 3;

pub fn add_rows(list: &mut RowList, view: &NowView, context: RowContext<'_>) {
    for warning in &view.warnings {
        list.push_note(TextTone::Warning, &format!("! {warning}"));
    }
    list.push_heading(&match view.waiting.len() {
        0 => "Nothing needs you".to_owned(),
        count => format!("Needs you ({count})"),
    });
    for item in &view.waiting {
        add_waiting_rows(list, item, context);
    }
    list.push_heading(&match view.working.len() {
        0 => "Nothing is running".to_owned(),
        count => format!("At work ({count})"),
    });
    for session in &view.working {
        add_working_rows(list, session, context);
    }
    if view.working.is_empty() {
        list.push_note(TextTone::Faint, "  windlass run starts an agent on the next task");
    }
    if !view.next.is_empty() {
        list.push_heading("Next");
        for summary in &view.next {
            list.push(task::summary_row(summary, task::MIN_STATE_COLUMNS, context));
        }
    }
    let counts: Vec<String> = view.counts.iter().map(|count| format!("{} {}", count.count, count.state)).collect();
    if !counts.is_empty() {
        list.push_heading("Tasks");
        list.push_note(TextTone::Plain, &format!("  {}", counts.join(" · ")));
    }
    let today = format_usage(&view.today);
    if !today.is_empty() {
        list.push_note(TextTone::Plain, &format!("  today: {today}"));
    }
}

fn add_waiting_rows(list: &mut RowList, item: &WaitingItem, context: RowContext<'_>) {
    let target = RowTarget::Waiting(waiting_name(item).to_owned());
    let mark = match item.kind {
        WaitingKind::GateQuestion => "? ",
        WaitingKind::BlockedTask => "! ",
        WaitingKind::FailedTask => "✗ ",
        WaitingKind::OpenChange => "± ",
    };
    let name = item.task.as_deref().unwrap_or_default();
    let row = ScreenRow::new(Some(target)).with(item.tone, mark).with(TextTone::Name, format!("{name:<4} "));
    let row = row.with(TextTone::Strong, first_line(&item.title));
    list.push(if item.since > 0 { row.with_right(TextTone::Faint, context.age(item.since)) } else { row });
    list.push_wrapped(None, "       ", TextTone::Plain, &item.reason);
    for line in item.evidence.iter().take(MAX_EVIDENCE_ROWS) {
        list.push(ScreenRow::default().with(TextTone::Faint, "       │ ").with(TextTone::Plain, line));
    }
    if item.evidence.len() > MAX_EVIDENCE_ROWS {
        let more = item.evidence.len() - MAX_EVIDENCE_ROWS;
        let lines = if more == 1 { "line" } else { "lines" };
        list.push(ScreenRow::default().with(TextTone::Faint, format!("       │ … {more} more {lines}")));
    }
}

fn add_working_rows(list: &mut RowList, session: &SessionSummary, context: RowContext<'_>) {
    let target = RowTarget::Session(session.name.clone());
    let task = session.task.as_deref().unwrap_or_default();
    let mark = if session.is_running { "●" } else { tone_mark(session.tone) };
    let tone = if session.is_running { TextTone::Good } else { session.tone };
    let row = ScreenRow::new(Some(target)).with(tone, format!("{mark} ")).with(TextTone::Name, format!("{task:<4} "));
    let row = row.with(TextTone::Strong, first_line(&session.goal));
    list.push(row.with_right(TextTone::Faint, context.age(session.started_at)));
    if let Some(line) = describe_resumption(session) {
        list.push_wrapped(None, "       ", TextTone::Warning, &line);
    }
    let awaited = session.waits_for.as_deref().map(|awaited| format!(" · {awaited}")).unwrap_or_default();
    let said = format!("{} · {}{awaited}", session.agent, describe_progress(session));
    list.push_wrapped(None, "       ", TextTone::Faint, &said);
}

/// Returns the name under which an item is found: its task, or its session.
fn waiting_name(item: &WaitingItem) -> &str {
    match item.kind {
        WaitingKind::GateQuestion => item.session.as_deref().or(item.task.as_deref()),
        _ => item.task.as_deref().or(item.session.as_deref()),
    }
    .unwrap_or_default()
}

fn find_waiting_item<'v>(view: &'v NowView, name: &str) -> Option<&'v WaitingItem> {
    view.waiting.iter().find(|item| waiting_name(item) == name)
}

/// Returns the page with everything about an item that needs a person.
pub fn find_waiting_page(view: &NowView, name: &str) -> Option<ScreenPage> {
    let item = find_waiting_item(view, name)?;
    Some(match (item.kind, &item.session, &item.task) {
        (WaitingKind::GateQuestion, Some(session), _) => ScreenPage::Session(session.clone()),
        (WaitingKind::OpenChange, _, Some(task)) => ScreenPage::Change(task.clone()),
        (_, _, Some(task)) => ScreenPage::Task(task.clone()),
        (_, Some(session), None) => ScreenPage::Session(session.clone()),
        (_, None, None) => return None,
    })
}

pub fn find_subject(view: &NowView, target: Option<&RowTarget>) -> RowSubject {
    match target {
        Some(RowTarget::Waiting(name)) => find_waiting_item(view, name).map(|item| RowSubject {
            task: item.task.clone(),
            session: item.session.clone(),
            answers: Some(item.answers.clone()),
            question: item.reason.clone(),
            message: item.message.clone(),
            can_merge: item.can_merge,
            landed_base: None,
            merge_push: None,
            is_over: false,
        }),
        Some(RowTarget::Session(name)) => {
            let session = view.working.iter().find(|session| session.name == *name);
            session.map(session_subject)
        }
        Some(RowTarget::Task(id)) => view.next.iter().find(|task| task.id == *id).map(task::task_subject),
        _ => None,
    }
    .unwrap_or_default()
}
