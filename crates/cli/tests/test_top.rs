//! `windlass top` in a terminal: what it shows, what it does, and the terminal that it leaves behind.

use std::process::{Child, Stdio};

use rustix::process::{Signal, kill_process};

use crate::support::TestWorld;
use crate::support::terminal_session::TerminalSession;

const SIZE: (u16, u16) = (24, 80);
/// A script that keeps the terminal open after the program has ended.
const SCRIPT: &str = "echo before; windlass top; echo \"ended $?\"; read word < back";

/// Creates a project with two tasks and a program `windlass`.
fn create_project() -> TestWorld {
    let world = TestWorld::with_tasks(&["Mend the pump", "Paint the door"]).with_windlass();
    world.make_pipe("back");
    world
}

fn start_top(world: &TestWorld) -> TerminalSession {
    let mut watched = world.start_script_in_terminal(SIZE, SCRIPT);
    watched.await_screen(|screen| screen.contains("T1") && screen.contains("Paint the door"));
    assert!(watched.is_alternate_screen() && !watched.has_line_mode());
    watched
}

/// Checks that the terminal is as it was before the program started.
#[track_caller]
fn check_restored(watched: &mut TerminalSession, code: &str) {
    let screen = watched.await_screen(|screen| screen.starts_with("before") && screen.contains("ended"));
    assert_eq!(screen, format!("before\nended {code}"));
    assert!(!watched.is_alternate_screen() && watched.has_line_mode());
    assert_eq!(watched.cursor(), (true, (2, 0)));
}

#[test]
fn top_restores_terminal_when_it_quits() {
    for keys in ["q", "\x03"] {
        let world = create_project();
        let mut watched = start_top(&world);
        watched.type_keys(keys);
        check_restored(&mut watched, "0");
    }
}

#[test]
fn top_follows_size_of_terminal() {
    let world = create_project();
    let mut watched = start_top(&world);
    watched.resize(40, 120);
    watched.await_screen(|screen| screen.lines().count() == 40);
    watched.resize(8, 30);
    watched.await_screen(|screen| screen.contains("too small"));
    watched.resize(20, 60);
    watched.await_screen(|screen| screen.contains("Paint the door") && !screen.contains("too small"));
    watched.type_keys("q");
    check_restored(&mut watched, "0");
}

#[test]
fn ctrl_z_gives_terminal_back_until_top_continues() {
    let world = create_project();
    let mut watched = world.start_in_terminal(SIZE, &["top"], &[]);
    watched.await_screen(|screen| screen.contains("Mend the pump"));
    for _ in 0..2 {
        watched.type_keys("\x1a");
        watched.await_stop();
        watched.await_screen(|screen| !screen.contains("Mend the pump"));
        assert!(!watched.is_alternate_screen() && watched.has_line_mode() && watched.cursor().0);
        watched.resume();
        watched.await_screen(|screen| screen.contains("Mend the pump"));
        assert!(watched.is_alternate_screen() && !watched.has_line_mode());
    }
    watched.type_keys("q");
    assert_eq!(watched.read_to_end().1, 0);
}

#[test]
fn stop_signal_gives_terminal_back() {
    let world = create_project();
    let mut watched = world.start_in_terminal(SIZE, &["top"], &[]);
    watched.await_screen(|screen| screen.contains("Mend the pump"));
    kill_process(watched.pid(), Signal::TSTP).unwrap();
    watched.await_stop();
    watched.await_screen(|screen| !screen.contains("Mend the pump"));
    assert!(watched.has_line_mode());
    // The terminal may have another size when the program continues.
    watched.resize(30, 100);
    watched.resume();
    watched.await_screen(|screen| screen.lines().count() == 30);
    watched.type_keys("q");
    assert_eq!(watched.read_to_end().1, 0);
}

#[test]
fn signals_end_top_and_restore_terminal() {
    for (signal, code) in [(Signal::TERM, "143"), (Signal::INT, "130"), (Signal::HUP, "129")] {
        let world = create_project();
        let script = SCRIPT.replace("windlass top", "sh -c 'echo $$ > pid; exec windlass top'");
        let mut watched = world.start_script_in_terminal(SIZE, &script);
        watched.await_screen(|screen| screen.contains("Mend the pump"));
        let pid = i32::try_from(world.read_number("pid")).unwrap();
        kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
        check_restored(&mut watched, code);
    }
}

/// A defect while a frame is drawn, and one in the thread that loads views.
#[cfg(debug_assertions)]
#[test]
fn defect_restores_terminal_before_its_message() {
    for (place, code) in [("top.draw=error@2", "101"), ("top.load=error", "1")] {
        let world = create_project();
        let script = SCRIPT.replace("windlass top", &format!("WINDLASS_FAILPOINT={place} windlass top"));
        let mut watched = world.start_script_in_terminal(SIZE, &script);
        let is_last = |screen: &str| screen.lines().last().is_some_and(|line| line.starts_with("ended "));
        let screen = watched.await_screen(is_last);
        assert!(screen.starts_with("before\n") && screen.contains("panicked"), "{screen}");
        assert!(screen.ends_with(&format!("\nended {code}")), "{screen}");
        assert!(!watched.is_alternate_screen() && watched.has_line_mode() && watched.cursor().0);
        let output = String::from_utf8_lossy(&watched.raw_output);
        assert!(output.rfind("\x1b[?2026l") > output.rfind("\x1b[?2026h"), "the terminal draws again");
    }
}

#[test]
fn top_shows_commits_of_other_processes() {
    let world = create_project();
    let mut watched = start_top(&world);
    world.run_ok(&["task", "add", "Oil the hinges"]);
    watched.await_screen(|screen| screen.contains("Oil the hinges"));
    watched.type_keys("6");
    watched.await_screen(|screen| screen.contains("task_created") && screen.contains("Oil the hinges"));
    world.run_ok(&["task", "block", "T2", "--reason", "no paint"]);
    watched.await_screen(|screen| screen.contains("task_blocked"));
    watched.type_keys("q");
    check_restored(&mut watched, "0");
}

