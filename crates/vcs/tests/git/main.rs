//! Tests with real repositories in temporary directories, under a hostile user configuration and environment.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bases;
mod branch_names;
mod commits;
mod crashes;
mod fixture;
mod known_facts;
mod merges;
mod pushes;
mod rebases;
mod review_checkouts;
mod stray_commits;
mod submodules;
mod user_tree;
mod worktrees;
