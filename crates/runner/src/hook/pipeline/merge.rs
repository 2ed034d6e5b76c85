//! Merges: one at a time, and only work that was judged on top of the newest base.
//!
//! ```text
//! lock ─► newest base ─► on top of it? ── no ──► rebased: judged again, with the lock held
//!                             │ yes
//!                             ▼
//!                           merge ─► released at the end of the gate
//! ```

use std::fs;
use std::time::{Duration, Instant};

use windlass_engine::{ChangeFact, HookOutcome, HookReport, Session, Task, Workspace, duration_in_words};
use windlass_hooks::clean_output;
use windlass_process::file;
use windlass_vcs::forge::{
    ForgeChange, ForgeChangeState, ForgeMergeMethod, ForgeMergeOutcome, ForgeProject, MergeObstacle,
};
use windlass_vcs::git::{BaseBranch, BranchName, Error, GitClient, GitCommitId, IfCheckedOut, MergeOutcome, MergePlan};

use super::change::{forge_failure_report, head_in_delivery, task_taken_report};
use super::{DeliveryStepResult, RebaseOutcome};
use crate::external_merges::{find_branch_in_base, scattered_merge};
use crate::hook::HookRun;
use crate::stacked_branches::{ParentStackTask, first_unmerged};
use crate::wording::report_with_message;
use crate::workspace::commit_message;
use crate::{EffectRunner, RunError, RunnerEvent};

/// Poll intervals: for the merge lock, and for the checks of a forge.
const MERGE_LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);
const FORGE_CHECKS_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A commit that is ready to merge, and its base.
pub(super) struct MergeCandidate {
    pub base: BaseBranch,
    pub head: GitCommitId,
    pub address: Option<String>,
}

