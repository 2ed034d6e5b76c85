//! Files that may not change under a session: a gate's script, a test suite.
//!
//! When a session starts, what they hold is recorded. Before a gate runs it is looked at again: a gate whose script or
//! tests have changed says nothing about the work.
//!
//! Invariant: whatever cannot be read has changed if it could be read before, and the other way round.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use windlass_engine::Digest;

/// The most files and directories that are looked at.
const ENTRIES: usize = 100_000;
/// How many changed files are named.
const NAMED: usize = 5;

/// Patterns of protected files.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    patterns: GlobSet,
}

impl Protected {
    /// A pattern names files and directories; what is in such a directory is meant too. One without a slash is meant
    /// wherever it stands.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
            let anywhere = (!pattern.contains('/')).then(|| format!("**/{pattern}"));
            for pattern in [pattern.to_owned()].into_iter().chain(anywhere) {
                set.add(glob(&pattern)?);
                set.add(glob(&format!("{pattern}/**"))?);
            }
        }
        Ok(Self { patterns: set.build()? })
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// What the files hold now, one line each.
    pub fn look(&self, root: &Path) -> String {
        let mut found = BTreeMap::new();
        let mut left = ENTRIES;
        self.walk(root, Path::new(""), &mut left, &mut found);
        if left == 0 {
            found.insert(PathBuf::from("(too many files to look at)"), "-".to_owned());
        }
        let line = |(path, digest): (PathBuf, String)| format!("{digest} {}\n", path.to_string_lossy());
        found.into_iter().map(line).collect()
    }

    fn walk(&self, root: &Path, within: &Path, left: &mut usize, found: &mut BTreeMap<PathBuf, String>) {
        let Ok(entries) = fs::read_dir(root.join(within)) else { return };
        for entry in entries.flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let path = within.join(entry.file_name());
            let kind = entry.file_type();
            match kind {
                Ok(kind) if kind.is_dir() && path != Path::new(".git") => self.walk(root, &path, left, found),
                _ if self.patterns.is_match(&path) => drop(found.insert(path.clone(), digest(&root.join(&path)))),
                _ => {}
            }
        }
    }
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// A link stands for where it leads, not for what is there.
fn digest(path: &Path) -> String {
    let content = || -> io::Result<Digest> {
        match fs::symlink_metadata(path)?.is_symlink() {
            true => Ok(Digest::of(fs::read_link(path)?.as_os_str().as_encoded_bytes())),
            false => Ok(Digest::of(&fs::read(path)?)),
        }
    };
    content().map_or_else(|_| "unreadable".to_owned(), |digest| digest.to_string())
}

/// Which files differ between two looks, in words; nothing where none does.
pub fn difference(before: &str, now: &str) -> Option<String> {
    let files = |look: &str| -> BTreeMap<String, String> {
        let line = |line: &str| line.split_once(' ').map(|(digest, path)| (path.to_owned(), digest.to_owned()));
        look.lines().filter_map(line).collect()
    };
    let (before, now) = (files(before), files(now));
    let mut changed: Vec<&str> = before.keys().chain(now.keys()).map(String::as_str).collect();
    changed.retain(|path| before.get(*path) != now.get(*path));
    changed.sort_unstable();
    changed.dedup();
    let more = changed.len().saturating_sub(NAMED);
    let named = changed[..changed.len().min(NAMED)].join(", ");
    match (changed.len(), more) {
        (0, _) => None,
        (_, 0) => Some(named),
        _ => Some(format!("{named} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], expected: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        for file in ["gate.sh", "src/lib.rs", "tests/a.rs", "tests/deep/b.rs", "sub/tests/c.rs", ".git/gate.sh"] {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let look = Protected::new(&patterns).unwrap().look(directory.path());
        let found: Vec<&str> = look.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        assert_eq!(found, expected, "{patterns:?}");
    }

    #[test]
    fn patterns_mean_files_and_what_is_in_directories() {
        check(&["gate.sh"], &["gate.sh"]);
        check(&["tests/"], &["sub/tests/c.rs", "tests/a.rs", "tests/deep/b.rs"]);
        check(&["./tests/*.rs"], &["tests/a.rs"]);
        check(&["tests/**/*.rs"], &["tests/a.rs", "tests/deep/b.rs"]);
        check(&["*.sh", "src"], &["gate.sh", "src/lib.rs"]);
        check(&["nothing"], &[]);
    }

    #[test]
    fn what_changed_came_or_went_is_named() {
        assert_eq!(difference("1 a\n2 b\n", "1 a\n2 b\n"), None);
        assert_eq!(difference("1 a\n2 b\n", "3 a\n4 c c\n").as_deref(), Some("a, b, c c"));
        let many: String = (0..9).map(|n| format!("{n} f{n}\n")).collect();
        assert_eq!(difference("", &many).as_deref(), Some("f0, f1, f2, f3, f4 and 4 more"));
    }
}
