//! Real repositories in temporary directories, with a user whose configuration and environment try to be in the way.
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
