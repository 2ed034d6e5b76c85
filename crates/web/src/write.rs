//! Requests that change something: each one is an ordinary command of the viewer.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_app::answer_choice::AnswerChoice;
use windlass_app::answers::{AnswerRequest, describe_last_answer, submit_answer};
use windlass_app::changes::{self, ChangeRecord, ChangeState};
use windlass_app::context::OpenedProject;
use windlass_app::session_commands;
use windlass_app::views::TaskSummary;
use windlass_app::{Failure, FailureCode};
use windlass_engine::{Authority, Command, EdgeKind, Event, NewTask, TaskId, TaskPatch, TaskResolution, TaskState};
use windlass_runner::MergeChecks;

use crate::body::JsonBody;
use crate::command_report::run_with_notices;
use crate::error::RequestError;
use crate::guard::AuthenticatedViewer;
use crate::pool::run_blocking;
use crate::read::{Answer, MaybeViewer, describe_viewer, find_linked_item, parse_task, used_link};
use crate::role_check::{AnsweringViewer, ManagingViewer};
use crate::state::{ServerState, SharedState};

/// An answer without contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EmptyObject {}

/// Runs a command under a person's name.
pub async fn run_command_as<T: Send + 'static>(
    state: &Arc<ServerState>,
    name: String,
    command: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError> + Send + 'static,
) -> Answer<T> {
    let shared = state.clone();
    let work = move |opened: &mut OpenedProject| {
        opened.person = Some(name);
        run_with_notices(&shared, opened, command)
    };
    state.pool().run(work).await.map(Json)
}

fn execute(opened: &mut OpenedProject, command: &Command) -> Result<EmptyObject, RequestError> {
    execute_as(opened, command, Authority::Person)
}

