//! Merges that a person asks for.
//!
//! ```text
//! lock ─► newest base ─► merged already? ─► on top of the base, as submitted? ── no ──► rebased, and checked there
//!                          │ yes              │ yes                                       │ passes
//!                          ▼                  ▼                                           ▼
//!                       recorded ◄── merged, on the forge or with git; a clean tree of the person is updated, too
//! ```
//!
//! Invariants:
//! - Only work on top of the newest base is merged. Work that differs from what was submitted is checked again, also if an
//!   earlier try has rebased it and it did not pass.
//! - A merge is recorded before anything is cleaned up. Another request repairs a crash in between.

use std::time::{Duration, Instant};

use windlass_engine::{
    ChangeFact, ConfigDigest, EffectId, EffectKind, EventType, GateFailure, GateFailureKind, GateHookEnd, HookClass,
    HookOutcome, HookReport, PendingEffect, PlannedHook, StateView as _, Task, TaskState, Workspace,
};
use windlass_expr::Condition;
use windlass_hooks::{DeliveryStep, RunnableKind};
use windlass_vcs::forge::{ForgeChange, ForgeChangeState, ForgeError, ForgeProject};
use windlass_vcs::git::{BaseBranch, BranchName, BranchRebaseOutcome, Error, GitCommitId, IfCheckedOut, MergeOutcome};

use super::HookSubject;
use super::merge::MergeCandidate;
use crate::external_merges::{ExternalMerge, find_external_merge, scattered_merge};
use crate::hook::TRIAL_INDEX;
use crate::stacked_branches::{first_unmerged, own_work_base, own_work_start};
use crate::wording::list_file_names;
use crate::workspace::commit_message;
use crate::workspace_problem::{WorkspaceProblem, describe_causes, explain_git_error};
use crate::{EffectRunner, RunError};

/// Maximum wait for another process that merges.
const MERGE_LOCK_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum wait for the checks of a forge.
const FORGE_CHECKS_TIMEOUT: Duration = Duration::from_secs(600);

/// Hint of an error without a more precise hint.
const RETRY_HINT: &str = "fix that, and try again";

/// Variables of conditions that only have values in a session.
const SESSION_VARIABLES: &[&str] =
    &["session", "iteration", "retries", "max_retries", "hook_retries", "agent", "agent_name", "error", "event"];

/// Results of the checks of a merge by hand.
#[derive(Debug, Default)]
struct CheckReport {
    passed: Vec<String>,
    /// Stop hooks that cannot be asked without a turn of an agent.
    unasked: Vec<String>,
}

/// Whether work that was rebased onto a newer base is checked there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeChecks {
    Run,
    Skip,
}

/// Outcome of a merge that a person has asked for.
#[derive(Debug)]
pub enum ManualMergeOutcome {
    /// Merged. Other processes wait until this is recorded, or until the merge lock is released.
    Merged(MergeProof),
    /// It was merged and recorded before, perhaps by another process during the wait.
    AlreadyMerged,
    /// The work conflicts with the base, and nothing has changed.
    Conflicts {
        base: String,
        files: String,
        why: String,
    },
    /// The work is on top of the newest base now, and this check fails there.
    CheckFailed {
        base: String,
        hook: String,
        report: Box<HookReport>,
    },
    /// The work is on top of the newest base now, and this check could not judge it there: the check is broken, ran out of time,
    /// or asks for a person.
    CheckUndecided {
        base: String,
        hook: String,
        report: Box<HookReport>,
    },
    Refused {
        cause: String,
        hint: String,
    },
    /// The person has cancelled the merge.
    Cancelled,
}

/// A merge to be recorded.
#[derive(Debug)]
pub struct MergeProof {
    /// Commit that has the work in the base. If no single one has, the last commit of the work.
    pub commit: String,
    pub base: String,
    /// Whether it was merged before the request.
    pub was_merged: bool,
    /// Explanation of how the base has it, if it was found there.
    pub seen: Option<String>,
    /// Whether it was rebased onto a newer base.
    pub rebased: bool,
    /// Checks that passed on the merged commit.
    pub checks: Vec<String>,
    /// Judges of turns that cannot be asked without a turn of an agent.
    pub unasked: Vec<String>,
}

