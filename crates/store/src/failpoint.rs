//! Places where a test can make this program fail: named, and absent from release builds.

use std::io;
use std::sync::OnceLock;

/// What happens at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The process dies as by `kill -9`.
    Kill,
    /// The operation fails.
    Error,
}

static ARMED: OnceLock<(String, Failure)> = OnceLock::new();

/// Arms one place for the rest of the process: `NAME=kill` or `NAME=error`. Does nothing in a release build.
pub fn arm(text: &str) {
    let failure = match text.split_once('=') {
        Some((name, "kill")) => (name, Failure::Kill),
        Some((name, "error")) => (name, Failure::Error),
        _ => return,
    };
    if cfg!(debug_assertions) {
        let _ = ARMED.set((failure.0.to_owned(), failure.1));
    }
}

/// Passes a place.
pub(crate) fn pass(name: &str) -> io::Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    match ARMED.get() {
        Some((armed, Failure::Kill)) if armed == name => {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            Err(io::Error::other("outlived a kill"))
        }
        Some((armed, Failure::Error)) if armed == name => Err(io::Error::other(format!("failed on purpose at {name}"))),
        _ => Ok(()),
    }
}
