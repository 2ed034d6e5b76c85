//! Handler of rmcp's server requests: server information, the list of tools, and calls.

use std::sync::{Arc, OnceLock};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use windlass_tools::{ToolEffect, ToolError};

use crate::message::excerpt_name;
use crate::router_pool::RouterPool;
use crate::server::{AgentDriverKind, ToolCaller, ToolReply, ToolServer};

/// Instructions for a model that drives itself.
const SELF_DRIVEN_INSTRUCTIONS: &str = "\
Windlass keeps tasks and says when one is done. To work through a task by yourself:
1. task_get, or task_next for one that is ready. hook_register sets who judges: default takes your promises, then the rules.
2. iteration_start with a maximum, the promises that you may make, and rules that check the work.
3. Do the work. Then iteration_validate with your answer as agentOutput; <promise>COMPLETE</promise> in it only if it is true.
4. CONTINUE: follow the feedback, call iteration_next, return to 3. COMPLETE: iteration_complete. BLOCKED, ESCALATE: task_update to blocked.
5. hook_clear at the end. checkpoint_create before a risk; checkpoint_resume shows the next step after a restart.";

/// Instructions for a turn of the loop, where Windlass counts iterations and chooses tasks.
const TURN_INSTRUCTIONS: &str = "\
Windlass runs you, turn by turn, on the task that you were given, and judges the work whenever your turn ends.
1. note_add leaves a note for the next agent or person on your task. task_create is for work that is not part of it.
2. hook_register, and iteration_start with validationRules, add to how your task is judged.
3. session_complete claims that your task is done, as <promise>COMPLETE</promise> in your answer does. Then end your turn.
Do not take other tasks or count iterations (task_next, iteration_next): Windlass does.";

/// Handler of one client, or of one request.
pub struct McpHandler<D> {
    tools: &'static [windlass_tools::ToolDefinition],
    listed: Arc<OnceLock<Vec<Tool>>>,
    pool: RouterPool<D>,
    driven: AgentDriverKind,
    /// Reference that counts the handlers at work, if the server counts them.
    _counted: Arc<()>,
}

impl<D> Clone for McpHandler<D> {
    fn clone(&self) -> Self {
        Self {
            tools: self.tools,
            listed: self.listed.clone(),
            pool: self.pool.clone(),
            driven: self.driven,
            _counted: self._counted.clone(),
        }
    }
}

impl<D: ToolCaller> McpHandler<D> {
    pub fn new(server: &ToolServer<D>) -> Self {
        let (tools, pool, driven) = (server.tools, server.pool.clone(), server.driven);
        Self { tools, listed: Arc::default(), pool, driven, _counted: Arc::default() }
    }

    /// Returns the handler as a part of a count, for as long as it exists.
    pub fn with_count(mut self, count: Arc<()>) -> Self {
        self._counted = count;
        self
    }

    fn listed_tools(&self) -> &[Tool] {
        self.listed.get_or_init(|| self.tools.iter().map(listed_tool).collect())
    }
}

impl<D: ToolCaller> ServerHandler for McpHandler<D> {
    fn get_info(&self) -> ServerConfig {
        // Most clients that ask for prompts expect an empty list, so prompts are declared as a capability.
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_prompts().build())
            .with_server_info(Implementation::new("windlass", env!("CARGO_PKG_VERSION")))
            .with_instructions(match self.driven {
                AgentDriverKind::ByItself => SELF_DRIVEN_INSTRUCTIONS,
                AgentDriverKind::ByWindlass => TURN_INSTRUCTIONS,
            })
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(result)
    }

    /// Accepts every log level: the server sends no log messages.
    #[expect(deprecated, reason = "clients of older revisions may ask for it")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match context.protocol_version() {
            Some(version) if !version.has_initialize() => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
            _ => Ok(()),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_method_error(&request.method))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let message =
            format!("there is no prompt `{}`; there are none, only tools: tools/list", excerpt_name(&request.name));
        Err(ErrorData::invalid_params(message, None))
    }

    async fn read_resource(
        &self,
        _: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Err(unknown_method_error("resources/read"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed_tools().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.listed_tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == request.name) else {
            return Err(self.unknown_tool_error(&request.name));
        };
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        Ok(call_result(self.pool.call_tool(tool.name, tool.effect, arguments, &context.ct).await).into())
    }
}

impl<D> McpHandler<D> {
    fn unknown_tool_error(&self, name: &str) -> ErrorData {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.name).collect();
        ErrorData::invalid_params(
            format!("there is no tool `{}`; there are {}", excerpt_name(name), names.join(", ")),
            None,
        )
    }
}

/// Converts the answer of a tool into text for a model and an object for a program.
fn call_result(said: ToolReply) -> CallToolResult {
    let mut result = match &said {
        Ok(said) => CallToolResult::success(vec![ContentBlock::text(said.get())]),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error_text(error))]),
    };
    result.structured_content = match said {
        // An object that is nested too deep to be parsed is sent as text alone.
        Ok(said) => serde_json::from_str(said.get()).ok(),
        Err(error) => Some(json!({"error": {
            "code": error.code.name(),
            "message": error.message,
            "causes": error.causes,
            "hint": error.word_hints(ToString::to_string),
        }})),
    };
    result
}

/// Formats an error for a model: message, causes and hint.
fn error_text(error: &ToolError) -> String {
    let causes = error.causes.iter().map(|cause| format!("\ncaused by: {cause}"));
    let hint = error.word_hints(ToString::to_string).map(|hint| format!("\nhint: {hint}"));
    [error.message.clone()].into_iter().chain(causes).chain(hint).collect()
}

fn unknown_method_error(name: &str) -> ErrorData {
    let message = format!("there is no method `{}` here; there are tools: tools/list, tools/call", excerpt_name(name));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Converts a tool into the form that clients list.
fn listed_tool(tool: &windlass_tools::ToolDefinition) -> Tool {
    let schema = match tool.input_schema() {
        Value::Object(schema) => schema,
        _ => unreachable!("the schema of what a tool takes is an object"),
    };
    let listed = Tool::new(tool.name, tool.description, schema);
    match tool.effect {
        ToolEffect::ReadOnly => listed.with_annotations(ToolAnnotations::new().read_only(true)),
        ToolEffect::Writes => listed,
    }
}