/// A change to merge.
struct ManualMergeRequest<'w> {
    task: &'w Task,
    workspace: &'w Workspace,
    checks: MergeChecks,
    /// Last submitted commit.
    submitted: Option<&'w str>,
}

fn refused_outcome(cause: impl Into<String>, hint: impl Into<String>) -> ManualMergeOutcome {
    ManualMergeOutcome::Refused { cause: cause.into(), hint: hint.into() }
}

/// Early end of a merge by hand.
enum MergeInterruption {
    Outcome(Box<ManualMergeOutcome>),
    Failed(RunError),
}

impl From<ManualMergeOutcome> for MergeInterruption {
    fn from(outcome: ManualMergeOutcome) -> Self {
        Self::Outcome(Box::new(outcome))
    }
}

impl From<RunError> for MergeInterruption {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl From<WorkspaceProblem> for MergeInterruption {
    fn from(said: WorkspaceProblem) -> Self {
        refused_outcome(said.cause, said.hint.unwrap_or_else(|| RETRY_HINT.to_owned())).into()
    }
}

impl From<Error> for MergeInterruption {
    fn from(error: Error) -> Self {
        WorkspaceProblem::from_git_error(&error).into()
    }
}

/// Refuses a branch that a person has reset to the base.
fn refuse_reset_branch(request: &ManualMergeRequest<'_>, base: &BaseBranch) -> ManualMergeOutcome {
    let branch = &request.workspace.branch;
    let cause = format!(
        "{branch} has no commits that {} does not have, and the submitted commit is missing",
        base.display_name()
    );
    let submitted = request.submitted.unwrap_or("COMMIT");
    let place = format!(".windlass/worktrees/{}", request.workspace.name);
    refused_outcome(
        cause,
        format!("`git -C {place} reset --hard {submitted}` resets the branch to the submitted commit"),
    )
}

impl MergeProof {
    /// Describes work that a base has without a merge by Windlass.
    fn found_in_base(base: String, commit: String, seen: Option<String>) -> Self {
        Self { commit, base, was_merged: true, seen, rebased: false, checks: Vec::new(), unasked: Vec::new() }
    }

    fn from_external_merge(base: &BaseBranch, landed: ExternalMerge) -> Self {
        Self::found_in_base(base.display_name(), landed.commit.to_string(), Some(landed.how))
    }
}

impl EffectRunner<'_> {
    /// Merges the change of a task. Work that differs from what was submitted is checked first. Records nothing yet.
    pub fn merge_manually(
        &mut self,
        task: &Task,
        checks: MergeChecks,
        submitted: Option<String>,
    ) -> Result<ManualMergeOutcome, RunError> {
        let Some(workspace) = task.workspace.clone() else {
            return Ok(refused_outcome(
                format!("{} has no worktree of its own", task.id),
                "its work is in your own tree; commit it there",
            ));
        };
        match self.acquire_merge_lock(MERGE_LOCK_TIMEOUT) {
            Ok(true) => {}
            Ok(false) => return Ok(ManualMergeOutcome::Cancelled),
            Err(why) => {
                return Ok(refused_outcome(
                    why,
                    "wait until it is merged; if its process was stopped, continue or end it",
                ));
            }
        }
        let now = self.load_task(task.id)?;
        let done = match now {
            Some(now) if now.change.as_ref().is_some_and(|change| change.merged.is_some()) => {
                Ok(ManualMergeOutcome::AlreadyMerged)
            }
            Some(now) if now.state == task.state && now.workspace == task.workspace => {
                if let Err(error) = self.with_git(|git| self.take_shared_branches(git, &workspace)) {
                    self.release_merge_lock();
                    return Ok(refused_outcome(explain_git_error(&error), RETRY_HINT));
                }
                let request =
                    ManualMergeRequest { task: &now, workspace: &workspace, checks, submitted: submitted.as_deref() };
                match self.merge_with_lock(&request) {
                    Ok(proof) => Ok(ManualMergeOutcome::Merged(proof)),
                    Err(MergeInterruption::Outcome(outcome))
                        if matches!(*outcome, ManualMergeOutcome::Refused { .. }) && self.control.is_cancelled() =>
                    {
                        Ok(ManualMergeOutcome::Cancelled)
                    }
                    Err(MergeInterruption::Outcome(outcome)) => Ok(*outcome),
                    Err(MergeInterruption::Failed(error)) => Err(error),
                }
            }
            _ => Ok(refused_outcome(format!("{} has changed while this waited", task.id), "look at it, and try again")),
        };
        if !matches!(done, Ok(ManualMergeOutcome::Merged(_))) {
            self.release_merge_lock();
        }
        done
    }

