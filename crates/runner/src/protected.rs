//! Files that may not change under a session: a gate's script, a test suite.
//!
//! When a session starts, what they hold is recorded. Before a gate runs it is looked at again: a gate whose script or
//! tests have changed says nothing about the work. In a worktree this is for what git does not keep (`tampering`).
//!
//! Invariants:
//! - Whatever cannot be read has changed if it could be read before, and the other way round.
//! - A look is whole or an error: half of one would hide what it has not seen.
//! - No secret is in a name: looks are recorded, and names are told.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;
use windlass_engine::Digest;
use windlass_hooks::Mask;

/// The most files and directories that are looked at.
const ENTRIES: usize = 100_000;
/// How many changed files are named.
const NAMED: usize = 5;
/// What git and Windlass keep for themselves: it changes all the time, and judges nothing.
const KEPT: [&str; 7] = [
    ".git",
    ".windlass/owners",
    ".windlass/runs",
    ".windlass/worktrees",
    ".windlass/backups",
    ".windlass/windlass.db*",
    ".windlass/*.lock",
];
/// What lets a part of a pattern match more than one part of a path, or makes it hard to tell where the part ends.
const BRANCHING: [&str; 4] = ["**", "{", "[", "\\"];

/// Where protected files may be, there is too much to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there are more than {0} files and directories where protected files may be")]
pub struct TooMany(usize);

/// Patterns of protected files.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    patterns: GlobSet,
    /// The directories above whatever the patterns may match.
    ways: GlobSet,
    /// What is left out, whatever the patterns say.
    kept: GlobSet,
    mask: Mask,
}

impl Protected {
    /// A pattern names files and directories; what is in such a directory is meant too. One without a slash before its
    /// end is meant wherever it stands.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let (mut set, mut ways, mut kept) = (GlobSetBuilder::new(), GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in KEPT {
            kept.add(glob(pattern)?);
        }
        for pattern in patterns {
            let pattern = pattern.trim_end_matches('/');
            let anywhere = (!pattern.contains('/')).then(|| format!("**/{pattern}"));
            let here = pattern.trim_start_matches("./").to_owned();
            for pattern in [here].into_iter().chain(anywhere) {
                set.add(glob(&pattern)?);
                set.add(glob(&format!("{pattern}/**"))?);
                for way in ways_to(&pattern) {
                    ways.add(glob(&way)?);
                }
            }
        }
        Ok(Self { patterns: set.build()?, ways: ways.build()?, kept: kept.build()?, mask: Mask::default() })
    }

    /// The same, with what nobody may see.
    pub fn hiding(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(crate) fn is_meant(&self, path: &Path) -> bool {
        self.patterns.is_match(path)
    }

    /// How a file is called in what is recorded and told.
    pub(crate) fn name(&self, path: &Path) -> String {
        self.mask.text(&path.to_string_lossy()).into_owned()
    }

    /// What the files hold now, one line each.
    pub fn look(&self, root: &Path) -> Result<String, TooMany> {
        self.look_at_most(ENTRIES, root, &BTreeSet::new())
    }

    /// The same without those that somebody else looks at.
    pub(crate) fn look_beside(&self, root: &Path, others: &BTreeSet<PathBuf>) -> Result<String, TooMany> {
        self.look_at_most(ENTRIES, root, others)
    }

    fn look_at_most(&self, most: usize, root: &Path, others: &BTreeSet<PathBuf>) -> Result<String, TooMany> {
        let mut found = BTreeSet::new();
        let mut left = most;
        self.walk(root, Path::new(""), &mut left, &mut found).ok_or(TooMany(most))?;
        found.retain(|path| !others.contains(path));
        let digest = |path: &PathBuf| digest(&root.join(path));
        let line = |path: &PathBuf| format!("{} {}\n", digest(path), self.name(path));
        Ok(found.iter().map(line).collect())
    }

    /// Nothing if there is too much.
    fn walk(&self, root: &Path, within: &Path, left: &mut usize, found: &mut BTreeSet<PathBuf>) -> Option<()> {
        let Ok(entries) = fs::read_dir(root.join(within)) else { return Some(()) };
        for entry in entries.flatten() {
            *left = left.checked_sub(1)?;
            let path = within.join(entry.file_name());
            let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if directory && self.may_be_below(&path) {
                self.walk(root, &path, left, found)?;
            } else if !directory && self.patterns.is_match(&path) && !self.kept.is_match(&path) {
                found.insert(path);
            }
        }
        Some(())
    }

    fn may_be_below(&self, directory: &Path) -> bool {
        !self.kept.is_match(directory) && (self.ways.is_match(directory) || self.patterns.is_match(directory))
    }
}

