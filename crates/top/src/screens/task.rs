//! Tasks: the list, and one task with the graph around it.

use windlass_app::tone::TextTone;
use windlass_app::views::{TaskDetails, TaskGraphView, TaskPage, TaskSummary};

use super::session::{list_row, session_subject};
use super::task_graph::add_graph_rows;
use super::{RowContext, first_line, state_mark};
use crate::page::RowSubject;
use crate::row::{RowList, RowTarget, ScreenRow};

/// The columns of a state. Long ones are cut on a narrow terminal.
pub const MIN_STATE_COLUMNS: usize = 9;
const MAX_STATE_COLUMNS: usize = 18;
/// The width from which lists have room for long states and ages.
const WIDE_LIST: u16 = 90;

pub fn add_list_rows(list: &mut RowList, page: &TaskPage, context: RowContext<'_>) {
    let most = if context.width >= WIDE_LIST { MAX_STATE_COLUMNS } else { MIN_STATE_COLUMNS };
    let columns = page.tasks.iter().map(|task| task.state.name().len()).max().unwrap_or_default();
    let columns = columns.clamp(MIN_STATE_COLUMNS, most);
    for task in &page.tasks {
        list.push(summary_row(task, columns, context));
    }
    if page.tasks.is_empty() {
        list.push_note(TextTone::Faint, "no open tasks; / completed lists what is done, windlass task add adds one");
    }
    if page.has_more {
        let more = match context.is_full {
            true => "… more tasks: filter to see more",
            false => "… more tasks: ↓ at the last one loads them",
        };
        list.push_note(TextTone::Faint, more);
    }
}

/// Returns the row of a task in a list.
pub fn summary_row(task: &TaskSummary, state_columns: usize, context: RowContext<'_>) -> ScreenRow {
    let row = ScreenRow::new(Some(RowTarget::Task(task.id.clone())))
        .with(task.tone, format!("{} ", state_mark(task.state)))
        .with(TextTone::Name, format!("{:<4} ", task.id))
        .with_column(task.tone, task.state.name(), state_columns)
        .with(TextTone::Faint, format!(" P{} ", task.priority))
        .with(TextTone::Plain, first_line(&task.goal));
    let mut right = Vec::new();
    right.extend(task.is_deserted.then(|| "no process runs it".to_owned()));
    right.extend(task.has_change.then(|| "±".to_owned()));
    right.extend((task.open_dependencies > 0).then(|| format!("waits for {}", task.open_dependencies)));
    right.extend((context.width >= WIDE_LIST).then(|| context.age(task.updated_at)));
    if right.is_empty() { row } else { row.with_right(TextTone::Faint, right.join("  ")) }
}

/// Adds the rows of a task, with its question if it waits for an answer.
pub fn add_detail_rows(list: &mut RowList, details: &TaskDetails, graph: &TaskGraphView, context: RowContext<'_>) {
    let task = &details.task;
    let focus = RowTarget::Task(task.id.clone());
    let head = ScreenRow::new(None).with(TextTone::Name, format!("{} ", task.id)).with(task.tone, task.state.name());
    let kind =
        task.kind.iter().chain(&task.labels).fold(format!("P{}", task.priority), |all, next| format!("{all} · {next}"));
    list.push(
        head.with(TextTone::Faint, format!("  {kind}")).with_right(TextTone::Faint, context.age(task.updated_at)),
    );
    list.push_wrapped(None, "", TextTone::Strong, &task.goal);
    if let Some(question) = details.question.as_ref().filter(|question| !question.reason.is_empty()) {
        list.push_heading("Waits for your decision");
        list.push_wrapped(Some(&RowTarget::Text(3001)), "", TextTone::Warning, &question.reason);
    }
    list.push_heading("Graph");
    add_graph_rows(list, graph, &focus);
    if !details.facts.is_empty() || details.next_command.is_some() {
        list.push_heading("Facts");
    }
    for (number, fact) in details.facts.iter().enumerate() {
        list.push_labelled(Some(&RowTarget::Text(number)), &fact.label, &fact.text);
    }
    if let Some(command) = &details.next_command {
        list.push_labelled(Some(&RowTarget::Text(details.facts.len())), "next", command);
    }
    if let Some(message) = details.question.as_ref().and_then(|question| question.message.as_ref()) {
        list.push_heading("The agent's last message");
        list.push_wrapped(Some(&RowTarget::Text(3000)), "", TextTone::Plain, message);
    }
    if let Some(description) = details.description.as_deref().filter(|text| !text.trim().is_empty()) {
        list.push_heading("Description");
        list.push_wrapped(Some(&RowTarget::Text(1000)), "", TextTone::Plain, description);
    }
    if !details.sessions.is_empty() {
        list.push_heading("Sessions");
    }
    for session in &details.sessions {
        list.push(list_row(session, context));
    }
    if !details.notes.is_empty() {
        list.push_heading("Notes");
    }
    for (number, note) in details.notes.iter().enumerate() {
        let target = RowTarget::Text(2000 + number);
        list.push_wrapped(Some(&target), "", TextTone::Faint, &format!("{} {}", note.author, note.kind));
        list.push_wrapped(Some(&target), "  ", TextTone::Plain, &note.text);
    }
}

pub fn task_subject(task: &TaskSummary) -> RowSubject {
    RowSubject {
        task: Some(task.id.clone()),
        session: task.session.clone(),
        question: task.goal.clone(),
        ..RowSubject::default()
    }
}

pub fn find_list_subject(page: &TaskPage, target: Option<&RowTarget>) -> RowSubject {
    let Some(RowTarget::Task(id)) = target else { return RowSubject::default() };
    page.tasks.iter().find(|task| task.id == *id).map(task_subject).unwrap_or_default()
}

pub fn find_detail_subject(details: &TaskDetails, graph: &TaskGraphView, target: Option<&RowTarget>) -> RowSubject {
    match target {
        Some(RowTarget::Task(id)) if *id != details.task.id => {
            graph.tasks.iter().find(|task| task.id == *id).map(task_subject)
        }
        Some(RowTarget::Session(name)) => {
            details.sessions.iter().find(|session| session.name == *name).map(session_subject)
        }
        _ => None,
    }
    .unwrap_or_else(|| {
        let subject = RowSubject { answers: Some(details.answers.clone()), ..task_subject(&details.task) };
        subject.with_question(details.question.as_ref())
    })
}
