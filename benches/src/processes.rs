//! Starting programs with capture, a timeout and cleanup, compared with the bare call.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_process::{
    CaptureLimits, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramSupervisor,
    RunControl, SupervisorLauncher,
};

use crate::memory::{self, MIB};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::spawn::PlainSpawn;
use crate::{BenchResult, BenchScale, SUPERVISE_FLAG};

/// Processes in the killed tree, below its leader.
const TREE_PROCESSES: usize = 50;
/// The captured bytes of an output, from its start and from its end.
const CAPTURE_BYTES: usize = 128 * 1024;

/// The process that starts a program.
#[derive(Clone, Copy)]
enum LaunchPath {
    Direct,
    Supervised,
}

/// The directory, lock and supervisor that the measured programs run with.
struct LaunchBench {
    directory: tempfile::TempDir,
    owner_lock: OwnerLock,
    supervisor: ProgramSupervisor,
}

impl LaunchBench {
    fn new() -> BenchResult<Self> {
        let directory = tempfile::tempdir()?;
        let owner_lock = OwnerLock::acquire(directory.path(), u64::from(std::process::id()))?;
        Ok(Self {
            directory,
            owner_lock,
            supervisor: ProgramSupervisor::start(&SupervisorLauncher::for_own_program(SUPERVISE_FLAG)?)?,
        })
    }

    /// Returns a script as a hook runs it, with a payload of about 500 bytes.
    fn hook_spec(&self, script: &str) -> ProgramSpec {
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        ProgramSpec {
            stdin: format!("{{\"event\": \"stop\", \"agentOutput\": \"{}\"}}", "x".repeat(460)).into_bytes(),
            timeout: Some(Duration::from_secs(30)),
            grace: Duration::from_secs(2),
            capture: CaptureLimits { head: CAPTURE_BYTES, tail: CAPTURE_BYTES, spill: None },
            ..ProgramSpec::new(ProgramInvocation::Shell(script.into()), self.directory.path(), environment)
        }
    }

    fn run_program(
        &mut self,
        spec: &ProgramSpec,
        path: LaunchPath,
        control: &RunControl,
        mut observe: impl FnMut(&[u8]),
    ) -> BenchResult<ProgramOutcome> {
        let mut observe = |_, bytes: &[u8]| observe(bytes);
        Ok(match path {
            LaunchPath::Direct => windlass_process::run_program(spec, &self.owner_lock, control, &mut observe)?,
            LaunchPath::Supervised => self.supervisor.run_program(spec, &self.owner_lock, control, &mut observe)?,
        })
    }

    fn run_successfully(&mut self, spec: &ProgramSpec, path: LaunchPath) -> BenchResult<ProgramOutcome> {
        let finished = self.run_program(spec, path, &RunControl::new(), |_| {})?;
        if finished.exit == ProgramExit::Code(0) {
            Ok(finished)
        } else {
            Err(format!("it ended: {:?}", finished.exit).into())
        }
    }
}

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("Starting programs");
    let mut bench = LaunchBench::new()?;
    let [bare, direct, supervised] = measure_starts(scale, &mut bench)?;
    report.add_fact("`posix_spawn` of `/bin/sh -c true`, and `waitpid`", format_duration(bare));
    add_ratio(report, "a command hook: payload, capture, timeout, group", direct, bare, 1.15);
    add_ratio(report, "the same under the supervisor", supervised, bare, 2.0);

    let resident = vec![1_u8; 1 << 30];
    let [bare, direct, _] = measure_starts(scale, &mut bench)?;
    drop(std::hint::black_box(resident));
    add_ratio(report, "a command hook in a process with 1 GiB resident", direct, bare, 1.2);

    for (path, name) in [(LaunchPath::Direct, "ours"), (LaunchPath::Supervised, "the supervisor's")] {
        let ending = SortedDurations::from_unsorted(
            (0..scale.command_repetitions / 4).map(|_| measure_kill(&mut bench, path)).collect::<BenchResult<_>>()?,
        );
        let measured = format!("{} (p99 {})", format_duration(ending.p50()), format_duration(ending.p99()));
        let what = format!("from KILL to the end of {TREE_PROCESSES} processes, each in a session of its own, {name}");
        report.add_figure(&what, measured, ending.p50().as_secs_f64() * 1e3, at_most(5.0, " ms"));
    }
    measure_output(&mut bench, report)
}

