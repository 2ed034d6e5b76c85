//! The server, and how it stops.

use std::io;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use windlass_tools::{RunControl, ToolDefinition, ToolError, ToolHost};

use crate::router_pool::RouterPool;

/// Answer of a tool: a JSON object, serialized once.
pub type ToolReply = Result<Box<RawValue>, ToolError>;

/// Runs calls, one at a time.
pub trait ToolCaller: Send + 'static {
    fn call_tool_as_json(&mut self, tool: &str, arguments: Value, control: &RunControl) -> ToolReply;
}

impl<G: ToolHost + Send + 'static> ToolCaller for windlass_tools::ToolRouter<G> {
    fn call_tool_as_json(&mut self, tool: &str, arguments: Value, control: &RunControl) -> ToolReply {
        self.call_tool_as_json(tool, arguments, control)
    }
}

/// The tools of a project, ready to be served.
pub struct ToolServer<D> {
    pub(crate) tools: &'static [ToolDefinition],
    pub(crate) pool: RouterPool<D>,
    pub(crate) stop: StopHandle,
    pub(crate) driven: AgentDriverKind,
}

/// Driver of the agent that calls the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentDriverKind {
    #[default]
    ByItself,
    ByWindlass,
}

impl<D: ToolCaller> ToolServer<D> {
    /// Creates a server. `open` creates another router. The control of `stop` cancels the programs of calls.
    pub fn new(
        tools: &'static [ToolDefinition],
        open: impl Fn() -> Result<D, ToolError> + Send + Sync + 'static,
        stop: StopHandle,
    ) -> Self {
        Self { tools, pool: RouterPool::new(open, stop.control.clone()), stop, driven: AgentDriverKind::default() }
    }

    /// Returns the server for an agent with this driver, which decides its instructions.
    pub fn with_driver(mut self, driven: AgentDriverKind) -> Self {
        self.driven = driven;
        self
    }
}

/// Handle to stop a server from any thread. Clones stop the same server.
#[derive(Clone, Default)]
pub struct StopHandle {
    pub(crate) token: CancellationToken,
    control: RunControl,
}

impl StopHandle {
    /// Creates a handle. The caller cancels `control`, which ends the programs.
    pub fn new(control: RunControl) -> Self {
        Self { token: CancellationToken::new(), control }
    }

    /// Stops the server: it accepts no more calls. Programs run until the control is cancelled.
    pub fn stop_server(&self) {
        self.token.cancel();
    }
}

/// Creates a runtime with one thread for everything that waits, and a few for slow calls.
pub(crate) fn build_runtime() -> io::Result<Runtime> {
    // A thread each reads and writes standard streams that are files or terminals.
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(crate::router_pool::MAX_THREADED_CALLS + 2)
        .build()
}
