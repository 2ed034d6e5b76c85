//! Explanations: each decision with its author and evidence, and the next command. They are read from the log alone.
//!
//! ```text
//! name ─► WhySubject ─► events ─► WhyFact, WhyFact, … ─► WhyReport
//! ```

mod conversation;
pub mod drive_details;
mod fact;
mod report;
mod subject;

pub use fact::{WhyFact, build_facts};
pub use report::{WhyCause, WhyReport};
pub use subject::WhySubject;
