//! Well-behaved and misbehaving programs, with and without a supervisor.
//!
//! Each test needs a process of its own, which nextest gives it: an unmarked orphan of a run is ended when no other run of the
//! process could have left it.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

mod child;
mod common;
mod control;
mod crash;
mod live;
mod nothing_survives;
mod outcome;
mod output;
mod stubborn;
mod sweeping;
