//! Tests that need the inside of the proxy.

mod messages;
mod tunnels;
