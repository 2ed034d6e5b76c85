//! Programs that stay and exchange messages.

use std::time::{Duration, Instant};

use windlass_process::{BackgroundProcess, InteractiveProcess, ProcessEvent, ProgramExit, SupervisorLauncher};

use crate::common::{Scene, Way, is_gone, probe, stands_still, until};

fn start(scene: &Scene, script: &str) -> InteractiveProcess {
    let launcher =
        SupervisorLauncher { program: probe().into(), arguments: vec!["supervise".into()], environment: Vec::new() };
    InteractiveProcess::start(&launcher, &scene.shell(script), &scene.roster).expect("it starts")
}

fn far() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(30))
}

/// Sends bytes and returns the answer, up to the end of a line.
fn answer(live: &mut InteractiveProcess, scene: &Scene, said: &[u8]) -> String {
    let mut attended = live.open_session(&scene.control).expect("a listener");
    attended.send_input(said);
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        match attended.next_event(&mut far()) {
            ProcessEvent::Output(bytes) => text.extend(bytes),
            other => panic!("{other:?} after {text:?}"),
        }
    }
    String::from_utf8(text).expect("text")
}

#[test]
fn interactive_process_answers_until_input_closes() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "while read line; do echo \"got $line\"; echo \"err $line\" >&2; done; exit 3");
    for number in 0..20 {
        assert_eq!(answer(&mut live, &scene, format!("{number}\n").as_bytes()), format!("got {number}\n"));
    }
    let left = live.end_gracefully();
    assert_eq!(left.exit, Exit::Code(3));
    assert!(left.stderr.to_text_lossy().ends_with("err 19\n"), "{}", left.stderr.to_text_lossy());
}

#[test]
fn program_that_ends_while_no_caller_attends_to_it_has_ended() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "read line; echo on; read line; exit 3");
    assert_eq!(answer(&mut live, &scene, b"go\n"), "on\n");
    live.close_output();
    assert!(!live.has_ended());
    live.open_session(&scene.control).expect("a listener").send_input(b"go\n");
    until("it has ended", || live.has_ended());
    assert_eq!(live.end().exit, Exit::Code(3));
}

#[test]
fn much_in_both_directions_does_not_block() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "cat");
    let mut line = vec![b'x'; 8 * 1024 * 1024];
    line.push(b'\n');
    assert_eq!(answer(&mut live, &scene, &line).len(), line.len());
}

#[test]
fn program_ends_have_distinct_events() {
    let scene = Scene::new(Way::Supervised);
    let hear = |script: &str, until: Option<Instant>| {
        let mut live = start(&scene, script);
        let mut attended = live.open_session(&scene.control).expect("a listener");
        let heard = attended.next_event(&mut until.or(far()));
        drop(attended);
        (heard, live.end_gracefully().exit)
    };
    assert_eq!(hear("exit 7", None), (Heard::Over, Exit::Code(7)));
    assert_eq!(hear("kill -9 $$", None), (Heard::Over, Exit::Signal(9)));
    // A descendant holds the output, and does not count.
    assert_eq!(hear("sleep 60 & exit 7", None), (Heard::Over, Exit::Code(7)));
    assert_eq!(hear("cat", Some(Instant::now())), (Heard::Late, Exit::Code(0)));
}

/// A program that never stops writing gets no more time than any other.
#[test]
fn deadline_passes_although_output_is_pending() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "echo here; echo $$ > leader; exec sleep 60");
    scene.number_in("leader");
    let mut attended = live.open_session(&scene.control).expect("a listener");
    assert_eq!(attended.hear(&mut Some(Instant::now())), Heard::Late);
    assert_eq!(attended.hear_now(), Heard::Said(b"here\n".to_vec()));
    assert_eq!(attended.hear_now(), Heard::Late);
}

#[test]
fn dropped_interactive_process_leaves_nothing() {
    for is_stopped in [false, true] {
        let scene = Scene::new(Way::Supervised);
        let script = "setsid sh -c 'echo $$ > escaped; exec sleep 60' & echo $$ > leader; exec sleep 60";
        let mut live = start(&scene, script);
        let pids = [scene.number_in("leader"), scene.number_in("escaped")];
        if is_stopped {
            live.suspend_tree();
        }
        drop(live);
        for pid in pids {
            until("it is gone", || is_gone(pid));
        }
    }
}

