//! Signals to a run, as terminals and shells send them

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::git_project::GitProject;
use crate::support::hook_project::await_process_end;
use crate::support::terminal::ControllingTerminal;
use crate::support::{TestWorld, WINDLASS};
use crate::test_run::{PENDING_FEEDBACK_CONFIG, PausedRun, RUN, create_agent_project};

const SESSION_NAME: &str = "mend-the-pump-e01275de";

const CTRL_C: &str = "\u{3}";
const CTRL_Z: &str = "\u{1a}";

/// An agent that waits in its first turn.
const WAITING_AGENT: &str = "echo $$ > agent.$turn; test $turn -gt 1 || { echo > started; cat go; }
echo '<promise>COMPLETE</promise>'";

/// A last hook that waits if there is a file `slow`.
const LAST_HOOK: &str = "echo $$ > last; test ! -e slow || { echo > hearing; cat go; }; echo end >> ended";

fn create_waiting_project() -> TestWorld {
    let config = PENDING_FEEDBACK_CONFIG.replace("command: echo end >> ended", "command: sh last.sh, idempotent: true");
    let world = create_agent_project(&config, WAITING_AGENT).with_windlass();
    world.write("last.sh", LAST_HOOK);
    for pipe in ["started", "hearing", "go", "back"] {
        world.make_pipe(pipe);
    }
    world
}

/// A command with the terminal as its own.
fn terminal_command(world: &TestWorld, words: &[&str]) -> Command {
    let mut command = world.program("setsid");
    command.arg("-c").args(words);
    command
}

fn start_run_in_terminal(world: &TestWorld) -> (ControllingTerminal, Child) {
    let terminal = ControllingTerminal::open();
    let child = terminal.start(&mut terminal_command(world, &[&["windlass"], RUN].concat()));
    world.await_pipe("started");
    (terminal, child)
}

