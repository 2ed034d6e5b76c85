//! `windlass config import`: imported hooks behave as in their own systems, and nothing of the configuration is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::support::TestWorld;
use crate::support::terminal;
use crate::test_run::{RUN, create_agent_project};

const CLAUDE_SETTINGS: &str = r#"{
  "permissions": {"allow": ["Bash(npm test)"]},
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.py", "timeout": 30}]}
    ],
    "PreToolUse": [
      {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./protect.sh"}]}
    ]
  }
}
"#;

/// A script for Claude Code: it reads the payload, and asks for a file.
const CLAUDE_HOOK_SCRIPT: &str = r#"#!/bin/sh
input=$(cat)
case $(printf %s "$input" | jq -r .hook_event_name) in Stop) ;; *) exit 1 ;; esac
test "$(printf %s "$input" | jq -r .stop_hook_active)" = true && exit 0
test -e "$CLAUDE_PROJECT_DIR/done" && exit 0
jq -n '{decision: "block", reason: "done is missing"}'
"#;

fn write_script(world: &TestWorld, name: &str, text: &str) {
    let path = world.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn read_config(world: &TestWorld) -> String {
    fs::read_to_string(world.path(".windlass/config.yaml")).unwrap()
}

#[test]
fn settings_of_claude_code() {
    let world = TestWorld::new();
    world.write(".claude/settings.json", CLAUDE_SETTINGS);
    world.write(".windlass/config.yaml", "# ours\nversion: 1\nhooks:\n  stop:\n    - command: ./own.sh   # first\n");
    let words = ["config", "import", ".claude/settings.json"];
    let refused = world.run(&words);
    assert!(refused.stdout.contains("- name: claude-check"), "{refused}");
    assert_snapshot!(refused.stderr, @"
    error: nothing was written
    caused by: there is no terminal to ask on
    hint: `--yes` adds it without asking, `--dry-run` only prints it
    ");
    assert_eq!(refused.code, 64);
    assert!(!read_config(&world).contains("claude"));

    assert_snapshot!(world.run(&["config", "import", ".claude/settings.json", "--yes"]), @r#"
    .claude/settings.json: hooks of Claude Code; a `timeout` there is in seconds
    to be added to $WORK/.windlass/config.yaml:

    hooks:
      stop:
        - name: claude-check
          command: '"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.py'
          timeout: 30s
      pre_tool_use:
        - name: claude-protect
          command: ./protect.sh
          matcher: 'Edit|Write'
          timeout: 600s

    note: a stop hook that exits with neither 0 nor 2 lets the agent end there; under `windlass run` it is another iteration, unless the configuration says `strict: false`

    added to $WORK/.windlass/config.yaml: 2 hooks
    They are still in .claude/settings.json, and Claude Code runs them. If you run `windlass install claude`, remove them there, or they run twice.
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    "#);
    assert_snapshot!(read_config(&world), @r#"
    # ours
    version: 1
    hooks:
      stop:
        - command: ./own.sh   # first
        - name: claude-check
          command: '"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.py'
          timeout: 30s
      pre_tool_use:
        - name: claude-protect
          command: ./protect.sh
          matcher: 'Edit|Write'
          timeout: 600s
    "#);
    let listed = world.run(&["hooks", "list", "--point", "stop"]);
    assert_snapshot!(listed, @r#"
    stop (gate)
       100  stop[0]       ./own.sh  (line 5)
       100  claude-check  "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.py  (line 6)
    "#);
    assert_eq!(world.json(&["config", "check"])["hooks"], 3);
    assert!(world.run(&["trust", "--show"]).stdout.contains("changed since it was trusted"));

    // A second time there is nothing to do.
    let before = read_config(&world);
    let again = world.run_ok(&["config", "import", ".claude/settings.json"]);
    assert!(again.ends_with("2 hooks are in the configuration already; nothing was added\n"), "{again}");
    assert_eq!(read_config(&world), before);
}

#[test]
fn imported_claude_script_blocks_stop_until_file_exists() {
    let world = TestWorld::new();
    world.write(".claude/settings.json", CLAUDE_SETTINGS);
    write_script(&world, ".claude/hooks/check.py", CLAUDE_HOOK_SCRIPT);
    world.run(&["config", "import", ".claude/settings.json", "--yes"]);
    world.run_ok(&["trust", "--yes"]);
    let tried = world.run(&["hooks", "test", "stop", "--run"]);
    assert!(tried.stdout.contains("verdict      block\n  agent told   done is missing\n"), "{tried}");
    world.write("done", "");
    let tried = world.run(&["hooks", "test", "stop", "--run"]);
    assert!(tried.stdout.contains("verdict      success"), "{tried}");
}

/// Text with our template braces stays text for the script.
#[test]
fn braces_stay_as_they_are() {
    let world = TestWorld::new();
    let command = "echo '{{session}} {{ error }}' {{task_id}} {{{iteration}} \\\"$(echo {{task_content}})\\\" >said";
    world.write(
        ".claude/settings.json",
        format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{{"type": "command", "command": "{command}"}}]}}]}}}}"#),
    );
    world.run_ok(&["config", "import", ".claude/settings.json", "--yes"]);
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["hooks", "test", "stop", "--run"]);
    let said = fs::read_to_string(world.path("said")).unwrap();
    assert_eq!(said, "{{session}} {{ error }} {{task_id}} {{{iteration}} {{task_content}}\n");
}

