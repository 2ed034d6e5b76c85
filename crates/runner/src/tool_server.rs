//! The MCP server with Windlass's own tools, as an agent gets it.
//!
//! The server is this very program. Agents do not pass their environment on to servers, so the server gets its variables from
//! its entry.

use windlass_agents::acp::McpServer;
use windlass_engine::AgentTurn;

use crate::Runner;

/// Name of the server.
const SERVER_NAME: &str = "windlass";
/// Variables for the place of a person's trust, and for the store that a person trusts for this run alone.
const INHERITED_VARIABLES: [&str; 3] = ["WINDLASS_STATE_DIR", "WINDLASS_TRUSTED_STORE", "XDG_STATE_HOME"];

impl Runner<'_> {
    /// Returns the server for a turn that begins now, unless the configuration leaves it out or has another server of that name.
    /// A path has to be valid UTF-8.
    pub(crate) fn own_tool_server(&self, turn: &AgentTurn) -> Option<McpServer> {
        let setup = &self.agent.setup;
        let command = setup.tool_server_program.clone().filter(|command| command.to_str().is_some())?;
        if setup.servers.iter().any(|server| server.name == SERVER_NAME) {
            return None;
        }
        let settings = &self.effects.settings;
        let root = settings.project.to_str()?.to_owned();
        let passed_on = settings.environment.iter().filter_map(|(name, value)| {
            let name = INHERITED_VARIABLES.into_iter().find(|passed| name == passed)?;
            Some((name.to_owned(), value.to_str()?.to_owned()))
        });
        let own = [
            ("WINDLASS_RUN".to_owned(), turn.run.to_string()),
            ("WINDLASS_PROJECT_DIR".to_owned(), root.clone()),
            ("WINDLASS_TRUSTED".to_owned(), self.trusted_variable().to_owned()),
        ];
        let args = ["--project".to_owned(), root, "mcp".to_owned()];
        let http_args = args.iter().cloned().chain(["--http", "--json"].map(str::to_owned)).collect();
        let env = own.into_iter().chain(passed_on).collect();
        Some(McpServer { name: SERVER_NAME.to_owned(), command, args: args.into(), env, http_args })
    }
}
