//! The project and the forge that a remote belongs to.
//!
//! The host's name (`github.*`, `gitlab.*`, `*.ghe.com`) or the configuration tells the forge. Any other host is no forge.

use super::ForgeError;
use super::address::ApiAddress;
use super::kind::ForgeVendor;
use super::remote::{self, RemoteAddress};

/// The settings of a person. None is necessary if the remote says enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgeOptions {
    pub kind: Option<ForgeVendor>,
    /// The address of the API, such as `https://ghe.example.com/api/v3` or `https://git.example.com/api/v4`.
    pub api: Option<String>,
    /// `owner/project`, if the remote's address does not contain it. Together with an `api` the remote is ignored.
    pub project: Option<String>,
}

impl ForgeOptions {
    /// Returns why the settings have no effect with a remote, if that is so.
    pub fn explain_mismatch(&self, remote: Option<&str>) -> Option<String> {
        if self.kind.is_none() && self.api.is_none() {
            return None;
        }
        let wanted = self.kind.map_or("a forge", ForgeVendor::name);
        let Some(address) = remote else {
            return Some(format!("`forge` is configured ({wanted}), and there is no remote"));
        };
        let site = match ForgeProject::from_remote(address, self) {
            Ok(Some(site)) => site,
            Ok(None) => {
                let said = "is not the address of a project on one";
                return Some(format!("`forge` is configured ({wanted}), and the remote's address {address} {said}"));
            }
            Err(error) => return Some(error.to_string()),
        };
        let other = ForgeVendor::from_host(&site.host).filter(|kind| *kind != site.kind && self.api.is_none())?;
        Some(format!("`forge` is configured ({wanted}), and the remote's address {address} is on {}", other.name()))
    }
}

/// A project on a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeProject {
    pub kind: ForgeVendor,
    /// The host as `gh` and `glab` know it.
    pub host: String,
    pub(super) api: ApiAddress,
    /// `owner/project`, on GitLab with all its groups.
    pub project: String,
    /// Whether a person has named the API.
    pub(super) is_named: bool,
}

impl ForgeProject {
    /// Returns `None` if the remote is on no forge: then only our log has its changes.
    pub fn from_remote(remote: &str, settings: &ForgeOptions) -> Result<Option<Self>, ForgeError> {
        let named = settings.api.as_deref().map(ApiAddress::parse).transpose()?;
        let remote = match (&named, &settings.project) {
            (Some(_), Some(_)) => None,
            _ => match remote::parse_remote(remote)? {
                Some(remote) => Some(canonical_remote(remote)),
                None => return Ok(None),
            },
        };
        let Some(host) = named.as_ref().map(|api| &api.host).or(remote.as_ref().map(|remote| &remote.host)) else {
            return Ok(None);
        };
        let kind = match settings.kind.or_else(|| ForgeVendor::from_host(host)) {
            Some(kind) => kind,
            None if named.is_some() => return Err(ForgeError::UnknownKind { host: host.to_owned() }),
            None => return Ok(None),
        };
        let host = pages_host(host);
        let path = settings.project.as_deref().or(remote.as_ref().map(|remote| remote.path.as_str()));
        let project = parse_project_path(kind, &host, path.unwrap_or_default(), named.as_ref())?;
        let is_named = named.is_some();
        let api = named.unwrap_or_else(|| default_api_address(kind, &host, remote.and_then(|remote| remote.port)));
        Ok(Some(Self { kind, host, api, project, is_named }))
    }

    /// Returns whether the forge's vendor runs the host.
    pub(super) fn is_public_forge(&self) -> bool {
        match self.kind {
            ForgeVendor::GitHub => self.host == "github.com" || self.host.ends_with(".ghe.com"),
            ForgeVendor::GitLab => self.host == "gitlab.com",
        }
    }
}

/// Maps alternative hosts to their main host.
fn canonical_remote(remote: RemoteAddress) -> RemoteAddress {
    let host = match remote.host.as_str() {
        "ssh.github.com" | "www.github.com" => "github.com",
        "altssh.gitlab.com" | "www.gitlab.com" => "gitlab.com",
        host => host,
    };
    RemoteAddress { host: host.to_owned(), ..remote }
}

/// Returns the host of a forge's pages, by that of its API.
fn pages_host(host: &str) -> String {
    let is_cloud = host == "api.github.com" || host.ends_with(".ghe.com");
    host.strip_prefix("api.").filter(|_| is_cloud).unwrap_or(host).to_owned()
}

fn default_api_address(kind: ForgeVendor, host: &str, port: Option<u16>) -> ApiAddress {
    match kind {
        ForgeVendor::GitHub if host == "github.com" || host.ends_with(".ghe.com") => {
            ApiAddress::for_host(&format!("api.{host}"), None, "")
        }
        ForgeVendor::GitHub => ApiAddress::for_host(host, port, "/api/v3"),
        ForgeVendor::GitLab => ApiAddress::for_host(host, port, "/api/v4"),
    }
}

