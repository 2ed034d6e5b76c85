//! Hooks that misbehave while they run, after a plain command and at the stop gate: nothing hangs, nothing of them survives,
//! their results are recorded, and the other hooks run.

use std::fs;
use std::process::Stdio;

use crate::support::TestWorld;
use crate::support::hook_project::{COMPLETING_AGENT, FaultyHookPoint, create_hook_project, has_process_ended};
use crate::support::terminal::run_in_terminal;
use crate::test_run::RUN;

/// The expected result.
struct ExpectedOutcome {
    outcome: &'static str,
    message: &'static str,
}

const SUCCESS: ExpectedOutcome = ExpectedOutcome { outcome: "success", message: "" };
const PROCESSES_LEFT_MESSAGE: &str = "it left processes behind; Windlass ended those that it could";

fn expected_failure(message: &'static str) -> ExpectedOutcome {
    ExpectedOutcome { outcome: "failure", message }
}

fn expected_timeout(message: &'static str) -> ExpectedOutcome {
    ExpectedOutcome { outcome: "timed_out", message }
}

/// Runs a script as a hook of an event and as a stop hook, and returns both worlds.
#[track_caller]
fn check_hook(script: &str, fields: &str, expected: &ExpectedOutcome) -> [TestWorld; 2] {
    FaultyHookPoint::ALL.map(|at| {
        let world = at.create_project(script, fields);
        check_hook_at(&world, at, expected);
        world
    })
}

#[track_caller]
fn check_hook_at(world: &TestWorld, at: FaultyHookPoint, expected: &ExpectedOutcome) {
    let ExpectedOutcome { outcome, message } = expected;
    let ran = world.run(&at.trigger_command());
    let passes = *outcome == "success";
    assert_eq!(ran.code, if at == FaultyHookPoint::Stop && !passes { 3 } else { 0 }, "{at:?}\n{ran}");
    assert_eq!(world.last_hook_outcome("bad"), ((*outcome).to_owned(), (*message).to_owned()), "{at:?}\n{ran}");
    assert_eq!(world.last_hook_outcome("good").0, "success", "{at:?}\n{ran}");
    assert!(world.has_file("good"));
    let kept = if at == FaultyHookPoint::Stop { "session_ended" } else { "task_created" };
    assert_eq!(world.event_payloads(kept).len(), 1, "{at:?}");
    let what = if *outcome == "timed_out" { "was too slow" } else { "failed" };
    let warning = format!("warning: hook `bad` {what}: {message}\n");
    assert_eq!(ran.stderr, if at == FaultyHookPoint::Stop || passes { "" } else { &warning }, "{at:?}");
    world.run_ok(&["doctor"]);
}

/// A script that continues when its background process has written its number.
fn script_with_background_process(how: &str, end: &str) -> String {
    let be = "sh -c 'echo $$ >hidden; exec sleep 1000' </dev/null >/dev/null 2>&1";
    format!("{}\nuntil [ -s hidden ]; do sleep 0.01; done\n{end}\n", how.replace("BE", be))
}

#[test]
fn hanging_hook_is_recorded_as_timed_out() {
    check_hook("echo partly; exec sleep 1000", "timeout: 300ms", &expected_timeout("timed out after 300 ms: partly"));
}

/// The configuration decides what a failing gate counts as.
#[test]
fn hook_that_fails_counts_as_its_on_failure_says() {
    for (on_failure, code) in [("ignore", 3), ("block", 4), ("escalate", 4)] {
        for (script, timeout, outcome) in [
            ("exec sleep 1000", "200ms", "timed_out"),
            ("exit 9", "30s", "failure"),
            ("echo '{\"status\": 7}'", "30s", "failure"),
        ] {
            let fields = format!("timeout: {timeout}, on_failure: {on_failure}, retry: {{max: 0}}");
            let world = FaultyHookPoint::Stop.create_project(script, &fields);
            let ran = world.run(&FaultyHookPoint::Stop.trigger_command());
            assert_eq!(
                (ran.code, world.last_hook_outcome("bad").0.as_str()),
                (code, outcome),
                "{on_failure} {script}\n{ran}"
            );
        }
    }
}

