//! The view of a person at a terminal while the loop runs.

use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;
use crate::support::terminal_session::TerminalSession;

/// An agent that prints something, and then waits for a word from the test.
const WAITING_AGENT: &str = "cat >/dev/null\nprintf \"$SAYS\"\ncat go\necho '<promise>COMPLETE</promise>'\n";

/// A project whose agent prints this, and waits.
fn create_waiting_project(says: &str) -> TestWorld {
    let world = TestWorld::empty();
    world.write("agent.sh", format!("SAYS='{}'\n{WAITING_AGENT}", says.replace('\'', "'\\''")));
    assert!(world.program("mkfifo").arg(world.path("go")).status().unwrap().success());
    world
}

const RUN: &[&str] = &["run", "Mend the pump", "--agent", "command:sh agent.sh"];

/// Lets the agent end its turn.
fn finish_turn(world: &TestWorld) {
    std::fs::write(world.path("go"), "").unwrap();
}

/// Checks that everything scrolled once, and nothing else; the cursor is below it.
#[track_caller]
fn check_clean(watched: &TerminalSession, expected: &str) {
    let screen = watched.screen();
    assert_eq!(scrolled_lines(&screen), expected);
    let row = u16::try_from(screen.lines().count()).unwrap();
    assert_eq!(watched.cursor(), (true, (row, 0)));
    let raw = String::from_utf8_lossy(&watched.raw_output);
    assert_eq!(raw.matches("\x1b[?7l").count(), raw.matches("\x1b[?7h").count(), "wrapping is as it was");
    assert!(!raw.contains("\x1b[?25l"), "the cursor is never hidden");
}

/// Returns the scrolled lines without the summary.
fn scrolled_lines(screen: &str) -> &str {
    screen.split_once("\n\n  took ").map_or(screen, |(told, _)| told)
}

const EXPECTED_LINES: &str = "session mend-the-pump-e01275de
  command:sh agent.sh, at most 25 iterations
iteration 1
  agent: two
  the agent says that it is done
complete after one iteration";

#[test]
fn view_shows_live_status_and_output_until_run_ends() {
    for (columns, now) in [(100, "── iteration 1/25 · 0:0"), (20, "iteration 1/25 0:0")] {
        let world = create_waiting_project("one\\ntwo\\n");
        let mut watched = world.start_in_terminal((30, columns), RUN, &[]);
        let screen = watched.await_screen(|screen| screen.contains("│ two"));
        assert!(screen.contains(now) && screen.contains("the agent wor"), "{screen}");
        assert!(screen.contains("  │ one\n  │ two"), "{screen}");
        finish_turn(&world);
        let (watched, code) = watched.read_to_end();
        assert_eq!(code, 0);
        if columns == 100 {
            check_clean(&watched, EXPECTED_LINES);
        }
        assert!(!watched.screen().contains('│'), "{}", watched.screen());
    }
}

#[test]
fn verbose_view_shows_output_once() {
    let world = create_waiting_project("one\\ntwo\\n");
    let mut watched = world.start_in_terminal((30, 100), &[RUN, &["--verbose"]].concat(), &[]);
    let screen = watched.await_screen(|screen| screen.contains("  | two"));
    assert!(screen.contains("the agent works") && !screen.contains('│'), "{screen}");
    finish_turn(&world);
    let (watched, code) = watched.read_to_end();
    assert_eq!((code, watched.screen().matches("two").count()), (0, 1), "{}", watched.screen());
}

/// Without a redrawable terminal, or without a viewer, there are lines and nothing else.
#[test]
fn lines_where_nothing_can_be_redrawn() {
    for variable in [("TERM", "dumb"), ("CI", "true")] {
        let world = create_waiting_project("one\\ntwo\\n");
        finish_turn_later(&world);
        let (watched, code) = world.start_in_terminal((30, 100), RUN, &[variable, ("NO_COLOR", "1")]).read_to_end();
        assert_eq!((scrolled_lines(&watched.screen()), code), (EXPECTED_LINES, 0), "{variable:?}");
        assert!(!watched.raw_output.contains(&0x1b), "{variable:?}");
    }
}

/// An open of the other end waits for the agent.
fn finish_turn_later(world: &TestWorld) {
    let go = world.path("go");
    std::thread::spawn(move || std::fs::write(go, ""));
}

