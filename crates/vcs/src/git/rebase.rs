//! Rebases a branch onto a newer base.
//!
//! A branch with merges is not flattened: the base is merged into it, so that resolved conflicts stay resolved. Changes
//! that the base already has, in any commits, do not conflict with it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::repository::{Entry, Head};
use super::unfinished::refuse_under_way;
use super::{Commit, Error, Git, Held, Worktree, canonical, paths};

/// The outcome of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// The branch contains the base already.
    UpToDate,
    Done {
        head: Commit,
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
    entry: Entry,
    head: Commit,
    _held: Held,
}

impl Git<'_> {
    /// Rebases a worktree's branch onto a commit. The worktree must have no uncommitted work; untracked files stay.
    pub fn rebase(&self, worktree: &Worktree, onto: &Commit) -> Result<Rebased, Error> {
        self.rebase_after(worktree, None, onto)
    }

    /// Rebases only the commits after `start`, if the branch descends from it: earlier commits are other work, which the
    /// base has in its own form.
    pub fn rebase_after(&self, worktree: &Worktree, start: Option<&Commit>, onto: &Commit) -> Result<Rebased, Error> {
        let MovableWorktree { entry, head, _held } = self.enter_to_move(worktree)?;
        if self.contains(&head, &self.known_commit(onto)?)? {
            return Ok(Rebased::UpToDate);
        }
        self.refuse_unfinished(&entry)?;
        self.refuse_dirty(&entry)?;
        let rebased = self.try_rebase_after(worktree, start, onto)?;
        if let Rebased::Done { head: new } = &rebased {
            self.move_to(&entry, &head, new)?;
        }
        Ok(rebased)
    }

    /// Computes the result of `rebase_after`, and changes nothing. Considers only committed work, and untracked files that
    /// block the result.
    pub fn try_rebase_after(
        &self,
        worktree: &Worktree,
        start: Option<&Commit>,
        onto: &Commit,
    ) -> Result<Rebased, Error> {
        let unknown = || Error::UnknownCommit { commit: worktree.branch.to_string() };
        let head = self.resolve(&worktree.branch.full())?.ok_or_else(unknown)?;
        let onto = self.known_commit(onto)?;
        if self.contains(&head, &onto)? {
            return Ok(Rebased::UpToDate);
        }
        let start = match start {
            Some(start) if self.goes_on_from(&head, start, &onto)? => Some(start),
            _ => None,
        };
        let entry = self.repository.entry(&canonical(&worktree.path));
        // The directory may be gone: the branch has the work.
        let path = entry.as_ref().map_or_else(|| self.repository.root.clone(), |entry| entry.path.clone());
        let place = Worktree { path, branch: worktree.branch.clone() };
        let new = match self.on_top(&place, start, &head, &onto)? {
            Ok(new) => new,
            Err(conflict) => return Ok(conflict),
        };
        let files = entry.map_or_else(|| Ok(Vec::new()), |entry| self.in_the_way(&entry, &head, &new))?;
        if files.is_empty() {
            return Ok(Rebased::Done { head: new });
        }
        let why = "files that git does not know are where the base has files".to_owned();
        Ok(Rebased::Conflict { files, why })
    }

    /// Moves a worktree and its branch, which has no work of its own, to the merge of several commits, and records that as
    /// its start. Returns the start, or `None` if untracked files block it.
    pub fn restart(&self, worktree: &Worktree, starts: &[Commit]) -> Result<Option<Commit>, Error> {
        let MovableWorktree { entry, head, _held } = self.enter_to_move(worktree)?;
        self.refuse_unfinished(&entry)?;
        self.refuse_dirty(&entry)?;
        let start = self.stacked(starts)?;
        if !self.in_the_way(&entry, &head, &start)?.is_empty() {
            return Ok(None);
        }
        self.call(&["update-ref"]).word(worktree.branch.mark()).word(&start).done()?;
        if head != start {
            self.move_to(&entry, &head, &start)?;
        }
        Ok(Some(start))
    }

    /// Enters a worktree whose branch may move: no operation is in progress, and the branch is checked out. The caller
    /// checks for unresolved files.
    fn enter_to_move(&self, worktree: &Worktree) -> Result<MovableWorktree, Error> {
        let (held, entry) = self.enter(worktree)?;
        refuse_under_way(&entry)?;
        if entry.head()? != Head::Branch(worktree.branch.clone()) {
            let at = "another commit".to_owned();
            return Err(Error::Strayed { at, branch: worktree.branch.clone() });
        }
        let unknown = || Error::UnknownCommit { commit: worktree.branch.to_string() };
        let head = self.resolve(&worktree.branch.full())?.ok_or_else(unknown)?;
        Ok(MovableWorktree { entry, head, _held: held })
    }

    pub(super) fn known_commit(&self, commit: &Commit) -> Result<Commit, Error> {
        match self.is_known(commit)? {
            true => Ok(commit.clone()),
            false => Err(Error::UnknownCommit { commit: commit.to_string() }),
        }
    }

    fn refuse_dirty(&self, entry: &Entry) -> Result<(), Error> {
        let files = self.uncommitted(&entry.path, "no")?;
        if files.is_empty() { Ok(()) } else { Err(Error::Dirty { path: entry.path.clone(), files }) }
    }

    /// Returns whether a commit descends from another that is not in a base.
    pub fn goes_on_from(&self, head: &Commit, start: &Commit, base: &Commit) -> Result<bool, Error> {
        Ok(self.is_known(start)? && self.contains(head, start)? && !self.contains(base, start)?)
    }

    /// Returns whether a base has all changes of a commit, even in other commits.
    pub fn has_all(&self, base: &Commit, head: &Commit) -> Result<bool, Error> {
        if self.contains(base, head)? {
            return Ok(true);
        }
        // A branch on top of the base has the same files as a merge of both.
        let together = match self.contains(head, base)? {
            true => Some(self.tree(head)?),
            false => self.merged_tree(&self.repository.root, base, head)?.ok(),
        };
        Ok(together == Some(self.tree(base)?))
    }

    /// Builds the branch on top of a commit without touching the tree.
    fn on_top(
        &self,
        worktree: &Worktree,
        start: Option<&Commit>,
        head: &Commit,
        onto: &Commit,
    ) -> Result<Result<Commit, Rebased>, Error> {
        let merges = self.call(&["rev-list", "--merges", "--max-count=1"]).word(head).word(format!("^{onto}"));
        let merges = start.into_iter().fold(merges, |merges, start| merges.word(format!("^{start}"))).done()?;
        let onto_short = onto.short();
        if !merges.bytes.is_empty() {
            return Ok(match self.merged_tree(&worktree.path, head, onto)? {
                Ok(tree) if tree == self.tree(onto)? => Ok(onto.clone()),
                Ok(tree) => {
                    let message = format!("Merge {onto_short} into {}\n", worktree.branch);
                    Ok(self.commit_tree(&tree, &[head, onto], message)?)
                }
                Err(files) => {
                    let why = format!("the branch and {onto_short} change the same lines");
                    Err(Rebased::Conflict { files, why })
                }
            });
        }
        match self.replay(&worktree.path, start, head, onto)? {
            Ok(new) => Ok(Ok(new)),
            Err(_) if self.has_all(onto, head)? => Ok(Ok(onto.clone())),
            Err(clash) => {
                let mut why = format!("the commit {} and {onto_short} change the same lines", clash.commit.short());
                let mut files = clash.files;
                // Later commits may conflict, too. A merge shows all conflicts of the result.
                match self.merged_tree(&worktree.path, head, onto)? {
                    Ok(_) => why.push_str("; a merge of the whole branch has no conflict"),
                    Err(merged) => files.extend(merged),
                }
                files.sort();
                files.dedup();
                Ok(Err(Rebased::Conflict { files, why }))
            }
        }
    }

    /// Returns the untracked files that a move from one commit to another would overwrite.
    fn in_the_way(&self, entry: &Entry, from: &Commit, to: &Commit) -> Result<Vec<PathBuf>, Error> {
        let named = |filter: &str| {
            let call = self.call(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", filter]);
            Ok::<_, Error>(paths(call.word(from).word(to).done()?.entries()))
        };
        let leaving: HashSet<_> = named("--diff-filter=D")?.into_iter().collect();
        let mut arriving = named("--diff-filter=A")?;
        arriving.retain(|path| is_taken(&entry.path, path, &leaving));
        Ok(arriving)
    }
}

/// Returns whether a path, or the place of a directory above it, holds something that does not leave with the move.
fn is_taken(root: &Path, path: &Path, leaving: &HashSet<PathBuf>) -> bool {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    for above in above {
        match fs::symlink_metadata(root.join(above)) {
            Ok(found) if !found.is_dir() => return !leaving.contains(above),
            _ => {}
        }
    }
    match fs::symlink_metadata(root.join(path)) {
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        Ok(found) if found.is_dir() => !is_leaving(root, path, leaving),
        Ok(_) => true,
    }
}

/// Returns whether everything in a directory leaves with the move.
fn is_leaving(root: &Path, directory: &Path, leaving: &HashSet<PathBuf>) -> bool {
    let Ok(found) = fs::read_dir(root.join(directory)) else { return false };
    found.flatten().all(|entry| {
        let path = directory.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => is_leaving(root, &path, leaving),
            _ => leaving.contains(&path),
        }
    })
}
