//! The token for a forge.
//!
//! Invariants:
//! - A token of the environment is only for a host that a person has named: the forge's own, the one of `GH_HOST` or
//!   `GITLAB_HOST`, or that of a configured API. Everyone who works in the repository can change a remote.
//! - `gh` and `glab` get no tokens of the environment, because they would return those for any host.
//! - No output ever shows the token.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use windlass_process::{
    CaptureLimits, Environment, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError,
};

use super::error::token_remedy;
use super::{ForgeError, ForgeProject, ForgeVendor};

const MAX_TOKEN_BYTES: usize = 4096;
const TOKEN_COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that the two programs would return for any host.
const TOKEN_VARIABLES: [&str; 8] = [
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITLAB_TOKEN",
    "GITLAB_ACCESS_TOKEN",
    "GL_TOKEN",
    "OAUTH_TOKEN",
];

#[derive(Clone, PartialEq, Eq)]
pub struct ForgeToken(String);

impl fmt::Debug for ForgeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl ForgeToken {
    /// Finds the token in the environment, or else asks `gh` or `glab`, which `run` starts.
    pub fn find_token(
        site: &ForgeProject,
        environment: &Environment,
        run: impl FnOnce(ProgramSpec) -> Result<ProgramOutcome, ProgramStartError>,
    ) -> Result<Self, ForgeError> {
        let variables = token_variables(site);
        let is_meant = is_environment_meant(site, environment);
        let set = |name: &&&str| variable_value(environment, name).is_some_and(|value| !value.trim().is_empty());
        if let Some(name) = variables.iter().find(set).filter(|_| is_meant) {
            return Self::from_text(variable_value(environment, name).unwrap_or_default(), name);
        }
        let spec = build_token_command(site, environment);
        if let Ok(ProgramOutcome { exit: ProgramExit::Code(0), stdout, .. }) = run(spec) {
            let said = stdout.to_text_lossy();
            if !said.trim().is_empty() {
                return Self::from_text(&said, login_program(site.kind));
            }
        }
        let host = &site.host;
        let remedy = token_remedy(site.kind, host, variables, is_meant);
        Err(ForgeError::NoToken { host: host.to_owned(), remedy })
    }

    fn from_text(text: &str, origin: &str) -> Result<Self, ForgeError> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ForgeError::BadToken { origin: origin.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the value of an `Authorization` header. Both forges accept it for every kind of token.
    pub(super) fn authorization_value(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Masks the token in a text from outside.
    pub(super) fn mask_text(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

/// Returns the variables that may hold a token for this project, the best first.
fn token_variables(site: &ForgeProject) -> &'static [&'static str] {
    match site.kind {
        ForgeVendor::GitHub if site.is_public_forge() => &["GH_TOKEN", "GITHUB_TOKEN"],
        ForgeVendor::GitHub => &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"],
        ForgeVendor::GitLab => &["GITLAB_TOKEN", "GL_TOKEN"],
    }
}

/// Returns whether the tokens of the environment are for this project.
fn is_environment_meant(site: &ForgeProject, environment: &Environment) -> bool {
    let hosts: &[&str] = match site.kind {
        ForgeVendor::GitHub => &["GH_HOST"],
        ForgeVendor::GitLab => &["GITLAB_HOST", "GITLAB_URI", "GL_HOST"],
    };
    let named =
        hosts.iter().find_map(|name| variable_value(environment, name).filter(|value| !value.trim().is_empty()));
    let is_named = named.map(|named| strip_to_host(named).eq_ignore_ascii_case(&site.host));
    match site.kind {
        _ if site.is_named => true,
        ForgeVendor::GitHub => site.is_public_forge() || is_named == Some(true),
        // GitLab has one variable for all hosts: it belongs to the named host, if there is one.
        ForgeVendor::GitLab => is_named.unwrap_or(site.is_public_forge()),
    }
}

/// Returns the host of a setting. `glab` accepts one with or without a scheme and a port.
fn strip_to_host(text: &str) -> &str {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = text.find(['/', ':']).unwrap_or(text.len());
    &text[..end]
}

fn variable_value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.iter().rfind(|(found, _)| found == name).and_then(|(_, value)| value.to_str())
}

fn login_program(kind: ForgeVendor) -> &'static str {
    match kind {
        ForgeVendor::GitHub => "gh",
        ForgeVendor::GitLab => "glab",
    }
}

/// Builds the command that prints the logged-in token. It runs in `/`, where no repository's settings apply.
fn build_token_command(site: &ForgeProject, environment: &Environment) -> ProgramSpec {
    let host = &site.host;
    let arguments: &[&str] = match site.kind {
        ForgeVendor::GitHub => &["gh", "auth", "token", "--hostname", host],
        ForgeVendor::GitLab => &["glab", "config", "get", "token", "--host", host],
    };
    let quiet = [
        ("GH_PROMPT_DISABLED", "1"),
        ("GH_NO_UPDATE_NOTIFIER", "1"),
        ("GLAB_CHECK_UPDATE", "false"),
        ("NO_PROMPT", "true"),
        ("NO_COLOR", "1"),
    ];
    let is_kept =
        |name: &OsString| !TOKEN_VARIABLES.iter().chain(quiet.iter().map(|(name, _)| name)).any(|known| name == known);
    let mut environment: Environment = environment.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    environment.extend(quiet.map(|(name, value)| (name.into(), value.into())));
    ProgramSpec {
        timeout: Some(TOKEN_COMMAND_TIMEOUT),
        grace: Duration::from_secs(1),
        capture: CaptureLimits { head: MAX_TOKEN_BYTES + 2, tail: 0, spill: None },
        ..ProgramSpec::new(ProgramInvocation::Argv(arguments.iter().map(OsString::from).collect()), "/", environment)
    }
}
