//! Requests that read: each one is a view of `windlass-app`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, Path, Query, State};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_app::answers::describe_answer_since;
use windlass_app::context::OpenedProject;
use windlass_app::views::{self, LogQuery, TaskQuery};
use windlass_app::web_access::{LinkedQuestion, PageViewer, ViewerRole};
use windlass_engine::{EventRecord, TaskId};
use windlass_hooks::SecretMask;

use crate::command_report::CommandReport;
use crate::error::RequestError;
use crate::guard::AuthenticatedViewer;
use crate::state::{ServerState, SharedState};

/// The usual and the largest number of rows.
const DEFAULT_ROWS: usize = 100;
const MAX_ROWS: usize = 500;
const DEFAULT_COST_DAYS: u16 = 30;

/// The answer to a command.
pub type Answer<T> = Result<Json<CommandReport<T>>, RequestError>;
/// An answer with text of agents, hooks or tasks.
pub type MaskedAnswer<T> = Result<MaskedJson<T>, RequestError>;
type Parameters = Query<HashMap<String, String>>;
/// The viewer of a request; absent without a login.
pub type MaybeViewer = Option<Extension<AuthenticatedViewer>>;

/// The viewer and the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViewerInfo {
    pub name: String,
    pub role: ViewerRole,
    pub project: String,
    pub project_path: String,
    pub version: String,
    /// The position of the last event.
    pub head: u64,
}

/// A JSON answer without the secrets that the configuration names.
pub struct MaskedJson<T>(T, Arc<SecretMask>);

impl<T: Serialize> IntoResponse for MaskedJson<T> {
    fn into_response(self) -> Response {
        if self.1.is_empty() {
            return Json(self.0).into_response();
        }
        let mut value = serde_json::to_value(&self.0).unwrap_or_default();
        mask_strings(&mut value, &self.1);
        Json(value).into_response()
    }
}

/// Masks every string of a value.
pub fn mask_strings(value: &mut Value, mask: &SecretMask) {
    match value {
        Value::String(text) => *text = mask.mask_text(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_strings(item, mask)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask_strings(field, mask)),
        _ => {}
    }
}

/// Refuses a request without a login.
pub fn require_viewer(viewer: MaybeViewer) -> Result<AuthenticatedViewer, RequestError> {
    viewer.map(|Extension(viewer)| viewer).ok_or_else(RequestError::not_logged_in)
}

/// Runs a view for a viewer.
async fn read_view<T: Send + 'static>(
    state: &Arc<ServerState>,
    viewer: MaybeViewer,
    view: impl FnOnce(&OpenedProject) -> Result<T, RequestError> + Send + 'static,
) -> MaskedAnswer<T> {
    require_viewer(viewer)?;
    run_masked(state, |opened| view(opened)).await
}

/// Runs some work, and masks its result or its error.
async fn run_masked<T: Send + 'static>(
    state: &Arc<ServerState>,
    work: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError> + Send + 'static,
) -> MaskedAnswer<T> {
    let masked = state.clone();
    let run = move |opened: &mut OpenedProject| {
        let (done, mask) = (work(opened), masked.mask());
        done.map(|value| MaskedJson(value, mask.clone())).map_err(|error| error.mask_secrets(&mask))
    };
    state.pool().run(run).await
}

/// Describes a viewer and the project.
pub fn describe_viewer(state: &ServerState, viewer: PageViewer) -> ViewerInfo {
    let (project, project_path) = state.project.clone();
    let (head, version) = (state.head.borrow().0, env!("CARGO_PKG_VERSION").to_owned());
    ViewerInfo { name: viewer.name, role: viewer.role, project, project_path, version, head }
}

pub async fn get_viewer(State(state): SharedState, viewer: MaybeViewer) -> Result<Json<ViewerInfo>, RequestError> {
    let AuthenticatedViewer { viewer, .. } = require_viewer(viewer)?;
    Ok(Json(describe_viewer(&state, viewer)))
}

pub async fn get_now(State(state): SharedState, viewer: MaybeViewer) -> MaskedAnswer<views::NowView> {
    read_view(&state, viewer, |opened| Ok(views::build_now_view(opened)?)).await
}

pub async fn get_tasks(
    State(state): SharedState,
    viewer: MaybeViewer,
    Query(given): Parameters,
) -> MaskedAnswer<views::TaskPage> {
    let query = TaskQuery {
        states: parse_list(&given, "state")?,
        text: given.get("text").filter(|text| !text.is_empty()).cloned(),
        after: parse_value(&given, "after")?,
        limit: parse_limit(&given)?,
    };
    read_view(&state, viewer, |opened| Ok(views::list_task_summaries(opened, query)?)).await
}

pub async fn get_task(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(id): Path<String>,
) -> MaskedAnswer<views::TaskDetails> {
    let id = parse_task(&id)?;
    read_view(&state, viewer, move |opened| Ok(views::load_task_details(opened, id)?)).await
}

pub async fn get_task_graph(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(id): Path<String>,
) -> MaskedAnswer<views::TaskGraphView> {
    let id = parse_task(&id)?;
    read_view(&state, viewer, move |opened| Ok(views::load_task_graph(opened, Some(id))?)).await
}

pub async fn get_graph(State(state): SharedState, viewer: MaybeViewer) -> MaskedAnswer<views::TaskGraphView> {
    read_view(&state, viewer, |opened| Ok(views::load_task_graph(opened, None)?)).await
}

