//! Starting programs with capture, a timeout and cleanup, compared with the bare call.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_process::{
    CaptureLimits, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramSupervisor,
    RunControl, SupervisorLauncher,
};

use crate::memory::{self, MIB};
use crate::report::{Report, Times, at_most, ratio, shown};
use crate::spawn::Bare;
use crate::{Effort, Outcome, SUPERVISE};

/// Processes in the killed tree, below its leader.
const TREE: usize = 50;
/// The captured bytes of an output, from its start and from its end.
const KEPT: usize = 128 * 1024;

/// The process that starts a program.
#[derive(Clone, Copy)]
enum Way {
    Direct,
    Supervised,
}

struct Starter {
    directory: tempfile::TempDir,
    roster: OwnerLock,
    supervisor: ProgramSupervisor,
}

impl Starter {
    fn new() -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        let roster = OwnerLock::acquire(directory.path(), u64::from(std::process::id()))?;
        Ok(Self {
            directory,
            roster,
            supervisor: ProgramSupervisor::start(&SupervisorLauncher::for_own_program(SUPERVISE)?)?,
        })
    }

    /// Returns a script as a hook runs it, with a payload of about 500 bytes.
    fn hook(&self, script: &str) -> ProgramSpec {
        ProgramSpec {
            invocation: ProgramInvocation::Shell(script.into()),
            directory: self.directory.path().to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdin: format!("{{\"event\": \"stop\", \"agentOutput\": \"{}\"}}", "x".repeat(460)).into_bytes(),
            timeout: Some(Duration::from_secs(30)),
            idle_timeout: None,
            grace: Duration::from_secs(2),
            capture: CaptureLimits { head: KEPT, tail: KEPT, spill: None },
        }
    }

    fn run(
        &mut self,
        spec: &ProgramSpec,
        way: Way,
        control: &RunControl,
        mut observe: impl FnMut(&[u8]),
    ) -> Outcome<ProgramOutcome> {
        let mut observe = |_, bytes: &[u8]| observe(bytes);
        Ok(match way {
            Way::Direct => windlass_process::run_program(spec, &self.roster, control, &mut observe)?,
            Way::Supervised => self.supervisor.run_program(spec, &self.roster, control, &mut observe)?,
        })
    }

    fn succeed(&mut self, spec: &ProgramSpec, way: Way) -> Outcome<ProgramOutcome> {
        let finished = self.run(spec, way, &RunControl::new(), |_| {})?;
        if finished.exit == ProgramExit::Code(0) {
            Ok(finished)
        } else {
            Err(format!("it ended: {:?}", finished.exit).into())
        }
    }
}

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("Starting programs");
    let mut starter = Starter::new()?;
    let [bare, direct, supervised] = starts(effort, &mut starter)?;
    report.fact("`posix_spawn` of `/bin/sh -c true`, and `waitpid`", shown(bare));
    against(report, "a command hook: payload, capture, timeout, group", direct, bare, 1.15);
    against(report, "the same under the supervisor", supervised, bare, 2.0);

    let resident = vec![1_u8; 1 << 30];
    let [bare, direct, _] = starts(effort, &mut starter)?;
    drop(std::hint::black_box(resident));
    against(report, "a command hook in a process with 1 GiB resident", direct, bare, 1.2);

    for (way, name) in [(Way::Direct, "ours"), (Way::Supervised, "the supervisor's")] {
        let ending = Times::from((0..effort.commands / 4).map(|_| ending(&mut starter, way)).collect::<Outcome<_>>()?);
        let measured = format!("{} (p99 {})", shown(ending.p50()), shown(ending.p99()));
        let what = format!("from KILL to the end of {TREE} processes, each in a session of its own, {name}");
        report.figure(&what, measured, ending.p50().as_secs_f64() * 1e3, at_most(5.0, " ms"));
    }
    output(&mut starter, report)
}

fn against(report: &mut Report, what: &str, time: Duration, bare: Duration, goal: f64) {
    let value = ratio(time, bare);
    let measured = format!("{} = {value:.2} × (bare: {})", shown(time), shown(bare));
    report.figure(what, measured, value, at_most(goal, " ×"));
}

/// Returns the medians of the bare call, of a hook, and of a hook under the supervisor. They take turns.
fn starts(effort: Effort, starter: &mut Starter) -> Outcome<[Duration; 3]> {
    let (bare, hook) = (Bare::shell("true"), starter.hook("true"));
    let mut times = [const { Vec::new() }; 3];
    for turn in 0..3 * effort.many / 2 {
        // The first call pays for cleanup of the one before, so each comes first equally often.
        for place in (0..3).map(|place| (place + turn) % 3) {
            let began = Instant::now();
            match place {
                0 => bare.run()?,
                1 => drop(starter.succeed(&hook, Way::Direct)?),
                _ => drop(starter.succeed(&hook, Way::Supervised)?),
            }
            times[place].push(began.elapsed());
        }
    }
    Ok(times.map(|times| Times::from(times).p50()))
}

/// Measures the time from the kill request to the end of a tree.
fn ending(starter: &mut Starter, way: Way) -> Outcome<Duration> {
    let one = "setsid sh -c 'echo; exec sleep 1000' &";
    let tree = starter.hook(&format!("i=0; while [ $i -lt {TREE} ]; do {one} i=$((i + 1)); done; wait"));
    let control = RunControl::new();
    let (mut there, mut killed) = (0, None);
    let finished = starter.run(&tree, way, &control, |bytes| {
        there += bytes.len();
        if there >= TREE && killed.is_none() {
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
fn output(starter: &mut Starter, report: &mut Report) -> Outcome<()> {
    let script = |bytes: u64| format!("head -c {bytes} /dev/zero");
    let hundred = starter.hook(&script(100_000_000));
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..11 {
        let began = Instant::now();
        drain(&script(100_000_000))?;
        plain.push(began.elapsed());
        let began = Instant::now();
        starter.succeed(&hundred, Way::Direct)?;
        ours.push(began.elapsed());
    }
    let (plain, ours) = (Times::from(plain).p50(), Times::from(ours).p50());
    let measured = format!("{} = {:.2} × (plain: {})", shown(ours), ratio(ours, plain), shown(plain));
    report.fact("100 MB of output, against a plain drain that keeps the end", measured);
    let thousand = starter.hook(&script(1_000_000_000));
    let grown = memory::growth(|| starter.succeed(&thousand, Way::Direct).map(drop))?;
    report.fact("1 GB of output: how far memory grew", format!("{:.1} MiB", grown / MIB));
    Ok(())
}

/// Drains a pipe of 1 MiB into a ring buffer for the end.
fn drain(script: &str) -> Outcome<()> {
    let mut child = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    rustix::pipe::fcntl_setpipe_size(&pipe, 1 << 20)?;
    let (mut buffer, mut ring, mut place) = (vec![0; 1 << 20], vec![0; KEPT], 0);
    loop {
        let length = pipe.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        let last = &buffer[length.saturating_sub(KEPT)..length];
        let (first, second) = last.split_at(last.len().min(KEPT - place));
        ring[place..place + first.len()].copy_from_slice(first);
        ring[..second.len()].copy_from_slice(second);
        place = (place + last.len()) % KEPT;
    }
    std::hint::black_box(ring);
    child.wait()?;
    Ok(())
}
