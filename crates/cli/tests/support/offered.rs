//! Commands that a text offers, each typed in the state that it was offered in.

use std::fs;

use super::{Ran, World};

/// Placeholders for values that only the reader knows. A command with one of them cannot be typed as printed.
const PLACEHOLDERS: [&str; 3] = [" AGENT", " GOAL", " --help"];

impl World {
    /// Types a command as it was printed.
    pub fn types(&self, command: &str) -> Ran {
        self.finish(self.program("sh").args(["-c", command]))
    }

    /// Types every command that these texts offer, and expects that none is refused. Afterwards all files are as before, so that
    /// each one runs in the state that it was offered in. Returns the commands.
    pub fn types_offers(&self, said: &str) -> Vec<String> {
        let root = self.root.path().to_owned();
        let shelf = tempfile::tempdir().unwrap();
        let copy = |from: &std::path::Path, to: &std::path::Path| {
            let copied = self.finish(self.program("/bin/cp").arg("-a").arg(from.join(".")).arg(to));
            assert_eq!(copied.code, 0, "{copied}");
        };
        copy(&root, shelf.path());
        let offers = offers(said);
        for command in &offers {
            let ran = self.types(command);
            let refused = [1, 64].contains(&ran.code) && ran.stderr.contains("error: ");
            assert!(!refused, "`{command}` is refused:\n{ran}\nit was offered in:\n{said}");
            for entry in fs::read_dir(&root).unwrap() {
                let path = entry.unwrap().path();
                let is_directory = path.symlink_metadata().unwrap().is_dir();
                if is_directory { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
            }
            let restored =
                std::process::Command::new("/bin/cp").arg("-a").arg(shelf.path().join(".")).arg(&root).status();
            assert!(restored.unwrap().success());
            // Copies are files that this machine has no record of.
            self.run(&["trust", "--yes"]);
        }
        offers
    }
}

/// Returns the commands in a text: between backticks, on a line of their own, after a label, or in a comment behind another one.
/// One after "then" is for a later state.
pub fn offers(said: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in said.lines() {
        if line.contains("not trusted now") {
            continue;
        }
        let parts: Vec<&str> = line.split('`').collect();
        let quoted = parts.chunks_exact(2).filter(|pair| !pair[0].ends_with("then "));
        found.extend(quoted.map(|pair| pair[1].to_owned()));
        for part in line.split("  # ").flat_map(|part| part.split("  ")) {
            let part = ["next:", "look first:", "or:"]
                .iter()
                .fold(part.trim(), |part, label| part.strip_prefix(label).unwrap_or(part).trim_start());
            found.extend(part.starts_with("windlass ").then(|| part.to_owned()));
        }
    }
    found.retain(|command| {
        command.starts_with("windlass ") && !PLACEHOLDERS.iter().any(|placeholder| command.contains(placeholder))
    });
    found.sort_unstable();
    found.dedup();
    found
}
