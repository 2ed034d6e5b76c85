//! Runs of an agent's program with a prompt on standard input.

use std::path::Path;
use std::time::Duration;

use windlass_process::{Capture, Environment, Invocation, Spec};

/// The time that an agent has to exit after it was asked to.
const GRACE: Duration = Duration::from_secs(10);
/// Returns the spec of a run that reads a prompt and has no time limit.
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
