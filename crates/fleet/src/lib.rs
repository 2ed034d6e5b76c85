//! The shared log of several machines, on NATS JetStream.
//!
//! ```text
//!   store ── Sequencer ──► NatsSequencer ── runtime thread ──► async-nats ──► stream WL_<project>_LOG
//! ```
//!
//! Invariants:
//! - Async code stays in this crate: a caller blocks, and one thread drives the connection between two calls.
//! - A sequencer connects when it is used first, so a project opens without the network.
//! - Credentials come from files; an address has none.
//!
//! Not here: judging and folding messages (`store`), membership and its commands (`app`, `cli`).

mod address;
mod nats;
mod runtime_thread;

pub use address::{FleetAddress, FleetAddressError};
pub use nats::{LogStreamSettings, NatsAccess, NatsSequencer};
