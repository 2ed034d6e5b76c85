//! What agents' own hook systems say, and how each of them wants to be answered.
//!
//! ```text
//! standard input ─ Call::read ─► Call, in one set of words ─ judged elsewhere ─► Reply ─ Words::of ─► stdout, stderr, exit
//! ```
//!
//! Invariants:
//! - Text in, text out: no files, no environment, no clock.
//! - Exit code 2 and words that block are written for what a hook says, and never because something went wrong: for a no, and
//!   for what an agent can only be told as one.
//! - No answer has a field that its agent does not know.
//!
//! Not here: which hooks run, and what they decide (`engine`, `runner`); whose project it is (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod agent;
mod call;
mod moment;
mod recognise;
mod reply;
pub mod settings;
mod words;

pub use agent::{Agent, UnknownAgent};
pub use call::{BadCall, Call, Tool};
pub use moment::Moment;
pub use reply::{Reply, Ruling};
pub use words::{Unsaid, Words};
