//! Broken commands: the program or the script that they name is missing.
//!
//! The rule: a command is broken if it fails while the script that it names does not exist, or exits with 126 or 127
//! because the program that it names cannot be executed. The script is the first word, if that has a `/`, or the word
//! behind an interpreter unless it is in `PATH`, where some shells search for it. Shells and Python exit with 2 if a script
//! is missing, which would otherwise be a verdict. Other commands that exit with 127, such as `npm test` before `npm
//! install`, fail in a way that an agent can repair.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use windlass_process::ProgramExit;

use crate::clean_output;

/// Programs that take a script as their first argument. `python3.12` counts as `python`.
const INTERPRETERS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "python", "node", "ruby", "perl"];

/// A command with its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct ShellCommand<'a> {
    pub text: &'a str,
    pub directory: &'a Path,
    pub environment: &'a [(OsString, OsString)],
}

impl ShellCommand<'_> {
    /// Returns why the command is broken, and what to do about it.
    pub fn broken_command_cause(&self, exit: ProgramExit) -> Option<String> {
        let ProgramExit::Code(code @ 1..) = exit else { return None };
        if let Some(missing) = self.missing_script() {
            return Some(format!("{missing}; create it, or correct `command`"));
        }
        // `missing` finds nothing in a command that needs a shell: it names several programs.
        windlass_process::find_missing_program(OsStr::new(self.text), self.directory, self.environment)?;
        match code {
            126 => Some("exit 126, a program cannot be executed; check its permissions (`chmod +x`)".to_owned()),
            127 => Some("exit 127, a program was not found; install it, or correct `command`".into()),
            _ => None,
        }
    }

    /// Returns a text that names the missing script of the command.
    pub fn missing_script(&self) -> Option<String> {
        let script = self.find_missing_script()?;
        let place = match Path::new(script).is_absolute() {
            true => String::new(),
            false => format!(" in {}", clean(&self.directory.to_string_lossy())),
        };
        Some(format!("`{script}` does not exist{place}"))
    }

    fn find_missing_script(&self) -> Option<&str> {
        let mut words = self.text.split_whitespace();
        let first = words.next()?;
        let program = Path::new(first).file_name()?.to_str()?;
        let program = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        // Node finds `test.js` for `test`.
        let is_exact =
            |word: &&str| !word.starts_with('-') && (program != "node" || Path::new(word).extension().is_some());
        let script = match INTERPRETERS.contains(&program) {
            true => words.next().filter(is_exact)?,
            false => Some(first).filter(|word| word.contains('/'))?,
        };
        // The rule covers only words that the shell does not change.
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-+@".contains(letter);
        let exists = || self.directory.join(script).exists() || self.is_script_in_path(script);
        (script.chars().all(plain) && !exists()).then_some(script)
    }

    fn is_script_in_path(&self, script: &str) -> bool {
        let path = self.environment.iter().rfind(|(name, _)| name == "PATH").filter(|_| !script.contains('/'));
        path.is_some_and(|(_, path)| {
            std::env::split_paths(path).any(|place| self.directory.join(place).join(script).is_file())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: i32, expected: Option<&str>) {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("there.sh"), "exit 2").unwrap();
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let command = ShellCommand { text, directory: place.path(), environment: &environment };
        let broken = command.broken_command_cause(ProgramExit::Code(code));
        assert_eq!(broken.is_some(), expected.is_some(), "{text}: {broken:?}");
        assert!(broken.unwrap_or_default().contains(expected.unwrap_or_default()), "{text}");
    }

    #[test]
    fn command_with_a_missing_script_is_broken_whatever_its_exit() {
        for (text, code) in [
            ("sh check.sh", 2),
            ("bash check.sh --all", 127),
            ("/bin/sh check.sh || exit 2", 2),
            ("python check.py", 2),
            ("python3.12 check.py", 2),
            ("node check.js", 1),
            ("./check.sh", 127),
            ("scripts/check", 127),
            ("  ./check.sh\n", 127),
        ] {
            check(text, code, Some("check"));
        }
        check("sh check.sh", 0, None);
    }

    #[test]
    fn missing_script_is_reported_with_directory() {
        check("./check.sh", 127, Some("`./check.sh` does not exist in /"));
        check("/no/check.sh", 127, Some("`/no/check.sh` does not exist; create it"));
    }

    #[test]
    fn command_with_its_script_gives_a_verdict() {
        for text in
            ["sh there.sh", "./there.sh", "sh -c 'exit 2'", "python -m pytest", "pytest", "test -e x", "sh $script"]
        {
            check(text, 2, None);
            check(text, 1, None);
        }
        check("node check", 1, None);
    }

    #[test]
    fn script_that_a_shell_finds_in_path_is_not_missing() {
        check("bash env", 2, None);
        check("bash ./env", 2, Some("`./env` does not exist in /"));
    }

    #[test]
    fn program_that_is_not_found_further_on_is_a_failure() {
        for text in ["env no-such-program", "no-such-program | cat; exit 127", "cd there && no-such-program"] {
            check(text, 127, None);
        }
    }

    #[test]
    fn unexecutable_program_is_reported_with_remedy() {
        check("no-such-program --all", 127, Some("a program was not found"));
        check("./there.sh", 126, Some("chmod +x"));
    }
}
