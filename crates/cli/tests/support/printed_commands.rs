//! Commands that Windlass suggests in its output, run in the state in which it printed them.

use std::fs;

use super::{CommandOutput, TestWorld};

/// Placeholders for values that only the reader knows. A command with a placeholder cannot run as printed.
const PLACEHOLDERS: [&str; 3] = [" AGENT", " GOAL", " --help"];

impl TestWorld {
    /// Runs a command in a shell, as it was printed.
    pub fn run_shell_command(&self, command: &str) -> CommandOutput {
        self.run_command(self.program("sh").args(["-c", command]))
    }

    /// Runs every command in a text, checks that Windlass refuses none, and returns the commands. Restores all files after each
    /// command, so that each one runs in the state in which it was printed.
    pub fn run_printed_commands(&self, text: &str) -> Vec<String> {
        let root = self.root.path().to_owned();
        let backup = tempfile::tempdir().unwrap();
        let copy = |from: &std::path::Path, to: &std::path::Path| {
            let output = self.run_command(self.program("/bin/cp").arg("-a").arg(from.join(".")).arg(to));
            assert_eq!(output.code, 0, "{output}");
        };
        copy(&root, backup.path());
        let commands = find_printed_commands(text);
        for command in &commands {
            let output = self.run_shell_command(command);
            let is_refused = [1, 64].contains(&output.code) && output.stderr.contains("error: ");
            assert!(!is_refused, "`{command}` is refused:\n{output}\nthe text was:\n{text}");
            for entry in fs::read_dir(&root).unwrap() {
                let path = entry.unwrap().path();
                let is_directory = path.symlink_metadata().unwrap().is_dir();
                if is_directory { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
            }
            let restored =
                std::process::Command::new("/bin/cp").arg("-a").arg(backup.path().join(".")).arg(&root).status();
            assert!(restored.unwrap().success());
            // This machine has no record of the restored copies.
            self.run(&["trust", "--yes"]);
        }
        commands
    }
}

/// Returns the commands in a text: between backticks, on their own line, after a label, or in a comment after another command.
/// Skips commands after "then", which are for a later state.
pub fn find_printed_commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.contains("not trusted now") {
            continue;
        }
        let parts: Vec<&str> = line.split('`').collect();
        let quoted = parts.chunks_exact(2).filter(|pair| !pair[0].ends_with("then "));
        commands.extend(quoted.map(|pair| pair[1].to_owned()));
        for part in line.split("  # ").flat_map(|part| part.split("  ")) {
            let part = ["next:", "look first:", "or:"]
                .iter()
                .fold(part.trim(), |part, label| part.strip_prefix(label).unwrap_or(part).trim_start());
            commands.extend(part.starts_with("windlass ").then(|| part.to_owned()));
        }
    }
    commands.retain(|command| {
        command.starts_with("windlass ") && !PLACEHOLDERS.iter().any(|placeholder| command.contains(placeholder))
    });
    commands.sort_unstable();
    commands.dedup();
    commands
}
