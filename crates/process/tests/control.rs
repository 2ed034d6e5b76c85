//! Cancel, kill, pause and resume of runs, from another thread.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use windlass_process::{ProgramExit, ProgramOutcome, ProgramSpec};

use crate::common::{
    ProcessFixture, check_launch_modes, is_gone, is_suspended, process_state, tagged_processes, wait_until,
};

/// Runs a program, and runs an action after the first output of the program.
fn run_with_action(fixture: &ProcessFixture, spec: &ProgramSpec, action: impl FnOnce()) -> ProgramOutcome {
    let (sender, ready) = channel();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| run_with_output_signal(fixture, spec, sender));
        let _kill_guard = KillOnPanic(fixture);
        ready.recv().expect("it writes something");
        action();
        run.join().expect("no panic")
    })
}

/// A guard that kills the runs of a failed test, so that the test does not wait for them.
struct KillOnPanic<'a>(&'a ProcessFixture);

impl Drop for KillOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.control.kill_runs();
        }
    }
}

fn run_with_output_signal(fixture: &ProcessFixture, spec: &ProgramSpec, sender: Sender<()>) -> ProgramOutcome {
    // The receiver waits for the first message only.
    fixture.observe_run(spec, &mut |_, _| sender.send(()).unwrap_or(())).expect("it starts")
}

#[test]
fn cancel_sends_sigterm_first() {
    check_launch_modes(|fixture| {
        let spec =
            fixture.shell_program("trap 'echo tidied; exit 0' TERM; echo ready; sleep 1000 >/dev/null 2>&1 & wait");
        let finished = run_with_action(fixture, &spec, || fixture.control.cancel_runs());
        assert_eq!(
            (finished.exit, finished.stdout.to_text_lossy().as_str()),
            (ProgramExit::Cancelled, "ready\ntidied\n")
        );
        assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
    });
}

/// The observer of a run may cancel this run. Other runs continue.
#[test]
fn own_cancel_ends_run_without_cancelling_parent_control() {
    check_launch_modes(|fixture| {
        let own_control = fixture.control.ignoring_cancel().with_own_cancel();
        let spec = fixture.shell_program("echo ready; sleep 1000");
        let finished = fixture
            .observe_run_with(&spec, &own_control, &mut |_, _| own_control.cancel_own_runs())
            .expect("it starts");
        assert_eq!((finished.exit, finished.stdout.to_text_lossy().as_str()), (ProgramExit::Cancelled, "ready\n"));
        fixture.control.cancel_own_runs();
        assert!(!fixture.control.is_cancelled() && own_control.is_cancelled());
    });
}

#[test]
fn kill_skips_grace_period() {
    check_launch_modes(|fixture| {
        let spec = fixture.shell_program("trap '' TERM; echo ready; sleep 1000; echo $$ >survived");
        let began = Instant::now();
        let finished = run_with_action(fixture, &spec, || {
            fixture.control.cancel_runs();
            fixture.control.kill_runs();
        });
        assert_eq!(finished.exit, ProgramExit::Cancelled);
        assert!(began.elapsed() < Duration::from_secs(5), "without the grace of twenty seconds");
        assert!(!fixture.path("survived").exists());
    });
}

#[test]
fn cancelled_control_starts_only_runs_that_ignore_cancel() {
    check_launch_modes(|fixture| {
        fixture.control.cancel_runs();
        assert!(fixture.control.is_cancelled());
        let spec = fixture.shell_program("echo $$ >started");
        assert_eq!(fixture.run_spec(&spec).exit, ProgramExit::Cancelled);
        assert!(!fixture.path("started").exists());
        let control = fixture.control.ignoring_cancel();
        let finished =
            windlass_process::run_program(&spec, &fixture.owner_lock, &control, &mut |_, _| {}).expect("it starts");
        assert_eq!(finished.exit, ProgramExit::Code(0));
        control.kill_runs();
        let finished =
            windlass_process::run_program(&spec, &fixture.owner_lock, &control, &mut |_, _| {}).expect("no error");
        assert_eq!(finished.exit, ProgramExit::Cancelled);
    });
}

#[test]
fn pause_suspends_process_tree_and_timeout_until_resume() {
    check_launch_modes(|fixture| {
        let fifo = fixture.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        let hide = "(setsid sh -c 'echo $$ >hidden; while :; do sleep 0.01; done' >/dev/null 2>&1 &)";
        let wait = "while ! [ -s hidden ]; do sleep 0.01; done";
        let mut spec =
            fixture.shell_program(&format!("echo $$ >leader; {hide}; {wait}; echo ready; read line <fifo; exit 6"));
        spec.timeout = Some(Duration::from_millis(600));
        let finished = run_with_action(fixture, &spec, || {
            fixture.control.pause_runs();
            let pids = [fixture.wait_for_number("leader"), fixture.wait_for_number("hidden")];
            wait_until("all stand still", || pids.iter().all(|pid| is_suspended(*pid)));
            // Sleep longer than the timeout of the run.
            std::thread::sleep(Duration::from_millis(700));
            assert!(pids.iter().all(|pid| is_suspended(*pid)));
            fixture.control.resume_runs();
            wait_until("it runs again", || pids.iter().all(|pid| process_state(*pid) == Some('S')));
            std::fs::write(&fifo, "on\n").expect("the other end reads");
        });
        assert_eq!(finished.exit, ProgramExit::Code(6));
        assert!(is_gone(fixture.wait_for_number("hidden")));
    });
}

#[test]
fn cancel_during_pause_resumes_run_for_sigterm_cleanup() {
    check_launch_modes(|fixture| {
        let spec =
            fixture.shell_program("trap 'echo tidied; exit 0' TERM; echo ready; sleep 1000 >/dev/null 2>&1 & wait");
        let finished = run_with_action(fixture, &spec, || {
            fixture.control.pause_runs();
            fixture.control.cancel_runs();
        });
        assert_eq!(
            (finished.exit, finished.stdout.to_text_lossy().as_str()),
            (ProgramExit::Cancelled, "ready\ntidied\n")
        );
    });
}

#[test]
fn run_requested_during_pause_starts_after_resume() {
    check_launch_modes(|fixture| {
        fixture.control.pause_runs();
        let (sender, thread) = channel();
        std::thread::scope(|scope| {
            let run = scope.spawn(move || {
                sender.send(std::fs::read_link("/proc/thread-self").expect("a thread")).expect("the test listens");
                fixture.run_spec(&fixture.shell_program("[ -e resumed ]"))
            });
            let stat = std::path::Path::new("/proc").join(thread.recv().expect("it began")).join("stat");
            wait_until("it waits", || std::fs::read_to_string(&stat).expect("it is there").contains(") S "));
            std::fs::write(fixture.path("resumed"), "").expect("a file");
            fixture.control.resume_runs();
            assert_eq!(run.join().expect("no panic").exit, ProgramExit::Code(0));
        });
    });
}
