//! Names from outside, which are checked before git sees them.
//!
//! Invariants:
//! - No such name resembles an option, and git accepts each one (`git check-ref-format`).
//! - Git gets full names (`refs/heads/…`), so that it takes no tag or other ref for a branch.

use std::fmt::{self, Display};

use super::Error;

/// The longest name: the limit of file systems, less `.lock`.
const MAX_NAME_BYTES: usize = 240;

/// The short name of a branch: `main`, `windlass/t7-fix-the-login`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchName(String);

/// The name of a remote: `origin`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteName(String);

/// The full id of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GitCommitId(String);

impl BranchName {
    pub fn new(name: &str) -> Result<Self, Error> {
        match find_name_problem(name) {
            Some(why) => Err(bad_name_error("branch", name, why)),
            None => Ok(Self(name.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the ref of the branch: `refs/heads/main`.
    pub fn full_ref(&self) -> String {
        format!("refs/heads/{}", self.0)
    }

    /// Returns the branch of a full ref.
    pub(super) fn from_full_ref(full: &str) -> Option<Self> {
        Self::new(full.strip_prefix("refs/heads/")?).ok()
    }

    /// Returns the ref that marks the branch as ours, and holds its start.
    pub(super) fn start_ref(&self) -> String {
        format!("refs/windlass/start/{}", self.0)
    }

    /// Returns the ref that holds our last push to a remote's branch of this name.
    pub(super) fn pushed_ref(&self) -> String {
        format!("refs/windlass/pushed/{}", self.0)
    }
}

impl RemoteName {
    pub fn new(name: &str) -> Result<Self, Error> {
        match find_name_problem(name) {
            Some(why) => Err(bad_name_error("remote", name, why)),
            None => Ok(Self(name.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the ref that holds the last known tip of a branch of this remote.
    pub fn tracking_ref(&self, branch: &BranchName) -> String {
        format!("refs/remotes/{}/{}", self.0, branch.0)
    }
}

impl GitCommitId {
    pub fn new(id: &str) -> Result<Self, Error> {
        let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_hex && matches!(id.len(), 40 | 64) {
            Ok(Self(id.to_owned()))
        } else {
            Err(bad_name_error("commit", id, "it is not a full commit id"))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first letters, for people.
    pub fn short_id(&self) -> &str {
        &self.0[..10]
    }
}

/// Returns why git would not accept a name, or would find it ambiguous.
fn find_name_problem(name: &str) -> Option<&'static str> {
    let parts = || name.split('/');
    let is_odd = |letter: char| letter.is_control() || " ~^:?*[\\".contains(letter);
    match name {
        "" => Some("it is empty"),
        "HEAD" | "@" => Some("it has another meaning in git"),
        _ if name.starts_with('-') => Some("it looks like an option"),
        _ if name.starts_with("refs/") => Some("it looks like a whole ref"),
        _ if name.len() > MAX_NAME_BYTES => Some("it is too long"),
        _ if name.contains(is_odd) => Some("it has a space, a control character or one of ~^:?*[\\ in it"),
        _ if name.contains("..") || name.contains("@{") => Some("it has .. or @{ in it"),
        _ if name.ends_with('.') => Some("it ends with a full stop"),
        _ if parts().any(str::is_empty) => Some("it has an empty part"),
        _ if parts().any(|part| part.starts_with('.')) => Some("a part of it begins with a full stop"),
        _ if parts().any(|part| part.ends_with(".lock")) => Some("a part of it ends with .lock"),
        _ => None,
    }
}

fn bad_name_error(kind: &'static str, name: &str, why: &'static str) -> Error {
    let shown = name.chars().take(80).collect::<String>().escape_debug().to_string();
    Error::BadName { kind, name: shown, why }
}

macro_rules! texts {
    ($($name:ident),*) => {$(
        impl Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<std::ffi::OsStr> for $name {
            fn as_ref(&self) -> &std::ffi::OsStr {
                self.0.as_ref()
            }
        }
    )*};
}

texts!(BranchName, RemoteName, GitCommitId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_would_not_take_are_refused() {
        for good in ["main", "windlass/t7-fix", "a.b", "ünï", "a@b", "feature/x.y", "a-"] {
            assert!(BranchName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-f",
            "--upload-pack=x",
            "HEAD",
            "@",
            "a..b",
            "a b",
            "a\nb",
            "a\u{7f}",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.",
            "a.lock",
            "a.lock/b",
            "a@{1}",
            "refs/heads/a",
        ] {
            assert!(BranchName::new(bad).is_err(), "{bad:?}");
        }
        assert!(BranchName::new(&"a".repeat(500)).is_err());
        assert!(RemoteName::new("--upload-pack=touch x").is_err());
        assert!(RemoteName::new("https://example.com").is_err());
    }

    #[test]
    fn commit_id_is_accepted_only_as_full_lowercase_hex() {
        assert!(GitCommitId::new(&"a1".repeat(20)).is_ok());
        assert!(GitCommitId::new(&"a1".repeat(32)).is_ok());
        for bad in ["", "HEAD", "a1", &"A1".repeat(20), &"g1".repeat(20)] {
            assert!(GitCommitId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_name_is_shown_without_control_characters() {
        let error = BranchName::new("a\u{1b}[31mb").expect_err("no name").to_string();
        assert!(!error.contains('\u{1b}'), "{error}");
    }
}
