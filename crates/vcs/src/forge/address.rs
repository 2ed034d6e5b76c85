//! The address of an API: the only place where a token may go.
//!
//! Invariant: the address is `https`, or it does not leave this machine.

use std::fmt;
use std::net::Ipv4Addr;

use ureq::http::Uri;

use super::ForgeError;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct ApiAddress {
    https: bool,
    /// In lower case.
    pub(super) host: String,
    pub(super) port: u16,
    /// Without a slash at its end.
    pub(super) path: String,
}

/// An address has no credentials that could be shown.
impl fmt::Debug for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

impl ApiAddress {
    /// Parses an address from the configuration.
    pub(super) fn parse(url: &str) -> Result<Self, ForgeError> {
        let address = Self::parse_url(url).map_err(|why| ForgeError::BadApi { why })?;
        if !address.https && !address.is_loopback() {
            return Err(ForgeError::BadApi {
                why: "a token does not travel unencrypted: it has to begin with https://",
            });
        }
        Ok(address)
    }

    /// Returns the address of a host that the module `remote` has checked.
    pub(super) fn for_host(host: &str, port: Option<u16>, path: &str) -> Self {
        Self { https: true, host: host.to_owned(), port: port.unwrap_or(443), path: path.to_owned() }
    }

    fn parse_url(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "it cannot be read")?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("it does not begin with https://"),
        };
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("it holds credentials");
        }
        if uri.query().is_some() {
            return Err("it holds a query");
        }
        let host = authority.host().to_ascii_lowercase();
        if !is_host(&host) {
            return Err("it names no host");
        }
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
            None | Some("") => default_port(https),
            Some(port) => port.parse().map_err(|_| "its port is not a number up to 65535")?,
        };
        Ok(Self { https, host, port, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Returns the host, and the port if it is not the default.
    pub(super) fn host_and_port(&self) -> String {
        if self.port == default_port(self.https) { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    pub(super) fn origin(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.host_and_port())
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host == "[::1]"
            || self.host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// Returns whether a text is a host name or an IP address. A text that resembles an option is not.
pub(super) fn is_host(text: &str) -> bool {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bare {
        Some(number) => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':'),
        None => {
            !text.is_empty()
                && text.len() <= 253
                && !text.starts_with(['-', '.'])
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_address_is_accepted_only_if_local_or_encrypted() {
        for (url, shown) in [
            ("https://ghe.test/api/v3/", "https://ghe.test/api/v3"),
            ("HTTPS://GitLab.Test:8443/api/v4", "https://gitlab.test:8443/api/v4"),
            ("http://127.0.0.1:8080/api/v4", "http://127.0.0.1:8080/api/v4"),
            ("http://localhost/api", "http://localhost/api"),
            ("http://[::1]:81", "http://[::1]:81"),
        ] {
            assert_eq!(format!("{:?}", ApiAddress::parse(url).unwrap()), shown);
        }
        for url in [
            "http://ghe.test/api/v3",
            "http://127.0.0.1.ghe.test/",
            "https://ann:s3cret@ghe.test/",
            "https://s3cret@ghe.test/",
            "https://ghe.test/?token=s3cret",
            "https://-ghe.test/",
            "https://ghe.test:99999/",
            "ftp://ghe.test/",
            "ghe.test",
            "",
        ] {
            let error = ApiAddress::parse(url).unwrap_err();
            assert!(matches!(error, ForgeError::BadApi { .. }), "{url}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