#[test]
fn view_omits_colour_codes_when_no_color_is_set() {
    let world = create_waiting_project("one\\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[("NO_COLOR", "1")]);
    watched.await_screen(|screen| screen.contains("│ one"));
    finish_turn(&world);
    let (watched, _) = watched.read_to_end();
    let raw = String::from_utf8_lossy(&watched.raw_output);
    let coloured = raw
        .split("\x1b[")
        .skip(1)
        .filter(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'));
    assert_eq!(coloured.count(), 0, "{raw:?}");
}

/// Output of an agent is text, whatever it would do to a terminal.
#[test]
fn view_neutralizes_control_sequences_in_agent_output() {
    let world = create_waiting_project("\\033[2J\\033[31mred\\033]0;title\\007 \\342\\200\\256bidi\\010\\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[("NO_COLOR", "1")]);
    let screen = watched.await_screen(|screen| screen.contains("red"));
    assert!(screen.contains("  │ red \\u{202e}bidi"), "{screen}");
    assert!(screen.starts_with("session mend-the-pump"), "{screen}");
    finish_turn(&world);
    let (watched, _) = watched.read_to_end();
    let raw = String::from_utf8_lossy(&watched.raw_output);
    assert!(!raw.contains("\x1b[2J") && !raw.contains("\x1b]0") && !raw.contains('\u{202e}'), "{raw:?}");
}

/// Secrets are masked on the screen, too.
#[test]
fn secret_in_agent_output_is_redacted_in_view() {
    let world = create_hook_project("secrets: [API_KEY]");
    world.make_pipe("go");
    let says = "the key is $API_KEY\\nand here is a line that is longer than all forms of the key\\n";
    world.write("agent.sh", format!("SAYS=\"{says}\"\n{WAITING_AGENT}"));
    let mut watched = world.start_in_terminal((30, 100), RUN, &[("API_KEY", "hunter2-and-some-more")]);
    let screen = watched.await_screen(|screen| screen.contains("│ and here is"));
    assert!(screen.contains("  │ the key is [secret API_KEY]\n"), "{screen}");
    finish_turn(&world);
    let (watched, _) = watched.read_to_end();
    let raw = String::from_utf8_lossy(&watched.raw_output);
    assert!(!raw.contains("hunter2"), "{raw:?}");
}

#[test]
fn view_refits_rows_when_terminal_is_resized() {
    let world = create_waiting_project("a line of some length that does not fit into twenty columns\\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("twenty columns"));
    for (columns, shown) in
        [(40, "  │ a line of some length that does no…"), (200, "twenty columns"), (20, "  │ a line of some…")]
    {
        watched.resize(30, columns);
        let screen = watched.await_screen(|screen| screen.lines().any(|line| line.ends_with(shown)));
        assert_eq!(screen.matches("the agent wor").count(), 1, "{screen}");
        // Permanent lines stay, whether the terminal has wrapped the rows below them or cut them.
        assert!(screen.contains("\niteration 1\n"), "{screen}");
    }
    watched.resize(3, 100);
    watched.await_screen(|screen| screen.contains("iteration 1/25 · ") && !screen.contains('│'));
    finish_turn(&world);
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0);
    assert!(!watched.screen().contains("the agent works"), "{}", watched.screen());
}

/// Rows that are removed do not get into the scrolled lines, however short these are.
#[test]
fn view_does_not_erase_whole_screen_when_terminal_shrinks() {
    let world = create_waiting_project("a line of some length that does not fit into twenty columns\\n");
    let mut watched = world.start_in_terminal((5, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("twenty columns"));
    watched.resize(3, 20);
    watched.await_screen(|screen| screen.contains("iteration 1/25 0:") && !screen.contains('│'));
    watched.resize(2, 100);
    watched.await_screen(|screen| screen.contains("iteration 1/25 · ") && !screen.contains("the agent"));
    watched.resize(1, 100);
    watched.await_screen(|screen| !screen.contains("iteration 1/25"));
    finish_turn(&world);
    let (watched, code) = watched.read_to_end();
    assert_eq!((code, watched.has_cleared_screen), (0, false));
}

/// Permanent lines wrap at the edge of the terminal; nothing of them is lost.
#[test]
fn lines_that_stay_are_not_cut() {
    let world = create_waiting_project(
        "It needs the staging key, which no one but Ann has; ask her for it before it is too late\\n",
    );
    let mut watched = world.start_in_terminal((30, 40), RUN, &[]);
    watched.await_screen(|screen| screen.contains("  │ It needs"));
    finish_turn(&world);
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0);
    check_clean(
        &watched,
        "session mend-the-pump-e01275de
  command:sh agent.sh, at most 25
    iterations
iteration 1
  agent: It needs the staging key, which
    no one but Ann has; ask her for it
    before it is too late
  the agent says that it is done
complete after one iteration",
    );
}

/// A hook that ran out of time says so itself.
#[test]
fn how_long_a_hook_took_is_told_once() {
    let world = create_hook_project(
        "limits: {max_hook_retries: 0}\nhooks: {stop: [{name: red, command: echo no >&2; exit 2}, \
         {name: slow, command: echo part; sleep 600, timeout: 1}]}",
    );
    world.write("agent.sh", "cat >/dev/null\necho '<promise>COMPLETE</promise>'\n");
    let (watched, code) = world.start_in_terminal((30, 100), RUN, &[]).read_to_end();
    let screen = watched.screen();
    assert!(code == 4 && screen.contains("\n  slow timed out after 1 s: part\n"), "{code}: {screen}");
    assert!(screen.contains("\n  red blocks (") && screen.contains("s): no\n"), "{screen}");
}

/// During an interruption the view shows what it waits for, and how to end sooner.
#[test]
fn view_shows_agent_being_ended_after_ctrl_c() {
    let world = create_waiting_project("");
    world.write("agent.sh", "cat >/dev/null\ntrap 'cat go; exit 1' TERM\necho one\ncat go\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("│ one"));
    watched.type_keys("\x03");
    let screen = watched.await_screen(|screen| screen.contains("the agent is being ended 0:0"));
    assert!(screen.contains("── ending · iteration 1/25 · ") && !screen.contains("the agent works"), "{screen}");
    assert!(screen.contains("\n  Ctrl-C once more ends everything now"), "{screen}");
    finish_turn(&world);
    assert_eq!(watched.read_to_end().1, 130);
}

#[test]
fn ctrl_c_leaves_the_terminal_clean() {
    let world = create_waiting_project("one\\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("│ one"));
    watched.type_keys("\x03");
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 130);
    let screen = watched.screen();
    assert!(screen.contains("note: ending: "), "{screen}");
    assert!(scrolled_lines(&screen).ends_with("cancelled after one iteration"), "{screen}");
    assert!(!screen.contains('│') && !screen.contains("^C"), "{screen}");
}

#[test]
fn ctrl_z_gives_the_terminal_back() {
    let world = create_waiting_project("one\\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[]);
    let before = watched.await_screen(|screen| screen.contains("│ one"));
    watched.type_keys("\x1a");
    watched.await_stop();
    let screen = watched.await_screen(|screen| !screen.contains('│'));
    assert!(before.starts_with(&screen), "{screen}");
    assert_eq!(watched.cursor(), (true, (u16::try_from(screen.lines().count()).unwrap(), 0)));
    watched.resume();
    watched.await_screen(|screen| screen.contains("│ one"));
    finish_turn(&world);
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0);
    check_clean(&watched, &EXPECTED_LINES.replace("agent: two", "agent: one"));
}

/// Also by Ctrl-\, which ends it at once.
#[test]
fn view_is_gone_however_the_run_ends() {
    for (keys, code) in [("", 0), ("\x03", 130), ("\x1c", 131)] {
        let world = create_waiting_project("one\\n").with_windlass();
        world.make_pipe("back");
        let script = "trap : INT QUIT; ulimit -c 0; windlass run 'Mend the pump' --agent 'command:sh agent.sh'
            echo \"ended $?\"; read word < back";
        let mut watched = world.start_script_in_terminal((30, 100), script);
        watched.await_screen(|screen| screen.contains("│ one"));
        watched.type_keys(keys);
        if keys.is_empty() {
            finish_turn(&world);
        }
        let screen = watched.await_screen(|screen| screen.contains("ended "));
        assert!(screen.contains(&format!("ended {code}")) && !screen.contains('│'), "{screen}");
        std::fs::write(world.path("back"), "\n").unwrap();
        watched.read_to_end();
    }
}

/// No person is left to see it: it ends as usual.
#[test]
fn terminal_hangup_records_session_as_cancelled() {
    let world = create_waiting_project("one\\n");
    let mut watched = world.start_in_terminal((30, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("│ one"));
    assert_eq!(watched.hang_up(), 129);
    let ended = world.json_lines(&["events", "--type", "session_ended"]);
    assert_eq!(ended[0]["data"]["ending"], "cancelled");
}

/// However much is written, there are few frames; without output there is none except for the clock.
#[test]
fn frames_are_few() {
    let world = TestWorld::empty();
    world.write("agent.sh", "cat >/dev/null\nhead -c 50000000 /dev/zero | tr '\\0' 'x' | sed 's/.\\{50\\}/&\\n/g'\necho '<promise>COMPLETE</promise>'");
    let started = std::time::Instant::now();
    let (watched, code) = world.start_in_terminal((30, 100), RUN, &[]).read_to_end();
    assert_eq!(code, 0);
    let frames = String::from_utf8_lossy(&watched.raw_output).matches("\x1b[?2026h").count();
    let most = started.elapsed().as_millis() / 100 + 3;
    assert!(frames as u128 <= most, "{frames} frames in {:?}", started.elapsed());
}
