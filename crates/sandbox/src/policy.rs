//! What a program in a sandbox may do.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a program and its children may do. All paths are absolute, without links. For each file, the innermost path around it
/// decides: a directory below a hidden one may be writable. A path that is in several lists is hidden, or else protected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPolicy {
    /// Files and directories that may be written.
    pub write: Vec<PathBuf>,
    /// Paths that may only be read, below those in `write` or `hidden`.
    pub protected: Vec<PathBuf>,
    /// Paths that can neither be read nor written.
    pub hidden: Vec<PathBuf>,
    /// A directory for temporary files that only this program uses. It may be written.
    pub temporary: PathBuf,
    pub network: NetworkPolicy,
    pub limits: ResourceLimits,
}

/// What a program may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// Nothing.
    #[default]
    None,
    All,
    /// These hosts, through the proxy alone.
    Hosts(Vec<HostPattern>),
}

/// Limits for each process, except the number of processes, which is for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub open_files: Option<u64>,
    pub cpu_seconds: Option<u64>,
}

/// A host that may be reached: a name, an address, or `*.` with a name for all names below it. With a port, only that one; without,
/// ports 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    /// A lower-case name, or an address without brackets.
    name: String,
    /// Whether `name` stands for all names below it.
    covers_subdomains: bool,
    port: Option<u16>,
}

/// A text that is no host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no host: write a name as in `api.example.com`, `*.example.com` or `example.com:8443`, without a path"
)]
pub struct HostPatternError(String);

impl HostPattern {
    /// Returns whether a connection to this host and port is allowed. `host` is a name or an address without brackets.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_port_allowed = self.port.map_or(port == 80 || port == 443, |allowed| allowed == port);
        let is_host_allowed = match self.covers_subdomains {
            true => host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => host == self.name,
        };
        is_port_allowed && is_host_allowed
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || HostPatternError(text.to_owned());
        let (covers_subdomains, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (name, port) = rest.split_once(']').ok_or_else(error)?;
                let name: std::net::Ipv6Addr = name.parse().map_err(|_| error())?;
                (name.to_string(), if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(error)?) })
            }
            None => match rest.split_once(':') {
                Some((name, port)) => (name.to_ascii_lowercase(), Some(port)),
                None => (rest.to_ascii_lowercase(), None),
            },
        };
        let port = port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(error)).transpose()?;
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        let is_label = |label: &str| {
            !label.is_empty() && label.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_')
        };
        if (covers_subdomains && is_address) || !(is_address || name.split('.').all(is_label)) {
            return Err(error());
        }
        Ok(Self { name, covers_subdomains, port })
    }
}

impl TryFrom<String> for HostPattern {
    type Error = HostPatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.covers_subdomains { "*." } else { "" };
        match (self.name.contains(':'), self.port) {
            (false, None) => write!(formatter, "{prefix}{}", self.name),
            (false, Some(port)) => write!(formatter, "{prefix}{}:{port}", self.name),
            (true, None) => write!(formatter, "[{}]", self.name),
            (true, Some(port)) => write!(formatter, "[{}]:{port}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, host: &str, port: u16) -> bool {
        pattern.parse::<HostPattern>().unwrap().allows(host, port)
    }

    #[test]
    fn pattern_allows_its_host_on_web_ports_or_on_its_own() {
        assert!(allows("API.example.com", "api.example.com", 443));
        assert!(allows("api.example.com", "API.example.com.", 80));
        assert!(!allows("api.example.com", "api.example.com", 22));
        assert!(allows("git.example.com:22", "git.example.com", 22));
        assert!(!allows("git.example.com:22", "git.example.com", 443));
        assert!(!allows("example.com", "api.example.com", 443));
        assert!(!allows("example.com", "example.com.evil.org", 443));
        assert!(allows("[::1]:8080", "::1", 8080));
        assert!(allows("127.0.0.1:80", "127.0.0.1", 80));
    }

    #[test]
    fn pattern_with_star_allows_all_names_below_it() {
        assert!(allows("*.example.com", "api.example.com", 443));
        assert!(allows("*.example.com", "a.b.example.com", 443));
        assert!(!allows("*.example.com", "example.com", 443));
        assert!(!allows("*.example.com", "evilexample.com", 443));
        assert!(!allows("*.example.com", ".example.com", 443));
    }

    #[test]
    fn text_that_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "https://example.com",
            "example.com/path",
            "a b",
            "host:0",
            "host:x",
            "*.127.0.0.1",
            "[::1",
            "*a.com",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(HostPatternError(text.to_owned())), "{text}");
        }
        for text in ["api.example.com", "*.example.com:8443", "[::1]:80", "localhost"] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
    }
}
