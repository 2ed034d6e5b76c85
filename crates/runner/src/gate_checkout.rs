//! Checkout that hooks judge during the delivery of work.
//!
//! ```text
//! work committed ─► the commit is fixed ─► hooks of before_submit and before_merge, in a fresh checkout of exactly it ─► merged
//!                          ▲                                         │
//!                          └──── the branch is at another commit ◄───┘
//! ```
//!
//! Invariants:
//! - A hook at these gates runs only in a checkout of the commit in delivery. The agent's ignored files are not there, except the
//!   configured caches.
//! - Before each attempt of a hook, the checkout is restored to the files of the commit. Nothing else stays but caches.
//! - If the branch is at another commit than the one in delivery, nothing passes: all of it is judged again.
//! - No checkout outlives the delivery of its work. The next checkout or a sweep removes those that a crash has left.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use windlass_engine::{HookOutcome, HookReport, Phase, Session, Workspace};
use windlass_vcs::git::{Branch, CheckoutAccess, Commit, Error, Worktree};

use crate::caches::GateCheckout;
use crate::wording::{name_some, report};
use crate::{EffectRunner, RunnerEvent};

/// Returns the workspace of a session, and its commit in delivery.
pub(crate) fn commit_under_way(session: &Session) -> Option<(&Workspace, &str)> {
    let Phase::Pipeline(pipeline) = &session.phase else { return None };
    let workspace = session.workspace.as_ref().filter(|_| !pipeline.merged)?;
    Some((workspace, pipeline.work.as_ref()?.head.as_str()))
}

impl EffectRunner<'_> {
    /// Returns why the work of a session cannot be judged: its branch is at another commit than the one in delivery.
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

    /// Returns the directory that a hook at a gate judges: that of the session, or a checkout of the commit in delivery.
    pub(crate) fn judged_directory(&mut self, session: Option<&Session>) -> Result<PathBuf, Error> {
        let under_way = session.and_then(commit_under_way);
        let Some((workspace, head)) = under_way else { return Ok(self.directory_of(session)) };
        let (workspace, commit) = (workspace.clone(), Commit::new(head)?);
        self.check_out_for_gate(&workspace, commit)
    }

    /// Checks out a commit afresh, and returns the project's directory in it.
    pub(crate) fn check_out_for_gate(&mut self, workspace: &Workspace, commit: Commit) -> Result<PathBuf, Error> {
        let path = self.settings.delivery.checkouts.join(format!("gate-{}", workspace.name));
        let is_same = |known: &GateCheckout| {
            known.checkout.path.file_name() == path.file_name() && known.checkout.commit == commit
        };
        if self.gate_checkout.as_ref().is_some_and(is_same) {
            return self.restore_gate().map(|restored| restored.unwrap_or(path));
        }
        self.close_gate();
        let worktree = self.worktree(workspace)?;
        let checkout = self.with_git(|git| git.check_out(&path, &commit, CheckoutAccess::Write))?;
        self.keep_gate(GateCheckout { checkout, worktree })
    }

    /// Restores the checkout of a gate, and returns the project's directory in it.
    pub(crate) fn restore_gate(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some(mut gate) = self.gate_checkout.take() else { return Ok(None) };
        let caches = self.settings.delivery.caches.to_ignore_lines(&self.below_root());
        let restored = self.with_git(|git| git.restore_checkout(&mut gate.checkout, &caches));
        let kept = self.keep_gate(gate);
        restored.and(kept).map(Some)
    }

    fn keep_gate(&mut self, gate: GateCheckout) -> Result<PathBuf, Error> {
        let GateCheckout { checkout, worktree } = self.gate_checkout.insert(gate);
        let (path, commit, worktree) = (checkout.path.clone(), checkout.commit.clone(), worktree.clone());
        self.link_caches(&worktree, &path, &commit)?;
        Ok(self.project_within(&path))
    }

    /// Links the configured caches from a worktree into a checkout. Existing files stay.
    fn link_caches(&self, worktree: &Worktree, checkout: &Path, commit: &Commit) -> Result<(), Error> {
        if self.settings.delivery.caches.written.is_empty() {
            return Ok(());
        }
        let beside = self.with_git(|git| git.files_beside(&worktree.path, commit))?;
        let below = self.below_root();
        for path in beside.iter().filter(|path| self.settings.delivery.caches.matches(path, &below)) {
            let (from, to) = (worktree.path.join(path), checkout.join(path));
            let has_place = to.parent().is_some_and(Path::is_dir) && fs::symlink_metadata(&to).is_err();
            if has_place {
                link(&from, &to).map_err(|source| Error::Io { doing: "link a cache to", path: to, source })?;
            }
        }
        Ok(())
    }

    /// Describes the files that a worktree has besides a commit and caches, or that differ from those of the commit.
    pub(crate) fn beside_commit(&self, workspace: &Workspace, commit: &Commit) -> Result<Option<String>, Error> {
        let worktree = self.worktree(workspace)?;
        self.with_git(|git| {
            let mut beside = git.files_beside(&worktree.path, commit)?;
            beside.retain(|path| !self.settings.delivery.caches.matches(path, &self.below_root()));
            if !beside.is_empty() {
                let files = name_some(&beside, beside.len(), |path| shown(path));
                return Ok(Some(format!(
                    "the worktree has files that are not in the commit: {files} (`caches` names what hooks need)"
                )));
            }
            let kept = git.kept(&worktree.path, commit, &|_| true)?;
            let changed = git.changed(&worktree.path, &kept)?;
            let files = || name_some(&changed, changed.len(), |path| shown(path));
            Ok((!changed.is_empty()).then(|| format!("files of the worktree are not those of the commit: {}", files())))
        })
    }

    /// Removes the checkout of a finished gate.
    pub(crate) fn close_gate(&mut self) {
        let Some(GateCheckout { checkout, .. }) = self.gate_checkout.take() else { return };
        let path = checkout.path.clone();
        if let Err(error) = self.with_git(|git| git.remove_detached(checkout)) {
            let words = format!("the checkout {} stays: {error}", path.display());
            (self.outside.tell)(RunnerEvent::Note(&words));
        }
    }

    /// Removes the checkouts of gates and gatekeepers that a crash has left.
    pub(crate) fn sweep_checkouts(&self) {
        let checkouts = &self.settings.delivery.checkouts;
        self.finish_removals(checkouts);
        for entry in fs::read_dir(checkouts).into_iter().flatten().flatten() {
            // A checkout that stays now is removed before the next one is made there.
            let _ = self.with_git(|git| git.sweep_detached(&entry.path()));
        }
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Links a file, or the entries of a directory: `target/` does not match a link, so git would show a linked directory.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(from)?.is_dir() {
        return symlink(from, to);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        symlink(from.join(&name), to.join(&name))?;
    }
    Ok(())
}
