//! The setup of a crash test: a copy of the program under test, the ways to crash it, and the observations of its runs.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::checks::{GuaranteeViolation, ViolationKind};
use super::processes::{self, LivingProcess, await_no_processes, await_process_end};
use super::sweep::tests_all_crash_points;
use crate::support::{TestWorld, WINDLASS};

/// The limit for one run, with a large margin for a busy machine.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// The point at which a test kills a run or injects a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// Kill at the n-th pass of a fail point.
    FailPoint(&'static str, u32),
    /// Kill at the n-th entry of a system call.
    SystemCall(&'static str, u32),
    /// No kill: the system call fails with this error for this duration.
    FailingCall(&'static str, &'static str, FailureDuration, u32),
    /// Kill by the n-th started program, while it runs.
    ProgramStart(u32),
    /// Kill by the n-th started program, together with the supervisor.
    ProgramAndSupervisor(u32),
    /// Kill before the n-th git command does any work.
    BeforeGit(u32),
    /// Kill after the n-th git command has done its work, before the program reads the result.
    AfterGit(u32),
}

/// The number of consecutive calls that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureDuration {
    /// The n-th call.
    Once,
    /// The n-th group of ten calls.
    TenInARow,
    /// All calls from the n-th group of ten on.
    Permanent,
}

impl FailureDuration {
    /// Returns the `when` expression of strace.
    fn strace_expression(self, nth: u32) -> String {
        match self {
            Self::Once => nth.to_string(),
            Self::TenInARow => format!("{}..{}", nth * 10 - 9, nth * 10),
            Self::Permanent => format!("{}+", nth * 10 - 9),
        }
    }
}

impl CrashPoint {
    /// Returns whether the run is killed at this point.
    pub fn is_deadly(self) -> bool {
        !matches!(self, Self::FailingCall(..))
    }
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunExit {
    /// By SIGKILL, the signal of this harness.
    Killed,
    /// By another signal.
    Signaled(i32),
    Code(i32),
    TimedOut,
}

/// A separate copy of the program under test, whose path identifies its processes.
pub struct ProgramCopy(tempfile::TempDir);

impl ProgramCopy {
    pub fn new() -> Self {
        // In the file system of the program, so that a hard link is enough.
        let program = Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        let path = program.0.path().join("windlass");
        if fs::hard_link(WINDLASS, &path).is_err() {
            fs::copy(WINDLASS, &path).unwrap();
        }
        program
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("windlass").canonicalize().unwrap()
    }
}

/// A test directory with the scripts and files of the crash harness.
pub struct CrashSetup {
    pub world: TestWorld,
    pub program: PathBuf,
}

impl CrashSetup {
    pub fn new(program: &ProgramCopy, actor: &str) -> Self {
        let setup = Self { world: TestWorld::empty(), program: program.path() };
        fs::write(setup.actor_path(), actor).unwrap();
        fs::write(setup.recorder_path(), "").unwrap();
        setup
    }

    /// Returns a file outside of the working directory.
    fn harness_file(&self, name: &str) -> PathBuf {
        self.world.program_directory().join(name)
    }

    fn actor_path(&self) -> PathBuf {
        self.harness_file("actor.sh")
    }

    fn recorder_path(&self) -> PathBuf {
        self.harness_file("recorder")
    }

    fn trace_path(&self) -> PathBuf {
        self.harness_file("trace")
    }

    /// Returns whether strace made a call fail.
    pub fn has_injected_failure(&self) -> bool {
        read_or_empty(&self.trace_path()).contains("(INJECTED)")
    }

    pub fn recorder_text(&self) -> String {
        read_or_empty(&self.recorder_path())
    }

    /// Returns the command that runs the program with these arguments and this crash point.
    pub fn windlass_command(&self, words: &[&str], crash: Option<CrashPoint>) -> Command {
        let mut command = match crash {
            Some(CrashPoint::SystemCall(call, nth)) => self.strace_command(call, &format!("signal=KILL:when={nth}")),
            Some(CrashPoint::FailingCall(call, error, duration, nth)) => {
                self.strace_command(call, &format!("error={error}:when={}", duration.strace_expression(nth)))
            }
            _ => self.world.program(&self.program),
        };
        command.args(words).env("CRASH_RECORDER", self.recorder_path()).env("CRASH_ACTOR", self.actor_path());
        match crash {
            Some(CrashPoint::FailPoint(fail_point, nth)) => {
                command.env("WINDLASS_FAILPOINT", format!("{fail_point}=kill@{nth}"))
            }
            Some(CrashPoint::ProgramStart(nth)) => command.env("CRASH_EFFECT", nth.to_string()),
            Some(CrashPoint::ProgramAndSupervisor(nth)) => {
                command.env("CRASH_EFFECT", nth.to_string()).env("CRASH_SUPERVISOR", "too")
            }
            Some(CrashPoint::BeforeGit(nth)) => command.env("CRASH_BEFORE_GIT", nth.to_string()),
            Some(CrashPoint::AfterGit(nth)) => command.env("CRASH_AFTER_GIT", nth.to_string()),
            Some(CrashPoint::SystemCall(..) | CrashPoint::FailingCall(..)) | None => &mut command,
        };
        command
    }