#[test]
fn session_reports_cancel_and_kill() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "echo $$ > leader; exec sleep 60");
    let pid = scene.number_in("leader");
    let (sender, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (control, live) = (&scene.control, &mut live);
        scope.spawn(move || {
            let mut attended = live.open_session(control).expect("a listener");
            for _ in 0..2 {
                sender.send(attended.next_event(&mut far())).expect("the test listens");
            }
        });
        until("it stands still", || {
            control.pause_runs();
            stands_still(pid)
        });
        control.resume_runs();
        until("it goes on", || !stands_still(pid));
        control.cancel_runs();
        assert_eq!(heard.recv(), Ok(Heard::Cancelled));
        control.kill_runs();
        assert_eq!(heard.recv(), Ok(Heard::Killed));
    });
}

#[test]
fn program_that_is_left_stopped_stands_still_with_what_it_has_started_until_it_is_attended_to() {
    let scene = Scene::new(Way::Supervised);
    let script = "setsid sh -c 'echo $$ > escaped; exec sleep 60' & echo $$ > leader\n\
                  while read line; do echo \"got $line\"; done";
    let mut live = start(&scene, script);
    let pids = [scene.number_in("leader"), scene.number_in("escaped")];
    for number in 0..3 {
        live.suspend_tree();
        pids.iter().for_each(|pid| assert!(stands_still(*pid)));
        // A pause in between changes nothing.
        scene.control.pause_runs();
        scene.control.resume_runs();
        pids.iter().for_each(|pid| assert!(stands_still(*pid)));
        assert_eq!(answer(&mut live, &scene, format!("{number}\n").as_bytes()), format!("got {number}\n"));
    }
    live.suspend_tree();
    assert_eq!(live.end().exit, Exit::Code(0));
}

#[test]
fn program_is_left_stopped_where_no_descriptor_is_free() {
    let scene = Scene::new(Way::Supervised);
    let ran = std::process::Command::new(probe()).arg("starve").arg(scene.path("")).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "T, true\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

fn beside(scene: &Scene, script: &str, most: usize) -> BackgroundProcess {
    let launcher =
        SupervisorLauncher { program: probe().into(), arguments: vec!["supervise".into()], environment: Vec::new() };
    BackgroundProcess::start(&launcher, &scene.shell(script), &scene.roster, most).expect("it starts")
}

/// Waits until one of the background processes has ended.
fn await_end(live: &mut InteractiveProcess, scene: &Scene, beside: &mut [BackgroundProcess]) {
    let mut attended = live.open_session(&scene.control).expect("a listener");
    assert_eq!(attended.hear_beside(&mut far(), beside), Heard::Beside);
}

#[test]
fn session_serves_background_processes() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "while read line; do echo \"got $line\"; done");
    let mut all =
        [beside(&scene, "echo out; echo err >&2; exit 3", 100), beside(&scene, "echo $$ > leader; exec sleep 60", 100)];
    await_end(&mut live, &scene, &mut all);
    assert_eq!((all[0].exit(), all[0].output()), (Some(Exit::Code(3)), (b"out\nerr\n".to_vec(), false)));
    assert_eq!(all[1].exit(), None);
    assert_eq!(answer(&mut live, &scene, b"me\n"), "got me\n");
    let pid = scene.number_in("leader");
    all[1].end_tree();
    assert_eq!(all[1].exit(), Some(Exit::Signal(9)));
    assert!(is_gone(pid));
}

#[test]
fn background_process_keeps_last_output() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "cat");
    let mut all = [beside(&scene, "seq 300000; sleep 60 & exit 0", 20)];
    await_end(&mut live, &scene, &mut all);
    assert_eq!(all[0].output(), (b"99998\n299999\n300000\n".to_vec(), true));
}

#[test]
fn a_pause_stops_what_runs_beside_it_and_moves_the_silence() {
    let scene = Scene::new(Way::Supervised);
    let mut live = start(&scene, "exec sleep 60");
    let mut all = [beside(&scene, "echo $$ > leader; exec sleep 60", 20)];
    let pid = scene.number_in("leader");
    std::thread::scope(|scope| {
        let (control, live, all) = (&scene.control, &mut live, &mut all);
        let listening = scope.spawn(move || {
            let mut attended = live.open_session(control).expect("a listener");
            let before = attended.last_output_at();
            let heard = attended.next_event_with_background(&mut far(), all);
            (heard, attended.last_output_at() > before)
        });
        until("it stands still", || {
            control.pause_runs();
            stands_still(pid)
        });
        control.resume_runs();
        until("it goes on", || !stands_still(pid));
        control.kill_runs();
        assert_eq!(listening.join().expect("no panic"), (Heard::Killed, true));
    });
}
