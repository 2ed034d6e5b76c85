//! What events lead to: actions of pure hooks inside the commit, and effects that are owed after it.
//!
//! Not here: which hooks an event makes owed (`decide`), how they are run (`runner`).

pub(crate) mod action;
pub(crate) mod builtins;
pub(crate) mod hook_batch;
pub(crate) mod hook_outcome;
pub(crate) mod hook_point;
pub(crate) mod outbox;
pub(crate) mod registry;
pub(crate) mod share;
pub(crate) mod situation;