    fn strace_command(&self, call: &str, inject: &str) -> Command {
        let mut strace = self.world.program(find_strace().expect("a crash in a call needs strace"));
        // Without -f, strace traces no children. With ?, a call that the system lacks is not an error.
        let inject = format!("inject=?{call}:{inject}");
        strace.args(["-qq", "-e", &format!("trace=?{call}"), "-e", &inject, "-o"]).arg(self.trace_path()).arg("--");
        strace.arg(&self.program);
        strace
    }

    /// Runs a command until it exits or crashes, and stores its output. Reports its error output only for an unexpected exit.
    pub fn run_to_exit(
        &self,
        command: &mut Command,
        crash: Option<CrashPoint>,
        expected_exits: &[RunExit],
        observations: &mut CrashObservations,
    ) -> RunExit {
        let output_file = self.harness_file(&format!("printed.{}", observations.acknowledged.len()));
        let error_file = output_file.with_extension("err");
        command.stdout(File::create(&output_file).unwrap()).stderr(File::create(&error_file).unwrap());
        let exit = await_exit(command);
        observations.acknowledged.push(read_or_empty(&output_file));
        let is_expected = match crash {
            None => expected_exits.contains(&exit),
            Some(crash) if crash.is_deadly() => expected_exits.contains(&exit) || exit == RunExit::Killed,
            // The run may ignore the failure or report an error. It must not panic.
            Some(_) => matches!(exit, RunExit::Code(code) if code != PANIC_EXIT_CODE),
        };
        if !is_expected || read_or_empty(&error_file).contains("panicked at") {
            let last_output = observations
                .acknowledged
                .last()
                .map_or("", |text| &text[text.floor_char_boundary(text.len().saturating_sub(MAX_SHOWN_OUTPUT))..]);
            let details = format!("a run ended as {exit:?}: {}\nafter …{last_output}", read_or_empty(&error_file));
            observations.violations.push(GuaranteeViolation::new(ViolationKind::UnexpectedOutput, details));
        }
        exit
    }

    fn find_processes(&self) -> Vec<LivingProcess> {
        processes::find_processes(&self.recorder_path(), &self.program)
    }

    /// Reports the processes that are still alive after a timeout.
    pub fn check_no_processes(&self, observations: &mut CrashObservations) {
        self.check_no_processes_within(processes::EXIT_TIMEOUT, observations);
    }

    pub fn check_no_processes_within(&self, timeout: Duration, observations: &mut CrashObservations) {
        let remaining = await_no_processes(timeout, || self.find_processes());
        let violation = |process: LivingProcess| {
            GuaranteeViolation::new(ViolationKind::SurvivingProcess, format!("{} {}", process.pid, process.command))
        };
        observations.violations.extend(remaining.into_iter().map(violation));
    }

    pub fn event_log(&self) -> String {
        self.world.run(&["--json", "events"]).stdout
    }

    /// Runs `doctor` and reports its problems.
    pub fn run_doctor(&self, observations: &mut CrashObservations) {
        let doctor = self.world.run(&["doctor"]);
        if doctor.code != 0 {
            observations.violations.push(GuaranteeViolation::new(ViolationKind::DoctorProblem, doctor.to_string()));
        }
    }
}

impl Drop for CrashSetup {
    /// Kills the processes of the scenario, so that none survives the test.
    fn drop(&mut self) {
        for process in self.find_processes() {
            let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The length of the output that a report of an unexpected exit shows.
const MAX_SHOWN_OUTPUT: usize = 2000;

/// The exit code of a Rust program that panicked.
const PANIC_EXIT_CODE: i32 = 101;

/// The observations during the runs of one test case.
#[derive(Debug, Clone, Default)]
pub struct CrashObservations {
    /// The output of each run: events that were durable when the run printed them.
    pub acknowledged: Vec<String>,
    /// Violations that the harness found between the runs.
    pub violations: Vec<GuaranteeViolation>,
    /// The number of crash points that were reached.
    pub crash_count: usize,
}

fn await_exit(command: &mut Command) -> RunExit {
    let mut child = command.spawn().unwrap();
    if !await_process_end(child.id().cast_signed(), RUN_TIMEOUT) {
        child.kill().unwrap();
        child.wait().unwrap();
        return RunExit::TimedOut;
    }
    match child.wait().unwrap() {
        status if status.signal() == Some(9) => RunExit::Killed,
        status => status.signal().map_or_else(|| RunExit::Code(status.code().unwrap_or(-1)), RunExit::Signaled),
    }
}

fn read_or_empty(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns whether strace works here. Fails under `scripts/torture` if it does not.
pub fn can_trace() -> bool {
    let is_available = find_strace().is_some();
    assert!(is_available || !tests_all_crash_points(), "strace is missing, or may not be used here");
    is_available
}

/// Returns the path of strace, if it is installed and may be used.
pub fn find_strace() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "it is looked for as any program is")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program =
        std::env::split_paths(&path).map(|directory| directory.join("strace")).find(|program| program.is_file())?;
    #[expect(clippy::disallowed_methods, reason = "a container may forbid it")]
    let is_usable = Command::new(&program)
        .args(["-qq", "-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    is_usable.then_some(program)
}
