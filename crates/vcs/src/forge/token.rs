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

use windlass_process::{Capture, Environment, Exit, Finished, Invocation, NotStarted, Spec};

use super::error::remedy;
use super::{ForgeError, Kind, Site};

const LONGEST: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(10);

/// Variables that the two programs would return for any host.
const TOKENS: [&str; 8] = [
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
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// Finds the token in the environment, or else asks `gh` or `glab`, which `run` starts.
    pub fn find(
        site: &Site,
        environment: &Environment,
        run: impl FnOnce(Spec) -> Result<Finished, NotStarted>,
    ) -> Result<Self, ForgeError> {
        let variables = variables(site);
        let is_meant = is_meant(site, environment);
        let set = |name: &&&str| value(environment, name).is_some_and(|value| !value.trim().is_empty());
        if let Some(name) = variables.iter().find(set).filter(|_| is_meant) {
            return Self::checked(value(environment, name).unwrap_or_default(), name);
        }
        let spec = question(site, environment);
        if let Ok(Finished { exit: Exit::Code(0), stdout, .. }) = run(spec) {
            let said = stdout.text();
            if !said.trim().is_empty() {
                return Self::checked(&said, program(site.kind));
            }
        }
        let host = &site.host;
        let remedy = remedy(site.kind, host, variables, is_meant);
        Err(ForgeError::NoToken { host: host.to_owned(), remedy })
    }

    fn checked(text: &str, origin: &str) -> Result<Self, ForgeError> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ForgeError::BadToken { origin: origin.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the value of an `Authorization` header. Both forges accept it for every kind of token.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Masks the token in a text from outside.
    pub(super) fn masked(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

/// Returns the variables that may hold a token for this project, the best first.
fn variables(site: &Site) -> &'static [&'static str] {
    match site.kind {
        Kind::GitHub if site.is_public() => &["GH_TOKEN", "GITHUB_TOKEN"],
        Kind::GitHub => &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"],
        Kind::GitLab => &["GITLAB_TOKEN", "GL_TOKEN"],
    }
}

/// Returns whether the tokens of the environment are for this project.
fn is_meant(site: &Site, environment: &Environment) -> bool {
    let hosts: &[&str] = match site.kind {
        Kind::GitHub => &["GH_HOST"],
        Kind::GitLab => &["GITLAB_HOST", "GITLAB_URI", "GL_HOST"],
    };
    let named = hosts.iter().find_map(|name| value(environment, name).filter(|value| !value.trim().is_empty()));
    let is_named = named.map(|named| host_of(named).eq_ignore_ascii_case(&site.host));
    match site.kind {
        _ if site.is_named => true,
        Kind::GitHub => site.is_public() || is_named == Some(true),
        // GitLab has one variable for all hosts: it belongs to the named host, if there is one.
        Kind::GitLab => is_named.unwrap_or(site.is_public()),
    }
}

/// Returns the host of a setting. `glab` accepts one with or without a scheme and a port.
fn host_of(text: &str) -> &str {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = text.find(['/', ':']).unwrap_or(text.len());
    &text[..end]
}

fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.iter().rfind(|(found, _)| found == name).and_then(|(_, value)| value.to_str())
}

fn program(kind: Kind) -> &'static str {
    match kind {
        Kind::GitHub => "gh",
        Kind::GitLab => "glab",
    }
}

/// Builds the command that prints the logged-in token. It runs in `/`, where no repository's settings apply.
fn question(site: &Site, environment: &Environment) -> Spec {
    let host = &site.host;
    let arguments: &[&str] = match site.kind {
        Kind::GitHub => &["gh", "auth", "token", "--hostname", host],
        Kind::GitLab => &["glab", "config", "get", "token", "--host", host],
    };
    let quiet = [
        ("GH_PROMPT_DISABLED", "1"),
        ("GH_NO_UPDATE_NOTIFIER", "1"),
        ("GLAB_CHECK_UPDATE", "false"),
        ("NO_PROMPT", "true"),
        ("NO_COLOR", "1"),
    ];
    let is_kept = |name: &OsString| !TOKENS.iter().chain(quiet.iter().map(|(name, _)| name)).any(|known| name == known);
    let mut environment: Environment = environment.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    environment.extend(quiet.map(|(name, value)| (name.into(), value.into())));
    Spec {
        timeout: Some(PATIENCE),
        grace: Duration::from_secs(1),
        capture: Capture { head: LONGEST + 2, tail: 0, spill: None },
        ..Spec::new(Invocation::Argv(arguments.iter().map(OsString::from).collect()), "/", environment)
    }
}
