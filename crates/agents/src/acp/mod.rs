//! Agents that speak the Agent Client Protocol: JSON-RPC over their standard input and output, one message a line.
//!
//! The agent stays from turn to turn and remembers. What it is not offered (files, terminals) it does itself; what it asks
//! to be allowed is answered by policy, and never by waiting for somebody.
//!
//! The messages are few, and written by hand: the protocol's own crate is made for an asynchronous runtime, which nothing
//! else here has.

mod breach;
mod connection;
mod speech;
mod talk;
mod wire;

use std::path::Path;
use std::time::Duration;

use windlass_process::{Capture, Environment, Invocation, Spec};

pub use connection::{Attention, Connection, Opened, Start};
pub(crate) use speech::Text;
pub use talk::Permission;
pub(crate) use wire::{LINE, Lines, Message, NO_SUCH_METHOD, Refused};

/// How long an agent may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(10);
/// What is kept of its standard error.
const HEAD: usize = 4 * 1024;
const TAIL: usize = 16 * 1024;

/// How such an agent is started.
pub fn spec(invocation: Invocation, directory: &Path, environment: Environment) -> Spec {
    Spec {
        invocation,
        directory: directory.to_owned(),
        environment,
        stdin: Vec::new(),
        timeout: None,
        silence: None,
        grace: GRACE,
        capture: Capture { head: HEAD, tail: TAIL, spill: None },
    }
}
