//! What the log holds: events, how they are written down, and the ids and moments in them.
//!
//! Not here: where events are kept (`store`).

pub(crate) mod config_text;
pub(crate) mod encoding;
pub(crate) mod event;
pub(crate) mod event_type;
pub(crate) mod id;
pub(crate) mod millis;
pub(crate) mod time;
pub(crate) mod value_names;
