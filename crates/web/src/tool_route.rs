//! The tools of agents over MCP, for an agent that a person has started elsewhere.

use windlass_app::context::CommandContext;
use windlass_app::tool_host::{ProjectToolHost, to_tool_error};
use windlass_mcp::{McpRoute, StopHandle, ToolServer};
use windlass_store::Lifetime;
use windlass_tools::{ToolRouter, tool_catalogue};

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
