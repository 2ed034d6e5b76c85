//! Shared test support of several crates. Development only.
//!
//! [`history`] generates random sequences of commands, [`project`] runs them in memory, [`model`] predicts their outcome,
//! and [`invariants`] checks the invariants of the state. A test of another view runs the same history and compares the results.
//! [`provider`] is a model server for real agents, [`forge`] a forge for changes. [`nats_server`],
//! [`nats_cluster`] and [`postgres_server`] start servers for the log of a fleet, and [`faulty_proxy`] is a network that breaks.
//! [`hostile`] generates hostile input, and [`seeded_random`] the numbers of simulations.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

pub mod bridge_calls;
pub mod certificates;
pub mod delivery;
pub mod effects;
pub mod faulty_proxy;
pub mod forge;
pub mod gates;
pub mod history;
pub mod hook_actions;
pub mod hostile;
pub mod invariants;
pub mod model;
pub mod nats_cluster;
pub mod nats_server;
pub mod postgres_server;
pub mod project;
pub mod provider;
pub mod rules;
pub mod seeded_random;
pub mod series_steps;
pub mod sessions;
pub mod steps;
pub mod task_histories;
mod workflow_steps;

pub use faulty_proxy::FaultyProxy;
pub use history::{
    HistoryStep, OutsideReply, StepAction, StepAuthority, TurnReference, gate_histories, histories, session_histories,
    stall_histories,
};
pub use model::EngineModel;
pub use project::MemoryProject;
pub use rules::{gate_rules, test_rules};
pub use seeded_random::SeededRandom;
pub use steps::sample_session;
