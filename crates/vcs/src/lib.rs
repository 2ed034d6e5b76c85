//! Where work meets the team's repository: a worktree for each task, and changes on a forge.
//!
//! Not here: when any of it is done (`engine`), and by whom (`runner`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

pub mod forge;
pub mod git;
