//! Files that may not change under a session: a gate's script, a test suite.
//!
//! When a session starts, what they hold is recorded. Before a gate runs it is looked at again: a gate whose script or
//! tests have changed says nothing about the work. In a worktree this is for what git does not keep (`tampering`).
//!
//! Invariants:
//! - Whatever cannot be read has changed if it could be read before, and the other way round.
//! - A look is whole or an error: half of one would hide what it has not seen.
//! - A link stands for where it leads, and what it leads to is protected with it. No link out of the project is followed.
//! - A link to a directory that protected files may lie behind stands for where it leads, if it was there before.
//! - No secret is in a name: looks are recorded, and names are told.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;
use windlass_engine::Digest;
use windlass_hooks::Mask;
use windlass_process::file::{self, UnreadableFile};

/// The most files and directories that are looked at.
const ENTRIES: usize = 100_000;
/// The most bytes that one protected file may have, and all of them together.
const MAX_FILE_SIZE: u64 = 256 * 1024 * 1024;
const MAX_TOTAL_SIZE: u64 = 4 * 1024 * 1024 * 1024;
/// What follows the digest of a file that can be executed.
const EXECUTABLE: &str = "+x";
/// What follows the digest of a link that is itself not meant, above what the patterns may match.
const WAY: &str = "+way";
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

/// Why protected files cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtectedError {
    #[error("there are more than {0} files and directories where protected files may be")]
    TooManyEntries(usize),
    #[error("the protected files have more than {} GiB", .0 >> 30)]
    TooManyBytes(u64),
    #[error("`{name}` {}: {}", .reason.cause(), .reason.remedy())]
    Unreadable { name: String, reason: UnreadableFile },
}

impl ProtectedError {
    /// Returns what to write under `protected` instead, if that is what is wrong.
    pub fn hint(&self) -> Option<&'static str> {
        let is_too_much = !matches!(self, Self::Unreadable { .. });
        is_too_much.then_some(
            "name the directory in each pattern: `gates/*.sh`, or `./gate.sh` for the project's own directory",
        )
    }
}

/// Patterns of protected files.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    patterns: GlobSet,
    /// The directories above whatever the patterns may match.
    ways: GlobSet,
    /// Those of them that are so many levels down, and no further.
    short_ways: GlobSet,
    /// What is left out, whatever the patterns say.
    kept: GlobSet,
    mask: Mask,
}

impl Protected {
    /// A pattern names files and directories; what is in such a directory is meant too. One without a slash before its
    /// end is meant wherever it stands.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let (mut set, mut kept) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let (mut ways, mut short_ways) = (GlobSetBuilder::new(), GlobSetBuilder::new());
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
                    if !way.contains("**") {
                        short_ways.add(glob(&way)?);
                    }
                }
            }
        }
        let (ways, short_ways) = (ways.build()?, short_ways.build()?);
        Ok(Self { patterns: set.build()?, ways, short_ways, kept: kept.build()?, mask: Mask::default() })
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
    pub fn look(&self, root: &Path) -> Result<String, ProtectedError> {
        let found = self.find(root)?;
        Ok(self.look_at(root, &found.files)? + &self.look_at_ways(root, &found.ways))
    }

    /// Finds the files below a directory.
    pub(crate) fn find(&self, root: &Path) -> Result<FoundFiles, ProtectedError> {
        self.find_at_most(ENTRIES, root)
    }

    fn find_at_most(&self, most: usize, root: &Path) -> Result<FoundFiles, ProtectedError> {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut search = FileSearch { protected: self, root: &real, most, left: most, found: FoundFiles::default() };
        search.walk(Path::new(""), false)?;
        Ok(search.found)
    }

    /// What some files hold now.
    pub(crate) fn look_at(&self, root: &Path, files: &BTreeSet<PathBuf>) -> Result<String, ProtectedError> {
        let (mut look, mut left) = (String::new(), MAX_TOTAL_SIZE);
        for path in files {
            let name = self.name(path);
            let (content, size) =
                held(&root.join(path)).map_err(|reason| ProtectedError::Unreadable { name: name.clone(), reason })?;
            left = left.checked_sub(size).ok_or(ProtectedError::TooManyBytes(MAX_TOTAL_SIZE))?;
            look.extend([&content, " ", &name, "\n"]);
        }
        Ok(look)
    }

    /// Where some links above protected files lead now.
    pub(crate) fn look_at_ways(&self, root: &Path, links: &BTreeSet<PathBuf>) -> String {
        let line = |link: &PathBuf| {
            let target = fs::read_link(root.join(link)).ok()?;
            Some(format!("{}{WAY} {}\n", digest_of_target(&target), self.name(link)))
        };
        links.iter().filter_map(line).collect()
    }
}

