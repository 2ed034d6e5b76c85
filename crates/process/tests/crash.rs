//! An owner of runs that gets signals, or is killed.
#![allow(clippy::disallowed_methods, reason = "the owner must not be a run of the test itself")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};
use windlass_process::{ProgramExit, sweep_dead_owners};

use crate::common::{PATH, Scene, Way, check, is_dead, is_gone, probe, start_time, state, tagged, until};

/// A process that runs a script as Windlass would.
struct Owner {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    name: String,
}

impl Owner {
    fn new(scene: &Scene, script: &str) -> Self {
        Self::of(scene, if scene.way == Way::Direct { "direct" } else { "supervised" }, script)
    }

    fn of(scene: &Scene, way: &str, script: &str) -> Self {
        // With an inherited descriptor, as from a careless shell.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$@\" 9</dev/null", "sh", probe(), "owner"]);
        command.arg(scene.path("owners")).args([way, script]);
        let mut process = command.env_clear().env("PATH", PATH).stdout(Stdio::piped()).spawn().expect("the probe");
        let name = format!("run-{}-{}-0000000000000abc", process.id(), start_time(process.id()));
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, lines, name }
    }

    /// Returns the last line, which tells how the run ended.
    fn outcome(&mut self) -> String {
        self.lines.by_ref().map(|line| line.expect("text")).last().expect("there is one")
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("there is more").expect("text")
    }

    fn number(&mut self) -> i32 {
        self.line().trim().parse().expect("a number")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is there");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const HIDDEN: &str =
    "(setsid sh -c 'echo $$; exec sleep 1000' &) ; (env -i setsid sh -c 'echo $$; exec sleep 1000' &) ;";

#[test]
fn a_supervised_tree_dies_with_its_owner() {
    let scene = Scene::new(Way::Supervised);
    let mut owner = Owner::new(&scene, &format!("echo $$; {HIDDEN} trap '' TERM HUP; sleep 1000; sleep 1000"));
    let pids = [owner.number(), owner.number(), owner.number()];
    owner.signal(Signal::KILL);
    until("all are dead", || pids.iter().all(|pid| is_dead(*pid)));
    until("nothing carries the tag", || tagged(&owner.name).is_empty());
}

/// A process that may take another's descriptors keeps its socket open beyond its end.
#[test]
fn supervised_tree_dies_with_owner_while_socket_is_open() {
    let scene = Scene::new(Way::Supervised);
    let mut owner = Owner::new(&scene, "echo $$; sleep 1000; :");
    let pid = owner.number();
    let process = pidfd_open(Pid::from_child(&owner.process), PidfdFlags::empty()).expect("a process");
    let numbers = std::fs::read_dir(format!("/proc/{}/fd", owner.process.id())).expect("its descriptors");
    let numbers = numbers.filter_map(|entry| entry.expect("a name").file_name().to_str()?.parse().ok());
    let taken: Vec<_> =
        numbers.filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()).collect();
    assert!(!taken.is_empty(), "they cannot be taken here");
    owner.signal(Signal::KILL);
    until("it is dead", || is_dead(pid));
    drop(taken);
}

#[test]
fn what_a_dead_owner_left_is_swept_by_the_next() {
    let scene = Scene::new(Way::Direct);
    let mut owner = Owner::new(&scene, &format!("echo $$; {HIDDEN} (env -i sh -c 'echo $$; exec sleep 1000'); :"));
    let pids = [owner.number(), owner.number(), owner.number(), owner.number()];
    owner.signal(Signal::KILL);
    owner.process.wait().expect("it is dead");
    let [leader, ..] = pids;
    assert!(!is_dead(leader), "it is not ended at once");
    let swept = sweep_dead_owners(&scene.path("owners")).expect("it can be read");
    assert_eq!(swept.len(), 1, "this test is alive");
    assert_eq!(swept[0].name, owner.name);
    assert!(swept[0].ended.contains(&leader));
    // The process without a tag in a session of its own cannot be known; all others are dead.
    let alive: Vec<_> = pids.into_iter().filter(|pid| !is_dead(*pid)).collect();
    assert!(alive.len() <= 1 && !alive.contains(&leader), "{alive:?} of {pids:?}");
    for pid in alive {
        kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it is the test's own");
    }
    assert_eq!(tagged(&owner.name), [0; 0]);
    assert_eq!(sweep(&scene.path("owners")).expect("it can be read"), []);
}

