//! Platforms without sandboxes.

use std::ffi::{OsStr, OsString};

/// The reason why a program did not start in its sandbox.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a sandbox: it needs Linux")]
pub struct LaunchError;

/// Returns that there are no sandboxes here.
pub fn launch_program(_setup: &str, _program: &OsStr, _arguments: &[OsString]) -> LaunchError {
    LaunchError
}

pub(crate) fn check_kernel() -> Result<(), LaunchError> {
    Err(LaunchError)
}

pub(crate) fn check_seccomp() -> Result<(), String> {
    Err(LaunchError.to_string())
}
