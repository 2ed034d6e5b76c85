//! Why a webhook got no response, and what a person can do about it.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::address::WebhookUrl;

/// A request without a response. It may have arrived nevertheless.
#[derive(Debug, Error)]
pub enum WebhookError {
    #[error("cannot use the address {url}: {why}")]
    BadAddress { url: String, why: String },
    #[error("cannot send the header `{name}`: {why}")]
    BadHeader { name: String, why: &'static str },
    #[error("cannot get an answer from {url}: timed out after {after:?}")]
    TimedOut { url: String, after: Duration },
    #[error("cannot make a secure connection to {host}")]
    Tls { host: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// The host is unknown, refuses the connection, or ends it.
    #[error("cannot complete the request to {host}")]
    ConnectionFailed { host: String, source: io::Error },
    #[error("cannot read the answer of {url}: {why}")]
    Malformed { url: String, why: String },
}

impl WebhookError {
    /// Returns what a person can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadAddress { .. } => "write it as https://host/path, with everything else percent-encoded",
            Self::BadHeader { .. } => "check the header and the environment variables in it",
            Self::TimedOut { .. } => "check that the server works, or raise the hook's `timeout`",
            Self::Tls { .. } => {
                "check that the port speaks https, and that its certificate is for this host, still valid, and from a public authority"
            }
            Self::ConnectionFailed { .. } => "check the host and the port, the network, and that the server is running",
            Self::Malformed { .. } => "check that an HTTP server listens there",
        }
    }

    /// Returns whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::ConnectionFailed { .. } | Self::Malformed { .. })
    }

    /// Returns the client's error as ours. The client's own texts may hold addresses, so only those of other layers are kept.
    pub(super) fn from_client_error(error: ureq::Error, address: &WebhookUrl, timeout: Duration) -> Self {
        let (url, host) = (address.to_string(), address.host_and_port());
        match error {
            ureq::Error::Timeout(_) => Self::TimedOut { url, after: timeout },
            // A socket never reports `InvalidData`: only the TLS reader does.
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Self::Tls { host, source: error.into() }
            }
            ureq::Error::Rustls(error) => Self::Tls { host, source: error.into() },
            ureq::Error::Tls(why) => Self::Tls { host, source: why.into() },
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                Self::BadAddress { url, why: "it cannot be read".to_owned() }
            }
            ureq::Error::Protocol(error) => Self::Malformed { url, why: error.to_string() },
            ureq::Error::LargeResponseHeader(..) => Self::Malformed { url, why: "its headers are too long".to_owned() },
            error => Self::ConnectionFailed { host, source: error.into_io() },
        }
    }
}
