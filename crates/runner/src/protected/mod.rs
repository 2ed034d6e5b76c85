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
use windlass_hooks::SecretMask;
use windlass_process::file::{self, UnreadableFile};

/// Maximum number of files and directories in a search.
const MAX_SEARCHED_ENTRIES: usize = 100_000;
/// Maximum size of one protected file, and of all of them together.
const MAX_FILE_SIZE: u64 = 256 * 1024 * 1024;
const MAX_TOTAL_SIZE: u64 = 4 * 1024 * 1024 * 1024;
/// Suffix of the digest of an executable file.
const EXECUTABLE_SUFFIX: &str = "+x";
/// Suffix of the digest of a link that is not protected itself, above files that the patterns may match.
const PARENT_LINK_SUFFIX: &str = "+way";
/// Maximum number of changed files in a message.
const MAX_NAMED_FILES: usize = 5;
/// Files that git and Windlass change all the time, and that judge nothing.
const EXCLUDED_PATTERNS: [&str; 7] = [
    ".git",
    ".windlass/owners",
    ".windlass/runs",
    ".windlass/worktrees",
    ".windlass/backups",
    ".windlass/windlass.db*",
    ".windlass/*.lock",
];
/// File by which git changes the bytes of the files beside and below it in a checkout.
const ATTRIBUTES_FILE_NAME: &str = ".gitattributes";
/// Signs with which a part of a pattern can match several parts of a path, or has no clear end.
const BRANCHING_SIGNS: [&str; 4] = ["**", "{", "[", "\\"];

/// Reason why protected files cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtectedFilesError {
    #[error("there are more than {0} files and directories where protected files may be")]
    TooManyEntries(usize),
    #[error("the protected files have more than {} GiB", .0 >> 30)]
    TooManyBytes(u64),
    #[error("`{name}` {}: {}", .reason.describe_cause(), .reason.remedy_hint())]
    Unreadable { name: String, reason: UnreadableFile },
}

