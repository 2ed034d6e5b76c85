//! The scenario: a session with hooks at every point of the loop, killed where a test wants it, and run to its end.
//!
//! ```text
//! open ─► plan ─► agent ─► check: step-1! ─► agent ─► check: step-2! ─► agent ─► check ─► review, bill
//!         plan ─► agent: COMPLETE ─► check ─► review, bill ─► agent hears the last review ─► close
//! ```
//!
//! What the agent does follows from its prompt, and what the check finds follows from what the agent did. So whatever is
//! done twice comes to the same. In the other story the agent asks for the end when it is sent back: its turn is
//! cancelled, it hears what is pending, and `close` runs.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::checks::{Fault, Kind};
use super::processes::{self, Process, await_end, await_none};
use crate::support::{WINDLASS, World};

const ACTOR: &str = include_str!("actor.sh");

const CONFIG: &str = r#"
hooks:
  session_start:
    - { name: open, command: '. "$CRASH_ACTOR"', pipe_output: true }
  pre_iteration:
    - { name: plan, command: '. "$CRASH_ACTOR"', pipe_output: true }
  stop:
    - { name: check, command: '. "$CRASH_ACTOR"' }
  post_iteration:
    - { name: review, command: '. "$CRASH_ACTOR"', pipe_output: true, idempotent: true }
    - { name: bill, command: '. "$CRASH_ACTOR"' }
  session_end:
    - { name: close, command: '. "$CRASH_ACTOR"' }
"#;

const RUN: &[&str] = &["--json", "run", "Mend the pump", "--agent", r#"command:. "$CRASH_ACTOR""#];

/// The hooks that may run again after a crash: a gate, and one that says so.
pub const AGAIN: &[&str] = &["check", "review"];
/// The hooks whose output goes to the agent, gates aside.
pub const PIPED: &[&str] = &["open", "plan", "review"];

/// No run of the scenario takes so long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happens if nothing is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    Completed,
    /// By a SIGTERM in the second turn.
    Stopped,
}

impl Story {
    /// How a run that is not killed may exit. Whoever takes a stopped session over does not know the signal.
    fn exits(self) -> &'static [End] {
        match self {
            Self::Completed => &[End::Code(0)],
            Self::Stopped => &[End::Code(143), End::Code(3)],
        }
    }
}

/// Where a run is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// At a fail point, when it is passed for the n-th time.
    Fail(&'static str, u32),
    /// On entering a system call for the n-th time.
    Call(&'static str, u32),
    /// By the n-th program that was started, while that runs.
    Effect(u32),
    /// The same, and its supervisor at once.
    Both(u32),
}

/// Everything that can be known of a scenario from outside.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// What each run printed: the events, after they were durable.
    pub acknowledged: Vec<String>,
    /// What `windlass events --json` prints in the end.
    pub log: String,
    /// What hooks and agent told.
    pub recorder: String,
    /// What was seen to be wrong on the way.
    pub faults: Vec<Fault>,
    /// How many of the crashes came before the end.
    pub crashed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Code(i32),
    Late,
}

/// The program under test as a file of our own, by which its processes are known.
pub struct Bench {
    directory: tempfile::TempDir,
    story: Story,
    /// A fail point that every killed run is given besides.
    broken: Option<&'static str>,
}

impl Bench {
    pub fn new(story: Story) -> Self {
        // Beside the program, so that a link is enough.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bench = Self { directory, story, broken: None };
        if fs::hard_link(WINDLASS, bench.program()).is_err() {
            fs::copy(WINDLASS, bench.program()).unwrap();
        }
        bench
    }

    /// The program, built wrongly.
    pub fn broken(fail: &'static str) -> Self {
        Self { broken: Some(fail), ..Self::new(Story::Completed) }
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("windlass")
    }

    /// The scenario from its beginning to its end.
    pub fn play(&self, crashes: &[Crash]) -> Observed {
        let scenario = Scenario::new(self);
        let mut seen = Observed::default();
        for crash in crashes {
            if scenario.run(Some(*crash), &mut seen) != End::Killed {
                return scenario.look(seen);
            }
            seen.crashed += 1;
            if !matches!(crash, Crash::Both(_)) {
                scenario.expect_none(&mut seen);
            }
            if scenario.is_over() {
                return scenario.look(seen);
            }
        }
        scenario.run(None, &mut seen);
        scenario.look(seen)
    }
}

