//! The targets of refs, from the repository's files: most questions need no program.
//!
//! Not here: repositories whose refs are no files (`GitRepository::refuse_reftable`).

use std::fs;
use std::path::Path;

use windlass_process::file;

use super::repository::{WorktreeHead, head, read_small_text};
use super::{GitCommitId, GitRepository};

/// Git searches a longer list faster, because it need not read all of it.
const MAX_PACKED_REFS_BYTES: u64 = 1024 * 1024;

/// The target of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RefTarget {
    At(GitCommitId),
    Missing,
    /// Only git can tell.
    Unclear,
}

impl GitRepository {
    /// Returns the target of a full ref that all worktrees share.
    pub(super) fn ref_target(&self, full: &str) -> RefTarget {
        if !full.starts_with("refs/") || full.contains("..") || self.common.join("reftable").exists() {
            return RefTarget::Unclear;
        }
        // While git packs a ref, the packed list has it before its own file disappears.
        let own = self.common.join(full);
        match fs::symlink_metadata(&own) {
            Ok(found) if !found.is_dir() => {
                read_small_text(&own).map_or(RefTarget::Unclear, |text| parse_target(&text))
            }
            _ => find_packed_ref(&self.common.join("packed-refs"), full),
        }
    }

    /// Returns the commit of the main worktree, if the files show it.
    pub fn head_commit(&self) -> Option<GitCommitId> {
        match head(&self.common).ok()? {
            WorktreeHead::Branch(branch) => match self.ref_target(&branch.full_ref()) {
                RefTarget::At(commit) => Some(commit),
                RefTarget::Missing | RefTarget::Unclear => None,
            },
            WorktreeHead::Detached(commit) => Some(commit),
            WorktreeHead::Unknown => None,
        }
    }

    /// Returns the last known default branch of a remote: `refs/remotes/origin/main`.
    pub(super) fn remote_head(&self, remote: &str) -> Option<String> {
        let text = read_small_text(&self.common.join("refs/remotes").join(remote).join("HEAD"))?;
        text.trim_end().strip_prefix("ref: ").map(|full| full.trim().to_owned())
    }
}

fn find_packed_ref(list: &Path, full: &str) -> RefTarget {
    if fs::metadata(list).is_err() {
        return RefTarget::Missing;
    }
    let Ok(bytes) = file::read_bounded(list, MAX_PACKED_REFS_BYTES) else { return RefTarget::Unclear };
    let text = String::from_utf8_lossy(&bytes);
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(_, name)| *name == full);
    found.map_or(RefTarget::Missing, |(id, _)| parse_target(id))
}

fn parse_target(id: &str) -> RefTarget {
    GitCommitId::new(id.trim_end()).map_or(RefTarget::Unclear, RefTarget::At)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";
    const OTHER: &str = "9876543210987654321098765432109876543210";

    fn repository() -> (tempfile::TempDir, GitRepository) {
        let directory = tempfile::tempdir().expect("a directory");
        let repository = GitRepository { root: directory.path().to_owned(), common: directory.path().to_owned() };
        fs::create_dir_all(repository.common.join("refs/heads/x")).expect("made");
        (directory, repository)
    }

    #[test]
    fn loose_ref_overrides_packed_ref() {
        let (_kept, repository) = repository();
        let list = format!("# pack-refs with: peeled\n{ID} refs/heads/main\n{ID} refs/heads/x\n^{OTHER}\n");
        fs::write(repository.common.join("packed-refs"), list).expect("written");
        let place = |full| repository.ref_target(full);
        assert_eq!(place("refs/heads/main"), Place::At(Commit::new(ID).expect("an id")));
        // A directory of other branches is no branch.
        assert_eq!(place("refs/heads/x"), Place::At(Commit::new(ID).expect("an id")));
        fs::write(repository.common.join("refs/heads/main"), format!("{OTHER}\n")).expect("written");
        assert_eq!(place("refs/heads/main"), Place::At(Commit::new(OTHER).expect("an id")));
        assert_eq!(place("refs/heads/mai"), Place::Nowhere);
    }

    #[test]
    fn ref_without_plain_id_is_unclear() {
        let (_kept, repository) = repository();
        for odd in ["ref: refs/heads/main\n", "", "not an id\n"] {
            fs::write(repository.common.join("refs/heads/odd"), odd).expect("written");
            assert_eq!(repository.place_of_ref("refs/heads/odd"), Place::Unclear, "{odd:?}");
        }
        assert_eq!(repository.place_of_ref("HEAD"), Place::Unclear);
        assert_eq!(repository.place_of_ref("refs/heads/../../HEAD"), Place::Unclear);
        fs::create_dir(repository.common.join("reftable")).expect("made");
        assert_eq!(repository.place_of_ref("refs/heads/main"), Place::Unclear);
    }
}
