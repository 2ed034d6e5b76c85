//! Errors of forges: what a person can do, and whether another attempt helps.
//!
//! Invariant: no message holds a token, or the credentials of an address.

use std::error::Error;
use std::io;
use std::time::Duration;

use thiserror::Error;

use super::ForgeVendor;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ForgeError {
    #[error("cannot use the address of the remote: {why}")]
    BadRemote { why: &'static str },
    #[error("cannot use the project `{project}` on {host}: {why}")]
    BadProject { host: String, project: String, why: &'static str },
    #[error("cannot use the forge's `api`: {why}")]
    BadApi { why: &'static str },
    #[error("cannot tell which kind of forge {host} is")]
    UnknownKind { host: String },
    #[error("cannot use {name:?} as the name of a branch")]
    BadBranch { name: String },
    #[error("cannot use {name:?} as a commit: its whole name is needed")]
    BadCommit { name: String },
    #[error("cannot find a token for {host}")]
    NoToken { host: String, remedy: String },
    #[error("cannot use the token from {origin}: it holds characters that no token has")]
    BadToken { origin: String },
    #[error("cannot use the proxy of the environment for {host}")]
    BadProxy { host: String },
    #[error("cannot work with {host}: it does not accept the token (401): {why}")]
    Unauthorized { host: String, why: String },
    #[error("cannot work with `{project}` on {host}: it is forbidden: {why}")]
    Forbidden { host: String, project: String, why: String },
    #[error("cannot find the resource in `{project}` on {host} (404): {why}")]
    NotFound { host: String, project: String, why: String },
    #[error("cannot ask {host} now: its rate limit is reached")]
    Limited { host: String, after: Option<Duration> },
    #[error("cannot get an answer from {host}: it failed ({status}): {why}")]
    Failing { host: String, status: u16, why: String, after: Option<Duration> },
    #[error("cannot complete the request on {host}: it refused ({status}): {why}")]
    Refused { host: String, status: u16, why: String },
    #[error("cannot reach {host}")]
    Unreached { host: String, source: io::Error },
    #[error("cannot make a secure connection to {host}")]
    Tls { host: String, source: Box<dyn Error + Send + Sync> },
    #[error("cannot get an answer from {host}: timed out after {after:?}")]
    TimedOut { host: String, after: Duration },
    #[error("cannot read the answer of {host}: {why}")]
    Malformed { host: String, why: String },
    #[error("cannot read the answer of {host}: it is longer than {most} bytes")]
    TooLong { host: String, most: usize },
    #[error("cannot work with `{project}` on {host}: it has moved, and no redirect is followed")]
    Redirected { host: String, project: String },
    #[error("cannot find the change of {branch:?} that {host} says is there")]
    Hidden { host: String, branch: String },
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Not before a person acts.
    Never,
    /// Not before this time, if the forge gave one. The request may have succeeded all the same: the next attempt checks
    /// that first.
    After(Option<Duration>),
}

impl ForgeError {
    pub fn retry_advice(&self) -> RetryAdvice {
        match self {
            Self::Limited { after, .. } | Self::Failing { after, .. } => RetryAdvice::After(*after),
            Self::Unreached { .. } | Self::TimedOut { .. } | Self::Malformed { .. } | Self::Hidden { .. } => {
                RetryAdvice::After(None)
            }
            _ => RetryAdvice::Never,
        }
    }

    /// Returns what a person can do.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::NoToken { remedy, .. } => return remedy.clone(),
            Self::Limited { after: Some(after), .. } => return format!("try again in {} seconds", after.as_secs()),
            Self::BadRemote { .. } => {
                "write it as https://host/owner/project.git or git@host:owner/project.git (`git remote set-url`)"
            }
            Self::BadProject { .. } => "check the remote's address, or set `project` of `forge`",
            Self::BadApi { .. } => {
                "write it as https://host/api/v3 (GitHub Enterprise) or https://host/api/v4 (GitLab)"
            }
            Self::UnknownKind { .. } => "set `kind` of `forge` to github or gitlab",
            Self::BadBranch { .. } | Self::BadCommit { .. } => "check what it was taken from",
            Self::BadToken { .. } => "set it again, without spaces and line ends",
            Self::BadProxy { .. } => "write `https_proxy` as http://host:port",
            Self::Unauthorized { .. } => "the token may have run out or been taken back: make a new one",
            Self::Forbidden { .. } | Self::NotFound { .. } => {
                "check the remote, and that the token may write changes of this project (GitHub: `repo`, or contents and \
                 pull requests; GitLab: `api`)"
            }
            Self::Limited { after: None, .. } => "try again in a few minutes",
            Self::Failing { .. } => "try again; if the error stays, look at the status page of the forge",
            Self::Refused { .. } => "see what it says",
            Self::Unreached { .. } => "check the name of the host and the network",
            Self::Tls { .. } => "check that the certificate is for this host, still valid, and from a public authority",
            Self::TimedOut { .. } => "check the network and try again: the request may have succeeded",
            Self::Malformed { .. } | Self::TooLong { .. } => "check that `api` of `forge` is the address of an API",
            Self::Redirected { .. } => {
                "set the remote to the project's new address (`git remote set-url`), or `api` of `forge`"
            }
            Self::Hidden { .. } => "try again in a moment: forges need some time to list what is new",
        };
        hint.to_owned()
    }
}

/// Returns how a person can provide a token.
pub(super) fn token_remedy(kind: ForgeVendor, host: &str, variables: &[&str], is_named: bool) -> String {
    let (program, name) = match kind {
        ForgeVendor::GitHub => ("gh", "GH_HOST"),
        ForgeVendor::GitLab => ("glab", "GITLAB_HOST"),
    };
    let (login, variable) = (format!("{program} auth login --hostname {host}"), variables[0]);
    match is_named {
        true => format!("set {variable}, or run `{login}`"),
        false => {
            format!("run `{login}`; or set {name} to {host} or `api` of `forge`, so that {variable} is meant for it")
        }
    }
}