fn add_ratio(report: &mut BenchReport, what: &str, time: Duration, bare: Duration, goal: f64) {
    let value = ratio(time, bare);
    let measured = format!("{} = {value:.2} × (bare: {})", format_duration(time), format_duration(bare));
    report.add_figure(what, measured, value, at_most(goal, " ×"));
}

/// Returns the medians of the bare call, of a hook, and of a hook under the supervisor. They take turns.
fn measure_starts(scale: BenchScale, bench: &mut LaunchBench) -> BenchResult<[Duration; 3]> {
    let (bare, hook) = (PlainSpawn::shell("true"), bench.hook_spec("true"));
    let mut times = [const { Vec::new() }; 3];
    for turn in 0..3 * scale.repetitions / 2 {
        // The first call pays for cleanup of the one before, so each comes first equally often.
        for place in (0..3).map(|place| (place + turn) % 3) {
            let began = Instant::now();
            match place {
                0 => bare.run()?,
                1 => drop(bench.run_successfully(&hook, LaunchPath::Direct)?),
                _ => drop(bench.run_successfully(&hook, LaunchPath::Supervised)?),
            }
            times[place].push(began.elapsed());
        }
    }
    Ok(times.map(|times| SortedDurations::from_unsorted(times).p50()))
}

/// Measures the time from the kill request to the end of a tree.
fn measure_kill(bench: &mut LaunchBench, path: LaunchPath) -> BenchResult<Duration> {
    let one = "setsid sh -c 'echo; exec sleep 1000' &";
    let tree = bench.hook_spec(&format!("i=0; while [ $i -lt {TREE_PROCESSES} ]; do {one} i=$((i + 1)); done; wait"));
    let control = RunControl::new();
    let (mut started, mut killed) = (0, None);
    let finished = bench.run_program(&tree, path, &control, |bytes| {
        started += bytes.len();
        if started >= TREE_PROCESSES && killed.is_none() {
            killed = Some(Instant::now());
            control.kill_runs();
        }
    })?;
    match killed {
        Some(killed) if finished.exit == ProgramExit::Cancelled => Ok(killed.elapsed()),
        _ => Err(format!("the tree ended by itself: {:?}", finished.exit).into()),
    }
}

/// Measures large output, compared with a drain that stores only its end; and its memory.
fn measure_output(bench: &mut LaunchBench, report: &mut BenchReport) -> BenchResult<()> {
    let script = |bytes: u64| format!("head -c {bytes} /dev/zero");
    let hundred = bench.hook_spec(&script(100_000_000));
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..11 {
        let began = Instant::now();
        drain_output(&script(100_000_000))?;
        plain.push(began.elapsed());
        let began = Instant::now();
        bench.run_successfully(&hundred, LaunchPath::Direct)?;
        ours.push(began.elapsed());
    }
    let (plain, ours) = (SortedDurations::from_unsorted(plain).p50(), SortedDurations::from_unsorted(ours).p50());
    let measured =
        format!("{} = {:.2} × (plain: {})", format_duration(ours), ratio(ours, plain), format_duration(plain));
    report.add_fact("100 MB of output, against a plain drain that keeps the end", measured);
    let thousand = bench.hook_spec(&script(1_000_000_000));
    let grown = memory::measure_growth(|| bench.run_successfully(&thousand, LaunchPath::Direct).map(drop))?;
    report.add_fact("1 GB of output: how far memory grew", format!("{:.1} MiB", grown / MIB));
    Ok(())
}

/// Drains a pipe of 1 MiB into a ring buffer for the end.
fn drain_output(script: &str) -> BenchResult<()> {
    let mut child = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    rustix::pipe::fcntl_setpipe_size(&pipe, 1 << 20)?;
    let (mut buffer, mut ring, mut place) = (vec![0; 1 << 20], vec![0; CAPTURE_BYTES], 0);
    loop {
        let length = pipe.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        let last = &buffer[length.saturating_sub(CAPTURE_BYTES)..length];
        let (first, second) = last.split_at(last.len().min(CAPTURE_BYTES - place));
        ring[place..place + first.len()].copy_from_slice(first);
        ring[..second.len()].copy_from_slice(second);
        place = (place + last.len()) % CAPTURE_BYTES;
    }
    std::hint::black_box(ring);
    child.wait()?;
    Ok(())
}
