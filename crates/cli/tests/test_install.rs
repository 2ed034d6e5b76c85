//! `windlass install` and `windlass uninstall`: the entries in agents' settings, and that they go without a trace

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::terminal::{ControllingTerminal, run_in_terminal_with_input};
use crate::support::{TestWorld, WINDLASS};

/// Each agent, a scope that it has, and the file of its hooks.
const AGENTS: &[(&str, &str, &str)] = &[
    ("claude", "project", ".claude/settings.json"),
    ("claude", "user", ".claude/settings.json"),
    ("codex", "project", ".codex/hooks.json"),
    ("codex", "user", ".codex/hooks.json"),
    ("gemini", "project", ".gemini/settings.json"),
    ("gemini", "user", ".gemini/settings.json"),
    ("qwen", "project", ".qwen/settings.json"),
    ("qwen", "user", ".qwen/settings.json"),
    ("copilot", "project", ".github/hooks/windlass.json"),
    ("copilot", "user", ".copilot/hooks/windlass.json"),
    ("goose", "project", ".agents/plugins/windlass/hooks/hooks.json"),
    ("goose", "user", ".agents/plugins/windlass/hooks/hooks.json"),
    ("kimi", "user", ".kimi-code/config.toml"),
    ("cursor", "project", ".cursor/hooks.json"),
    ("cursor", "user", ".cursor/hooks.json"),
];

/// Settings as people leave them.
const COMMENTED_SETTINGS: &str = r#"// mine
{"model": "x",   /* the small one */
    "hooks": { "Stop" : [
        {"hooks": [{"type": "command", "command": "make test"}]}, // never remove
    ], "unknown": 7 }, "last": [ ]  }
"#;

fn create_project() -> TestWorld {
    let world = TestWorld::new();
    symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    world
}

impl TestWorld {
    fn home_directory(&self) -> PathBuf {
        self.directory.with_file_name("home")
    }

    fn scope_directory(&self, scope: &str) -> PathBuf {
        if scope == "user" { self.home_directory() } else { self.directory.clone() }
    }
}

/// Every file and directory below, with its content and its permissions.
fn directory_snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if metadata.is_dir() && !path.ends_with(".windlass") {
                open.push(path.clone());
            }
            found.insert(path, (metadata.permissions().mode(), content));
        }
    }
    found
}

