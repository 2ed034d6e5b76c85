//! The expression language: conditions of hooks, rules, templates of prompts and feedback, values in workflows.
//!
//! ```text
//! text ─ javascript, bounds ─► tokens ─ minijinja ─► syntax tree ─ checker, metering ─► compiled, with the names that it uses
//!                                                                                 │
//!                                        context (JSON) ─ only those names ──────►│──► true or false, or a text
//! ```
//!
//! Invariants:
//! - This crate knows text and values, not tasks and events.
//! - An unknown name, filter, test or function is an error when the text is parsed, with its place.
//! - Each text is parsed once: clones share the result.
//! - Parsing and evaluation end within a tenth of a second and some ten megabytes, for every text and every context. Work inside
//!   filters and operators counts too (`cost`, `metering`).
//! - Evaluation escapes, includes, loads and calls back nothing.
//!
//! Not here: the contexts of hook points (`engine`); the place of a text in a file (`config`).

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
