//! Programs that behave and programs that do not, run both ways.
//!
//! Each test wants a process of its own, which nextest gives it: what a run leaves without any mark is ended when no
//! other run of the process could have left it.
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