#[test]
fn hook_that_ignores_sigterm_is_killed_after_timeout() {
    let script = "trap '' TERM; echo $$ >pid; echo >running; while :; do sleep 1000; done";
    for world in check_hook(script, "timeout: 1500ms", &expected_timeout("timed out after 1.5 s")) {
        assert!(has_process_ended(world.read_number("pid")));
    }
}

#[test]
fn hook_that_leaves_daemon_succeeds_and_daemon_is_ended() {
    for how in ["BE &", "(setsid BE &)", "(env -i PATH=\"$PATH\" setsid BE &)", "(nohup setsid BE & ) &"] {
        for world in check_hook(
            &script_with_background_process(how, ""),
            "timeout: 10s",
            &ExpectedOutcome { message: PROCESSES_LEFT_MESSAGE, ..SUCCESS },
        ) {
            assert!(has_process_ended(world.read_number("hidden")), "{how}");
        }
    }
    for world in check_hook(
        &script_with_background_process("(setsid BE &)", "sleep 1000"),
        "timeout: 1500ms",
        &expected_timeout("timed out after 1.5 s"),
    ) {
        assert!(has_process_ended(world.read_number("hidden")));
    }
}

/// A child that holds the pipe does not hold the hook.
#[test]
fn hook_that_leaves_child_holding_its_output_finishes_at_once() {
    for world in check_hook(
        "sleep 1000 & echo $! >hidden; echo said",
        "timeout: 100s",
        &ExpectedOutcome { message: PROCESSES_LEFT_MESSAGE, ..SUCCESS },
    ) {
        assert!(has_process_ended(world.read_number("hidden")));
    }
}

#[test]
fn hook_that_dies_by_signal_is_recorded_as_failed() {
    for (signal, number) in [("KILL", "9"), ("SEGV", "11"), ("TERM", "15"), ("PIPE", "13")] {
        let message: &str = Box::leak(format!("ended by signal {number}").into_boxed_str());
        check_hook(&format!("kill -{signal} $$"), "timeout: 10s", &expected_failure(message));
    }
}

#[test]
fn hook_that_closes_or_ignores_its_streams_succeeds() {
    check_hook("exec <&-; exec >&-; exec 2>&-", "timeout: 10s", &SUCCESS);
    check_hook("exec <&-; echo late", "timeout: 10s", &SUCCESS);
    check_hook("head -c 1 >/dev/null; echo enough", "timeout: 10s", &SUCCESS);
}

