//! The checkout that hooks judge while work is on its way from done to accepted.
//!
//! ```text
//! work committed ─► the commit is fixed ─► hooks of before_submit and before_merge, in a fresh checkout of exactly it ─► merged
//!                          ▲                                         │
//!                          └──── the branch is at another commit ◄───┘
//! ```
//!
//! Invariants:
//! - A hook at these gates runs in a checkout of the commit that is on its way, and nowhere else. The agent's ignored files are
//!   not there, except what the configuration names as caches.
//! - Before each hook the files of the commit are put back to what they are in the commit.
//! - Where the branch is at another commit than the one on its way, nothing passes: all of it is judged again.
//! - No checkout outlives the way of its work. What a crash has left is removed with the next, or by a sweep.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use windlass_engine::{HookOutcome, HookReport, Phase, Session, Workspace};
use windlass_vcs::git::{Access, Branch, Commit, Error, Worktree, is_detached_name};

use crate::hook::pipeline::report;
use crate::{Dispatch, Told};

/// What builds keep and git ignores in most projects.
pub const USUAL_CACHES: [&str; 3] = ["target", "node_modules", ".venv"];

/// What gates find in their checkout although git does not keep it: links to what the worktree has.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    patterns: GlobSet,
}

impl Caches {
    /// A pattern names files and directories. One without a slash before its end is meant wherever it stands.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.trim_end_matches('/').trim_start_matches("./");
            set.add(glob(pattern)?);
            if !pattern.contains('/') {
                set.add(glob(&format!("**/{pattern}"))?);
            }
        }
        Ok(Self { patterns: set.build()? })
    }

    fn is_meant(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.patterns.is_match(path))
    }
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// A checkout of the commit that is on its way.
pub(crate) struct GateCheckout {
    commit: Commit,
    path: PathBuf,
}

/// Returns the commit of a session's work that is on its way.
pub(crate) fn commit_under_way(session: &Session) -> Option<(&Workspace, &str)> {
    let Phase::Pipeline(pipeline) = &session.phase else { return None };
    let workspace = session.workspace.as_ref().filter(|_| !pipeline.merged)?;
    Some((workspace, pipeline.work.as_ref()?.head.as_str()))
}

impl Dispatch<'_> {
    /// Returns why the work of a session cannot be judged as it is: its branch is at another commit than the one on its way.
    pub(crate) fn moved_under_way(&self, session: &Session) -> Result<Option<HookReport>, Error> {
        let Some((workspace, head)) = commit_under_way(session) else { return Ok(None) };
        let branch = Branch::new(&workspace.branch)?;
        let tip = self.with_git(|git| git.tip(&branch))?;
        if tip.as_ref().is_some_and(|tip| tip.as_str() == head) {
            return Ok(None);
        }
        let now = tip.as_ref().map_or("gone", Commit::short);
        let head = head.get(..10).unwrap_or(head);
        let said = format!("{branch} has moved while it was judged: from {head} to {now}");
        Ok(Some(report(HookOutcome::Again, said)))
    }

    /// Returns the directory that a hook at a gate judges: that of the session, or a checkout of the commit on its way.
    pub(crate) fn judged_directory(&mut self, session: Option<&Session>) -> Result<PathBuf, Error> {
        let under_way = session.and_then(commit_under_way);
        let Some((workspace, head)) = under_way else { return Ok(self.directory_of(session)) };
        let (workspace, commit) = (workspace.clone(), Commit::new(head)?);
        self.check_out_for_gate(&workspace, commit)
    }

    /// Returns the part of a fresh checkout of a commit that is the project's.
    pub(crate) fn check_out_for_gate(&mut self, workspace: &Workspace, commit: Commit) -> Result<PathBuf, Error> {
        let worktree = self.worktree(workspace)?;
        let path = self.settings.delivery.worktrees.join(format!("gate-{}", workspace.name));
        let known = self.gate_checkout.take().filter(|known| known.path == path && known.commit == commit);
        let is_known = known.is_some() && path.join(".git").exists();
        self.with_git(|git| match is_known {
            true => git.restore_checkout(&path, &commit),
            false => git.check_out(&path, &commit, Access::Write).map(drop),
        })?;
        self.link_caches(&worktree, &path)?;
        self.gate_checkout = Some(GateCheckout { commit, path: path.clone() });
        Ok(self.project_within(&path))
    }

    /// Links what the configuration names as caches from a worktree into a checkout. What is there already stays.
    fn link_caches(&self, worktree: &Worktree, checkout: &Path) -> Result<(), Error> {
        for path in self.with_git(|git| git.untracked(worktree))? {
            let (from, to) = (worktree.path.join(&path), checkout.join(&path));
            let is_meant = self.settings.delivery.caches.is_meant(&path);
            let has_place = to.parent().is_some_and(Path::is_dir) && fs::symlink_metadata(&to).is_err();
            if is_meant && has_place {
                symlink(&from, &to).map_err(|source| Error::Io { doing: "link a cache to", path: to, source })?;
            }
        }
        Ok(())
    }

    /// Returns whether a worktree has the files of a commit byte for byte, and besides them nothing but caches.
    pub(crate) fn is_exactly(&self, workspace: &Workspace, commit: &Commit) -> Result<bool, Error> {
        let worktree = self.worktree(workspace)?;
        self.with_git(|git| {
            let is_cache = |path: &PathBuf| self.settings.delivery.caches.is_meant(path);
            if !git.untracked(&worktree)?.iter().all(is_cache) {
                return Ok(false);
            }
            let kept = git.kept(&worktree.path, commit, &|_| true)?;
            Ok(git.changed(&worktree.path, &kept)?.is_empty())
        })
    }

    /// Removes the checkout of a gate that is over.
    pub(crate) fn close_gate(&mut self) {
        let Some(GateCheckout { path, .. }) = self.gate_checkout.take() else { return };
        if let Err(error) = self.with_git(|git| git.remove_detached(&path)) {
            let words = format!("the checkout {} stays: {error}", path.display());
            (self.outside.tell)(Told::Note(&words));
        }
    }

    /// Removes the checkouts of gates and gatekeepers that a crash has left.
    pub(crate) fn sweep_checkouts(&self, worktrees: &Path, in_use: &[String]) {
        let names = fs::read_dir(worktrees).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let is_used = |name: &str| {
            let of = name.split_once('-').map_or("", |(_, of)| of);
            in_use.iter().any(|used| used == of || used.strip_prefix(of).is_some_and(|rest| rest.starts_with('-')))
        };
        for name in names.filter(|name| is_detached_name(name) && !is_used(name)) {
            // What cannot be removed now is removed before the next one is made there.
            let _ = self.with_git(|git| git.remove_detached(&worktrees.join(&name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_meant_wherever_they_stand_unless_a_slash_says_where() {
        let caches = Caches::new(["target/", "web/dist"]).unwrap();
        for path in ["target", "crates/a/target", "target/debug/x", "web/dist", "web/dist/app.js"] {
            assert!(caches.is_meant(Path::new(path)), "{path}");
        }
        for path in ["targets", "dist", "other/web/dist", ".env"] {
            assert!(!caches.is_meant(Path::new(path)), "{path}");
        }
    }
}
