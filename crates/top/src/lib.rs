//! `windlass top`: a project in the terminal, and its agents to steer.
//!
//! ```text
//! keys, commits, views ─► TopEvent ─ update(model, event) ─► TopModel ─ view(model, frame) ─► terminal
//!                                            └─► TopRequest ─► views and commands of windlass-app
//! ```
//!
//! Invariants:
//! - Every action is an ordinary command of a person, executed by `windlass-app`.
//! - The screen never waits for the store, git or a hook.
//! - Nothing polls the store: a commit wakes the program.
//! - Text from outside is clean before it reaches a cell, and cells are checked again.
//!
//! Not here: what views contain (`windlass-app`), arguments and the check for a terminal (`cli`).

mod answer_text;
mod command_runner;
mod dialog;
mod event;
mod line_editor;
mod live_follower;
mod message;
mod model;
mod page;
mod palette;
mod row;
mod runtime;
mod screens;
mod terminal;
#[cfg(test)]
mod tests;
mod update;
mod view;
mod view_loader;

pub use palette::ColorMode;
pub use runtime::run_top;
