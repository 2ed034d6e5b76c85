//! Supervisors that die, are stopped, or never answer. An agent can do this to its own supervisor.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use windlass_process::{ProgramExit, ProgramSupervisor, SupervisorLauncher};

use crate::common::{LaunchMode, ProcessFixture, is_dead, probe_path, start_supervisor, tagged_processes, wait_until};

/// Starts a shell script in place of a supervisor.
fn start_fake_supervisor(fixture: &ProcessFixture, script: &str) -> ProgramSupervisor {
    let script = format!("cd {}; {script}", fixture.directory.path().display());
    let environment = vec![("PATH".into(), crate::common::SEARCH_PATH.into())];
    let launcher =
        SupervisorLauncher { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()], environment };
    ProgramSupervisor::start(&launcher).expect("a shell")
}

fn run_script(supervisor: &mut ProgramSupervisor, fixture: &ProcessFixture, script: &str) -> ProgramExit {
    let finished =
        supervisor.run_program(&fixture.shell_program(script), &fixture.owner_lock, &fixture.control, &mut |_, _| {});
    finished.expect("it may have started").exit
}

#[test]
fn supervisor_that_dies_before_answer_loses_run() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let tag = format!("WINDLASS_TAG={}.1", fixture.owner_lock.name());
    let mut supervisor = start_fake_supervisor(
        &fixture,
        &format!("head -c 5 >/dev/null; env {tag} setsid sleep 1000 >/dev/null & echo begun >>begun; exit 1"),
    );
    assert_eq!(run_script(&mut supervisor, &fixture, "true"), ProgramExit::Lost);
    assert_eq!(std::fs::read_to_string(fixture.path("begun")).expect("a file"), "begun\n", "not a second time");
    assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
}

#[test]
fn supervisor_that_died_between_runs_is_replaced() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut supervisor = start_supervisor();
    assert_eq!(run_script(&mut supervisor, &fixture, "echo $PPID >supervisor"), ProgramExit::Code(0));
    let pid = fixture.wait_for_number("supervisor");
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it is there");
    wait_until("it is dead", || is_dead(pid));
    assert_eq!(run_script(&mut supervisor, &fixture, "exit 3"), ProgramExit::Code(3));
}

/// A program may stop its supervisor and end. The supervisor does not report that end until it is woken.
#[test]
fn one_that_was_stopped_before_its_program_ended_is_woken() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut supervisor = start_supervisor();
    let began = Instant::now();
    assert_eq!(run_script(&mut supervisor, &fixture, "kill -STOP $PPID; exit 3"), ProgramExit::Code(3));
    let leaving = "setsid sleep 1000 & echo $! >left; kill -STOP $PPID; exit 4";
    assert_eq!(run_script(&mut supervisor, &fixture, leaving), ProgramExit::Code(4));
    assert!(is_dead(fixture.wait_for_number("left")));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn supervisor_stopped_repeatedly_is_given_up() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut supervisor = start_fake_supervisor(&fixture, "while :; do kill -STOP $$; done");
    let began = Instant::now();
    assert_eq!(run_script(&mut supervisor, &fixture, "true"), ProgramExit::Lost);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn unresponsive_supervisor_does_not_delay_cancel() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut supervisor = start_fake_supervisor(&fixture, "echo $$ >supervisor; exec sleep 1000");
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            fixture.wait_for_number("supervisor");
            fixture.control.cancel_runs();
        });
        let exit = run_script(&mut supervisor, &fixture, "true");
        assert_eq!(exit, ProgramExit::Cancelled);
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn stopped_supervisor_is_woken_at_timeout() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut spec =
        fixture.shell_program("trap 'echo tidied; exit 0' TERM; kill -STOP $PPID; sleep 1000 >/dev/null 2>&1 & wait");
    spec.timeout = Some(Duration::from_millis(500));
    let mut supervisor = start_supervisor();
    let finished =
        supervisor.run_program(&spec, &fixture.owner_lock, &fixture.control, &mut |_, _| {}).expect("it starts");
    assert_eq!((finished.exit, finished.stdout.to_text_lossy().as_str()), (ProgramExit::TimedOut, "tidied\n"));
    assert!(finished.took < Duration::from_secs(5), "{:?}: the grace was not needed", finished.took);
    assert_eq!(run_script(&mut supervisor, &fixture, "exit 3"), ProgramExit::Code(3), "it is still good");
}

#[test]
fn program_that_keeps_stopping_its_supervisor_is_ended_at_timeout() {
    check_program_ends("trap '' TERM", "while :; do kill -STOP $PPID; done", Duration::from_secs(8));
}

/// Only the tracer can reap a traced process, so a wait for this process would last until the tracer ends.
#[test]
fn program_that_traces_its_supervisor_is_ended_at_timeout() {
    let (fixture, mut supervisor) = check_program_ends(
        "trap '' TERM HUP INT CONT",
        &format!("exec {} trace", probe_path()),
        Duration::from_secs(20),
    );
    // Some systems do not allow to trace a parent. There the program does not hold the supervisor.
    assert!([0, -1].contains(&fixture.wait_for_number("traced")));
    assert_eq!(run_script(&mut supervisor, &fixture, "exit 3"), ProgramExit::Code(3), "there is another one");
}

/// Checks that a program and its hidden child end within a time although the program acts against its supervisor.
#[track_caller]
fn check_program_ends(trap: &str, action: &str, within: Duration) -> (ProcessFixture, ProgramSupervisor) {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let hide = "(env -i setsid sh -c 'echo $$ >hidden; exec sleep 1000' >/dev/null 2>&1 &)";
    let wait = "while ! [ -s hidden ]; do sleep 0.01; done";
    let mut spec = fixture.shell_program(&format!("{trap}; {hide}; {wait}; {action}"));
    spec.timeout = Some(Duration::from_secs(3));
    spec.grace = Duration::from_millis(100);
    let began = Instant::now();
    let mut supervisor = start_supervisor();
    let finished =
        supervisor.run_program(&spec, &fixture.owner_lock, &fixture.control, &mut |_, _| {}).expect("it starts");
    assert_eq!(finished.exit, ProgramExit::TimedOut);
    assert!(began.elapsed() < within, "{:?}", began.elapsed());
    assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
    assert!(is_dead(fixture.wait_for_number("hidden")));
    (fixture, supervisor)
}

#[test]
fn supervisor_process_is_named_windlass() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let finished = fixture.run_spec(&fixture.shell_program("tr '\\0' '\\n' </proc/$PPID/cmdline"));
    assert_eq!(finished.stdout.to_text_lossy(), "windlass\nsupervise\n");
}
