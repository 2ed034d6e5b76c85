//! A temporary place with the binary in it, and what a run of it gave.

#![expect(clippy::disallowed_methods, reason = "these tests start the real binary")]

pub mod delivered;
pub mod driven;
pub mod hooked;
pub mod offered;
pub mod server;
pub mod terminal;
pub mod watched;

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary under test.
pub const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

/// What the documents and the tests call besides.
const TOOLS: &[&str] = &[
    "bash", "cat", "cp", "cut", "dash", "env", "git", "grep", "head", "jq", "ls", "mkdir", "mkfifo", "mv", "nohup",
    "chmod", "printf", "rm", "rmdir", "sed", "setpriv", "setsid", "sh", "sleep", "sort", "tail", "touch", "tr", "wc",
];

/// A home, a state directory and a working directory of its own.
pub struct World {
    root: tempfile::TempDir,
    /// The working directory, without symbolic links.
    pub directory: PathBuf,
}

impl World {
    /// An empty directory, without a project.
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

    /// Ordinary programs, and no others: which agents this machine has must not show.
    fn link_tools(&self) {
        let tools = self.root.path().join("tools");
        fs::create_dir(&tools).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        for name in TOOLS {
            let found = std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
            if let Some(file) = found {
                std::os::unix::fs::symlink(file, tools.join(name)).unwrap();
            }
        }
    }

    /// A directory with a fresh project.
    pub fn new() -> Self {
        let world = Self::empty();
        world.ok(&["init"]);
        world
    }

    /// A project with these tasks.
    pub fn with_tasks(goals: &[&str]) -> Self {
        let world = Self::new();
        for goal in goals {
            world.ok(&["task", "add", "--", goal]);
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

    /// Writes the project's configuration, and trusts it.
    pub fn configure(&self, config: &str) {
        self.write(".windlass/config.yaml", config);
        self.ok(&["trust", "--yes"]);
    }

    /// Where commits of this directory are judged.
    pub fn checkouts(&self) -> PathBuf {
        let digest = windlass_engine::Digest::of_bytes(self.directory.as_os_str().as_encoded_bytes()).to_string();
        self.root.path().join("state/checkouts").join(&digest[..16])
    }

    /// A directory whose programs are found before all others.
    pub fn programs(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// Any program, in our environment.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        let paths = [self.programs(), self.root.path().join("tools")];
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

    pub fn run(&self, words: &[&str]) -> Ran {
        self.finish(&mut self.command(words))
    }

    pub fn run_with(&self, variable: (&str, &str), words: &[&str]) -> Ran {
        self.finish(self.command(words).env(variable.0, variable.1))
    }

    pub fn run_in(&self, directory: &str, words: &[&str]) -> Ran {
        self.finish(self.command(words).current_dir(self.path(directory)))
    }

    /// Runs a command to its end.
    pub fn finish(&self, command: &mut Command) -> Ran {
        Ran::new(command.output().unwrap(), &self.directory)
    }

    /// Runs with something on standard input.
    pub fn feed(&self, words: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let input = input.to_vec();
        // It may stop reading before the end: that is its right.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran::new(output, &self.directory)
    }

    /// What a command that succeeds prints.
    pub fn ok(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert!(ran.code == 0 && ran.stderr.is_empty(), "{words:?}\n{ran}");
        ran.stdout
    }

    /// The objects that a command that succeeds prints with `--json`.
    pub fn lines(&self, words: &[&str]) -> Vec<Value> {
        let text = self.ok(&[&["--json"], words].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{words:?}: {line}"))).collect()
    }

    /// The one object that a command that succeeds prints with `--json`.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut lines = self.lines(words);
        assert_eq!(lines.len(), 1, "{words:?}");
        lines.remove(0)
    }

    /// What a tool answers.
    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.json(&["tool", "call", tool, &arguments.to_string()])
    }

    /// A failure, which says the same in both forms.
    pub fn fails(&self, words: &[&str]) -> String {
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
        let said = filter(&plain.stderr, &self.directory);
        format!("{said}[{} {}]", plain.code, object["error"]["code"].as_str().unwrap())
    }
}

/// What a run gave. Shown, it has no times and no temporary paths.
pub struct Ran {
    /// The exit code; 128 and more for a signal, as shells say it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    directory: PathBuf,
}

impl Ran {
    fn new(output: Output, directory: &Path) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let status = output.status;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr), directory: directory.to_owned() }
    }
}

impl Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&filter(&self.stdout, &self.directory))?;
        f.write_str(&filter(&self.stderr, &self.directory))?;
        if self.code != 0 {
            write!(f, "[exit {}]", self.code)?;
        }
        Ok(())
    }
}

/// Replaces what differs from run to run: the temporary directory, and moments.
pub fn filter(text: &str, directory: &Path) -> String {
    let text = text.replace(&*directory.to_string_lossy(), "$WORK");
    let mut filtered = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((start, end)) = moment(rest) {
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

/// Where the first moment is: `2026-01-17 10:00:00`, or `2026-01-17T10:00:00.000Z`.
fn moment(text: &str) -> Option<(usize, usize)> {
    const SHAPE: &[u8] = b"0000-00-00 00:00:00";
    let fits = |window: &[u8]| {
        window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            other => byte == other,
        })
    };
    let start = text.as_bytes().windows(SHAPE.len()).position(fits)?;
    let mut end = start + SHAPE.len();
    if text[end..].starts_with('.') {
        end += text[end..].find('Z').map_or(0, |place| place + 1);
    }
    Some((start, end))
}

/// Replaces how long things took, and the blanks that align it: `12 ms`, `~1.2 s`.
pub fn timeless(text: &str) -> String {
    let is_span = |number: &str, unit: &str| {
        let number = number.trim_start_matches(['(', '~']);
        ["ms", "s", "min", "h"].contains(&unit.trim_end_matches([')', ','])) && number.parse::<f64>().is_ok()
    };
    let line = |line: &str| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut cells: Vec<String> = Vec::new();
        let mut wide = false;
        for word in line.trim_start().split(' ') {
            match cells.last_mut() {
                _ if word.is_empty() => wide = true,
                Some(last) if !wide && is_span(last.rsplit(' ').next().unwrap_or_default(), word) => {
                    let kept = last.rfind(' ').map_or("", |place| &last[..=place]);
                    let (open, close) = if word.ends_with(')') { ("(", ")") } else { ("", "") };
                    *last = format!("{kept}{open}<took>{close}");
                }
                Some(last) if !wide => *last = format!("{last} {word}"),
                _ => {
                    cells.push(word.to_owned());
                    wide = false;
                }
            }
        }
        format!("{indent}{}", cells.join("  "))
    };
    let timed = |line: &str| line.split(' ').zip(line.split(' ').skip(1)).any(|(one, two)| is_span(one, two));
    let lines: Vec<String> = text.lines().map(|each| if timed(each) { line(each) } else { each.to_owned() }).collect();
    lines.join("\n")
}
