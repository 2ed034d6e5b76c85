//! The description of the API in OpenAPI, built from the types of bodies and answers.
//!
//! Not here: the routes. A test compares both.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod typescript;

use axum::Json;
use schemars::Schema;
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use windlass_app::views;
use windlass_app::web_access::ViewerRole;

use crate::error::{CommandNotices, ErrorBody, RequestError};
use crate::guard::AuthenticatedViewer;
use crate::read::{MaybeViewer, QuestionView, ViewerInfo, require_viewer};
use crate::{hook_actions, stream, write};

type SchemaSource = fn(&mut SchemaGenerator) -> Schema;

/// The answer of an operation.
#[derive(Clone, Copy)]
enum AnswerKind {
    Json(SchemaSource),
    /// Server-sent events: their names and messages.
    Events(&'static [(&'static str, SchemaSource)]),
}

/// One method of one path.
struct ApiOperation {
    path: &'static str,
    summary: &'static str,
    /// The smallest role that may do it; none without a login.
    role: Option<ViewerRole>,
    /// The names and descriptions of parameters in the query.
    query: &'static [(&'static str, &'static str)],
    /// The body of a POST.
    body: Option<SchemaSource>,
    answer: AnswerKind,
}

const LIMIT: (&str, &str) = ("limit", "the number of rows, 500 at most");

fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn read(path: &'static str, summary: &'static str, answer: SchemaSource) -> ApiOperation {
    ApiOperation {
        path,
        summary,
        role: Some(ViewerRole::Look),
        query: &[],
        body: None,
        answer: AnswerKind::Json(answer),
    }
}

const fn write(
    path: &'static str,
    role: ViewerRole,
    summary: &'static str,
    body: SchemaSource,
    answer: SchemaSource,
) -> ApiOperation {
    ApiOperation { path, summary, role: Some(role), query: &[], body: Some(body), answer: AnswerKind::Json(answer) }
}

