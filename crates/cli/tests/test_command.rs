//! Agents that are ordinary programs, and aider, which is one of them

use std::fs;

use crate::support::TestWorld;

/// A project whose agent `aider` prints this.
fn create_aider_project(printed: &str) -> TestWorld {
    let world = TestWorld::empty();
    world.write("printed", printed);
    let script = format!("#!/bin/sh\ncat > prompt\necho \"$@\" > words\ncat '{}'\n", world.path("printed").display());
    let program = world.program_directory().join("aider");
    fs::create_dir_all(world.program_directory()).unwrap();
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world
}

const AIDER_BANNER: &str = "Aider v0.86.2\nModel: openai/stub with whole edit format\nRepo-map: using 1024 tokens\n\n";
const RUN: &[&str] = &["run", "Mend the pump", "--agent", "aider", "--max-iterations", "1"];

#[test]
fn aider_turn_outputs_last_reply_and_records_full_output() {
    let tokens = "\nTokens: 1.2k sent, 34 received.\n";
    let printed = format!(
        "{AIDER_BANNER}I begin.\n{tokens}Applied edit to pump\n\nMended. <promise>COMPLETE</promise>\n{tokens}"
    );
    let world = create_aider_project(&printed);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let turn = &world.event_payloads("turn_finished")[0];
    assert_eq!(turn["output"], "Applied edit to pump\n\nMended. <promise>COMPLETE</promise>");
    let record = world.path(".windlass/runs").join(turn["record"].as_str().expect("a record"));
    assert_eq!(fs::read_to_string(record).unwrap(), printed);
    assert!(fs::read_to_string(world.path("prompt")).unwrap().contains("Mend the pump"));
    let words = fs::read_to_string(world.path("words")).unwrap();
    assert!(words.starts_with("--yes-always ") && words.ends_with(" --message-file /dev/stdin\n"), "{words}");
}

#[test]
fn aider_fails_although_it_exits_with_0() {
    let error = "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect \nAPI key provided.\n";
    let ran = create_aider_project(&format!("{AIDER_BANNER}{error}\n")).run(RUN);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.to_string().contains("`aider` has no access: litellm.AuthenticationError"), "{ran}");
    assert!(ran.to_string().contains("set the API key of its model's provider"), "{ran}");
    let world = create_aider_project(&format!("{AIDER_BANNER}Half\n\nModel openai/stub has hit a token limit!\n"));
    world.run(RUN);
    assert_eq!(world.event_payloads("iteration_failed")[0]["fault"], "out_of_tokens");
}

#[test]
fn output_of_failed_command_agent_is_persisted_in_record() {
    let world = TestWorld::empty();
    let agent = "command:echo one; echo two; echo why >&2; exit 3";
    world.run(&["run", "Mend the pump", "--agent", agent, "--max-iterations", "1"]);
    let failed = &world.event_payloads("iteration_failed")[0];
    assert_eq!(failed["error"], "exit 3: why");
    let record = world.path(".windlass/runs").join(failed["record"].as_str().expect("a record"));
    assert_eq!(fs::read_to_string(record).unwrap(), "one\ntwo\nwhy\n");
}
