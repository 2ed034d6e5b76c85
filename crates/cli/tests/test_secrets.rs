//! Secrets in commands, in names, and between control sequences.

use windlass_hooks::clean_output;

use crate::support::hook_project::{COMPLETING_AGENT, create_hook_project};
use crate::support::terminal_session::TerminalSession;
use crate::support::{CommandOutput, TestWorld, WINDLASS};
use crate::test_run::{RUN, create_agent_project};

const SECRET: &str = "hunter2-abc-XYZ";
/// The same as `grep --color=always` would show it.
const PRINT_COLOURED_SECRET: &str = "printf '%s\\033[1m%s\\n' \"${API_KEY%-XYZ}\" -XYZ";

fn run_with_secret(world: &TestWorld, words: &[&str]) -> CommandOutput {
    world.run_command(world.command(words).envs([("API_KEY", SECRET), ("USER", SECRET)]))
}

/// Neither the output of a command nor the stored text has the secret, also after control sequences are removed.
#[track_caller]
fn check_no_secret(world: &TestWorld, said: &str) {
    let shown = ("what was said".to_owned(), said.as_bytes().to_vec());
    for (place, bytes) in world.read_files_and_events().into_iter().chain([shown]) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains(SECRET) && !clean_output(&text).contains(SECRET), "{place}");
    }
}

/// With hooks and without: the message takes another way then.
#[test]
fn secrets_in_commands_of_person_are_masked() {
    for hooks in ["", "hooks: {task_created: [{command: 'true'}]}"] {
        let world = create_hook_project(&format!("secrets: [API_KEY]\n{hooks}"));
        let hidden = "hunter2\u{1b}[1m-abc-XYZ";
        let commands: &[&[&str]] = &[
            &["task", "add", "t hunter2-abc-XYZ", "--body", "b hunter2-abc-XYZ", "--deliverable", "hunter2-abc-XYZ"],
            &["task", "add", "Two", "--label", "hunter2-abc-XYZ", "--body", hidden],
            &["task", "update", "T1", "--goal", "g hunter2-abc-XYZ", "--add-label", "hunter2-abc-XYZ"],
            &["note", "add", "--task", "T1", "n hunter2-abc-XYZ"],
            &["task", "claim", "T1", "--owner", SECRET],
            &["task", "release", "T1", "--force", "--reason", "r hunter2-abc-XYZ"],
            &["task", "complete", "T1", "--result", SECRET, "--artifact", SECRET],
            &["task", "block", "T2", "--reason", "x hunter2-abc-XYZ"],
        ];
        for words in commands {
            let ran = run_with_secret(&world, words);
            assert_eq!(ran.code, 0, "{words:?}\n{ran}");
            check_no_secret(&world, &ran.to_string());
        }
        assert_eq!(world.json(&["task", "show", "T1"])["goal"], "g [secret API_KEY]");
    }
}

#[test]
fn secrets_in_commands_of_agent_are_masked() {
    let world = create_hook_project("secrets: [API_KEY]");
    world.write(
        "agent.sh",
        format!(
            "cat >>prompts; {WINDLASS} note add \"n $API_KEY\"; {WINDLASS} say \"s $API_KEY\"
{WINDLASS} task complete T1 --result \"$API_KEY\" --artifact \"$API_KEY\"; {WINDLASS} task add \"t $API_KEY\""
        ),
    );
    let ran = run_with_secret(
        &world,
        &["run", "Use hunter2-abc-XYZ", "--agent", "command:sh agent.sh", "--max-iterations", "3"],
    );
    check_no_secret(&world, &ran.to_string());
    let log = world.run_ok(&["events", "--json"]);
    for said in ["n [secret API_KEY]", "s [secret API_KEY]", "t [secret API_KEY]", "Use [secret API_KEY]"] {
        assert!(log.contains(said), "{said}\n{log}");
    }
    let prompts = std::fs::read_to_string(world.path("prompts")).unwrap();
    assert!(prompts.contains("n [secret API_KEY]") && !prompts.contains(SECRET), "{prompts}");
    assert!(ran.stdout.starts_with("session use-secret-api"), "its name is made from what may be seen: {ran}");
}

