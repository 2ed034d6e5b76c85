//! Shared test support of several crates. Development only.
//!
//! [`history`] generates random sequences of commands, [`project`] runs them in memory, [`model`] predicts their outcome,
//! and [`invariants`] checks what always holds. A test of another view runs the same history and compares. [`provider`] is
//! a model server for real agents, and [`forge`] a forge for changes. [`hostile`] generates hostile input.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

pub mod bridge_calls;
pub mod delivery;
pub mod effects;
pub mod forge;
pub mod gates;
pub mod history;
pub mod hook_actions;
pub mod hostile;
pub mod invariants;
pub mod model;
pub mod project;
pub mod provider;
pub mod rules;
pub mod series_steps;
pub mod sessions;
pub mod steps;
pub mod task_histories;
mod workflow_steps;

pub use history::{
    OutsideReply, Step, StepAction, StepAuthority, Turn, histories, histories_of_gates, histories_of_sessions,
    histories_of_stalls,
};
pub use model::Model;
pub use project::Project;
pub use rules::{rules, rules_of_gates};
