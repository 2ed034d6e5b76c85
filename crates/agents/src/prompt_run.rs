//! A run of an agent's program with a prompt on its standard input.

use std::path::Path;
use std::time::Duration;

use windlass_process::{Capture, Environment, Invocation, Spec};

/// How long an agent may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(10);
/// A run that reads a prompt and may take as long as it likes.
pub(crate) fn prompted(
    invocation: Invocation,
    prompt: &str,
    directory: &Path,
    environment: Environment,
    capture: Capture,
) -> Spec {
    Spec { stdin: prompt.into(), grace: GRACE, capture, ..Spec::new(invocation, directory, environment) }
}

/// Returns the last line of a text that is not blank.
pub(crate) fn last_line_of(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}
