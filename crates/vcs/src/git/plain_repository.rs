//! A temporary Windlass repository for one operation on files: it has the objects of the person's repository, and nothing
//! else of it.
//!
//! Code in a worktree can write the configuration, the attributes, the exclusions and the index of the repository. Where a
//! verdict depends on the files, none of these apply. The person's own configuration does.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use windlass_process::file;

use super::command::GitCommand;
use super::removal::remove_path;
use super::{Error, GitClient, GitCommitId, canonical_path, parse_paths};

/// The largest index: some millions of files.
const MAX_INDEX_BYTES: u64 = 1 << 30;

/// Settings that override those of the person, which suit permanent repositories.
const FIXED_SETTINGS: [&str; 6] = [
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.sparseCheckout=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.fileMode=true",
];

/// An index as git wrote it. Its time tells git which files may have changed within the same tick of the clock.
#[derive(Debug)]
pub(super) struct SavedIndex {
    bytes: Vec<u8>,
    written: SystemTime,
}

impl SavedIndex {
    fn read_from(path: &Path) -> Result<Self, Error> {
        let bytes = file::read_bounded(path, MAX_INDEX_BYTES).map_err(Error::io_error("read", path))?;
        let written =
            fs::metadata(path).and_then(|found| found.modified()).map_err(Error::io_error("look at", path))?;
        Ok(Self { bytes, written })
    }

    pub fn write_to(&self, path: &Path) -> Result<(), Error> {
        let write = || {
            let mut file = File::create(path)?;
            file.write_all(&self.bytes)?;
            file.set_modified(self.written)
        };
        write().map_err(Error::io_error("write", path))
    }
}

/// A temporary repository, deleted on drop.
pub(super) struct PlainRepository<'g, 'a> {
    git: &'g GitClient<'a>,
    directory: TempDir,
    worktree: PathBuf,
}

impl<'a> GitClient<'a> {
    /// Creates a repository that writes and lists the files of a worktree.
    pub(super) fn plain_repository<'g>(
        &'g self,
        worktree: &Path,
        commit: &GitCommitId,
    ) -> Result<PlainRepository<'g, 'a>, Error> {
        let directory = tempfile::Builder::new().prefix("windlass-").tempdir();
        let directory = directory.map_err(Error::io_error("make", std::env::temp_dir()))?;
        let format = match commit.as_str().len() {
            64 => "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
            _ => "[core]\n\trepositoryformatversion = 0\n",
        };
        let objects = [self.repository.common.join("objects").as_os_str().as_bytes(), b"\n"].concat();
        let files: [(&str, &[u8]); 3] =
            [("HEAD", b"ref: refs/heads/none\n"), ("config", format.as_bytes()), ("objects/info/alternates", &objects)];
        for name in ["objects/info", "refs"] {
            let path = directory.path().join(name);
            fs::create_dir_all(&path).map_err(Error::io_error("make", path))?;
        }
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::write(&path, bytes).map_err(Error::io_error("write", path))?;
        }
        Ok(PlainRepository { git: self, directory, worktree: canonical_path(worktree) })
    }

    /// Returns the entries of a worktree besides the files of a commit. A directory without a file of the commit is one entry.
    pub fn files_beside_commit(&self, worktree: &Path, commit: &GitCommitId) -> Result<Vec<PathBuf>, Error> {
        let plain = self.plain_repository(worktree, commit)?;
        plain.build_command(&["read-tree"]).with_argument(commit).run_checked()?;
        let call = plain.build_command(&["ls-files", "--others", "--directory", "--no-empty-directory", "-z"]);
        let answer = call.run_checked()?;
        let mut beside: Vec<PathBuf> =
            parse_paths(answer.split_entries()).iter().map(|path| path.components().collect()).collect();
        let listing = plain.list_index()?;
        beside.extend(listing.hidden_git_entries(worktree));
        let has_files =
            |path: &&PathBuf| fs::read_dir(worktree.join(path)).is_ok_and(|mut found| found.next().is_some());
        let filled: Vec<&PathBuf> = listing.gitlinks.iter().filter(has_files).collect();
        if !filled.is_empty() {
            let known = self.known_submodules(worktree)?;
            beside.extend(filled.into_iter().filter(|path| !known.contains(path)).cloned());
        }
        Ok(beside)
    }
}

/// The contents of an index besides plain files.
pub(super) struct IndexListing {
    /// The paths of commits of other repositories.
    pub gitlinks: Vec<PathBuf>,
    /// The directories of files, except the root.
    directories: BTreeSet<PathBuf>,
}

impl IndexListing {
    /// Returns every `.git` in the directories of files. Git skips entries of this name.
    fn hidden_git_entries(&self, worktree: &Path) -> Vec<PathBuf> {
        let paths = self.directories.iter().map(|directory| directory.join(".git"));
        paths.filter(|path| fs::symlink_metadata(worktree.join(path)).is_ok()).collect()
    }
}

impl<'a> PlainRepository<'_, 'a> {
    fn build_command(&self, words: &[&str]) -> GitCommand<'_, 'a> {
        let call =
            FIXED_SETTINGS.iter().fold(self.git.build_command(words), |call, setting| call.with_setting(setting));
        let call = call.with_variable("GIT_DIR", self.directory.path()).with_variable("GIT_WORK_TREE", &self.worktree);
        call.in_directory(&self.worktree)
    }

    /// Writes the files of a commit, and returns the index. Files that an earlier index reports as unchanged stay untouched.
    pub fn write_files(&self, commit: &GitCommitId, before: Option<&SavedIndex>) -> Result<SavedIndex, Error> {
        let index = self.directory.path().join("index");
        before.map_or(Ok(()), |before| before.write_to(&index))?;
        let mut call =
            self.build_command(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).with_argument(commit);
        // Large files that git stores elsewhere (LFS) are in the person's repository, unless the person set another place.
        let large = self.git.repository.common.join("lfs");
        if large.is_dir() && self.build_command(&["config", "--get", "lfs.storage"]).run_unchecked()?.code != 0 {
            let setting = [b"lfs.storage=", large.as_os_str().as_bytes()].concat();
            call = call.with_setting(OsStr::from_bytes(&setting));
        }
        call.run_checked()?;
        SavedIndex::read_from(&index)
    }

    /// Returns the contents of this repository's index, after files were written or read into it.
    pub fn list_index(&self) -> Result<IndexListing, Error> {
        let answer = self.build_command(&["ls-files", "--stage", "-z"]).run_checked()?;
        let mut listing = IndexListing { gitlinks: Vec::new(), directories: BTreeSet::new() };
        for entry in answer.split_entries() {
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let path = PathBuf::from(OsStr::from_bytes(&entry[tab + 1..]));
            let parents = path.ancestors().skip(1).filter(|directory| !directory.as_os_str().is_empty());
            for directory in parents {
                if !listing.directories.insert(directory.to_owned()) {
                    break;
                }
            }
            if entry.starts_with(b"160000 ") {
                listing.gitlinks.push(path);
            }
        }
        Ok(listing)
    }

    /// Removes everything else from the worktree, except files that match the patterns.
    pub fn remove_other_files(&self, kept: &[String]) -> Result<(), Error> {
        let call = self.build_command(&["clean", "-ffdxq"]);
        let options = kept.iter().map(|pattern| format!("--exclude={pattern}"));
        options.fold(call, |call, option| call.with_argument(option)).run_checked()?;
        for path in self.list_index()?.hidden_git_entries(&self.worktree) {
            remove_path(&self.worktree.join(path))?;
        }
        Ok(())
    }
}