struct Scenario<'a> {
    bench: &'a Bench,
    world: World,
    program: PathBuf,
}

impl<'a> Scenario<'a> {
    fn new(bench: &'a Bench) -> Self {
        let world = World::empty();
        world.write("actor.sh", ACTOR);
        world.write(".windlass/config.yaml", CONFIG);
        world.write("recorder", "");
        world.ok(&["trust", "--yes"]);
        Self { bench, world, program: bench.program().canonicalize().unwrap() }
    }

    /// Runs the loop once, to its end or to the crash.
    fn run(&self, crash: Option<Crash>, seen: &mut Observed) -> End {
        let printed = self.world.path(&format!("printed.{}", seen.acknowledged.len()));
        let complained = printed.with_extension("err");
        let mut command = self.command(crash);
        command.stdout(File::create(&printed).unwrap()).stderr(File::create(&complained).unwrap());
        let end = finish(&mut command);
        seen.acknowledged.push(read(&printed));
        let expected = self.bench.story.exits().contains(&end) || (crash.is_some() && end == End::Killed);
        if !expected {
            seen.faults.push(Fault::new(Kind::Odd, format!("a run ended as {end:?}: {}", read(&complained))));
        }
        end
    }

    fn command(&self, crash: Option<Crash>) -> Command {
        let mut command = match crash {
            Some(Crash::Call(call, nth)) => {
                let mut strace = self.world.program(strace().expect("a crash in a call needs strace"));
                // Without -f: only the program itself, and none that it starts. With ?: a call that is nowhere is no error.
                let inject = format!("inject=?{call}:signal=KILL:when={nth}");
                strace.args(["-qq", "-o", "/dev/null", "-e", &format!("trace=?{call}"), "-e", &inject, "--"]);
                strace.arg(&self.program);
                strace
            }
            _ => self.world.program(&self.program),
        };
        command.args(RUN);
        command.env("CRASH_RECORDER", self.world.path("recorder")).env("CRASH_ACTOR", self.world.path("actor.sh"));
        match crash {
            Some(Crash::Fail(place, nth)) => {
                command.env("WINDLASS_FAILPOINT", format!("{place}=kill@{nth}"));
            }
            Some(Crash::Effect(nth)) => {
                command.env("CRASH_EFFECT", nth.to_string());
            }
            Some(Crash::Both(nth)) => {
                command.env("CRASH_EFFECT", nth.to_string()).env("CRASH_SUPERVISOR", "too");
            }
            Some(Crash::Call(..)) | None => {}
        }
        if self.bench.story == Story::Stopped {
            command.env("CRASH_STOP", "yes");
        }
        if let Some(fail) = self.bench.broken {
            command.env("WINDLASS_FAILPOINT", fail);
        }
        command
    }

    /// Whether the session has nothing left to do: then the same command would begin another.
    fn is_over(&self) -> bool {
        let log = super::log::read(&self.world.run(&["--json", "events"]).stdout);
        log.iter().any(|entry| entry.kind() == "hook_finished" && entry.text("hook") == "close")
    }

    fn look(&self, mut seen: Observed) -> Observed {
        self.expect_none(&mut seen);
        seen.log = self.world.run(&["--json", "events"]).stdout;
        seen.recorder = read(&self.world.path("recorder"));
        let doctor = self.world.run(&["doctor"]);
        if doctor.code != 0 {
            seen.faults.push(Fault::new(Kind::Unsound, doctor.to_string()));
        }
        seen
    }

    fn alive(&self) -> Vec<Process> {
        processes::alive(&self.world.directory, &self.program)
    }

    fn expect_none(&self, seen: &mut Observed) {
        let left = await_none(|| self.alive());
        let fault = |process: Process| Fault::new(Kind::Survivor, format!("{} {}", process.pid, process.command));
        seen.faults.extend(left.into_iter().map(fault));
    }
}

impl Drop for Scenario<'_> {
    /// What should not have survived does not survive the test.
    fn drop(&mut self) {
        for process in self.alive() {
            let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
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
        status => End::Code(status.code().unwrap_or(-1)),
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Where strace is, if it is there and may be used.
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
