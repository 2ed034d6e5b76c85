//! The content of the log: events, their encoding, and the ids and timestamps in them.
//!
//! Not here: where the log is stored (`store`).

pub(crate) mod config_text;
pub(crate) mod encoding;
pub(crate) mod event;
pub(crate) mod event_type;
pub(crate) mod id;
pub(crate) mod millis;
pub(crate) mod time;
pub(crate) mod value_names;
