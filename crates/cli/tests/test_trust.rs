//! `windlass trust`, which starts no program, trusted or not

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::support::TestWorld;
use crate::support::terminal::{ControllingTerminal, run_in_terminal_with_input};

const CONFIG: &str = "\
version: 1
hooks:
  stop:
    - command: touch stop-ran
  before_submit: [run_tests, create_pr]
  task_created:
    - command: touch created-ran
notify:
  - command: touch notified
    on: [escalated]
";

/// Agents of a type are programs like those of `agent`.
#[test]
fn trust_shows_the_agents_of_task_types() {
    let world = TestWorld::new();
    let types =
        "task_types: {bug: {agents: {implementer: ['command:sh x.sh', known]}}}\nagents: {known: {command: sh y.sh}}\n";
    world.write(".windlass/config.yaml", types);
    let shown = world.run_ok(&["trust", "--show"]);
    assert!(shown.contains("task_types bug implementer\n      command:sh x.sh\n"), "{shown}");
    assert_eq!(shown.matches("bug implementer").count(), 1, "{shown}");
}

#[test]
fn trust_decision_is_recorded_shown_and_revoked() {
    let world = TestWorld::new();
    assert_snapshot!(world.run(&["trust"]), @"$WORK is trusted already");
    world.write(".windlass/config.yaml", CONFIG);
    assert_snapshot!(world.run(&["trust", "--show"]), @r"
    $WORK  changed since it was trusted
    Its configuration would run:
      stop[0] (line 4)
          touch stop-ran
      before_submit[0]:run_tests (line 5)
          run_tests (runs the project's tests)
      before_submit[1]:create_pr (line 5)
          create_pr (git: push the branch, and open a change on the forge)
      task_created[0] (line 7)
          touch created-ran
      notify[0] (line 9)
          touch notified
    Agents may run any command that they supply (`agent_commands: allow`, the default).
    ");
    assert_snapshot!(world.expect_failure(&["trust"]), @"
    error: the project stays untrusted
    caused by: there is no terminal to ask on
    hint: `windlass trust --show` shows what would run, `windlass trust --yes` trusts it
    [64 trust]
    ");
    assert_snapshot!(world.run(&["trust", "--yes"]), @"$WORK is trusted");
    assert_snapshot!(world.run(&["trust", "--show", "--json"]), @r#"{"agent_commands":"allow","foreign_store":null,"project":"$WORK","runs":[{"at":"stop","line":4,"name":"stop[0]","what":"touch stop-ran"},{"at":"before_submit","line":5,"name":"before_submit[0]:run_tests","what":"run_tests (runs the project's tests)"},{"at":"before_submit","line":5,"name":"before_submit[1]:create_pr","what":"create_pr (git: push the branch, and open a change on the forge)"},{"at":"task_created","line":7,"name":"task_created[0]","what":"touch created-ran"},{"at":"notify","line":9,"name":"notify[0]","what":"touch notified"}],"sets":["version","hooks","notify"],"trust":"trusted","workflows":[]}"#);
    assert_snapshot!(world.run(&["trust", "--revoke"]), @"$WORK is no longer trusted");
    assert_snapshot!(world.run(&["trust", "--revoke", "--json"]), @r#"{"project":"$WORK","trust":"never"}"#);
    assert_snapshot!(world.run(&["status"]), @"
    project  $WORK
    its hooks are not trusted: `windlass trust` shows what would run
    tasks    none yet; `windlass task add GOAL` makes one
    ");
    assert_snapshot!(world.expect_failure(&["trust", "--yes", "--show"]), @"
    error: the argument '--yes' cannot be used with '--show'
    hint: `windlass trust --help` shows how it is used
    [64 usage]
    ");
}

/// The commands that an agent may run are part of the trusted content.
#[test]
fn commands_for_agents_are_shown() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "agent_commands: allow\nvalidators:\n  lint: make lint\n");
    assert_snapshot!(world.run(&["trust", "--show"]), @r"
    $WORK  changed since it was trusted
    Its configuration would run:
      validators lint (line 3)
          make lint
      agent_commands allow
          any command that an agent supplies
    ");
    world.write(".windlass/config.yaml", "agent_commands: deny\nvalidators:\n  lint: make lint\n");
    assert_snapshot!(world.run(&["trust", "--show"]), @r"
    $WORK  changed since it was trusted
    Its configuration runs nothing.
    ");
    assert_eq!(world.json(&["trust", "--show"])["agent_commands"], "deny");
    // Defaults are shown as well.
    world.write(".windlass/config.yaml", "limits: {max_iterations: 3}\n");
    assert_snapshot!(world.run(&["trust", "--show"]), @r"
    $WORK  changed since it was trusted
    Its configuration runs nothing.
    It also sets limits.
    Agents may run any command that they supply (`agent_commands: allow`, the default).
    ");
    assert_eq!(world.json(&["trust", "--show"])["agent_commands"], "allow");
    world.write(".windlass/config.yaml", "agent_commands: deny\nvalidators:\n  lint: make lint\n");
    assert_snapshot!(world.run(&["config", "check"]), @r"
    ok  $WORK/.windlass/config.yaml
        hooks       none
        task types  none
        agent       none
        validators  lint (never run: `agent_commands: deny`)
    ");
}

/// Only a person at a terminal is asked, and only a yes counts.
#[test]
fn trust_is_granted_only_after_person_confirms() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: make test}]}\n");
    for (typed, code, state) in
        [("n\n", 64, "never"), ("\n", 64, "never"), ("\u{4}", 64, "never"), ("Y\n", 0, "trusted")]
    {
        world.run_ok(&["trust", "--revoke"]);
        let (shown, ended) = run_in_terminal_with_input(&mut world.command(&["trust"]), 100, typed);
        assert_eq!(
            (ended, shown.contains("Trust it? [y/N]"), shown.contains("make test")),
            (code, true, true),
            "{shown}"
        );
        assert_eq!(world.json(&["trust", "--show"])["trust"], state, "{typed:?}");
    }
}

/// A yes covers the shown content only.
#[test]
fn content_changed_during_trust_prompt_is_not_trusted() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: make test}]}\n");
    world.write(".windlass/workflows/w.json", "{}");
    let mut terminal = ControllingTerminal::open();
    let mut child = terminal.start(&mut world.command(&["trust"]));
    terminal.read_until("Trust it? [y/N]");
    world.write(".windlass/workflows/w.json", "[]");
    terminal.send_keys("y\n");
    assert_eq!(child.wait().unwrap().code(), Some(64));
    terminal.read_until("something was changed during the check");
    assert_eq!(world.json(&["trust", "--show"])["trust"], "changed");
}

/// A copy of a trusted project is another project.
#[test]
fn trust_does_not_travel() {
    let world = TestWorld::new();
    fs::create_dir_all(world.path("copy/.windlass")).unwrap();
    fs::copy(world.path(".windlass/config.yaml"), world.path("copy/.windlass/config.yaml")).unwrap();
    assert_eq!(world.json(&["trust", "--show"])["trust"], "trusted");
    assert_eq!(world.json(&["trust", "--show", "--project", "copy"])["trust"], "never");
}

#[test]
fn trust_without_state_directory_is_refused() {
    let world = TestWorld::new();
    world.run_ok(&["trust", "--revoke"]);
    let mut command = world.command(&["trust", "--yes"]);
    assert_snapshot!(world.run_command(command.env_remove("WINDLASS_STATE_DIR").env_remove("HOME")), @"
    error: there is no place to keep trust decisions in
    caused by: `WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute
    hint: set `WINDLASS_STATE_DIR` to a directory of your own
    [exit 1]
    ");
}

/// Programs that leave a mark when they are started.
fn lay_traps(world: &TestWorld) {
    let mark = world.path("started");
    let script = format!("#!/bin/sh\necho \"$0 $@\" >> '{}'\n", mark.display());
    for name in
        ["git", "sh", "bash", "cargo", "npm", "make", "pytest", "go", "claude", "codex", "gh", "curl", "touch", "less"]
    {
        let trap = world.program_directory().join(name);
        fs::write(&trap, &script).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn commands_start_no_program_of_untrusted_project() {
    let world = TestWorld::empty();
    lay_traps(&world);
    world.write("Cargo.toml", "");
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(".windlass/config.yaml", CONFIG);
    world.write(".windlass/workflows/w.json", "{}");
    world.run_ok(&["init"]);
    world.run_ok(&["trust", "--revoke"]);
    {
        for words in [
            "task add One",
            "task add Two --depends T1",
            "task list",
            "task ready",
            "task next",
            "task claim T1 --owner w",
            "task show T1",
            "task update T1 --priority 0 --epoch 1",
            "task complete T1 --epoch 1",
            "task reopen T1 --force",
            "task start T1",
            "task block T1 --reason x",
            "task unblock T1",
            "task fail T1 --reason x",
            "task graph",
            "task delete T1 --cascade",
            "status",
            "events",
            "config check",
            "trust --show",
            "doctor",
            "doctor --rebuild",
            "completions bash",
            "init",
        ] {
            let words: Vec<_> = words.split(' ').collect();
            // A refused command starts nothing either.
            world.run(&words);
        }
    }
    for words in ["task add One", "run x --agent command:true", "hooks test task_created --run"] {
        let words: Vec<_> = words.split(' ').collect();
        assert_eq!(world.run(&words).code, 64, "{words:?}");
    }
    world.run_ok(&["backup", "copy.db"]);
    world.run_ok(&["doctor", "--export", "events.jsonl"]);
    let left = |name: &str| world.path(name).exists();
    assert!(!left("stop-ran") && !left("created-ran") && !left("notified"));
    assert!(!left("started"), "{}", fs::read_to_string(world.path("started")).unwrap());
    // The control: the traps do work.
    world.run_command(&mut world.program("git"));
    assert!(left("started"));
}
