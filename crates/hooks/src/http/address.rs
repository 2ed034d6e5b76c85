//! Where a request goes, where a redirect leads, and how an address is shown.
//!
//! Invariants:
//! - What is shown of an address holds no password, no query, and of its path only the first part: many services put the
//!   secret of a webhook into the address.
//! - A redirect never leads to another scheme, host or port, but for the step from `http` to `https` on default ports.

use std::fmt::{self, Display};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use ureq::http::Uri;
use ureq::http::uri::Authority;

use super::Unsent;

#[derive(Clone)]
pub(super) struct Address {
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

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Unsent> {
        let bad = |why: &str| Unsent::BadAddress { url: unread(url), why: why.to_owned() };
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
            port: port(authority, https).ok_or_else(|| bad("its port is not a number up to 65535"))?,
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
            credentials,
        })
    }

    /// The address without its credentials: they travel in a header.
    pub(super) fn uri(&self) -> Result<Uri, Unsent> {
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}{}{query}", self.origin(), self.path);
        url.parse().map_err(|_| Unsent::BadAddress { url: self.to_string(), why: "it cannot be read".to_owned() })
    }

    /// Scheme, host, and the port where it is not the usual one.
    pub(super) fn origin(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}", self.host_and_port())
    }

    pub(super) fn host_and_port(&self) -> String {
        if self.port == usual_port(self.https) { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// What an `Authorization` header says for the credentials.
    pub(super) fn authorization(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let mut plain: Vec<u8> = percent_decode_str(user).collect();
        plain.push(b':');
        plain.extend(percent_decode_str(password));
        Some(format!("Basic {}", BASE64_STANDARD.encode(plain)))
    }

    /// Where a redirect leads. The credentials stay ours, whatever the redirect says.
    pub(super) fn follow(&self, location: &str) -> Result<Self, Unsent> {
        let unusable = |_| Unsent::Malformed { url: self.to_string(), why: "its redirect cannot be read".to_owned() };
        let next = Self::parse(&self.join(location)).map_err(unusable)?;
        let upgraded = !self.https && next.https && self.port == usual_port(false) && next.port == usual_port(true);
        let same = self.https == next.https && self.port == next.port;
        if self.host != next.host || !(same || upgraded) {
            return Err(Unsent::RedirectedElsewhere { from: self.origin(), to: next.origin() });
        }
        Ok(Self { credentials: self.credentials.clone(), ..next })
    }

    /// A reference as a whole address.
    fn join(&self, location: &str) -> String {
        let location = location.split('#').next().unwrap_or_default();
        if has_scheme(location) {
            return location.to_owned();
        }
        let scheme = if self.https { "https" } else { "http" };
        if location.starts_with("//") {
            return format!("{scheme}:{location}");
        }
        let (path, query) = location.split_once('?').map_or((location, None), |(path, query)| (path, Some(query)));
        let query = if location.is_empty() { self.query.as_deref() } else { query };
        let path = match path {
            "" => self.path.clone(),
            path if path.starts_with('/') => without_dots(path),
            path => without_dots(&format!("{}/{path}", self.path.rsplit_once('/').map_or("", |(folder, _)| folder))),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{path}{query}", self.origin())
    }
}

/// Without what may be secret.
impl Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.credentials.as_deref().map(|credentials| credentials.split_once(':')) {
            None => String::new(),
            // A user without a password is often a token.
            Some(None | Some((_, ""))) => "***@".to_owned(),
            Some(Some((user, _))) => format!("{user}:***@"),
        };
        write!(f, "{}://{who}{}", if self.https { "https" } else { "http" }, self.host_and_port())?;
        match self.path[1..].split_once('/') {
            // A password with a slash in it was taken for the path.
            _ if self.path.contains('@') => f.write_str("/…")?,
            Some((first, rest)) if !rest.is_empty() => write!(f, "/{first}/…")?,
            _ => f.write_str(&self.path)?,
        }
        f.write_str(if self.query.is_some() { "?…" } else { "" })
    }
}

/// What can be shown of an address that nobody can read: anything in it may be a secret.
fn unread(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) if has_scheme(&format!("{scheme}:")) => format!("{scheme}://…"),
        _ => "…".to_owned(),
    }
}

fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

fn usual_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// The authority may hold a port that is none, and is not asked for it then.
fn port(authority: &Authority, https: bool) -> Option<u16> {
    let place = authority.as_str().rsplit('@').next().unwrap_or_default();
    match place.strip_prefix(authority.host())?.strip_prefix(':') {
        None | Some("") => Some(usual_port(https)),
        Some(port) => port.parse().ok(),
    }
}

