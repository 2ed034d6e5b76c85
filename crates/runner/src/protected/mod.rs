//! Files that may not change under a session: a gate's script, a test suite.
//!
//! The start of a session records their content, and each gate compares it again: a gate whose script or tests have changed
//! says nothing about the work. In a worktree this is for files that git does not keep (`protected_check`).
//!
//! Invariants:
//! - A file that cannot be read has changed if it could be read before, and the other way round.
//! - A snapshot is complete or an error: a partial one would hide changes.
//! - A link stands for its target, and the target is protected with it. No link out of the project is followed.
//! - Attributes of git in a directory above protected files are protected with them: a checkout changes bytes by them.
//! - A link to a directory that protected files may lie behind stands for its target, if it was there before.
//! - No secret is in a name: snapshots are recorded, and names are shown.

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

/// Maximum number of files and directories in a search.
const ENTRIES: usize = 100_000;
/// Maximum size of one protected file, and of all of them together.
const MAX_FILE_SIZE: u64 = 256 * 1024 * 1024;
const MAX_TOTAL_SIZE: u64 = 4 * 1024 * 1024 * 1024;
/// Suffix of the digest of an executable file.
const EXECUTABLE: &str = "+x";
/// Suffix of the digest of a link that is not protected itself, above files that the patterns may match.
const WAY: &str = "+way";
/// Maximum number of changed files in a message.
const NAMED: usize = 5;
/// Files that git and Windlass change all the time, and that judge nothing.
const KEPT: [&str; 7] = [
    ".git",
    ".windlass/owners",
    ".windlass/runs",
    ".windlass/worktrees",
    ".windlass/backups",
    ".windlass/windlass.db*",
    ".windlass/*.lock",
];
/// File by which git changes the bytes of the files beside and below it in a checkout.
const ATTRIBUTES: &str = ".gitattributes";
/// Signs with which a part of a pattern can match several parts of a path, or has no clear end.
const BRANCHING: [&str; 4] = ["**", "{", "[", "\\"];

/// Reason why protected files cannot be watched.
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
    /// Returns a hint for `protected` in the configuration, if the patterns are the cause.
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
    /// Directories above possible matches of the patterns.
    ways: GlobSet,
    /// The directories above that are at a known depth.
    short_ways: GlobSet,
    /// Files that are left out of all patterns.
    kept: GlobSet,
    mask: Mask,
}

impl Protected {
    /// Builds the set. A pattern names files and directories; a directory includes its content. A pattern without an inner slash
    /// matches at any depth.
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

    /// Returns the set with a mask for secrets in names.
    pub fn hiding(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(crate) fn is_meant(&self, path: &Path) -> bool {
        self.patterns.is_match(path) || self.governs_checkout(path)
    }

    /// Returns whether git reads attributes from this file when it checks out files that the patterns may match.
    fn governs_checkout(&self, path: &Path) -> bool {
        let is_above = |directory: &Path| directory == Path::new("") || self.ways.is_match(directory);
        !self.is_empty() && is_attributes(path) && path.parent().is_some_and(is_above)
    }

    /// Returns the masked name of a file for records and messages.
    pub(crate) fn name(&self, path: &Path) -> String {
        self.mask.text(&path.to_string_lossy()).into_owned()
    }

    /// Returns a snapshot of the protected files, one line for each.
    pub fn look(&self, root: &Path) -> Result<String, ProtectedError> {
        let found = self.find(root)?;
        Ok(self.look_at(root, &found.files)? + &self.look_at_ways(root, &found.ways))
    }

    /// Finds the protected files below a directory.
    pub(crate) fn find(&self, root: &Path) -> Result<FoundFiles, ProtectedError> {
        self.find_at_most(ENTRIES, root)
    }

    fn find_at_most(&self, most: usize, root: &Path) -> Result<FoundFiles, ProtectedError> {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut search = FileSearch { protected: self, root: &real, most, left: most, found: FoundFiles::default() };
        search.walk(Path::new(""), false)?;
        Ok(search.found)
    }

    /// Returns a snapshot of some files.
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

    /// Returns a snapshot of some links above protected files.
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
    /// Unprotected links to directories that protected files may lie behind.
    pub ways: BTreeSet<PathBuf>,
}

/// A search for protected files.
struct FileSearch<'a> {
    protected: &'a Protected,
    /// Root of the search, without links.
    root: &'a Path,
    most: usize,
    left: usize,
    found: FoundFiles,
}

impl FileSearch<'_> {
    /// Collects the protected files below a directory, or all files.
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
                } else if self.protected.governs_checkout(&path) {
                    // Git does not follow it.
                    self.found.files.insert(path);
                }
            } else if is_meant || self.protected.governs_checkout(&path) {
                self.found.files.insert(path);
            }
        }
        Ok(())
    }

    /// Collects a protected link and its target, or the protected files behind another link.
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
        for above in target.iter().flat_map(|target| target.ancestors().skip(1)) {
            let attributes = above.join(ATTRIBUTES);
            if fs::symlink_metadata(self.root.join(&attributes)).is_ok_and(|found| !found.is_dir()) {
                self.found.files.insert(attributes);
            }
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

/// Returns whether git reads attributes from this file.
pub(crate) fn is_attributes(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ATTRIBUTES)
}

/// Returns patterns of the directories above the matches of a pattern.
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

/// Returns the digest of a file with its executable bit, and its size. A link stands for its target path.
pub(crate) fn held(path: &Path) -> Result<(String, u64), UnreadableFile> {
    let read = || -> io::Result<(String, u64)> {
        let found = fs::symlink_metadata(path)?;
        if found.is_symlink() {
            return Ok((digest_of_target(&fs::read_link(path)?).to_string(), 0));
        }
        let content = file::read(path, MAX_FILE_SIZE)?;
        let is_executable = found.permissions().mode() & 0o100 != 0;
        let mode = if is_executable { EXECUTABLE } else { "" };
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

/// Returns the names of the files that differ between two snapshots, as text. Returns nothing if there are none.
pub fn difference(before: &str, now: &str) -> Option<String> {
    differing(before, now).map(|changed| named(&changed))
}

/// Returns the names of the files that differ between two snapshots. Returns nothing if there are none.
pub(crate) fn differing(before: &str, now: &str) -> Option<BTreeSet<String>> {
    if before == now {
        return None;
    }
    // Tools make such links and remove them. With the link, all protected files that a gate found behind it come or go.
    let ways = |look| str::lines(look).filter_map(way_in).collect::<BTreeSet<&str>>();
    let in_both: BTreeSet<&str> = ways(before).intersection(&ways(now)).copied().collect();
    let counts = |line: &&str| way_in(line).is_none_or(|link| in_both.contains(link));
    let (before, now) = (before.lines().filter(counts), now.lines().filter(counts));
    if before.clone().eq(now.clone()) {
        return None;
    }
    // Compare lines, not names: a name with a line break could stand for another file.
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) = (before.collect(), now.collect());
    let name = |line: &&'_ str| line.split_once(' ').map_or(*line, |(_, path)| path).to_owned();
    Some(before.symmetric_difference(&now).map(name).collect())
}

/// Returns the name of the link if a line of a snapshot is for a link above protected files.
pub(crate) fn way_in(line: &str) -> Option<&str> {
    line.split_once(' ').filter(|(word, _)| word.ends_with(WAY)).map(|(_, name)| name)
}

/// Lists changed files in a sentence.
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
mod tests;
