//! What is served, and how it ends.

use std::io;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use windlass_tools::{Control, Tool, ToolError, ToolHost};

use crate::pool::Pool;

/// What a tool answers: a JSON object, written once.
pub type Said = Result<Box<RawValue>, ToolError>;

/// Takes calls, one at a time.
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

/// Who has the agent go on that calls the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Driven {
    #[default]
    ByItself,
    ByWindlass,
}

impl<D: ToolRouter> Server<D> {
    /// `open` makes another desk. Programs that calls run listen to the control of `stop`.
    pub fn new(
        tools: &'static [Tool],
        open: impl Fn() -> Result<D, ToolError> + Send + Sync + 'static,
        stop: Stop,
    ) -> Self {
        Self { tools, pool: Pool::new(open, stop.control.clone()), stop, driven: Driven::default() }
    }

    /// The same for an agent that is driven so: it is told what the tools are for.
    pub fn driven(mut self, driven: Driven) -> Self {
        self.driven = driven;
        self
    }
}

/// Ends a server, from whichever thread. Clones end the same one.
#[derive(Clone, Default)]
pub struct Stop {
    pub(crate) token: CancellationToken,
    control: Control,
}

impl Stop {
    /// `control` is told of the end by whoever else tells it; it reaches the programs.
    pub fn new(control: Control) -> Self {
        Self { token: CancellationToken::new(), control }
    }

    /// No more calls are taken. Programs are the control's matter.
    pub fn now(&self) {
        self.token.cancel();
    }
}

/// One thread for everything that waits, and a few for what may take long.
pub(crate) fn runtime() -> io::Result<Runtime> {
    // Standard streams that are files or terminals are read and written by a thread each.
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(crate::pool::SLOW + 2).build()
}
