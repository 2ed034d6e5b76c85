//! Signals to the owner of runs, and the kill of an owner or its supervisor.
#![allow(clippy::disallowed_methods, reason = "the owner must not be a run of the test itself")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};
use windlass_process::{ProgramExit, sweep_dead_owners};

use crate::common::{
    LaunchMode, ProcessFixture, SEARCH_PATH, check_launch_modes, is_dead, is_gone, probe_path, process_state,
    start_time, tagged_processes, wait_until,
};

/// A probe process that runs a script in the same way as Windlass.
struct ProbeProcess {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    name: String,
}

impl ProbeProcess {
    fn new(fixture: &ProcessFixture, script: &str) -> Self {
        Self::start(fixture, if fixture.mode == LaunchMode::Direct { "direct" } else { "supervised" }, script)
    }

    fn start(fixture: &ProcessFixture, mode: &str, script: &str) -> Self {
        // The probe inherits an open descriptor, as from a careless shell.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$@\" 9</dev/null", "sh", probe_path(), "owner"]);
        command.arg(fixture.path("owners")).args([mode, script]);
        let mut process =
            command.env_clear().env("PATH", SEARCH_PATH).stdout(Stdio::piped()).spawn().expect("the probe");
        let name = format!("run-{}-{}-0000000000000abc", process.id(), start_time(process.id()));
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, lines, name }
    }

    /// Returns the last line, which is the outcome of the run.
    fn read_outcome(&mut self) -> String {
        self.lines.by_ref().map(|line| line.expect("text")).last().expect("there is one")
    }

    fn read_line(&mut self) -> String {
        self.lines.next().expect("there is more").expect("text")
    }

    fn read_number(&mut self) -> i32 {
        self.read_line().trim().parse().expect("a number")
    }

    fn send_signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is there");
    }
}

impl Drop for ProbeProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const HIDDEN_PROCESSES: &str =
    "(setsid sh -c 'echo $$; exec sleep 1000' &) ; (env -i setsid sh -c 'echo $$; exec sleep 1000' &) ;";

#[test]
fn supervised_tree_is_terminated_when_owner_is_killed() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut owner =
        ProbeProcess::new(&fixture, &format!("echo $$; {HIDDEN_PROCESSES} trap '' TERM HUP; sleep 1000; sleep 1000"));
    let pids = [owner.read_number(), owner.read_number(), owner.read_number()];
    owner.send_signal(Signal::KILL);
    wait_until("all are dead", || pids.iter().all(|pid| is_dead(*pid)));
    wait_until("nothing carries the tag", || tagged_processes(&owner.name).is_empty());
}

/// A process that copies the descriptors of the owner keeps the socket open after the owner has ended.
#[test]
fn supervised_tree_dies_with_owner_while_socket_is_open() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut owner = ProbeProcess::new(&fixture, "echo $$; sleep 1000; :");
    let pid = owner.read_number();
    let process = pidfd_open(Pid::from_child(&owner.process), PidfdFlags::empty()).expect("a process");
    let numbers = std::fs::read_dir(format!("/proc/{}/fd", owner.process.id())).expect("its descriptors");
    let numbers = numbers.filter_map(|entry| entry.expect("a name").file_name().to_str()?.parse().ok());
    let open_descriptors: Vec<_> =
        numbers.filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()).collect();
    assert!(!open_descriptors.is_empty(), "they cannot be taken here");
    owner.send_signal(Signal::KILL);
    wait_until("it is dead", || is_dead(pid));
    drop(open_descriptors);
}

#[test]
fn sweep_terminates_tree_of_killed_unsupervised_owner() {
    let fixture = ProcessFixture::new(LaunchMode::Direct);
    let mut owner = ProbeProcess::new(
        &fixture,
        &format!("echo $$; {HIDDEN_PROCESSES} (env -i sh -c 'echo $$; exec sleep 1000'); :"),
    );
    let pids = [owner.read_number(), owner.read_number(), owner.read_number(), owner.read_number()];
    owner.send_signal(Signal::KILL);
    owner.process.wait().expect("it is dead");
    let [leader, ..] = pids;
    assert!(!is_dead(leader), "it is not ended at once");
    let swept = sweep_dead_owners(&fixture.path("owners")).expect("it can be read");
    assert_eq!(swept.len(), 1, "this test is alive");
    assert_eq!(swept[0].name, owner.name);
    assert!(swept[0].ended.contains(&leader));
    // The sweep cannot recognise the untagged process in a session of its own. All others are dead.
    let alive: Vec<_> = pids.into_iter().filter(|pid| !is_dead(*pid)).collect();
    assert!(alive.len() <= 1 && !alive.contains(&leader), "{alive:?} of {pids:?}");
    for pid in alive {
        kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it is the test's own");
    }
    assert_eq!(tagged_processes(&owner.name), [0; 0]);
    assert_eq!(sweep_dead_owners(&fixture.path("owners")).expect("it can be read"), []);
}