/// A stopped supervisor does not see that its owner is dead.
#[test]
fn a_supervisor_that_was_stopped_is_swept_with_what_it_ran() {
    let scene = Scene::new(Way::Supervised);
    let hidden = "(env -i setsid sh -c 'echo $$; exec sleep 1000' &)";
    let mut owner = Owner::new(&scene, &format!("echo $$; echo $PPID; {hidden}; sleep 1000; :"));
    let pids = [owner.number(), owner.number(), owner.number()];
    let [_, supervisor, _] = pids;
    // Its agent may do the same.
    kill_process(Pid::from_raw(supervisor).expect("a number"), Signal::STOP).expect("it is there");
    until("it stands still", || state(supervisor) == Some('T'));
    owner.signal(Signal::KILL);
    owner.process.wait().expect("it is dead");
    assert!(pids.iter().all(|pid| !is_dead(*pid)), "they are not ended at once");
    let swept = sweep_dead_owners(&scene.path("owners")).expect("it can be read");
    assert!(swept[0].ended.contains(&supervisor), "{swept:?}");
    assert!(pids.iter().all(|pid| is_dead(*pid)), "{pids:?}");
}

#[test]
fn what_an_owner_inherited_its_runs_do_not() {
    check(|scene| {
        let script = "i=0; while [ $i -lt 64 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done; exit 0";
        let mut owner = Owner::new(scene, script);
        assert_eq!([owner.line(), owner.line(), owner.line(), owner.line()], ["0", "1", "2", "Code(0) None"]);
    });
}

#[test]
fn the_first_signal_asks_and_the_second_kills() {
    check(|scene| {
        for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
            let mut owner =
                Owner::new(scene, "exec 2>/dev/null; trap 'echo asked' TERM; echo $$; while :; do sleep 0.01; done");
            let leader = owner.number();
            owner.signal(signal);
            let mut lines = [owner.line(), owner.line()];
            lines.sort_unstable();
            assert_eq!(lines, ["asked", "signal 1"]);
            // A closed terminal sends several: the next one is no second request.
            owner.signal(Signal::HUP);
            owner.signal(if signal == Signal::HUP { Signal::TERM } else { signal });
            let mut lines: Vec<String> = owner.lines.by_ref().map(|line| line.expect("text")).collect();
            lines.sort_unstable();
            assert_eq!(lines, [format!("Cancelled Some({number})"), "signal 2".to_owned()]);
            assert!(is_gone(leader));
            assert!(owner.process.wait().is_ok());
        }
    });
}

#[test]
fn when_all_is_over_a_signal_does_what_it_does_to_any_process() {
    let scene = Scene::new(Way::Direct);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut owner = Owner::of(&scene, "waiting", "true");
        while owner.line() != "waiting" {}
        owner.signal(signal);
        let status = owner.process.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()));
    }
}

#[test]
fn a_stop_from_the_terminal_stops_the_tree_and_then_the_owner() {
    check(|scene| {
        rustix::fs::mkfifoat(rustix::fs::CWD, scene.path("owners/fifo"), 0o600.into()).expect("a fifo");
        let mut owner = Owner::new(scene, "echo $$; (setsid sh -c 'echo $$; exec sleep 1000' &) ; read line <fifo");
        let mut pids = vec![owner.number(), owner.number()];
        owner.signal(Signal::TSTP);
        pids.push(Pid::from_child(&owner.process).as_raw_nonzero().get());
        until("all stand still", || pids.iter().all(|pid| state(*pid) == Some('T')));
        owner.signal(Signal::CONT);
        until("all go on", || pids.iter().all(|pid| state(*pid) != Some('T')));
        owner.signal(Signal::INT);
        assert_eq!(owner.outcome(), "Cancelled Some(2)");
    });
}

#[test]
fn a_supervisor_that_dies_loses_the_run_and_nothing_else() {
    let scene = Scene::new(Way::Supervised);
    let mut supervisor = crate::common::supervisor();
    let script = format!("echo $PPID >supervisor; {HIDDEN} sleep 1000");
    let mut killed = false;
    let mut numbers = String::new();
    let finished = supervisor.run_program(&scene.shell(&script), &scene.roster, &scene.control, &mut |_, chunk| {
        numbers.push_str(&String::from_utf8_lossy(chunk));
        if !killed && numbers.lines().count() == 2 {
            killed = true;
            let pid = Pid::from_raw(scene.number_in("supervisor")).expect("a number");
            kill_process(pid, Signal::KILL).expect("it is there");
        }
    });
    assert_eq!(finished.expect("it started").exit, Exit::Lost);
    assert_eq!(tagged(scene.roster.name()), [0; 0]);
    for pid in numbers.lines().map(|line| line.parse().expect("a number")) {
        assert!(is_dead(pid), "{pid}");
    }
    let finished = supervisor.run_program(&scene.shell("exit 3"), &scene.roster, &scene.control, &mut |_, _| {});
    assert_eq!(finished.expect("a new one is there").exit, Exit::Code(3));
}

#[test]
fn a_supervisor_heeds_sigterm_only() {
    let scene = Scene::new(Way::Supervised);
    let script = "kill -INT $PPID; kill -HUP $PPID; echo ready; sleep 0.05; kill -TERM $PPID; sleep 1000";
    let finished = scene.run(&scene.shell(script));
    assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Lost, "ready\n"));
    assert_eq!(tagged(scene.roster.name()), [0; 0]);
}