impl ProtectedFilesError {
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
pub struct ProtectedFiles {
    patterns: GlobSet,
    /// Directories above possible matches of the patterns.
    parents: GlobSet,
    /// The directories above that are at a known depth.
    fixed_depth_parents: GlobSet,
    /// Files that are left out of all patterns.
    excluded: GlobSet,
    mask: SecretMask,
}

impl ProtectedFiles {
    /// Builds the set. A pattern names files and directories; a directory includes its content. A pattern without an inner slash
    /// matches at any depth.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let (mut set, mut kept) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let (mut ways, mut short_ways) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in EXCLUDED_PATTERNS {
            kept.add(parse_glob(pattern)?);
        }
        for pattern in patterns {
            let pattern = pattern.trim_end_matches('/');
            let anywhere = (!pattern.contains('/')).then(|| format!("**/{pattern}"));
            let here = pattern.trim_start_matches("./").to_owned();
            for pattern in [here].into_iter().chain(anywhere) {
                set.add(parse_glob(&pattern)?);
                set.add(parse_glob(&format!("{pattern}/**"))?);
                for way in parent_patterns(&pattern) {
                    ways.add(parse_glob(&way)?);
                    if !way.contains("**") {
                        short_ways.add(parse_glob(&way)?);
                    }
                }
            }
        }
        let (ways, short_ways) = (ways.build()?, short_ways.build()?);
        Ok(Self {
            patterns: set.build()?,
            parents: ways,
            fixed_depth_parents: short_ways,
            excluded: kept.build()?,
            mask: SecretMask::default(),
        })
    }

    /// Returns the set with a mask for secrets in names.
    pub fn with_mask(self, mask: SecretMask) -> Self {
        Self { mask, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        self.patterns.is_match(path) || self.governs_checkout(path)
    }

    /// Returns whether git reads attributes from this file when it checks out files that the patterns may match.
    fn governs_checkout(&self, path: &Path) -> bool {
        let is_above = |directory: &Path| directory == Path::new("") || self.parents.is_match(directory);
        !self.is_empty() && is_attributes_file(path) && path.parent().is_some_and(is_above)
    }

    /// Returns the masked name of a file for records and messages.
    pub(crate) fn masked_name(&self, path: &Path) -> String {
        self.mask.mask_text(&path.to_string_lossy()).into_owned()
    }

    /// Returns a snapshot of the protected files, one line for each.
    pub fn take_snapshot(&self, root: &Path) -> Result<String, ProtectedFilesError> {
        let found = self.find_files(root)?;
        Ok(self.snapshot_files(root, &found.files)? + &self.snapshot_parent_links(root, &found.parent_links))
    }

    /// Finds the protected files below a directory.
    pub(crate) fn find_files(&self, root: &Path) -> Result<FoundFiles, ProtectedFilesError> {
        self.find_files_bounded(MAX_SEARCHED_ENTRIES, root)
    }

    fn find_files_bounded(&self, most: usize, root: &Path) -> Result<FoundFiles, ProtectedFilesError> {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut search = FileSearch { protected: self, root: &real, most, left: most, found: FoundFiles::default() };
        search.walk_directory(Path::new(""), false)?;
        Ok(search.found)
    }

    /// Returns a snapshot of some files.
    pub(crate) fn snapshot_files(&self, root: &Path, files: &BTreeSet<PathBuf>) -> Result<String, ProtectedFilesError> {
        let (mut look, mut left) = (String::new(), MAX_TOTAL_SIZE);
        for path in files {
            let name = self.masked_name(path);
            let (content, size) = digest_file(&root.join(path))
                .map_err(|reason| ProtectedFilesError::Unreadable { name: name.clone(), reason })?;
            left = left.checked_sub(size).ok_or(ProtectedFilesError::TooManyBytes(MAX_TOTAL_SIZE))?;
            look.extend([&content, " ", &name, "\n"]);
        }
        Ok(look)
    }

    /// Returns a snapshot of some links above protected files.
    pub(crate) fn snapshot_parent_links(&self, root: &Path, links: &BTreeSet<PathBuf>) -> String {
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
    pub parent_links: BTreeSet<PathBuf>,
}

/// A search for protected files.
struct FileSearch<'a> {
    protected: &'a ProtectedFiles,
    /// Root of the search, without links.
    root: &'a Path,
    most: usize,
    left: usize,
    found: FoundFiles,
}