fn execute_as(
    opened: &mut OpenedProject,
    command: &Command,
    authority: Authority,
) -> Result<EmptyObject, RequestError> {
    opened.execute_command(command, authority)?;
    Ok(EmptyObject {})
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginBody {
    pub code: String,
}

/// Exchanges a one-time code for a cookie.
pub async fn log_in(State(state): SharedState, JsonBody(body): JsonBody<LoginBody>) -> Result<Response, RequestError> {
    let access = state.access().clone();
    let Some((secret, viewer)) = run_blocking(move || Ok(access.redeem_code(&body.code)?)).await? else {
        let hint = "a code works once and for a short time; `windlass serve invite NAME` prints a new link";
        return Err(RequestError::new(StatusCode::UNAUTHORIZED, "login", "this code is not valid", hint));
    };
    let cookie = format!(
        "{}={}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=2592000",
        state.access().cookie_name(),
        secret.text()
    );
    let info = describe_viewer(&state, viewer);
    Ok(([(SET_COOKIE, cookie)], Json(info)).into_response())
}

/// Ends the login of this viewer.
pub async fn log_out(State(state): SharedState, viewer: MaybeViewer) -> Result<Response, RequestError> {
    if let Some(Extension(AuthenticatedViewer { secret, .. })) = viewer {
        let access = state.access().clone();
        run_blocking(move || Ok(access.remove_login(&secret)?)).await?;
    }
    let cookie = format!("{}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0", state.access().cookie_name());
    Ok(([(SET_COOKIE, cookie)], Json(EmptyObject {})).into_response())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerBody {
    /// A task, or a session that asks.
    pub subject: String,
    pub answer: AnswerChoice,
    #[serde(default)]
    pub text: Option<String>,
}

pub async fn answer(
    State(state): SharedState,
    AnsweringViewer(viewer): AnsweringViewer,
    JsonBody(body): JsonBody<AnswerBody>,
) -> Answer<SessionOutcome> {
    run_command_as(&state, viewer.name, move |opened| give_answer(opened, body.subject, body.answer.0, body.text)).await
}

fn give_answer(
    opened: &mut OpenedProject,
    subject: String,
    answer: TaskResolution,
    text: Option<String>,
) -> Result<SessionOutcome, RequestError> {
    submit_and_describe(opened, &subject, answer, text)
        .map_err(|failure| explain_refused_answer(opened, &subject, failure))
}

fn submit_and_describe(
    opened: &mut OpenedProject,
    subject: &str,
    answer: TaskResolution,
    text: Option<String>,
) -> Result<SessionOutcome, Failure> {
    let request = AnswerRequest { subject: subject.to_owned(), answer, text: nonblank(text) };
    let report = submit_answer(opened, request)?;
    Ok(SessionOutcome { outcome: report.describe_outcome(opened) })
}

/// Adds the answer that came first to the refusal of a second one.
fn explain_refused_answer(opened: &OpenedProject, subject: &str, failure: Failure) -> RequestError {
    let is_refused = failure.code == FailureCode::Refused && failure.causes.is_empty();
    let answer = if is_refused { describe_last_answer(opened, subject).ok().flatten() } else { None };
    let error = RequestError::from(failure);
    match answer {
        Some(answer) => error.with_cause(&answer),
        None => error,
    }
}

fn answer_task(
    opened: &mut OpenedProject,
    id: TaskId,
    answer: TaskResolution,
    text: Option<String>,
) -> Result<EmptyObject, RequestError> {
    give_answer(opened, id.to_string(), answer, text).map(|_| EmptyObject {})
}

fn nonblank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuestionAnswerBody {
    pub answer: AnswerChoice,
    #[serde(default)]
    pub text: Option<String>,
}

/// Answers one question with its link, without a login. The link ends with the answer.
pub async fn answer_question(
    State(state): SharedState,
    Path(token): Path<String>,
    JsonBody(body): JsonBody<QuestionAnswerBody>,
) -> Answer<SessionOutcome> {
    let access = state.access().clone();
    run_command_as(&state, "question link".to_owned(), move |opened| {
        let question = access.find_question(&token)?.ok_or_else(used_link)?;
        let item = find_linked_item(opened, &question)?;
        if !item.answers.contains(&body.answer) {
            let answers: Vec<&str> = item.answers.iter().map(|answer| answer.name()).collect();
            return Err(RequestError::bad_request(&format!("the answers are {}", answers.join(", "))));
        }
        // The engine takes one answer to a question, so the second of two people gets its refusal. It does not name the first
        // answer: the link is no login.
        let done = submit_and_describe(opened, &question.subject, body.answer.0, body.text)?;
        access.redeem_question(&token)?;
        Ok(done)
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SayBody {
    pub session: String,
    pub text: String,
}

/// The outcome of an answer, or of another command about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOutcome {
    /// A sentence about what happens now.
    pub outcome: String,
}

pub async fn say(
    State(state): SharedState,
    AnsweringViewer(viewer): AnsweringViewer,
    JsonBody(body): JsonBody<SayBody>,
) -> Answer<SessionOutcome> {
    run_command_as(&state, viewer.name, move |opened| {
        let session = opened.find_referenced_session(&body.session)?;
        let report = session_commands::say_to_session(opened, &session, body.text)?;
        Ok(SessionOutcome { outcome: report.to_string() })
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReasonBody {
    #[serde(default)]
    pub reason: Option<String>,
}

pub async fn cancel_session(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(name): Path<String>,
    JsonBody(body): JsonBody<ReasonBody>,
) -> Answer<SessionOutcome> {
    run_command_as(&state, viewer.name, move |opened| {
        let session = opened.find_referenced_session(&name)?;
        let report = session_commands::cancel_session(opened, &session, nonblank(body.reason))?;
        Ok(SessionOutcome { outcome: report.to_string() })
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewTaskBody {
    pub goal: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    #[serde(default)]
    pub priority: Option<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub depends_on: Vec<String>,
}

pub async fn add_task(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    JsonBody(body): JsonBody<NewTaskBody>,
) -> Answer<TaskSummary> {
    run_command_as(&state, viewer.name, move |opened| {
        let depends_on: Result<Vec<TaskId>, _> = body.depends_on.iter().map(|id| parse_task(id)).collect();
        let new = NewTask {
            goal: body.goal,
            body: nonblank(body.description),
            labels: body.labels,
            priority: parse_optional(body.priority.as_deref(), "priority")?.unwrap_or_default(),
            kind: parse_optional(body.kind.as_deref(), "type")?,
            depends_on: depends_on?,
            ..NewTask::default()
        };
        let records = opened.execute_command(&Command::CreateTask(new), Authority::Person)?;
        let created = records.iter().find(|record| matches!(record.envelope.event, Event::TaskCreated(_)));
        let id = created.and_then(|record| record.envelope.node.task_id());
        let id = id.ok_or_else(|| RequestError::bad_request("no task was created"))?;
        Ok(TaskSummary::from_task(&opened.require_task(id)?))
    })
    .await
}

fn parse_optional<T: FromStr<Err: Display>>(text: Option<&str>, name: &str) -> Result<Option<T>, RequestError> {
    let parsed = text.filter(|text| !text.is_empty()).map(str::parse).transpose();
    parsed.map_err(|error: T::Err| {
        let message = format!("cannot use the {name}");
        RequestError::new(StatusCode::UNPROCESSABLE_ENTITY, "usage", &message, "").with_cause(&error.to_string())
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditTaskBody {
    #[serde(default)]
    pub goal: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub priority: Option<String>,
    #[serde(default)]
    pub add_labels: Vec<String>,
    #[serde(default)]
    pub remove_labels: Vec<String>,
}

pub async fn edit_task(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<EditTaskBody>,
) -> Answer<EmptyObject> {
    let id = parse_task(&id)?;
    run_command_as(&state, viewer.name, move |opened| {
        let patch = TaskPatch {
            goal: body.goal,
            body: body.description,
            priority: parse_optional(body.priority.as_deref(), "priority")?,
            add_labels: body.add_labels,
            remove_labels: body.remove_labels,
            ..TaskPatch::default()
        };
        execute(opened, &Command::UpdateTask { id, patch })
    })
    .await
}

pub async fn block_task(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<ReasonBody>,
) -> Answer<EmptyObject> {
    let id = parse_task(&id)?;
    run_command_as(&state, viewer.name, move |opened| {
        let reason = required_reason(body.reason)?;
        execute(opened, &Command::BlockTask { id, reason, required_knowledge: Vec::new() })
    })
    .await
}

pub async fn reopen_task(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<ReasonBody>,
) -> Answer<EmptyObject> {
    let id = parse_task(&id)?;
    run_command_as(&state, viewer.name, move |opened| {
        execute(opened, &Command::ReopenTask { id, reason: required_reason(body.reason)? })
    })
    .await
}

fn required_reason(reason: Option<String>) -> Result<String, RequestError> {
    nonblank(reason).ok_or_else(|| RequestError::bad_request("a reason is needed"))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DependencyBody {
    /// The task that has to be completed first.
    pub on: String,
    #[serde(default)]
    pub remove: bool,
}

pub async fn change_dependency(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<DependencyBody>,
) -> Answer<EmptyObject> {
    let (from, to) = (parse_task(&id)?, parse_task(&body.on)?);
    let kind = EdgeKind::DependsOn;
    let command = match body.remove {
        true => Command::RemoveEdge { from, kind, to },
        false => Command::AddEdge { from, kind, to },
    };
    run_command_as(&state, viewer.name, move |opened| execute(opened, &command)).await
}

pub async fn merge_change(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(id): Path<String>,
) -> Answer<EmptyObject> {
    let id = parse_task(&id)?;
    run_command_as(&state, viewer.name, move |opened| {
        changes::merge_change(opened, id, MergeChecks::Run)?;
        Ok(EmptyObject {})
    })
    .await
}

/// A comment on a line of the diff.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LineComment {
    pub path: String,
    pub line: u32,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    Approve,
    SendBack,
    Reject,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewBody {
    pub verdict: ReviewVerdict,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub comments: Vec<LineComment>,
}

/// Reviews a change. A sent-back task gets the comments as feedback.
pub async fn review_change(
    State(state): SharedState,
    AnsweringViewer(viewer): AnsweringViewer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<ReviewBody>,
) -> Answer<EmptyObject> {
    let id = parse_task(&id)?;
    run_command_as(&state, viewer.name, move |opened| {
        let text = write_review(&body);
        let task = opened.require_task(id)?;
        match body.verdict {
            ReviewVerdict::Approve => answer_task(opened, id, TaskResolution::Approve, text),
            ReviewVerdict::Reject => answer_task(opened, id, TaskResolution::Reject, text),
            ReviewVerdict::SendBack => {
                let reason = text.ok_or_else(|| RequestError::bad_request("a comment is needed"))?;
                match task.state {
                    TaskState::Blocked | TaskState::NeedsContinuation => {
                        answer_task(opened, id, TaskResolution::Continue, Some(reason))
                    }
                    TaskState::Failed => answer_task(opened, id, TaskResolution::Retry, Some(reason)),
                    // The gates called the task completed. While its change is open, a review overrides them.
                    TaskState::Completed if has_open_change(opened, id)? => {
                        execute_as(opened, &Command::ReopenTask { id, reason }, Authority::Forced)
                    }
                    _ => execute(opened, &Command::ReopenTask { id, reason }),
                }
            }
        }
    })
    .await
}

fn has_open_change(opened: &OpenedProject, id: TaskId) -> Result<bool, RequestError> {
    Ok(ChangeRecord::load_change_record(opened, id)?.change_state() == ChangeState::Open)
}

/// Writes the comments of a review as one text.
fn write_review(body: &ReviewBody) -> Option<String> {
    let general = body.text.iter().filter(|text| !text.trim().is_empty()).cloned();
    let comments = body.comments.iter().map(|comment| {
        let path = PathBuf::from(&comment.path);
        format!("{}:{}: {}", path.display(), comment.line, comment.text.trim())
    });
    let text: Vec<String> = general.chain(comments).collect();
    (!text.is_empty()).then(|| text.join("\n"))
}
