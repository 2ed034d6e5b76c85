//! What the tests of several crates share. Development only.
//!
//! [`history`] makes random sequences of commands, [`project`] carries them out in memory, [`model`] says what should
//! have come of them, and [`invariants`] what may never come of any. A test of another view runs the same history
//! against it and compares. [`provider`] is the model that real agents are given, and [`forge`]
//! the forge that changes are opened on. [`hostile`] is input that wants to break something.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

pub mod calling;
pub mod delivering;
pub mod driving;
pub mod effects;
mod flows;
pub mod forge;
pub mod gates;
pub mod history;
pub mod hostile;
pub mod invariants;
pub mod kept;
pub mod model;
pub mod project;
pub mod provider;
pub mod rules;
pub mod sessions;
pub mod steps;
pub mod wishes;

pub use history::{
    Ask, Reply, Right, Step, Turn, histories, histories_of_gates, histories_of_sessions, histories_of_stalls,
};
pub use model::Model;
pub use project::Project;
pub use rules::{rules, rules_of_gates};