/// The scenario of codemie's own documents: a suite with three failures, then one, then none.
#[test]
fn codemie_sends_the_agent_back_and_ends() {
    let suite = r#"#!/bin/sh
n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n
case $n in 0) echo 'FAIL auth, db, api'; exit 2 ;; 1) echo 'FAIL api' >&2; exit 2 ;; esac
test -e broken && exit 1
echo passed"#;
    let settings = r#"{"hooks": {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "./.codemie/run-tests.sh"}]}]}, "maxHookRetries": 5}"#;
    let played =
        |settings: &str, broken: bool| {
            let world = create_agent_project("version: 1\n", "echo '<promise>COMPLETE</promise>'");
            world.write(".codemie/codemie-cli.config.json", settings);
            write_script(&world, ".codemie/run-tests.sh", suite);
            if broken {
                world.write("broken", "");
            }
            let words = ["config", "import", ".codemie/codemie-cli.config.json", "--yes"];
            let imported = world.run_ok(&words);
            assert!(imported.starts_with(
                ".codemie/codemie-cli.config.json: hooks of codemie; a `timeout` there is in milliseconds\n"
            ));
            world.run_ok(&["trust", "--yes"]);
            let ran = world.run(RUN);
            (world, ran)
        };
    let prompt = |world: &TestWorld, turn: u32| fs::read_to_string(world.path(&format!("prompt.{turn}"))).unwrap();

    let (world, ran) = played(settings, false);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(prompt(&world, 2).contains("FAIL auth, db, api") && prompt(&world, 3).contains("FAIL api"));
    assert!(!world.path("prompt.4").exists());
    assert_eq!(fs::read_to_string(world.path("n")).unwrap().trim(), "3");

    // An exit code other than 2 does not block.
    let (_, ran) = played(settings, true);
    assert_eq!(ran.code, 0, "{ran}");

    // At the limit the work is complete, with a warning.
    let (world, ran) = played(&settings.replace('5', "1"), false);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(fs::read_to_string(world.path("n")).unwrap().trim(), "2");
    assert!(ran.stdout.contains("[Warning: hook retry limit reached after 1 retry: FAIL api."), "{ran}");
}

