//! Errors of `apply`.

use crate::log::event_type::EventType;
use crate::log::id::Seq;
use crate::view::ViewError;

/// An event that does not fit the state before it.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("event {seq} ({event}) does not fit: {why}")]
    InvalidEvent { seq: Seq, event: EventType, why: String },
    #[error("cannot look up the present state")]
    View(#[from] ViewError),
}