fn parse_project_path(
    kind: ForgeVendor,
    host: &str,
    path: &str,
    api: Option<&ApiAddress>,
) -> Result<String, ForgeError> {
    let bad = |why| ForgeError::BadProject { host: host.to_owned(), project: redact_path(path), why };
    // A GitLab below a path has the path before every project, but not for ssh.
    let below = api.and_then(|api| api.path.strip_suffix("/api/v4")).unwrap_or_default().trim_matches('/');
    let path =
        path.strip_prefix(below).and_then(|rest| rest.strip_prefix('/')).filter(|_| !below.is_empty()).unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    let is_plain = |part: &&str| {
        !part.is_empty()
            && part.len() <= 255
            && !part.starts_with('-')
            && !matches!(*part, "." | "..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._+".contains(&byte))
    };
    if !parts.iter().all(is_plain) {
        return Err(bad("a part of it is not a name"));
    }
    match kind {
        ForgeVendor::GitHub if parts.len() != 2 => Err(bad("it has to be an owner and a name")),
        ForgeVendor::GitLab if !(2..=25).contains(&parts.len()) => Err(bad("it has to be groups and a name")),
        _ => Ok(path.to_owned()),
    }
}

/// Hides a path with `@`: a password with a slash leaves a part of itself in the path.
fn redact_path(path: &str) -> String {
    let plain = path.chars().filter(|letter| !letter.is_control()).take(200);
    if path.contains('@') { "…".to_owned() } else { plain.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, settings: &ForgeOptions, expected: &str) {
        let seen = match ForgeProject::from_remote(url, settings) {
            Ok(Some(site)) => format!("{} {} {:?} {}", site.kind.name(), site.host, site.api, site.project),
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected, "{url}");
    }

    #[test]
    fn known_host_names_need_no_settings() {
        let plain = ForgeOptions::default();
        check("https://github.com/o/r.git", &plain, "github github.com https://api.github.com o/r");
        check("git@github.com:o/r.git", &plain, "github github.com https://api.github.com o/r");
        check("ssh://git@ssh.github.com:443/o/r", &plain, "github github.com https://api.github.com o/r");
        check("https://acme.ghe.com/o/r", &plain, "github acme.ghe.com https://api.acme.ghe.com o/r");
        check("git@github.acme.test:o/r", &plain, "github github.acme.test https://github.acme.test/api/v3 o/r");
        check("https://gitlab.com/a/b/c.git", &plain, "gitlab gitlab.com https://gitlab.com/api/v4 a/b/c");
        check(
            "ssh://git@gitlab.acme.test:2222/a/b",
            &plain,
            "gitlab gitlab.acme.test https://gitlab.acme.test/api/v4 a/b",
        );
        check(
            "https://gitlab.acme.test:8443/a/b",
            &plain,
            "gitlab gitlab.acme.test https://gitlab.acme.test:8443/api/v4 a/b",
        );
    }

    #[test]
    fn other_hosts_are_no_forge() {
        for url in [
            "/srv/r.git",
            "file:///srv/r.git",
            "git@host:o/r",
            // A host alias of the user's ssh configuration.
            "git@github:o/r",
            "https://mygithub.com/o/r",
            "https://eve.test/github.com/o/r",
        ] {
            check(url, &ForgeOptions::default(), "none");
        }
    }

    #[test]
    fn settings_complete_unknown_hosts() {
        let kind = ForgeOptions { kind: Some(ForgeVendor::GitLab), ..ForgeOptions::default() };
        check("git@code.acme.test:a/b.git", &kind, "gitlab code.acme.test https://code.acme.test/api/v4 a/b");
        check("/srv/r.git", &kind, "none");
        let api = Some("https://acme.test/gitlab/api/v4".to_owned());
        let below = ForgeOptions { api, ..kind.clone() };
        check("https://acme.test/gitlab/a/b.git", &below, "gitlab acme.test https://acme.test/gitlab/api/v4 a/b");
        check("git@acme.test:a/b.git", &below, "gitlab acme.test https://acme.test/gitlab/api/v4 a/b");
        let whole = ForgeOptions {
            project: Some("o/r".to_owned()),
            api: Some("http://127.0.0.1:8/api/v3".to_owned()),
            kind: Some(ForgeVendor::GitHub),
        };
        check("/srv/r.git", &whole, "github 127.0.0.1 http://127.0.0.1:8/api/v3 o/r");
        let unknown = ForgeOptions { api: Some("https://code.acme.test/x".to_owned()), ..ForgeOptions::default() };
        check("git@code.acme.test:a/b.git", &unknown, "cannot tell which kind of forge code.acme.test is");
    }

    #[test]
    fn projects_are_names() {
        let plain = ForgeOptions::default();
        let refused = |project: &str, why: &str| format!("cannot use the project `{project}` on github.com: {why}");
        for path in ["o/r?x", "o/%2e%2e", "o/..", "o//r", "o/r r", "o/r#x"] {
            check(&format!("https://github.com/{path}"), &plain, &refused(path, "a part of it is not a name"));
        }
        let kind = ForgeOptions { kind: Some(ForgeVendor::GitHub), ..plain.clone() };
        let hidden = "cannot use the project `…` on ann: a part of it is not a name";
        check("https://ann:12/s3cret@github.com/o/r", &kind, hidden);
        for path in ["o", "o/r/x"] {
            check(&format!("https://github.com/{path}"), &plain, &refused(path, "it has to be an owner and a name"));
        }
    }
}