#[test]
fn secret_split_by_colour_codes_is_masked_in_records() {
    for (hook, agent) in [
        ("", format!("{PRINT_COLOURED_SECRET} >&2; exit 1")),
        ("", format!("{PRINT_COLOURED_SECRET}; head -c 400000 /dev/zero; {PRINT_COLOURED_SECRET}; {COMPLETING_AGENT}")),
        ("head -c 300000 /dev/zero; {}; exit 1", COMPLETING_AGENT.to_owned()),
    ] {
        let world = create_hook_project(
            "secrets: [API_KEY]\nhooks: {stop: [{name: gate, command: sh gate.sh, pipe_output: true}]}",
        );
        world.write("gate.sh", hook.replace("{}", PRINT_COLOURED_SECRET));
        world.write("agent.sh", &agent);
        let ran = run_with_secret(&world, &[RUN, &["--max-iterations", "1"]].concat());
        let records = world.json_lines(&["events"]).iter().filter(|event| event["data"]["record"].is_string()).count();
        assert!(records > 0, "{agent}");
        let logs = run_with_secret(&world, &["session", "logs", "mend-the-pump-e01275de"]);
        assert!(logs.stdout.contains("[secret API_KEY]"), "{agent} {hook}");
        check_no_secret(&world, &format!("{ran}{logs}"));
    }
}

/// Older records may have a value that became a secret only later.
#[test]
fn secret_declared_later_is_masked_in_session_logs() {
    let world = create_hook_project("");
    world.write("agent.sh", format!("{PRINT_COLOURED_SECRET}; {COMPLETING_AGENT}"));
    run_with_secret(&world, RUN);
    world.write(".windlass/config.yaml", "secrets: [API_KEY]\n");
    let logs = run_with_secret(&world, &["session", "logs", "mend-the-pump-e01275de"]).to_string();
    assert!(logs.contains("[secret API_KEY]") && !logs.contains(SECRET), "{logs}");
}

#[test]
fn secret_split_by_colour_codes_is_masked_on_screen() {
    let world = create_hook_project("secrets: [API_KEY]");
    let agent = format!(
        "cat >/dev/null\nprintf '%0400d\\n' 0\n{PRINT_COLOURED_SECRET}\nprintf '%0400d' 0\ncat go\n{COMPLETING_AGENT}"
    );
    world.write("agent.sh", agent);
    world.make_pipe("go");
    let mut watched: TerminalSession = world.start_in_terminal((30, 100), RUN, &[("API_KEY", SECRET)]);
    let screen = watched.await_screen(|screen| screen.contains("│ [secret API_KEY]") || screen.contains("-XYZ"));
    assert!(!screen.contains("-XYZ"), "{screen}");
    std::fs::write(world.path("go"), "").unwrap();
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0);
    assert!(!String::from_utf8_lossy(&watched.raw_output).contains("hunter2"));
}

#[test]
fn names_of_protected_files_are_masked() {
    let world = create_hook_project("secrets: [API_KEY]\nprotected: ['*.lock']\nhooks: {stop: [{command: 'true'}]}");
    world.write("agent.sh", format!("touch \"w-$API_KEY.lock\"; {COMPLETING_AGENT}"));
    let ran = run_with_secret(&world, RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("protected files have changed in this session: w-[secret API_KEY].lock"), "{ran}");
    let again = run_with_secret(&world, &[RUN, &["--fresh"]].concat());
    assert_eq!(again.code, 0, "it was there when the session began: {again}");
    check_no_secret(&world, &format!("{ran}{again}"));
}

#[test]
fn recorded_output_hides_secret_that_spans_both_streams() {
    let config = "secrets: [TOKEN]\nhooks: {stop: [{name: tests, command: 'echo red; echo valve >&2'}]}";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run_with_variable(("TOKEN", "red\nvalve"), RUN).code, 0);
    let record = world.events_of_type("hook_finished")[0]["data"]["record"].as_str().unwrap().to_owned();
    let output = std::fs::read_to_string(world.path(".windlass/runs").join(record)).unwrap();
    assert_eq!(output, "[secret TOKEN]");
}
