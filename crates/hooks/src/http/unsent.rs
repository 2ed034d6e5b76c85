//! Why there is no answer, and what can be done about it.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::address::Address;
use super::resolver::NotResolved;

/// A request without an answer. It may have arrived all the same.
#[derive(Debug, Error)]
pub enum Unsent {
    #[error("cannot use the address {url}: {why}")]
    BadAddress { url: String, why: String },
    #[error("cannot send the header `{name}`: {why}")]
    BadHeader { name: String, why: &'static str },
    #[error("cannot use the proxy {proxy}")]
    BadProxy { proxy: String },
    #[error("cannot find the host {host}")]
    NotResolved { host: String, source: io::Error },
    #[error("cannot connect to {host}: it refuses the connection")]
    Refused { host: String },
    #[error("cannot get through the proxy {proxy}: {why}")]
    ProxyRefused { proxy: String, why: String },
    #[error("cannot get an answer from {url}: timed out after {after:?}")]
    TimedOut { url: String, after: Duration },
    #[error("cannot agree with {host} on a secure connection")]
    Tls { host: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot keep the connection to {host}")]
    Broken { host: String, source: io::Error },
    #[error("cannot follow {url}: more than {most} redirects")]
    TooManyRedirects { url: String, most: usize },
    #[error("cannot follow the redirect from {from} to {to}: it leads to another server, and nothing was sent there")]
    RedirectedElsewhere { from: String, to: String },
    #[error("cannot read the answer of {url}: {why}")]
    Malformed { url: String, why: String },
}

impl Unsent {
    /// What a person can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadAddress { .. } => "write it as https://host/path, with everything else percent-encoded",
            Self::BadHeader { .. } => "check the header and the environment variables in it",
            Self::BadProxy { .. } => "write it as http://host:port",
            Self::NotResolved { .. } => "check the name, and that this machine can look names up",
            Self::Refused { .. } => "check the port, and that the server is running",
            Self::ProxyRefused { .. } => "check the address of the proxy, its credentials, and what it lets through",
            Self::TimedOut { .. } => "check that the server is well, or raise the hook's `timeout`",
            Self::Tls { .. } => {
                "check that the port speaks https, and that its certificate is for this host, still valid, and from a public authority"
            }
            Self::Broken { .. } => "check the network, and the server's log",
            Self::TooManyRedirects { .. } => "the server may be redirecting in a circle: configure the last address",
            Self::RedirectedElsewhere { .. } => "if you trust the new address, configure it instead",
            Self::Malformed { .. } => "check that an HTTP server listens there",
        }
    }

    /// Whether the same request may fare better later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::NotResolved { .. }
            | Self::Refused { .. }
            | Self::ProxyRefused { .. }
            | Self::TimedOut { .. }
            | Self::Broken { .. }
            | Self::TooManyRedirects { .. }
            | Self::Malformed { .. } => true,
            Self::BadAddress { .. }
            | Self::BadHeader { .. }
            | Self::BadProxy { .. }
            | Self::Tls { .. }
            | Self::RedirectedElsewhere { .. } => false,
        }
    }
}

/// Whom we talked to when something failed.
pub(super) struct Peer<'a> {
    pub(super) address: &'a Address,
    pub(super) proxy: Option<&'a str>,
    pub(super) timeout: Duration,
}

impl Peer<'_> {
    /// The client's error as ours. Its own texts may hold addresses, so that only those of other layers are kept.
    pub(super) fn failed(&self, error: ureq::Error) -> Unsent {
        let url = || self.address.to_string();
        let host = || self.address.host_and_port();
        match error {
            ureq::Error::Timeout(_) => Unsent::TimedOut { url: url(), after: self.timeout },
            ureq::Error::HostNotFound => self.not_resolved(io::Error::other("it has no address")),
            ureq::Error::Other(error) => match error.downcast::<NotResolved>() {
                Ok(error) => self.not_resolved(error.0),
                Err(error) => Unsent::Broken { host: host(), source: io::Error::other(error) },
            },
            ureq::Error::Io(error) => self.broken(error),
            ureq::Error::Rustls(error) => Unsent::Tls { host: host(), source: error.into() },
            ureq::Error::Tls(why) => Unsent::Tls { host: host(), source: why.into() },
            ureq::Error::ConnectProxyFailed(why) => {
                Unsent::ProxyRefused { proxy: self.proxy.map(proxy_origin).unwrap_or_default(), why }
            }
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                Unsent::BadAddress { url: url(), why: "it cannot be read".to_owned() }
            }
            ureq::Error::Protocol(error) => Unsent::Malformed { url: url(), why: error.to_string() },
            ureq::Error::LargeResponseHeader(..) => {
                Unsent::Malformed { url: url(), why: "its headers are too long".to_owned() }
            }
            error => Unsent::Broken { host: host(), source: error.into_io() },
        }
    }

    fn broken(&self, error: io::Error) -> Unsent {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Unsent::Refused { host: self.connected() },
            // Sockets know no such failure: only what reads the secure connection does.
            io::ErrorKind::InvalidData => Unsent::Tls { host: self.address.host_and_port(), source: error.into() },
            _ => Unsent::Broken { host: self.connected(), source: error },
        }
    }

    fn not_resolved(&self, source: io::Error) -> Unsent {
        Unsent::NotResolved { host: self.connected(), source }
    }

    /// The machine at the other end of the connection.
    fn connected(&self) -> String {
        self.proxy.map_or_else(|| self.address.host_and_port(), |proxy| format!("{} (the proxy)", proxy_origin(proxy)))
    }
}

/// A proxy without its credentials. It may be written without a scheme.
pub(super) fn proxy_origin(proxy: &str) -> String {
    let url = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    Address::parse(&url).map_or("…".to_owned(), |address| address.host_and_port())
}