impl EffectRunner<'_> {
    pub(super) fn merge_change(
        &mut self,
        run: &HookRun<'_>,
        session: &Session,
        workspace: &Workspace,
    ) -> Result<DeliveryStepResult, RunError> {
        match self.acquire_merge_lock(run.attempt_timeout()) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(HookOutcome::Cancelled.into())),
            Err(why) => return Ok(Ok(report_with_message(HookOutcome::Failure, why))),
        }
        if !self.still_holds_task(session)? {
            self.merging = None;
            return Ok(Ok(task_taken_report()));
        }
        let below = self.load_lower_tasks(workspace)?;
        let ended = match self.rebase_before_merge(run, workspace, &below) {
            // The rebase may have taken long.
            Ok(Ok(_)) if !self.still_holds_task(session)? => Ok(task_taken_report()),
            Ok(Ok(base)) => self.offer_and_merge(run, (session, workspace), base),
            Ok(Err(report)) => Ok(*report),
            Err(error) => Err(error),
        };
        // Work that is judged again keeps its place in front of others.
        if !matches!(&ended, Ok(report) if report.outcome == HookOutcome::Again) {
            self.merging = None;
        }
        Ok(ended)
    }

    /// Waits for the merge lock. Returns whether the wait ended without a cancellation, or an error after `patience`: a process
    /// that was stopped during its merge must not hold up all others.
    pub(super) fn acquire_merge_lock(&mut self, patience: Duration) -> Result<bool, String> {
        if self.merging.is_some() {
            return Ok(true);
        }
        let lock = self.settings.delivery.lock.clone();
        let file = file::open_lock_file(&lock);
        let file = file.map_err(|error| format!("cannot open the merge lock {}: {error}", lock.display()))?;
        let until = Instant::now() + patience;
        let mut noted = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::WouldBlock) => {}
                // A file system without locks: the base moves only from its last known commit all the same.
                Err(fs::TryLockError::Error(_)) => break,
            }
            if !noted {
                (self.env.observe)(RunnerEvent::Queueing);
                noted = true;
            }
            if Instant::now() > until {
                let waited = duration_in_words(patience);
                return Err(format!("another task has been merging for {waited} ({})", lock.display()));
            }
            if !self.control.wait_unless_cancelled(MERGE_LOCK_POLL_INTERVAL) {
                return Ok(false);
            }
        }
        self.merging = Some(file);
        Ok(true)
    }

    /// Returns a report if the change is merged already: a crash may have left that out of the log, or a person was quicker.
    fn report_earlier_merge(
        &mut self,
        run: &HookRun<'_>,
        workspace: &Workspace,
        base: &BaseBranch,
    ) -> Result<Option<HookReport>, Error> {
        let number = run.subject.task.as_ref().and_then(|task| task.change.as_ref()?.at.number);
        if let Some(number) = number {
            let address =
                |git: &GitClient<'_>| base.remote.as_ref().map(|remote| git.remote_address(remote)).transpose();
            let remote = self.with_git(address)?;
            let site =
                remote.map(|remote| ForgeProject::from_remote(&remote, &self.settings.delivery.forge)).transpose();
            let forge = match site
                .map(Option::flatten)
                .and_then(|site| site.map(|site| self.connect_forge(site)).transpose())
            {
                Ok(forge) => forge,
                Err(error) => return Ok(Some(forge_failure_report(&error))),
            };
            let Some(forge) = forge else { return Ok(None) };
            let change = match self.retry_forge_call(|| forge.view_change(number)) {
                Ok(change) => change,
                Err(error) => return Ok(Some(forge_failure_report(&error))),
            };
            let ForgeChangeState::Merged { commit } = &change.state else { return Ok(None) };
            return Ok(Some(match self.describe_omitted_commits(workspace, base, &change)? {
                None => merged_report(commit.clone(), &format!("#{number} is merged already")),
                Some(left_out) => {
                    let id = run.subject.task.as_ref().map(|task| task.id.to_string()).unwrap_or_default();
                    let said = format!("{left_out}; `windlass answer {id} continue` opens another change for them");
                    report_with_message(HookOutcome::Escalate, said)
                }
            }));
        }
        self.with_git(|git| {
            let Some(head) = git.branch_tip(&BranchName::new(&workspace.branch)?)? else { return Ok(None) };
            let landed = find_branch_in_base(git, base, &workspace.branch, &head)?;
            Ok(landed.map(|landed| merged_report(landed.commit.to_string(), &landed.how)))
        })
    }

    /// Describes commits of a branch that a forge has left out of a merge, if there are any.
    pub(super) fn describe_omitted_commits(
        &self,
        workspace: &Workspace,
        base: &BaseBranch,
        change: &ForgeChange,
    ) -> Result<Option<String>, Error> {
        self.with_git(|git| {
            let (branch, head) = (BranchName::new(&workspace.branch)?, GitCommitId::new(&change.head)?);
            let is_whole = git.is_fully_merged(&branch, &head, &base.commit)?;
            let words = || {
                format!("#{} was merged at {}, without the last commits of {branch}", change.number, head.short_id())
            };
            Ok((!is_whole).then(words))
        })
    }

    /// Rebases the work onto the newest base. Returns a report if it was not on top of the base.
    fn rebase_before_merge(
        &mut self,
        run: &HookRun<'_>,
        workspace: &Workspace,
        below: &[ParentStackTask],
    ) -> Result<Result<BaseBranch, Box<HookReport>>, Error> {
        let base = self.with_git(|git| self.load_base(git))?;
        if let Some(merged) = self.report_earlier_merge(run, workspace, &base)? {
            return Ok(Err(Box::new(merged)));
        }
        self.with_git(|git| {
            let no = |outcome, said: String| Ok(Err(Box::new(report_with_message(outcome, said))));
            if let Some(why) = &base.stale {
                return no(HookOutcome::Failure, format!("cannot tell where {} is now: {why}", base.branch));
            }
            if let Some(below) = first_unmerged(git, workspace, below, &base.commit)? {
                let said = format!("{}; {}", below.describe_state(), below.merge_hint(workspace, &base.display_name()));
                return no(HookOutcome::Escalate, said);
            }
            let branch = BranchName::new(&workspace.branch)?;
            let own = git.branch_tip(&branch)?;
            match (self.rebase_work_onto(git, workspace, &base)?, own) {
                (RebaseOutcome::UpToDate, _) => {}
                // The base already had all of it.
                (RebaseOutcome::Rebased, Some(own)) if git.read_branch_work(&branch, &base.commit)?.commits == 0 => {
                    let landed = scattered_merge(&base, &own);
                    return Ok(Err(Box::new(merged_report(landed.commit.to_string(), &landed.how))));
                }
                (RebaseOutcome::Rebased, _) => {
                    let said = format!("{} has moved; on top of {} now", base.branch, base.commit.short_id());
                    return no(HookOutcome::Again, said);
                }
                (RebaseOutcome::Conflict(conflict), _) => return Ok(Err(conflict)),
            }
            Ok(Ok(base))
        })
    }

    /// Merges exactly the commit in delivery.
    fn offer_and_merge(
        &mut self,
        run: &HookRun<'_>,
        (session, workspace): (&Session, &Workspace),
        base: BaseBranch,
    ) -> DeliveryStepResult {
        let (task, judged) = (run.subject.task.as_ref(), head_in_delivery(session)?);
        let published = self.with_git(|git| self.publish_task_branch(git, task, workspace, judged.as_ref()))?;
        self.merge_candidate(run, &MergeCandidate { base, head: published.head, address: published.address })
    }

    fn merge_candidate(&mut self, run: &HookRun<'_>, ready: &MergeCandidate) -> DeliveryStepResult {
        let place = run.subject.task.as_ref().map(|task| self.change_location(task, ready.address.as_deref()));
        match place.transpose().map(Option::flatten) {
            Ok(Some((site, number))) => {
                Ok(self.merge_on_forge(Instant::now() + run.attempt_timeout(), site, number, ready))
            }
            Ok(None) => self.merge_by_git(run, ready),
            Err(error) => Ok(forge_failure_report(&error)),
        }
    }

    fn merge_by_git(&self, run: &HookRun<'_>, ready: &MergeCandidate) -> DeliveryStepResult {
        match self.merge_into_base(run.subject.task.as_ref(), ready, IfCheckedOut::Refuse) {
            Ok(MergeOutcome::Merged { commit } | MergeOutcome::AlreadyMerged { commit }) => {
                Ok(merged_report(commit.to_string(), &format!("merged into {}", ready.base.branch)))
            }
            Err(Error::Moved { .. } | Error::Stale { .. }) => {
                Ok(report_with_message(HookOutcome::Again, format!("{} has moved meanwhile", ready.base.branch)))
            }
            Err(Error::CheckedOut { branch, path }) => {
                let id = run.subject.task.as_ref().map(|task| task.id.to_string()).unwrap_or_default();
                let (merge, path) = (format!("`windlass change merge {id}`"), path.display());
                // That command refuses a tree that git cannot read.
                let unclean = self.with_git(|git| git.find_unclean_tree(&branch)).ok().flatten();
                let said = match unclean {
                    Some(tree) => {
                        format!("{branch} is checked out in {path}; {}, then {merge} merges it there", tree.remedy)
                    }
                    None => format!(
                        "{branch} is checked out in {path}, and Windlass does not change it unasked; {merge} merges it \
                         there, or switch that tree to another branch"
                    ),
                };
                Ok(report_with_message(HookOutcome::Escalate, said))
            }
            // The server objects to the branch, which the agent cannot fix.
            Err(Error::Rejected { remote, branch, why }) => {
                let said = format!("{remote} refuses to change {branch}: {}", clean_output(&why));
                Ok(report_with_message(HookOutcome::Escalate, said))
            }
            Err(error) => Err(error),
        }
    }

    /// Merges work into its base with git.
    pub(super) fn merge_into_base(
        &self,
        task: Option<&Task>,
        ready: &MergeCandidate,
        if_checked_out: IfCheckedOut,
    ) -> Result<MergeOutcome, Error> {
        let method = self.settings.delivery.method;
        let message = task.map_or_else(|| "Merge work\n".to_owned(), |task| merge_message(task, method));
        let way = MergePlan { method, message: &message };
        self.with_git(|git| git.merge_into_base(&ready.base, &ready.head, way, if_checked_out))
    }

    /// Merges a change on its forge, and waits for its checks until the deadline.
    pub(super) fn merge_on_forge(
        &mut self,
        until: Instant,
        site: ForgeProject,
        number: u64,
        ready: &MergeCandidate,
    ) -> HookReport {
        let forge = match self.connect_forge(site) {
            Ok(forge) => forge,
            Err(error) => return forge_failure_report(&error),
        };
        let mut noted = false;
        loop {
            let (head, method) = (ready.head.to_string(), self.settings.delivery.method);
            let why = match self.retry_forge_call(|| forge.merge_change(number, &head, method)) {
                Ok(ForgeMergeOutcome::Merged { commit }) => return merged_report(commit, &format!("merged #{number}")),
                Ok(ForgeMergeOutcome::AlreadyMerged { commit, head: found }) if found == head => {
                    return merged_report(commit, &format!("merged #{number}"));
                }
                // The next attempt finds out whether that is all of the work.
                Ok(ForgeMergeOutcome::AlreadyMerged { head: found, .. }) => {
                    let found = found.get(..10).unwrap_or(&found).to_owned();
                    return report_with_message(
                        HookOutcome::Again,
                        format!("#{number} was merged meanwhile, at {found}"),
                    );
                }
                Ok(ForgeMergeOutcome::Stale { .. }) => {
                    return report_with_message(HookOutcome::Again, "the change has moved meanwhile");
                }
                Ok(ForgeMergeOutcome::NotMergeable { obstacle: MergeObstacle::Behind, why }) => {
                    return report_with_message(HookOutcome::Again, why);
                }
                Ok(ForgeMergeOutcome::NotMergeable { obstacle: MergeObstacle::Pending, why }) => why,
                Ok(ForgeMergeOutcome::NotMergeable { why, .. }) => {
                    return report_with_message(HookOutcome::Escalate, why);
                }
                Err(error) => return forge_failure_report(&error),
            };
            if Instant::now() + FORGE_CHECKS_POLL_INTERVAL > until {
                return report_with_message(HookOutcome::Failure, format!("#{number} cannot be merged yet: {why}"));
            }
            if !noted {
                (self.env.observe)(RunnerEvent::Note(&format!("#{number} waits for the forge: {why}")));
                noted = true;
            }
            if !self.control.wait_unless_cancelled(FORGE_CHECKS_POLL_INTERVAL) {
                return HookOutcome::Cancelled.into();
            }
        }
    }
}

fn merged_report(commit: String, said: &str) -> HookReport {
    let context = [("commit".to_owned(), commit.clone().into())].into_iter().collect();
    HookReport { change: Some(ChangeFact::Merged(commit)), context, ..report_with_message(HookOutcome::Success, said) }
}

/// Returns the message of a merge commit.
fn merge_message(task: &Task, method: ForgeMergeMethod) -> String {
    if method == ForgeMergeMethod::Squash {
        return commit_message(task);
    }
    format!("Merge {}: {}\n", task.id, task.title())
}
