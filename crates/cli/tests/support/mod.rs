//! A temporary directory in which a test runs the binary, and the output of a command.

#![expect(clippy::disallowed_methods, reason = "these tests start the real binary")]

pub mod acp_agents;
pub mod git_project;
pub mod hook_project;
pub mod printed_commands;
pub mod server;
pub mod terminal;
pub mod terminal_session;
pub mod web_page;

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary under test.
pub const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

/// Other programs that the documents and the tests call.
const TOOLS: &[&str] = &[
    "bash", "cat", "cp", "cut", "dash", "env", "git", "grep", "head", "jq", "ls", "mkdir", "mkfifo", "mv", "nohup",
    "chmod", "printf", "rm", "rmdir", "sed", "setpriv", "setsid", "sh", "sleep", "sort", "tail", "touch", "tr", "wc",
];

/// A temporary home directory, state directory and working directory.
pub struct TestWorld {
    root: tempfile::TempDir,
    /// The working directory, without symbolic links.
    pub directory: PathBuf,
}

impl TestWorld {
    /// Creates an empty working directory, without a project.
    pub fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().canonicalize().unwrap().join("work");
        fs::create_dir(&directory).unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        let world = Self { root, directory };
        world.link_tools();
        world
    }

    /// Links ordinary programs only: the agents that are installed on this machine must not be visible.
    fn link_tools(&self) {
        let tools = self.root.path().join("tools");
        fs::create_dir(&tools).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        for name in TOOLS {
            let program =
                std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
            if let Some(file) = program {
                std::os::unix::fs::symlink(file, tools.join(name)).unwrap();
            }
        }
    }

    /// Creates a project.
    pub fn new() -> Self {
        let world = Self::empty();
        world.run_ok(&["init"]);
        world
    }

    /// Creates a project with these tasks.
    pub fn with_tasks(goals: &[&str]) -> Self {
        let world = Self::new();
        for goal in goals {
            world.run_ok(&["task", "add", "--", goal]);
        }
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes the project's configuration and trusts it.
    pub fn configure(&self, config: &str) {
        self.write(".windlass/config.yaml", config);
        self.run_ok(&["trust", "--yes"]);
    }

    /// Returns the directory of the checkouts in which gatekeepers judge commits of this project.
    pub fn checkout_directory(&self) -> PathBuf {
        let digest = windlass_engine::Digest::of_bytes(self.directory.as_os_str().as_encoded_bytes()).to_string();
        self.root.path().join("state/checkouts").join(&digest[..16])
    }

    /// Returns the directory that comes first in `PATH`.
    pub fn program_directory(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// Returns a command for any program, with the environment of this test.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        let paths = [self.program_directory(), self.root.path().join("tools")];
        command
            .env_clear()
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("HOME", self.root.path().join("home"))
            .env("WINDLASS_STATE_DIR", self.root.path().join("state"))
            .env("TZ", "UTC")
            .env("USER", "ann")
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.program(WINDLASS);
        command.args(words);
        command
    }

    pub fn run(&self, words: &[&str]) -> CommandOutput {
        self.run_command(&mut self.command(words))
    }

    pub fn run_with_variable(&self, variable: (&str, &str), words: &[&str]) -> CommandOutput {
        self.run_command(self.command(words).env(variable.0, variable.1))
    }

    pub fn run_in(&self, directory: &str, words: &[&str]) -> CommandOutput {
        self.run_command(self.command(words).current_dir(self.path(directory)))
    }

    /// Runs a command and waits for its end.
    pub fn run_command(&self, command: &mut Command) -> CommandOutput {
        CommandOutput::new(command.output().unwrap(), &self.directory)
    }

    /// Runs `windlass` with this text on standard input.
    pub fn run_with_input(&self, words: &[&str], input: &[u8]) -> CommandOutput {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A program may stop reading before the end.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        CommandOutput::new(output, &self.directory)
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn run_ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.code == 0 && output.stderr.is_empty(), "{words:?}\n{output}");
        output.stdout
    }

    /// Runs a command with `--json`, and returns the printed objects.
    pub fn json_lines(&self, words: &[&str]) -> Vec<Value> {
        let text = self.run_ok(&[&["--json"], words].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{words:?}: {line}"))).collect()
    }

    /// Runs a command with `--json`, and returns the only printed object.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut lines = self.json_lines(words);
        assert_eq!(lines.len(), 1, "{words:?}");
        lines.remove(0)
    }

    /// Calls a tool and returns its result.
    pub fn call_tool(&self, tool: &str, arguments: &Value) -> Value {
        self.json(&["tool", "call", tool, &arguments.to_string()])
    }

    /// Runs a command that must fail, checks that both output formats agree, and returns the error.
    pub fn expect_failure(&self, words: &[&str]) -> String {
        let plain = self.run(words);
        let json = self.run(&[&["--json"], words].concat());
        assert!(plain.stdout.is_empty(), "{words:?}\n{plain}");
        assert!(json.stderr.is_empty(), "{words:?}\n{json}");
        assert!(plain.code == json.code && [1, 64].contains(&plain.code), "{words:?}\n{plain}\n{json}");
        let object: Value = serde_json::from_str(&json.stdout).unwrap();
        let mut keys: Vec<_> = object["error"].as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["causes", "code", "hint", "message"]);
        let hint = &object["error"]["hint"];
        assert!(hint.is_null() || plain.stderr.contains("hint: "), "{words:?}\n{plain}\n{json}");
        let error_text = normalize_times_and_paths(&plain.stderr, &self.directory);
        format!("{error_text}[{} {}]", plain.code, object["error"]["code"].as_str().unwrap())
    }
}