#[test]
fn hooks_of_a_registry() {
    let world = TestWorld::new();
    let hooks = r#"{
  "version": "1.0",
  "hooks": [
    {"name": "auto-create-review-task", "enabled": true, "priority": 10, "eventTypes": ["task_completed"]},
    {"name": "check-dependency-satisfaction", "enabled": true, "priority": 20, "eventTypes": ["task_completed"]},
    {"name": "track-agent-task-lifecycle", "enabled": true, "priority": 50, "eventTypes": ["task_created", "task_started", "task_completed"]}
  ]
}"#;
    world.write("data/automation-hooks.json", hooks);
    let words = ["config", "import", "data/automation-hooks.json", "--yes"];
    assert_snapshot!(world.run(&words), @r#"
    data/automation-hooks.json: automation hooks
    to be added to $WORK/.windlass/config.yaml:

    hooks:
      task_completed:
        - use: auto-create-review-task
          priority: 10
          enabled: true
        - use: check-dependency-satisfaction
          priority: 20
          enabled: true
      task_created:
        - use: track-agent-task-lifecycle
          priority: 50
          enabled: true

    added to $WORK/.windlass/config.yaml: 3 hooks
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    "#);
    world.run_ok(&["trust", "--yes"]);
    // The work of its three hooks is done.
    world.run_ok(&["task", "add", "Research", "--label", "agent"]);
    world.run_ok(&["task", "add", "Write", "--depends", "T1"]);
    world.run_ok(&["task", "start", "T1"]);
    world.run_ok(&["task", "complete", "T1"]);
    let tasks = world.run_ok(&["task", "list", "--all"]);
    assert!(tasks.contains("Review: Research") && tasks.contains("T2  ready"), "{tasks}");
    assert!(world.run_ok(&["events"]).contains("agent_metrics"));

    // One that is switched off there is off here.
    let world = TestWorld::new();
    world.write("automation-hooks.json", hooks.replacen("true", "false", 1));
    world.run_ok(&["config", "import", "automation-hooks.json", "--yes"]);
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "Research", "--label", "agent"]);
    world.run_ok(&["task", "complete", "T1"]);
    assert!(!world.run_ok(&["task", "list", "--all"]).contains("Review"));
    let again = world.run_ok(&["config", "import", "automation-hooks.json"]);
    assert!(again.contains("3 hooks are in the configuration already"), "{again}");
}

/// Such a file says when configured hooks run; it has no hooks of its own.
#[test]
fn hooks_of_the_configuration_are_set_up_by_name() {
    let world = TestWorld::new();
    world.write(
        ".windlass/config.yaml",
        "# ours
hooks:
  task_completed:
    - name: announce   # loudly
      command: echo announced >>said
    - {name: count, command: 'echo counted >>said', priority: 7}
    - {use: auto-create-review-task, enabled: false}
  task_created:
    - {name: greet, command: 'echo hello >>said'}
    - {name: same, command: 'true', events: [task_started], priority: 3}
",
    );
    world.write(
        "automation-hooks.json",
        r#"{"version": "1.0", "hooks": [
  {"name": "announce", "enabled": true, "priority": 200, "eventTypes": ["task_failed", "task_completed"]},
  {"name": "count", "enabled": true, "priority": 100, "eventTypes": ["task_completed"]},
  {"name": "greet", "enabled": true, "priority": 100, "eventTypes": ["task_started"]},
  {"name": "same", "enabled": true, "priority": 3, "eventTypes": ["task_started", "task_created"]},
  {"name": "auto-create-review-task", "enabled": true, "priority": 10, "eventTypes": ["task_completed"]},
  {"name": "anounce", "enabled": true, "priority": 1, "eventTypes": ["task_completed"]}
]}"#,
    );
    assert_snapshot!(world.run(&["config", "import", "automation-hooks.json", "--yes"]), @r#"
    automation-hooks.json: automation hooks
    to be changed in $WORK/.windlass/config.yaml:
      auto-create-review-task (line 7): `enabled: true`, `priority: 10`
      announce (line 4): `priority: 200`
      count (line 6): `priority: 100`

    left out:
      line 7: `anounce`: neither the configuration nor Windlass has a hook with this name (there is `announce`), and what it does is not in the file; write it as a `command` with this `name` at its events

    note: line 2: `announce` runs at the points of the configuration; `eventTypes` has no effect
    note: line 3: `count` runs at the points of the configuration; `eventTypes` has no effect
    note: line 4: `greet` runs at the points of the configuration; `eventTypes` has no effect
    note: line 5: `same` runs at the points of the configuration; `eventTypes` has no effect

    changed in $WORK/.windlass/config.yaml: 3 hooks
    Nothing of the configuration runs until you trust it again: `windlass trust`.
    "#);
    assert_snapshot!(read_config(&world), @r#"
    # ours
    hooks:
      task_completed:
        - name: announce   # loudly
          priority: 200
          command: echo announced >>said
        - {name: count, command: 'echo counted >>said', priority: 100}
        - {use: auto-create-review-task, priority: 10}
      task_created:
        - {name: greet, command: 'echo hello >>said'}
        - {name: same, command: 'true', events: [task_started], priority: 3}
    "#);
    let again = world.run(&["config", "import", "automation-hooks.json"]);
    assert!(again.stdout.contains("nothing was added"), "{again}");
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["task", "add", "Research", "--label", "agent"]);
    world.run_ok(&["task", "start", "T1"]);
    world.run_ok(&["task", "complete", "T1"]);
    assert_eq!(world.read_file("said"), "hello\ncounted\nannounced\nhello\n");
    assert!(world.run_ok(&["task", "list", "--all"]).contains("Review: Research"));
}

