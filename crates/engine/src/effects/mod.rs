//! The consequences of events: actions of pure hooks inside the commit, and effects that are pending after it.
//!
//! Not here: the choice of hooks that an event enqueues (`decide`), and their execution (`runner`).

pub(crate) mod action;
pub(crate) mod builtins;
pub(crate) mod event_context;
pub(crate) mod hook_batch;
pub(crate) mod hook_outcome;
pub(crate) mod hook_point;
pub(crate) mod outbox;
pub(crate) mod registry;
pub(crate) mod share;
