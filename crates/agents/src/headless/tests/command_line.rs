//! The command lines and environments of the known agents, with full and read-only access.

use serde_json::Value;

use super::super::*;

#[test]
fn read_only_agents_get_read_only_options() {
    let check = |name: &str, args: &[&str], expected: &str| {
        let mut agent: Agent = name.parse().expect("a known one");
        let crate::AgentKind::Headless(dialect) = agent.kind else { panic!("{name}") };
        agent.setup.args = args.iter().map(|word| (*word).to_owned()).collect();
        agent.setup.access = AgentAccess::ReadOnly;
        assert_eq!(script(&agent, dialect, Place::New(None), None), expected);
    };
    check(
        "claude",
        &[],
        "claude -p --output-format stream-json --verbose --permission-mode default \
         --disallowedTools=Edit,Write,NotebookEdit --setting-sources user --strict-mcp-config",
    );
    check(
        "codex",
        &[],
        "codex exec --json --skip-git-repo-check --sandbox read-only -c project_doc_max_bytes=0 -c skills.include_instructions=false -",
    );
    check("gemini", &[], "gemini --skip-trust -o stream-json --approval-mode default");
    check("opencode", &[], "opencode run --format json --agent plan");
    check("goose", &[], "goose run -q --with-builtin developer --output-format stream-json --no-profile -i -");
    // User arguments apply with read-only access as well.
    check("opencode", &["--agent", "mine"], "opencode run --format json --agent mine");
    check(
        "codex",
        &["--full-auto"],
        "codex exec --json --skip-git-repo-check -c project_doc_max_bytes=0 -c skills.include_instructions=false --full-auto -",
    );
    check(
        "claude",
        &["--permission-mode", "plan", "--setting-sources=user,project"],
        "claude -p --output-format stream-json --verbose --strict-mcp-config --permission-mode plan --setting-sources=user,project",
    );
}

/// The name is quoted for TOML, and then for the shell.
#[test]
fn codex_distrusts_the_judged_directory() {
    let mut agent: Agent = "codex".parse().expect("a known one");
    agent.setup.judged_directory = Some("/home/ann/the \"shop\"".into());
    let script = build_prompt_script(&agent, HeadlessDialect::Codex, PromptTarget::NewConversation(None), None);
    let words = r#" -c 'projects={"/home/ann/the \"shop\""={trust_level="untrusted"}}' -"#;
    assert!(script.ends_with(words), "{script}");
}

/// Inherited variables are meant for any use of the agent. The settings of this agent take precedence.
#[test]
fn read_only_environment_overrides_inherited_variables() {
    let around = vec![("GOOSE_MODE".into(), "auto".into()), ("OPENCODE_PERMISSION".into(), "{}".into())];
    let value = |agent: &Agent, name: &str| {
        let environment = agent.build_environment(&around);
        let found = environment.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let looking = |name: &str| {
        let mut agent: Agent = name.parse().expect("a known one");
        agent.setup.access = AgentAccess::ReadOnly;
        agent
    };
    let mut goose = looking("goose");
    assert_eq!(
        (value(&goose, "GOOSE_MODE"), value(&goose, "CONTEXT_FILE_NAMES")),
        ("chat".to_owned(), "[]".to_owned())
    );
    goose.setup.environment.push(("GOOSE_MODE".to_owned(), "approve".to_owned()));
    assert_eq!(value(&goose, "GOOSE_MODE"), "approve");
    let opencode = looking("opencode");
    let allowed: Value = serde_json::from_str(&value(&opencode, "OPENCODE_PERMISSION")).expect("it is JSON");
    assert_eq!(
        [&allowed["*"], &allowed["bash"], &allowed["edit"], &allowed["grep"]],
        ["deny", "deny", "deny", "allow"]
    );
    assert_eq!(value(&opencode, "OPENCODE_DISABLE_PROJECT_CONFIG"), "1");
    assert_eq!(value(&looking("gemini"), "GEMINI_CLI_TRUSTED_FOLDERS_PATH"), "/dev/null/none");
    let working: Agent = "goose".parse().expect("a known one");
    assert_eq!(
        (value(&working, "GOOSE_MODE"), value(&working, "CONTEXT_FILE_NAMES")),
        ("auto".to_owned(), String::new())
    );
}

#[test]
fn user_arguments_override_default_options() {
    let check = |name: &str, args: &[&str], place: PromptTarget<'_>, expected: &str| {
        let mut agent: Agent = name.parse().expect("a known one");
        let crate::AgentKind::Headless(dialect) = agent.kind else { panic!("{name}") };
        agent.setup.args = args.iter().map(|word| (*word).to_owned()).collect();
        agent.setup.model = Some("m 1".to_owned());
        assert_eq!(script(&agent, dialect, place, None), expected);
    };
    check(
        "claude",
        &["--permission-mode=acceptEdits"],
        PromptTarget::Existing("x"),
        "claude -p --output-format stream-json --verbose --resume x --model 'm 1' --permission-mode=acceptEdits",
    );
    check(
        "codex",
        &["--sandbox", "read-only"],
        PromptTarget::Existing("x"),
        "codex exec --json --skip-git-repo-check -m 'm 1' --sandbox read-only resume x -",
    );
    check(
        "codex",
        &["-c", "sandbox_mode=\"workspace-write\""],
        PromptTarget::NewConversation(None),
        "codex exec --json --skip-git-repo-check -m 'm 1' -c 'sandbox_mode=\"workspace-write\"' -",
    );
    for words in [["-p", "work"], ["-sread-only", "x"], ["--config=sandbox_mode=read-only", "x"]] {
        let given = words.join(" ");
        check(
            "codex",
            &words,
            PromptTarget::NewConversation(None),
            &format!("codex exec --json --skip-git-repo-check -m 'm 1' {given} -"),
        );
    }
    check(
        "gemini",
        &["--approval-mode", "auto_edit"],
        PromptTarget::NewConversation(Some("x")),
        "gemini --skip-trust -o stream-json --session-id x -m 'm 1' --approval-mode auto_edit",
    );
    check(
        "opencode",
        &["--agent", "build"],
        PromptTarget::NewConversation(None),
        "opencode run --format json --auto -m 'm 1' --agent build",
    );
    let around = vec![("GOOSE_MODE".into(), "approve".into())];
    let goose: Agent = "goose".parse().expect("a known one");
    assert_eq!(goose.environment(&around), around);
    assert_eq!(goose.environment(&Vec::new()), [("GOOSE_MODE".into(), "auto".into())]);
}
