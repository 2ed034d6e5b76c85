//! Cancel, kill, pause and resume, from another thread.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use windlass_process::{ProgramExit, ProgramOutcome, ProgramSpec};

use crate::common::{Scene, check, is_gone, stands_still, state, tagged, until};

/// Runs a script, and runs an action as soon as the script has written something.
fn beside(scene: &Scene, spec: &ProgramSpec, action: impl FnOnce()) -> ProgramOutcome {
    let (sender, ready) = channel();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| observe(scene, spec, sender));
        let _end = EndOnPanic(scene);
        ready.recv().expect("it writes something");
        action();
        run.join().expect("no panic")
    })
}

/// A test that fails must not wait for its run.
struct EndOnPanic<'a>(&'a Scene);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.control.kill_runs();
        }
    }
}

fn observe(scene: &Scene, spec: &ProgramSpec, sender: Sender<()>) -> ProgramOutcome {
    // The receiver waits for the first message only.
    scene.observe(spec, &mut |_, _| sender.send(()).unwrap_or(())).expect("it starts")
}

#[test]
fn cancel_sends_sigterm_first() {
    check(|scene| {
        let spec = scene.shell("trap 'echo tidied; exit 0' TERM; echo ready; sleep 1000 >/dev/null 2>&1 & wait");
        let finished = beside(scene, &spec, || scene.control.cancel_runs());
        assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Cancelled, "ready\ntidied\n"));
        assert_eq!(tagged(scene.roster.name()), [0; 0]);
    });
}

/// Its own observer may cancel a run. Other runs continue.
#[test]
fn a_run_can_be_called_off_by_itself() {
    check(|scene| {
        let apart = scene.control.ignoring_cancel().with_own_cancel();
        let spec = scene.shell("echo ready; sleep 1000");
        let finished = scene.observe_with(&spec, &apart, &mut |_, _| apart.cancel_own_runs()).expect("it starts");
        assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Cancelled, "ready\n"));
        scene.control.cancel_own_runs();
        assert!(!scene.control.is_cancelled() && apart.is_cancelled());
    });
}

#[test]
fn kill_skips_grace_period() {
    check(|scene| {
        let spec = scene.shell("trap '' TERM; echo ready; sleep 1000; echo $$ >survived");
        let began = Instant::now();
        let finished = beside(scene, &spec, || {
            scene.control.cancel_runs();
            scene.control.kill_runs();
        });
        assert_eq!(finished.exit, Exit::Cancelled);
        assert!(began.elapsed() < Duration::from_secs(5), "without the grace of twenty seconds");
        assert!(!scene.path("survived").exists());
    });
}

#[test]
fn a_cancelled_control_starts_nothing_but_resolute_work() {
    check(|scene| {
        scene.control.cancel_runs();
        assert!(scene.control.is_cancelled());
        let spec = scene.shell("echo $$ >started");
        assert_eq!(scene.run(&spec).exit, Exit::Cancelled);
        assert!(!scene.path("started").exists());
        let control = scene.control.ignoring_cancel();
        let finished =
            windlass_process::run_program(&spec, &scene.roster, &control, &mut |_, _| {}).expect("it starts");
        assert_eq!(finished.exit, Exit::Code(0));
        control.kill_runs();
        let finished = windlass_process::run_program(&spec, &scene.roster, &control, &mut |_, _| {}).expect("no error");
        assert_eq!(finished.exit, Exit::Cancelled);
    });
}

#[test]
fn a_pause_stops_the_whole_tree_and_the_deadline() {
    check(|scene| {
        let fifo = scene.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        let hide = "(setsid sh -c 'echo $$ >hidden; while :; do sleep 0.01; done' >/dev/null 2>&1 &)";
        let wait = "while ! [ -s hidden ]; do sleep 0.01; done";
        let mut spec = scene.shell(&format!("echo $$ >leader; {hide}; {wait}; echo ready; read line <fifo; exit 6"));
        spec.timeout = Some(Duration::from_millis(600));
        let finished = beside(scene, &spec, || {
            scene.control.pause_runs();
            let pids = [scene.number_in("leader"), scene.number_in("hidden")];
            until("all stand still", || pids.iter().all(|pid| stands_still(*pid)));
            // Longer than the run may take.
            std::thread::sleep(Duration::from_millis(700));
            assert!(pids.iter().all(|pid| stands_still(*pid)));
            scene.control.resume_runs();
            until("it runs again", || pids.iter().all(|pid| state(*pid) == Some('S')));
            std::fs::write(&fifo, "on\n").expect("the other end reads");
        });
        assert_eq!(finished.exit, Exit::Code(6));
        assert!(is_gone(scene.number_in("hidden")));
    });
}

#[test]
fn a_pause_does_not_outlive_a_cancel() {
    check(|scene| {
        let spec = scene.shell("trap 'echo tidied; exit 0' TERM; echo ready; sleep 1000 >/dev/null 2>&1 & wait");
        let finished = beside(scene, &spec, || {
            scene.control.pause_runs();
            scene.control.cancel_runs();
        });
        assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Cancelled, "ready\ntidied\n"));
    });
}

#[test]
fn what_has_not_begun_waits_for_the_end_of_a_pause() {
    check(|scene| {
        scene.control.pause_runs();
        let (sender, thread) = channel();
        std::thread::scope(|scope| {
            let run = scope.spawn(move || {
                sender.send(std::fs::read_link("/proc/thread-self").expect("a thread")).expect("the test listens");
                scene.run(&scene.shell("[ -e resumed ]"))
            });
            let stat = std::path::Path::new("/proc").join(thread.recv().expect("it began")).join("stat");
            until("it waits", || std::fs::read_to_string(&stat).expect("it is there").contains(") S "));
            std::fs::write(scene.path("resumed"), "").expect("a file");
            scene.control.resume_runs();
            assert_eq!(run.join().expect("no panic").exit, Exit::Code(0));
        });
    });
}
