//! The server, and how it stops.

use std::io;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use windlass_tools::{Control, Tool, ToolError, ToolHost};

use crate::pool::Pool;

/// Answer of a tool: a JSON object, serialized once.
pub type Said = Result<Box<RawValue>, ToolError>;

/// Runs calls, one at a time.
pub trait ToolRouter: Send + 'static {
    fn say(&mut self, tool: &str, arguments: Value, control: &Control) -> Said;
}

impl<G: ToolHost + Send + 'static> ToolRouter for windlass_tools::ToolRouter<G> {
    fn say(&mut self, tool: &str, arguments: Value, control: &Control) -> Said {
        self.say(tool, arguments, control)
    }
}

/// The tools of a project, ready to be served.
pub struct Server<D> {
    pub(crate) tools: &'static [Tool],
    pub(crate) pool: Pool<D>,
    pub(crate) stop: Stop,
    pub(crate) driven: Driven,
}

/// Driver of the agent that calls the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Driven {
    #[default]
    ByItself,
    ByWindlass,
}

impl<D: ToolRouter> Server<D> {
    /// Creates a server. `open` creates another router. The control of `stop` cancels the programs of calls.
    pub fn new(
        tools: &'static [Tool],
        open: impl Fn() -> Result<D, ToolError> + Send + Sync + 'static,
        stop: Stop,
    ) -> Self {
        Self { tools, pool: Pool::new(open, stop.control.clone()), stop, driven: Driven::default() }
    }

    /// Returns the server for an agent with this driver, which decides its instructions.
    pub fn driven(mut self, driven: Driven) -> Self {
        self.driven = driven;
        self
    }
}

/// Handle to stop a server from any thread. Clones stop the same server.
#[derive(Clone, Default)]
pub struct Stop {
    pub(crate) token: CancellationToken,
    control: Control,
}

impl Stop {
    /// Creates a handle. The caller cancels `control`, which ends the programs.
    pub fn new(control: Control) -> Self {
        Self { token: CancellationToken::new(), control }
    }

    /// Stops the server: it accepts no more calls. Programs run until the control is cancelled.
    pub fn now(&self) {
        self.token.cancel();
    }
}

/// Creates a runtime with one thread for everything that waits, and a few for slow calls.
pub(crate) fn runtime() -> io::Result<Runtime> {
    // A thread each reads and writes standard streams that are files or terminals.
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(crate::pool::SLOW + 2).build()
}
