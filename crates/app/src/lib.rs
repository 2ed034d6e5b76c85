//! The application layer that every front end shares: project and trust, callers, commands that run their hooks, runs of agents
//! and workers, crash recovery, next steps, project health, and the tools of agents.
//!
//! ```text
//! CommandContext ─ project, store ─► OpenedProject ─ caller, configuration, trust ─► decide, commit ─► pending hooks of the commit
//! ```
//!
//! Invariants:
//! - Everything comes back as a value or a `Failure`; nothing is printed. A `FrontEnd` shows notices while a command runs.
//! - Settings of an untrusted configuration have no effect.
//!
//! Not here: the rules (`engine`), reading a configuration (`config`), running a hook or a session (`runner`), words and colours
//! on a terminal (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

pub mod agents;
pub mod answer_choice;
pub mod answers;
pub mod atomic_file;
pub mod bridge_calls;
pub mod caller;
pub mod changes;
pub mod config_file;
pub mod context;
pub mod conversations;
pub mod environment;
pub mod event_text;
pub mod execution;
mod failure;
pub mod fleet;
mod front_end;
pub mod gatekeepers;
pub mod health;
pub mod hints;
pub mod hook_runs;
pub mod hook_switch;
pub mod hook_trial;
pub mod live_output;
pub mod next_step;
pub mod person;
pub mod project;
pub mod project_setup;
pub mod recovery;
pub mod resume_command;
pub mod retention;
pub mod run;
pub mod runner_settings;
pub mod sandbox;
pub mod session_commands;
mod session_reference;
pub mod session_view;
pub mod store_records;
pub mod time_format;
pub mod tone;
pub mod tool_host;
pub mod trust;
pub mod turn_end;
pub mod typed_step;
pub mod unchecked_work;
pub mod unreadable_files;
pub mod views;
pub mod waiting_work;
pub mod web_access;
pub mod why;
pub mod workflow_run;
pub mod workflows;

pub use failure::{Failure, FailureCode};
pub use front_end::{FrontEnd, Notice, SilentFrontEnd};

/// The first argument of the supervisor process, which starts agents and gates.
pub const SUPERVISE_ARGUMENT: &str = "__supervise";
