//! The stage of every play: the program under test as a file of its own, ways to crash it, and its end.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::checks::{Fault, Kind};
use super::processes::{self, Process, await_end, await_none};
use super::sweep::is_whole;
use crate::support::{WINDLASS, World};

/// No run of a play takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// The point at which a run is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Killed at the n-th pass of a fail point.
    Fail(&'static str, u32),
    /// Killed on entering a system call for the n-th time.
    Call(&'static str, u32),
    /// Not killed: the system call fails with this error, for this long.
    Error(&'static str, &'static str, Lasting, u32),
    /// Killed by the n-th started program, while it runs.
    Effect(u32),
    /// Killed by the n-th started program, together with the supervisor.
    Both(u32),
    /// Killed before the n-th call of git does anything.
    BeforeGit(u32),
    /// Killed when the n-th call of git has done its work, and before its result is read.
    AfterGit(u32),
}

/// The duration of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// The n-th time.
    Once,
    /// Ten times in a row, the n-th such row.
    Row,
    /// From the n-th row on, to the end.
    Ever,
}

impl Lasting {
    /// Returns the expression for strace.
    fn when(self, nth: u32) -> String {
        match self {
            Self::Once => nth.to_string(),
            Self::Row => format!("{}..{}", nth * 10 - 9, nth * 10),
            Self::Ever => format!("{}+", nth * 10 - 9),
        }
    }
}

