//! Supervisors that die, are stopped, or never answer: an agent can do that to its own.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use windlass_process::{ProgramExit, ProgramSupervisor, SupervisorLauncher};

use crate::common::{Scene, Way, is_dead, probe, supervisor, tagged, until};

/// Starts a shell script in place of a supervisor.
fn fake(scene: &Scene, script: &str) -> ProgramSupervisor {
    let script = format!("cd {}; {script}", scene.directory.path().display());
    let environment = vec![("PATH".into(), crate::common::PATH.into())];
    let launcher =
        SupervisorLauncher { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()], environment };
    ProgramSupervisor::start(&launcher).expect("a shell")
}

fn run(supervisor: &mut ProgramSupervisor, scene: &Scene, script: &str) -> ProgramExit {
    let finished = supervisor.run_program(&scene.shell(script), &scene.roster, &scene.control, &mut |_, _| {});
    finished.expect("it may have started").exit
}

#[test]
fn supervisor_that_dies_before_answer_loses_run() {
    let scene = Scene::new(Way::Supervised);
    let tag = format!("WINDLASS_TAG={}.1", scene.roster.name());
    let mut supervisor = fake(
        &scene,
        &format!("head -c 5 >/dev/null; env {tag} setsid sleep 1000 >/dev/null & echo begun >>begun; exit 1"),
    );
    assert_eq!(run(&mut supervisor, &scene, "true"), ProgramExit::Lost);
    assert_eq!(std::fs::read_to_string(scene.path("begun")).expect("a file"), "begun\n", "not a second time");
    assert_eq!(tagged(scene.roster.name()), [0; 0]);
}

#[test]
fn supervisor_that_died_between_runs_is_replaced() {
    let scene = Scene::new(Way::Supervised);
    let mut supervisor = supervisor();
    assert_eq!(run(&mut supervisor, &scene, "echo $PPID >supervisor"), ProgramExit::Code(0));
    let pid = scene.number_in("supervisor");
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it is there");
    until("it is dead", || is_dead(pid));
    assert_eq!(run(&mut supervisor, &scene, "exit 3"), ProgramExit::Code(3));
}

/// Its program may stop it and end: then the supervisor does not report that end by itself.
#[test]
fn one_that_was_stopped_before_its_program_ended_is_woken() {
    let scene = Scene::new(Way::Supervised);
    let mut supervisor = supervisor();
    let began = Instant::now();
    assert_eq!(run(&mut supervisor, &scene, "kill -STOP $PPID; exit 3"), ProgramExit::Code(3));
    let leaving = "setsid sleep 1000 & echo $! >left; kill -STOP $PPID; exit 4";
    assert_eq!(run(&mut supervisor, &scene, leaving), ProgramExit::Code(4));
    assert!(is_dead(scene.number_in("left")));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn supervisor_stopped_repeatedly_is_given_up() {
    let scene = Scene::new(Way::Supervised);
    let mut supervisor = fake(&scene, "while :; do kill -STOP $$; done");
    let began = Instant::now();
    assert_eq!(run(&mut supervisor, &scene, "true"), ProgramExit::Lost);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn unresponsive_supervisor_does_not_delay_cancel() {
    let scene = Scene::new(Way::Supervised);
    let mut supervisor = fake(&scene, "echo $$ >supervisor; exec sleep 1000");
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene.number_in("supervisor");
            scene.control.cancel_runs();
        });
        let exit = run(&mut supervisor, &scene, "true");
        assert_eq!(exit, ProgramExit::Cancelled);
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn stopped_supervisor_is_woken_at_timeout() {
    let scene = Scene::new(Way::Supervised);
    let mut spec = scene.shell("trap 'echo tidied; exit 0' TERM; kill -STOP $PPID; sleep 1000 >/dev/null 2>&1 & wait");
    spec.timeout = Some(Duration::from_millis(500));
    let mut supervisor = supervisor();
    let finished = supervisor.run_program(&spec, &scene.roster, &scene.control, &mut |_, _| {}).expect("it starts");
    assert_eq!((finished.exit, finished.stdout.to_text_lossy().as_str()), (ProgramExit::TimedOut, "tidied\n"));
    assert!(finished.took < Duration::from_secs(5), "{:?}: the grace was not needed", finished.took);
    assert_eq!(run(&mut supervisor, &scene, "exit 3"), ProgramExit::Code(3), "it is still good");
}

#[test]
fn what_keeps_its_supervisor_stopped_is_ended_all_the_same() {
    check_ended("trap '' TERM", "while :; do kill -STOP $PPID; done", Duration::from_secs(8));
}

/// A traced process is dead only for its tracer, and a wait for it would last as long as the tracer.
#[test]
fn what_traces_its_supervisor_is_ended_all_the_same() {
    let (scene, mut supervisor) =
        check_ended("trap '' TERM HUP INT CONT", &format!("exec {} trace", probe()), Duration::from_secs(20));
    // Where the system forbids tracing a parent, the supervisor was never held.
    assert!([0, -1].contains(&scene.number_in("traced")));
    assert_eq!(run(&mut supervisor, &scene, "exit 3"), ProgramExit::Code(3), "there is another one");
}

/// Checks that a program that hides another one and then does this to its supervisor is ended with it, within that time.
#[track_caller]
fn check_ended(trap: &str, then: &str, within: Duration) -> (Scene, ProgramSupervisor) {
    let scene = Scene::new(Way::Supervised);
    let hide = "(env -i setsid sh -c 'echo $$ >hidden; exec sleep 1000' >/dev/null 2>&1 &)";
    let wait = "while ! [ -s hidden ]; do sleep 0.01; done";
    let mut spec = scene.shell(&format!("{trap}; {hide}; {wait}; {then}"));
    spec.timeout = Some(Duration::from_secs(3));
    spec.grace = Duration::from_millis(100);
    let began = Instant::now();
    let mut supervisor = supervisor();
    let finished = supervisor.run_program(&spec, &scene.roster, &scene.control, &mut |_, _| {}).expect("it starts");
    assert_eq!(finished.exit, ProgramExit::TimedOut);
    assert!(began.elapsed() < within, "{:?}", began.elapsed());
    assert_eq!(tagged(scene.roster.name()), [0; 0]);
    assert!(is_dead(scene.number_in("hidden")));
    (scene, supervisor)
}

#[test]
fn supervisor_process_is_named_windlass() {
    let scene = Scene::new(Way::Supervised);
    let finished = scene.run(&scene.shell("tr '\\0' '\\n' </proc/$PPID/cmdline"));
    assert_eq!(finished.stdout.to_text_lossy(), "windlass\nsupervise\n");
}
