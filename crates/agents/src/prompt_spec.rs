//! Runs of an agent's program with a prompt on standard input.

use std::path::Path;
use std::time::Duration;

use windlass_process::{CaptureLimits, Environment, ProgramInvocation, ProgramSpec};

/// The time that an agent has to exit after it was asked to.
const TERMINATION_GRACE: Duration = Duration::from_secs(10);
/// Returns the spec of a run that reads a prompt and has no time limit.
pub(crate) fn build_prompt_spec(
    invocation: ProgramInvocation,
    prompt: &str,
    directory: &Path,
    environment: Environment,
    capture: CaptureLimits,
) -> ProgramSpec {
    ProgramSpec {
        stdin: prompt.into(),
        grace: TERMINATION_GRACE,
        capture,
        ..ProgramSpec::new(invocation, directory, environment)
    }
}

/// Returns the last line of a text that is not blank.
pub(crate) fn find_last_nonblank_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}
