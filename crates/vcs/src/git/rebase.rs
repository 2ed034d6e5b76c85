//! Rebases a branch onto a newer base.
//!
//! A branch with merges is not flattened: the base is merged into it, so that resolved conflicts stay resolved. Changes
//! that the base already has, in any commits, do not conflict with it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::operation::refuse_operation;
use super::repository::{WorktreeEntry, WorktreeHead};
use super::{Error, GitClient, GitCommitId, RepositoryLock, Worktree, canonical_path, parse_paths};

/// The outcome of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchRebaseOutcome {
    /// The branch contains the base already.
    UpToDate,
    Done {
        head: GitCommitId,
    },
    /// Nothing has changed.
    Conflict {
        /// The files of the first commit that conflicts, and those that conflict when the whole branch is merged.
        files: Vec<PathBuf>,
        why: String,
    },
}

/// A worktree that no other process uses, and the last commit of its branch.
struct MovableWorktree {
    entry: WorktreeEntry,
    head: GitCommitId,
    _held: RepositoryLock,
}

impl GitClient<'_> {
    /// Rebases a worktree's branch onto a commit. The worktree must have no uncommitted work; untracked files stay.
    pub fn rebase_worktree(&self, worktree: &Worktree, onto: &GitCommitId) -> Result<BranchRebaseOutcome, Error> {
        self.rebase_after(worktree, None, onto)
    }

    /// Rebases only the commits after `start`, if the branch descends from it: earlier commits are other work, which the
    /// base has in its own form.
    pub fn rebase_after(
        &self,
        worktree: &Worktree,
        start: Option<&GitCommitId>,
        onto: &GitCommitId,
    ) -> Result<BranchRebaseOutcome, Error> {
        let MovableWorktree { entry, head, _held } = self.enter_movable_worktree(worktree)?;
        if self.contains_commit(&head, &self.require_commit(onto)?)? {
            return Ok(BranchRebaseOutcome::UpToDate);
        }
        self.refuse_unfinished(&entry)?;
        self.refuse_uncommitted(&entry)?;
        let rebased = self.try_rebase_after(worktree, start, onto)?;
        if let BranchRebaseOutcome::Done { head: new } = &rebased {
            self.move_worktree(&entry, &head, new)?;
        }
        Ok(rebased)
    }

    /// Computes the result of `rebase_after`, and changes nothing. Considers only committed work, and untracked files that
    /// block the result.
    pub fn try_rebase_after(
        &self,
        worktree: &Worktree,
        start: Option<&GitCommitId>,
        onto: &GitCommitId,
    ) -> Result<BranchRebaseOutcome, Error> {
        let unknown = || Error::UnknownCommit { commit: worktree.branch.to_string() };
        let head = self.resolve_ref(&worktree.branch.full_ref())?.ok_or_else(unknown)?;
        let onto = self.require_commit(onto)?;
        if self.contains_commit(&head, &onto)? {
            return Ok(BranchRebaseOutcome::UpToDate);
        }
        let start = match start {
            Some(start) if self.continues_from(&head, start, &onto)? => Some(start),
            _ => None,
        };
        let entry = self.repository.worktree_entry(&canonical_path(&worktree.path));
        // The directory may be gone: the branch has the work.
        let path = entry.as_ref().map_or_else(|| self.repository.root.clone(), |entry| entry.path.clone());
        let place = Worktree { path, branch: worktree.branch.clone() };
        let new = match self.build_rebased_commit(&place, start, &head, &onto)? {
            Ok(new) => new,
            Err(conflict) => return Ok(conflict),
        };
        let files = entry.map_or_else(|| Ok(Vec::new()), |entry| self.find_blocking_files(&entry, &head, &new))?;
        if files.is_empty() {
            return Ok(BranchRebaseOutcome::Done { head: new });
        }
        let why = "files that git does not know are where the base has files".to_owned();
        Ok(BranchRebaseOutcome::Conflict { files, why })
    }

    /// Moves a worktree and its branch, which has no work of its own, to the merge of several commits, and records that as
    /// its start. Returns the start, or `None` if untracked files block it.
    pub fn restart_branch(&self, worktree: &Worktree, starts: &[GitCommitId]) -> Result<Option<GitCommitId>, Error> {
        let MovableWorktree { entry, head, _held } = self.enter_movable_worktree(worktree)?;
        self.refuse_unfinished(&entry)?;
        self.refuse_uncommitted(&entry)?;
        let start = self.merge_starts(starts)?;
        if !self.find_blocking_files(&entry, &head, &start)?.is_empty() {
            return Ok(None);
        }
        self.build_command(&["update-ref"])
            .with_argument(worktree.branch.start_ref())
            .with_argument(&start)
            .run_checked()?;
        if head != start {
            self.move_worktree(&entry, &head, &start)?;
        }
        Ok(Some(start))
    }

    /// Enters a worktree whose branch may move: no operation is in progress, and the branch is checked out. The caller
    /// checks for unresolved files.
    fn enter_movable_worktree(&self, worktree: &Worktree) -> Result<MovableWorktree, Error> {
        let (held, entry) = self.enter_worktree(worktree)?;
        refuse_operation(&entry)?;
        if entry.read_head()? != WorktreeHead::Branch(worktree.branch.clone()) {
            let at = "another commit".to_owned();
            return Err(Error::Strayed { at, branch: worktree.branch.clone() });
        }
        let unknown = || Error::UnknownCommit { commit: worktree.branch.to_string() };
        let head = self.resolve_ref(&worktree.branch.full_ref())?.ok_or_else(unknown)?;
        Ok(MovableWorktree { entry, head, _held: held })
    }

    pub(super) fn require_commit(&self, commit: &GitCommitId) -> Result<GitCommitId, Error> {
        match self.has_commit(commit)? {
            true => Ok(commit.clone()),
            false => Err(Error::UnknownCommit { commit: commit.to_string() }),
        }
    }

    fn refuse_uncommitted(&self, entry: &WorktreeEntry) -> Result<(), Error> {
        let files = self.find_uncommitted(&entry.path, "no")?;
        if files.is_empty() { Ok(()) } else { Err(Error::Dirty { path: entry.path.clone(), files }) }
    }

    /// Returns whether a commit descends from another that is not in a base.
    pub fn continues_from(&self, head: &GitCommitId, start: &GitCommitId, base: &GitCommitId) -> Result<bool, Error> {
        Ok(self.has_commit(start)? && self.contains_commit(head, start)? && !self.contains_commit(base, start)?)
    }

    /// Returns whether a base has all changes of a commit, even in other commits.
    pub fn has_all_changes(&self, base: &GitCommitId, head: &GitCommitId) -> Result<bool, Error> {
        if self.contains_commit(base, head)? {
            return Ok(true);
        }
        // A branch on top of the base has the same files as a merge of both.
        let together = match self.contains_commit(head, base)? {
            true => Some(self.tree_id(head)?),
            false => self.merge_trees(&self.repository.root, base, head)?.ok(),
        };
        Ok(together == Some(self.tree_id(base)?))
    }

    /// Builds the branch on top of a commit without touching the tree.
    fn build_rebased_commit(
        &self,
        worktree: &Worktree,
        start: Option<&GitCommitId>,
        head: &GitCommitId,
        onto: &GitCommitId,
    ) -> Result<Result<GitCommitId, BranchRebaseOutcome>, Error> {
        let merges = self
            .build_command(&["rev-list", "--merges", "--max-count=1"])
            .with_argument(head)
            .with_argument(format!("^{onto}"));
        let merges =
            start.into_iter().fold(merges, |merges, start| merges.with_argument(format!("^{start}"))).run_checked()?;
        let onto_short = onto.short_id();
        if !merges.bytes.is_empty() {
            return Ok(match self.merge_trees(&worktree.path, head, onto)? {
                Ok(tree) if tree == self.tree_id(onto)? => Ok(onto.clone()),
                Ok(tree) => {
                    let message = format!("Merge {onto_short} into {}\n", worktree.branch);
                    Ok(self.commit_tree(&tree, &[head, onto], message)?)
                }
                Err(files) => {
                    let why = format!("the branch and {onto_short} change the same lines");
                    Err(BranchRebaseOutcome::Conflict { files, why })
                }
            });
        }
        match self.replay_commits(&worktree.path, start, head, onto)? {
            Ok(new) => Ok(Ok(new)),
            Err(_) if self.has_all_changes(onto, head)? => Ok(Ok(onto.clone())),
            Err(clash) => {
                let mut why = format!("the commit {} and {onto_short} change the same lines", clash.commit.short());
                let mut files = clash.files;
                // Later commits may conflict, too. A merge shows all conflicts of the result.
                match self.merge_trees(&worktree.path, head, onto)? {
                    Ok(_) => why.push_str("; a merge of the whole branch has no conflict"),
                    Err(merged) => files.extend(merged),
                }
                files.sort();
                files.dedup();
                Ok(Err(BranchRebaseOutcome::Conflict { files, why }))
            }
        }
    }

    /// Returns the untracked files that a move from one commit to another would overwrite.
    fn find_blocking_files(
        &self,
        entry: &WorktreeEntry,
        from: &GitCommitId,
        to: &GitCommitId,
    ) -> Result<Vec<PathBuf>, Error> {
        let named = |filter: &str| {
            let call = self.build_command(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", filter]);
            Ok::<_, Error>(parse_paths(call.with_argument(from).with_argument(to).run_checked()?.split_entries()))
        };
        let leaving: HashSet<_> = named("--diff-filter=D")?.into_iter().collect();
        let mut arriving = named("--diff-filter=A")?;
        arriving.retain(|path| is_path_taken(&entry.path, path, &leaving));
        Ok(arriving)
    }
}

/// Returns whether a path, or the place of a directory above it, holds something that does not leave with the move.
fn is_path_taken(root: &Path, path: &Path, leaving: &HashSet<PathBuf>) -> bool {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    for above in above {
        match fs::symlink_metadata(root.join(above)) {
            Ok(found) if !found.is_dir() => return !leaving.contains(above),
            _ => {}
        }
    }
    match fs::symlink_metadata(root.join(path)) {
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        Ok(found) if found.is_dir() => !is_fully_leaving(root, path, leaving),
        Ok(_) => true,
    }
}

/// Returns whether everything in a directory leaves with the move.
fn is_fully_leaving(root: &Path, directory: &Path, leaving: &HashSet<PathBuf>) -> bool {
    let Ok(found) = fs::read_dir(root.join(directory)) else { return false };
    found.flatten().all(|entry| {
        let path = directory.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => is_fully_leaving(root, &path, leaving),
            _ => leaving.contains(&path),
        }
    })
}
