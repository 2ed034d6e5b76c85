//! The targets of refs, from the repository's files: most questions need no program.
//!
//! Not here: repositories whose refs are no files (`GitRepository::refuse_reftable`).

use std::fs;
use std::path::Path;

use windlass_process::file;

use super::repository::{Head, head, text};
use super::{Commit, Repository};

/// Git searches a longer list faster, because it need not read all of it.
const LIST: u64 = 1024 * 1024;

/// The target of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    At(Commit),
    Nowhere,
    /// Only git can tell.
    Unclear,
}

impl Repository {
    /// Returns the target of a full ref that all worktrees share.
    pub(super) fn place_of_ref(&self, full: &str) -> Place {
        if !full.starts_with("refs/") || full.contains("..") || self.common.join("reftable").exists() {
            return Place::Unclear;
        }
        // While git packs a ref, the packed list has it before its own file disappears.
        let own = self.common.join(full);
        match fs::symlink_metadata(&own) {
            Ok(found) if !found.is_dir() => text(&own).map_or(Place::Unclear, |text| at(&text)),
            _ => listed(&self.common.join("packed-refs"), full),
        }
    }

    /// Returns the commit of the main worktree, if the files show it.
    pub fn head_commit(&self) -> Option<Commit> {
        match head(&self.common).ok()? {
            Head::Branch(branch) => match self.place_of_ref(&branch.full()) {
                Place::At(commit) => Some(commit),
                Place::Nowhere | Place::Unclear => None,
            },
            Head::Detached(commit) => Some(commit),
            Head::Unknown => None,
        }
    }

    /// Returns the last known default branch of a remote: `refs/remotes/origin/main`.
    pub(super) fn head_of_remote(&self, remote: &str) -> Option<String> {
        let text = text(&self.common.join("refs/remotes").join(remote).join("HEAD"))?;
        text.trim_end().strip_prefix("ref: ").map(|full| full.trim().to_owned())
    }
}

fn listed(list: &Path, full: &str) -> Place {
    if fs::metadata(list).is_err() {
        return Place::Nowhere;
    }
    let Ok(bytes) = file::read(list, LIST) else { return Place::Unclear };
    let text = String::from_utf8_lossy(&bytes);
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(_, name)| *name == full);
    found.map_or(Place::Nowhere, |(id, _)| at(id))
}

fn at(id: &str) -> Place {
    Commit::new(id.trim_end()).map_or(Place::Unclear, Place::At)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";
    const OTHER: &str = "9876543210987654321098765432109876543210";

    fn repository() -> (tempfile::TempDir, Repository) {
        let directory = tempfile::tempdir().expect("a directory");
        let repository = Repository { root: directory.path().to_owned(), common: directory.path().to_owned() };
        fs::create_dir_all(repository.common.join("refs/heads/x")).expect("made");
        (directory, repository)
    }

    #[test]
    fn its_own_file_counts_before_the_list() {
        let (_kept, repository) = repository();
        let list = format!("# pack-refs with: peeled\n{ID} refs/heads/main\n{ID} refs/heads/x\n^{OTHER}\n");
        fs::write(repository.common.join("packed-refs"), list).expect("written");
        let place = |full| repository.place_of_ref(full);
        assert_eq!(place("refs/heads/main"), Place::At(Commit::new(ID).expect("an id")));
        // A directory of other branches is no branch.
        assert_eq!(place("refs/heads/x"), Place::At(Commit::new(ID).expect("an id")));
        fs::write(repository.common.join("refs/heads/main"), format!("{OTHER}\n")).expect("written");
        assert_eq!(place("refs/heads/main"), Place::At(Commit::new(OTHER).expect("an id")));
        assert_eq!(place("refs/heads/mai"), Place::Nowhere);
    }

    #[test]
    fn what_is_no_plain_id_is_for_git_to_say() {
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
