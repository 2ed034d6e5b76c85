//! The views that pages ask for, loaded from the store.

use windlass_app::context::OpenedProject;
use windlass_app::views::{self, LogQuery, TaskQuery};
use windlass_app::{Failure, FailureCode};
use windlass_engine::{EventType, SessionName, TaskId, TaskState};

use crate::page::{ScreenPage, ViewData, ViewQuery};

/// The most rows of lists.
const MAX_TASKS: usize = 500;
const MAX_SESSIONS: usize = 100;
const MAX_EVENTS: usize = 1000;

/// Loads the contents of a page.
pub fn load_view(opened: &OpenedProject, query: &ViewQuery) -> Result<ViewData, Failure> {
    Ok(match &query.page {
        ScreenPage::Now => ViewData::Now(views::build_now_view(opened)?),
        ScreenPage::Tasks => ViewData::Tasks(views::list_task_summaries(opened, parse_task_query(&query.filter))?),
        ScreenPage::Task(id) => {
            let id = parse_task(id)?;
            let details = views::load_task_details(opened, id)?;
            ViewData::Task(Box::new(details), views::load_task_graph(opened, Some(id))?)
        }
        ScreenPage::Sessions => ViewData::Sessions(views::list_session_summaries(opened, MAX_SESSIONS)?),
        ScreenPage::Session(name) => {
            let session = opened.find_referenced_session(name)?;
            ViewData::Session(views::build_session_timeline(opened, &session)?)
        }
        ScreenPage::Why(Some(name)) => ViewData::Why(views::build_why_view(opened, name)?),
        ScreenPage::Why(None) => ViewData::Empty,
        ScreenPage::Changes => ViewData::Changes(views::list_change_summaries(opened)?),
        ScreenPage::Change(task) => ViewData::Change(Box::new(views::load_change_details(opened, parse_task(task)?)?)),
        ScreenPage::Log => {
            let (query, text) = parse_log_query(&query.filter);
            let mut page = views::read_log_page(opened, query)?;
            let is_match = |shown: &str| text.iter().all(|word| shown.contains(word));
            page.entries.retain(|entry| is_match(&format!("{} {}", entry.kind, entry.summary).to_lowercase()));
            ViewData::Log(page)
        }
    })
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
    TaskQuery { states, text: Some(words.join(" ")).filter(|text| !text.is_empty()), after: None, limit: MAX_TASKS }
}

/// Parses a filter of the log: words that name a task, a type or a session choose it, the others are texts in the event.
pub fn parse_log_query(filter: &str) -> (LogQuery, Vec<String>) {
    let mut query = LogQuery { limit: MAX_EVENTS, ..LogQuery::default() };
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
