//! `windlass serve`: the web page of a project, its JSON API, and its live events.
//!
//! ```text
//!   request ─► guard: Host, Origin, viewer ─► routes ─► read:   views of `windlass-app`
//!                                                     ├► write:  commands of a person
//!                                                     ├► stream: events and live output
//!                                                     ├► mcp:    the tools of agents, for programs
//!                                                     └► page:   the built page
//! ```
//!
//! Invariants:
//! - No rule is here: each action is an ordinary command of a person, and the engine decides it.
//! - No request is served before `guard` has checked its `Host`, its origin and its viewer.
//! - Every answer is bounded. A client that does not read is dropped.
//! - Text of agents, hooks and tasks is data in JSON. The server renders no HTML.
//!
//! Not here: what the page shows (`windlass_app::views`), the page itself (`page/`).

mod body;
mod command_report;
mod connection;
mod error;
mod guard;
mod hook_actions;
mod mcp;
mod openapi;
mod page;
mod peer;
mod pool;
mod read;
mod role_check;
mod routes;
mod server;
mod state;
mod stream;
mod timed_writer;
mod tool_route;
mod write;

pub use server::{WebServer, WebServerHandle};
pub use state::{ServerOptions, TlsFiles};
