//! Failpoints: named places where a test can make this program fail. Release builds have none.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The effect of a failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailpointAction {
    /// The process dies as by `kill -9`.
    Kill,
    /// The operation fails.
    Error,
}

/// The failpoint that is armed.
struct ArmedFailpoint {
    name: String,
    failure: FailpointAction,
    /// The pass at which it fails; `None` for every pass.
    nth: Option<u32>,
    passed: AtomicU32,
}

static ARMED_FAILPOINT: OnceLock<ArmedFailpoint> = OnceLock::new();

/// Arms one failpoint for the rest of the process: `NAME=kill` or `NAME=error`, and `NAME=kill@3` for the third pass alone.
/// Does nothing in a release build.
pub fn arm_failpoint(text: &str) {
    let Some((name, what)) = text.split_once('=') else { return };
    let (what, nth) = match what.split_once('@').map(|(what, nth)| (what, nth.parse())) {
        None => (what, None),
        Some((what, Ok(nth))) => (what, Some(nth)),
        Some((_, Err(_))) => return,
    };
    let failure = match what {
        "kill" => FailpointAction::Kill,
        "error" => FailpointAction::Error,
        _ => return,
    };
    if cfg!(debug_assertions) {
        let _ = ARMED_FAILPOINT.set(ArmedFailpoint { name: name.to_owned(), failure, nth, passed: AtomicU32::new(0) });
    }
}

/// Passes a failpoint, which fails here if it is armed.
pub fn pass(name: &str) -> io::Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let Some(armed) = ARMED_FAILPOINT.get().filter(|armed| armed.name == name) else { return Ok(()) };
    let time = armed.passed.fetch_add(1, Ordering::Relaxed) + 1;
    match armed.failure {
        _ if armed.nth.is_some_and(|nth| nth != time) => Ok(()),
        FailpointAction::Kill => {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            Err(io::Error::other("outlived a kill"))
        }
        FailpointAction::Error => Err(io::Error::other(format!("failed on purpose at {name}"))),
    }
}
