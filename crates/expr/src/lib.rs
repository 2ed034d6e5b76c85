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
mod checker;
mod context;
mod cost;
mod error;
mod expression;
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

pub use error::{EvaluationError, ExpressionError};
pub use expression::{Condition, EvaluationBudget, ValueExpression};
pub use json::{FieldError, find_list_value, read_json};
pub use matcher::{MatcherError, ToolMatcher};
pub use names::ExpressionNames;
pub use pattern::{PatternError, ValuePattern, parse_predicate};
pub use spelling::{join_path, nearest_name, suggest_name, to_snake_case};
pub use template::TextTemplate;
