//! Caches that a gate finds in its checkout beside the files of the commit.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use windlass_vcs::git::{DetachedCheckout, Worktree};

/// Patterns of ignored files that gates find in their checkout, as links to those of the worktree.
#[derive(Debug, Clone, Default)]
pub struct CachePatterns {
    patterns: GlobSet,
    pub(crate) written: Vec<String>,
}

impl CachePatterns {
    /// Builds the set. A pattern names files and directories. One without an inner slash matches at any depth.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, globset::Error> {
        let (mut set, mut written) = (GlobSetBuilder::new(), Vec::new());
        for pattern in patterns {
            written.push(pattern.trim_start_matches("./").to_owned());
            let pattern = pattern.trim_end_matches('/').trim_start_matches("./");
            set.add(parse_glob(pattern)?);
            if !pattern.contains('/') {
                set.add(parse_glob(&format!("**/{pattern}"))?);
            }
        }
        Ok(Self { patterns: set.build()?, written })
    }

    /// Returns whether a path of the repository matches, for a project at `below` in the repository.
    pub(crate) fn matches_path(&self, path: &Path, below: &Path) -> bool {
        let is_match = |path: &Path| path.ancestors().any(|path| self.patterns.is_match(path));
        is_match(path) || path.strip_prefix(below).is_ok_and(is_match)
    }

    /// Returns the patterns as lines of an ignore file at the root of the repository.
    pub(crate) fn to_ignore_lines(&self, below: &Path) -> Vec<String> {
        let is_placed = |pattern: &str| pattern.trim_end_matches('/').contains('/');
        let line = |pattern: &String| match is_placed(pattern) {
            true => format!("/{}", below.join(pattern.trim_start_matches('/')).display()),
            false => pattern.clone(),
        };
        self.written.iter().map(line).collect()
    }
}

fn parse_glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// A checkout of the commit in delivery, and the worktree that caches come from.
pub(crate) struct GateCheckout {
    pub(crate) checkout: DetachedCheckout,
    pub(crate) worktree: Worktree,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_pattern_without_slash_matches_at_any_depth() {
        let caches = CachePatterns::new(["target/", "web/dist"]).unwrap();
        for path in ["target", "crates/a/target", "target/debug/x", "web/dist", "web/dist/app.js"] {
            assert!(caches.matches_path(Path::new(path), Path::new("")), "{path}");
        }
        for path in ["targets", "dist", "other/web/dist", ".env"] {
            assert!(!caches.matches_path(Path::new(path), Path::new("")), "{path}");
        }
        assert_eq!(caches.to_ignore_lines(Path::new("")), ["target/", "/web/dist"]);
    }

    #[test]
    fn cache_pattern_with_slash_matches_within_project() {
        let caches = CachePatterns::new(["web/dist/", "target"]).unwrap();
        let below = Path::new("apps/shop");
        assert!(caches.matches_path(Path::new("apps/shop/web/dist/app.js"), below));
        assert!(!caches.matches_path(Path::new("apps/other/web/dist"), below));
        assert!(caches.matches_path(Path::new("target"), below));
        assert_eq!(caches.to_ignore_lines(below), ["/apps/shop/web/dist/", "target"]);
    }
}