/// Protected files, by their paths in the project.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    pub files: BTreeSet<PathBuf>,
    /// Files and directories that protected links lead to.
    pub targets: BTreeSet<PathBuf>,
    /// Links that are themselves not meant, to directories that protected files may lie behind.
    pub ways: BTreeSet<PathBuf>,
}

/// A search for protected files.
struct FileSearch<'a> {
    protected: &'a Protected,
    /// Without links.
    root: &'a Path,
    most: usize,
    left: usize,
    found: FoundFiles,
}

impl FileSearch<'_> {
    /// Takes what is meant below a directory, or all of it.
    fn walk(&mut self, within: &Path, all: bool) -> Result<(), ProtectedError> {
        let Ok(entries) = fs::read_dir(self.root.join(within)) else { return Ok(()) };
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or(ProtectedError::TooManyEntries(self.most))?;
            let path = within.join(entry.file_name());
            if self.protected.kept.is_match(&path) {
                continue;
            }
            let kind = entry.file_type();
            let is_meant = all || self.protected.patterns.is_match(&path);
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                if is_meant || self.protected.ways.is_match(&path) {
                    self.walk(&path, all)?;
                }
            } else if kind.is_ok_and(|kind| kind.is_symlink()) {
                let is_file = || fs::metadata(self.root.join(&path)).is_ok_and(|found| !found.is_dir());
                if !is_meant && self.protected.ways.is_match(&path) && !is_file() {
                    self.found.ways.insert(path.clone());
                }
                if is_meant || self.protected.short_ways.is_match(&path) {
                    self.follow(path, is_meant)?;
                }
            } else if is_meant {
                self.found.files.insert(path);
            }
        }
        Ok(())
    }

    /// Takes a link that is meant and what it leads to, or what is meant behind it.
    fn follow(&mut self, link: PathBuf, is_meant: bool) -> Result<(), ProtectedError> {
        let resolved = file::resolve_within(self.root, &self.root.join(&link));
        if let Some(reason) = resolved.as_ref().err().and_then(UnreadableFile::of).filter(|_| is_meant) {
            return Err(ProtectedError::Unreadable { name: self.protected.name(&link), reason: reason.clone() });
        }
        let target = resolved.ok().and_then(|real| real.strip_prefix(self.root).ok().map(Path::to_owned));
        let is_above = target.as_ref().is_some_and(|target| link.starts_with(target));
        let target = target.filter(|target| !is_above && !self.protected.kept.is_match(target));
        if is_meant {
            self.found.files.insert(link);
        } else if target.is_some() {
            return self.walk(&link, false);
        }
        match target.filter(|target| self.found.targets.insert(target.clone())) {
            Some(target) if self.root.join(&target).is_dir() => self.walk(&target, true),
            Some(target) => {
                self.found.files.insert(target);
                Ok(())
            }
            None => Ok(()),
        }
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

/// What a file holds and whether it can be executed, in one word, and how many bytes it has. A link stands for where it leads.
fn held(path: &Path) -> Result<(String, u64), UnreadableFile> {
    let read = || -> io::Result<(String, u64)> {
        let found = fs::symlink_metadata(path)?;
        if found.is_symlink() {
            return Ok((digest_of_target(&fs::read_link(path)?).to_string(), 0));
        }
        let content = file::read(path, MAX_FILE_SIZE)?;
        let mode = if is_executable(&found) { EXECUTABLE } else { "" };
        Ok((format!("{}{mode}", Digest::of(&content)), content.len() as u64))
    };
    read().or_else(|error| match UnreadableFile::of(&error) {
        Some(reason) => Err(reason.clone()),
        None => Ok(("unreadable".to_owned(), 0)),
    })
}

fn digest_of_target(target: &Path) -> Digest {
    Digest::of(target.as_os_str().as_encoded_bytes())
}

/// Returns the digest of what a file held, from the word that stands for it in a look.
pub(crate) fn digest_in(word: &str) -> &str {
    word.strip_suffix(EXECUTABLE).unwrap_or(word)
}

/// Returns whether a file could be executed, from the same word.
pub(crate) fn was_executable(word: &str) -> bool {
    word.ends_with(EXECUTABLE)
}

pub(crate) fn is_executable(found: &fs::Metadata) -> bool {
    found.permissions().mode() & 0o100 != 0
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
    // Tools make such links and remove them. Where one came or went, so did each protected file that a gate found behind it.
    let ways = |look| str::lines(look).filter_map(way_in).collect::<BTreeSet<&str>>();
    let in_both: BTreeSet<&str> = ways(before).intersection(&ways(now)).copied().collect();
    let counts = |line: &&str| way_in(line).is_none_or(|link| in_both.contains(link));
    let (before, now) = (before.lines().filter(counts), now.lines().filter(counts));
    if before.clone().eq(now.clone()) {
        return None;
    }
    // By lines, not by names: a name with a line break in it could speak for another file.
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) = (before.collect(), now.collect());
    let name = |line: &&'_ str| line.split_once(' ').map_or(*line, |(_, path)| path).to_owned();
    Some(before.symmetric_difference(&now).map(name).collect())
}

