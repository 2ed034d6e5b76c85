//! The configuration of each agent, which makes the agent use only the scripted model.

/// An installed agent and its configuration.
pub struct InstalledAgent {
    pub program: &'static str,
    /// The arguments for a session without a terminal.
    pub headless: &'static [&'static str],
    /// The environment variables. `@MODEL@` stands for the address of the model.
    pub environment: &'static [(&'static str, &'static str)],
    /// The files below the home directory of the agent.
    pub files: &'static [(&'static str, &'static str)],
}

pub const GOOSE: InstalledAgent = InstalledAgent {
    program: "goose",
    headless: &[
        "run",
        "-q",
        "--no-session",
        "--with-builtin",
        "developer",
        "--output-format",
        "stream-json",
        "-t",
        "Mend notes.txt",
    ],
    environment: &[
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "stub"),
        ("GOOSE_MODE", "auto"),
        ("OPENAI_HOST", "@MODEL@"),
        ("OPENAI_BASE_PATH", "v1/chat/completions"),
        ("OPENAI_API_KEY", "dummy"),
        ("GOOSE_DISABLE_KEYRING", "1"),
    ],
    files: &[],
};

pub const CODEX: InstalledAgent = InstalledAgent {
    program: "codex",
    headless: &[
        "exec",
        "--json",
        "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox",
        "Mend notes.txt",
    ],
    environment: &[("STUB_KEY", "dummy")],
    files: &[(
        ".codex/config.toml",
        r#"model = "stub"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "@MODEL@/v1"
env_key = "STUB_KEY"
wire_api = "responses"
supports_websockets = false
"#,
    )],
};

pub const OPENCODE: InstalledAgent = InstalledAgent {
    program: "opencode",
    headless: &["run", "--format", "json", "--auto", "Mend notes.txt"],
    environment: &[("OPENCODE_DISABLE_MODELS_FETCH", "1")],
    files: &[
        // Without this file, the agent waits a minute for unreachable hosts.
        (".npmrc", "fetch-retries=0\n"),
        (
            ".config/opencode/opencode.json",
            r#"{"model": "stub/stub", "provider": {"stub": {"npm": "@ai-sdk/openai-compatible", "name": "stub",
                "options": {"baseURL": "@MODEL@/v1", "apiKey": "dummy"}, "models": {"stub": {"name": "stub"}}}}}"#,
        ),
    ],
};

pub const CLAUDE: InstalledAgent = InstalledAgent {
    program: "claude",
    headless: &[
        "-p",
        "Mend notes.txt",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypassPermissions",
    ],
    environment: &[
        ("ANTHROPIC_BASE_URL", "@MODEL@"),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // The agent runs as root in its own namespace.
        ("IS_SANDBOX", "1"),
    ],
    files: &[],
};

pub const GEMINI: InstalledAgent = InstalledAgent {
    program: "gemini",
    headless: &["-y", "--skip-trust", "-o", "stream-json", "-p", "Mend notes.txt"],
    environment: &[
        ("GEMINI_API_KEY", "dummy"),
        ("GOOGLE_GEMINI_BASE_URL", "@MODEL@"),
        ("GEMINI_MODEL", "gemini-2.5-pro"),
    ],
    files: &[(
        ".gemini/settings.json",
        r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}"#,
    )],
};

pub const QWEN: InstalledAgent = InstalledAgent {
    program: "qwen",
    headless: &["-y", "-o", "stream-json", "Mend notes.txt"],
    environment: &[
        ("OPENAI_API_KEY", "dummy"),
        ("OPENAI_BASE_URL", "@MODEL@/v1"),
        ("OPENAI_MODEL", "stub"),
        ("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
    ],
    files: &[(
        ".qwen/settings.json",
        r#"{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}}"#,
    )],
};

pub const COPILOT: InstalledAgent = InstalledAgent {
    program: "copilot",
    headless: &["--allow-all-tools", "--output-format", "json", "-p", "Mend notes.txt"],
    environment: &[
        ("COPILOT_PROVIDER_BASE_URL", "@MODEL@/v1"),
        ("COPILOT_PROVIDER_TYPE", "openai"),
        ("COPILOT_PROVIDER_API_KEY", "dummy"),
        ("COPILOT_MODEL", "stub"),
        ("COPILOT_OFFLINE", "true"),
    ],
    files: &[],
};

pub const KIMI: InstalledAgent = InstalledAgent {
    program: "kimi",
    headless: &["--output-format", "stream-json", "-p", "Mend notes.txt"],
    environment: &[],
    files: &[(
        ".kimi-code/config.toml",
        r#"default_model = "stub"
[providers.stub]
type = "openai"
base_url = "@MODEL@/v1"
api_key = "dummy"
[models.stub]
provider = "stub"
model = "stub"
max_context_size = 100000
"#,
    )],
};
