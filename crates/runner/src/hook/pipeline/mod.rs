//! Built-in delivery hooks, between done and accepted.
//!
//! Invariant: each hook looks at the state before it changes it, so another run changes nothing twice.
//!
//! Not here: when they run and what follows (`engine`), calls of git and forges (`vcs`).

mod change;
mod manual_merge;
mod merge;
mod review;
mod run_tests;

use windlass_engine::{HookOutcome, HookReport, Session, Workspace};
use windlass_hooks::{DeliveryStep, clean};
use windlass_vcs::git::{Branch, Error, Git, Rebased};

pub use manual_merge::{ManualMergeOutcome, MergeChecks, MergeSeal};

use super::{HookAttempt, HookRun, HookSubject};
use crate::refresh::conflict_feedback;
use crate::stacked_branches::{LowerTask, beginning, first_unmerged};
use crate::wording::report;
use crate::workspace_problem::explained;
use crate::{EffectRunner, RunError};

/// Result of a delivery step.
pub(super) type Ended = Result<HookReport, Error>;

impl EffectRunner<'_> {
    pub(super) fn step(&mut self, run: &HookRun<'_>, step: &DeliveryStep) -> Result<HookAttempt, RunError> {
        let Some((session, workspace)) = at_work(run) else {
            return match step {
                DeliveryStep::RunTests => self.run_tests(run),
                _ => Ok(report(HookOutcome::Skip, "the work was done in place").into()),
            };
        };
        let ended = match step {
            DeliveryStep::RunTests => return self.run_tests(run),
            DeliveryStep::Review(briefs) => self.review(run, session, workspace, briefs)?,
            _ if session.report => return Ok(report(HookOutcome::Skip, "a report has no change").into()),
            DeliveryStep::RebaseOnMain => self.rebase_on_main(workspace, &self.below(workspace)?),
            DeliveryStep::CreatePr => self.create_pr(run, session, workspace)?,
            DeliveryStep::MergePr => self.merge_pr(run, session, workspace)?,
        };
        let moved = matches!(&ended, Ok(report) if matches!(
            (step, report.outcome),
            (DeliveryStep::RebaseOnMain, HookOutcome::Success) | (DeliveryStep::MergePr, HookOutcome::Again)
        ));
        let mut report = ended.unwrap_or_else(|error| self.troubled(&error));
        if moved {
            // The same work, on another base.
            report.head = self.tip_of(workspace);
        }
        Ok(HookAttempt { report, retry_after: None, response: None })
    }

    /// Returns the last commit of the work. An unknown commit counts as other work than before.
    fn tip_of(&self, workspace: &Workspace) -> Option<String> {
        let tip = self.with_git(|git| git.tip(&Branch::new(&workspace.branch)?));
        tip.ok().flatten().map(|commit| commit.to_string())
    }

    /// Turns a failure of git into a report. The agent has to mend only failures about its own files.
    pub(super) fn troubled(&self, error: &Error) -> HookReport {
        let said = explained(error);
        match error {
            Error::Cancelled { .. } => HookOutcome::Cancelled.into(),
            _ if self.control.is_cancelled() => HookOutcome::Cancelled.into(),
            Error::Unfinished { .. } | Error::Markers { .. } | Error::Strayed { .. } | Error::Dirty { .. } => {
                HookReport { feedback: Some(said.clone()), ..report(HookOutcome::Block, said) }
            }
            // The server has looked at the work, and its reason is for the agent.
            Error::Rejected { remote, branch, why } => {
                let message = format!("{remote} does not take {branch}: {}", clean(why));
                let feedback = format!(
                    "The server {remote} does not take the work: it refuses the branch {branch}.\n\nIt says:\n{}\n\n\
                     Mend what it names, and commit. Where it is about something in an earlier commit of this branch, \
                     take it out of that commit too.",
                    clean(why)
                );
                HookReport { feedback: Some(feedback), ..report(HookOutcome::Block, message) }
            }
            // Only a person knows what to do with it.
            Error::Foreign { .. } => report(HookOutcome::Escalate, said),
            Error::TimedOut { .. } => report(HookOutcome::TimedOut, said),
            // The current commit is not the judged one.
            Error::Moved { .. } => report(HookOutcome::Again, said),
            _ => report(HookOutcome::Failure, said),
        }
    }

    /// Rebases the work onto the newest base.
    fn rebase_on_main(&self, workspace: &Workspace, below: &[LowerTask]) -> Ended {
        self.with_git(|git| {
            let base = self.recent_base(git)?;
            if let Some(below) = first_unmerged(git, workspace, below, &base.commit)? {
                return Ok(report(HookOutcome::Skip, below.in_words()));
            }
            self.bring_onto(git, workspace, &base).map(|brought| match brought {
                Onto::There => report(HookOutcome::Skip, format!("it is on top of {} already", base.branch)),
                Onto::Now => {
                    report(HookOutcome::Success, format!("rebased onto {} ({})", base.branch, base.commit.short()))
                }
                Onto::Conflict(conflict) => *conflict,
            })
        })
    }

    fn bring_onto(&self, git: &Git<'_>, workspace: &Workspace, base: &windlass_vcs::git::Base) -> Result<Onto, Error> {
        let worktree = self.worktree(workspace)?;
        Ok(match git.rebase_after(&worktree, beginning(workspace)?.as_ref(), &base.commit)? {
            Rebased::UpToDate => Onto::There,
            Rebased::Done { .. } => Onto::Now,
            Rebased::Conflict { files, why } => {
                let feedback = conflict_feedback(git, &worktree, base, &files, &why)?;
                let message = format!("conflicts with {} in {}", base.shown(), count(files.len()));
                Onto::Conflict(Box::new(HookReport { feedback: Some(feedback), ..report(HookOutcome::Block, message) }))
            }
        })
    }
}

/// Outcome of a rebase onto a base.
enum Onto {
    There,
    Now,
    Conflict(Box<HookReport>),
}

/// Returns the session and the worktree of a step.
fn at_work<'r>(run: &'r HookRun<'_>) -> Option<(&'r Session, &'r Workspace)> {
    let session = run.subject.session.as_ref()?;
    Some((session, session.workspace.as_ref()?))
}

fn count(files: usize) -> String {
    if files == 1 { "one file".to_owned() } else { format!("{files} files") }
}
