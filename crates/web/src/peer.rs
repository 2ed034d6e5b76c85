//! The process at the other end of a connection on this machine.
//!
//! An agent runs as the same user, so it could find the port. It has no cookie and no token; this check refuses it even with one.

use std::net::SocketAddr;

use windlass_app::SUPERVISE_ARGUMENT;
use windlass_process::is_connection_supervised;

/// Returns whether a connection comes from a process below a supervisor of Windlass. A process that cannot be found, such as one
/// of another user, does not count.
pub fn comes_from_supervised_process(peer: SocketAddr, local: SocketAddr) -> bool {
    peer.ip().is_loopback() && is_connection_supervised(SUPERVISE_ARGUMENT, peer, local)
}
