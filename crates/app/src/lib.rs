//! What every front end of Windlass needs: the project and its trust, who gives a command, commands that run their hooks, runs of
//! agents and workers, recovery after a crash, next steps, the health of a project, and the tools of agents.
//!
//! ```text
//! Context ─ project, store ─► Opened ─ caller, configuration, trust ─► decide and commit ─► hooks that the commit made owed
//! ```
//!
//! Invariants:
//! - Everything comes back as a value or a `Failure`; nothing is printed. A `FrontEnd` shows what a person should hear meanwhile.
//! - Nothing of a configuration counts that no person trusts.
//!
//! Not here: the rules (`engine`), reading a configuration (`config`), running a hook or a session (`runner`), words and colours
//! on a terminal (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

pub mod agents;
pub mod answers;
pub mod atomic_file;
pub mod bridge_calls;
pub mod caller;
pub mod changes;
pub mod context;
pub mod conversations;
pub mod environment;
pub mod execution;
mod failure;
mod front_end;
pub mod gatekeepers;
pub mod health;
pub mod hints;
pub mod hook_runs;
pub mod hook_switch;
pub mod hook_trial;
pub mod next_step;
pub mod obstacles;
pub mod person;
pub mod project;
pub mod project_setup;
pub mod recovery;
pub mod resume_command;
pub mod retention;
pub mod run;
pub mod runner_settings;
pub mod session_view;
pub mod store_records;
pub mod times;
pub mod tool_host;
pub mod trust;
pub mod typed_step;
pub mod unchecked_work;
pub mod workflows;

pub use failure::{Code, Failure};
pub use front_end::{FrontEnd, Notice, SilentFrontEnd};

/// The first argument of the process that starts agents and gates for us.
pub const SUPERVISE: &str = "__supervise";