#[test]
fn import_reports_dry_run_changes_and_refuses_aliased_hook() {
    let world = TestWorld::new();
    let text = "hooks:\n  stop: &both\n    - {name: one, command: ./a.sh}\n";
    world.write(".windlass/config.yaml", text);
    let hooks = |fields: &str| format!(r#"{{"hooks": [{{"name": "one", {fields}}}]}}"#);
    world.write("automation-hooks.json", hooks(r#""priority": 5, "eventTypes": ["stop", "sotp"]"#));
    let printed = world.run(&["config", "import", "automation-hooks.json", "--dry-run"]);
    assert_snapshot!(printed.stderr, @r#"
    note: automation-hooks.json: automation hooks
    note: line 1: `one` runs at the points of the configuration; `eventTypes` has no effect
    note: line 1: would be changed: one (line 3): `priority: 5`
    "#);
    assert_eq!((printed.code, printed.stdout.as_str(), read_config(&world).as_str()), (0, "", text));
    let seen = world.json(&["config", "import", "automation-hooks.json", "--dry-run"]);
    assert_eq!(seen["changed"], serde_json::json!([{"name": "one", "line": 1, "at": 3, "priority": 5}]), "{seen}");
    // A hook that is in two places is not changed in one of them.
    let shared = "hooks:\n  stop:\n    - &one {command: ./a.sh, priority: 1}\n    - *one\n";
    world.write(".windlass/config.yaml", shared);
    world.write("automation-hooks.json", hooks(r#""priority": 5"#).replace("one", "stop[0]"));
    let ran = world.run(&["config", "import", "automation-hooks.json", "--yes"]);
    assert!(ran.code == 64 && ran.stderr.contains("such as an anchor that repeats it"), "{ran}");
    assert_eq!(read_config(&world), shared);
}

#[test]
fn printed_and_for_programs() {
    let world = TestWorld::empty();
    world.write(".gemini/settings.json", r#"{"hooks": {"AfterAgent": [{"hooks": [{"type": "command", "command": "./x.sh", "timeout": 500}]}], "AfterModel": [{"hooks": []}]}} // mine"#);
    // Without a project it is only shown.
    let printed = world.run(&["config", "import", ".gemini/settings.json", "--print"]);
    assert_eq!(printed.code, 0, "{printed}");
    assert_snapshot!(printed.stdout, @r#"
    hooks:
      stop:
        - name: gemini-x
          command: ./x.sh
          timeout: 500ms
    "#);
    assert_snapshot!(printed.stderr, @r#"
    note: .gemini/settings.json: hooks of Gemini CLI; a `timeout` there is in milliseconds
    warning: left out: line 1: AfterModel: Windlass has no point for this event
    note: a stop hook that exits with neither 0 nor 2 lets the agent end there; under `windlass run` it is another iteration, unless the configuration says `strict: false`
    note: Gemini CLI treats every exit code from 2 on as a block; here only 2 blocks
    "#);
    assert_snapshot!(world.expect_failure(&["config", "import", ".gemini/settings.json"]), @r#"
    error: there is no project here
    caused by: `$WORK` and its parents have no `.windlass` directory
    hint: `windlass init` makes one here
    [64 no_project]
    "#);
    world.run_ok(&["init"]);
    let seen = world.json(&["config", "import", ".gemini/settings.json", "--dry-run"]);
    assert_eq!(
        (&seen["written"], &seen["from"], &seen["unit"]),
        (&false.into(), &"gemini".into(), &"milliseconds".into())
    );
    assert_eq!(seen["added"][0]["timeout"], 0.5, "{seen}");
    assert_eq!(seen["leftOut"][0]["line"], 1, "{seen}");
    let done = world.json(&["config", "import", ".gemini/settings.json", "--yes"]);
    assert_eq!((&done["written"], &done["added"][0]["name"]), (&true.into(), &"gemini-x".into()));
    let again = world.json(&["config", "import", ".gemini/settings.json", "--yes"]);
    assert_eq!((&again["written"], &again["present"][0]["point"]), (&false.into(), &"stop".into()));
    let refused = world.run(&["--json", "config", "import", ".gemini/settings.json", "--from", "claude"]);
    assert!(refused.code == 0 && refused.stdout.contains("no point for this event"), "{refused}");
}

#[test]
fn import_writes_hooks_only_after_person_confirms() {
    let world = TestWorld::new();
    world.write(".claude/settings.json", CLAUDE_SETTINGS);
    for (answer, code, written) in [("n", 64, false), ("", 64, false), ("y", 0, true)] {
        let mut command = world.command(&["config", "import", ".claude/settings.json"]);
        let (shown, ended) = terminal::run_in_terminal_with_input(&mut command, 100, &format!("{answer}\n"));
        assert!(shown.contains("- name: claude-check") && shown.contains("Add it? [y/N]"), "{shown}");
        assert_eq!(ended, code, "{answer}");
        assert_eq!(read_config(&world).contains("claude-check"), written, "{answer}");
    }
}

#[test]
fn import_refuses_uneditable_config_and_leaves_it_unchanged() {
    let world = TestWorld::new();
    world.write(".claude/settings.json", CLAUDE_SETTINGS);
    for text in ["{version: 1}\n", "hooks: {stop: [{command: x}]}\n"] {
        world.write(".windlass/config.yaml", text);
        let ran = world.run(&["config", "import", ".claude/settings.json", "--yes"]);
        assert!(ran.code == 64 && ran.stdout.contains("- name: claude-check"), "{ran}");
        assert!(ran.stderr.contains("add the lines above by hand; nothing was written"), "{ran}");
        assert_eq!(read_config(&world), text);
    }
    // An entry is not added to an invalid one either.
    world.write(".windlass/config.yaml", "hook: {}\n");
    let ran = world.run(&["config", "import", ".claude/settings.json", "--yes"]);
    assert!(ran.code == 64 && ran.stderr.contains("unknown key `hook`"), "{ran}");
    assert_eq!(read_config(&world), "hook: {}\n");
}

#[test]
fn files_that_are_no_hooks() {
    let world = TestWorld::new();
    let before = read_config(&world);
    let said = |name: &str, bytes: &[u8]| {
        world.write(name, bytes);
        let said = world.expect_failure(&["config", "import", name, "--yes"]);
        assert_eq!(read_config(&world), before);
        said
    };
    assert_snapshot!(said("a.json", b"hooks:\n  Stop: []\n"), @r#"
    error: cannot read JSON: unexpected word
     --> $WORK/a.json:1:1
      |
    1 | hooks:
      | ^^^^^
    hint: comments, and commas before a closing bracket, are fine
    [64 config]
    "#);
    assert_snapshot!(said("b.json", b"{\"hooks\": {\"Stop\": [], \"Stop\": []}}"), @r#"
    error: the key `Stop` is given twice
     --> $WORK/b.json:1:24
      |
    1 | {"hooks": {"Stop": [], "Stop": []}}
      |                        ^^^^^^
    hint: the first one is on line 1; keep one of them
    [64 config]
    "#);
    assert_snapshot!(said("c.json", b"{\"hooks\": {\"Stop\": [{\"hooks\": [\n  {\"type\": \"command\", \"command\": \"x\", \"timeout\": \"30\"}]}]}}"), @r#"
    error: `timeout`: expected a number, found the text `30`
     --> $WORK/c.json:2:50
      |
    2 |   {"type": "command", "command": "x", "timeout": "30"}]}]}}
      |                                                  ^^^^
    [64 config]
    "#);
    assert_snapshot!(said("d.json", b"{\"name\": \"shop\"}"), @r#"
    error: $WORK/d.json: there are no `hooks` in this file
    hint: name the agent: `--from claude`, `codemie`, `codex`, `gemini`, `qwen` or `automation`
    [64 config]
    "#);
    assert_snapshot!(said("e.json", b"{\"hooks\": \"\xff\"}"), @r#"
    error: not UTF-8 text: byte 0xff at offset 11
     --> $WORK/e.json:1:12
      |
    1 | {"hooks": "�"}
      |            ^
    hint: save the file as UTF-8
    [64 config]
    "#);
    assert_snapshot!(said("config.toml", b"[hooks]\n"), @r#"
    error: $WORK/config.toml: hooks are read from JSON, and this is TOML
    hint: Codex also reads `hooks.json` beside its `config.toml`; write them there, or write the hooks by hand
    [64 config]
    "#);
    assert!(said("f.json", b"").contains("there is nothing in this file"));
    let large = fs::File::create(world.path("large.json")).unwrap();
    large.set_len(100 * 1024 * 1024).unwrap();
    assert_snapshot!(world.expect_failure(&["config", "import", "large.json", "--yes"]), @r#"
    error: $WORK/large.json: is larger than 1 MiB
    hint: a configuration is text that a person can read
    [64 config]
    "#);
    fs::create_dir(world.path("folder.json")).unwrap();
    assert_snapshot!(world.expect_failure(&["config", "import", "folder.json", "--yes"]), @r#"
    error: $WORK/folder.json: is a directory, not a file
    hint: name a file, or put one in its place
    [64 config]
    "#);
    assert_snapshot!(world.expect_failure(&["config", "import", "missing.json", "--yes"]), @r#"
    error: $WORK/missing.json: there is no such file
    [64 config]
    "#);
    assert_snapshot!(world.expect_failure(&["config", "import", "a.json", "--from", "emacs"]), @"
    error: invalid value 'emacs' for '--from <SYSTEM>' [possible values: claude, codemie, codex, gemini, qwen, automation]
    hint: `windlass config import --help` shows how it is used
    [64 usage]
    ");
    assert_eq!(read_config(&world), before);
}

/// Text of the file is shown, and cleaned for the terminal.
#[test]
fn hostile_text_is_shown_as_text() {
    let world = TestWorld::new();
    let command = "echo \\u001b[2Jx\\u202e; touch pwned";
    world.write(".claude/settings.json", format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{{"type": "command", "command": "{command}"}}]}}], "\u001b[31m": [1]}}}}"#));
    for words in [&["--dry-run"][..], &["--yes"]] {
        let ran = world.run(&[&["config", "import", ".claude/settings.json"], words].concat());
        assert!(ran.code == 0 && !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran}");
        assert!(!ran.stdout.contains('\u{202e}'), "{ran}");
    }
    assert!(!world.path("pwned").exists());
    assert_eq!(world.json(&["config", "check"])["points"]["stop"], 1);
}
