//! The views that pages ask for, loaded from the store.

use windlass_app::context::OpenedProject;
use windlass_app::views::{self, LogQuery, TaskQuery};
use windlass_app::{Failure, FailureCode};
use windlass_engine::{EventType, SessionName, TaskId, TaskState};
use windlass_store::failpoint;

use crate::page::{ScreenPage, ViewData, ViewQuery};

/// The rows of a page of tasks, and of the log. The application layer has the same limits.
const TASKS_PER_PAGE: usize = 500;
const EVENTS_PER_PAGE: usize = 1000;
const MAX_SESSIONS: usize = 100;

/// Loads the contents of a page.
pub fn load_view(opened: &OpenedProject, query: &ViewQuery) -> Result<ViewData, Failure> {
    let data = match &query.page {
        ScreenPage::Now => ViewData::Now(views::build_now_view(opened)?),
        ScreenPage::Tasks => load_tasks(opened, query)?,
        ScreenPage::Task(id) => {
            let id = parse_task(id)?;
            let (details, graph) = (views::load_task_details(opened, id)?, views::load_task_graph(opened, Some(id))?);
            ViewData::Task { details: Box::new(details), graph }
        }
        ScreenPage::Sessions => ViewData::Sessions(views::list_session_summaries(opened, MAX_SESSIONS)?),
        ScreenPage::Session(name) => {
            let session = opened.find_referenced_session(name)?;
            ViewData::Session(Box::new(views::build_session_timeline(opened, &session)?))
        }
        ScreenPage::Why(Some(name)) => ViewData::Why(views::build_why_view(opened, name)?),
        ScreenPage::Why(None) => ViewData::Empty,
        ScreenPage::Changes => ViewData::Changes(views::list_change_summaries(opened)?),
        ScreenPage::Change(task) => ViewData::Change(Box::new(views::load_change_details(opened, parse_task(task)?)?)),
        ScreenPage::Log => load_log(opened, query)?,
    };
    failpoint::pass("top.load").expect("only a test asks for a defect");
    Ok(data)
}

/// Loads the first pages of the tasks.
fn load_tasks(opened: &OpenedProject, query: &ViewQuery) -> Result<ViewData, Failure> {
    let wanted = parse_task_query(&query.filter);
    let mut page = views::list_task_summaries(opened, wanted.clone())?;
    for _ in 1..query.pages {
        let last = page.tasks.last().filter(|_| page.has_more);
        let Some(after) = last.map(|task| parse_task(&task.id)).transpose()? else { break };
        let next = views::list_task_summaries(opened, TaskQuery { after: Some(after), ..wanted.clone() })?;
        page.tasks.extend(next.tasks);
        page.has_more = next.has_more;
    }
    Ok(ViewData::Tasks(page))
}

/// Loads the newest pages of the log.
fn load_log(opened: &OpenedProject, query: &ViewQuery) -> Result<ViewData, Failure> {
    let (wanted, words) = parse_log_query(&query.filter);
    let mut page = views::read_log_page(opened, wanted.clone())?;
    let mut has_older = page.entries.len() == EVENTS_PER_PAGE;
    for _ in 1..query.pages {
        let Some(first) = page.entries.first().filter(|_| has_older) else { break };
        let older = views::read_log_page(opened, LogQuery { before: Some(first.seq), ..wanted.clone() })?;
        has_older = older.entries.len() == EVENTS_PER_PAGE;
        drop(page.entries.splice(..0, older.entries));
    }
    let is_match = |shown: &str| words.iter().all(|word| shown.contains(word));
    page.entries.retain(|entry| is_match(&format!("{} {}", entry.kind, entry.summary).to_lowercase()));
    Ok(ViewData::Log { page, has_older })
}

pub fn parse_task(id: &str) -> Result<TaskId, Failure> {
    id.parse().map_err(|_| Failure::new(FailureCode::NotFound, format!("`{id}` is no task")))
}

/// Parses a filter of tasks: words that name a state choose it, the others are a text in the goal.
pub fn parse_task_query(filter: &str) -> TaskQuery {
    let (mut states, mut words) = (Vec::new(), Vec::new());
    for word in filter.split_whitespace() {
        match word.to_lowercase().parse::<TaskState>() {
            Ok(state) => states.push(state),
            Err(_) => words.push(word),
        }
    }
    let text = Some(words.join(" ")).filter(|text| !text.is_empty());
    TaskQuery { states, text, after: None, limit: TASKS_PER_PAGE }
}

/// Parses a filter of the log: words that name a task, a type or a session choose it, the others are texts in the event.
pub fn parse_log_query(filter: &str) -> (LogQuery, Vec<String>) {
    let mut query = LogQuery { limit: EVENTS_PER_PAGE, ..LogQuery::default() };
    let mut words = Vec::new();
    for word in filter.split_whitespace() {
        if let Ok(task) = word.to_uppercase().parse::<TaskId>() {
            query.task = Some(task);
        } else if let Ok(kind) = word.parse::<EventType>() {
            query.types.push(kind);
        } else if let Some(session) = word.strip_prefix("session:").and_then(|name| name.parse::<SessionName>().ok()) {
            query.session = Some(session);
        } else {
            words.push(word.to_lowercase());
        }
    }
    (query, words)
}
