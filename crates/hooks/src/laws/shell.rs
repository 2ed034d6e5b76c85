//! Filled commands in real shells: no shell runs any free text.
//!
//! Each byte of an input chooses a piece of shell text.
#![allow(clippy::disallowed_methods, reason = "what a shell makes of a text is the question here")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use super::pieces::{COMMANDS, PAYLOADS, PIECES, runs_a_variable};
use crate::{HookScript, InputChannel, ScriptValues};

/// The most pieces in one script.
const MOST: usize = 40;

static SHELLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let runs = |shell: &&str| Command::new(shell).args(["-c", ":"]).status().is_ok();
    ["/bin/dash", "/bin/bash", "/bin/sh"].into_iter().filter(runs).take(2).collect()
});

static PLACE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

/// An accepted script runs nothing of a free text. The first byte chooses the payload, the shell and the channel.
pub fn shell(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let all = PIECES.iter().chain(COMMANDS);
    let piece =
        |byte: &u8| *all.clone().nth(usize::from(*byte) % (PIECES.len() + COMMANDS.len())).expect("one of them");
    let text: String = rest.iter().take(MOST).map(piece).collect();
    if !text.contains("{{error}}") || runs_a_variable(&text) {
        return;
    }
    let Ok(script) = HookScript::parse(&text) else { return };
    let first = usize::from(*first);
    let (payload, shell) = (PAYLOADS[first % PAYLOADS.len()], SHELLS[first / PAYLOADS.len() % SHELLS.len()]);
    let carrier = if first >= 224 { InputChannel::File } else { InputChannel::Variable };
    let values = ScriptValues { session: "s", iteration: "1", task_id: "", task_content: carrier, error: carrier };
    let filled = script.fill_values(&values);
    let left = run(shell, &filled, payload);
    assert!(!left.iter().any(|name| name.starts_with("pwned")), "{shell} has run {payload:?} in {filled:?}");
}

/// Runs a script, and returns the names of the files that it left.
fn run(shell: &str, script: &str, payload: &str) -> Vec<String> {
    let place = PLACE.path();
    let value = place.join(".value");
    fs::write(&value, payload).expect("a file");
    let mut command = Command::new(shell);
    command.args(["-c", script]).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("WINDLASS_ERROR", payload).env("WINDLASS_ERROR_FILE", &value);
    command.status().expect("a shell");
    let mut left = Vec::new();
    for entry in fs::read_dir(place).expect("a directory").flatten() {
        left.push(entry.file_name().to_string_lossy().into_owned());
        let _ = fs::remove_file(entry.path());
    }
    left
}
