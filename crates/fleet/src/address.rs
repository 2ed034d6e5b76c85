//! The address of a fleet's log: `nats://host:4222/project`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

const DEFAULT_PORT: u16 = 4222;
/// The longest name of a project: it is a part of names of streams.
const MAX_PROJECT_LENGTH: usize = 64;

/// The servers of a log, and the name of the project there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetAddress {
    is_encrypted: bool,
    /// Each with its port.
    servers: Vec<String>,
    project: String,
}

/// A text that is no address of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address of a fleet: {why}")]
pub struct FleetAddressError {
    text: String,
    why: &'static str,
}

impl FleetAddress {
    /// Returns the addresses of the servers, as a client takes them.
    pub fn server_urls(&self) -> Vec<String> {
        let scheme = if self.is_encrypted { "tls" } else { "nats" };
        self.servers.iter().map(|server| format!("{scheme}://{server}")).collect()
    }

    pub fn project(&self) -> &str {
        &self.project
    }

    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Returns whether all servers are on this machine.
    pub fn is_loopback(&self) -> bool {
        self.servers.iter().all(|server| {
            let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    }
}

impl FromStr for FleetAddress {
    type Err = FleetAddressError;

    fn from_str(text: &str) -> Result<Self, FleetAddressError> {
        let refuse = |why| Err(FleetAddressError { text: text.to_owned(), why });
        let (is_encrypted, rest) = match text.split_once("://") {
            Some(("nats", rest)) => (false, rest),
            Some(("tls", rest)) => (true, rest),
            _ => return refuse("it has to begin with `nats://` or `tls://`"),
        };
        let Some((servers, project)) = rest.split_once('/') else {
            return refuse("it has to end with the name of the project, as in `nats://localhost:4222/pump`");
        };
        if servers.contains('@') {
            return refuse("credentials do not belong into it; give a file with `--creds`");
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if project.is_empty() || project.len() > MAX_PROJECT_LENGTH || !project.bytes().all(is_name) {
            return refuse("the name of the project has 1 to 64 letters, digits, `_` and `-`");
        }
        let mut found = Vec::new();
        for server in servers.split(',') {
            let after_host = server.rsplit(']').next().unwrap_or_default();
            let (host, port) = match after_host.rsplit_once(':') {
                Some((_, port)) => (&server[..server.len() - port.len() - 1], Some(port)),
                None => (server, None),
            };
            if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) {
                return refuse("a server is a host name, or a host name with a port");
            }
            found.push(if port.is_some() { server.to_owned() } else { format!("{server}:{DEFAULT_PORT}") });
        }
        Ok(Self { is_encrypted, servers: found, project: project.to_owned() })
    }
}

impl fmt::Display for FleetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "tls" } else { "nats" };
        write!(f, "{scheme}://{}/{}", self.servers.join(","), self.project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_servers_with_ports_and_project() {
        for (text, expected, is_loopback) in [
            ("nats://localhost/pump", "nats://localhost:4222/pump", true),
            ("nats://127.0.0.1:7,[::1]:8/a-b_c", "nats://127.0.0.1:7,[::1]:8/a-b_c", true),
            ("tls://[::1]/p", "tls://[::1]:4222/p", true),
            ("tls://n1.example.org,n2.example.org:4/p", "tls://n1.example.org:4222,n2.example.org:4/p", false),
            ("nats://localhost,10.0.0.1/p", "nats://localhost:4222,10.0.0.1:4222/p", false),
        ] {
            let address: FleetAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.is_loopback()), (expected, is_loopback), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_address_is_refused_with_reason() {
        for (text, why) in [
            ("localhost:4222", "begin with `nats://`"),
            ("nats://localhost", "name of the project"),
            ("nats://localhost/", "1 to 64"),
            ("nats://localhost/a.b", "1 to 64"),
            ("nats://me:secret@localhost/p", "`--creds`"),
            ("nats://:4222/p", "host name"),
            ("nats://a,,b/p", "host name"),
            ("nats://a:port/p", "host name"),
        ] {
            let refused = text.parse::<FleetAddress>().unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
