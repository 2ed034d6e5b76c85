//! The shared log of several machines, on NATS JetStream or PostgreSQL.
//!
//! ```text
//!   store ── Sequencer ────┐   ┌─► NatsService ─────► async-nats ─────► streams WL_<project>_LOG, _BEATS, _EVENTS
//!                          ├───┤
//!   app ──── FleetService ─┘   └─► PostgresService ─► tokio-postgres ─► tables windlass_log, windlass_beats
//! ```
//!
//! Invariants:
//! - Async code stays in this crate: a caller blocks and drives its connection, and a thread does so between two calls. Async code calls a
//!   service from a blocking task.
//! - A service connects when it is used first, so a project opens without the network. A broken connection is opened again by the
//!   next call, and every call ends in bounded time.
//! - Credentials come from files; an address has none. Other machines are reached through TLS only.
//! - Ages of heartbeats come from the clock of the service, so clocks of machines need not agree.
//!
//! Not here: judging and folding messages (`store`), membership and its commands (`app`, `cli`).

mod address;
mod failure;
mod nats;
mod postgres;
mod runtime_thread;
mod service;

pub use address::{FleetAddress, FleetAddressError, ServerEndpoint, ServiceKind};
pub use nats::NatsService;
pub use postgres::PostgresService;
pub use service::{
    FleetAccess, FleetService, HeartbeatList, LogSettings, OwnerHeartbeat, PublishedEvent, ServiceLog, ServiceReport,
    connect_service, describe_permissions,
};
