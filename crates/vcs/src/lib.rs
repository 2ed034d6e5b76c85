//! Git and forges: a worktree for each task, and changes on GitHub and GitLab.
//!
//! Not here: when any of it happens (`engine`), and which code asks for it (`runner`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

pub mod forge;
pub mod git;
