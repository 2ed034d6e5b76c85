//! A temporary directory with an owner lock, both launch modes, and waits for conditions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windlass_process::{
    CaptureLimits, OutputStream, OwnerLock, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError,
    ProgramSupervisor, RunControl, SupervisorLauncher, run_program,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchMode {
    Direct,
    Supervised,
}

pub const LAUNCH_MODES: [LaunchMode; 2] = [LaunchMode::Direct, LaunchMode::Supervised];

pub const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub struct ProcessFixture {
    pub directory: tempfile::TempDir,
    pub owner_lock: OwnerLock,
    pub control: RunControl,
    pub mode: LaunchMode,
}

impl ProcessFixture {
    pub fn new(mode: LaunchMode) -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let directory = tempfile::tempdir().expect("a directory");
        let nonce = NONCE.fetch_add(1, Ordering::Relaxed);
        let owner_lock = OwnerLock::acquire(&directory.path().join("owners"), nonce).expect("an owner lock");
        Self { directory, owner_lock, control: RunControl::new(), mode }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn shell_program(&self, script: &str) -> ProgramSpec {
        program_spec(self.directory.path(), ProgramInvocation::Shell(script.into()))
    }

    pub fn argv_program(&self, arguments: &[&str]) -> ProgramSpec {
        program_spec(self.directory.path(), ProgramInvocation::Argv(arguments.iter().map(OsString::from).collect()))
    }

    pub fn run_spec(&self, spec: &ProgramSpec) -> ProgramOutcome {
        self.try_run_spec(spec).expect("it starts")
    }

    pub fn try_run_spec(&self, spec: &ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
        self.observe_run(spec, &mut |_, _| {})
    }

    pub fn observe_run(
        &self,
        spec: &ProgramSpec,
        on_output: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ProgramOutcome, ProgramStartError> {
        self.observe_run_with(spec, &self.control, on_output)
    }

    /// Does the same as [`Self::observe_run`] under another control.
    pub fn observe_run_with(
        &self,
        spec: &ProgramSpec,
        control: &RunControl,
        on_output: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ProgramOutcome, ProgramStartError> {
        match self.mode {
            LaunchMode::Direct => run_program(spec, &self.owner_lock, control, on_output),
            LaunchMode::Supervised => start_supervisor().run_program(spec, &self.owner_lock, control, on_output),
        }
    }

    /// Waits until a script has written a number to a file, and returns it.
    pub fn wait_for_number(&self, name: &str) -> i32 {
        let mut found = None;
        wait_until(&format!("{name} is written"), || {
            let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
            found = text.strip_suffix('\n').and_then(|number| number.trim().parse().ok());
            found.is_some()
        });
        found.expect("just seen")
    }
}

/// Runs a test with and without a supervisor.
pub fn check_launch_modes(test: impl Fn(&ProcessFixture)) {
    for mode in LAUNCH_MODES {
        test(&ProcessFixture::new(mode));
    }
}

pub fn program_spec(directory: &Path, invocation: ProgramInvocation) -> ProgramSpec {
    ProgramSpec {
        timeout: Some(Duration::from_secs(30)),
        grace: Duration::from_secs(20),
        capture: CaptureLimits { head: 64 * 1024, tail: 64 * 1024, spill: None },
        ..ProgramSpec::new(invocation, directory, vec![("PATH".into(), SEARCH_PATH.into())])
    }
}

pub fn probe_path() -> &'static str {
    env!("CARGO_BIN_EXE_process-probe")
}

pub fn start_supervisor() -> ProgramSupervisor {
    let launcher = SupervisorLauncher {
        program: probe_path().into(),
        arguments: vec!["supervise".into()],
        environment: Vec::new(),
    };
    ProgramSupervisor::start(&launcher).expect("a supervisor")
}

/// Waits until a condition holds.
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < give_up, "waited in vain until {description}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the state letter of a process. `None` if no process has that number.
pub fn process_state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Returns when a process was started, in the system's clock ticks.
pub fn start_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)?.parse().ok()).expect("a start time")
}

/// Returns whether a process is stopped, or waits in `vfork` for a child that was stopped before its `exec`.
pub fn is_suspended(pid: i32) -> bool {
    matches!(process_state(pid), Some('T' | 'D'))
}

/// Returns whether a process does not exist, not even as a zombie.
pub fn is_gone(pid: i32) -> bool {
    process_state(pid).is_none()
}

/// Returns whether a process has ended. Its parent may still have to reap it.
pub fn is_dead(pid: i32) -> bool {
    process_state(pid).is_none_or(|state| state == 'Z' || state == 'X')
}

/// Returns the processes that carry a tag of this owner.
pub fn tagged_processes(owner: &str) -> Vec<i32> {
    let wanted = format!("WINDLASS_TAG={owner}.").into_bytes();
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&wanted))
    })
    .collect()
}
