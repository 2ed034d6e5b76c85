//! The paths of the server.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{any, get, post};

use crate::state::ServerState;
use crate::tool_route::MCP_PATH;
use crate::{guard, hook_actions, mcp, openapi, page, read, stream, write};

/// The largest body of a request.
const MAX_BODY_BYTES: usize = 1024 * 1024;

pub fn build_router(state: Arc<ServerState>) -> Router {
    let api = Router::new()
        .route("/viewer", get(read::get_viewer))
        .route("/now", get(read::get_now))
        .route("/tasks", get(read::get_tasks).post(write::add_task))
        .route("/tasks/{id}", get(read::get_task))
        .route("/tasks/{id}/graph", get(read::get_task_graph))
        .route("/tasks/{id}/edit", post(write::edit_task))
        .route("/tasks/{id}/block", post(write::block_task))
        .route("/tasks/{id}/reopen", post(write::reopen_task))
        .route("/tasks/{id}/depend", post(write::change_dependency))
        .route("/graph", get(read::get_graph))
        .route("/sessions", get(read::get_sessions))
        .route("/sessions/{name}", get(read::get_session))
        .route("/sessions/{name}/output", get(stream::stream_output))
        .route("/sessions/{name}/cancel", post(write::cancel_session))
        .route("/why/{name}", get(read::get_why))
        .route("/changes", get(read::get_changes))
        .route("/changes/{id}", get(read::get_change))
        .route("/changes/{id}/merge", post(write::merge_change))
        .route("/changes/{id}/review", post(write::review_change))
        .route("/hooks", get(read::get_hooks))
        .route("/hooks/{name}/switch", post(hook_actions::switch_hook))
        .route("/hooks/{name}/test", post(hook_actions::test_hook))
        .route("/cost", get(read::get_cost))
        .route("/log", get(read::get_log))
        .route("/log/{seq}", get(read::get_log_event))
        .route("/events", get(stream::stream_events))
        .route("/answer", post(write::answer))
        .route("/say", post(write::say))
        .route("/openapi.json", get(openapi::serve_document))
        .route("/login", post(write::log_in))
        .route("/logout", post(write::log_out))
        .route("/questions/{token}", get(read::get_question).post(write::answer_question));
    Router::new()
        .nest("/api", api)
        .route(MCP_PATH, any(mcp::serve_tools))
        .route("/app.js", get(page::serve_script))
        .route("/app.css", get(page::serve_style))
        .fallback(get(page::serve_index))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn_with_state(state.clone(), guard::check_request))
        .with_state(state)
}
