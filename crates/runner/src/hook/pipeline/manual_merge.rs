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
    Broken, ChangeFact, ConfigDigest, EffectId, EffectKind, EventType, HookClass, HookEnd, HookOutcome, HookReport,
    PendingEffect, PlannedHook, State as TaskState, Task, View as _, Why, Workspace,
};
use windlass_expr::Condition;
use windlass_hooks::{DeliveryStep, RunnableKind};
use windlass_vcs::forge::{Change, ForgeError, Site, State};
use windlass_vcs::git::{Base, Branch, Commit, Error, IfCheckedOut, Merged, Rebased};

use super::HookSubject;
use super::merge::Ready;
use crate::external_merges::{ExternalMerge, landed, scattered};
use crate::hook::TRIAL_INDEX;
use crate::stacked_branches::{beginning, first_unmerged, own_base};
use crate::wording::listed;
use crate::workspace::commit_message;
use crate::workspace_problem::{WorkspaceProblem, with_causes};
use crate::{EffectRunner, RunError};

/// Maximum wait for another process that merges.
const PATIENCE: Duration = Duration::from_mins(10);
/// Maximum wait for the checks of a forge.
const FORGE: Duration = Duration::from_secs(600);

/// Hint of an error without a more precise hint.
const ASK_AGAIN: &str = "put that right, and ask again";