    /// Releases the merge lock.
    pub fn release_merge_lock(&mut self) {
        self.merging = None;
    }

    fn merge_with_lock(&mut self, request: &ManualMergeRequest<'_>) -> Result<MergeProof, MergeInterruption> {
        if let Some(proof) = self.find_merged_on_forge(request)? {
            return Ok(proof);
        }
        let base = self.with_git(|git| self.load_base(git))?;
        if let Some(landed) = self.with_git(|git| find_external_merge(git, &base, request.task, request.submitted))? {
            return Ok(MergeProof::from_external_merge(&base, landed));
        }
        self.refuse_unmerged_stack(request.workspace, &base)?;
        if let Some(why) = &base.stale {
            let cause = format!("cannot tell where {} is now: {why}", base.branch);
            let hint = "a merge needs the newest base; try again when the remote can be reached";
            return Err(refused_outcome(cause, hint).into());
        }
        self.reopen_worktree(request.task)?;
        let (head, rebased) = self.rebase_by_hand(request, &base)?;
        // Work that was rebased earlier and did not pass is no better now.
        let CheckReport { passed, unasked } = match request.submitted == Some(head.as_str()) {
            true => CheckReport::default(),
            false => self.check_rebased_work(request, &base, &head)?,
        };
        let (commit, already) = self.merge_ready_commit(request, &base, &head)?;
        Ok(MergeProof {
            commit,
            base: base.display_name(),
            was_merged: already,
            seen: None,
            rebased,
            checks: passed,
            unasked,
        })
    }

    /// Rebases the work onto a base if it is not on top of it. Returns its last commit, and whether it has moved.
    fn rebase_by_hand(
        &self,
        request: &ManualMergeRequest<'_>,
        base: &BaseBranch,
    ) -> Result<(GitCommitId, bool), MergeInterruption> {
        self.with_git(|git| {
            let branch = BranchName::new(&request.workspace.branch)?;
            let own = git.branch_tip(&branch)?.ok_or_else(|| Error::UnknownCommit { commit: branch.to_string() })?;
            if git.read_branch_work(&branch, &base.commit)?.commits == 0 {
                return Err(refuse_reset_branch(request, base).into());
            }
            let start = own_work_start(request.workspace)?;
            let moved = match git.rebase_after(&self.task_worktree(request.workspace)?, start.as_ref(), &base.commit)? {
                BranchRebaseOutcome::Conflict { files, why } => {
                    let files = list_file_names(files.iter().map(|file| file.display()));
                    return Err(ManualMergeOutcome::Conflicts { base: base.display_name(), files, why }.into());
                }
                BranchRebaseOutcome::Done { .. } => true,
                BranchRebaseOutcome::UpToDate => false,
            };
            let tip = git.branch_tip(&branch)?.unwrap_or_else(|| own.clone());
            // The base already had all of it.
            if tip == base.commit {
                return Err(ManualMergeOutcome::Merged(MergeProof::from_external_merge(
                    base,
                    scattered_merge(base, &own),
                ))
                .into());
            }
            Ok((tip, moved))
        })
    }

    /// Refuses work that is stacked on unmerged work of others.
    fn refuse_unmerged_stack(&self, workspace: &Workspace, base: &BaseBranch) -> Result<(), MergeInterruption> {
        let below = self.load_lower_tasks(workspace)?;
        self.with_git(|git| match first_unmerged(git, workspace, &below, &base.commit)? {
            Some(below) => {
                Err(refused_outcome(below.describe_state(), below.merge_hint(workspace, &base.display_name())).into())
            }
            None => Ok(()),
        })
    }

