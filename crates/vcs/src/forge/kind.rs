//! The kinds of forges.

/// A kind of forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeVendor {
    GitHub,
    GitLab,
}

impl ForgeVendor {
    pub fn parse_name(name: &str) -> Option<Self> {
        [Self::GitHub, Self::GitLab].into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
        }
    }

    /// Returns the kind that a host's name shows.
    pub(super) fn from_host(host: &str) -> Option<Self> {
        match host.split_once('.') {
            Some(("github", _)) => Some(Self::GitHub),
            Some(("gitlab", _)) => Some(Self::GitLab),
            _ if host == "api.github.com" || host.ends_with(".ghe.com") => Some(Self::GitHub),
            _ => None,
        }
    }
}
