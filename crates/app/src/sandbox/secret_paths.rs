//! Files and directories with secrets of a person, by the programs that keep them.

use std::path::{Path, PathBuf};

use crate::environment;

/// Paths below the home directory. A directory is preferred to a file in it: a file that is replaced is no longer hidden.
const HOME_SECRETS: &[&str] = &[
    // Keys and passwords.
    ".ssh",
    ".gnupg",
    ".pki",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/keepassxc",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/1Password",
    ".config/op",
    ".1password",
    ".config/sops",
    ".config/age",
    ".vault-token",
    ".my.cnf",
    ".pgpass",
    // Clouds and clusters.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/rclone",
    ".oci",
    ".kube",
    ".docker",
    ".config/containers/auth.json",
    ".terraform.d",
    ".terraformrc",
    ".fly",
    ".netlify",
    ".vercel",
    ".config/heroku",
    ".boto",
    ".s3cfg",
    // Forges and package registries.
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    ".config/pip",
    ".config/pypoetry",
    ".huggingface",
    ".cache/huggingface/token",
    // Agents.
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".kimi",
    ".copilot",
    ".config/github-copilot",
    ".config/opencode",
    ".local/share/opencode",
    ".config/goose",
    ".local/share/goose",
    ".cursor",
    ".aider.conf.yml",
    ".config/crush",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/Slack",
    ".config/Signal",
    ".var/app",
    "snap/firefox",
    "snap/chromium",
    // Histories hold what was typed, passwords among it.
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".local/share/fish",
    ".python_history",
    ".node_repl_history",
    ".irb_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
    ".local/share/atuin",
];

/// Variables that name a directory with secrets in place of the usual one.
const SECRET_DIRECTORY_VARIABLES: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HISTFILE",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "OPENCODE_CONFIG_DIR",
    "PASSWORD_STORE_DIR",
];

/// Files of the system that only root reads, for the case that root runs an agent.
const SYSTEM_SECRETS: &[&str] =
    &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers.d", "/etc/ssl/private"];

/// Returns the secrets that exist, without links. `home` is the person's home directory.
pub(super) fn find_secret_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let mut candidates: Vec<PathBuf> = SYSTEM_SECRETS.iter().map(PathBuf::from).collect();
    let named = SECRET_DIRECTORY_VARIABLES.iter().filter_map(|name| environment::find_directory_variable(&[name]));
    candidates.extend(named);
    if let Some(home) = home {
        let names = HOME_SECRETS.iter().map(|name| home.join(name));
        candidates.extend(names);
        for (variable, usual) in
            [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("CARGO_HOME", ".cargo")]
        {
            let Some(other) = environment::find_directory_variable(&[variable]) else { continue };
            let below = HOME_SECRETS.iter().filter_map(|name| Path::new(name).strip_prefix(usual).ok());
            candidates.extend(below.map(|name| other.join(name)));
        }
    }
    candidates.extend(environment::state_directory());
    let mut found: Vec<PathBuf> = candidates.iter().filter_map(|path| path.canonicalize().ok()).collect();
    // A variable may name a device, or a directory that holds everything.
    found.retain(|path| !path.starts_with("/dev") && Some(path.as_path()) != home && path.parent().is_some());
    found.sort();
    found.dedup_by(|path, before| path.starts_with(before));
    found
}