#[test]
fn claude_install_writes_settings_and_uninstall_deletes_them() {
    let world = create_project();
    let shown = world.run(&["install", "claude"]).to_string();
    let shown: Vec<_> = shown.lines().collect();
    assert_snapshot!(shown[..16].join("\n"), @r#"
    Claude Code will call `windlass`: the one on the PATH is this program

    $WORK/.claude/settings.json  new file
    + {
    +   "hooks": {
    +     "SessionStart": [
    +       {
    +         "hooks": [
    +           {
    +             "type": "command",
    +             "command": "windlass hook session_start --as claude --within 590s",
    +             "timeout": 600
    +           }
    +         ]
    +       }
    +     ],
    "#);
    assert_snapshot!(shown[shown.len() - 7..].join("\n"), @"
    +   }
    + }

    error: nothing was written
    caused by: there is no terminal to ask on
    hint: --yes writes without asking, and --dry-run only shows
    [exit 64]
    ");
    assert!(!world.path(".claude").exists());
    let mut report = world.json(&["install", "claude", "--yes"]);
    let text = fs::read_to_string(world.path(".claude/settings.json")).unwrap();
    let lines = |sign: char| text.lines().map(|line| format!("{sign} {line}")).collect::<Value>();
    assert_eq!(report["files"][0]["diff"].take(), lines('+'));
    assert_snapshot!(report.to_string().replace(&*world.directory.to_string_lossy(), "$WORK"), @r#"{"agent":"claude","files":[{"change":"created","diff":null,"path":"$WORK/.claude/settings.json"}],"moments":["session_start","user_prompt_submit","pre_tool_use","post_tool_use","stop","subagent_stop","notification","pre_compact","session_end"],"next":["restart Claude Code: it reads its settings when it starts"],"program":"windlass","scope":"project","why":"the one on the PATH is this program","written":true}"#);
    assert_snapshot!(world.run(&["install", "claude"]), @"Claude Code is set up already. Nothing was changed.");
    assert_snapshot!(world.run(&["install", "claude", "--mcp", "--dry-run"]), @r#"
    Claude Code will call `windlass`: the one on the PATH is this program

    $WORK/.mcp.json  new file
    + {
    +   "mcpServers": {
    +     "windlass": {
    +       "command": "windlass",
    +       "args": ["mcp"]
    +     }
    +   }
    + }

    Nothing was written: this is a preview.
    "#);
    assert_snapshot!(world.run(&["doctor"]), @"
    ok     configuration  0 hooks that run something; trust: trusted
    ok     store          0 events
    ok     agents         none found
    ok     bridge         installed for claude (project)
    ");
    let mut report = world.json(&["uninstall", "claude", "--dry-run"]);
    assert_eq!(report["files"][0]["diff"].take(), lines('-'));
    assert_snapshot!(report.to_string().replace(&*world.directory.to_string_lossy(), "$WORK"), @r#"{"agent":"claude","files":[{"change":"deleted","diff":null,"path":"$WORK/.claude/settings.json"},{"change":"unchanged","diff":[],"path":"$WORK/.mcp.json"}],"scope":"project","written":false}"#);
    world.run_ok(&["uninstall", "claude", "--yes"]);
    assert!(!world.path(".claude").exists());
    assert_snapshot!(world.run(&["uninstall", "claude"]), @"Claude Code has no Windlass entries in its settings. Nothing was changed.");
}

/// The remaining steps for a person differ from agent to agent.
#[test]
fn install_reports_remaining_steps_for_each_agent() {
    let (world, other) = (create_project(), create_project());
    let said = |agent: &str, scope: &str| {
        let world = if scope == "user" { &other } else { &world };
        let report = world.json(&["install", agent, "--scope", scope, "--yes"]);
        let steps: Vec<_> = report["next"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
        format!("{agent}, {scope}: {}", steps.join("; "))
    };
    let all: Vec<_> = AGENTS.iter().map(|(agent, scope, _)| said(agent, scope)).collect();
    assert_snapshot!(all.join("\n"), @"
    claude, project: restart Claude Code: it reads its settings when it starts
    claude, user: restart Claude Code: it reads its settings when it starts
    codex, project: Codex runs no hook that you have not approved: `/hooks` in Codex shows them; let Codex trust this folder: it asks when it is started here; restart Codex: it reads its settings when it starts
    codex, user: Codex runs no hook that you have not approved: `/hooks` in Codex shows them; restart Codex: it reads its settings when it starts
    gemini, project: let Gemini CLI trust this folder: it ignores the hooks of other folders without a message; restart Gemini CLI: it reads its settings when it starts
    gemini, user: restart Gemini CLI: it reads its settings when it starts
    qwen, project: restart Qwen Code: it reads its settings when it starts
    qwen, user: restart Qwen Code: it reads its settings when it starts
    copilot, project: let GitHub Copilot CLI trust this folder: it ignores the hooks of other folders without a message; Copilot reads the hooks of Claude Code too: it calls twice here, and is answered once; restart GitHub Copilot CLI: it reads its settings when it starts
    copilot, user: restart GitHub Copilot CLI: it reads its settings when it starts
    goose, project: restart goose: it reads its settings when it starts
    goose, user: restart goose: it reads its settings when it starts
    kimi, user: restart Kimi Code: it reads its settings when it starts
    cursor, project: let Cursor trust this folder: it ignores the hooks of other folders without a message; restart Cursor: it reads its settings when it starts
    cursor, user: restart Cursor: it reads its settings when it starts
    ");
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: make test}]}\n");
    assert_snapshot!(said("claude", "project"), @"claude, project: its hooks are not trusted: `windlass trust` shows what would run; Copilot reads the hooks of Claude Code too: it calls twice here, and is answered once");
    let report = other.json(&["install", "gemini", "--scope", "user", "--mcp", "--yes"]);
    assert_eq!(
        report["next"][0],
        "where there is no project, the MCP server ends at once, and Gemini CLI may show it as failed"
    );
}

/// With both scopes an agent would call twice each time.
#[test]
fn one_scope_is_enough() {
    let world = create_project();
    world.run_ok(&["install", "codex", "--yes"]);
    assert_snapshot!(world.run(&["install", "codex", "--scope", "user", "--yes"]), @"
    error: Codex calls Windlass already, by `$WORK/.codex/hooks.json`
    caused by: with both, it would call twice at every event
    hint: `windlass uninstall codex --scope project` removes that
    [exit 64]
    ");
    assert!(!world.home_directory().join(".codex").exists());
    world.run_ok(&["install", "codex", "--yes"]);
    world.run_ok(&["uninstall", "codex", "--yes"]);
    // The entries of any author, in any form.
    let file = world.home_directory().join(".codex/hooks.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let by_hand = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "windlass hook stop --as codex --project /x"}]}]}}"#;
    fs::write(&file, by_hand).unwrap();
    let refused = world.run(&["install", "codex", "--yes"]);
    assert!(refused.code == 64 && refused.stderr.contains("--scope user"), "{refused}");
    world.run_ok(&["install", "codex", "--scope", "user", "--yes"]);
    // An MCP server alone makes no calls.
    fs::create_dir_all(world.home_directory().join(".gemini")).unwrap();
    let server = r#"{"mcpServers": {"windlass": {"command": "windlass", "args": ["mcp"]}}}"#;
    fs::write(world.home_directory().join(".gemini/settings.json"), server).unwrap();
    world.run_ok(&["install", "gemini", "--yes"]);
}

#[test]
fn every_agent_comes_and_goes() {
    for (agent, scope, file) in AGENTS {
        let world = create_project();
        let before = directory_snapshot(world.directory.parent().unwrap());
        let words = |verb| vec![verb, *agent, "--scope", *scope, "--yes", "--mcp"];
        world.run_ok(&words("install"));
        let path = world.scope_directory(scope).join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("windlass hook stop --as {agent} --within ")), "{text}");
        let mut installed = directory_snapshot(world.directory.parent().unwrap());
        world.run_ok(&words("install"));
        assert_eq!(directory_snapshot(world.directory.parent().unwrap()), installed, "{agent}: twice is not once");

        world.run_ok(&words("uninstall")[..5]);
        installed = directory_snapshot(world.directory.parent().unwrap());
        installed.retain(|path, _| !path.ends_with("state/settings"));
        assert_eq!(installed, before, "{agent} in {scope} leaves something behind");
    }
}

#[test]
fn existing_settings_survive_install_and_uninstall() {
    for (agent, scope, file) in AGENTS {
        let world = create_project();
        let path = world.scope_directory(scope).join(file);
        let messy = if *agent == "kimi" {
            "a = 1 # mine\n\n[[hooks]]\nevent = 'Stop'\ncommand = 'make test'"
        } else {
            COMMENTED_SETTINGS
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, messy).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let before = directory_snapshot(&world.scope_directory(scope));
        world.run_ok(&["install", agent, "--scope", scope, "--yes"]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("mine") && text.contains("make test") && text.contains("windlass hook stop"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        world.run_ok(&["uninstall", agent, "--scope", scope, "--yes"]);
        assert_eq!(directory_snapshot(&world.scope_directory(scope)), before, "{agent}");

        // Another program edits the file in between, or the record is lost.
        for lose in [false, true] {
            world.run_ok(&["install", agent, "--scope", scope, "--yes"]);
            let edited = fs::read_to_string(&path).unwrap().replace("mine", "ours");
            fs::write(&path, edited).unwrap();
            if lose {
                fs::remove_dir_all(world.directory.with_file_name("state")).unwrap();
            }
            world.run_ok(&["uninstall", agent, "--scope", scope, "--yes"]);
            let kept = fs::read_to_string(&path).unwrap();
            assert!(!kept.contains("windlass hook"), "{kept}");
            // The version of the format stays: hooks of others need it.
            let plain = |text: &str| text.split_whitespace().collect::<String>().replace(",\"version\":1", "");
            assert_eq!(plain(&kept), plain(&messy.replace("mine", "ours")), "{agent}, {lose}");
            fs::write(&path, messy).unwrap();
        }
    }
}

/// An installation after an edit does not make the edit part of the uninstallation.
#[test]
fn edit_between_two_installs_survives_uninstall() {
    let world = create_project();
    let file = world.write(".claude/settings.json", "{\"model\": \"x\"}\n");
    world.run_ok(&["install", "claude", "--yes"]);
    let edited = fs::read_to_string(&file).unwrap().replace("\"x\"", "\"y\"");
    fs::write(&file, edited).unwrap();
    // From another place, so that there is something to write.
    let copy = world.path("copy of windlass");
    fs::copy(WINDLASS, &copy).unwrap();
    let mut again = world.program(&copy);
    let ran = world.run_command(again.args(["install", "claude", "--yes"]));
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("is another one"), "{ran}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("'") && text.contains("copy of windlass' hook stop --as claude"), "{text}");
    world.run_ok(&["uninstall", "claude", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  \"model\": \"y\"\n}\n");
}

#[test]
fn install_writes_settings_only_after_person_confirms() {
    let world = create_project();
    for (typed, code, hooks, server) in [
        ("n\nn\n", 64, false, false),
        ("\n\u{4}", 64, false, false),
        ("n\ny\n", 0, true, false),
        ("y\nYES\n", 0, true, true),
    ] {
        let (shown, ended) = run_in_terminal_with_input(&mut world.command(&["install", "claude"]), 100, typed);
        assert_eq!(ended, code, "{shown}");
        assert_eq!(world.path(".claude/settings.json").exists(), hooks, "{shown}");
        assert_eq!(world.path(".mcp.json").exists(), server, "{shown}");
        assert!(shown.contains("MCP server") && shown.contains("Write it? [y/N]"), "{shown}");
        assert!(shown.contains("\u{1b}[32m+ "), "additions are green\n{shown}");
        world.run_ok(&["uninstall", "claude", "--yes"]);
    }
    world.run_ok(&["install", "claude", "--yes"]);
    let (shown, ended) = run_in_terminal_with_input(&mut world.command(&["uninstall", "claude"]), 100, "y\n");
    assert!(ended == 0 && !world.path(".claude").exists(), "{shown}");
}

/// A yes covers the shown change only.
#[test]
fn install_refuses_to_overwrite_settings_changed_during_prompt() {
    let world = create_project();
    let settings = world.write(".claude/settings.json", COMMENTED_SETTINGS);
    let mut terminal = ControllingTerminal::open();
    let mut child = terminal.start(&mut world.command(&["install", "claude", "--mcp"]));
    terminal.read_until("Write it? [y/N]");
    fs::write(&settings, "{\"mine\": 1}\n").unwrap();
    terminal.send_keys("y\n");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    terminal.read_until("another program has changed it in the meantime");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{\"mine\": 1}\n");
    assert!(!world.path(".mcp.json").exists());
}

#[test]
fn install_without_project_is_refused_except_for_user_scope() {
    let world = TestWorld::empty();
    assert_snapshot!(world.expect_failure(&["install", "gemini"]), @"
    error: there is no project here
    caused by: `$WORK` and its parents have no `.windlass` directory
    hint: `windlass init` makes one here, and `windlass install gemini --scope user` is for all projects
    [64 no_project]
    ");
    let ran = world.run(&["install", "gemini", "--scope", "user", "--yes"]);
    assert!(ran.code == 0 && world.home_directory().join(".gemini/settings.json").exists(), "{ran}");
    assert_snapshot!(TestWorld::new().expect_failure(&["install", "kimi"]), @"
    error: Kimi Code has no project settings
    caused by: it reads hooks only from user settings
    hint: `windlass install kimi --scope user` is for all projects
    [64 usage]
    ");
    assert_snapshot!(TestWorld::new().expect_failure(&["install", "cluade"]), @"
    error: invalid value 'cluade' for '<AGENT>' [possible values: claude, codex, gemini, qwen, copilot, goose, kimi, cursor]
    hint: did you mean `claude`? `windlass install --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn directories_that_agents_take_from_variables() {
    let world = create_project();
    for (agent, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("copilot", "COPILOT_HOME", "hooks/windlass.json"),
        ("kimi", "KIMI_CODE_HOME", "config.toml"),
    ] {
        let place = world.path(&format!("of {agent}"));
        let ran = world
            .run_with_variable((variable, place.to_str().unwrap()), &["install", agent, "--scope", "user", "--yes"]);
        assert!(ran.code == 0 && place.join(file).exists(), "{ran}");
    }
    assert_eq!(directory_snapshot(&world.home_directory()), BTreeMap::new());
}

/// The message for settings that cannot be used. Nothing is written then.
fn install_refusal(prepare: &dyn Fn(&TestWorld)) -> String {
    let world = create_project();
    prepare(&world);
    let before = directory_snapshot(&world.directory);
    let said = world.expect_failure(&["install", "gemini", "--yes", "--mcp"]);
    assert_eq!(directory_snapshot(&world.directory), before);
    said.replace(&*world.home_directory().to_string_lossy(), "$HOME")
}

#[test]
fn settings_that_cannot_be_understood() {
    let with = |text: &'static str| move |world: &TestWorld| drop(world.write(".gemini/settings.json", text));
    assert_snapshot!(install_refusal(&with("{\n  \"a\": 1\n  \"b\": 2\n}\n")), @"
    error: cannot edit `$WORK/.gemini/settings.json`
    caused by: line 2, column 9: Expected comma
    hint: nothing was written; repair the file, and try again
    [1 refused]
    ");
    assert_snapshot!(install_refusal(&with("{\"hooks\": \"none\"}")), @"
    error: cannot edit `$WORK/.gemini/settings.json`
    caused by: `hooks` is not an object
    hint: nothing was written; repair the file, and try again
    [1 refused]
    ");
    assert_snapshot!(install_refusal(&with("{\"hooks\": {\"AfterAgent\": {}}}")), @"
    error: cannot edit `$WORK/.gemini/settings.json`
    caused by: `hooks.AfterAgent` is not a list
    hint: nothing was written; repair the file, and try again
    [1 refused]
    ");
    assert_snapshot!(install_refusal(&with("{\"mcpServers\": {\"windlass\": {\"command\": \"other\"}}}")), @"
    error: cannot edit `$WORK/.gemini/settings.json`
    caused by: the MCP server `windlass` exists already, and runs another command
    hint: nothing was written; remove that entry, or leave out --mcp
    [1 refused]
    ");
    assert_snapshot!(install_refusal(&|world| drop(world.write(".gemini/settings.json", b"\xff\xfe"))), @"
    error: cannot read `$WORK/.gemini/settings.json`
    caused by: it is not UTF-8 text
    hint: nothing was written; check the path, and try again
    [1 system]
    ");
}

#[test]
fn settings_that_cannot_be_used() {
    assert_snapshot!(install_refusal(&|world| fs::create_dir_all(world.path(".gemini/settings.json")).unwrap()), @"
    error: cannot read `$WORK/.gemini/settings.json`
    caused by: it is a directory, not a file: name a file, or put one in its place
    hint: nothing was written; check the path, and try again
    [1 system]
    ");
    assert_snapshot!(install_refusal(&|world| drop(world.write(".gemini", "a file"))), @"
    error: cannot use `$WORK/.gemini/settings.json`
    caused by: `$WORK/.gemini` is not a directory
    hint: nothing was written; repair or remove what is in its place
    [1 system]
    ");
    assert_snapshot!(install_refusal(&|world| {
        let file = world.write(".gemini/settings.json", "{}");
        fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
    }), @"
    error: cannot write `$WORK/.gemini/settings.json`
    caused by: it is read-only
    hint: nothing was written; make `$WORK/.gemini/settings.json` writable, and try again
    [1 system]
    ");
    assert_snapshot!(install_refusal(&|world| {
        fs::write(world.home_directory().join("precious.json"), "{}").unwrap();
        fs::create_dir(world.path(".gemini")).unwrap();
        symlink(world.home_directory().join("precious.json"), world.path(".gemini/settings.json")).unwrap();
    }), @"
    error: cannot use `$WORK/.gemini/settings.json`
    caused by: it leads out of the project, to `$HOME/precious.json`
    hint: make it a file inside of `$WORK`, or use `--scope user`
    [1 refused]
    ");
    assert_snapshot!(install_refusal(&|world| symlink(world.home_directory(), world.path(".gemini")).unwrap()), @"
    error: cannot use `$WORK/.gemini/settings.json`
    caused by: it leads out of the project, to `$HOME/settings.json`
    hint: make it a file inside of `$WORK`, or use `--scope user`
    [1 refused]
    ");
    assert_snapshot!(install_refusal(&|world| {
        fs::create_dir(world.path(".gemini")).unwrap();
        symlink("nowhere", world.path(".gemini/settings.json")).unwrap();
    }), @"
    error: cannot use `$WORK/.gemini/settings.json`
    caused by: it is a link that leads nowhere
    hint: nothing was written; repair or remove what is in its place
    [1 system]
    ");
}

/// If the second file cannot be written, the first one is not either.
#[test]
fn all_files_or_none() {
    let world = create_project();
    let file = world.write(".codex/config.toml", "model = 'x'\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let before = directory_snapshot(&world.directory);
    let ran = world.run(&["install", "codex", "--mcp", "--yes"]);
    assert!(ran.code == 1 && ran.stderr.contains("it is read-only"), "{ran}");
    assert_eq!(directory_snapshot(&world.directory), before);
}

/// A link to settings that are kept elsewhere stays.
#[test]
fn linked_settings_file_is_edited_at_its_target() {
    let world = create_project();
    let kept = world.home_directory().join("dotfiles/settings.json");
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::create_dir(world.home_directory().join(".claude")).unwrap();
    fs::write(&kept, "{}\n").unwrap();
    let link = world.home_directory().join(".claude/settings.json");
    symlink("../dotfiles/settings.json", &link).unwrap();
    let shown = world.run_ok(&["install", "claude", "--scope", "user", "--yes"]);
    assert!(shown.contains("which is ") && link.is_symlink(), "{shown}");
    assert!(fs::read_to_string(&kept).unwrap().contains("windlass hook"));
    world.run_ok(&["uninstall", "claude", "--scope", "user", "--yes"]);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "{}\n");
}

/// Claude Code and Copilot read the same file of MCP servers: the last one to go removes the entry.
#[test]
fn shared_file_stays_until_last_agent_is_uninstalled() {
    let world = create_project();
    world.run_ok(&["install", "claude", "--mcp", "--yes"]);
    world.run_ok(&["install", "copilot", "--mcp", "--yes"]);
    world.run_ok(&["uninstall", "claude", "--yes"]);
    assert!(fs::read_to_string(world.path(".mcp.json")).unwrap().contains("windlass"));
    world.run_ok(&["uninstall", "copilot", "--yes"]);
    assert!(!world.path(".mcp.json").exists());
}

/// A server that a person has set up by hand is theirs.
#[test]
fn mcp_server_configured_by_hand_survives_uninstall() {
    let world = create_project();
    let own = "{\"mcpServers\": {\"windlass\": {\"command\": \"windlass\", \"args\": [\"mcp\"]}}}\n";
    for (agent, file) in [("claude", ".mcp.json"), ("gemini", ".gemini/settings.json")] {
        let file = world.write(file, own);
        world.run_ok(&["install", agent, "--yes"]);
        world.run_ok(&["uninstall", agent, "--yes"]);
        assert_eq!(fs::read_to_string(file).unwrap(), own, "{agent}");
    }
}

/// The program may go away: Copilot and Gemini CLI would take that for a block, and must not. A real block stays one.
#[test]
fn installed_hook_passes_when_program_is_missing_or_fails() {
    for (agent, file) in [("copilot", ".github/hooks/windlass.json"), ("gemini", ".gemini/settings.json")] {
        let world = create_project();
        world.run_ok(&["install", agent, "--yes"]);
        let settings: Value = serde_json::from_str(&fs::read_to_string(world.path(file)).unwrap()).unwrap();
        let commands: Vec<_> = settings["hooks"].as_object().unwrap().values().map(first_hook_command).collect();
        let program = world.program_directory().join("windlass");
        for (exit, expected) in [(None, 0), (Some(0), 0), (Some(1), 0), (Some(2), 2), (Some(101), 0)] {
            fs::remove_file(&program).unwrap_or_default();
            if let Some(code) = exit {
                fs::write(&program, format!("#!/bin/sh\necho '{{}}'\nexit {code}\n")).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            }
            for command in &commands {
                let ran = world.run_command(world.program("sh").args(["-c", command]));
                assert_eq!(ran.code, expected, "{exit:?} {command}\n{ran}");
                let is_told = ran.stderr.contains("going on without its hooks");
                assert_eq!(is_told, !matches!(exit, Some(0 | 2)), "{exit:?} {command}\n{ran}");
                assert_eq!(ran.stdout.is_empty(), exit.is_none(), "{ran}");
            }
        }
    }
}

/// Returns the command of the first entry of an event.
fn first_hook_command(entries: &Value) -> String {
    let hook = entries[0]["hooks"].get(0).unwrap_or(&entries[0]);
    hook.get("command").or(hook.get("bash")).unwrap().as_str().unwrap().to_owned()
}

/// On another machine there is no record, and our own files go all the same.
#[test]
fn uninstall_without_record_deletes_windlass_files() {
    for (agent, left) in [("goose", ".agents/plugins"), ("copilot", ".github/hooks")] {
        let world = create_project();
        world.run_ok(&["install", agent, "--mcp", "--yes"]);
        fs::remove_dir_all(world.directory.with_file_name("state").join("settings")).unwrap();
        world.run_ok(&["uninstall", agent, "--yes"]);
        assert_eq!(fs::read_dir(world.path(left)).unwrap().count(), 0, "{agent}");
    }
}

#[test]
fn records_are_private() {
    let world = create_project();
    world.write(".claude/settings.json", "{\"env\": {\"KEY\": \"secret\"}}");
    world.run_ok(&["install", "claude", "--yes"]);
    let records = world.directory.with_file_name("state").join("settings");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&records), 0o700);
    for entry in fs::read_dir(&records).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}
