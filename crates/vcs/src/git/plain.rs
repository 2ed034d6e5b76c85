//! A repository of ours for one look at files: it has the objects of the person's repository, and nothing else of it.
//!
//! Code that runs in a worktree can write the configuration, the attributes, the exclusions and the index of the repository. Where
//! files are written or listed for a judgement none of that counts. The person's own configuration does.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use windlass_process::file;

use super::ask::Call;
use super::{Commit, Error, Git, canonical, paths};

/// The largest index: some millions of files.
const MAX_INDEX_BYTES: u64 = 1 << 30;

/// What the person may have set for repositories that last.
const SETTINGS: [&str; 3] = ["core.splitIndex=false", "core.untrackedCache=false", "core.sparseCheckout=false"];

/// An index as git wrote it. The time tells git which files may have changed since within one tick of the clock.
#[derive(Debug)]
pub(super) struct SavedIndex {
    bytes: Vec<u8>,
    written: SystemTime,
}

impl SavedIndex {
    fn read(path: &Path) -> Result<Self, Error> {
        let bytes = file::read(path, MAX_INDEX_BYTES).map_err(Error::io("read", path))?;
        let written = fs::metadata(path).and_then(|found| found.modified()).map_err(Error::io("look at", path))?;
        Ok(Self { bytes, written })
    }

    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let write = || {
            let mut file = File::create(path)?;
            file.write_all(&self.bytes)?;
            file.set_modified(self.written)
        };
        write().map_err(Error::io("write", path))
    }
}

/// Goes when it is dropped.
pub(super) struct PlainRepository<'g, 'a> {
    git: &'g Git<'a>,
    directory: TempDir,
    worktree: PathBuf,
}

impl<'a> Git<'a> {
    /// Makes a repository that writes and lists the files of a worktree.
    pub(super) fn plain<'g>(&'g self, worktree: &Path, commit: &Commit) -> Result<PlainRepository<'g, 'a>, Error> {
        let directory = tempfile::Builder::new().prefix("windlass-").tempdir();
        let directory = directory.map_err(Error::io("make", std::env::temp_dir()))?;
        let format = match commit.as_str().len() {
            64 => "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
            _ => "[core]\n\trepositoryformatversion = 0\n",
        };
        let objects = [self.repository.common.join("objects").as_os_str().as_bytes(), b"\n"].concat();
        let files: [(&str, &[u8]); 3] =
            [("HEAD", b"ref: refs/heads/none\n"), ("config", format.as_bytes()), ("objects/info/alternates", &objects)];
        for name in ["objects/info", "refs"] {
            let path = directory.path().join(name);
            fs::create_dir_all(&path).map_err(Error::io("make", path))?;
        }
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::write(&path, bytes).map_err(Error::io("write", path))?;
        }
        Ok(PlainRepository { git: self, directory, worktree: canonical(worktree) })
    }

    /// Returns what a worktree has besides the files of a commit. A directory without a file of the commit is one entry.
    pub fn files_beside(&self, worktree: &Path, commit: &Commit) -> Result<Vec<PathBuf>, Error> {
        let plain = self.plain(worktree, commit)?;
        plain.call(&["read-tree"]).word(commit).done()?;
        let call = plain.call(&["ls-files", "--others", "--directory", "--no-empty-directory", "-z"]);
        let answer = call.done()?;
        Ok(paths(answer.entries()).into_iter().map(|path| path.components().collect()).collect())
    }
}

impl<'a> PlainRepository<'_, 'a> {
    fn call(&self, words: &[&str]) -> Call<'_, 'a> {
        let call = SETTINGS.iter().fold(self.git.call(words), |call, setting| call.set(setting));
        let call = call.variable("GIT_DIR", self.directory.path()).variable("GIT_WORK_TREE", &self.worktree);
        call.within(&self.worktree)
    }

    /// Writes the files of a commit, and returns the index. Those stay untouched that an index from before says are unchanged.
    pub fn write_files(&self, commit: &Commit, before: Option<&SavedIndex>) -> Result<SavedIndex, Error> {
        let index = self.directory.path().join("index");
        before.map_or(Ok(()), |before| before.write(&index))?;
        // Large files that git keeps elsewhere (LFS) are with the person's repository.
        let storage = [b"lfs.storage=", self.git.repository.common.join("lfs").as_os_str().as_bytes()].concat();
        let call = self.call(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).word(commit);
        call.set(OsStr::from_bytes(&storage)).done()?;
        SavedIndex::read(&index)
    }

    /// Removes everything else from the worktree, besides what patterns name.
    pub fn remove_others(&self, kept: &[String]) -> Result<(), Error> {
        let call = self.call(&["clean", "-ffdxq"]);
        let options = kept.iter().map(|pattern| format!("--exclude={pattern}"));
        options.fold(call, |call, option| call.word(option)).done().map(drop)
    }
}