/// The operations that read.
fn read_operations() -> Vec<ApiOperation> {
    vec![
        read("/viewer", "The viewer and the project", schema::<ViewerInfo>),
        read("/now", "What needs a person, who works on what, what is next", schema::<views::NowView>),
        ApiOperation {
            query: &[
                ("state", "states, separated by commas"),
                ("text", "a part of the goal"),
                ("after", "the last task of the page before"),
                LIMIT,
            ],
            ..read("/tasks", "Tasks", schema::<views::TaskPage>)
        },
        read("/tasks/{id}", "A task with its history", schema::<views::TaskDetails>),
        read("/tasks/{id}/graph", "The open work around a task", schema::<views::TaskGraphView>),
        read("/graph", "The graph of open work", schema::<views::TaskGraphView>),
        ApiOperation { query: &[LIMIT], ..read("/sessions", "Sessions, newest first", schema::<views::SessionPage>) },
        read("/sessions/{name}", "The timeline of a session", schema::<views::SessionTimeline>),
        ApiOperation {
            answer: AnswerKind::Events(&[
                ("turn", schema::<stream::TurnStart>),
                ("lines", schema::<stream::OutputLines<'static>>),
                ("end", schema::<write::EmptyObject>),
            ]),
            ..read("/sessions/{name}/output", "The output of a session's turns, live", schema::<write::EmptyObject>)
        },
        read("/why/{name}", "The reasons for the state of a task or a session", schema::<views::WhyView>),
        read("/changes", "Changes that are not merged, newest first", schema::<Vec<views::ChangeSummary>>),
        read("/changes/{id}", "A change with its diff and its checks", schema::<views::ChangeDetails>),
        read("/hooks", "Hooks, and how they did", schema::<views::HookPage>),
        ApiOperation {
            query: &[("days", "the number of days, 30 by default")],
            ..read("/cost", "Tokens, money and times", schema::<views::CostReport>)
        },
        ApiOperation {
            query: &[
                ("before", "the position below which entries are read"),
                ("type", "types of events, separated by commas"),
                ("task", "a task"),
                ("session", "a session"),
                LIMIT,
            ],
            ..read("/log", "A page of the log, its oldest event first", schema::<views::LogPage>)
        },
        read("/log/{seq}", "An event of the log", schema::<Map<String, Value>>),
        ApiOperation {
            query: &[("after", "the position after which events are sent; the header `Last-Event-ID` wins")],
            answer: AnswerKind::Events(&[("log", schema::<views::LogEntry>), ("ready", schema::<stream::StreamReady>)]),
            ..read("/events", "The log, live", schema::<write::EmptyObject>)
        },
        ApiOperation { role: None, ..read("/questions/{token}", "The question of a link", schema::<QuestionView>) },
        read("/openapi.json", "This description", schema::<Map<String, Value>>),
    ]
}

/// The operations that change something.
fn write_operations() -> Vec<ApiOperation> {
    use ViewerRole::{Answer, Look, Manage};
    let done: SchemaSource = schema::<write::EmptyObject>;
    let outcome: SchemaSource = schema::<write::SessionOutcome>;
    let reason: SchemaSource = schema::<write::ReasonBody>;
    vec![
        write("/answer", Answer, "Answer a question", schema::<write::AnswerBody>, outcome),
        write("/say", Answer, "Say something to the agent of a session", schema::<write::SayBody>, outcome),
        write("/changes/{id}/review", Answer, "Review a change", schema::<write::ReviewBody>, done),
        write("/changes/{id}/merge", Manage, "Merge a change", schema::<write::EmptyObject>, done),
        write("/sessions/{name}/cancel", Manage, "Cancel a session", reason, outcome),
        write("/tasks", Manage, "Add a task", schema::<write::NewTaskBody>, schema::<views::TaskSummary>),
        write("/tasks/{id}/edit", Manage, "Edit a task", schema::<write::EditTaskBody>, done),
        write("/tasks/{id}/block", Manage, "Block a task", reason, done),
        write("/tasks/{id}/reopen", Manage, "Reopen a task", reason, done),
        write("/tasks/{id}/depend", Manage, "Add or remove a dependency", schema::<write::DependencyBody>, done),
        write(
            "/hooks/{name}/switch",
            Manage,
            "Switch a hook on or off",
            schema::<hook_actions::HookSwitchBody>,
            schema::<hook_actions::HookSwitchReport>,
        ),
        write(
            "/hooks/{name}/test",
            Manage,
            "Run a hook outside any session",
            schema::<hook_actions::HookTestBody>,
            schema::<hook_actions::HookTestReport>,
        ),
        ApiOperation {
            role: None,
            ..write("/login", Look, "Exchange a code for a cookie", schema::<write::LoginBody>, schema::<ViewerInfo>)
        },
        write("/logout", Look, "End this login", schema::<write::EmptyObject>, done),
        ApiOperation {
            role: None,
            ..write(
                "/questions/{token}",
                Look,
                "Answer the question of a link",
                schema::<write::QuestionAnswerBody>,
                outcome,
            )
        },
    ]
}

/// The generators of schemas: a body may leave fields out, an answer has them all.
struct SchemaGenerators {
    bodies: SchemaGenerator,
    answers: SchemaGenerator,
}

impl SchemaGenerators {
    fn new() -> Self {
        let generator = |contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.contract = contract;
                settings.meta_schema = None;
            });
            settings.into_generator()
        };
        Self { bodies: generator(Contract::Deserialize), answers: generator(Contract::Serialize) }
    }

    fn describe_operation(&mut self, operation: &ApiOperation) -> Value {
        let content = match operation.answer {
            AnswerKind::Json(answer) => {
                let mut schema = json!(answer(&mut self.answers));
                if operation.body.is_some() {
                    schema = json!({"allOf": [schema, self.answers.subschema_for::<CommandNotices>()]});
                }
                json!({"application/json": {"schema": schema}})
            }
            AnswerKind::Events(messages) => {
                let messages: Vec<Value> = messages
                    .iter()
                    .map(|(name, message)| json!({"title": name, "allOf": [message(&mut self.answers)]}))
                    .collect();
                json!({"text/event-stream": {"schema": {"oneOf": messages}}})
            }
        };
        let error = schema::<ErrorBody>(&mut self.answers);
        let mut described = json!({
            "summary": operation.summary,
            "parameters": list_parameters(operation),
            "responses": {
                "200": {"description": "done", "content": content},
                "default": {"description": "an error", "content": {"application/json": {"schema": error}}},
            },
            "security": operation.role.map_or_else(|| json!([]), |role| json!([{"viewer": [role.name()]}])),
        });
        if let Some(body) = operation.body {
            let schema = body(&mut self.bodies);
            described["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        described
    }
}

fn list_parameters(operation: &ApiOperation) -> Vec<Value> {
    let text = json!({"type": "string"});
    let names = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": text}));
    let query = operation.query.iter();
    let query = query.map(|(name, about)| json!({"name": name, "in": "query", "description": about, "schema": text}));
    path.chain(query).collect()
}

/// Builds the whole description.
pub fn build_document() -> Value {
    let mut generators = SchemaGenerators::new();
    let mut paths = Map::new();
    for operation in read_operations().iter().chain(&write_operations()) {
        let method = if operation.body.is_some() { "post" } else { "get" };
        let described = generators.describe_operation(operation);
        let path = paths.entry(format!("/api{}", operation.path)).or_insert_with(|| json!({}));
        path[method] = described;
    }
    let mut schemas = generators.answers.take_definitions(true);
    schemas.append(&mut generators.bodies.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Windlass", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"viewer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

pub async fn serve_document(viewer: MaybeViewer) -> Result<Json<Value>, RequestError> {
    let AuthenticatedViewer { .. } = require_viewer(viewer)?;
    Ok(Json(build_document()))
}
