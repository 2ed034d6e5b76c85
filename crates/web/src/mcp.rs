//! Requests for the tools of agents.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use windlass_app::web_access::ViewerRole;

use crate::error::RequestError;
use crate::read::{MaybeViewer, require_viewer};
use crate::state::SharedState;

pub async fn serve_tools(
    State(state): SharedState,
    viewer: MaybeViewer,
    request: Request,
) -> Result<Response, RequestError> {
    require_viewer(viewer)?.require(ViewerRole::Manage)?;
    Ok(state.tools().answer_request(request).await.into_response())
}
