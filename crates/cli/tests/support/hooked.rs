//! Projects with misbehaving hooks, and their state afterwards.

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::World;
use crate::test_run::RUN;

/// An agent that is always done.
pub const DONE: &str = "echo '<promise>COMPLETE</promise>'";

/// The point at which a program misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// As a hook of an event, after a plain command.
    Command,
    /// As a gate of a session of one iteration.
    Stop,
}

impl At {
    pub const BOTH: [Self; 2] = [Self::Command, Self::Stop];

    /// A trusted project in which `bad.sh` runs here, and after it a hook that only leaves a mark.
    pub fn world(self, script: &str, fields: &str) -> World {
        let point = if self == Self::Stop { "stop" } else { "task_created" };
        let bad = format!("{{name: bad, command: sh bad.sh, {fields}}}");
        let world = hooked(&format!("hooks: {{{point}: [{bad}, {{name: good, command: sh good.sh}}]}}\n"));
        world.write("bad.sh", script);
        world.write("good.sh", "touch good\n");
        world.write("agent.sh", DONE);
        world
    }

    /// The command that runs the hooks.
    pub fn words(self) -> Vec<&'static str> {
        match self {
            Self::Command => vec!["task", "add", "One"],
            Self::Stop => [RUN, &["--max-iterations", "1"]].concat(),
        }
    }
}

/// A trusted project with this configuration. Hooks that run workflows are trusted once the workflows exist.
pub fn hooked(config: &str) -> World {
    let world = World::new();
    world.write(".windlass/config.yaml", config);
    if !config.contains("workflow:") {
        world.ok(&["trust", "--yes"]);
    }
    world
}

impl World {
    /// Returns the payloads of a type of event.
    pub fn data_of(&self, kind: &str) -> Vec<Value> {
        self.lines(&["events", "--type", kind]).into_iter().map(|mut event| event["data"].take()).collect()
    }

    /// Returns the outcome of a hook's last run, and its message to people.
    pub fn ending_of(&self, hook: &str) -> (String, String) {
        let all = self.data_of("hook_finished");
        let last = all.iter().rfind(|finished| finished["hook"] == hook);
        let text = |name: &str| last.and_then(|last| last[name].as_str()).unwrap_or_default().to_owned();
        (text("outcome"), text("message"))
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The number that a script has written.
    pub fn number_in(&self, name: &str) -> i64 {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.trim().parse().unwrap_or_else(|_| panic!("`{name}` holds `{text}`"))
    }

    /// A named pipe: a process that writes to it waits for [`WorkerSimulation::hear`].
    pub fn make_pipe(&self, name: &str) {
        self.finish(self.program("mkfifo").arg(name));
    }

    /// Waits for a word in a pipe.
    pub fn await_word(&self, pipe: &str) {
        fs::read(self.path(pipe)).unwrap();
    }

    /// Returns everything under the project, and every event: all places for a secret.
    pub fn read_files_and_events(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = vec![("events".to_owned(), self.ok(&["events", "--json"]).into_bytes())];
        let mut left = vec![self.path(".windlass")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => left.push(entry.path()),
                    false => found.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap())),
                }
            }
        }
        found
    }
}

/// Waits for the end of a process.
pub fn await_end(pid: i64) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    // A process that does not exist has ended.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let give_up = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&give_up)).unwrap();
    assert_eq!(ended, 1, "waited in vain for the end of {pid:?}");
}

/// Returns whether a process has ended. Its parent may still have to reap it.
pub fn is_dead(pid: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).is_none_or(|state| "ZX".contains(state))
}
