//! Tests with real repositories in temporary directories, under a hostile user configuration and environment.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod bases;
mod beside;
mod committing;
mod crashes;
mod facts;
mod merging;
mod names;
mod opening;
mod pushing;
mod rebasing;
mod reviewing;
mod scene;
mod submodules;
mod untouched;