pub async fn get_sessions(
    State(state): SharedState,
    viewer: MaybeViewer,
    Query(given): Parameters,
) -> MaskedAnswer<views::SessionPage> {
    let limit = parse_limit(&given)?;
    read_view(&state, viewer, move |opened| Ok(views::list_session_summaries(opened, limit)?)).await
}

pub async fn get_session(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(name): Path<String>,
) -> MaskedAnswer<views::SessionTimeline> {
    read_view(&state, viewer, move |opened| {
        let session = opened.find_referenced_session(&name)?;
        Ok(views::build_session_timeline(opened, &session)?)
    })
    .await
}

pub async fn get_why(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(name): Path<String>,
) -> MaskedAnswer<views::WhyView> {
    read_view(&state, viewer, move |opened| Ok(views::build_why_view(opened, &name)?)).await
}

pub async fn get_changes(State(state): SharedState, viewer: MaybeViewer) -> MaskedAnswer<Vec<views::ChangeSummary>> {
    read_view(&state, viewer, |opened| Ok(views::list_change_summaries(opened)?)).await
}

pub async fn get_change(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(id): Path<String>,
) -> MaskedAnswer<views::ChangeDetails> {
    let id = parse_task(&id)?;
    read_view(&state, viewer, move |opened| Ok(views::load_change_details(opened, id)?)).await
}

pub async fn get_hooks(State(state): SharedState, viewer: MaybeViewer) -> MaskedAnswer<views::HookPage> {
    read_view(&state, viewer, |opened| Ok(views::load_hook_page(opened)?)).await
}

pub async fn get_cost(
    State(state): SharedState,
    viewer: MaybeViewer,
    Query(given): Parameters,
) -> MaskedAnswer<views::CostReport> {
    let days = parse_value(&given, "days")?.unwrap_or(DEFAULT_COST_DAYS);
    read_view(&state, viewer, move |opened| Ok(views::build_cost_report(opened, days)?)).await
}

pub async fn get_log(
    State(state): SharedState,
    viewer: MaybeViewer,
    Query(given): Parameters,
) -> MaskedAnswer<views::LogPage> {
    let query = LogQuery {
        before: parse_value(&given, "before")?,
        limit: parse_limit(&given)?,
        types: parse_list(&given, "type")?,
        task: parse_value(&given, "task")?,
        session: parse_value(&given, "session")?,
    };
    read_view(&state, viewer, |opened| Ok(views::read_log_page(opened, query)?)).await
}

pub async fn get_log_event(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(seq): Path<String>,
) -> MaskedAnswer<EventRecord> {
    let seq: u64 = seq.parse().map_err(|_| RequestError::bad_request("a position of the log is a number"))?;
    read_view(&state, viewer, move |opened| Ok(views::read_log_event(opened, seq)?)).await
}

/// A question with the project that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionView {
    pub project: String,
    #[serde(flatten)]
    pub item: views::WaitingItem,
}

/// Shows one question to the holder of its link, without a login.
pub async fn get_question(State(state): SharedState, Path(token): Path<String>) -> MaskedAnswer<QuestionView> {
    let (access, project) = (state.access().clone(), state.project.0.clone());
    run_masked(&state, move |opened| {
        let question = access.find_question(&token)?.ok_or_else(used_link)?;
        Ok(QuestionView { project, item: find_linked_item(opened, &question)? })
    })
    .await
}

/// Finds the question of a link, as long as it waits for an answer. After that, a holder of the link sees who answered it, but no
/// text: the link is no login.
pub fn find_linked_item(opened: &OpenedProject, question: &LinkedQuestion) -> Result<views::WaitingItem, RequestError> {
    let item = views::find_waiting_item(opened, &question.subject)?;
    match item.filter(|item| item.since <= question.created_at && !item.answers.is_empty()) {
        Some(item) => Ok(item),
        None => Err(match describe_answer_since(opened, &question.subject, question.created_at)? {
            Some(answer) => used_link().with_cause(&answer),
            None => used_link(),
        }),
    }
}

/// Returns the error for a link whose question has an answer.
pub fn used_link() -> RequestError {
    RequestError::not_found("this link was used, has expired, or its question has an answer")
}

pub fn parse_task(text: &str) -> Result<TaskId, RequestError> {
    text.parse().map_err(|_| RequestError::bad_request("a task is named like T3"))
}

fn parse_limit(given: &HashMap<String, String>) -> Result<usize, RequestError> {
    Ok(parse_value(given, "limit")?.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS))
}

fn parse_value<T: std::str::FromStr>(given: &HashMap<String, String>, name: &str) -> Result<Option<T>, RequestError> {
    let text = given.get(name).filter(|text| !text.is_empty());
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| RequestError::bad_request(&format!("the parameter `{name}` is not valid")))
}

fn parse_list<T: std::str::FromStr>(given: &HashMap<String, String>, name: &str) -> Result<Vec<T>, RequestError> {
    let words = given.get(name).map(String::as_str).unwrap_or_default().split(',').filter(|word| !word.is_empty());
    let parsed: Result<Vec<T>, _> = words.map(str::parse).collect();
    parsed.map_err(|_| RequestError::bad_request(&format!("the parameter `{name}` is not valid")))
}
