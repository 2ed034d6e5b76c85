//! A temporary directory with an owner, both ways to run, and waits that do not sleep by guess.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windlass_process::{
    CaptureLimits, OutputStream, OwnerLock, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError,
    ProgramSupervisor, RunControl, SupervisorLauncher, run_program,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Direct,
    Supervised,
}

pub const WAYS: [Way; 2] = [Way::Direct, Way::Supervised];

pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub struct Scene {
    pub directory: tempfile::TempDir,
    pub roster: OwnerLock,
    pub control: RunControl,
    pub way: Way,
}

impl Scene {
    pub fn new(way: Way) -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let directory = tempfile::tempdir().expect("a directory");
        let nonce = NONCE.fetch_add(1, Ordering::Relaxed);
        let roster = OwnerLock::acquire(&directory.path().join("owners"), nonce).expect("a roster");
        Self { directory, roster, control: RunControl::new(), way }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn shell(&self, script: &str) -> ProgramSpec {
        spec(self.directory.path(), ProgramInvocation::Shell(script.into()))
    }

    pub fn argv(&self, arguments: &[&str]) -> ProgramSpec {
        spec(self.directory.path(), ProgramInvocation::Argv(arguments.iter().map(OsString::from).collect()))
    }

    pub fn run(&self, spec: &ProgramSpec) -> ProgramOutcome {
        self.try_run(spec).expect("it starts")
    }

    pub fn try_run(&self, spec: &ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
        self.observe(spec, &mut |_, _| {})
    }

    pub fn observe(
        &self,
        spec: &ProgramSpec,
        observe: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ProgramOutcome, ProgramStartError> {
        self.observe_with(spec, &self.control, observe)
    }

    /// Does the same under another control.
    pub fn observe_with(
        &self,
        spec: &ProgramSpec,
        control: &RunControl,
        observe: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ProgramOutcome, ProgramStartError> {
        match self.way {
            Way::Direct => run_program(spec, &self.roster, control, observe),
            Way::Supervised => supervisor().run_program(spec, &self.roster, control, observe),
        }
    }

    /// Waits until a script has written a number to a file, and returns it.
    pub fn number_in(&self, name: &str) -> i32 {
        let mut found = None;
        until(&format!("{name} is written"), || {
            let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
            found = text.strip_suffix('\n').and_then(|number| number.trim().parse().ok());
            found.is_some()
        });
        found.expect("just seen")
    }
}

/// Runs a test with and without a supervisor.
pub fn check(test: impl Fn(&Scene)) {
    for way in WAYS {
        test(&Scene::new(way));
    }
}

pub fn spec(directory: &Path, invocation: ProgramInvocation) -> ProgramSpec {
    ProgramSpec {
        invocation,
        directory: directory.to_owned(),
        environment: vec![("PATH".into(), PATH.into())],
        stdin: Vec::new(),
        timeout: Some(Duration::from_secs(30)),
        idle_timeout: None,
        grace: Duration::from_secs(20),
        capture: CaptureLimits { head: 64 * 1024, tail: 64 * 1024, spill: None },
    }
}

pub fn probe() -> &'static str {
    env!("CARGO_BIN_EXE_process-probe")
}

pub fn supervisor() -> ProgramSupervisor {
    let launcher =
        SupervisorLauncher { program: probe().into(), arguments: vec!["supervise".into()], environment: Vec::new() };
    ProgramSupervisor::start(&launcher).expect("a supervisor")
}

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the state letter of a process. `None` if no process has that number.
pub fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Returns when a process was started, in the system's clock ticks.
pub fn start_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)?.parse().ok()).expect("a start time")
}

/// Returns whether a process is stopped, or waits in `vfork` for a child that was stopped before its `exec`.
pub fn stands_still(pid: i32) -> bool {
    matches!(state(pid), Some('T' | 'D'))
}

/// Returns whether nothing is left of a process, not even a zombie.
pub fn is_gone(pid: i32) -> bool {
    state(pid).is_none()
}

/// Returns whether it has ended. Its parent may still have to reap it.
pub fn is_dead(pid: i32) -> bool {
    state(pid).is_none_or(|state| state == 'Z' || state == 'X')
}

/// Returns the processes that carry a tag of this owner.
pub fn tagged(owner: &str) -> Vec<i32> {
    let wanted = format!("WINDLASS_TAG={owner}.").into_bytes();
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&wanted))
    })
    .collect()
}