/// The exit code and the output of a command. Its `Display` omits times and temporary paths.
pub struct CommandOutput {
    /// The exit code; 128 and more for a signal, as in shells.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    directory: PathBuf,
}

impl CommandOutput {
    fn new(output: Output, directory: &Path) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let status = output.status;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr), directory: directory.to_owned() }
    }
}

impl Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&normalize_times_and_paths(&self.stdout, &self.directory))?;
        f.write_str(&normalize_times_and_paths(&self.stderr, &self.directory))?;
        if self.code != 0 {
            write!(f, "[exit {}]", self.code)?;
        }
        Ok(())
    }
}

/// Replaces text that differs between runs: the temporary directory and times.
pub fn normalize_times_and_paths(text: &str, directory: &Path) -> String {
    let text = text.replace(&*directory.to_string_lossy(), "$WORK");
    let mut filtered = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((start, end)) = find_timestamp(rest) {
        filtered.push_str(&rest[..start]);
        filtered.push_str("<time>");
        rest = &rest[end..];
        if rest.starts_with(" (")
            && let Some(ago) = rest.find(" ago)")
        {
            rest = &rest[ago + " ago)".len()..];
        }
    }
    filtered + rest
}

/// Returns the position of the first time, such as `2026-01-17 10:00:00` or `2026-01-17T10:00:00.000Z`.
fn find_timestamp(text: &str) -> Option<(usize, usize)> {
    const TIMESTAMP_SHAPE: &[u8] = b"0000-00-00 00:00:00";
    let matches_shape = |window: &[u8]| {
        window.iter().zip(TIMESTAMP_SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            other => byte == other,
        })
    };
    let start = text.as_bytes().windows(TIMESTAMP_SHAPE.len()).position(matches_shape)?;
    let mut end = start + TIMESTAMP_SHAPE.len();
    if text[end..].starts_with('.') {
        end += text[end..].find('Z').map_or(0, |place| place + 1);
    }
    Some((start, end))
}

/// Replaces durations, such as `12 ms` or `~1.2 s`, and the blanks that align them.
pub fn normalize_durations(text: &str) -> String {
    let is_duration = |number: &str, unit: &str| {
        let number = number.trim_start_matches(['(', '~']);
        ["ms", "s", "min", "h"].contains(&unit.trim_end_matches([')', ','])) && number.parse::<f64>().is_ok()
    };
    let normalize_line = |line: &str| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut cells: Vec<String> = Vec::new();
        let mut is_after_gap = false;
        for word in line.trim_start().split(' ') {
            match cells.last_mut() {
                _ if word.is_empty() => is_after_gap = true,
                Some(last) if !is_after_gap && is_duration(last.rsplit(' ').next().unwrap_or_default(), word) => {
                    let prefix = last.rfind(' ').map_or("", |place| &last[..=place]);
                    let (open, close) = if word.ends_with(')') { ("(", ")") } else { ("", "") };
                    *last = format!("{prefix}{open}<took>{close}");
                }
                Some(last) if !is_after_gap => *last = format!("{last} {word}"),
                _ => {
                    cells.push(word.to_owned());
                    is_after_gap = false;
                }
            }
        }
        format!("{indent}{}", cells.join("  "))
    };
    let has_duration =
        |line: &str| line.split(' ').zip(line.split(' ').skip(1)).any(|(one, two)| is_duration(one, two));
    let lines: Vec<String> =
        text.lines().map(|line| if has_duration(line) { normalize_line(line) } else { line.to_owned() }).collect();
    lines.join("\n")
}