#[test]
fn answer_in_top_is_answer_of_person() {
    let world = create_project();
    world.run_ok(&["task", "block", "T2", "--reason", "which colour?"]);
    let mut watched = start_top(&world);
    watched.type_keys("a");
    watched.await_screen(|screen| screen.contains("Answer T2") && screen.contains("which colour?"));
    watched.type_keys("Blue, as the gate\r");
    watched.await_screen(|screen| screen.contains("T2 is now ready"));
    watched.type_keys("q");
    check_restored(&mut watched, "0");
    let events = world.json_lines(&["events", "--task", "T2"]);
    let answer = events.iter().find(|event| event.to_string().contains("Blue, as the gate")).unwrap();
    assert_eq!(answer["metadata"]["triggeredBy"], "ann");
}

#[test]
fn refused_answer_shows_error_and_keeps_text() {
    let world = create_project();
    world.run_ok(&["task", "block", "T2", "--reason", "which colour?"]);
    let mut watched = start_top(&world);
    watched.type_keys("a");
    watched.await_screen(|screen| screen.contains("Answer T2"));
    world.run_ok(&["answer", "T2", "retry"]);
    watched.type_keys("Blue\r");
    let screen = watched.await_screen(|screen| screen.contains("it is ready") && screen.contains("shows its state"));
    assert!(screen.contains("Error · Esc closes") && screen.contains("> Blue"), "{screen}");
    watched.type_keys("\x03");
    check_restored(&mut watched, "0");
}

/// Starts a run whose agent says something, and then waits for a line in `go`.
fn start_waiting_run(world: &TestWorld) -> Child {
    world.make_pipe("started");
    world.make_pipe("go");
    let agent = "cat > prompt.txt; test -e begun && { echo '<promise>COMPLETE</promise>'; exit; }; touch begun
        echo 'I look at the pump first.'; echo > started; cat go; echo '<promise>COMPLETE</promise>'";
    world.write("agent.sh", agent);
    let words = ["run", "--task", "T1", "--agent", "command:sh agent.sh"];
    let run = world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.await_pipe("started");
    run
}

#[test]
fn session_is_shown_live_and_hears_person() {
    let world = create_project();
    let mut run = start_waiting_run(&world);
    let mut watched = start_top(&world);
    watched.await_screen(|screen| screen.contains("turn in progress"));
    watched.type_keys("\r");
    watched.await_screen(|screen| screen.contains("the agent writes") && screen.contains("I look at the pump first."));
    watched.type_keys("sMind the valve\r");
    watched.await_screen(|screen| screen.contains("the agent of") && screen.contains("said  ann"));
    world.write("go", "");
    watched.await_screen(|screen| screen.contains("complete"));
    assert!(run.wait().unwrap().success());
    let prompt = std::fs::read_to_string(world.path("prompt.txt")).unwrap();
    assert!(prompt.contains("Mind the valve"), "{prompt}");
    watched.type_keys("q");
    check_restored(&mut watched, "0");
}

#[test]
fn cancel_in_top_ends_session() {
    let world = create_project();
    let mut run = start_waiting_run(&world);
    let mut watched = start_top(&world);
    watched.await_screen(|screen| screen.contains("turn in progress"));
    watched.type_keys("c");
    watched.await_screen(|screen| screen.contains("End the session"));
    watched.type_keys("wrong pump\r");
    watched.await_screen(|screen| screen.contains("Nothing is running"));
    assert!(!run.wait().unwrap().success());
    assert!(world.run_ok(&["--json", "events"]).contains("wrong pump"));
    watched.type_keys("q");
    check_restored(&mut watched, "0");
}

#[test]
fn top_without_terminal_names_other_commands() {
    let world = TestWorld::new();
    let said = world.expect_failure(&["top"]);
    assert!(said.contains("cannot show screens without a terminal"), "{said}");
    assert!(said.contains("`windlass status`") && said.contains("`windlass serve`"), "{said}");
}

#[test]
fn top_below_run_is_refused() {
    let world = create_project();
    let watched = world.start_in_terminal(SIZE, &["top"], &[("WINDLASS_RUN", "{}")]);
    let (watched, code) = watched.read_to_end();
    assert_ne!(code, 0);
    assert!(watched.screen().contains("use `windlass top`"), "{}", watched.screen());
}

#[test]
fn top_without_project_leaves_terminal_alone() {
    let world = TestWorld::empty();
    let (watched, code) = world.start_in_terminal(SIZE, &["top"], &[]).read_to_end();
    assert_eq!(code, 64);
    assert!(!watched.raw_output.windows(8).any(|bytes| bytes == b"\x1b[?1049h"), "{}", watched.screen());
}

#[test]
fn top_without_colours_writes_none() {
    let world = create_project();
    let mut watched = world.start_in_terminal(SIZE, &["top"], &[("NO_COLOR", "1")]);
    watched.await_screen(|screen| screen.contains("Mend the pump"));
    watched.type_keys("2");
    watched.await_screen(|screen| screen.contains("open tasks"));
    watched.type_keys("q");
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0);
    let output = String::from_utf8_lossy(&watched.raw_output).into_owned();
    let has_color = |sequence: &str| (30..38).any(|color| sequence.split(';').any(|part| part == color.to_string()));
    let sequences = output.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m')).map(|(sequence, _)| sequence);
    let colored: Vec<&str> = sequences.filter(|sequence| has_color(sequence)).collect();
    assert!(colored.is_empty(), "{colored:?}");
}
