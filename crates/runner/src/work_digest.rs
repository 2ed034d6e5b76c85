//! Digest of the changes in the work directory: two turns with the same digest have left the same files.
//!
//! ```text
//! .git above? ─ no ─► nothing        yes ─► git status ─► its entries, and the content of the changed files ─► digest
//! ```
//!
//! Invariants:
//! - The repository does not change: git does not refresh its index.
//! - If git takes too long, or there is too much to read, this process does not try again.
//!
//! Not here: the meaning of the digests (`engine`).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use windlass_engine::Digest;
use windlass_process::{CaptureLimits, Environment, ProgramSpec, file};
use windlass_vcs::git::{GitClient, GitRepository, RunProgram, has_git_entry};

/// Timeout of git. A turn of an agent takes many times as long.
const GIT_STATUS_TIMEOUT: Duration = Duration::from_secs(2);
const GIT_STATUS_GRACE: Duration = Duration::from_millis(100);
/// Maximum size of a git status. A longer one is not used.
const MAX_STATUS_BYTES: usize = 1024 * 1024;
/// Maximum number and total size of the changed files that are read.
const MAX_CHANGED_FILES: usize = 4096;
const MAX_CHANGED_BYTES: u64 = 64 * 1024 * 1024;

/// Digester of the work directory, used after each turn.
#[derive(Debug, Default)]
pub(crate) struct WorkDigester {
    gave_up: bool,
}

impl WorkDigester {
    /// Returns a digest of the changes, if there is git and it answers in time.
    pub fn digest_changes(
        &mut self,
        directory: &Path,
        environment: &Environment,
        run: RunProgram<'_>,
    ) -> Option<Digest> {
        let root = directory.ancestors().find(|above| has_git_entry(above)).filter(|_| !self.gave_up)?;
        let capture = CaptureLimits { head: MAX_STATUS_BYTES, tail: 0, spill: None };
        let quickly = |spec: &ProgramSpec| {
            run(&ProgramSpec {
                timeout: Some(GIT_STATUS_TIMEOUT),
                grace: GIT_STATUS_GRACE,
                capture: capture.clone(),
                ..spec.clone()
            })
        };
        let repository = GitRepository::discover(root).ok().flatten();
        let said = repository
            .and_then(|repository| GitClient::new(repository, &quickly, environment).list_tree_state(root).ok());
        let digest = said.and_then(|said| digest_entries(root, &said));
        self.gave_up = digest.is_none();
        digest
    }
}

/// Digests the entries of git and the content of the files that they name. Returns nothing if that is too much.
fn digest_entries(root: &Path, said: &[Vec<u8>]) -> Option<Digest> {
    let mut parts = Vec::new();
    let (mut files, mut bytes) = (0, 0);
    for entry in said {
        let path = changed_path(entry);
        if path.is_some_and(is_windlass_path) {
            continue;
        }
        parts.extend_from_slice(&Digest::of_bytes(entry).0);
        if let Some(path) = path {
            files += 1;
            let (held, length) = digest_file(&root.join(path)).unwrap_or((Digest::ZERO, 0));
            bytes += length;
            if files > MAX_CHANGED_FILES || bytes > MAX_CHANGED_BYTES {
                return None;
            }
            parts.extend_from_slice(&held.0);
        }
    }
    Some(Digest::of_bytes(&parts))
}

/// Returns the file that an entry names: `1 .M … path`, `u UU … path`, `? path`.
fn changed_path(entry: &[u8]) -> Option<&Path> {
    let fields = match entry.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    let path = entry.splitn(fields + 1, |byte| *byte == b' ').nth(fields)?;
    Some(Path::new(OsStr::from_bytes(path)))
}

/// Returns whether a path belongs to Windlass, whose files change with every step.
fn is_windlass_path(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".windlass")
}

/// Returns the digest and the length of a file's content. For a link it digests the target path.
fn digest_file(path: &Path) -> io::Result<(Digest, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Ok((Digest::of_bytes(fs::read_link(path)?.as_os_str().as_bytes()), 0));
    }
    if !metadata.is_file() || metadata.len() > MAX_CHANGED_BYTES {
        return Ok((Digest::ZERO, metadata.len().min(MAX_CHANGED_BYTES + 1)));
    }
    let content = file::read_file_start(path, MAX_CHANGED_BYTES)?;
    Ok((Digest::of_bytes(&content), content.len() as u64))
}

#[cfg(test)]
mod tests {
    use windlass_process::{ProgramExit, ProgramOutcome};

    use super::*;

    #[test]
    fn status_entry_names_its_path() {
        let of = |entry: &str| changed_path(entry.as_bytes()).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(of("1 .M N... 100644 100644 100644 abc abc src/a b.rs").as_deref(), Some("src/a b.rs"));
        assert_eq!(of("u UU N... 1 2 3 4 a b c x").as_deref(), Some("x"));
        assert_eq!(of("? new file").as_deref(), Some("new file"));
        assert_eq!(of("# branch.oid abc"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn digest_covers_file_content_but_not_windlass_files() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        fs::create_dir(root.join(".windlass")).unwrap();
        let said = ["# branch.oid abc", "? a", "? .windlass/x", "? gone"].map(|entry| entry.as_bytes().to_vec());
        write("a", "one");
        write(".windlass/x", "one");
        let first = digest_entries(root, &said);
        write(".windlass/x", "two");
        assert_eq!(digest(root, &said), first);
        write("a", "two");
        assert_ne!(digest(root, &said), first);
        assert_ne!(digest(root, &said[1..2]), digest(root, &said[..2]));
    }

    #[test]
    fn digester_does_not_try_again_after_timeout() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join(".git/objects")).unwrap();
        fs::create_dir(directory.path().join(".git/refs")).unwrap();
        fs::write(directory.path().join(".git/HEAD"), "ref: refs/heads/main").unwrap();
        let mut looker = WorkDigester::default();
        let below = directory.path().join("src");
        let late = |_: &ProgramSpec| {
            Ok(ProgramOutcome { exit: ProgramExit::TimedOut, ..ProgramOutcome::success_with_stdout(Vec::new()) })
        };
        assert_eq!(looker.look(&below, &Vec::new(), &late), None);
        assert_eq!(looker.look(&below, &Vec::new(), &|_| panic!("it looks again")), None);
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(elsewhere.path().join(".git")).unwrap();
        assert_eq!(Looker::default().look(elsewhere.path(), &Vec::new(), &|_| panic!("there is no git")), None);
    }
}