fn exit_code(child: &mut Child) -> i32 {
    let status = child.wait().unwrap();
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Returns the ending of the session, or its phase if it has not ended.
fn session_ending(world: &TestWorld) -> String {
    let shown = world.json(&["session", "show", SESSION_NAME]);
    shown["ending"].as_str().or(shown["state"].as_str()).unwrap().to_owned()
}

#[test]
fn ctrl_c_cancels_session_and_second_ctrl_c_terminates_hooks() {
    let world = create_waiting_project();
    let (mut terminal, mut child) = start_run_in_terminal(&world);
    terminal.send_keys(CTRL_C);
    let shown = terminal.read_until("session_end[0] ok");
    assert!(shown.contains("pending feedback stays with the task; Ctrl-C or SIGTERM ends"), "{shown}");
    assert_eq!((exit_code(&mut child), session_ending(&world).as_str()), (130, "cancelled"));
    assert_eq!((world.read_file("ended").as_str(), world.events_of_type("turn_started").len()), ("end\n", 1));

    let world = create_waiting_project();
    world.write("slow", "");
    let (mut terminal, mut child) = start_run_in_terminal(&world);
    terminal.send_keys(CTRL_C);
    world.await_pipe("hearing");
    terminal.send_keys(CTRL_C);
    assert_eq!((exit_code(&mut child), session_ending(&world).as_str()), (130, "cancelled"));
    await_process_end(world.read_number("last"));
    assert!(!world.has_file("ended"));
    // The same command finishes begun work.
    fs::remove_file(world.path("slow")).unwrap();
    world.run(RUN);
    assert_eq!((session_ending(&world).as_str(), world.read_file("ended").as_str()), ("cancelled", "end\n"));
}

/// The session is over by then: running hooks are ended, and the remaining ones complete.
#[test]
fn ctrl_c_during_end_hooks_terminates_only_running_hook() {
    let slow = "{name: slow, command: 'echo > started; exec sleep 1000', timeout: 1000s}";
    let config = format!("hooks:\n  session_end: [{slow}, {{command: echo end >> ended}}]\n");
    let world = create_agent_project(&config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    world.make_pipe("started");
    let (mut terminal, mut child) = start_run_in_terminal(&world);
    terminal.send_keys(CTRL_C);
    let shown = terminal.read_until("session_end[1] ok");
    assert!(shown.contains("slow cancelled"), "{shown}");
    assert_eq!((exit_code(&mut child), session_ending(&world).as_str()), (0, "completed"));
    assert_eq!(world.read_file("ended"), "end\n");
}

/// Accepted work is complete, even if later hooks are not waited for.
#[test]
fn ctrl_c_after_accepted_work_keeps_task_completed() {
    let slow = "{name: slow, command: 'echo > started; exec sleep 1000', timeout: 1000s}";
    let config = format!("hooks:\n  post_iteration: [{slow}]\n  session_end: [{{command: echo end >> ended}}]\n");
    let world = create_agent_project(&config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    world.make_pipe("started");
    let (mut terminal, mut child) = start_run_in_terminal(&world);
    terminal.send_keys(CTRL_C);
    let shown = terminal.read_until("session_end[0] ok");
    assert!(shown.contains("slow cancelled"), "{shown}");
    assert_eq!((exit_code(&mut child), session_ending(&world).as_str()), (0, "completed"));
    assert_eq!((world.read_file("ended").as_str(), world.events_of_type("task_completed").len()), ("end\n", 1));
}

/// The leader of its session, and the foreground process: the run itself, or a shell above it.
#[test]
fn closed_terminal_cancels_session_and_runs_end_hooks() {
    let world = create_waiting_project();
    let (terminal, mut child) = start_run_in_terminal(&world);
    drop(terminal);
    assert_eq!((exit_code(&mut child), session_ending(&world).as_str()), (129, "cancelled"));
    assert_eq!((world.read_file("ended").as_str(), world.events_of_type("turn_started").len()), ("end\n", 1));
    for shell in ["bash", "dash"] {
        let world = create_waiting_project();
        let (terminal, mut child) = start_job_in_shell(&world, shell);
        world.await_pipe("started");
        let runner = runner_pid(&world);
        drop(terminal);
        child.wait().unwrap();
        await_process_end(runner);
        assert_eq!(
            (session_ending(&world).as_str(), world.read_file("ended").as_str()),
            ("cancelled", "end\n"),
            "{shell}"
        );
        assert_eq!(world.events_of_type("turn_started").len(), 1, "{shell}");
    }
}

/// A shell with job control, in which the run is a job.
fn start_job_in_shell(world: &TestWorld, shell: &str) -> (ControllingTerminal, Child) {
    world.write(
        "jobs.sh",
        "set -m\nwindlass run 'Mend the pump' --agent 'command:sh agent.sh'\n\
         echo \"left $?\"\nread word < back\nfg > /dev/null\necho \"ended $?\"\n",
    );
    let terminal = ControllingTerminal::open();
    let child = terminal.start(&mut terminal_command(world, &[shell, "jobs.sh"]));
    (terminal, child)
}

/// The number of the process that runs the session.
fn runner_pid(world: &TestWorld) -> i64 {
    let shown = world.json(&["session", "show", SESSION_NAME]);
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
fn stopped_job_suspends_agent_and_completes_when_resumed() {
    for shell in ["bash", "dash"] {
        let world = create_waiting_project();
        let (mut terminal, mut child) = start_job_in_shell(&world, shell);
        world.await_pipe("started");
        terminal.send_keys(CTRL_Z);
        terminal.read_until("left 1");
        await_stop(runner_pid(&world));
        await_stop(world.read_number("agent.1"));
        fs::write(world.path("back"), "\n").unwrap();
        fs::write(world.path("go"), "").unwrap();
        terminal.read_until("ended 0");
        child.wait().unwrap();
        assert_eq!(session_ending(&world), "completed", "{shell}");
    }
}

#[test]
fn stopped_job_is_cancelled_when_its_terminal_closes() {
    let world = create_waiting_project();
    let (mut terminal, mut child) = start_job_in_shell(&world, "bash");
    world.await_pipe("started");
    terminal.send_keys(CTRL_Z);
    terminal.read_until("left 1");
    let runner = runner_pid(&world);
    drop(terminal);
    child.wait().unwrap();
    await_process_end(runner);
    assert_eq!((session_ending(&world).as_str(), world.read_file("ended").as_str()), ("cancelled", "end\n"));
    await_process_end(world.read_number("agent.1"));
}

/// A shell signals its jobs, and the kernel signals them again: this is one request.
#[test]
fn repeated_hangup_does_not_interrupt_end_hooks() {
    for first in [Signal::HUP, Signal::INT, Signal::TERM] {
        let world = create_waiting_project();
        world.write("slow", "");
        let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut waiting = PausedRun { world, child };
        waiting.world.await_pipe("started");
        waiting.send_signal(first);
        waiting.world.await_pipe("hearing");
        waiting.send_signal(Signal::HUP);
        waiting.send_signal(Signal::HUP);
        fs::write(waiting.world.path("go"), "").unwrap();
        let (code, said) = waiting.await_exit();
        assert_eq!(code, 128 + first.as_raw(), "{said}");
        assert_eq!(waiting.world.read_file("ended"), "end\n");
    }
}

/// The printed command does this: the hooks of the end are finished first.
#[test]
fn second_interrupt_prints_the_resume_command() {
    let world = create_waiting_project();
    world.write("slow", "");
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = PausedRun { world, child };
    waiting.world.await_pipe("started");
    waiting.send_signal(Signal::INT);
    waiting.world.await_pipe("hearing");
    waiting.send_signal(Signal::INT);
    let (code, said) = waiting.await_exit();
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("  # resumes it\n"), "{said}");
    fs::remove_file(waiting.world.path("slow")).unwrap();
    waiting.world.run(RUN);
    assert_eq!(waiting.world.read_file("ended"), "end\n");
}

/// `nohup` means: go on.
#[test]
fn ignored_hangup_does_not_end_the_run() {
    let world = create_waiting_project();
    let mut command = world.program("nohup");
    let child = command.arg("windlass").args(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = PausedRun { world, child };
    waiting.world.await_pipe("started");
    waiting.send_signal(Signal::HUP);
    fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.await_exit().0, 0);
}

/// In the background of a script a shell ignores SIGINT, and `session cancel` works all the same.
#[test]
fn run_ignoring_interrupt_is_ended_by_session_cancel() {
    let world = create_waiting_project();
    let script = "windlass run 'Mend the pump' --agent 'command:sh agent.sh' > said 2>&1 & wait $!; echo $? > code";
    let mut shell = world.program("sh").args(["-c", script]).spawn().unwrap();
    world.await_pipe("started");
    let pid = rustix::process::Pid::from_raw(runner_pid(&world).try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    world.run_ok(&["session", "cancel", SESSION_NAME, "--reason", "enough"]);
    shell.wait().unwrap();
    assert_eq!((world.read_file("code").as_str(), session_ending(&world).as_str()), ("3\n", "cancelled"));
    assert!(world.read_file("said").contains("note: ending: the session was cancelled (enough)\n"));
}

#[test]
fn run_completes_when_output_reader_closes() {
    let world = create_waiting_project();
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut waiting = PausedRun { world, child };
    let mut first = String::new();
    BufReader::new(waiting.child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, format!("session {SESSION_NAME}\n"));
    waiting.world.await_pipe("started");
    fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.child.wait().unwrap().code(), Some(0));
    assert_eq!(
        (session_ending(&waiting.world).as_str(), waiting.world.read_file("ended").as_str()),
        ("completed", "end\n")
    );
}

/// An agent that writes without end does not delay the signal, and a terminal without a reader delays the end only while it is
/// open.
#[test]
fn closed_terminal_cancels_session_despite_output_flood() {
    let world = create_agent_project(
        PENDING_FEEDBACK_CONFIG,
        "test $turn -gt 1 || { echo > started; while :; do echo flood; done; }",
    )
    .with_windlass();
    world.make_pipe("started");
    let (terminal, mut child) = start_run_in_terminal(&world);
    drop(terminal);
    assert_eq!((exit_code(&mut child), session_ending(&world).as_str()), (129, "cancelled"));
    assert_eq!(world.read_file("ended"), "end\n");
}

/// The hook has blocked, and the session was ended meanwhile.
#[test]
fn task_whose_session_was_ended_at_a_gate_is_shown_without_another_cause() {
    let slow = "{name: slow, command: 'kill $(cat $WINDLASS_PROJECT_DIR/pid); exec sleep 1000', timeout: 1000s}";
    let repo = GitProject::new(&format!("hooks: {{before_submit: [{slow}, create_pr]}}\n"));
    repo.set_agent("echo work > work.txt");
    repo.add_task("Write it");
    let run = format!("echo $$ > pid; exec {WINDLASS} run --trust --agent command:agent");
    let ran = repo.world.run_command(repo.world.program("sh").args(["-c", &run]));
    assert_eq!(ran.code, 143, "{ran}");
    let shown = repo.world.run_ok(&["task", "show", "T1"]);
    assert!(shown.contains("at before_submit; no agent works on it again\n"), "{shown}");
}
