//! Secrets in commands, in names, and between control sequences.

use windlass_hooks::clean_output;

use crate::support::hooked::{DONE, hooked};
use crate::support::watched::Watched;
use crate::support::{Ran, WINDLASS, World};
use crate::test_run::RUN;

const SECRET: &str = "hunter2-abc-XYZ";
/// The same as `grep --color=always` would show it.
const COLOURED: &str = "printf '%s\\033[1m%s\\n' \"${API_KEY%-XYZ}\" -XYZ";

fn run(world: &World, words: &[&str]) -> Ran {
    world.finish(world.command(words).envs([("API_KEY", SECRET), ("USER", SECRET)]))
}

/// Neither the output of a command nor the stored text has the secret, also after control sequences are removed.
#[track_caller]
fn check(world: &World, said: &str) {
    let shown = ("what was said".to_owned(), said.as_bytes().to_vec());
    for (place, bytes) in world.read_files_and_events().into_iter().chain([shown]) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains(SECRET) && !clean_output(&text).contains(SECRET), "{place}");
    }
}

/// With hooks and without: the message takes another way then.
#[test]
fn what_people_say_by_commands_is_masked() {
    for hooks in ["", "hooks: {task_created: [{command: 'true'}]}"] {
        let world = hooked(&format!("secrets: [API_KEY]\n{hooks}"));
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
            let ran = run(&world, words);
            assert_eq!(ran.code, 0, "{words:?}\n{ran}");
            check(&world, &ran.to_string());
        }
        assert_eq!(world.json(&["task", "show", "T1"])["goal"], "g [secret API_KEY]");
    }
}

#[test]
fn what_an_agent_says_by_commands_is_masked() {
    let world = hooked("secrets: [API_KEY]");
    world.write(
        "agent.sh",
        format!(
            "cat >>prompts; {WINDLASS} note add \"n $API_KEY\"; {WINDLASS} say \"s $API_KEY\"
{WINDLASS} task complete T1 --result \"$API_KEY\" --artifact \"$API_KEY\"; {WINDLASS} task add \"t $API_KEY\""
        ),
    );
    let ran = run(&world, &["run", "Use hunter2-abc-XYZ", "--agent", "command:sh agent.sh", "--max-iterations", "3"]);
    check(&world, &ran.to_string());
    let log = world.ok(&["events", "--json"]);
    for said in ["n [secret API_KEY]", "s [secret API_KEY]", "t [secret API_KEY]", "Use [secret API_KEY]"] {
        assert!(log.contains(said), "{said}\n{log}");
    }
    let prompts = std::fs::read_to_string(world.path("prompts")).unwrap();
    assert!(prompts.contains("n [secret API_KEY]") && !prompts.contains(SECRET), "{prompts}");
    assert!(ran.stdout.starts_with("session use-secret-api"), "its name is made from what may be seen: {ran}");
}

#[test]
fn a_value_in_colours_is_in_no_record() {
    for (hook, agent) in [
        ("", format!("{COLOURED} >&2; exit 1")),
        ("", format!("{COLOURED}; head -c 400000 /dev/zero; {COLOURED}; {DONE}")),
        ("head -c 300000 /dev/zero; {}; exit 1", DONE.to_owned()),
    ] {
        let world = hooked("secrets: [API_KEY]\nhooks: {stop: [{name: gate, command: sh gate.sh, pipe_output: true}]}");
        world.write("gate.sh", hook.replace("{}", COLOURED));
        world.write("agent.sh", &agent);
        let ran = run(&world, &[RUN, &["--max-iterations", "1"]].concat());
        let records = world.lines(&["events"]).iter().filter(|event| event["data"]["record"].is_string()).count();
        assert!(records > 0, "{agent}");
        let logs = run(&world, &["session", "logs", "mend-the-pump-e01275de"]);
        assert!(logs.stdout.contains("[secret API_KEY]"), "{agent} {hook}");
        check(&world, &format!("{ran}{logs}"));
    }
}

/// Older records may have a value that became a secret only later.
#[test]
fn what_logs_print_is_masked() {
    let world = hooked("");
    world.write("agent.sh", format!("{COLOURED}; {DONE}"));
    run(&world, RUN);
    world.write(".windlass/config.yaml", "secrets: [API_KEY]\n");
    let logs = run(&world, &["session", "logs", "mend-the-pump-e01275de"]).to_string();
    assert!(logs.contains("[secret API_KEY]") && !logs.contains(SECRET), "{logs}");
}

#[test]
fn a_value_in_colours_is_not_seen_while_it_is_written() {
    let world = hooked("secrets: [API_KEY]");
    let agent = format!("cat >/dev/null\nprintf '%0400d\\n' 0\n{COLOURED}\nprintf '%0400d' 0\ncat go\n{DONE}");
    world.write("agent.sh", agent);
    world.make_pipe("go");
    let mut watched: Watched = world.watch((30, 100), RUN, &[("API_KEY", SECRET)]);
    let screen = watched.until(|screen| screen.contains("│ [secret API_KEY]") || screen.contains("-XYZ"));
    assert!(!screen.contains("-XYZ"), "{screen}");
    std::fs::write(world.path("go"), "").unwrap();
    let (watched, code) = watched.end();
    assert_eq!(code, 0);
    assert!(!String::from_utf8_lossy(&watched.raw).contains("hunter2"));
}

#[test]
fn names_of_protected_files_are_masked() {
    let world = hooked("secrets: [API_KEY]\nprotected: ['*.lock']\nhooks: {stop: [{command: 'true'}]}");
    world.write("agent.sh", format!("touch \"w-$API_KEY.lock\"; {DONE}"));
    let ran = run(&world, RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("needs a decision by a person: w-[secret API_KEY].lock"), "{ran}");
    let again = run(&world, &[RUN, &["--fresh"]].concat());
    assert_eq!(again.code, 0, "it was there when the session began: {again}");
    check(&world, &format!("{ran}{again}"));
}