/// A stopped supervisor does not see that its owner is dead.
#[test]
fn sweep_terminates_stopped_supervisor_and_its_tree() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let hidden = "(env -i setsid sh -c 'echo $$; exec sleep 1000' &)";
    let mut owner = ProbeProcess::new(&fixture, &format!("echo $$; echo $PPID; {hidden}; sleep 1000; :"));
    let pids = [owner.read_number(), owner.read_number(), owner.read_number()];
    let [_, supervisor, _] = pids;
    // An agent can do the same to its supervisor.
    kill_process(Pid::from_raw(supervisor).expect("a number"), Signal::STOP).expect("it is there");
    wait_until("it stands still", || process_state(supervisor) == Some('T'));
    owner.send_signal(Signal::KILL);
    owner.process.wait().expect("it is dead");
    assert!(pids.iter().all(|pid| !is_dead(*pid)), "they are not ended at once");
    let swept = sweep_dead_owners(&fixture.path("owners")).expect("it can be read");
    assert!(swept[0].ended.contains(&supervisor), "{swept:?}");
    assert!(pids.iter().all(|pid| is_dead(*pid)), "{pids:?}");
}

#[test]
fn run_inherits_no_descriptors_that_owner_inherited() {
    check_launch_modes(|fixture| {
        let script = "i=0; while [ $i -lt 64 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done; exit 0";
        let mut owner = ProbeProcess::new(fixture, script);
        assert_eq!(
            [owner.read_line(), owner.read_line(), owner.read_line(), owner.read_line()],
            ["0", "1", "2", "Code(0) None"]
        );
    });
}

#[test]
fn first_signal_cancels_run_and_second_signal_kills_it() {
    check_launch_modes(|fixture| {
        for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
            let mut owner = ProbeProcess::new(
                fixture,
                "exec 2>/dev/null; trap 'echo asked' TERM; echo $$; while :; do sleep 0.01; done",
            );
            let leader = owner.read_number();
            owner.send_signal(signal);
            let mut lines = [owner.read_line(), owner.read_line()];
            lines.sort_unstable();
            assert_eq!(lines, ["asked", "signal 1"]);
            // A closed terminal sends several signals: the second one is no second request.
            owner.send_signal(Signal::HUP);
            owner.send_signal(if signal == Signal::HUP { Signal::TERM } else { signal });
            let mut lines: Vec<String> = owner.lines.by_ref().map(|line| line.expect("text")).collect();
            lines.sort_unstable();
            assert_eq!(lines, [format!("Cancelled Some({number})"), "signal 2".to_owned()]);
            assert!(is_gone(leader));
            assert!(owner.process.wait().is_ok());
        }
    });
}

#[test]
fn signal_kills_owner_by_default_after_handlers_are_dropped() {
    let fixture = ProcessFixture::new(LaunchMode::Direct);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut owner = ProbeProcess::start(&fixture, "waiting", "true");
        while owner.read_line() != "waiting" {}
        owner.send_signal(signal);
        let status = owner.process.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()));
    }
}

#[test]
fn terminal_stop_suspends_tree_and_owner_until_continued() {
    check_launch_modes(|fixture| {
        rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path("owners/fifo"), 0o600.into()).expect("a fifo");
        let mut owner =
            ProbeProcess::new(fixture, "echo $$; (setsid sh -c 'echo $$; exec sleep 1000' &) ; read line <fifo");
        let mut pids = vec![owner.read_number(), owner.read_number()];
        owner.send_signal(Signal::TSTP);
        pids.push(Pid::from_child(&owner.process).as_raw_nonzero().get());
        wait_until("all stand still", || pids.iter().all(|pid| process_state(*pid) == Some('T')));
        owner.send_signal(Signal::CONT);
        wait_until("all go on", || pids.iter().all(|pid| process_state(*pid) != Some('T')));
        owner.send_signal(Signal::INT);
        assert_eq!(owner.read_outcome(), "Cancelled Some(2)");
    });
}

#[test]
fn killed_supervisor_loses_its_run_and_is_replaced() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut supervisor = crate::common::start_supervisor();
    let script = format!("echo $PPID >supervisor; {HIDDEN_PROCESSES} sleep 1000");
    let mut killed = false;
    let mut numbers = String::new();
    let finished = supervisor.run_program(
        &fixture.shell_program(&script),
        &fixture.owner_lock,
        &fixture.control,
        &mut |_, chunk| {
            numbers.push_str(&String::from_utf8_lossy(chunk));
            if !killed && numbers.lines().count() == 2 {
                killed = true;
                let pid = Pid::from_raw(fixture.wait_for_number("supervisor")).expect("a number");
                kill_process(pid, Signal::KILL).expect("it is there");
            }
        },
    );
    assert_eq!(finished.expect("it started").exit, ProgramExit::Lost);
    assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
    for pid in numbers.lines().map(|line| line.parse().expect("a number")) {
        assert!(is_dead(pid), "{pid}");
    }
    let finished =
        supervisor.run_program(&fixture.shell_program("exit 3"), &fixture.owner_lock, &fixture.control, &mut |_, _| {});
    assert_eq!(finished.expect("a new one is there").exit, ProgramExit::Code(3));
}

#[test]
fn supervisor_ignores_sigint_and_sighup_but_ends_on_sigterm() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let script = "kill -INT $PPID; kill -HUP $PPID; echo ready; sleep 0.05; kill -TERM $PPID; sleep 1000";
    let finished = fixture.run_spec(&fixture.shell_program(script));
    assert_eq!((finished.exit, finished.stdout.to_text_lossy().as_str()), (ProgramExit::Lost, "ready\n"));
    assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
}
