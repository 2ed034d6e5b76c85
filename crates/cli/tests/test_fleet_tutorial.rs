//! `docs/tutorial/two-machines.md` does what it shows.
//!
//! Each `sh` block opens a terminal, which the `PS1` of the block names. In a `shellsession` block, a prompt names the terminal of
//! its command. The home directory is called `/home/ann`, and the test puts a free port in the place of 4222.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use windlass_testkit::nats_server::find_python;

use crate::docs::matches_output;
use crate::support::{TestWorld, WINDLASS};

const SHOWN_PORT: &str = "4222";
const END_OF_OUTPUT: &str = "== end of output ==";
/// The last line of a command that goes on.
const END_OF_SERVER_START: &str = "Ctrl-C ends the servers.";

/// A command of the page, or the set-up of a terminal.
struct TutorialStep {
    line: usize,
    /// None if the step opens a terminal.
    terminal: Option<String>,
    command: String,
    output: Vec<String>,
}

/// A shell that runs the commands of one terminal.
struct TutorialTerminal {
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for TutorialTerminal {
    fn drop(&mut self) {
        // The supervisor of a killed command ends its servers.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl TutorialTerminal {
    fn open(world: &TestWorld, home: &Path) -> Self {
        let mut command = world.program("sh");
        command.env_remove("WINDLASS_STATE_DIR").current_dir(home).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let (input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        Self { shell, input, output: BufReader::new(output) }
    }

    /// Runs a command and returns the lines of its output, on either stream.
    fn run_command(&mut self, command: &str) -> Vec<String> {
        let ending = format!("{{ {command}\n}} 2>&1 < /dev/null; echo '{END_OF_OUTPUT}'\n");
        self.input.write_all(ending.as_bytes()).unwrap();
        let mut lines: Vec<String> = Vec::new();
        for line in (&mut self.output).lines() {
            let line = line.unwrap();
            if line == END_OF_OUTPUT {
                break;
            }
            lines.push(line.trim_end().to_owned());
            if line == END_OF_SERVER_START {
                break;
            }
        }
        lines
    }
}

/// Returns the terminal and the command of a line such as `mill$ windlass task list`.
fn split_prompt(line: &str) -> Option<(&str, &str)> {
    line.split_once("$ ").filter(|(name, _)| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()))
}

fn tutorial_steps(text: &str) -> Vec<TutorialStep> {
    let mut steps: Vec<TutorialStep> = Vec::new();
    let mut fence = "";
    for (line, content) in (1..).zip(text.lines()) {
        let mut add_step = |terminal: Option<&str>, command: &str| {
            let (terminal, command) = (terminal.map(str::to_owned), command.to_owned());
            steps.push(TutorialStep { line, terminal, command, output: Vec::new() });
        };
        if let Some(language) = content.strip_prefix("```") {
            fence = language;
            if fence == "sh" {
                add_step(None, "");
            }
        } else if let Some((terminal, command)) = split_prompt(content).filter(|_| fence == "shellsession") {
            add_step(Some(terminal), command);
        } else if let Some(step) = steps.last_mut().filter(|_| ["sh", "shellsession"].contains(&fence)) {
            match (fence, content.strip_prefix("> ")) {
                ("sh", _) => step.command.push_str(&format!("{content}\n")),
                (_, Some(rest)) => step.command.push_str(&format!("\n{rest}")),
                (_, None) => step.output.push(content.to_owned()),
            }
        }
    }
    steps
}

#[test]
fn tutorial_of_two_machines_does_what_it_shows() {
    let page: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/tutorial/two-machines.md"].iter().collect();
    let world = TestWorld::empty();
    let home = world.path("../home").canonicalize().unwrap();
    let server = find_python().expect("`scripts/clients` installs nats-server").with_file_name("nats-server");
    for (name, program) in [("windlass", Path::new(WINDLASS)), ("nats-server", &server)] {
        std::os::unix::fs::symlink(program, world.program_directory().join(name)).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let up = format!("exec windlass fleet up --port {port}");
    let mut terminals: BTreeMap<String, TutorialTerminal> = BTreeMap::new();
    let mut wrong = Vec::new();
    for TutorialStep { line, terminal, command, output } in tutorial_steps(&fs::read_to_string(page).unwrap()) {
        let Some(terminal) = terminal else {
            let name = command.split_once("PS1='").and_then(|(_, rest)| rest.split_once('$')).unwrap().0.to_owned();
            let mut opened = TutorialTerminal::open(&world, &home);
            assert_eq!(opened.run_command(&command), Vec::<String>::new(), "line {line}");
            terminals.insert(name, opened);
            continue;
        };
        let typed = command.replace(SHOWN_PORT, &port).replace("windlass fleet up", &up);
        let printed = terminals.get_mut(&terminal).unwrap().run_command(&typed);
        let printed = printed.join("\n").replace(&port, SHOWN_PORT).replace(&*home.to_string_lossy(), "/home/ann");
        let found: Vec<&str> = printed.trim_end().lines().collect();
        let end = output.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        if !matches_output(&output[..end], &found) {
            wrong.push(format!("two-machines.md, line {line}: `{command}` prints\n{printed}\n"));
        }
    }
    assert!(!terminals.is_empty() && wrong.is_empty(), "\n{}", wrong.join("\n"));
}
