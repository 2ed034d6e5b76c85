//! Signals to a run, as terminals and shells send them

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::delivered::Repo;
use crate::support::hooked::await_end;
use crate::support::terminal::Terminal;
use crate::support::{WINDLASS, World};
use crate::test_run::{PIPED, RUN, Waiting, world};

const NAME: &str = "mend-the-pump-e01275de";

const CTRL_C: &str = "\u{3}";
const CTRL_Z: &str = "\u{1a}";

/// An agent that waits in its first turn.
const AGENT: &str = "echo $$ > agent.$turn; test $turn -gt 1 || { echo > started; cat go; }
echo '<promise>COMPLETE</promise>'";

/// A last hook that waits if there is a file `slow`.
const LAST: &str = "echo $$ > last; test ! -e slow || { echo > hearing; cat go; }; echo end >> ended";

fn piped() -> World {
    let config = PIPED.replace("command: echo end >> ended", "command: sh last.sh, idempotent: true");
    let world = world(&config, AGENT).with_windlass();
    world.write("last.sh", LAST);
    for pipe in ["started", "hearing", "go", "back"] {
        world.make_pipe(pipe);
    }
    world
}

/// A command with the terminal as its own.
fn owning(world: &World, words: &[&str]) -> Command {
    let mut command = world.program("setsid");
    command.arg("-c").args(words);
    command
}

fn in_terminal(world: &World) -> (Terminal, Child) {
    let terminal = Terminal::open();
    let child = terminal.start(&mut owning(world, &[&["windlass"], RUN].concat()));
    world.await_word("started");
    (terminal, child)
}

