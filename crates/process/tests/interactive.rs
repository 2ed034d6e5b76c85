//! Interactive processes, which exchange messages with Windlass, and background processes.

use std::time::{Duration, Instant};

use windlass_process::{BackgroundProcess, InteractiveProcess, ProcessEvent, ProgramExit, SupervisorLauncher};

use crate::common::{LaunchMode, ProcessFixture, is_gone, is_suspended, probe_path, wait_until};

fn start_process(fixture: &ProcessFixture, script: &str) -> InteractiveProcess {
    let launcher = SupervisorLauncher {
        program: probe_path().into(),
        arguments: vec!["supervise".into()],
        environment: Vec::new(),
    };
    InteractiveProcess::start(&launcher, &fixture.shell_program(script), &fixture.owner_lock).expect("it starts")
}

fn far_deadline() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(30))
}

/// Sends bytes and returns the answer up to the end of its line.
fn exchange_line(process: &mut InteractiveProcess, fixture: &ProcessFixture, input: &[u8]) -> String {
    let mut session = process.open_session(&fixture.control).expect("a listener");
    session.send_input(input);
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        match session.next_event(&mut far_deadline()) {
            ProcessEvent::Output(bytes) => text.extend(bytes),
            other => panic!("{other:?} after {text:?}"),
        }
    }
    String::from_utf8(text).expect("text")
}

#[test]
fn interactive_process_answers_until_input_closes() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process =
        start_process(&fixture, "while read line; do echo \"got $line\"; echo \"err $line\" >&2; done; exit 3");
    for number in 0..20 {
        assert_eq!(exchange_line(&mut process, &fixture, format!("{number}\n").as_bytes()), format!("got {number}\n"));
    }
    let ended = process.end_gracefully();
    assert_eq!(ended.exit, ProgramExit::Code(3));
    assert!(ended.stderr.to_text_lossy().ends_with("err 19\n"), "{}", ended.stderr.to_text_lossy());
}

#[test]
fn program_that_ends_while_no_caller_attends_to_it_has_ended() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "read line; echo on; read line; exit 3");
    assert_eq!(exchange_line(&mut process, &fixture, b"go\n"), "on\n");
    process.close_output();
    assert!(!process.has_ended());
    process.open_session(&fixture.control).expect("a listener").send_input(b"go\n");
    wait_until("it has ended", || process.has_ended());
    assert_eq!(process.end_gracefully().exit, ProgramExit::Code(3));
}

#[test]
fn much_in_both_directions_does_not_block() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "cat");
    let mut line = vec![b'x'; 8 * 1024 * 1024];
    line.push(b'\n');
    assert_eq!(exchange_line(&mut process, &fixture, &line).len(), line.len());
}

#[test]
fn program_ends_have_distinct_events() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let first_event = |script: &str, deadline: Option<Instant>| {
        let mut process = start_process(&fixture, script);
        let mut session = process.open_session(&fixture.control).expect("a listener");
        let event = session.next_event(&mut deadline.or(far_deadline()));
        drop(session);
        (event, process.end_gracefully().exit)
    };
    assert_eq!(first_event("exit 7", None), (ProcessEvent::OutputEnded, ProgramExit::Code(7)));
    assert_eq!(first_event("kill -9 $$", None), (ProcessEvent::OutputEnded, ProgramExit::Signal(9)));
    // A descendant still holds the output, which does not delay the event.
    assert_eq!(first_event("sleep 60 & exit 7", None), (ProcessEvent::OutputEnded, ProgramExit::Code(7)));
    assert_eq!(first_event("cat", Some(Instant::now())), (ProcessEvent::DeadlinePassed, ProgramExit::Code(0)));
}

/// The deadline also ends the wait for a program that never stops writing.
#[test]
fn deadline_passes_although_output_is_pending() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "echo here; echo $$ > leader; exec sleep 60");
    fixture.wait_for_number("leader");
    let mut session = process.open_session(&fixture.control).expect("a listener");
    assert_eq!(session.next_event(&mut Some(Instant::now())), ProcessEvent::DeadlinePassed);
    assert_eq!(session.poll_event(), ProcessEvent::Output(b"here\n".to_vec()));
    assert_eq!(session.poll_event(), ProcessEvent::DeadlinePassed);
}

#[test]
fn dropped_interactive_process_leaves_nothing() {
    for is_stopped in [false, true] {
        let fixture = ProcessFixture::new(LaunchMode::Supervised);
        let script = "setsid sh -c 'echo $$ > escaped; exec sleep 60' & echo $$ > leader; exec sleep 60";
        let mut process = start_process(&fixture, script);
        let pids = [fixture.wait_for_number("leader"), fixture.wait_for_number("escaped")];
        if is_stopped {
            process.suspend_tree();
        }
        drop(process);
        for pid in pids {
            wait_until("it is gone", || is_gone(pid));
        }
    }
}