/// Variables of conditions that only have values in a session.
const OF_A_SESSION: &[&str] =
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
    Merged(MergeSeal),
    /// Another process has merged and recorded it during the wait.
    Already,
    /// The work conflicts with the base, and nothing has changed.
    Conflicts {
        base: String,
        files: String,
        why: String,
    },
    /// The work is on top of the newest base now, and this check fails there.
    Unfit {
        base: String,
        hook: String,
        report: Box<HookReport>,
    },
    /// The work is on top of the newest base now, and this check could not judge it there: the check is broken, ran out of time,
    /// or asks for a person.
    Unjudged {
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
pub struct MergeSeal {
    /// Commit that has the work in the base. If no single one has, the last commit of the work.
    pub commit: String,
    pub base: String,
    /// Whether it was merged before the request.
    pub already: bool,
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
struct Wish<'w> {
    task: &'w Task,
    workspace: &'w Workspace,
    checks: MergeChecks,
    /// Last submitted commit.
    submitted: Option<&'w str>,
}

fn refused(cause: impl Into<String>, hint: impl Into<String>) -> ManualMergeOutcome {
    ManualMergeOutcome::Refused { cause: cause.into(), hint: hint.into() }
}

/// Early end of a merge by hand.
enum EarlyEnd {
    Outcome(Box<ManualMergeOutcome>),
    Failed(RunError),
}

impl From<ManualMergeOutcome> for EarlyEnd {
    fn from(told: ManualMergeOutcome) -> Self {
        Self::Outcome(Box::new(told))
    }
}

impl From<RunError> for EarlyEnd {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl From<WorkspaceProblem> for EarlyEnd {
    fn from(said: WorkspaceProblem) -> Self {
        refused(said.cause, said.hint.unwrap_or_else(|| ASK_AGAIN.to_owned())).into()
    }
}

impl From<Error> for EarlyEnd {
    fn from(error: Error) -> Self {
        WorkspaceProblem::of(&error).into()
    }
}

/// Refuses a branch that a person has reset to the base.
fn nothing_left(wish: &Wish<'_>, base: &Base) -> ManualMergeOutcome {
    let branch = &wish.workspace.branch;
    let cause = format!("{branch} has nothing that {} has not, and what was submitted is not there", base.shown());
    let submitted = wish.submitted.unwrap_or("COMMIT");
    let place = format!(".windlass/worktrees/{}", wish.workspace.name);
    refused(cause, format!("`git -C {place} reset --hard {submitted}` puts the branch back to what was submitted"))
}

impl MergeSeal {
    /// Describes work that a base has without a merge of ours.
    fn found(base: String, commit: String, seen: Option<String>) -> Self {
        Self { commit, base, already: true, seen, rebased: false, checks: Vec::new(), unasked: Vec::new() }
    }

    fn landed(base: &Base, landed: ExternalMerge) -> Self {
        Self::found(base.shown(), landed.commit.to_string(), Some(landed.how))
    }
}

impl EffectRunner<'_> {
    /// Merges the change of a task. Work that differs from what was submitted is checked first. Records nothing yet.
    pub fn merge_by_hand(
        &mut self,
        task: &Task,
        checks: MergeChecks,
        submitted: Option<String>,
    ) -> Result<ManualMergeOutcome, RunError> {
        let Some(workspace) = task.workspace.clone() else {
            return Ok(refused(
                format!("{} was not worked on in a worktree of its own", task.id),
                "what was done in place is in your own tree; commit it there",
            ));
        };
        match self.take_turn(PATIENCE) {
            Ok(true) => {}
            Ok(false) => return Ok(ManualMergeOutcome::Cancelled),
            Err(why) => {
                return Ok(refused(why, "wait until it is merged; if its process was stopped, continue or end it"));
            }
        }
        let now = self.task(task.id)?;
        let done = match now {
            Some(now) if now.change.as_ref().is_some_and(|change| change.merged.is_some()) => {
                Ok(ManualMergeOutcome::Already)
            }
            Some(now) if now.state == task.state && now.workspace == task.workspace => {
                let wish = Wish { task: &now, workspace: &workspace, checks, submitted: submitted.as_deref() };
                match self.merge_in_turn(&wish) {
                    Ok(seal) => Ok(ManualMergeOutcome::Merged(seal)),
                    Err(EarlyEnd::Outcome(told))
                        if matches!(*told, ManualMergeOutcome::Refused { .. }) && self.control.is_cancelled() =>
                    {
                        Ok(ManualMergeOutcome::Cancelled)
                    }
                    Err(EarlyEnd::Outcome(told)) => Ok(*told),
                    Err(EarlyEnd::Failed(error)) => Err(error),
                }
            }
            _ => Ok(refused(format!("{} has changed while this waited", task.id), "look at it, and ask again")),
        };
        if !matches!(done, Ok(ManualMergeOutcome::Merged(_))) {
            self.end_turn();
        }
        done
    }

    /// Releases the merge lock.
    pub fn end_turn(&mut self) {
        self.merging = None;
    }

    fn merge_in_turn(&mut self, wish: &Wish<'_>) -> Result<MergeSeal, EarlyEnd> {
        if let Some(seal) = self.find_merged_on_forge(wish)? {
            return Ok(seal);
        }
        let base = self.with_git(|git| self.base(git))?;
        if let Some(landed) = self.with_git(|git| landed(git, &base, wish.task, wish.submitted))? {
            return Ok(MergeSeal::landed(&base, landed));
        }
        self.refuse_stacked(wish.workspace, &base)?;
        if let Some(why) = &base.stale {
            let cause = format!("cannot tell where {} is now: {why}", base.branch);
            let hint =
                "nothing is merged without having seen the newest base; ask again when the remote can be reached";
            return Err(refused(cause, hint).into());
        }
        self.reopen(wish.task)?;
        let (head, rebased) = self.bring_by_hand(wish, &base)?;
        // Work that was rebased earlier and did not pass is no better now.
        let CheckReport { passed, unasked } = match wish.submitted == Some(head.as_str()) {
            true => CheckReport::default(),
            false => self.check_again(wish, &base, &head)?,
        };
        let (commit, already) = self.merge_ready(wish, &base, &head)?;
        Ok(MergeSeal { commit, base: base.shown(), already, seen: None, rebased, checks: passed, unasked })
    }

    /// Rebases the work onto a base if it is not on top of it. Returns its last commit, and whether it has moved.
    fn bring_by_hand(&self, wish: &Wish<'_>, base: &Base) -> Result<(Commit, bool), EarlyEnd> {
        self.with_git(|git| {
            let branch = Branch::new(&wish.workspace.branch)?;
            let own = git.tip(&branch)?.ok_or_else(|| Error::UnknownCommit { commit: branch.to_string() })?;
            if git.work(&branch, &base.commit)?.commits == 0 {
                return Err(nothing_left(wish, base).into());
            }
            let start = beginning(wish.workspace)?;
            let moved = match git.rebase_after(&self.worktree(wish.workspace)?, start.as_ref(), &base.commit)? {
                Rebased::Conflict { files, why } => {
                    let files = listed(files.iter().map(|file| file.display()));
                    return Err(ManualMergeOutcome::Conflicts { base: base.shown(), files, why }.into());
                }
                Rebased::Done { .. } => true,
                Rebased::UpToDate => false,
            };
            let tip = git.tip(&branch)?.unwrap_or_else(|| own.clone());
            // The base already had all of it.
            if tip == base.commit {
                return Err(ManualMergeOutcome::Merged(MergeSeal::landed(base, scattered(base, &own))).into());
            }
            Ok((tip, moved))
        })
    }

    /// Refuses work that is stacked on unmerged work of others.
    fn refuse_stacked(&self, workspace: &Workspace, base: &Base) -> Result<(), EarlyEnd> {
        let below = self.below(workspace)?;
        self.with_git(|git| match first_unmerged(git, workspace, &below, &base.commit)? {
            Some(below) => Err(refused(below.in_words(), below.hint(workspace, &base.shown())).into()),
            None => Ok(()),
        })
    }

    /// Merges work on top of the newest base. Returns its commit in the base, and whether it was there already.
    fn merge_ready(&mut self, wish: &Wish<'_>, base: &Base, head: &Commit) -> Result<(String, bool), EarlyEnd> {
        let moved = || refused("the base or the branch has moved meanwhile", "ask again");
        let offer = match self.with_git(|git| self.offer(git, Some(wish.task), wish.workspace, Some(head))) {
            Err(Error::Moved { .. }) => return Err(moved().into()),
            offer => offer?,
        };
        let ready = Ready { base: base.clone(), head: offer.head, address: offer.address };
        if let Some((site, number)) =
            self.place(wish.task, ready.address.as_deref()).map_err(|error| by_forge(&error))?
        {
            let report = self.merge_on_forge(Instant::now() + FORGE, site, number, &ready);
            // A person may have merged it there meanwhile, with or without its last commits.
            if report.outcome == HookOutcome::Again
                && let Some(seal) = self.find_merged_on_forge(wish)?
            {
                return Ok((seal.commit, true));
            }
            return match (report.outcome, report.change) {
                (_, Some(ChangeFact::Merged(commit))) => Ok((commit, false)),
                (HookOutcome::Cancelled, _) => Err(ManualMergeOutcome::Cancelled.into()),
                (outcome, _) => {
                    let cause = report.message.unwrap_or_else(|| "the forge does not want to".to_owned());
                    let is_behind = outcome == HookOutcome::Again;
                    let hint = if is_behind { "ask again" } else { "see to it on the forge, and ask again" };
                    Err(refused(cause, hint).into())
                }
            };
        }
        match self.land(Some(wish.task), &ready, IfCheckedOut::FastForward) {
            Ok(Merged::Now { commit }) => Ok((commit.to_string(), false)),
            Ok(Merged::Already { commit }) => Ok((commit.to_string(), true)),
            Err(Error::Moved { .. } | Error::Stale { .. }) => Err(moved().into()),
            Err(error @ Error::Dirty { .. }) => {
                let hint = format!(
                    "commit or stash that, or switch the tree to another branch, and ask again; {} is not changed",
                    base.branch
                );
                Err(refused(error.to_string(), hint).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the checks of the work that are no steps of git, in a fresh checkout of the commit to merge.
    fn check_again(&mut self, wish: &Wish<'_>, base: &Base, head: &Commit) -> Result<CheckReport, EarlyEnd> {
        if wish.checks == MergeChecks::Skip {
            return Ok(CheckReport::default());
        }
        let checkout = self.check_out_for_gate(wish.workspace, head.clone())?;
        let above = std::mem::replace(&mut self.settings.directory, checkout);
        let checked = self.run_checks(wish.task, base);
        self.settings.directory = above;
        self.close_gate();
        checked
    }

    fn run_checks(&mut self, task: &Task, base: &Base) -> Result<CheckReport, EarlyEnd> {
        self.changed = None;
        let (checks, mut unasked) = self.checks_of(task)?;
        let mut passed = Vec::new();
        for planned in checks {
            let name = planned.hook.hook.clone();
            let effect = self.trial(task, &planned);
            if !self.is_wanted(&effect, &planned)? {
                unasked.extend(Some(name).filter(|_| asks_about_turn(&planned)));
                continue;
            }
            let report = self.run_hook(&effect)?.report;
            let (message, feedback, unstarted) = (Some(""), report.feedback.as_deref(), report.unstarted);
            match Broken::by(&planned.hook, &HookEnd { outcome: report.outcome, message, feedback, unstarted }) {
                _ if report.outcome == HookOutcome::Cancelled => return Err(ManualMergeOutcome::Cancelled.into()),
                None if report.outcome == HookOutcome::Skip => {}
                None => passed.push(name),
                Some(broken) => {
                    let (base, hook, report) = (base.shown(), name, Box::new(report));
                    let is_late = report.outcome == HookOutcome::TimedOut;
                    let is_unjudged = broken.why == Why::Escalated || broken.unstarted || is_late;
                    let told = match is_unjudged {
                        true => ManualMergeOutcome::Unjudged { base, hook, report },
                        false => ManualMergeOutcome::Unfit { base, hook, report },
                    };
                    return Err(told.into());
                }
            }
        }
        Ok(CheckReport { passed, unasked })
    }

    /// Returns the checks of a merge by hand: the stop hooks that need no turn, and the hooks of `before_submit`. Returns also the
    /// names of the other stop hooks, and of the first judge of turns.
    fn checks_of(&self, task: &Task) -> Result<(Vec<PlannedHook>, Vec<String>), RunError> {
        let Some(effects) = &self.settings.rules.effects else { return Ok(Default::default()) };
        let session = self.last_turn_on(task)?.and_then(|(session, _)| session);
        let snapshot = self.store.snapshot()?;
        let session = session.map(|name| snapshot.session(&name)).transpose()?.flatten();
        let agent = session.as_ref().map(|session| session.agent.as_str());
        let planned_at = |event| {
            let planned = effects.hooks.get(&event).into_iter().flat_map(|hooks| hooks.iter());
            planned.filter(move |planned| effects.is_for(planned, Some(task), agent)).cloned()
        };
        let is_check = |planned: &PlannedHook| {
            let hook = (self.settings.hooks)(&planned.hook.hook);
            let reviews = hook.is_some_and(|hook| matches!(hook.kind, RunnableKind::Step(DeliveryStep::Review(_))));
            planned.hook.class != HookClass::Vcs && !reviews
        };
        let stop_hooks = planned_at(EventType::TurnFinished).filter(|planned| planned.hook.point.is_stop());
        let (mut checks, others): (Vec<_>, Vec<_>) = stop_hooks.partition(|planned| self.needs_no_turn(planned));
        checks.extend(planned_at(EventType::SubmissionStarted).filter(is_check));
        let unasked = others.into_iter().map(|planned| planned.hook.hook);
        Ok((checks, effects.first_judge(Some(task)).map(str::to_owned).into_iter().chain(unasked).collect()))
    }

    /// Returns whether a stop hook can run without a turn: it is a command, or the tests.
    fn needs_no_turn(&self, planned: &PlannedHook) -> bool {
        let hook = (self.settings.hooks)(&planned.hook.hook);
        hook.is_some_and(|hook| {
            matches!(hook.kind, RunnableKind::Command(_) | RunnableKind::Step(DeliveryStep::RunTests))
        })
    }

    /// Builds the effect of a hook that a person runs: it belongs to no session, and its report is shown but not recorded.
    fn trial(&self, task: &Task, planned: &PlannedHook) -> PendingEffect {
        let opened = task.change.as_ref().map_or(task.version, |change| change.opened);
        PendingEffect {
            id: EffectId { seq: opened, index: TRIAL_INDEX },
            kind: EffectKind::Hook(planned.hook.clone()),
            config: ConfigDigest::of(self.settings.rules.effects.as_ref().map_or(&[], |rules| rules.config.as_bytes())),
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
    fn is_wanted(&self, effect: &PendingEffect, planned: &PlannedHook) -> Result<bool, RunError> {
        let Some(when) = &planned.when else { return Ok(true) };
        let subject: HookSubject = self.subject(effect)?;
        Ok(when.holds(&subject.values(&planned.hook, &self.settings.project)).unwrap_or(true))
    }

    /// Returns the merge that the forge has already made. Refuses a change that it has closed, or merged without the last commits.
    fn find_merged_on_forge(&self, wish: &Wish<'_>) -> Result<Option<MergeSeal>, EarlyEnd> {
        let Wish { task, workspace, .. } = wish;
        let Some(change) = self.on_forge(task).transpose()? else { return Ok(None) };
        let commit = match &change.state {
            State::Open => return Ok(None),
            State::Merged { commit } => commit.clone(),
            State::Closed => {
                let cause = format!("{} was closed without having been merged", change.url);
                return Err(refused(cause, "reopen it there, or leave the work: the branch stays").into());
            }
        };
        let base = self.with_git(|git| self.base(git))?;
        let Some(left_out) = self.left_out(workspace, &base, &change)? else {
            return Ok(Some(MergeSeal::found(workspace.base.clone(), commit, None)));
        };
        let (id, place) = (task.id, format!(".windlass/worktrees/{}", workspace.name));
        let take_up = match task.state {
            TaskState::Blocked => format!("windlass answer {id} continue"),
            _ => format!("windlass task reopen {id} --force --reason 'commits were left out'"),
        };
        let hint = format!(
            "`{take_up}` has the next run open another change for them; `git -C {place} reset --hard {}` gives them up",
            base.shown()
        );
        Err(refused(left_out, hint).into())
    }

    /// Returns the change of a task on its forge, if it is on one.
    pub fn on_forge(&self, task: &Task) -> Option<Result<Change, WorkspaceProblem>> {
        let address = self.with_git(|git| {
            let base = self.base(git)?;
            base.remote.as_ref().map(|remote| git.address(remote)).transpose()
        });
        let address = match address {
            Ok(address) => address,
            Err(error) => return task.change.as_ref()?.at.number.map(|_| Err(WorkspaceProblem::of(&error))),
        };
        let words = |error: &ForgeError| WorkspaceProblem { cause: with_causes(error), hint: Some(error.hint()) };
        match self.place(task, address.as_deref()) {
            Ok(None) => None,
            Err(error) => Some(Err(words(&error))),
            Ok(Some((site, number))) => {
                Some(self.forge(site).and_then(|forge| forge.look(number)).map_err(|error| words(&error)))
            }
        }
    }

    /// Returns the forge and the number of a task's change.
    pub(super) fn place(&self, task: &Task, address: Option<&str>) -> Result<Option<(Site, u64)>, ForgeError> {
        let number = task.change.as_ref().and_then(|change| change.at.number);
        let (Some(address), Some(number)) = (address, number) else { return Ok(None) };
        Ok(Site::of(address, &self.settings.delivery.forge)?.map(|site| (site, number)))
    }

    /// Commits the changes in the worktree of a task. Returns the base, and how much its branch adds to it.
    pub fn gather(&self, task: &Task) -> Result<Result<Option<(String, u32)>, Error>, RunError> {
        let Some(workspace) = &task.workspace else { return Ok(Ok(None)) };
        let below = self.below(workspace)?;
        Ok(self.with_git(|git| {
            let worktree = self.worktree(workspace)?;
            if worktree.path.join(".git").exists() {
                git.commit_all(&worktree, &commit_message(task))?;
            }
            if git.tip(&worktree.branch)?.is_none() {
                return Ok(None);
            }
            let base = own_base(git, workspace, &below, &self.base(git)?.commit)?;
            Ok(Some((workspace.base.clone(), git.work(&worktree.branch, &base)?.done())))
        }))
    }
}

/// Returns whether the condition of a stop hook uses values that exist only in a session.
fn asks_about_turn(planned: &PlannedHook) -> bool {
    let asks = |when: &Condition| OF_A_SESSION.iter().any(|name| when.uses(name));
    planned.hook.point.is_stop() && planned.when.as_ref().is_some_and(asks)
}

fn by_forge(error: &ForgeError) -> ManualMergeOutcome {
    refused(error.to_string(), error.hint())
}
