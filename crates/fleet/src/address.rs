//! The address of a fleet's log: `nats://host:4222/project`, `postgres://host:5432/database/project`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::Serialize;

/// The longest name of a project: it is a part of names of streams.
const MAX_PROJECT_LENGTH: usize = 64;

/// A kind of service that keeps logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    Nats,
    Postgres,
}

/// The servers of a log, and the name of the project there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetAddress {
    service: ServiceKind,
    has_tls_scheme: bool,
    user: Option<String>,
    servers: Vec<ServerEndpoint>,
    /// PostgreSQL only.
    database: Option<String>,
    project: String,
}

/// A host with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEndpoint {
    /// A name or an IP address; for PostgreSQL also the directory of a socket.
    pub host: String,
    pub port: u16,
}

/// A text that is no address of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address of a fleet: {why}")]
pub struct FleetAddressError {
    text: String,
    why: &'static str,
}

impl ServiceKind {
    fn default_port(self) -> u16 {
        match self {
            Self::Nats => 4222,
            Self::Postgres => 5432,
        }
    }
}

impl FleetAddress {
    pub fn service(&self) -> ServiceKind {
        self.service
    }

    pub fn servers(&self) -> &[ServerEndpoint] {
        &self.servers
    }

    /// Returns the user of PostgreSQL, if the address names one.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the database of PostgreSQL.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub fn project(&self) -> &str {
        &self.project
    }

    /// Returns whether connections have to be encrypted. PostgreSQL has one scheme, and needs it for other machines.
    pub fn is_encrypted(&self) -> bool {
        match self.service {
            ServiceKind::Nats => self.has_tls_scheme,
            ServiceKind::Postgres => !self.is_loopback(),
        }
    }

    /// Returns whether all servers are on this machine.
    pub fn is_loopback(&self) -> bool {
        self.servers.iter().all(ServerEndpoint::is_loopback)
    }

    fn scheme(&self) -> &'static str {
        match self.service {
            ServiceKind::Nats if self.has_tls_scheme => "tls",
            ServiceKind::Nats => "nats",
            ServiceKind::Postgres => "postgres",
        }
    }

    /// Returns the addresses of the servers, as a client of NATS takes them.
    pub(crate) fn server_urls(&self) -> Vec<String> {
        self.servers.iter().map(|server| format!("{}://{server}", self.scheme())).collect()
    }
}

impl ServerEndpoint {
    /// Returns whether the server has a socket in a directory instead of a port of a host.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    fn is_loopback(&self) -> bool {
        let is_loopback_ip = || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        self.is_socket() || self.host == "localhost" || is_loopback_ip()
    }

    fn parse(text: &str, service: ServiceKind) -> Result<Self, &'static str> {
        let no_server = "a server is a host name, or a host name with a port";
        let after_host = text.rsplit(']').next().unwrap_or_default();
        let (host, port) = match after_host.rsplit_once(':') {
            Some((_, port)) => (&text[..text.len() - port.len() - 1], port.parse().map_err(|_| no_server)?),
            None => (text, service.default_port()),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = percent_decode_str(host).decode_utf8().map_err(|_| no_server)?.into_owned();
        let is_socket = host.starts_with('/') && service == ServiceKind::Postgres;
        if host.is_empty() || !is_socket && host.contains(['/', '[', ']', '?', '#', ' ']) {
            return Err(no_server);
        }
        Ok(Self { host, port })
    }
}

impl FromStr for FleetAddress {
    type Err = FleetAddressError;

    fn from_str(text: &str) -> Result<Self, FleetAddressError> {
        parse_address(text).map_err(|why| FleetAddressError { text: text.to_owned(), why })
    }
}

