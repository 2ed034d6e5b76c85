//! A program for tests: the supervisor, an owner of runs that can be killed, and a process that traces its parent.
#![allow(unsafe_code, reason = "there is no safe way to trace")]

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use windlass_process::signals::SignalEvent;
use windlass_process::{
    CaptureLimits, InteractiveProcess, OwnerLock, ProcessEvent, ProgramExit, ProgramInvocation, ProgramSpec,
    ProgramSupervisor, RunControl, SupervisorLauncher, run_program, signals, supervisor,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["supervise"] => supervisor::serve_owner(),
        ["owner", directory, way, script] => owner(Path::new(directory), way, script),
        ["starve", directory] => starve(Path::new(directory)),
        ["trace"] => trace_the_parent(),
        _ => ExitCode::from(64),
    }
}

/// Traces its parent for as long as it runs, and writes whether that was allowed.
fn trace_the_parent() -> ExitCode {
    let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: to attach to a process touches no memory of ours.
    let attached = unsafe { libc::ptrace(libc::PTRACE_ATTACH, parent, nothing, nothing) };
    std::fs::write("traced", format!("{attached}\n")).expect("a file");
    loop {
        std::thread::park();
    }
}

/// Leaves a program stopped while no descriptor is free, and prints whether it is stopped then and answers afterwards.
#[allow(clippy::disallowed_methods, reason = "these files are of the kernel, and end")]
fn starve(directory: &Path) -> ExitCode {
    let (roster, control) = (OwnerLock::acquire(directory, 0xabc).expect("a roster"), RunControl::new());
    let launcher = SupervisorLauncher::for_own_program("supervise").expect("this program");
    let script = "while read -r line; do echo \"$$ $line\"; done";
    let mut live = InteractiveProcess::start(&launcher, &spec(directory, script), &roster).expect("it starts");
    let answer = |live: &mut InteractiveProcess| {
        let mut attended = live.open_session(&control).expect("a listener");
        attended.send_input(b"x\n");
        match attended.next_event(&mut Some(Instant::now() + Duration::from_secs(30))) {
            ProcessEvent::Output(bytes) => String::from_utf8(bytes).expect("text"),
            other => panic!("{other:?}"),
        }
    };
    let pid = answer(&mut live).split(' ').next().expect("a number").to_owned();
    let taken: Vec<_> = (0..16).map(|_| std::fs::File::open("/dev/null").expect("a file")).collect();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(8), ..limit }).expect("a limit");
    live.suspend_tree();
    setrlimit(Resource::Nofile, limit).expect("a limit");
    drop(taken);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).expect("a state");
    writeln!(std::io::stdout(), "{state}, {}", answer(&mut live) == format!("{pid} x\n"))
        .expect("standard output is read");
    ExitCode::SUCCESS
}

fn spec(directory: &Path, script: &str) -> ProgramSpec {
    ProgramSpec {
        invocation: ProgramInvocation::Shell(script.into()),
        directory: directory.into(),
        environment: std::env::vars_os().collect(),
        stdin: Vec::new(),
        timeout: Some(Duration::from_secs(30)),
        idle_timeout: None,
        grace: Duration::from_secs(20),
        capture: CaptureLimits { head: 1024, tail: 1024, spill: None },
    }
}

/// Runs a script as Windlass would, and prints the outcome.
fn owner(directory: &Path, way: &str, script: &str) -> ExitCode {
    let roster = OwnerLock::acquire(directory, 0xabc).expect("a roster");
    let control = RunControl::new();
    let told = |signalled| {
        if let SignalEvent::End(count) = signalled {
            writeln!(std::io::stdout(), "signal {count}").expect("the test reads it");
        }
    };
    let received = signals::install_handlers(&control, told).expect("handlers");
    let spec = spec(directory, script);
    let mut show = |_, chunk: &[u8]| std::io::stdout().write_all(chunk).expect("the other end reads");
    let finished = if way == "supervised" {
        let launcher = SupervisorLauncher::for_own_program("supervise").expect("this program");
        ProgramSupervisor::start(&launcher).expect("a supervisor").run_program(&spec, &roster, &control, &mut show)
    } else {
        run_program(&spec, &roster, &control, &mut show)
    };
    let exit = finished.expect("it starts").exit;
    let mut output = std::io::stdout();
    writeln!(output, "{exit:?} {:?}", received.first_signal()).expect("the other end reads");
    if way == "waiting" {
        drop(received);
        writeln!(output, "waiting").expect("the other end reads");
        std::thread::sleep(Duration::from_secs(30));
    }
    ExitCode::from(u8::from(exit != ProgramExit::Code(0)))
}