impl FileSearch<'_> {
    /// Collects the protected files below a directory, or all files.
    fn walk_directory(&mut self, within: &Path, all: bool) -> Result<(), ProtectedFilesError> {
        let Ok(entries) = fs::read_dir(self.root.join(within)) else { return Ok(()) };
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or(ProtectedFilesError::TooManyEntries(self.most))?;
            let path = within.join(entry.file_name());
            if self.protected.excluded.is_match(&path) {
                continue;
            }
            let kind = entry.file_type();
            let is_meant = all || self.protected.patterns.is_match(&path);
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                if is_meant || self.protected.parents.is_match(&path) {
                    self.walk_directory(&path, all)?;
                }
            } else if kind.is_ok_and(|kind| kind.is_symlink()) {
                let is_file = || fs::metadata(self.root.join(&path)).is_ok_and(|found| !found.is_dir());
                if !is_meant && self.protected.parents.is_match(&path) && !is_file() {
                    self.found.parent_links.insert(path.clone());
                }
                if is_meant || self.protected.fixed_depth_parents.is_match(&path) {
                    self.follow_link(path, is_meant)?;
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
    fn follow_link(&mut self, link: PathBuf, is_meant: bool) -> Result<(), ProtectedFilesError> {
        let resolved = file::resolve_within_directory(self.root, &self.root.join(&link));
        if let Some(reason) = resolved.as_ref().err().and_then(UnreadableFile::from_io_error).filter(|_| is_meant) {
            return Err(ProtectedFilesError::Unreadable {
                name: self.protected.masked_name(&link),
                reason: reason.clone(),
            });
        }
        let target = resolved.ok().and_then(|real| real.strip_prefix(self.root).ok().map(Path::to_owned));
        let is_above = target.as_ref().is_some_and(|target| link.starts_with(target));
        let target = target.filter(|target| !is_above && !self.protected.excluded.is_match(target));
        if is_meant {
            self.found.files.insert(link);
        } else if target.is_some() {
            return self.walk_directory(&link, false);
        }
        for above in target.iter().flat_map(|target| target.ancestors().skip(1)) {
            let attributes = above.join(ATTRIBUTES_FILE_NAME);
            if fs::symlink_metadata(self.root.join(&attributes)).is_ok_and(|found| !found.is_dir()) {
                self.found.files.insert(attributes);
            }
        }
        match target.filter(|target| self.found.targets.insert(target.clone())) {
            Some(target) if self.root.join(&target).is_dir() => self.walk_directory(&target, true),
            Some(target) => {
                self.found.files.insert(target);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Returns whether git reads attributes from this file.
pub(crate) fn is_attributes_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ATTRIBUTES_FILE_NAME)
}

/// Returns patterns of the directories above the matches of a pattern.
fn parent_patterns(pattern: &str) -> Vec<String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let branches = parts.iter().position(|part| BRANCHING_SIGNS.iter().any(|sign| part.contains(sign)));
    let above = branches.unwrap_or(parts.len() - 1);
    let mut ways: Vec<String> = (1..=above).map(|count| parts[..count].join("/")).collect();
    if branches.is_some() {
        ways.push(parts[..above].iter().copied().chain(["**"]).collect::<Vec<_>>().join("/"));
    }
    ways
}

fn parse_glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// Returns the digest of a file with its executable bit, and its size. A link stands for its target path.
pub(crate) fn digest_file(path: &Path) -> Result<(String, u64), UnreadableFile> {
    let read = || -> io::Result<(String, u64)> {
        let found = fs::symlink_metadata(path)?;
        if found.is_symlink() {
            return Ok((digest_link_target(&fs::read_link(path)?).to_string(), 0));
        }
        let content = file::read_bounded(path, MAX_FILE_SIZE)?;
        let is_executable = found.permissions().mode() & 0o100 != 0;
        let mode = if is_executable { EXECUTABLE_SUFFIX } else { "" };
        Ok((format!("{}{mode}", Digest::of(&content)), content.len() as u64))
    };
    read().or_else(|error| match UnreadableFile::from_io_error(&error) {
        Some(reason) => Err(reason.clone()),
        None => Ok(("unreadable".to_owned(), 0)),
    })
}

fn digest_link_target(target: &Path) -> Digest {
    Digest::of_bytes(target.as_os_str().as_encoded_bytes())
}

/// Returns the names of the files that differ between two snapshots, as text. Returns nothing if there are none.
pub fn describe_difference(before: &str, now: &str) -> Option<String> {
    changed_names(before, now).map(|changed| list_changed_files(&changed))
}

/// Returns the names of the files that differ between two snapshots. Returns nothing if there are none.
pub(crate) fn changed_names(before: &str, now: &str) -> Option<BTreeSet<String>> {
    if before == now {
        return None;
    }
    // Tools make such links and remove them. With the link, all protected files that a gate found behind it come or go.
    let ways = |look| str::lines(look).filter_map(parent_link_name).collect::<BTreeSet<&str>>();
    let in_both: BTreeSet<&str> = ways(before).intersection(&ways(now)).copied().collect();
    let counts = |line: &&str| parent_link_name(line).is_none_or(|link| in_both.contains(link));
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
pub(crate) fn parent_link_name(line: &str) -> Option<&str> {
    line.split_once(' ').filter(|(word, _)| word.ends_with(PARENT_LINK_SUFFIX)).map(|(_, name)| name)
}

/// Lists changed files in a sentence.
pub(crate) fn list_changed_files(changed: &BTreeSet<String>) -> String {
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    let more = changed.len().saturating_sub(MAX_NAMED_FILES);
    let named = changed[..changed.len().min(MAX_NAMED_FILES)].join(", ");
    match (changed.len(), more) {
        (0, _) => "files whose names are alike".to_owned(),
        (_, 0) => named,
        _ => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