/// Patterns of the directories that lie above what a pattern matches.
fn ways_to(pattern: &str) -> Vec<String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let branches = parts.iter().position(|part| BRANCHING.iter().any(|sign| part.contains(sign)));
    let above = branches.unwrap_or(parts.len() - 1);
    let mut ways: Vec<String> = (1..=above).map(|count| parts[..count].join("/")).collect();
    if branches.is_some() {
        ways.push(parts[..above].iter().copied().chain(["**"]).collect::<Vec<_>>().join("/"));
    }
    ways
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
    differing(before, now).map(|changed| named(&changed))
}

/// Which files differ between two looks; nothing where none does.
pub(crate) fn differing(before: &str, now: &str) -> Option<BTreeSet<String>> {
    if before == now {
        return None;
    }
    // By lines, not by names: a name with a line break in it could speak for another file.
    let lines = |look| str::lines(look).collect::<BTreeSet<&str>>();
    let (before, now) = (lines(before), lines(now));
    let name = |line: &&'_ str| line.split_once(' ').map_or(*line, |(_, path)| path).to_owned();
    Some(before.symmetric_difference(&now).map(name).collect())
}

/// Changed files in words.
pub(crate) fn named(changed: &BTreeSet<String>) -> String {
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    let more = changed.len().saturating_sub(NAMED);
    let named = changed[..changed.len().min(NAMED)].join(", ");
    match (changed.len(), more) {
        (0, _) => "files whose names are alike".to_owned(),
        (_, 0) => named,
        _ => format!("{named} and {more} more"),
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
        let look = Protected::new(&patterns).unwrap().look(directory.path()).unwrap();
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
        check(&["./gate.sh", "./tests/"], &["gate.sh", "tests/a.rs", "tests/deep/b.rs"]);
        check(&["*/tests/*.rs"], &["sub/tests/c.rs"]);
        check(&["{src/lib,tests/deep/b}.rs"], &["src/lib.rs", "tests/deep/b.rs"]);
        check(&["tests/[a-d]*/b.rs", "s?b/tests"], &["sub/tests/c.rs", "tests/deep/b.rs"]);
        check(&["src/\\lib.rs"], &["src/lib.rs"]);
        check(&["nothing"], &[]);
    }

    #[test]
    fn what_windlass_keeps_for_itself_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let ours = ["owners/run-1", "runs/s/1.turn", "worktrees/t1/check.sh", "windlass.db-wal", "merge.lock"];
        for file in ["config.yaml", "workflows/check.sh"].iter().chain(&ours) {
            let path = directory.path().join(".windlass").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let look = |pattern: &str| Protected::new(&[pattern.to_owned()]).unwrap().look(directory.path()).unwrap();
        let found = |pattern| look(pattern).lines().map(|line| line[65..].to_owned()).collect::<Vec<_>>();
        assert_eq!(found(".windlass/"), [".windlass/config.yaml", ".windlass/workflows/check.sh"]);
        assert_eq!(found("check.sh"), [".windlass/workflows/check.sh"]);
    }

    /// Whether a look at a project with nine files in `target/out` is whole after eight entries.
    #[track_caller]
    fn check_whole(pattern: &str, whole: bool) {
        let directory = tempfile::tempdir().unwrap();
        for place in ["gates/deep", "target/out", ".git"] {
            fs::create_dir_all(directory.path().join(place)).unwrap();
        }
        for number in 0..9 {
            fs::write(directory.path().join(format!("target/out/{number}")), "").unwrap();
            fs::write(directory.path().join(format!(".git/{number}")), "").unwrap();
        }
        fs::write(directory.path().join("gates/a.sh"), "").unwrap();
        let protected = Protected::new(&[pattern.to_owned()]).unwrap();
        let look = protected.look_at_most(8, directory.path(), &BTreeSet::new());
        assert_eq!(look.err(), (!whole).then_some(TooMany(8)), "{pattern}");
        assert!(protected.look_at_most(16, directory.path(), &BTreeSet::new()).is_ok(), "{pattern}");
    }

    #[test]
    fn only_places_that_a_pattern_can_match_are_looked_at_and_all_of_them() {
        for pattern in ["gates/*.sh", "gates/**", "./gate.sh", "./gates/", "*/*.sh", "ga*/deep/x", "gates/{a,b/c}.sh"] {
            check_whole(pattern, true);
        }
        for pattern in ["gate.sh", "gates/", "**/*.sh", "target/**/*.sh", "target", "*/*/x/y", "{gates,x}/*.sh"] {
            check_whole(pattern, false);
        }
    }

    #[test]
    fn as_many_as_allowed_are_not_too_many() {
        let directory = tempfile::tempdir().unwrap();
        ["a", "b", "c"].iter().for_each(|name| fs::write(directory.path().join(name), name).unwrap());
        let protected = Protected::new(&["a".to_owned()]).unwrap();
        assert!(protected.look_at_most(3, directory.path(), &BTreeSet::new()).is_ok());
        assert_eq!(protected.look_at_most(2, directory.path(), &BTreeSet::new()), Err(TooMany(2)));
    }

    #[test]
    fn what_changed_came_or_went_is_named() {
        assert_eq!(difference("1 a\n2 b\n", "1 a\n2 b\n"), None);
        assert_eq!(difference("1 a\n2 b\n", "3 a\n4 c c\n").as_deref(), Some("a, b, c c"));
        let many: String = (0..9).map(|n| format!("{n} f{n}\n")).collect();
        assert_eq!(difference("", &many).as_deref(), Some("f0, f1, f2, f3, f4 and 4 more"));
        // A file `a` with a line break in its name, and a line like that of `b` after it.
        assert_eq!(difference("1 a\n2 b\n", "1 a\n1 a\n2 b\n3 b\n").as_deref(), Some("b"));
        assert_eq!(difference("1 a\n", "1 a\n1 a\n").as_deref(), Some("files whose names are alike"));
    }

    /// A link that leads elsewhere is a change, also where the same is written there.
    #[test]
    fn a_link_is_where_it_leads() {
        let place = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::write(place.path().join(name), "the same").unwrap();
        }
        let link = place.path().join("check.sh");
        let protected = Protected::new(&["check.sh".to_owned()]).unwrap();
        let looks = ["one", "two"].map(|target| {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(target, &link).unwrap();
            protected.look(place.path()).unwrap()
        });
        assert_eq!(difference(&looks[0], &looks[1]).as_deref(), Some("check.sh"));
    }

    /// Two files are told apart by what they hold, also where their names look alike.
    #[test]
    fn no_secret_is_in_a_name() {
        let place = tempfile::tempdir().unwrap();
        let protected = Protected::new(&["*.lock".to_owned()]).unwrap().hiding(Mask::new([("KEY", "hunter22")]));
        let empty = protected.look(place.path()).unwrap();
        fs::write(place.path().join("a-hunter22.lock"), "a").unwrap();
        let one = protected.look(place.path()).unwrap();
        assert_eq!(difference(&empty, &one).as_deref(), Some("a-[secret KEY].lock"));
        fs::write(place.path().join("a-hun\x1b[1mter22.lock"), "a").unwrap();
        let two = protected.look(place.path()).unwrap();
        assert_eq!(difference(&one, &two).as_deref(), Some("files whose names are alike"));
        fs::write(place.path().join("a-hunter22.lock"), "b").unwrap();
        assert_eq!(difference(&two, &protected.look(place.path()).unwrap()).as_deref(), Some("a-[secret KEY].lock"));
    }
}
