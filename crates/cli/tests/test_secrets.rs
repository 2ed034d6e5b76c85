//! Secrets between control sequences.

use windlass_hooks::clean;

use crate::support::hooked::{DONE, hooked};
use crate::support::watched::Watched;
use crate::support::{Ran, World};
use crate::test_run::RUN;

const SECRET: &str = "hunter2-abc-XYZ";
/// The same as `grep --color=always` would show it.
const COLOURED: &str = "printf '%s\\033[1m%s\\n' \"${API_KEY%-XYZ}\" -XYZ";

fn run(world: &World, words: &[&str]) -> Ran {
    world.finish(world.command(words).env("API_KEY", SECRET))
}

/// Neither what a command has said nor what is kept has the secret, also where control sequences are left out.
#[track_caller]
fn check(world: &World, said: &str) {
    let shown = ("what was said".to_owned(), said.as_bytes().to_vec());
    for (place, bytes) in world.everything().into_iter().chain([shown]) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains(SECRET) && !clean(&text).contains(SECRET), "{place}");
    }
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

/// What is a secret only now is in older records.
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
