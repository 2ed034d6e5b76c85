//! The tools of agents over MCP, as a route of the page's server: for an agent that a person has started elsewhere.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use windlass_app::context::CommandContext;
use windlass_app::tool_host::{ProjectToolHost, to_tool_error};
use windlass_app::web_access::Role;
use windlass_mcp::{McpRoute, StopHandle, ToolServer};
use windlass_store::Lifetime;
use windlass_tools::{ToolRouter, tool_catalogue};

use crate::error::RequestError;
use crate::read::{MaybeViewer, require_viewer};
use crate::server::ServerState;

/// The path of the endpoint.
pub const MCP_PATH: &str = "/mcp";

pub type ToolRoute = McpRoute<ToolRouter<ProjectToolHost>>;

/// Builds the route. A store is opened with the first call.
pub fn build_tool_route(context: CommandContext, hosts: Vec<String>, stop: StopHandle) -> ToolRoute {
    let open = move || {
        let opened = context.open_project_for(Lifetime::Service).map_err(to_tool_error)?;
        Ok(ToolRouter::new(ProjectToolHost::new(opened)))
    };
    ToolServer::new(tool_catalogue(), open, stop).into_route(hosts)
}

pub async fn serve_tools(
    State(state): State<Arc<ServerState>>,
    viewer: MaybeViewer,
    request: Request,
) -> Result<Response, RequestError> {
    require_viewer(viewer)?.require(Role::Manage)?;
    Ok(state.tools().answer_request(request).await.into_response())
}
