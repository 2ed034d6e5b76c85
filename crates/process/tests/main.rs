//! Well-behaved and misbehaving programs, with and without a supervisor.
//!
//! Each test needs its own process, and nextest runs each test in one: Windlass ends an untagged orphan of a run as soon as
//! no other run of the process can be its origin.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

mod child;
mod common;
mod control;
mod interactive;
mod leftover_sweep;
mod outcome;
mod output;
mod owner_signals;
mod process_cleanup;
mod supervisor_failures;
