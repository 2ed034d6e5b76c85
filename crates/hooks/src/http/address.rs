//! The address of a webhook, and how it is shown.
//!
//! Invariant: the shown address holds no password, no query, and of its path only the first part: many services put the
//! secret of a webhook into the address.

use std::fmt::{self, Display};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use ureq::http::Uri;
use ureq::http::uri::Authority;

use super::WebhookError;

pub(super) struct WebhookUrl {
    https: bool,
    /// In lower case.
    host: String,
    port: u16,
    /// Begins with a slash.
    path: String,
    query: Option<String>,
    /// `user:password`, as it is written.
    credentials: Option<String>,
}

impl WebhookUrl {
    pub(super) fn parse(url: &str) -> Result<Self, WebhookError> {
        let bad = |why: &str| WebhookError::BadAddress { url: "…".to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|_| bad("it cannot be read"))?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("it does not begin with https:// or http://")),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| bad("it names no host"))?;
        let credentials = authority.as_str().rsplit_once('@').map(|(credentials, _)| credentials.to_owned());
        Ok(Self {
            https,
            host: authority.host().to_ascii_lowercase(),
            port: parse_port(authority, https).ok_or_else(|| bad("its port is not a number up to 65535"))?,
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
            credentials,
        })
    }

    /// Returns the address without its credentials: they travel in a header.
    pub(super) fn request_uri(&self) -> Result<Uri, WebhookError> {
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}://{}{}{query}", self.scheme(), self.host_and_port(), self.path);
        url.parse().map_err(|_| WebhookError::BadAddress { url: self.to_string(), why: "it cannot be read".to_owned() })
    }

    fn scheme_name(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }

    /// Returns the host, and the port if it is not the default.
    pub(super) fn host_and_port(&self) -> String {
        if self.port == default_port(self.https) { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Returns the value of the `Authorization` header for the credentials.
    pub(super) fn authorization_header(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let mut plain: Vec<u8> = percent_decode_str(user).collect();
        plain.push(b':');
        plain.extend(percent_decode_str(password));
        Some(format!("Basic {}", BASE64_STANDARD.encode(plain)))
    }
}

/// Shows the address without secrets.
impl Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.credentials.as_deref().map(|credentials| credentials.split_once(':')) {
            None => String::new(),
            // A user without a password is often a token.
            Some(None | Some((_, ""))) => "***@".to_owned(),
            Some(Some((user, _))) => format!("{user}:***@"),
        };
        write!(f, "{}://{who}{}", self.scheme(), self.host_and_port())?;
        match self.path[1..].split_once('/') {
            // The parser took a password with a slash in it for the path.
            _ if self.path.contains('@') => f.write_str("/…")?,
            Some((first, rest)) if !rest.is_empty() => write!(f, "/{first}/…")?,
            _ => f.write_str(&self.path)?,
        }
        f.write_str(if self.query.is_some() { "?…" } else { "" })
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// Returns `None` for a port that is not a number. `Authority::port` would report it as absent.
fn parse_port(authority: &Authority, https: bool) -> Option<u16> {
    let place = authority.as_str().rsplit('@').next().unwrap_or_default();
    match place.strip_prefix(authority.host())?.strip_prefix(':') {
        None | Some("") => Some(default_port(https)),
        Some(port) => port.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn shown(url: &str, expected: &str) {
        let address = WebhookUrl::parse(url).map(|address| address.to_string());
        assert_eq!(address.expect("it can be read"), expected);
    }

    #[test]
    fn secrets_are_not_shown() {
        shown("https://hooks.test/build", "https://hooks.test/build");
        shown("HTTPS://Hooks.Test:443", "https://hooks.test/");
        shown("http://hooks.test:8080/a/", "http://hooks.test:8080/a/");
        shown("https://hooks.test/services/T0/B1/s3cret", "https://hooks.test/services/…");
        shown("https://hooks.test?token=s3cret", "https://hooks.test/?…");
        shown("https://hooks.test/a?token=s3cret#b", "https://hooks.test/a?…");
        shown("https://ann:s3cret@hooks.test/a/b?c", "https://ann:***@hooks.test/a/…?…");
        shown("https://s3cret@hooks.test/", "https://***@hooks.test/");
        shown("https://s3cret:@hooks.test/", "https://***@hooks.test/");
        shown("https://[::1]:8443/x", "https://[::1]:8443/x");
        shown("https://ann:12/s3cret@hooks.test", "https://ann:12/…");
    }

    #[test]
    fn unusable_addresses_say_why_and_show_nothing() {
        for (url, why) in [
            ("", "it cannot be read"),
            ("hooks.test", "it does not begin with https:// or http://"),
            ("/hook", "it does not begin with https:// or http://"),
            ("ftp://ann:s3cret@hooks.test/", "it does not begin with https:// or http://"),
            ("https://ann:s3/cret@hooks.test/", "its port is not a number up to 65535"),
            ("https://hooks.test:99999/", "its port is not a number up to 65535"),
            ("https://hooks test/", "it cannot be read"),
            ("https://", "it cannot be read"),
            ("https://hooks.test/\ns3cret", "it cannot be read"),
        ] {
            match WebhookUrl::parse(url) {
                Err(WebhookError::BadAddress { url: seen, why: said }) => {
                    assert_eq!((&*seen, &*said), ("…", why), "{url}")
                }
                Err(error) => panic!("{url}: {error}"),
                Ok(address) => panic!("{url}: {address}"),
            }
        }
    }

    #[test]
    fn credentials_become_a_header() {
        for (url, header) in [
            ("https://hooks.test/", None),
            ("https://ann:s3cret@hooks.test/", Some("Basic YW5uOnMzY3JldA==")),
            ("https://ann:s3%40cret@hooks.test/", Some("Basic YW5uOnMzQGNyZXQ=")),
            ("https://ann@hooks.test/", Some("Basic YW5uOg==")),
        ] {
            let address = WebhookUrl::parse(url).expect("it can be read");
            assert_eq!(address.authorization().as_deref(), header, "{url}");
            assert!(!address.request_uri().expect("it can be read").to_string().contains('@'));
        }
    }

    proptest! {
        #[test]
        fn shown_address_never_holds_secret(rest in ".{0,40}", secret in "S3[A-Z]{8}") {
            for url in [format!("https://{rest}"), rest.clone(), format!("https://ann:{secret}@h/{rest}?{secret}")] {
                let shown = match WebhookUrl::parse(&url) {
                    Ok(address) => address.to_string(),
                    Err(error) => error.to_string(),
                };
                prop_assert!(!shown.contains(&secret), "{shown}");
            }
        }
    }
}