/// The payload holds the body of its task more than once.
#[test]
fn hook_that_ignores_large_payload_succeeds() {
    let world = FaultyHookPoint::Command.create_project("exit 0", "timeout: 10s");
    let body = "ä\u{1f980}\"\\ ".repeat(110_000);
    world.write("body", body);
    let ran = world.run(&["task", "add", "One", "--body-file", "body"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");
    assert_eq!(world.last_hook_outcome("bad").0, "success");

    let world = FaultyHookPoint::Stop.create_project("exit 0", "timeout: 10s");
    world.write("payload", format!("{{\"output\": \"{}\"}}", "x".repeat(10 * 1024 * 1024)));
    let tried = world.run(&["hooks", "test", "stop", "--payload", "payload", "--run"]);
    assert_eq!(tried.code, 0, "{tried}");
    world.write("bad.sh", "wc -c >size; test -s \"$WINDLASS_PAYLOAD_FILE\"");
    assert_eq!(world.run(&["hooks", "test", "stop", "--payload", "payload", "--run"]).code, 0);
    assert!(world.read_number("size") > 10 * 1024 * 1024);
}

#[test]
fn hook_that_writes_invalid_text_is_recorded_as_clean_text() {
    let script = "printf 'a\\377\\000b\\033[2J\\n'; printf '\\376' >&2; exit 1";
    for world in check_hook(
        script,
        "{timeout: 10s, pipe_output: true}".trim_matches(['{', '}']),
        &expected_failure("exit 1: \u{fffd}"),
    ) {
        let told = world.run_ok(&["events", "--json"]);
        assert!(!told.contains("\\u0000") && !told.contains("\\u001b"), "{told}");
        assert!(told.contains("a\u{fffd}b"), "{told}");
    }
    check_hook("printf 'no newline'", "timeout: 10s, pipe_output: true", &SUCCESS);
    check_hook("printf '\\n\\n \\n'", "timeout: 10s, pipe_output: true", &SUCCESS);
}

/// Memory is bounded, and so is the record.
#[test]
fn hook_that_floods_output_is_bounded_in_memory_and_record() {
    for at in [FaultyHookPoint::Command, FaultyHookPoint::Stop] {
        let world = at.create_project("head -c 134217728 /dev/zero", "timeout: 60s");
        // Under a session a supervisor is between the two.
        let parent =
            if at == FaultyHookPoint::Stop { "$(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status)" } else { "$PPID" };
        world.write(
            "good.sh",
            format!("sed -n 's/^VmHWM:\\s*\\([0-9]*\\) kB/\\1/p' /proc/{parent}/status >peak; touch good"),
        );
        check_hook_at(&world, at, &SUCCESS);
        let peak = world.read_number("peak");
        assert!((1_000..100_000).contains(&peak), "{at:?}: {peak} kB");
        let finished = world.event_payloads("hook_finished");
        let record = finished[0]["record"].as_str().unwrap();
        let length = fs::metadata(world.path(".windlass/runs").join(record)).unwrap().len();
        assert_eq!(length, 64 * 1024 * 1024, "{at:?}");
    }
}

#[test]
fn hook_that_cannot_start_fails_with_cause() {
    let check = |command: &str, outcome: &str, message: &str| {
        let world = create_hook_project(&format!("hooks: {{task_created: [{{name: bad, command: {command:?}}}]}}"));
        world.write("plain.txt", "echo no program\n");
        world.write("lost", "#!/no/such/interpreter\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(world.path("lost"), mode).unwrap();
        fs::create_dir(world.path("place")).unwrap();
        let ran = world.run(&["task", "add", "One"]);
        assert_eq!(ran.code, 0, "{command}\n{ran}");
        let (found, said) = world.last_hook_outcome("bad");
        let said = crate::support::normalize_times_and_paths(&said, &world.directory);
        assert_eq!((found.as_str(), said.as_str()), (outcome, message), "{command}");
    };
    const MISSING: &str = "the hook is broken: exit 127, a program was not found; install it, or correct `command`";
    const REFUSED: &str =
        "the hook is broken: exit 126, a program cannot be executed; check its permissions (`chmod +x`)";
    const LONG: &str = "cannot start /bin/sh: its arguments and environment are longer than the system allows";
    check("no-such-program", "failure", &format!("{MISSING}: sh: 1: no-such-program: not found"));
    check("./plain.txt", "failure", &format!("{REFUSED}: sh: 1: ./plain.txt: Permission denied"));
    check("./place", "failure", &format!("{REFUSED}: sh: 1: ./place: Permission denied"));
    check(
        "./lost",
        "failure",
        "cannot execute ./lost: it is there, but is not an executable file or names an interpreter that is not there",
    );
    check("no-such-program | cat; exit 127", "failure", "exit 127: sh: 1: no-such-program: not found");
    check(
        "/bin/echo $(head -c 3000000 /dev/zero | tr '\\0' x)",
        "failure",
        "exit 126: sh: 1: /bin/echo: Argument list too long",
    );
    check(&format!("true {}", "x".repeat(200_000)), "failure", LONG);
    check(&format!("true {} | cat", "x".repeat(200_000)), "failure", LONG);
}

/// A hook has no terminal, even where the command has one.
#[test]
fn hook_that_opens_terminal_fails() {
    let world = FaultyHookPoint::Command.create_project("echo INTRUDER >/dev/tty", "timeout: 10s");
    let mut command = world.program("setsid");
    command.arg("-c").arg(crate::support::WINDLASS).args(["task", "add", "One"]);
    let (shown, code) = run_in_terminal(&mut command, 100);
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("INTRUDER"), "{shown}");
    assert_eq!(world.last_hook_outcome("bad").0, "failure");
}

/// A command keeps its first configuration to the end; a person has to review later changes.
#[test]
fn hook_that_changes_configuration_ends_its_trust() {
    let script = "printf 'hooks: {task_created: [{name: evil, command: touch evil}]}' >.windlass/config.yaml";
    for world in check_hook(script, "timeout: 10s", &SUCCESS) {
        let ran = world.run(&["task", "add", "Two"]);
        assert_eq!((ran.code, world.has_file("evil")), (64, false), "{ran}");
    }
}

#[test]
fn hook_that_removes_its_directories_succeeds() {
    check_hook("mkdir d && cd d && rmdir ../d && test ! -d \"$PWD\"", "timeout: 10s", &SUCCESS);
    check_hook("rm -rf .windlass/runs", "timeout: 10s", &SUCCESS);
    check_hook("rm -rf .windlass/owners", "timeout: 10s", &SUCCESS);
}

#[test]
fn hook_that_removes_project_fails_its_command() {
    for at in FaultyHookPoint::ALL {
        for what in ["rm -rf .windlass", "rm -rf \"$PWD\"", "rm .windlass/windlass.db*"] {
            let world = at.create_project(what, "timeout: 10s");
            let ran = world.run(&at.trigger_command());
            assert_eq!(ran.code, 1, "{at:?} {what}\n{ran}");
            assert!(ran.stderr.contains("was removed or replaced while it was in use"), "{at:?} {what}\n{ran}");
        }
    }
}

/// On a full disk the hook fails, and a command that cannot keep its event says so and has done nothing.
#[test]
fn hook_that_fills_disk_fails_and_leaves_store_sound() {
    let script = "
mount -t tmpfs -o size=24m none \"$1\" || exit 77
cd \"$1\" && \"$2\" init || exit 1
echo 'hooks: {task_created: [{name: bad, command: sh bad.sh}, {name: good, command: touch good}]}' >.windlass/config.yaml
echo 'rm \"$WINDLASS_PAYLOAD_FILE\"; head -c 99999999 /dev/zero >fill && exit 0; exit 5' >bad.sh
\"$2\" trust --yes || exit 1
\"$2\" task add One; echo \"code $?\"
rm -f fill
\"$2\" doctor; echo \"code $?\"
\"$2\" --json hooks history
";
    let world = TestWorld::empty();
    world.write("script.sh", script);
    fs::create_dir(world.path("disk")).unwrap();
    let mut command = world.program("/usr/bin/unshare");
    let path = std::env::join_paths(["/usr/bin", "/bin", "/usr/sbin", "/sbin"]).unwrap();
    command.args(["--mount", "sh", "script.sh", "disk", crate::support::WINDLASS]).env("PATH", path);
    let Ok(output) = command.output() else { return report_skipped_test() };
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || said.contains("unshare failed") {
        return report_skipped_test();
    }
    assert!(said.contains("T1  ready"), "{said}");
    assert_eq!(said.matches("code 0").count(), 2, "{said}");
    assert!(said.contains("hook `bad` failed: exit 5"), "{said}");
    assert!(said.contains("hook `good` failed: cannot write its payload"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[expect(clippy::print_stderr, reason = "what was not tested must be heard of")]
fn report_skipped_test() {
    eprintln!("SKIPPED: a small disk cannot be mounted here");
}

/// An interrupt ends the command, and nothing of the hook is left.
#[test]
fn interrupted_command_terminates_and_cancels_running_hook() {
    for (at, signal, code) in [
        (FaultyHookPoint::Command, "TERM", 143),
        (FaultyHookPoint::Command, "INT", 130),
        (FaultyHookPoint::Stop, "TERM", 143),
    ] {
        let world = at
            .create_project("trap '' TERM; echo $$ >pid; echo >running; while :; do sleep 1000; done", "timeout: 100s");
        world.make_pipe("running");
        let mut child =
            world.command(&at.trigger_command()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        world.await_pipe("running");
        world.run_command(world.program("sh").args(["-c", &format!("kill -{signal} {}", child.id())]));
        assert_eq!(child.wait().unwrap().code(), Some(code), "{at:?}");
        assert!(has_process_ended(world.read_number("pid")), "{at:?}");
        assert_eq!(world.last_hook_outcome("bad").0, "cancelled", "{at:?}");
        // Hooks that had not started are still pending.
        if at == FaultyHookPoint::Command {
            assert!(!world.has_file("good"));
            assert_eq!(world.run_ok(&["doctor", "--settle"]), "1 hook was settled\n");
            assert!(world.has_file("good"));
        }
    }
}

/// Output of agents and hooks cannot pass for ours.
#[test]
fn hook_output_with_control_sequences_is_cleaned() {
    let world = FaultyHookPoint::Stop
        .create_project("printf '\\033]0;title\\007\\033[31mstop[0] ok\\n'; exit 2", "timeout: 10s");
    world.write("agent.sh", COMPLETING_AGENT);
    let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{ran}");
}
