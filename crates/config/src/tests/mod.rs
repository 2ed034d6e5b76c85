//! Tests of the whole way from a file to a configuration.

pub mod diagnostics;
mod expression_diagnostics;
mod pipeline_rules;

use std::fs;
use std::time::Duration;

use super::*;

fn read_config(text: impl AsRef<[u8]>) -> Result<Config, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    fs::write(&file, text).unwrap();
    Config::read_file(&file)
}

fn parse_config(text: &str) -> Config {
    read_config(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn hook_names(config: &Config) -> Vec<&str> {
    config.hooks.iter().map(|hook| hook.name.as_str()).collect()
}

fn expect_failure(result: Result<Config, ConfigError>) -> ConfigError {
    result.expect_err("the file should be refused")
}

/// Hooks at every point of a session, with timeouts and piped output.
const LOOP: &str = r#"
version: 1

hooks:
  session_start:
    - command: "git fetch --quiet"
      timeout: 30
    - command: "cargo build --workspace"
      timeout: 60
      pipe_output: true  # the agent sees what does not build

  pre_iteration:
    - command: "cargo clippy"
      timeout: 30
      pipe_output: true

  post_iteration:
    - command: "cargo test -q"
      timeout: 120
      pipe_output: true
    - command: "curl -X POST $WEBHOOK -d '{\"text\": \"iteration {{iteration}}\"}'"
      timeout: 5
      # pipe_output: false (default)

  session_end:
    - command: "./scripts/done.sh {{session}}"
      timeout: 10

  on_task_complete:
    - command: "./scripts/validate.sh {{task_id}}"
      timeout: 30
      pipe_output: true

  on_error:
    - command: "git diff HEAD"
      timeout: 10
      pipe_output: true
"#;

/// Task types with their own hooks and agents.
const TYPES: &str = "
# Hooks of all tasks, unless a type has its own
hooks:
  before_submit:
    - rebase_on_main
    - create_pr

task_types:
  product:
    hooks:
      before_submit:
        - rebase_on_main
        - run_tests
        - create_pr
      before_merge:
        - gatekeeper: [qa, architecture]
    # Who may work on it
    agents:
      implementer: [implementer-1, implementer-2]
      gatekeeper: [gatekeeper-qa]

  infrastructure:
    hooks:
      before_submit:
        - rebase_on_main
        - create_pr
      # No before_merge
    agents:
      implementer: [implementer-1]
";

#[test]
fn session_hooks_load() {
    let config = parse_config(LOOP);
    assert_eq!(config.hooks.len(), 8);
    assert_eq!(config.hooks.iter().filter(|hook| hook.entry.pipe_output == Some(PipeSetting::Fixed(true))).count(), 5);
    let webhook = &config.hooks[4];
    assert_eq!((webhook.name.as_str(), webhook.line), ("post_iteration[1]", 21));
    assert_eq!(webhook.entry.timeout.as_ref().unwrap().duration(), Duration::from_secs(5));
    assert!(
        matches!(&webhook.kind, HookKind::Command(script) if script.text().contains(r#"{"text": "iteration {{iteration}}"}"#))
    );
    assert_eq!(config.effectful_hooks().len(), 8);
}

#[test]
fn task_types_load() {
    let config = parse_config(TYPES);
    assert_eq!(
        hook_names(&config),
        [
            "before_submit[0]:rebase_on_main",
            "before_submit[1]:create_pr",
            "infrastructure.before_submit[0]:rebase_on_main",
            "infrastructure.before_submit[1]:create_pr",
            "product.before_submit[0]:rebase_on_main",
            "product.before_submit[1]:run_tests",
            "product.before_submit[2]:create_pr",
            "product.before_merge[0]:gatekeeper",
        ]
    );
    assert!(matches!(&config.hooks[7].kind, HookKind::Gatekeeper(briefs) if *briefs == ["qa", "architecture"]));
    let (name, roles) = config.task_types().last().unwrap();
    assert_eq!(name, "product");
    let gatekeepers = roles.gatekeeper.as_ref().unwrap();
    assert!(gatekeepers.iter().map(|name| name.as_str()).eq(["gatekeeper-qa"]));
}

#[test]
fn every_field_of_a_hook_is_kept() {
    let config = parse_config(
        "
hooks:
  PreToolUse:
    - name: guard
      command: ./guard.sh
      timeout: 500ms
      pipe_output: true
      events: [task_created, Stop]
      priority: -5
      enabled: false
      description: looks before it leaps
      metadata: {author: me, version: 1.0, tags: [a, null]}
      when: \"'agent' in task.labels\"
      matcher: Edit|Write
      on_failure: escalate
      idempotent: true
      retry: {max: 3, backoff: 2s, jitter: true}
      feedback: 'it said {{ output }}'
      max_output: 1024
",
    );
    let [hook] = &config.hooks[..] else { panic!("{:?}", config.hooks) };
    let points: Vec<_> = hook.all_points().map(windlass_engine::HookPoint::name).collect();
    assert_eq!(points, ["pre_tool_use", "task_created", "stop"]);
    assert!(!hook.is_enabled());
    assert_eq!(hook.entry.priority, Some(-5));
    assert!(hook.matcher.matches_tool("Write") && !hook.matcher.matches_tool("Bash"));
    let context = serde_json::json!({"task": {"labels": ["agent"]}, "output": "no"});
    assert_eq!(hook.when.as_ref().unwrap().is_satisfied(&context), Ok(true));
    assert_eq!(hook.feedback.as_ref().unwrap().render(&context).as_deref(), Ok("it said no"));
    assert_eq!(hook.entry.metadata["tags"], serde_json::json!(["a", null]));
    assert_eq!(hook.entry.retry.as_ref().unwrap().max.as_ref().map(|max| max.value), Some(3));
    assert_eq!(hook.entry.max_output.as_ref().map(|most| most.value), Some(1024));
    assert_eq!(config.effectful_hooks(), [], "a hook that is off runs nothing");
}

#[test]
fn every_section_is_read() {
    let config = parse_config(
        "
agent: local
agents:
  local: {driver: command, command: ./agent.sh, args: [--fast], env: {PORT: 8080, DEBUG: true}, permissions: allow}
  claude: {model: big, hooks: {pre_iteration: [{prompt: is it really done?}]}}
limits: {maxHookRetries: 0, wall_time: 4h, cost: 2.5}
completion: gate
strict: false
on_retry_limit: ask
agent_commands: named
validators: {lint: make lint}
test_command: make test
base_branch: 1.0
protected: [tests/**]
secrets: [GITHUB_TOKEN]
notify: [{http: https://example.org/tell, on: [escalated]}]
",
    );
    let settings = &config.settings;
    assert_eq!(settings.agents["local"].env["PORT"], "8080");
    assert_eq!(settings.agents["local"].env["DEBUG"], "true");
    assert_eq!(settings.base_branch.as_ref().unwrap().value, "1.0");
    assert_eq!((settings.limits.max_hook_retries, settings.limits.max_remediations), (0, 3));
    let effects: Vec<_> = config.list_effects().into_iter().map(|effect| (effect.place, effect.what)).collect();
    let shown: Vec<_> = effects.iter().map(|(place, what)| format!("{place}: {what}")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    pre_iteration (agent claude): prompt: is it really done?
    notify: POST https://example.org/tell
    agents: claude
    agents: DEBUG=true PORT=8080 ./agent.sh --fast
    validators: make lint
    test_command: make test
    ");
}

#[test]
fn validators_say_what_an_agent_may_have_run() {
    let text = "
agent_commands: allow
validators:
  lint: make lint
  tests: {command: npm test, timeout: 10m, working_directory: packages/web, success_exit_codes: [0, 5]}
";
    let shown = |config: &Config| {
        let effects = config.list_effects().into_iter();
        let shown = effects.map(|it| format!("{} ({:?}): {}", it.display_title(), it.line, it.what));
        shown.collect::<Vec<_>>().join("\n")
    };
    let any = parse_config(text);
    insta::assert_snapshot!(shown(&any), @r"
    validators lint (Some(4)): make lint
    validators tests (Some(5)): npm test (in packages/web)
    agent_commands allow (None): any command that an agent supplies
    ");
    assert_eq!(any.agent_command_policy(), AgentCommandSetting::Allow);
    let validators = any.validator_commands();
    let [(_, lint), (_, tests)] = &validators.iter().collect::<Vec<_>>()[..] else { panic!("two of them") };
    assert_eq!((lint.timeout(), lint.success_codes()), (Duration::from_secs(60), vec![0]));
    assert_eq!((tests.timeout(), tests.success_codes()), (Duration::from_secs(600), vec![0, 5]));
    assert_eq!(tests.working_directory.as_deref(), Some("packages/web"));
    let unsaid = |text: &str| parse_config(text).agent_command_policy();
    assert_eq!(unsaid(""), AgentCommandSetting::Allow);
    assert_eq!(
        unsaid("validators: {lint: make lint}"),
        AgentCommandSetting::Named,
        "a configuration that writes them down means those"
    );
    assert_eq!(shown(&parse_config(&text.replace("allow", "deny"))), "", "none of them is run");
}

/// Every setting with a path refuses paths that lead out of the project.
#[test]
fn paths_out_of_the_project_are_refused_with_a_remedy() {
    for path in ["/etc/passwd", "../up", "a/../../up"] {
        for text in [
            format!("prompt_file: {path}"),
            format!("protected: [{path}]"),
            format!("caches: [{path}]"),
            format!("agent: scripted:{path}"),
            format!("agents: {{tape: {{driver: scripted, command: {path}}}}}"),
            format!("task_types: {{bug: {{agents: {{implementer: ['scripted:{path}']}}}}}}"),
            format!("validators: {{v: {{command: make, working_directory: {path}}}}}"),
            format!("validation: [{{type: file_existence, name: v, config: {{paths: [{path}]}}}}]"),
            format!("validation: [{{type: command, name: v, config: {{command: make, workingDirectory: {path}}}}}]"),
        ] {
            let failure = expect_failure(read_config(&text));
            assert!(failure.to_string().contains("config.yaml:1:") && failure.hint().is_some(), "{text}\n{failure}");
        }
    }
    parse_config("agent: scripted:plays/one.yaml");
}

#[test]
fn hooks_of_the_registry_are_reconfigured() {
    let config = parse_config(
        "
hooks:
  task_completed:
    - use: auto-create-review-task
      enabled: false
    - use: check-dependency-satisfaction
      priority: 3
  task_created: [auto-label-by-keyword]
",
    );
    let setting = |name, enabled, priority| RegisteredHookSetting { name, enabled, priority };
    assert_eq!(
        config.builtin_settings(),
        [
            setting("auto-create-review-task", false, None),
            setting("check-dependency-satisfaction", true, Some(3)),
            setting("auto-label-by-keyword", true, None),
        ]
    );
    assert_eq!(config.effectful_hooks(), []);
}

#[test]
fn empty_file_is_a_configuration() {
    for text in
        ["", "\n", "# only a comment\n", "---\n", "hooks:\nlimits:\nprotected:\nagent:\n", "\u{feff}version: 1\n"]
    {
        assert_eq!(parse_config(text).hooks.len(), 0, "{text:?}");
    }
    assert_eq!(parse_config("version: 1\r\nhooks:\r\n  stop:\r\n    - command: a\r\n").hooks[0].line, 4);
}

#[test]
fn unreadable_file_is_refused_with_reason() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    assert!(!Config::load(root).unwrap().has_file());
    let missing = expect_failure(Config::read_file(&config_file_path(root)));
    assert!(missing.to_string().ends_with("config.yaml: there is no such file"), "{missing}");

    fs::create_dir_all(config_file_path(root)).unwrap();
    let failed = Config::load(root).unwrap_err();
    assert!(failed.to_string().ends_with("config.yaml: is a directory, not a file"), "{failed}");

    assert!(expect_failure(read_config("#".repeat(1024 * 1024 + 1))).to_string().ends_with("is larger than 1 MiB"));
    assert!(read_config("#".repeat(1024 * 1024)).is_ok());
}

#[test]
fn non_utf8_file_is_refused_with_place() {
    let failed = expect_failure(read_config(b"version: 1\nagent: \xff\n"));
    assert!(failed.to_string().ends_with("config.yaml:2:8: not UTF-8 text: byte 0xff at offset 18"), "{failed}");
    assert!(read_config(b"\xff\xfev\0").is_err());
}

/// Without bounds, each of these files would exhaust the time, the memory or the stack.
#[test]
fn yaml_bomb_is_refused_early() {
    let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        aliases += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","));
    }
    let staircase = (0..1_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
    let bombs = [
        ("[".repeat(100_000), "too much YAML"),
        ("{a: ".repeat(25_000), "too much YAML"),
        ("- ".repeat(50_000), "too much YAML"),
        ("? ".repeat(50_000), "too much YAML"),
        (staircase, "too much YAML"),
        (aliases, "too much YAML"),
        ("- 1\n".repeat(200_000), "too much YAML"),
        (format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(600_000), ["*a"; 19_000].join(", ")), "too much YAML"),
        ("a: &a [*a]\n".to_owned(), "this alias is inside the value that it repeats"),
        (format!("{}: 1\n", "k".repeat(1_000_000)), ""),
    ];
    for (text, message) in bombs {
        let failed = expect_failure(read_config(&text));
        assert!(failed.to_string().contains(message), "{failed}");
        assert!(
            failed.to_string().len() < 1_000
                && failed.render_picture(false).is_none_or(|picture| picture.len() < 4_000)
        );
    }
}

#[test]
fn trust_digest_changes_with_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let digest = || Config::load(root).unwrap().trust_digest().unwrap();
    let none = digest();
    fs::create_dir_all(root.join(PROJECT_DIRECTORY).join("workflows")).unwrap();
    assert_eq!(digest(), none);
    fs::write(config_file_path(root), "").unwrap();
    let empty = digest();
    assert_ne!(empty, none);
    fs::write(root.join(PROJECT_DIRECTORY).join("workflows/w.json"), "{}").unwrap();
    assert_ne!(digest(), empty);
}

#[test]
fn schema_covers_reader_keys_and_describes_all_properties() {
    let schema = config_schema();
    let entry = &schema["$defs"]["HookSettings"];
    for kind in hook_settings::HOOK_KIND_KEYS {
        assert!(entry["properties"].get(kind).is_some(), "{kind}");
    }
    assert_eq!(entry["oneOf"].as_array().map(Vec::len), Some(hook_settings::HOOK_KIND_KEYS.len()));
    assert_eq!(entry["additionalProperties"], false);
    assert_eq!(schema["$defs"]["LimitSettings"]["properties"]["maxHookRetries"]["default"], 5);
    let stop = &schema["$defs"]["Hooks"]["properties"]["stop"];
    assert_eq!(stop["items"]["anyOf"][0]["enum"][0], "rebase_on_main");
    let undescribed: Vec<_> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, property)| property.get("description").is_none())
        .collect();
    assert!(undescribed.is_empty(), "{undescribed:?}");
}

#[test]
fn limit_keys_are_those_of_the_schema() {
    let keys = config_schema()["$defs"]["LimitSettings"]["properties"].as_object().expect("a map of keys").clone();
    assert_eq!(keys.keys().map(String::as_str).collect::<Vec<_>>(), reader::LIMIT_KEYS);
}