#[test]
fn session_reports_cancel_and_kill() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "echo $$ > leader; exec sleep 60");
    let pid = fixture.wait_for_number("leader");
    let (sender, event) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (control, process) = (&fixture.control, &mut process);
        scope.spawn(move || {
            let mut session = process.open_session(control).expect("a listener");
            for _ in 0..2 {
                sender.send(session.next_event(&mut far_deadline())).expect("the test listens");
            }
        });
        wait_until("it stands still", || {
            control.pause_runs();
            is_suspended(pid)
        });
        control.resume_runs();
        wait_until("it goes on", || !is_suspended(pid));
        control.cancel_runs();
        assert_eq!(event.recv(), Ok(ProcessEvent::Cancelled));
        control.kill_runs();
        assert_eq!(event.recv(), Ok(ProcessEvent::Killed));
    });
}

#[test]
fn program_that_is_left_stopped_stands_still_with_what_it_has_started_until_it_is_attended_to() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let script = "setsid sh -c 'echo $$ > escaped; exec sleep 60' & echo $$ > leader\n\
                  while read line; do echo \"got $line\"; done";
    let mut process = start_process(&fixture, script);
    let pids = [fixture.wait_for_number("leader"), fixture.wait_for_number("escaped")];
    for number in 0..3 {
        process.suspend_tree();
        pids.iter().for_each(|pid| assert!(is_suspended(*pid)));
        // A pause and a resume do not wake the program.
        fixture.control.pause_runs();
        fixture.control.resume_runs();
        pids.iter().for_each(|pid| assert!(is_suspended(*pid)));
        assert_eq!(exchange_line(&mut process, &fixture, format!("{number}\n").as_bytes()), format!("got {number}\n"));
    }
    process.suspend_tree();
    assert_eq!(process.end_gracefully().exit, ProgramExit::Code(0));
}

#[test]
fn program_is_left_stopped_where_no_descriptor_is_free() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let probe_run =
        std::process::Command::new(probe_path()).arg("starve").arg(fixture.path("")).output().expect("it starts");
    assert_eq!(
        String::from_utf8_lossy(&probe_run.stdout),
        "T, true\n",
        "{}",
        String::from_utf8_lossy(&probe_run.stderr)
    );
}

fn start_background(fixture: &ProcessFixture, script: &str, max_output: usize) -> BackgroundProcess {
    let launcher = SupervisorLauncher {
        program: probe_path().into(),
        arguments: vec!["supervise".into()],
        environment: Vec::new(),
    };
    BackgroundProcess::start(&launcher, &fixture.shell_program(script), &fixture.owner_lock, max_output)
        .expect("it starts")
}

/// Waits until one of the background processes has ended.
fn await_end(process: &mut InteractiveProcess, fixture: &ProcessFixture, background: &mut [BackgroundProcess]) {
    let mut session = process.open_session(&fixture.control).expect("a listener");
    assert_eq!(session.next_event_with_background(&mut far_deadline(), background), ProcessEvent::BackgroundEnded);
}

#[test]
fn session_serves_background_processes() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "while read line; do echo \"got $line\"; done");
    let mut all = [
        start_background(&fixture, "echo out; echo err >&2; exit 3", 100),
        start_background(&fixture, "echo $$ > leader; exec sleep 60", 100),
    ];
    await_end(&mut process, &fixture, &mut all);
    assert_eq!((all[0].exit(), all[0].output()), (Some(ProgramExit::Code(3)), (b"out\nerr\n".to_vec(), false)));
    assert_eq!(all[1].exit(), None);
    assert_eq!(exchange_line(&mut process, &fixture, b"me\n"), "got me\n");
    let pid = fixture.wait_for_number("leader");
    all[1].end_tree();
    assert_eq!(all[1].exit(), Some(ProgramExit::Signal(9)));
    assert!(is_gone(pid));
}

#[test]
fn background_process_keeps_last_output() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "cat");
    let mut all = [start_background(&fixture, "seq 300000; sleep 60 & exit 0", 20)];
    await_end(&mut process, &fixture, &mut all);
    assert_eq!(all[0].output(), (b"99998\n299999\n300000\n".to_vec(), true));
}

#[test]
fn pause_suspends_background_process_and_moves_last_output_time() {
    let fixture = ProcessFixture::new(LaunchMode::Supervised);
    let mut process = start_process(&fixture, "exec sleep 60");
    let mut all = [start_background(&fixture, "echo $$ > leader; exec sleep 60", 20)];
    let pid = fixture.wait_for_number("leader");
    std::thread::scope(|scope| {
        let (control, process, all) = (&fixture.control, &mut process, &mut all);
        let listening = scope.spawn(move || {
            let mut session = process.open_session(control).expect("a listener");
            let before = session.last_output_at();
            let event = session.next_event_with_background(&mut far_deadline(), all);
            (event, session.last_output_at() > before)
        });
        wait_until("it stands still", || {
            control.pause_runs();
            is_suspended(pid)
        });
        control.resume_runs();
        wait_until("it goes on", || !is_suspended(pid));
        control.kill_runs();
        assert_eq!(listening.join().expect("no panic"), (ProcessEvent::Killed, true));
    });
}
