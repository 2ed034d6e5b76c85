//! The one expression language: conditions of hooks, rules, templates of prompts and feedback, values in workflows.
//!
//! ```text
//! text ─ javascript, bounds ─► tokens ─ minijinja ─► syntax tree ─ check, metering ─► compiled, with the names that it uses
//!                                                                                 │
//!                                        context (JSON) ─ only those names ──────►│──► true or false, or a text
//! ```
//!
//! Invariants:
//! - This crate knows text and values, not tasks and events.
//! - A name, filter, test or function that is not known is an error when the text is read, with its place.
//! - Nothing is read twice: what was parsed is shared by its clones.
//! - Whatever the text and the context, reading and evaluating end within a tenth of a second and some ten megabytes: what
//!   is done with values is counted, inside filters and operators, too (`cost`, `metering`).
//! - Nothing is escaped, included, loaded or called back.
//!
//! Not here: what a context holds for which point (`engine`); where a text stands in a file (`config`).

mod bounds;
mod check;
mod context;
mod cost;
mod error;
mod formula;
mod javascript;
mod json;
mod language;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod matcher;
mod metering;
mod names;
mod pattern;
mod spelling;
mod template;
#[cfg(test)]
mod tests;

pub use error::{ExpressionError, ExpressionFault};
pub use formula::{Allowance, Condition, Formula};
pub use json::{FieldError, find_list, read_json};
pub use matcher::{Matcher, MatcherError};
pub use names::Names;
pub use pattern::{Pattern, PatternError, predicate};
pub use spelling::{join_path, nearest, snake_case, suggest_name};
pub use template::Template;
