//! The one place that asks the machine: variables, directories, the clock, randomness, who is running us.
//!
//! Everything else gets these as values, so that the rest of the program is the same on every machine and in every test.

#![expect(clippy::disallowed_methods, reason = "this is the one home of the environment and of the clock")]

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_engine::Timestamp;

/// A variable's value, `None` where it is unset or empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn text(name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok())
}

/// `WINDLASS_PROJECT`: the project to work on, unless `--project` names one.
pub fn project() -> Option<PathBuf> {
    variable("WINDLASS_PROJECT").map(PathBuf::from)
}

/// `WINDLASS_RUN`: the run that this process is part of, if an agent or a hook started it.
pub fn run() -> Option<String> {
    text("WINDLASS_RUN")
}

/// `WINDLASS_FAILPOINT`: a place at which a test wants this program to fail.
pub fn failpoint() -> Option<String> {
    text("WINDLASS_FAILPOINT")
}

/// Who is to be named as the author of an event.
pub fn user() -> String {
    text("USER").or_else(|| text("LOGNAME")).unwrap_or_else(|| "unknown".to_owned())
}

/// Where this person's trust decisions are kept: outside every project.
pub fn state_directory() -> Option<PathBuf> {
    variable("WINDLASS_STATE_DIR")
        .or_else(|| variable("XDG_STATE_HOME").map(|home| PathBuf::from(home).join("windlass").into()))
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".local/state/windlass")))
        .filter(|directory| directory.is_absolute())
}

/// The directories that programs are looked up in.
pub fn program_directories() -> Vec<PathBuf> {
    variable("PATH").map(|path| env::split_paths(&path).filter(|d| d.is_absolute()).collect()).unwrap_or_default()
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Sixteen random bytes, for ids that must not collide.
pub fn random() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
