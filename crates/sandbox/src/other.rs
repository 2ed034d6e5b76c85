//! Platforms without sandboxes.

use std::ffi::{OsStr, OsString};
use std::io;

/// The reason why a program did not start in its sandbox.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a sandbox: it needs Linux")]
pub struct UnsupportedPlatform;

impl UnsupportedPlatform {
    /// Returns what a person can do.
    pub fn remedy(&self) -> &'static str {
        "run it on Linux, or without a sandbox"
    }
}

/// Returns that there are no sandboxes here.
pub fn launch_program(_setup: &str, _program: &OsStr, _arguments: &[OsString]) -> UnsupportedPlatform {
    UnsupportedPlatform
}

/// Returns that there are no sandboxes here.
pub fn run_proxy_command(_setup: &str, _report_denial: impl Fn(&str, u16, &str)) -> io::Result<()> {
    Err(io::Error::other(UnsupportedPlatform))
}

pub(crate) fn check_kernel() -> Result<(), UnsupportedPlatform> {
    Err(UnsupportedPlatform)
}

pub(crate) fn check_seccomp() -> Result<(), String> {
    Err(UnsupportedPlatform.to_string())
}