fn parse_address(text: &str) -> Result<FleetAddress, &'static str> {
    let (service, has_tls_scheme, rest) = match text.split_once("://") {
        Some(("nats", rest)) => (ServiceKind::Nats, false, rest),
        Some(("tls", rest)) => (ServiceKind::Nats, true, rest),
        Some(("postgres" | "postgresql", rest)) => (ServiceKind::Postgres, true, rest),
        _ => return Err("it has to begin with `nats://`, `tls://` or `postgres://`"),
    };
    let Some((authority, path)) = rest.split_once('/') else { return Err(missing_project(service)) };
    let (user, servers) = match (service, authority.rsplit_once('@')) {
        (ServiceKind::Postgres, Some((user, servers))) if is_plain_name(user) => (Some(user.to_owned()), servers),
        (_, Some(_)) => return Err("credentials do not belong into it; give a file with `--creds`"),
        (_, None) => (None, authority),
    };
    let (database, project) = match (service, path.split_once('/')) {
        (ServiceKind::Postgres, Some((database, project))) if is_plain_name(database) => {
            (Some(database.to_owned()), project)
        }
        (ServiceKind::Postgres, _) => return Err(missing_project(service)),
        (ServiceKind::Nats, _) => (None, path),
    };
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if project.is_empty() || project.len() > MAX_PROJECT_LENGTH || !project.bytes().all(is_name_byte) {
        return Err("the name of the project has 1 to 64 letters, digits, `_` and `-`");
    }
    let servers = servers.split(',').map(|server| ServerEndpoint::parse(server, service)).collect::<Result<_, _>>()?;
    Ok(FleetAddress { service, has_tls_scheme, user, servers, database, project: project.to_owned() })
}

fn missing_project(service: ServiceKind) -> &'static str {
    match service {
        ServiceKind::Nats => "it has to end with the name of the project, as in `nats://localhost:4222/pump`",
        ServiceKind::Postgres => {
            "it has to end with a database and the name of the project, as in `postgres://localhost:5432/work/pump`"
        }
    }
}

/// Returns whether a text is a name without signs that have a meaning in an address.
fn is_plain_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|sign: char| sign.is_whitespace() || "/:@?#%,[]".contains(sign))
}

impl fmt::Display for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            host if self.is_socket() => write!(f, "{}:{}", host.replace('/', "%2F"), self.port),
            host if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

impl fmt::Display for FleetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        let servers: Vec<String> = self.servers.iter().map(ServerEndpoint::to_string).collect();
        write!(f, "{}/", servers.join(","))?;
        if let Some(database) = &self.database {
            write!(f, "{database}/")?;
        }
        f.write_str(&self.project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_servers_with_ports_and_project() {
        for (text, expected, is_loopback, is_encrypted) in [
            ("nats://localhost/pump", "nats://localhost:4222/pump", true, false),
            ("nats://127.0.0.1:7,[::1]:8/a-b_c", "nats://127.0.0.1:7,[::1]:8/a-b_c", true, false),
            ("tls://[::1]/p", "tls://[::1]:4222/p", true, true),
            ("tls://n1.example.org,n2.example.org:4/p", "tls://n1.example.org:4222,n2.example.org:4/p", false, true),
            ("nats://localhost,10.0.0.1/p", "nats://localhost:4222,10.0.0.1:4222/p", false, false),
            ("postgres://localhost/work/pump", "postgres://localhost:5432/work/pump", true, false),
            ("postgresql://me@db:6,db2/work/pump", "postgres://me@db:6,db2:5432/work/pump", false, true),
            ("postgres://%2Frun%2Fpg:7/work/p", "postgres://%2Frun%2Fpg:7/work/p", true, false),
        ] {
            let address: FleetAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), expected, "{text}");
            assert_eq!((address.is_loopback(), address.is_encrypted()), (is_loopback, is_encrypted), "{text}");
            assert_eq!(address.to_string().parse(), Ok(address), "{text}");
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
            ("nats://me@localhost/p", "`--creds`"),
            ("nats://:4222/p", "host name"),
            ("nats://a,,b/p", "host name"),
            ("nats://a:port/p", "host name"),
            ("nats://%2Frun/p", "host name"),
            ("postgres://me:secret@localhost/work/p", "`--creds`"),
            ("postgres://localhost/p", "a database and the name"),
            ("postgres://localhost/work/", "1 to 64"),
            ("postgres://localhost//p", "a database and the name"),
        ] {
            let refused = text.parse::<FleetAddress>().unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