impl Crash {
    pub fn is_deadly(self) -> bool {
        !matches!(self, Self::Error(..))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Killed,
    /// Returns whether another signal than ours ended the run.
    Died(i32),
    Code(i32),
    Late,
}

/// The program under test as a file of our own, which identifies its processes.
pub struct Program(tempfile::TempDir);

impl Program {
    pub fn new() -> Self {
        // Beside the program, so that a link is enough.
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

/// A world in which the program is disturbed.
pub struct Stage {
    pub world: World,
    pub program: PathBuf,
}

impl Stage {
    pub fn new(program: &Program, actor: &str) -> Self {
        let stage = Self { world: World::empty(), program: program.path() };
        fs::write(stage.actor(), actor).unwrap();
        fs::write(stage.recorder(), "").unwrap();
        stage
    }

    /// Beside the working directory, where no test looks.
    fn beside(&self, name: &str) -> PathBuf {
        self.world.programs().join(name)
    }

    fn actor(&self) -> PathBuf {
        self.beside("actor.sh")
    }

    fn recorder(&self) -> PathBuf {
        self.beside("recorder")
    }

    fn trace(&self) -> PathBuf {
        self.beside("trace")
    }

    /// Returns whether a call was made to fail.
    pub fn was_disturbed(&self) -> bool {
        read(&self.trace()).contains("(INJECTED)")
    }

    pub fn recorded(&self) -> String {
        read(&self.recorder())
    }

    /// Returns the command for the program with these arguments, disturbed in this way.
    pub fn command(&self, words: &[&str], crash: Option<Crash>) -> Command {
        let mut command = match crash {
            Some(Crash::Call(call, nth)) => self.traced(call, &format!("signal=KILL:when={nth}")),
            Some(Crash::Error(call, error, lasting, nth)) => {
                self.traced(call, &format!("error={error}:when={}", lasting.when(nth)))
            }
            _ => self.world.program(&self.program),
        };
        command.args(words).env("CRASH_RECORDER", self.recorder()).env("CRASH_ACTOR", self.actor());
        match crash {
            Some(Crash::Fail(place, nth)) => command.env("WINDLASS_FAILPOINT", format!("{place}=kill@{nth}")),
            Some(Crash::Effect(nth)) => command.env("CRASH_EFFECT", nth.to_string()),
            Some(Crash::Both(nth)) => command.env("CRASH_EFFECT", nth.to_string()).env("CRASH_SUPERVISOR", "too"),
            Some(Crash::BeforeGit(nth)) => command.env("CRASH_BEFORE_GIT", nth.to_string()),
            Some(Crash::AfterGit(nth)) => command.env("CRASH_AFTER_GIT", nth.to_string()),
            Some(Crash::Call(..) | Crash::Error(..)) | None => &mut command,
        };
        command
    }

    fn traced(&self, call: &str, inject: &str) -> Command {
        let mut strace = self.world.program(strace().expect("a crash in a call needs strace"));
        // Without -f: only the program itself, and no children. With ?: a call that the system lacks is no error.
        let inject = format!("inject=?{call}:{inject}");
        strace.args(["-qq", "-e", &format!("trace=?{call}"), "-e", &inject, "-o"]).arg(self.trace()).arg("--");
        strace.arg(&self.program);
        strace
    }

    /// Runs a command to its end or to its crash, and keeps its output. Its errors matter only if it ended in an unexpected way.
    pub fn run(&self, command: &mut Command, crash: Option<Crash>, may: &[End], seen: &mut Seen) -> End {
        let printed = self.beside(&format!("printed.{}", seen.acknowledged.len()));
        let complained = printed.with_extension("err");
        command.stdout(File::create(&printed).unwrap()).stderr(File::create(&complained).unwrap());
        let end = finish(command);
        seen.acknowledged.push(read(&printed));
        let is_expected = match crash {
            None => may.contains(&end),
            Some(crash) if crash.is_deadly() => may.contains(&end) || end == End::Killed,
            // The run may ignore the failure, or give up with an error. It must not panic.
            Some(_) => matches!(end, End::Code(code) if code != PANICKED),
        };
        if !is_expected || read(&complained).contains("panicked at") {
            let said = seen
                .acknowledged
                .last()
                .map_or("", |text| &text[text.floor_char_boundary(text.len().saturating_sub(SAID))..]);
            let what = format!("a run ended as {end:?}: {}\nafter …{said}", read(&complained));
            seen.faults.push(Fault::new(Kind::Odd, what));
        }
        end
    }

    fn alive(&self) -> Vec<Process> {
        processes::alive(&self.recorder(), &self.program)
    }

    pub fn expect_none(&self, seen: &mut Seen) {
        self.expect_none_within(processes::PATIENCE, seen);
    }

    pub fn expect_none_within(&self, patience: Duration, seen: &mut Seen) {
        let left = await_none(patience, || self.alive());
        let fault = |process: Process| Fault::new(Kind::Survivor, format!("{} {}", process.pid, process.command));
        seen.faults.extend(left.into_iter().map(fault));
    }

    pub fn log(&self) -> String {
        self.world.run(&["--json", "events"]).stdout
    }

    /// Has `doctor` look at it.
    pub fn examine(&self, seen: &mut Seen) {
        let doctor = self.world.run(&["doctor"]);
        if doctor.code != 0 {
            seen.faults.push(Fault::new(Kind::Unsound, doctor.to_string()));
        }
    }
}

impl Drop for Stage {
    /// No process of the scenario survives the test.
    fn drop(&mut self) {
        for process in self.alive() {
            let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The longest shown output of a run with an unexpected end.
const SAID: usize = 2000;

/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

/// The observations during a play.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The output of each run: the events, after they were durable.
    pub acknowledged: Vec<String>,
    /// Faults that were seen on the way.
    pub faults: Vec<Fault>,
    /// The number of crashes that came before the end.
    pub crashed: usize,
}

fn finish(command: &mut Command) -> End {
    let mut child = command.spawn().unwrap();
    if !await_end(child.id().cast_signed(), PATIENCE) {
        child.kill().unwrap();
        child.wait().unwrap();
        return End::Late;
    }
    match child.wait().unwrap() {
        status if status.signal() == Some(9) => End::Killed,
        status => status.signal().map_or_else(|| End::Code(status.code().unwrap_or(-1)), End::Died),
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns whether calls can be traced here. With `scripts/torture` their absence is an error.
pub fn can_trace() -> bool {
    let found = strace().is_some();
    assert!(found || !is_whole(), "strace is missing, or may not be used here");
    found
}

/// Returns the path of strace, if it is installed and may be used.
pub fn strace() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "it is looked for as any program is")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = std::env::split_paths(&path).map(|directory| directory.join("strace")).find(|file| file.is_file())?;
    #[expect(clippy::disallowed_methods, reason = "a container may forbid it")]
    let allowed = Command::new(&file)
        .args(["-qq", "-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    allowed.then_some(file)
}
