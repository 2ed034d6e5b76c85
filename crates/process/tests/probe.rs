//! A test program with several modes: supervisor, owner of runs, tracer of its parent, suspension without descriptors.
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
        ["owner", directory, mode, script] => run_owner(Path::new(directory), mode, script),
        ["starve", directory] => suspend_without_descriptors(Path::new(directory)),
        ["trace"] => trace_parent(),
        _ => ExitCode::from(64),
    }
}

/// Traces the parent process until the end of this process, and writes whether the system allows that.
fn trace_parent() -> ExitCode {
    let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
    let null = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: `PTRACE_ATTACH` accesses no memory of this process.
    let attached = unsafe { libc::ptrace(libc::PTRACE_ATTACH, parent, null, null) };
    std::fs::write("traced", format!("{attached}\n")).expect("a file");
    loop {
        std::thread::park();
    }
}

/// Suspends a program while no descriptor is free. Prints the state of the program and whether it answers afterwards.
#[allow(clippy::disallowed_methods, reason = "these files are of the kernel, and end")]
fn suspend_without_descriptors(directory: &Path) -> ExitCode {
    let (owner_lock, control) = (OwnerLock::acquire(directory, 0xabc).expect("an owner lock"), RunControl::new());
    let launcher = SupervisorLauncher::for_own_program("supervise").expect("this program");
    let script = "while read -r line; do echo \"$$ $line\"; done";
    let mut process =
        InteractiveProcess::start(&launcher, &program_spec(directory, script), &owner_lock).expect("it starts");
    let exchange_line = |process: &mut InteractiveProcess| {
        let mut session = process.open_session(&control).expect("a listener");
        session.send_input(b"x\n");
        match session.next_event(&mut Some(Instant::now() + Duration::from_secs(30))) {
            ProcessEvent::Output(bytes) => String::from_utf8(bytes).expect("text"),
            other => panic!("{other:?}"),
        }
    };
    let pid = exchange_line(&mut process).split(' ').next().expect("a number").to_owned();
    let open_files: Vec<_> = (0..16).map(|_| std::fs::File::open("/dev/null").expect("a file")).collect();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(8), ..limit }).expect("a limit");
    process.suspend_tree();
    setrlimit(Resource::Nofile, limit).expect("a limit");
    drop(open_files);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).expect("a state");
    writeln!(std::io::stdout(), "{state}, {}", exchange_line(&mut process) == format!("{pid} x\n"))
        .expect("standard output is read");
    ExitCode::SUCCESS
}

fn program_spec(directory: &Path, script: &str) -> ProgramSpec {
    ProgramSpec {
        timeout: Some(Duration::from_secs(30)),
        grace: Duration::from_secs(20),
        capture: CaptureLimits { head: 1024, tail: 1024, spill: None },
        ..ProgramSpec::new(ProgramInvocation::Shell(script.into()), directory, std::env::vars_os().collect())
    }
}

/// Runs a script in the same way as Windlass, and prints the outcome.
fn run_owner(directory: &Path, mode: &str, script: &str) -> ExitCode {
    let owner_lock = OwnerLock::acquire(directory, 0xabc).expect("an owner lock");
    let control = RunControl::new();
    let print_signal = |signalled| {
        if let SignalEvent::End(count) = signalled {
            writeln!(std::io::stdout(), "signal {count}").expect("the test reads it");
        }
    };
    let received = signals::install_handlers(&control, print_signal).expect("handlers");
    let spec = program_spec(directory, script);
    let mut print_chunk = |_, chunk: &[u8]| std::io::stdout().write_all(chunk).expect("the other end reads");
    let finished = if mode == "supervised" {
        let launcher = SupervisorLauncher::for_own_program("supervise").expect("this program");
        ProgramSupervisor::start(&launcher).expect("a supervisor").run_program(
            &spec,
            &owner_lock,
            &control,
            &mut print_chunk,
        )
    } else {
        run_program(&spec, &owner_lock, &control, &mut print_chunk)
    };
    let exit = finished.expect("it starts").exit;
    let mut output = std::io::stdout();
    writeln!(output, "{exit:?} {:?}", received.first_signal()).expect("the other end reads");
    if mode == "waiting" {
        drop(received);
        writeln!(output, "waiting").expect("the other end reads");
        std::thread::sleep(Duration::from_secs(30));
    }
    ExitCode::from(u8::from(exit != ProgramExit::Code(0)))
}
