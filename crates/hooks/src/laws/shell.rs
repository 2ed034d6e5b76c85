//! Filled scripts in real shells: no shell runs free text.
//!
//! Each byte of an input chooses a piece of shell text.
#![allow(clippy::disallowed_methods, reason = "the law runs scripts in real shells")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use super::shell_pieces::{COMMANDS, PAYLOADS, PIECES, executes_variable};
use crate::{HookScript, InputChannel, ScriptValues};

/// The maximum number of pieces in one script.
const MAX_PIECES: usize = 40;

static SHELLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let is_available = |shell: &&str| Command::new(shell).args(["-c", ":"]).status().is_ok();
    ["/bin/dash", "/bin/bash", "/bin/sh"].into_iter().filter(is_available).take(2).collect()
});

static WORK_DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

/// Checks that an accepted script does not run free text. The first byte chooses the payload, the shell and the channel.
pub fn check_shell_safety(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let all = PIECES.iter().chain(COMMANDS);
    let piece =
        |byte: &u8| *all.clone().nth(usize::from(*byte) % (PIECES.len() + COMMANDS.len())).expect("one of them");
    let text: String = rest.iter().take(MAX_PIECES).map(piece).collect();
    if !text.contains("{{error}}") || executes_variable(&text) {
        return;
    }
    let Ok(script) = HookScript::parse(&text) else { return };
    let first = usize::from(*first);
    let (payload, shell) = (PAYLOADS[first % PAYLOADS.len()], SHELLS[first / PAYLOADS.len() % SHELLS.len()]);
    let channel = if first >= 224 { InputChannel::File } else { InputChannel::Variable };
    let values = ScriptValues { session: "s", iteration: "1", task_id: "", task_content: channel, error: channel };
    let filled = script.fill_values(&values);
    let created_files = run_script(shell, &filled, payload);
    assert!(!created_files.iter().any(|name| name.starts_with("pwned")), "{shell} has run {payload:?} in {filled:?}");
}

/// Runs a script, and returns the names of the files that it has created.
fn run_script(shell: &str, script: &str, payload: &str) -> Vec<String> {
    let directory = WORK_DIRECTORY.path();
    let value = directory.join(".value");
    fs::write(&value, payload).expect("a file");
    let mut command = Command::new(shell);
    command
        .args(["-c", script])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("WINDLASS_ERROR", payload).env("WINDLASS_ERROR_FILE", &value);
    command.status().expect("a shell");
    let mut created_files = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        created_files.push(entry.file_name().to_string_lossy().into_owned());
        let _ = fs::remove_file(entry.path());
    }
    created_files
}
