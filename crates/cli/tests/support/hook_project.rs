//! Projects with misbehaving hooks, and functions that inspect them afterwards.

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::TestWorld;
use crate::test_run::RUN;

/// An agent that completes its task in the first turn.
pub const COMPLETING_AGENT: &str = "echo '<promise>COMPLETE</promise>'";

/// The point at which a misbehaving hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultyHookPoint {
    /// A hook of an event, after a command.
    Command,
    /// A gate of a session with one iteration.
    Stop,
}

impl FaultyHookPoint {
    pub const ALL: [Self; 2] = [Self::Command, Self::Stop];

    /// Creates a trusted project in which `bad.sh` runs at this point, followed by a hook that creates the file `good`.
    pub fn create_project(self, script: &str, fields: &str) -> TestWorld {
        let point = if self == Self::Stop { "stop" } else { "task_created" };
        let bad = format!("{{name: bad, command: sh bad.sh, {fields}}}");
        let world = create_hook_project(&format!("hooks: {{{point}: [{bad}, {{name: good, command: sh good.sh}}]}}\n"));
        world.write("bad.sh", script);
        world.write("good.sh", "touch good\n");
        world.write("agent.sh", COMPLETING_AGENT);
        world
    }

    /// Returns the arguments of the command that runs the hooks.
    pub fn trigger_command(self) -> Vec<&'static str> {
        match self {
            Self::Command => vec!["task", "add", "One"],
            Self::Stop => [RUN, &["--max-iterations", "1"]].concat(),
        }
    }
}

/// Creates a project with this configuration, and trusts it unless a hook runs a workflow: the workflow has to exist first.
pub fn create_hook_project(config: &str) -> TestWorld {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", config);
    if !config.contains("workflow:") {
        world.run_ok(&["trust", "--yes"]);
    }
    world
}

impl TestWorld {
    /// Returns the payloads of a type of event.
    pub fn event_payloads(&self, kind: &str) -> Vec<Value> {
        self.json_lines(&["events", "--type", kind]).into_iter().map(|mut event| event["data"].take()).collect()
    }

    /// Returns the outcome and the message of a hook's last run.
    pub fn last_hook_outcome(&self, hook: &str) -> (String, String) {
        let payloads = self.event_payloads("hook_finished");
        let last = payloads.iter().rfind(|finished| finished["hook"] == hook);
        let text = |name: &str| last.and_then(|last| last[name].as_str()).unwrap_or_default().to_owned();
        (text("outcome"), text("message"))
    }

    pub fn has_file(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Returns the number in a file.
    pub fn read_number(&self, name: &str) -> i64 {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.trim().parse().unwrap_or_else(|_| panic!("`{name}` holds `{text}`"))
    }

    /// Creates a named pipe. A process that writes to it waits for [`TestWorld::await_pipe`].
    pub fn make_pipe(&self, name: &str) {
        self.run_command(self.program("mkfifo").arg(name));
    }

    /// Waits until a process has written to a pipe.
    pub fn await_pipe(&self, pipe: &str) {
        fs::read(self.path(pipe)).unwrap();
    }

    /// Returns every file in `.windlass` and every event: all places where a secret could be stored.
    pub fn read_files_and_events(&self) -> Vec<(String, Vec<u8>)> {
        let mut contents = vec![("events".to_owned(), self.run_ok(&["events", "--json"]).into_bytes())];
        let mut directories = vec![self.path(".windlass")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => directories.push(entry.path()),
                    false => contents.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap())),
                }
            }
        }
        contents
    }
}

/// Waits for the end of a process.
pub fn await_process_end(pid: i64) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    // A process that does not exist has ended.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)).unwrap();
    assert_eq!(ready, 1, "waited in vain for the end of {pid:?}");
}

/// Returns whether a process has ended. Its parent may still have to reap it.
pub fn has_process_ended(pid: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).is_none_or(|state| "ZX".contains(state))
}