/// Returns the name of the link above protected files that a line of a look is about.
pub(crate) fn way_in(line: &str) -> Option<&str> {
    line.split_once(' ').filter(|(word, _)| word.ends_with(WAY)).map(|(_, name)| name)
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
        let found = protected.find_at_most(8, directory.path());
        assert_eq!(found.err(), (!whole).then_some(ProtectedError::TooManyEntries(8)), "{pattern}");
        assert!(protected.find_at_most(16, directory.path()).is_ok(), "{pattern}");
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
        assert!(protected.find_at_most(3, directory.path()).is_ok());
        assert_eq!(protected.find_at_most(2, directory.path()).err(), Some(ProtectedError::TooManyEntries(2)));
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
        assert_eq!(difference(&looks[0], &looks[1]).as_deref(), Some("check.sh, one, two"));
    }

    /// A project with protected links, and what is told of it after each change.
    #[test]
    fn links_protect_what_they_lead_to_inside_of_the_project() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for directory in ["gates", "real/deep", "other"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        for file in ["real/a", "real/deep/b", "other/check.sh", "other/free"] {
            fs::write(path(file), file).unwrap();
        }
        let links = [
            ("../real", "gates/tree"),
            ("..", "gates/up"),
            ("gone", "gates/gone"),
            ("loop", "gates/loop"),
            ("other", "way"),
        ];
        for (target, link) in links {
            std::os::unix::fs::symlink(target, path(link)).unwrap();
        }
        let protected = Protected::new(&["gates/".to_owned(), "way/check.sh".to_owned()]).unwrap();
        let before = protected.look(place.path()).unwrap();
        let changed = || difference(&before, &protected.look(place.path()).unwrap()).unwrap_or_default();
        fs::write(path("other/free"), "changed").unwrap();
        assert_eq!(changed(), "");
        fs::write(path("real/deep/b"), "changed").unwrap();
        assert_eq!(changed(), "real/deep/b");
        fs::write(path("other/check.sh"), "changed").unwrap();
        assert_eq!(changed(), "real/deep/b, way/check.sh");
    }

    #[test]
    fn link_out_of_the_project_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("project")).unwrap();
        fs::write(root.join("secret"), "").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("project/linked")).unwrap();
        let protected = Protected::new(&["linked".to_owned()]).unwrap();
        let target = root.join("secret").display().to_string();
        let expected =
            format!("`linked` leads out of the project, to `{target}`: put the file itself into the project");
        assert_eq!(protected.look(&root.join("project")).unwrap_err().to_string(), expected);
    }

    /// A project with a file `g1/a.sh` and the link `gates` to its directory.
    fn project_with_link() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        for directory in ["project/g1", "elsewhere"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
            fs::write(place.path().join(directory).join("a.sh"), "").unwrap();
        }
        std::os::unix::fs::symlink("g1", root.join("gates")).unwrap();
        (place, root)
    }

    #[test]
    fn link_above_protected_files_counts_as_where_it_leads() {
        for pattern in ["a.sh", "*.sh", "**/a.sh", "gates/a.sh", "*/a.sh", "gates/**"] {
            let (_place, root) = project_with_link();
            let protected = Protected::new(&[pattern.to_owned()]).unwrap();
            let before = protected.look(&root).unwrap();
            fs::remove_file(root.join("gates")).unwrap();
            std::os::unix::fs::symlink("../elsewhere", root.join("gates")).unwrap();
            let changed = difference(&before, &protected.look(&root).unwrap()).unwrap_or_default();
            assert!(changed.contains("gates"), "{pattern}: {changed}");
        }
    }

    #[test]
    fn link_that_comes_or_goes_is_no_change_by_itself() {
        let (_place, root) = project_with_link();
        let protected = Protected::new(&["a.sh".to_owned()]).unwrap();
        let before = protected.look(&root).unwrap();
        std::os::unix::fs::symlink("../elsewhere", root.join("more")).unwrap();
        let now = protected.look(&root).unwrap();
        assert_eq!((difference(&before, &now), difference(&now, &before)), (None, None));
        fs::remove_file(root.join("gates")).unwrap();
        fs::create_dir(root.join("gates")).unwrap();
        fs::write(root.join("gates/a.sh"), "").unwrap();
        assert_eq!(difference(&before, &protected.look(&root).unwrap()).as_deref(), Some("gates/a.sh"));
    }

    /// A build tool's link to its cache, say.
    #[test]
    fn link_out_of_the_project_beside_protected_files_is_no_reason_to_refuse() {
        let (_place, root) = project_with_link();
        std::os::unix::fs::symlink("../elsewhere", root.join("bazel-bin")).unwrap();
        let look = Protected::new(&["*/a.sh".to_owned()]).unwrap().look(&root).unwrap();
        let found: Vec<&str> = look.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        assert_eq!(found, ["g1/a.sh", "gates/a.sh", "bazel-bin", "gates"]);
    }

    #[test]
    fn mode_of_a_file_counts() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("check.sh");
        fs::write(&file, "").unwrap();
        let protected = Protected::new(&["check.sh".to_owned()]).unwrap();
        let looks = [0o644, 0o755, 0o600].map(|mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            protected.look(place.path()).unwrap()
        });
        assert_eq!(difference(&looks[0], &looks[1]).as_deref(), Some("check.sh"));
        assert_eq!(difference(&looks[0], &looks[2]), None);
        assert_eq!(looks.map(|look| digest_in(look.split(' ').next().unwrap()).len()), [64; 3]);
    }

    #[test]
    fn files_that_never_end_are_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let protected = Protected::new(&["x".to_owned()]).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let said = || protected.look(place.path()).unwrap_err().to_string();
        assert_eq!(said(), "`x` is a socket, not a file: remove it, or put a file in its place");
        fs::remove_file(&path).unwrap();
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(said(), "`x` is larger than 256 MiB: make it smaller, or move it away");
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
