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

use windlass_engine::{HookOutcome, HookReport, Session, SessionPhase, Workspace};
use windlass_vcs::git::{BranchName, CheckoutAccess, Error, GitCommitId, Worktree};

use crate::caches::GateCheckout;
use crate::wording::{list_first_names, report_with_message};
use crate::{EffectRunner, RunnerEvent};

/// Returns the workspace of a session, and its commit in delivery.
pub(crate) fn commit_in_delivery(session: &Session) -> Option<(&Workspace, &str)> {
    let SessionPhase::Pipeline(pipeline) = &session.phase else { return None };
    let workspace = session.workspace.as_ref().filter(|_| !pipeline.merged)?;
    Some((workspace, pipeline.work.as_ref()?.head.as_str()))
}

impl EffectRunner<'_> {
    /// Returns why the work of a session cannot be judged: its branch is at another commit than the one in delivery.
    pub(crate) fn report_moved_branch(&self, session: &Session) -> Result<Option<HookReport>, Error> {
        let Some((workspace, head)) = commit_in_delivery(session) else { return Ok(None) };
        let branch = BranchName::new(&workspace.branch)?;
        let tip = self.with_git(|git| git.branch_tip(&branch))?;
        if tip.as_ref().is_some_and(|tip| tip.as_str() == head) {
            return Ok(None);
        }
        let now = tip.as_ref().map_or("gone", GitCommitId::short_id);
        let head = head.get(..10).unwrap_or(head);
        let said = format!("{branch} has moved while it was judged: from {head} to {now}");
        Ok(Some(report_with_message(HookOutcome::Again, said)))
    }

    /// Returns the directory that a hook at a gate judges: that of the session, or a checkout of the commit in delivery.
    pub(crate) fn judged_directory(&mut self, session: Option<&Session>) -> Result<PathBuf, Error> {
        let under_way = session.and_then(commit_in_delivery);
        let Some((workspace, head)) = under_way else { return Ok(self.session_directory(session)) };
        let (workspace, commit) = (workspace.clone(), GitCommitId::new(head)?);
        self.check_out_for_gate(&workspace, commit)
    }

    /// Checks out a commit afresh, and returns the project's directory in it.
    pub(crate) fn check_out_for_gate(&mut self, workspace: &Workspace, commit: GitCommitId) -> Result<PathBuf, Error> {
        let path = self.settings.delivery.checkouts.join(format!("gate-{}", workspace.name));
        let is_same = |known: &GateCheckout| {
            known.checkout.path.file_name() == path.file_name() && known.checkout.commit == commit
        };
        if self.gate_checkout.as_ref().is_some_and(is_same) {
            return self.restore_gate_checkout().map(|restored| restored.unwrap_or(path));
        }
        self.remove_gate_checkout();
        let worktree = self.task_worktree(workspace)?;
        let checkout = self.with_git(|git| git.check_out(&path, &commit, CheckoutAccess::Write))?;
        self.store_gate_checkout(GateCheckout { checkout, worktree })
    }

    /// Restores the checkout of a gate, and returns the project's directory in it.
    pub(crate) fn restore_gate_checkout(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some(mut gate) = self.gate_checkout.take() else { return Ok(None) };
        let caches = self.settings.delivery.caches.to_ignore_lines(&self.project_below_root());
        let restored = self.with_git(|git| git.restore_checkout(&mut gate.checkout, &caches));
        let kept = self.store_gate_checkout(gate);
        restored.and(kept).map(Some)
    }

    fn store_gate_checkout(&mut self, gate: GateCheckout) -> Result<PathBuf, Error> {
        let GateCheckout { checkout, worktree } = self.gate_checkout.insert(gate);
        let (path, commit, worktree) = (checkout.path.clone(), checkout.commit.clone(), worktree.clone());
        self.link_caches(&worktree, &path, &commit)?;
        Ok(self.project_in_checkout(&path))
    }

    /// Links the configured caches from a worktree into a checkout. Existing files stay.
    fn link_caches(&self, worktree: &Worktree, checkout: &Path, commit: &GitCommitId) -> Result<(), Error> {
        if self.settings.delivery.caches.written.is_empty() {
            return Ok(());
        }
        let beside = self.with_git(|git| git.files_beside_commit(&worktree.path, commit))?;
        let below = self.project_below_root();
        for path in beside.iter().filter(|path| self.settings.delivery.caches.matches_path(path, &below)) {
            let (from, to) = (worktree.path.join(path), checkout.join(path));
            let has_place = to.parent().is_some_and(Path::is_dir) && fs::symlink_metadata(&to).is_err();
            if has_place {
                link_cache_entries(&from, &to).map_err(|source| Error::Io {
                    doing: "link a cache to",
                    path: to,
                    source,
                })?;
            }
        }
        Ok(())
    }

    /// Describes the files that a worktree has besides a commit and caches, or that differ from those of the commit.
    pub(crate) fn describe_uncommitted_files(
        &self,
        workspace: &Workspace,
        commit: &GitCommitId,
    ) -> Result<Option<String>, Error> {
        let worktree = self.task_worktree(workspace)?;
        self.with_git(|git| {
            let mut beside = git.files_beside_commit(&worktree.path, commit)?;
            beside.retain(|path| !self.settings.delivery.caches.matches_path(path, &self.project_below_root()));
            if !beside.is_empty() {
                let files = list_first_names(&beside, beside.len(), |path| escape_path(path));
                return Ok(Some(format!(
                    "the worktree has files that are not in the commit: {files} (`caches` names what hooks need)"
                )));
            }
            let kept = git.baseline_files(&worktree.path, commit, &|_| true)?;
            let changed = git.changed_since_baseline(&worktree.path, &kept)?;
            let files = || list_first_names(&changed, changed.len(), |path| escape_path(path));
            Ok((!changed.is_empty()).then(|| format!("files of the worktree are not those of the commit: {}", files())))
        })
    }

    /// Removes the checkout of a finished gate.
    pub(crate) fn remove_gate_checkout(&mut self) {
        let Some(GateCheckout { checkout, .. }) = self.gate_checkout.take() else { return };
        let path = checkout.path.clone();
        if let Err(error) = self.with_git(|git| git.remove_detached(checkout)) {
            let words = format!("the checkout {} stays: {error}", path.display());
            (self.env.observe)(RunnerEvent::Note(&words));
        }
    }

    /// Removes the checkouts of gates and gatekeepers that a crash has left.
    pub(crate) fn sweep_checkouts(&self) {
        let checkouts = &self.settings.delivery.checkouts;
        self.finish_killed_removals(checkouts);
        for entry in fs::read_dir(checkouts).into_iter().flatten().flatten() {
            // A checkout that stays now is removed before the next one is made there.
            let _ = self.with_git(|git| git.sweep_detached(&entry.path()));
        }
    }
}

fn escape_path(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Links a file, or the entries of a directory: `target/` does not match a link, so git would show a linked directory.
fn link_cache_entries(from: &Path, to: &Path) -> io::Result<()> {
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
