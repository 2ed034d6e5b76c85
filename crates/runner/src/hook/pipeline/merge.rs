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

use windlass_engine::{ChangeFact, HookOutcome, HookReport, Session, Task, Workspace, in_words};
use windlass_hooks::clean;
use windlass_process::file;
use windlass_vcs::forge::{Change, MergeObstacle, Merging, Method, Site, State};
use windlass_vcs::git::{Base, Branch, Commit, Error, Git, IfCheckedOut, Merged, Way};

use super::change::{failed, head_under_way, taken};
use super::{Ended, Onto};
use crate::external_merges::{in_base, scattered};
use crate::hook::HookRun;
use crate::stacked_branches::{LowerTask, first_unmerged};
use crate::wording::report;
use crate::workspace::commit_message;
use crate::{EffectRunner, RunError, RunnerEvent};

/// Poll intervals: for the merge lock, and for the checks of a forge.
const LOOK: Duration = Duration::from_millis(20);
const CHECKS: Duration = Duration::from_secs(5);

/// A commit that is ready to merge, and its base.
pub(super) struct Ready {
    pub base: Base,
    pub head: Commit,
    pub address: Option<String>,
}

impl EffectRunner<'_> {
    pub(super) fn merge_pr(
        &mut self,
        run: &HookRun<'_>,
        session: &Session,
        workspace: &Workspace,
    ) -> Result<Ended, RunError> {
        match self.take_turn(run.timeout()) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(HookOutcome::Cancelled.into())),
            Err(why) => return Ok(Ok(report(HookOutcome::Failure, why))),
        }
        if !self.still_holds(session)? {
            self.merging = None;
            return Ok(Ok(taken()));
        }
        let below = self.below(workspace)?;
        let ended = match self.ready_to_merge(run, workspace, &below) {
            // The rebase may have taken long.
            Ok(Ok(_)) if !self.still_holds(session)? => Ok(taken()),
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
    pub(super) fn take_turn(&mut self, patience: Duration) -> Result<bool, String> {
        if self.merging.is_some() {
            return Ok(true);
        }
        let lock = self.settings.delivery.lock.clone();
        let file = file::open_lock(&lock);
        let file = file.map_err(|error| format!("cannot open the merge lock {}: {error}", lock.display()))?;
        let until = Instant::now() + patience;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::WouldBlock) => {}
                // A file system without locks: the base moves only from its last known commit all the same.
                Err(fs::TryLockError::Error(_)) => break,
            }
            if !told {
                (self.outside.tell)(RunnerEvent::Queueing);
                told = true;
            }
            if Instant::now() > until {
                let waited = in_words(patience);
                return Err(format!(
                    "another task has been in the middle of its merge for {waited} ({})",
                    lock.display()
                ));
            }
            if !self.control.wait(LOOK) {
                return Ok(false);
            }
        }
        self.merging = Some(file);
        Ok(true)
    }

    /// Returns a report if the change is merged already: a crash may have left that out of the log, or a person was quicker.
    fn merged_before(
        &mut self,
        run: &HookRun<'_>,
        workspace: &Workspace,
        base: &Base,
    ) -> Result<Option<HookReport>, Error> {
        let number = run.subject.task.as_ref().and_then(|task| task.change.as_ref()?.at.number);
        if let Some(number) = number {
            let address = |git: &Git<'_>| base.remote.as_ref().map(|remote| git.address(remote)).transpose();
            let remote = self.with_git(address)?;
            let site = remote.map(|remote| Site::of(&remote, &self.settings.delivery.forge)).transpose();
            let forge = match site.map(Option::flatten).and_then(|site| site.map(|site| self.forge(site)).transpose()) {
                Ok(forge) => forge,
                Err(error) => return Ok(Some(failed(&error))),
            };
            let Some(forge) = forge else { return Ok(None) };
            let change = match self.asking_again(|| forge.look(number)) {
                Ok(change) => change,
                Err(error) => return Ok(Some(failed(&error))),
            };
            let State::Merged { commit } = &change.state else { return Ok(None) };
            return Ok(Some(match self.left_out(workspace, base, &change)? {
                None => merged(commit.clone(), &format!("#{number} is merged already")),
                Some(left_out) => {
                    let id = run.subject.task.as_ref().map(|task| task.id.to_string()).unwrap_or_default();
                    let said = format!("{left_out}; `windlass answer {id} continue` opens another change for them");
                    report(HookOutcome::Escalate, said)
                }
            }));
        }
        self.with_git(|git| {
            let Some(head) = git.tip(&Branch::new(&workspace.branch)?)? else { return Ok(None) };
            let landed = in_base(git, base, &workspace.branch, &head)?;
            Ok(landed.map(|landed| merged(landed.commit.to_string(), &landed.how)))
        })
    }

    /// Describes commits of a branch that a forge has left out of a merge, if there are any.
    pub(super) fn left_out(
        &self,
        workspace: &Workspace,
        base: &Base,
        change: &Change,
    ) -> Result<Option<String>, Error> {
        self.with_git(|git| {
            let (branch, head) = (Branch::new(&workspace.branch)?, Commit::new(&change.head)?);
            let is_whole = git.is_merged_whole(&branch, &head, &base.commit)?;
            let words =
                || format!("#{} was merged at {}, without the last commits of {branch}", change.number, head.short());
            Ok((!is_whole).then(words))
        })
    }

    /// Rebases the work onto the newest base. Returns a report if it was not on top of the base.
    fn ready_to_merge(
        &mut self,
        run: &HookRun<'_>,
        workspace: &Workspace,
        below: &[LowerTask],
    ) -> Result<Result<Base, Box<HookReport>>, Error> {
        let base = self.with_git(|git| self.base(git))?;
        if let Some(merged) = self.merged_before(run, workspace, &base)? {
            return Ok(Err(Box::new(merged)));
        }
        self.with_git(|git| {
            let no = |outcome, said: String| Ok(Err(Box::new(report(outcome, said))));
            if let Some(why) = &base.stale {
                return no(HookOutcome::Failure, format!("nobody can tell where {} is now: {why}", base.branch));
            }
            if let Some(below) = first_unmerged(git, workspace, below, &base.commit)? {
                let said = format!("{}; {}", below.in_words(), below.hint(workspace, &base.shown()));
                return no(HookOutcome::Escalate, said);
            }
            let branch = Branch::new(&workspace.branch)?;
            let own = git.tip(&branch)?;
            match (self.bring_onto(git, workspace, &base)?, own) {
                (Onto::There, _) => {}
                // The base already had all of it.
                (Onto::Now, Some(own)) if git.work(&branch, &base.commit)?.commits == 0 => {
                    let landed = scattered(&base, &own);
                    return Ok(Err(Box::new(merged(landed.commit.to_string(), &landed.how))));
                }
                (Onto::Now, _) => {
                    let said = format!("{} has moved; on top of {} now", base.branch, base.commit.short());
                    return no(HookOutcome::Again, said);
                }
                (Onto::Conflict(conflict), _) => return Ok(Err(conflict)),
            }
            Ok(Ok(base))
        })
    }

    /// Merges exactly the commit in delivery.
    fn offer_and_merge(
        &mut self,
        run: &HookRun<'_>,
        (session, workspace): (&Session, &Workspace),
        base: Base,
    ) -> Ended {
        let (task, judged) = (run.subject.task.as_ref(), head_under_way(session)?);
        let offer = self.with_git(|git| self.offer(git, task, workspace, judged.as_ref()))?;
        self.merge(run, &Ready { base, head: offer.head, address: offer.address })
    }

    fn merge(&mut self, run: &HookRun<'_>, ready: &Ready) -> Ended {
        let place = run.subject.task.as_ref().map(|task| self.place(task, ready.address.as_deref()));
        match place.transpose().map(Option::flatten) {
            Ok(Some((site, number))) => Ok(self.merge_on_forge(Instant::now() + run.timeout(), site, number, ready)),
            Ok(None) => self.merge_by_git(run, ready),
            Err(error) => Ok(failed(&error)),
        }
    }

    fn merge_by_git(&self, run: &HookRun<'_>, ready: &Ready) -> Ended {
        match self.land(run.subject.task.as_ref(), ready, IfCheckedOut::Refuse) {
            Ok(Merged::Now { commit } | Merged::Already { commit }) => {
                Ok(merged(commit.to_string(), &format!("merged into {}", ready.base.branch)))
            }
            Err(Error::Moved { .. } | Error::Stale { .. }) => {
                Ok(report(HookOutcome::Again, format!("{} has moved meanwhile", ready.base.branch)))
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
                        "{branch} is checked out in {path}, and no tree is changed unasked; {merge} merges it there, or \
                         switch that tree to another branch"
                    ),
                };
                Ok(report(HookOutcome::Escalate, said))
            }
            // The server objects to the branch, which the agent cannot mend.
            Err(Error::Rejected { remote, branch, why }) => {
                let said = format!("{remote} does not let {branch} be changed: {}", clean(&why));
                Ok(report(HookOutcome::Escalate, said))
            }
            Err(error) => Err(error),
        }
    }

    /// Merges work into its base with git.
    pub(super) fn land(
        &self,
        task: Option<&Task>,
        ready: &Ready,
        if_checked_out: IfCheckedOut,
    ) -> Result<Merged, Error> {
        let method = self.settings.delivery.method;
        let message = task.map_or_else(|| "Merge work\n".to_owned(), |task| merge_message(task, method));
        let way = Way { method, message: &message };
        self.with_git(|git| git.merge(&ready.base, &ready.head, way, if_checked_out))
    }

    /// Merges a change on its forge, and waits for its checks until the deadline.
    pub(super) fn merge_on_forge(&mut self, until: Instant, site: Site, number: u64, ready: &Ready) -> HookReport {
        let forge = match self.forge(site) {
            Ok(forge) => forge,
            Err(error) => return failed(&error),
        };
        let mut told = false;
        loop {
            let (head, method) = (ready.head.to_string(), self.settings.delivery.method);
            let why = match self.asking_again(|| forge.merge(number, &head, method)) {
                Ok(Merging::Merged { commit }) => return merged(commit, &format!("merged #{number}")),
                Ok(Merging::AlreadyMerged { commit, head: found }) if found == head => {
                    return merged(commit, &format!("merged #{number}"));
                }
                // The next attempt finds out whether that is all of the work.
                Ok(Merging::AlreadyMerged { head: found, .. }) => {
                    let found = found.get(..10).unwrap_or(&found).to_owned();
                    return report(HookOutcome::Again, format!("#{number} was merged meanwhile, at {found}"));
                }
                Ok(Merging::Stale { .. }) => return report(HookOutcome::Again, "the change has moved meanwhile"),
                Ok(Merging::NotMergeable { obstacle: MergeObstacle::Behind, why }) => {
                    return report(HookOutcome::Again, why);
                }
                Ok(Merging::NotMergeable { obstacle: MergeObstacle::Pending, why }) => why,
                Ok(Merging::NotMergeable { why, .. }) => return report(HookOutcome::Escalate, why),
                Err(error) => return failed(&error),
            };
            if Instant::now() + CHECKS > until {
                return report(HookOutcome::Failure, format!("#{number} cannot be merged yet: {why}"));
            }
            if !told {
                (self.outside.tell)(RunnerEvent::Note(&format!("#{number} waits on the forge: {why}")));
                told = true;
            }
            if !self.control.wait(CHECKS) {
                return HookOutcome::Cancelled.into();
            }
        }
    }
}

fn merged(commit: String, said: &str) -> HookReport {
    let context = [("commit".to_owned(), commit.clone().into())].into_iter().collect();
    HookReport { change: Some(ChangeFact::Merged(commit)), context, ..report(HookOutcome::Success, said) }
}

/// Returns the message of a merge commit.
fn merge_message(task: &Task, method: Method) -> String {
    if method == Method::Squash {
        return commit_message(task);
    }
    format!("Merge {}: {}\n", task.id, task.title())
}
