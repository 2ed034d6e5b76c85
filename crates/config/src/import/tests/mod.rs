//! Tests of the imports of each system.

mod edits;

use std::path::Path;

use super::{ConfigAdditions, HookImport, ImportDialect, import_hooks, write_fragment};
use crate::Config;

/// Imports the file of a system.
fn import_as(from: ImportDialect, text: &str) -> HookImport {
    import_hooks(Path::new("file.json"), text, Some(from)).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// Renders the YAML fragment, then left-out parts, then notes, for a project without a configuration.
fn render_import(from: ImportDialect, text: &str) -> String {
    let import = import_as(from, text);
    let config = Config::from_text(Path::new("config.yaml"), "").map_err(|_| ()).unwrap();
    let additions = ConfigAdditions::from_import(&import, &config);
    let line = |line: Option<usize>| line.map(|line| format!("{line}: ")).unwrap_or_default();
    let left_out = import
        .left_out
        .iter()
        .chain(&additions.left_out)
        .map(|remark| format!("- {}{}\n", line(remark.line), remark.text));
    let notes =
        import.notes.iter().chain(&additions.notes).map(|remark| format!("* {}{}\n", line(remark.line), remark.text));
    write_fragment(&additions) + &left_out.chain(notes).collect::<String>()
}

/// Returns a file with one hook at an event.
fn single_hook_json(event: &str, hook: &str) -> String {
    format!(r#"{{"hooks": {{"{event}": [{{"hooks": [{hook}]}}]}}}}"#)
}

#[test]
fn claude_file_is_imported() {
    let text = r#"{
      "hooks": {
        "Stop": [{"matcher": "ignored there", "hooks": [{"type": "command", "command": "./check.sh", "statusMessage": "Checking"}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "./context.sh", "timeout": 0.5}]}],
        "PostToolUse": [{"matcher": "Edit|Write", "hooks": [
          {"type": "command", "command": "./format.sh", "timeout": 20},
          {"type": "command", "command": "./format.sh", "timeout": 20},
          {"type": "command", "command": "echo '{{session}}'", "timeout": 60000}
        ]}],
        "SessionStart": [{"matcher": "startup|resume|clear|compact", "hooks": [{"type": "command", "command": "git log -3"}]}],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/bye.sh"}]}]
      }
    }"#;
    insta::assert_snapshot!(render_import(ImportDialect::Claude, text), @r#"
    hooks:
      stop:
        - name: claude-check
          command: ./check.sh
          description: Checking
      user_prompt_submit:
        - name: claude-context
          command: ./context.sh
          timeout: 500ms
          pipe_output: true
      post_tool_use:
        - name: claude-format
          command: ./format.sh
          matcher: 'Edit|Write'
          timeout: 20s
        - name: claude-echo
          command: "exec sh -c 'echo '\\''{''{session}}'\\'''"
          matcher: 'Edit|Write'
          timeout: 60000s
      session_start:
        - name: claude-git
          command: git log -3
          matcher: 'startup|resume|clear|compact'
          timeout: 600s
          pipe_output: true
      session_end:
        - name: claude-bye
          command: '${CLAUDE_PLUGIN_ROOT}/bye.sh'
    * 11: `$CLAUDE_PLUGIN_ROOT` is set by Claude Code alone; under `windlass run` it is empty
    * a stop hook that exits with neither 0 nor 2 lets the agent end there; under `windlass run` it is another iteration, unless the configuration says `strict: false`
    "#);
}

#[test]
fn claude_hooks_without_counterpart_are_left_out() {
    let check = |event: &str, hook: &str, part: &str| {
        let import = import_as(ImportDialect::Claude, &single_hook_json(event, hook));
        assert!(import.hooks.is_empty(), "{hook}");
        let said: Vec<&str> = import.left_out.iter().map(|remark| remark.text.as_str()).collect();
        assert!(said.len() == 1 && said[0].contains(part), "{hook}: {said:?}");
    };
    check("Stop", r#"{"type": "prompt", "prompt": "Done?"}"#, "hooks of the type `prompt`");
    check("Stop", r#"{"type": "agent", "prompt": "Done?"}"#, "hooks of the type `agent`");
    check("Stop", r#"{"type": "command", "command": "x", "async": true}"#, "(`async`)");
    check("Stop", r#"{"type": "command", "command": "x", "once": true}"#, "(`once`)");
    check("PreToolUse", r#"{"type": "command", "command": "x", "if": "Bash(git *)"}"#, "(`if`)");
    check("Stop", r#"{"type": "command", "command": "x", "shell": "powershell"}"#, "`shell`)");
    check("Stop", r#"{"type": "command", "command": "x", "args": ["y"]}"#, "(`args`");
    check("Stop", r#"{"type": "http", "url": "https://x.test"}"#, "write it as `http:` by hand");
    check("Stop", r#"{"type": "command", "command": "x", "sandbox": true}"#, "what `sandbox` means is unknown");
    check("Stop", r#"{"type": "command", "command": " "}"#, "its command is empty");
    check("Stop", r#"{"type": "command", "command": "a\u0000b"}"#, "zero byte");
    check(
        "Stop",
        r#"{"type": "command", "command": "/usr/bin/windlass hook stop --as claude"}"#,
        "this is Windlass itself",
    );
    check("TaskCompleted", r#"{"type": "command", "command": "x"}"#, "no point for this event");
    check("Stopp", r#"{"type": "command", "command": "x"}"#, "no point for this event");
    let group = r#"{"hooks": {"Stop": [{"when": 1, "hooks": []}]}}"#;
    let left_out = import_as(ImportDialect::Claude, group).left_out;
    assert!(left_out[0].text.contains("what `when` means"), "{left_out:?}");
}

#[test]
fn matchers_of_other_events_are_translated() {
    let check = |from: ImportDialect, event: &str, matcher: &str, expected: Result<Option<&str>, &str>| {
        let text = format!(
            r#"{{"hooks": {{"{event}": [{{"matcher": "{matcher}", "hooks": [{{"type": "command", "command": "x"}}]}}]}}}}"#
        );
        let import = import_as(from, &text);
        match expected {
            Ok(matcher) => assert_eq!(import.hooks[0].matcher.as_deref(), matcher, "{text}"),
            Err(why) => assert!(import.left_out[0].text.contains(why), "{:?}", import.left_out),
        }
    };
    check(ImportDialect::Claude, "SessionStart", "resume|compact", Ok(Some("resume|compact")));
    check(ImportDialect::Claude, "Notification", "idle_prompt", Ok(Some("idle_prompt")));
    check(ImportDialect::Claude, "SessionEnd", "logout", Ok(Some("logout")));
    check(ImportDialect::Claude, "SubagentStop", "Explore", Ok(Some("Explore")));
    check(ImportDialect::Codex, "SessionStart", "start.*", Ok(Some("start.*")));
    check(ImportDialect::Gemini, "SessionStart", "resume", Ok(Some("resume")));
    check(ImportDialect::Gemini, "SessionStart", "resume|clear", Err("is one word there"));
    check(ImportDialect::Codemie, "SessionStart", "resume", Err("a value that does not exist at this point"));
    check(ImportDialect::Claude, "Stop", "x", Ok(None));
}

#[test]
fn malformed_file_is_refused_with_place() {
    let check = |text: &str, message: &str, marked: &str| {
        let problem = import_hooks(Path::new("x.json"), text, Some(ImportDialect::Claude)).unwrap_err();
        let at = problem.at.clone().unwrap_or_default();
        assert_eq!((problem.message.as_str(), &text[at]), (message, marked), "{text}");
    };
    check("[]", "the file: expected an object: `{…}`, found a list", "[");
    check(r#"{"hooks": []}"#, "`hooks`: expected an object: `{…}`, found a list", "[");
    check(r#"{"hooks": {"Stop": {}}}"#, "`Stop`: expected a list: `[…]`, found an object", "{");
    check(
        r#"{"hooks": {"Stop": ["x"]}}"#,
        "an entry of `Stop`: expected an object: `{…}`, found the text `x`",
        "\"x\"",
    );
    check(r#"{"hooks": {"Stop": [{}]}}"#, "an entry of `Stop` has no `hooks`", "{");
    check(r#"{"hooks": {"Stop": [{"hooks": {}}]}}"#, "`hooks`: expected a list: `[…]`, found an object", "{");
    check(r#"{"disableAllHooks": 1}"#, "`disableAllHooks`: expected `true` or `false`, found `1`", "1");
    let hook = |hook: &str, message: &str, marked: &str| check(&single_hook_json("Stop", hook), message, marked);
    hook("{}", "a hook of `Stop` has no `type`", "{");
    hook(r#"{"type": "command"}"#, "this hook has no `command`", "{");
    hook(r#"{"type": "command", "command": 7}"#, "`command`: expected text in double quotes, found `7`", "7");
    hook(
        r#"{"type": "command", "command": "x", "timeout": "30"}"#,
        "`timeout`: expected a number, found the text `30`",
        "\"30\"",
    );
    hook(
        r#"{"type": "command", "command": "x", "timeout": 0}"#,
        "`timeout`: must be longer than 0 and no longer than 7 days",
        "0",
    );
    hook(
        r#"{"type": "command", "command": "x", "timeout": -5}"#,
        "`timeout`: must be longer than 0 and no longer than 7 days",
        "-5",
    );
    hook(
        r#"{"type": "command", "command": "x", "timeout": 1e9}"#,
        "`timeout`: must be longer than 0 and no longer than 7 days",
        "1e9",
    );
    hook(
        r#"{"type": "command", "command": "x", "args": "y"}"#,
        "`args`: expected a list: `[…]`, found the text `y`",
        "\"y\"",
    );
}

#[test]
fn codemie_file_with_profiles_gives_hooks_of_active_profile() {
    let stop = |command: &str| format!(r#"{{"Stop": [{{"hooks": [{{"type": "command", "command": "{command}"}}]}}]}}"#);
    let text = format!(
        r#"{{"version": 2, "activeProfile": "work", "profiles": {{
             "home": {{"name": "home", "hooks": {}}},
             "work": {{"name": "work", "provider": "ai-run-sso", "hooks": {}, "maxHookRetries": 3}}}}}}"#,
        stop("./home.sh"),
        stop("./work.sh")
    );
    let shown = render_import(ImportDialect::Codemie, &text);
    assert!(shown.contains("command: ./work.sh") && !shown.contains("command: ./home.sh"), "{shown}");
    assert!(shown.contains("max_hook_retries: 3"), "{shown}");
    assert!(shown.contains("- 2: the profile `home`: it is not active"), "{shown}");
    assert!(shown.contains("* 3: the hooks are those of the profile `work`"), "{shown}");
    let missing = import_hooks(Path::new("x"), r#"{"activeProfile": "x", "profiles": {}}"#, None).unwrap_err();
    assert!(missing.to_string().contains("there is no profile `x`, which `activeProfile` names"), "{missing}");
}

#[test]
fn codemie_file_is_imported() {
    let text = r#"{
      "hooks": {
        "Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "./.codemie/run-tests.sh"}]}],
        "PreToolUse": [
          {"matcher": "Edit.*|Write", "hooks": [{"type": "command", "command": "./protect.sh", "timeout": 1500}]},
          {"matcher": "Bash", "hooks": [{"type": "command", "command": "./look.sh", "timeout": 5000}]}
        ]
      },
      "maxHookRetries": 5
    }"#;
    insta::assert_snapshot!(render_import(ImportDialect::Codemie, text), @r#"
    hooks:
      stop:
        - name: codemie-run-tests
          command: ./.codemie/run-tests.sh
          timeout: 60s
      pre_tool_use:
        - name: codemie-protect
          command: ./protect.sh
          matcher: '^(?:Edit.*|Write)$'
          timeout: 1500ms
        - name: codemie-look
          command: ./look.sh
          matcher: Bash
          timeout: 5s
    limits:
      max_hook_retries: 5
    strict: false
    on_retry_limit: complete
    * a stop hook that fails by itself (exit 1, a timeout) lets the agent end there: written as `strict: false`; remove that line if you do not want it
    * when stop hooks have sent the agent back as often as they may, the work counts as complete there: written as `on_retry_limit: complete`; remove that line if you do not want it
    "#);
    let retries = |text: &str| import_as(ImportDialect::Codemie, text).settings;
    assert_eq!(retries(r#"{"maxHookRetries": 0}"#), [super::ImportedSetting::MaxHookRetries(5)]);
    assert!(import_hooks(Path::new("x"), r#"{"maxHookRetries": -1}"#, Some(ImportDialect::Codemie)).is_err());
    assert!(import_hooks(Path::new("x"), r#"{"maxHookRetries": "5"}"#, Some(ImportDialect::Codemie)).is_err());
}

#[test]
fn codex_gemini_and_qwen_files_are_imported() {
    let codex = r#"{"hooks": {"PreToolUse": [{"matcher": "^Bash$", "hooks": [{"type": "command", "command": "./a.sh", "timeout": 9}]}],
      "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "./b.sh"}]}]}}"#;
    insta::assert_snapshot!(render_import(ImportDialect::Codex, codex), @r#"
    hooks:
      pre_tool_use:
        - name: codex-a
          command: ./a.sh
          matcher: '^Bash$'
          timeout: 9s
      user_prompt_submit:
        - name: codex-b
          command: ./b.sh
          timeout: 600s
          pipe_output: true
    "#);
    let gemini = r#"{
      "hooksConfig": {"disabled": ["lint"]},
      "hooks": {
        "BeforeTool": [{"matcher": "write_file", "sequential": true, "hooks": [{"name": "guard", "type": "command", "command": "./a.sh", "timeout": 500}]}],
        "AfterAgent": [{"hooks": [{"name": "lint", "description": "the linter", "type": "command", "command": "./lint.sh"}]}],
        "BeforeModel": [{"hooks": [{"type": "command", "command": "./c.sh"}]}],
        "SessionStart": [{"hooks": [{"type": "command", "command": "./d.sh", "timeout": 30000}]}]
      }
    }"#;
    insta::assert_snapshot!(render_import(ImportDialect::Gemini, gemini), @r#"
    hooks:
      pre_tool_use:
        - name: guard
          command: ./a.sh
          matcher: '(?:write_file)'
          timeout: 500ms
      stop:
        - name: lint
          command: ./lint.sh
          timeout: 60s
          enabled: false
          description: the linter
      session_start:
        - name: gemini-d
          command: ./d.sh
          timeout: 30s
    - 6: BeforeModel: Windlass has no point for this event
    * a stop hook that exits with neither 0 nor 2 lets the agent end there; under `windlass run` it is another iteration, unless the configuration says `strict: false`
    * Gemini CLI treats every exit code from 2 on as a block; here only 2 blocks
    "#);
    let qwen = r#"{"disableAllHooks": true, "hooks": {"PostToolUse": [{"matcher": "edit", "hooks": [
      {"type": "command", "command": "./a.sh", "timeout": 30}, {"type": "command", "command": "./b.sh", "timeout": 5000}]}]}}"#;
    insta::assert_snapshot!(render_import(ImportDialect::Qwen, qwen), @r#"
    hooks:
      post_tool_use:
        - name: qwen-a
          command: ./a.sh
          matcher: '(?:edit)'
          timeout: 30s
          enabled: false
        - name: qwen-b
          command: ./b.sh
          matcher: '(?:edit)'
          timeout: 5s
          enabled: false
    * this file switches all of its hooks off: they are written with `enabled: false`
    "#);
}

#[test]
fn automation_file_is_imported() {
    let text = r#"{
      "version": "1.0",
      "hooks": [
        {"name": "auto-create-review-task", "enabled": true, "priority": 15, "eventTypes": ["task_completed"]},
        {"name": "track-agent-task-lifecycle", "enabled": false, "eventTypes": ["task_completed"],
         "metadata": {"description": "how long it took", "author": "ann", "version": "2"}},
        {"name": "announce", "enabled": true, "priority": 30, "eventTypes": ["task_completed"]}
      ]
    }"#;
    insta::assert_snapshot!(render_import(ImportDialect::Automation, text), @r#"
    hooks:
      task_completed:
        - use: auto-create-review-task
          priority: 15
          enabled: true
      task_created:
        - use: track-agent-task-lifecycle
          enabled: false
          description: how long it took
          metadata:
            author: ann
            version: '2'
    - 7: `announce`: neither the configuration nor Windlass has a hook with this name, and what it does is not in the file; write it as a `command` with this `name` at its events
    * 5: `track-agent-task-lifecycle` runs at task_created, task_started, task_completed; `eventTypes` has no effect
    "#);
    for wrong in [
        r#"{"version": "2.0", "hooks": []}"#,
        r#"{"hooks": {}}"#,
        r#"{}"#,
        r#"{"hooks": [{}]}"#,
        r#"{"hooks": [{"name": "auto-create-review-task", "priority": "10"}]}"#,
        r#"{"hooks": [{"name": "auto-create-review-task"}, {"name": "auto-create-review-task"}]}"#,
        r#"{"hooks": [{"name": "own"}, {"name": "own"}]}"#,
        r#"{"hooks": [{"name": "own", "enabled": "no"}]}"#,
        r#"{"hooks": [{"name": "own", "eventTypes": "task_completed"}]}"#,
    ] {
        assert!(import_hooks(Path::new("x"), wrong, Some(ImportDialect::Automation)).is_err(), "{wrong}");
    }
}
