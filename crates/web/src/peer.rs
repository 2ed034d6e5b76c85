//! The two ends of a connection, and the process at the other end if it is on this machine.
//!
//! An agent runs as the same user, so it could find the port, and even a secret. This check refuses it with every secret.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use windlass_app::SUPERVISE_ARGUMENT;
use windlass_process::is_connection_supervised;

/// A connection, as the server sees it.
#[derive(Debug, Clone)]
pub struct ConnectionEnds {
    peer: SocketAddr,
    local: SocketAddr,
    /// The result of the check, which a connection needs once.
    supervised: Arc<OnceLock<bool>>,
}

impl ConnectionEnds {
    pub fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        Self { peer, local, supervised: Arc::default() }
    }

    /// Returns whether the connection may come from a process below a supervisor of Windlass. This reads the tables of the kernel.
    pub fn comes_from_supervised_process(&self) -> bool {
        *self.supervised.get_or_init(|| is_connection_supervised(SUPERVISE_ARGUMENT, self.peer, self.local))
    }
}
