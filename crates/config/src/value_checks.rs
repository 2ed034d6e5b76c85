//! Checks of single values: names, texts and paths.

use std::ops::Range;
use std::path::{Component, Path};

use super::error::ConfigProblem;

/// The maximum length of a review's name: events carry it, and agents read it.
pub const MAX_REVIEW_NAME: usize = 64;

/// Refuses a name that cannot be shown on one line.
pub fn check_name(whose: &str, name: &str, longest: usize) -> Result<(), ConfigProblem> {
    match name.trim().is_empty() || name.len() > longest || name.contains(char::is_control) {
        true => Err(ConfigProblem::new(format!("the name of {whose} is one line of 1 to {longest} bytes"))),
        false => Ok(()),
    }
}

/// Returns whether a relative path, taken literally, stays inside its directory.
pub fn is_inside_directory(path: &str) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.contains('\0') && !path.trim().is_empty() && Path::new(path).components().all(plain)
}

/// Refuses a blank text.
pub fn require_text(key: &str, text: String) -> Result<String, ConfigProblem> {
    match text.trim().is_empty() {
        true => Err(ConfigProblem::new(format!("`{key}` is empty"))),
        false => Ok(text),
    }
}

/// Adds a place to a problem, unless it has one.
pub fn with_place<T>(result: Result<T, ConfigProblem>, at: &Range<usize>) -> Result<T, ConfigProblem> {
    result.map_err(|problem| problem.with_range(at.clone()))
}
