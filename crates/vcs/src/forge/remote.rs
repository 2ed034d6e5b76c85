//! The host and the project that the address of a remote names.
//!
//! Addresses come with a repository, and may hold any text. The parser drops credentials, and no message shows an address
//! that it cannot parse.

use super::ForgeError;
use super::address::is_host;

const MAX_ADDRESS_BYTES: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteAddress {
    /// In lower case.
    pub(super) host: String,
    /// The port of the host's pages, if the address names one that is not the default.
    pub(super) port: Option<u16>,
    /// Without slashes around it, and without `.git`.
    pub(super) path: String,
}

/// Returns `None` for a path on this machine, or a protocol that no forge supports.
pub(super) fn parse_remote(url: &str) -> Result<Option<RemoteAddress>, ForgeError> {
    let bad = |why| Err(ForgeError::BadRemote { why });
    if url.contains(char::is_control) {
        return bad("it holds control characters");
    }
    if url.starts_with('-') {
        return bad("it looks like an option");
    }
    if url.len() > MAX_ADDRESS_BYTES {
        return bad("it is too long");
    }
    let Some((scheme, rest)) = url.split_once("://") else { return parse_short_form(url) };
    let is_web = match scheme.to_ascii_lowercase().as_str() {
        "https" | "http" => true,
        "ssh" | "git+ssh" | "ssh+git" | "git" => false,
        _ => return Ok(None),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let place = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (place, ""),
    };
    let port = match port.parse() {
        Ok(port) => Some(port),
        Err(_) if port.is_empty() => None,
        Err(_) => return bad("its port is not a number up to 65535"),
    };
    // The port of ssh does not apply to pages, and that of `http` not to `https`.
    let is_secure = is_web && scheme.eq_ignore_ascii_case("https");
    build_remote(host, port.filter(|port| is_secure && *port != 443), path).map(Some)
}

/// Parses `git@host:owner/project.git`, or a path.
fn parse_short_form(url: &str) -> Result<Option<RemoteAddress>, ForgeError> {
    let end = url.find('/').unwrap_or(url.len());
    let after_brackets = url.find(']').filter(|_| url.contains('[')).unwrap_or(0);
    let Some(colon) = url[after_brackets..end.max(after_brackets)].find(':').map(|at| at + after_brackets) else {
        return Ok(None);
    };
    let (place, path) = (&url[..colon], &url[colon + 1..]);
    // Remote helpers of git, such as `ext::sh -c …`.
    if path.starts_with(':') {
        return Ok(None);
    }
    build_remote(place.rsplit('@').next().unwrap_or_default(), None, path).map(Some)
}

fn build_remote(host: &str, port: Option<u16>, path: &str) -> Result<RemoteAddress, ForgeError> {
    if host.starts_with('-') || path.split('/').any(|part| part.starts_with('-')) {
        return Err(ForgeError::BadRemote { why: "a part of it looks like an option" });
    }
    if !is_host(host) {
        return Err(ForgeError::BadRemote { why: "it names no host" });
    }
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    Ok(RemoteAddress { host: host.to_ascii_lowercase(), port, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        let seen = match parse_remote(url) {
            Ok(Some(RemoteAddress { host, port, path })) => {
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                format!("{host}{port} {path}")
            }
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string().replace("cannot use the address of the remote: ", "refused: "),
        };
        assert_eq!(seen, expected, "{url}");
    }

    #[test]
    fn hosts_and_projects_are_found() {
        check("https://github.com/o/r", "github.com o/r");
        check("https://github.com/o/r.git", "github.com o/r");
        check("https://github.com/o/r.git/", "github.com o/r");
        check("HTTPS://GitHub.com:443/o/r", "github.com o/r");
        check("https://gitlab.test:8443/a/b/c.git", "gitlab.test:8443 a/b/c");
        check("http://gitlab.test:8080/a/b", "gitlab.test a/b");
        check("git@github.com:o/r.git", "github.com o/r");
        check("github.com:/o/r.git", "github.com o/r");
        check("ssh://git@host:22/o/r", "host o/r");
        check("ssh://git@[::1]:2222/o/r", "[::1] o/r");
        check("ssh://git@[::1]/o/r", "[::1] o/r");
        check("[git@host]:o/r", "refused: it names no host");
        check("git@[::1]:o/r", "[::1] o/r");
        check("git+ssh://git@host/o/r", "host o/r");
    }

    #[test]
    fn local_addresses_are_on_no_forge() {
        for url in
            ["/srv/git/r.git", "./r", "../r", "r", "~/r", "file:///srv/r", "ext::sh -c x", "a/b:c", "s3://b/r", ""]
        {
            check(url, "none");
        }
    }

    #[test]
    fn credentials_are_dropped() {
        check("https://ann:s3cret@github.com/o/r", "github.com o/r");
        check("https://s3cret@github.com/o/r", "github.com o/r");
        check("https://ann:s3@cret@github.com/o/r", "github.com o/r");
        check("https://ann:12/s3cret@github.com/o/r", "ann:12 s3cret@github.com/o/r");
        check("https://ann:s3/cret@github.com/o/r", "refused: its port is not a number up to 65535");
    }

    #[test]
    fn hostile_addresses_are_refused() {
        check("-oProxyCommand=x", "refused: it looks like an option");
        check("--upload-pack=x:o/r", "refused: it looks like an option");
        check("ssh://-oProxyCommand=x/o/r", "refused: a part of it looks like an option");
        check("git@-oProxyCommand=x:o/r", "refused: a part of it looks like an option");
        check("git@github.com:-o/r", "refused: a part of it looks like an option");
        check("https://github.com/o/--r", "refused: a part of it looks like an option");
        check("https://github.com/o/r\n.git", "refused: it holds control characters");
        check("https://github.com\u{7f}/o/r", "refused: it holds control characters");
        check("https:///o/r", "refused: it names no host");
        check("https://git hub.com/o/r", "refused: it names no host");
        check("https://github.com%2eeve.test/o/r", "refused: it names no host");
        check(&format!("https://github.com/o/{}", "r".repeat(3000)), "refused: it is too long");
    }

    proptest! {
        #[test]
        fn arbitrary_remote_url_yields_valid_host_and_path(url in any::<String>(), rest in "[a-z@:/\\[\\]. -]{0,20}") {
            for url in [url, rest.clone(), format!("ssh://{rest}"), format!("https://{rest}")] {
                if let Ok(Some(remote)) = parse_remote(&url) {
                    prop_assert!(is_host(&remote.host));
                    prop_assert!(!remote.path.contains(char::is_control));
                }
            }
        }
    }
}