fn code(child: &mut Child) -> i32 {
    let status = child.wait().unwrap();
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Returns the ending of the session, or its phase if it has not ended.
fn ending(world: &World) -> String {
    let shown = world.json(&["session", "show", NAME]);
    shown["ending"].as_str().or(shown["state"].as_str()).unwrap().to_owned()
}

#[test]
fn a_key_ends_it_in_order_and_the_same_key_again_at_once() {
    let world = piped();
    let (mut terminal, mut child) = in_terminal(&world);
    terminal.press(CTRL_C);
    let shown = terminal.read_until("session_end[0] ok");
    assert!(shown.contains("pending feedback stays with the task; Ctrl-C or SIGTERM ends"), "{shown}");
    assert_eq!((code(&mut child), ending(&world).as_str()), (130, "cancelled"));
    assert_eq!((world.read("ended").as_str(), world.told("turn_started").len()), ("end\n", 1));

    let world = piped();
    world.write("slow", "");
    let (mut terminal, mut child) = in_terminal(&world);
    terminal.press(CTRL_C);
    world.await_word("hearing");
    terminal.press(CTRL_C);
    assert_eq!((code(&mut child), ending(&world).as_str()), (130, "cancelled"));
    await_end(world.number_in("last"));
    assert!(!world.has("ended"));
    // The same command finishes begun work.
    fs::remove_file(world.path("slow")).unwrap();
    world.run(RUN);
    assert_eq!((ending(&world).as_str(), world.read("ended").as_str()), ("cancelled", "end\n"));
}

/// The session is over by then: running hooks are ended, and the remaining ones complete.
#[test]
fn a_key_after_the_end_ends_what_is_running() {
    let slow = "{name: slow, command: 'echo > started; exec sleep 1000', timeout: 1000s}";
    let config = format!("hooks:\n  session_end: [{slow}, {{command: echo end >> ended}}]\n");
    let world = world(&config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    world.make_pipe("started");
    let (mut terminal, mut child) = in_terminal(&world);
    terminal.press(CTRL_C);
    let shown = terminal.read_until("session_end[1] ok");
    assert!(shown.contains("slow cancelled"), "{shown}");
    assert_eq!((code(&mut child), ending(&world).as_str()), (0, "completed"));
    assert_eq!(world.read("ended"), "end\n");
}

/// Accepted work is complete, even if later hooks are not waited for.
#[test]
fn a_key_after_the_work_was_accepted_takes_nothing_back() {
    let slow = "{name: slow, command: 'echo > started; exec sleep 1000', timeout: 1000s}";
    let config = format!("hooks:\n  post_iteration: [{slow}]\n  session_end: [{{command: echo end >> ended}}]\n");
    let world = world(&config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    world.make_pipe("started");
    let (mut terminal, mut child) = in_terminal(&world);
    terminal.press(CTRL_C);
    let shown = terminal.read_until("session_end[0] ok");
    assert!(shown.contains("slow cancelled"), "{shown}");
    assert_eq!((code(&mut child), ending(&world).as_str()), (0, "completed"));
    assert_eq!((world.read("ended").as_str(), world.told("task_completed").len()), ("end\n", 1));
}

/// The leader of its session, and the foreground process: the run itself, or a shell above it.
#[test]
fn a_closed_terminal_does_not_keep_it_from_ending_in_order() {
    let world = piped();
    let (terminal, mut child) = in_terminal(&world);
    drop(terminal);
    assert_eq!((code(&mut child), ending(&world).as_str()), (129, "cancelled"));
    assert_eq!((world.read("ended").as_str(), world.told("turn_started").len()), ("end\n", 1));
    for shell in ["bash", "dash"] {
        let world = piped();
        let (terminal, mut child) = in_shell(&world, shell);
        world.await_word("started");
        let runner = runner(&world);
        drop(terminal);
        child.wait().unwrap();
        await_end(runner);
        assert_eq!((ending(&world).as_str(), world.read("ended").as_str()), ("cancelled", "end\n"), "{shell}");
        assert_eq!(world.told("turn_started").len(), 1, "{shell}");
    }
}

/// A shell with job control, in which the run is a job.
fn in_shell(world: &World, shell: &str) -> (Terminal, Child) {
    world.write(
        "jobs.sh",
        "set -m\nwindlass run 'Mend the pump' --agent 'command:sh agent.sh'\n\
         echo \"left $?\"\nread word < back\nfg > /dev/null\necho \"ended $?\"\n",
    );
    let terminal = Terminal::open();
    let child = terminal.start(&mut owning(world, &[shell, "jobs.sh"]));
    (terminal, child)
}

/// The number of the process that runs the session.
fn runner(world: &World) -> i64 {
    let shown = world.json(&["session", "show", NAME]);
    shown["owner"].as_str().unwrap().split('-').nth(1).unwrap().parse().unwrap()
}

/// Waits until a process is stopped: a stopped one may need to be scheduled first, and one that waits for a child to start
/// (`vfork`) is stopped with the child.
fn await_stop(pid: i64) {
    let stands = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with(['T', 'D'])
    };
    let give_up = Instant::now() + Duration::from_secs(20);
    while !stands() {
        assert!(Instant::now() < give_up, "waited in vain for {pid} to stand still");
        std::thread::yield_now();
    }
}

#[test]
fn a_job_that_is_stopped_stands_still_as_a_whole_and_goes_on() {
    for shell in ["bash", "dash"] {
        let world = piped();
        let (mut terminal, mut child) = in_shell(&world, shell);
        world.await_word("started");
        terminal.press(CTRL_Z);
        terminal.read_until("left 1");
        await_stop(runner(&world));
        await_stop(world.number_in("agent.1"));
        fs::write(world.path("back"), "\n").unwrap();
        fs::write(world.path("go"), "").unwrap();
        terminal.read_until("ended 0");
        child.wait().unwrap();
        assert_eq!(ending(&world), "completed", "{shell}");
    }
}

#[test]
fn a_stopped_job_whose_terminal_is_closed_ends_in_order() {
    let world = piped();
    let (mut terminal, mut child) = in_shell(&world, "bash");
    world.await_word("started");
    terminal.press(CTRL_Z);
    terminal.read_until("left 1");
    let runner = runner(&world);
    drop(terminal);
    child.wait().unwrap();
    await_end(runner);
    assert_eq!((ending(&world).as_str(), world.read("ended").as_str()), ("cancelled", "end\n"));
    await_end(world.number_in("agent.1"));
}

/// A shell signals its jobs, and the kernel signals them again: this is one request.
#[test]
fn a_second_hangup_asks_for_nothing_more() {
    for first in [Signal::HUP, Signal::INT, Signal::TERM] {
        let world = piped();
        world.write("slow", "");
        let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut waiting = Waiting { world, child };
        waiting.world.await_word("started");
        waiting.signal(first);
        waiting.world.await_word("hearing");
        waiting.signal(Signal::HUP);
        waiting.signal(Signal::HUP);
        fs::write(waiting.world.path("go"), "").unwrap();
        let (code, said) = waiting.end();
        assert_eq!(code, 128 + first.as_raw(), "{said}");
        assert_eq!(waiting.world.read("ended"), "end\n");
    }
}

/// The printed command does this: the hooks of the end are finished first.
#[test]
fn second_interrupt_prints_the_resume_command() {
    let world = piped();
    world.write("slow", "");
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = Waiting { world, child };
    waiting.world.await_word("started");
    waiting.signal(Signal::INT);
    waiting.world.await_word("hearing");
    waiting.signal(Signal::INT);
    let (code, said) = waiting.end();
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("  # resumes it\n"), "{said}");
    fs::remove_file(waiting.world.path("slow")).unwrap();
    waiting.world.run(RUN);
    assert_eq!(waiting.world.read("ended"), "end\n");
}

/// `nohup` means: go on.
#[test]
fn ignored_hangup_does_not_end_the_run() {
    let world = piped();
    let mut command = world.program("nohup");
    let child = command.arg("windlass").args(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = Waiting { world, child };
    waiting.world.await_word("started");
    waiting.signal(Signal::HUP);
    fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.end().0, 0);
}

/// In the background of a script a shell ignores SIGINT, and `session cancel` works all the same.
#[test]
fn a_run_that_cannot_be_interrupted_can_be_cancelled() {
    let world = piped();
    let script = "windlass run 'Mend the pump' --agent 'command:sh agent.sh' > said 2>&1 & wait $!; echo $? > code";
    let mut shell = world.program("sh").args(["-c", script]).spawn().unwrap();
    world.await_word("started");
    let pid = rustix::process::Pid::from_raw(runner(&world).try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    world.ok(&["session", "cancel", NAME, "--reason", "enough"]);
    shell.wait().unwrap();
    assert_eq!((world.read("code").as_str(), ending(&world).as_str()), ("3\n", "cancelled"));
    assert!(world.read("said").contains("note: ending: the session was cancelled (enough)\n"));
}

#[test]
fn a_reader_that_goes_away_ends_nothing() {
    let world = piped();
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut waiting = Waiting { world, child };
    let mut first = String::new();
    BufReader::new(waiting.child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, format!("session {NAME}\n"));
    waiting.world.await_word("started");
    fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.child.wait().unwrap().code(), Some(0));
    assert_eq!((ending(&waiting.world).as_str(), waiting.world.read("ended").as_str()), ("completed", "end\n"));
}

/// An agent that writes without end does not delay the signal, and a terminal without a reader delays the end only while it is
/// open.
#[test]
fn a_closed_terminal_is_noticed_under_a_flood() {
    let world = world(PIPED, "test $turn -gt 1 || { echo > started; while :; do echo flood; done; }").with_windlass();
    world.make_pipe("started");
    let (terminal, mut child) = in_terminal(&world);
    drop(terminal);
    assert_eq!((code(&mut child), ending(&world).as_str()), (129, "cancelled"));
    assert_eq!(world.read("ended"), "end\n");
}

/// The hook has blocked, and the session was ended meanwhile.
#[test]
fn task_whose_session_was_ended_at_a_gate_is_shown_without_another_cause() {
    let slow = "{name: slow, command: 'kill $(cat $WINDLASS_PROJECT_DIR/pid); exec sleep 1000', timeout: 1000s}";
    let repo = Repo::new(&format!("hooks: {{before_submit: [{slow}, create_pr]}}\n"));
    repo.agent("echo work > work.txt");
    repo.add("Write it");
    let run = format!("echo $$ > pid; exec {WINDLASS} run --trust --agent command:agent");
    let ran = repo.world.finish(repo.world.program("sh").args(["-c", &run]));
    assert_eq!(ran.code, 143, "{ran}");
    let shown = repo.world.ok(&["task", "show", "T1"]);
    assert!(shown.contains("at before_submit; no agent works on it again\n"), "{shown}");
}