    /// Merges work on top of the newest base. Returns its commit in the base, and whether it was there already.
    fn merge_ready_commit(
        &mut self,
        request: &ManualMergeRequest<'_>,
        base: &BaseBranch,
        head: &GitCommitId,
    ) -> Result<(String, bool), MergeInterruption> {
        let moved = || refused_outcome("the base or the branch has moved meanwhile", "try again");
        let published = match self
            .with_git(|git| self.publish_task_branch(git, Some(request.task), request.workspace, Some(head)))
        {
            Err(Error::Moved { .. }) => return Err(moved().into()),
            published => published?,
        };
        let ready = MergeCandidate { base: base.clone(), head: published.head, address: published.address };
        if let Some((site, number)) =
            self.change_location(request.task, ready.address.as_deref()).map_err(|error| forge_refusal(&error))?
        {
            let report = self.merge_on_forge(Instant::now() + FORGE_CHECKS_TIMEOUT, site, number, &ready);
            // A person may have merged it there meanwhile, with or without its last commits.
            if report.outcome == HookOutcome::Again
                && let Some(proof) = self.find_merged_on_forge(request)?
            {
                return Ok((proof.commit, true));
            }
            return match (report.outcome, report.change) {
                (_, Some(ChangeFact::Merged(commit))) => Ok((commit, false)),
                (HookOutcome::Cancelled, _) => Err(ManualMergeOutcome::Cancelled.into()),
                (outcome, _) => {
                    let cause = report.message.unwrap_or_else(|| "the forge refused, without a reason".to_owned());
                    let is_behind = outcome == HookOutcome::Again;
                    let hint = if is_behind { "try again" } else { "fix it on the forge, and try again" };
                    Err(refused_outcome(cause, hint).into())
                }
            };
        }
        match self.merge_into_base(Some(request.task), &ready, IfCheckedOut::FastForward) {
            Ok(MergeOutcome::Merged { commit }) => Ok((commit.to_string(), false)),
            Ok(MergeOutcome::AlreadyMerged { commit }) => Ok((commit.to_string(), true)),
            Err(Error::Moved { .. } | Error::Stale { .. }) => Err(moved().into()),
            Err(error @ Error::Dirty { .. }) => {
                let hint = format!(
                    "commit or stash that, or switch the tree to another branch, and try again; {} is not changed",
                    base.branch
                );
                Err(refused_outcome(error.to_string(), hint).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the checks of the work that are no steps of git, in a fresh checkout of the commit to merge.
    fn check_rebased_work(
        &mut self,
        request: &ManualMergeRequest<'_>,
        base: &BaseBranch,
        head: &GitCommitId,
    ) -> Result<CheckReport, MergeInterruption> {
        if request.checks == MergeChecks::Skip {
            return Ok(CheckReport::default());
        }
        let checkout = self.check_out_for_gate(request.workspace, head.clone())?;
        let above = std::mem::replace(&mut self.settings.directory, checkout);
        let checked = self.run_merge_checks(request.task, base);
        self.settings.directory = above;
        self.remove_gate_checkout();
        checked
    }

    fn run_merge_checks(&mut self, task: &Task, base: &BaseBranch) -> Result<CheckReport, MergeInterruption> {
        self.changed = None;
        let (checks, mut unasked) = self.select_merge_checks(task)?;
        let mut passed = Vec::new();
        for planned in checks {
            let name = planned.hook.hook.clone();
            let effect = self.trial_effect(task, &planned);
            if !self.is_check_due(&effect, &planned)? {
                unasked.extend(Some(name).filter(|_| uses_session_values(&planned)));
                continue;
            }
            let report = self.run_hook(&effect)?.report;
            let (message, feedback, unstarted) = (Some(""), report.feedback.as_deref(), report.unstarted);
            match GateFailure::from_hook_end(
                &planned.hook,
                &GateHookEnd { outcome: report.outcome, message, feedback, unstarted },
            ) {
                _ if report.outcome == HookOutcome::Cancelled => return Err(ManualMergeOutcome::Cancelled.into()),
                None if report.outcome == HookOutcome::Skip => {}
                None => passed.push(name),
                Some(broken) => {
                    let (base, hook, report) = (base.display_name(), name, Box::new(report));
                    let is_late = report.outcome == HookOutcome::TimedOut;
                    let is_unjudged = broken.why == GateFailureKind::Escalated || broken.unstarted || is_late;
                    let outcome = match is_unjudged {
                        true => ManualMergeOutcome::CheckUndecided { base, hook, report },
                        false => ManualMergeOutcome::CheckFailed { base, hook, report },
                    };
                    return Err(outcome.into());
                }
            }
        }
        Ok(CheckReport { passed, unasked })
    }

    /// Returns the checks of a merge by hand: the stop hooks that need no turn, and the hooks of `before_submit`. Returns also the
    /// names of the other stop hooks, and of the first judge of turns.
    fn select_merge_checks(&self, task: &Task) -> Result<(Vec<PlannedHook>, Vec<String>), RunError> {
        let Some(effects) = &self.settings.rules.effects else { return Ok(Default::default()) };
        let session = self.last_turn_on_task(task)?.and_then(|(session, _)| session);
        let snapshot = self.store.begin_snapshot()?;
        let session = session.map(|name| snapshot.find_session(&name)).transpose()?.flatten();
        let agent = session.as_ref().map(|session| session.agent.as_str());
        let planned_at = |event| {
            let planned = effects.hooks.get(&event).into_iter().flat_map(|hooks| hooks.iter());
            planned.filter(move |planned| effects.applies_to_task(planned, Some(task), agent)).cloned()
        };
        let is_check = |planned: &PlannedHook| {
            let hook = (self.settings.hooks)(&planned.hook.hook);
            let reviews = hook.is_some_and(|hook| matches!(hook.kind, RunnableKind::Step(DeliveryStep::Review(_))));
            planned.hook.class != HookClass::Vcs && !reviews
        };
        let stop_hooks = planned_at(EventType::TurnFinished).filter(|planned| planned.hook.point.is_stop());
        let (mut checks, others): (Vec<_>, Vec<_>) = stop_hooks.partition(|planned| self.runs_without_turn(planned));
        checks.extend(planned_at(EventType::SubmissionStarted).filter(is_check));
        let unasked = others.into_iter().map(|planned| planned.hook.hook);
        Ok((checks, effects.first_judge_name(Some(task)).map(str::to_owned).into_iter().chain(unasked).collect()))
    }

    /// Returns whether a stop hook can run without a turn: it is a command, or the tests.
    fn runs_without_turn(&self, planned: &PlannedHook) -> bool {
        let hook = (self.settings.hooks)(&planned.hook.hook);
        hook.is_some_and(|hook| {
            matches!(hook.kind, RunnableKind::Command(_) | RunnableKind::Step(DeliveryStep::RunTests))
        })
    }

    /// Builds the effect of a hook that a person runs: it belongs to no session, and its report is shown but not recorded.
    fn trial_effect(&self, task: &Task, planned: &PlannedHook) -> PendingEffect {
        let opened = task.change.as_ref().map_or(task.version, |change| change.opened);
        PendingEffect {
            id: EffectId { seq: opened, index: TRIAL_INDEX },
            kind: EffectKind::Hook(planned.hook.clone()),
            config: ConfigDigest::of_bytes(
                self.settings.rules.effects.as_ref().map_or(&[], |rules| rules.config.as_bytes()),
            ),
            owner: self.owner.clone(),
            attempts: 1,
            depth: 0,
            share: 0,
            nesting: 0,
            carried: Vec::new(),
            progress: None,
            resting: None,
            task: Some(task.id),
            session: None,
            iteration: None,
            version: opened,
        }
    }

    /// Returns whether the condition of a check holds. A check whose condition cannot be evaluated runs.
    fn is_check_due(&self, effect: &PendingEffect, planned: &PlannedHook) -> Result<bool, RunError> {
        let Some(when) = &planned.when else { return Ok(true) };
        let subject: HookSubject = self.load_subject(effect)?;
        Ok(when.is_satisfied(&subject.template_values(&planned.hook, &self.settings.project)).unwrap_or(true))
    }

    /// Returns the merge that the forge has already made. Refuses a change that it has closed, or merged without the last commits.
    fn find_merged_on_forge(&self, request: &ManualMergeRequest<'_>) -> Result<Option<MergeProof>, MergeInterruption> {
        let ManualMergeRequest { task, workspace, .. } = request;
        let Some(change) = self.find_forge_change(task).transpose()? else { return Ok(None) };
        let commit = match &change.state {
            ForgeChangeState::Open => return Ok(None),
            ForgeChangeState::Merged { commit } => commit.clone(),
            ForgeChangeState::Closed => {
                let cause = format!("{} was closed without having been merged", change.url);
                return Err(refused_outcome(cause, "reopen it there, or leave the work: the branch stays").into());
            }
        };
        let base = self.with_git(|git| self.load_base(git))?;
        let Some(left_out) = self.describe_omitted_commits(workspace, &base, &change)? else {
            return Ok(Some(MergeProof::found_in_base(workspace.base.clone(), commit, None)));
        };
        let (id, place) = (task.id, format!(".windlass/worktrees/{}", workspace.name));
        let take_up = match task.state {
            TaskState::Blocked => format!("windlass answer {id} continue"),
            _ => format!("windlass task reopen {id} --force --reason 'commits were left out'"),
        };
        let hint = format!(
            "`{take_up}` lets the next run open another change for them; `git -C {place} reset --hard {}` drops them",
            base.display_name()
        );
        Err(refused_outcome(left_out, hint).into())
    }

    /// Returns the change of a task on its forge, if it is on one.
    pub fn find_forge_change(&self, task: &Task) -> Option<Result<ForgeChange, WorkspaceProblem>> {
        let address = self.with_git(|git| {
            let base = self.load_base(git)?;
            base.remote.as_ref().map(|remote| git.remote_address(remote)).transpose()
        });
        let address = match address {
            Ok(address) => address,
            Err(error) => {
                return task.change.as_ref()?.at.number.map(|_| Err(WorkspaceProblem::from_git_error(&error)));
            }
        };
        let words = |error: &ForgeError| WorkspaceProblem { cause: describe_causes(error), hint: Some(error.hint()) };
        match self.change_location(task, address.as_deref()) {
            Ok(None) => None,
            Err(error) => Some(Err(words(&error))),
            Ok(Some((site, number))) => Some(
                self.connect_forge(site).and_then(|forge| forge.view_change(number)).map_err(|error| words(&error)),
            ),
        }
    }

    /// Returns the forge and the number of a task's change.
    pub(super) fn change_location(
        &self,
        task: &Task,
        address: Option<&str>,
    ) -> Result<Option<(ForgeProject, u64)>, ForgeError> {
        let number = task.change.as_ref().and_then(|change| change.at.number);
        let (Some(address), Some(number)) = (address, number) else { return Ok(None) };
        Ok(ForgeProject::from_remote(address, &self.settings.delivery.forge)?.map(|site| (site, number)))
    }

    /// Commits the changes in the worktree of a task. Returns the base, and how much its branch adds to it.
    pub fn commit_and_measure(&self, task: &Task) -> Result<Result<Option<(String, u32)>, Error>, RunError> {
        let Some(workspace) = &task.workspace else { return Ok(Ok(None)) };
        let below = self.load_lower_tasks(workspace)?;
        Ok(self.with_git(|git| {
            let worktree = self.task_worktree(workspace)?;
            if worktree.path.join(".git").exists() {
                git.commit_all(&worktree, &commit_message(task))?;
            }
            if git.branch_tip(&worktree.branch)?.is_none() {
                return Ok(None);
            }
            let base = own_work_base(git, workspace, &below, &self.load_base(git)?.commit)?;
            Ok(Some((workspace.base.clone(), git.read_branch_work(&worktree.branch, &base)?.commit_count())))
        }))
    }
}

/// Returns whether the condition of a stop hook uses values that exist only in a session.
fn uses_session_values(planned: &PlannedHook) -> bool {
    let asks = |when: &Condition| SESSION_VARIABLES.iter().any(|name| when.uses_name(name));
    planned.hook.point.is_stop() && planned.when.as_ref().is_some_and(asks)
}

fn forge_refusal(error: &ForgeError) -> ManualMergeOutcome {
    refused_outcome(error.to_string(), error.hint())
}