/// A path whose `.` and `..` have been followed.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let folder = matches!(path.rsplit('/').next(), Some("." | "..")) && !parts.is_empty();
    format!("/{}{}", parts.join("/"), if folder { "/" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn shown(url: &str, expected: &str) {
        let address = Address::parse(url).map(|address| address.to_string());
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
        for (url, shown, why) in [
            ("", "…", "it cannot be read"),
            ("hooks.test", "…", "it does not begin with https:// or http://"),
            ("/hook", "…", "it does not begin with https:// or http://"),
            ("ftp://ann:s3cret@hooks.test/", "ftp://…", "it does not begin with https:// or http://"),
            ("https://ann:s3/cret@hooks.test/", "https://…", "its port is not a number up to 65535"),
            ("https://hooks.test:99999/", "https://…", "its port is not a number up to 65535"),
            ("https://hooks test/", "https://…", "it cannot be read"),
            ("https://", "https://…", "it cannot be read"),
            ("https://hooks.test/\ns3cret", "https://…", "it cannot be read"),
        ] {
            match Address::parse(url) {
                Err(Unsent::BadAddress { url: seen, why: said }) => assert_eq!((&*seen, &*said), (shown, why), "{url}"),
                Err(error) => panic!("{url}: {error}"),
                Ok(address) => panic!("{url}: {address}"),
            }
        }
    }

    #[track_caller]
    fn leads(from: &str, location: &str, expected: Option<&str>) {
        let to = Address::parse(from).expect("it can be read").follow(location);
        assert_eq!(to.ok().and_then(|to| to.uri().ok()).map(|to| to.to_string()).as_deref(), expected, "{location}");
    }

    #[test]
    fn redirects_stay_where_they_are() {
        let from = "http://hooks.test/a/b?c";
        for (location, to) in [
            ("/d", "http://hooks.test/d"),
            ("d?e", "http://hooks.test/a/d?e"),
            ("../d", "http://hooks.test/d"),
            ("../../..", "http://hooks.test/"),
            ("./d/.", "http://hooks.test/a/d/"),
            ("?d", "http://hooks.test/a/b?d"),
            ("", "http://hooks.test/a/b?c"),
            ("#d", "http://hooks.test/a/b?c"),
            ("//hooks.test/d", "http://hooks.test/d"),
            ("http://HOOKS.test:80/d", "http://hooks.test/d"),
            ("http://eve:x@hooks.test/d", "http://hooks.test/d"),
            ("https://hooks.test/d", "https://hooks.test/d"),
        ] {
            leads(from, location, Some(to));
        }
        for location in ["http://other.test/", "//other.test/d", "http://hooks.test:81/", "https://hooks.test:8443/"] {
            leads(from, location, None);
        }
        leads("https://hooks.test/", "http://hooks.test/", None);
        leads("http://hooks.test:8080/", "https://hooks.test/", None);
        leads(from, "http://hooks.test@other.test/", None);
        leads(from, "ftp://hooks.test/", None);
    }

    #[test]
    fn credentials_become_a_header() {
        for (url, header) in [
            ("https://hooks.test/", None),
            ("https://ann:s3cret@hooks.test/", Some("Basic YW5uOnMzY3JldA==")),
            ("https://ann:s3%40cret@hooks.test/", Some("Basic YW5uOnMzQGNyZXQ=")),
            ("https://ann@hooks.test/", Some("Basic YW5uOg==")),
        ] {
            let address = Address::parse(url).expect("it can be read");
            assert_eq!(address.authorization().as_deref(), header, "{url}");
            assert!(!address.uri().expect("it can be read").to_string().contains('@'));
        }
    }

    proptest! {
        #[test]
        fn no_redirect_leads_away(https: bool, port in prop_oneof![Just(80), Just(443), 1..9_u16], location in r"(https?:)?/{0,3}[hx.@:/\\?#%a-z0-9]{0,12}(hooks\.test)?[@:/\\?#.]{0,3}.{0,8}") {
            let from = format!("http{}://hooks.test:{port}/a/b?c", if https { "s" } else { "" });
            let from = Address::parse(&from).expect("it can be read");
            if let Ok(to) = from.follow(&location) {
                let uri = to.uri().expect("it can be read again");
                prop_assert_eq!(uri.host(), Some("hooks.test"));
                let upgraded = !from.https && to.https && (from.port, to.port) == (80, 443);
                prop_assert!(upgraded || (from.https, from.port) == (to.https, to.port));
                prop_assert_eq!(Address::parse(&uri.to_string()).expect("it was one").origin(), to.origin());
            }
        }

        #[test]
        fn no_text_is_too_strange_to_be_shown(rest in ".{0,40}", secret in "S3[A-Z]{8}") {
            for url in [format!("https://{rest}"), rest.clone(), format!("https://ann:{secret}@h/{rest}?{secret}")] {
                let shown = match Address::parse(&url) {
                    Ok(address) => address.to_string(),
                    Err(error) => error.to_string(),
                };
                prop_assert!(!shown.contains(&secret), "{shown}");
            }
        }
    }
}
