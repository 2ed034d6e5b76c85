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
use windlass_hooks::{DeliveryStep, clean_output};
use windlass_vcs::git::{BranchName, BranchRebaseOutcome, Error, GitClient};

pub use manual_merge::{ManualMergeOutcome, MergeChecks, MergeProof};

use super::{HookAttempt, HookRun, HookSubject};
use crate::refresh::conflict_feedback;
use crate::stacked_branches::{ParentStackTask, first_unmerged, own_work_start};
use crate::wording::report_with_message;
use crate::workspace_problem::explain_git_error;
use crate::{EffectRunner, RunError};

/// Result of a delivery step.
pub(super) type DeliveryStepResult = Result<HookReport, Error>;

impl EffectRunner<'_> {
    pub(super) fn run_delivery_step(
        &mut self,
        run: &HookRun<'_>,
        step: &DeliveryStep,
    ) -> Result<HookAttempt, RunError> {
        let Some((session, workspace)) = session_and_worktree(run) else {
            return match step {
                DeliveryStep::RunTests => self.run_tests_step(run),
                _ => Ok(report_with_message(HookOutcome::Skip, "the work was done in place").into()),
            };
        };
        let ended = match step {
            DeliveryStep::RunTests => return self.run_tests_step(run),
            DeliveryStep::Review(briefs) => self.review_change(run, session, workspace, briefs)?,
            _ if session.report => return Ok(report_with_message(HookOutcome::Skip, "a report has no change").into()),
            DeliveryStep::RebaseOnMain => self.rebase_on_base(workspace, &self.load_lower_tasks(workspace)?),
            DeliveryStep::CreatePr => self.open_change(run, session, workspace)?,
            DeliveryStep::MergePr => self.merge_change(run, session, workspace)?,
        };
        let moved = matches!(&ended, Ok(report) if matches!(
            (step, report.outcome),
            (DeliveryStep::RebaseOnMain, HookOutcome::Success) | (DeliveryStep::MergePr, HookOutcome::Again)
        ));
        let mut report = ended.unwrap_or_else(|error| self.git_failure_report(&error));
        if moved {
            // The same work, on another base.
            report.head = self.branch_tip(workspace);
        }
        Ok(HookAttempt { report, retry_after: None, response: None })
    }

    /// Returns the last commit of the work. An unknown commit counts as other work than before.
    fn branch_tip(&self, workspace: &Workspace) -> Option<String> {
        let tip = self.with_git(|git| git.branch_tip(&BranchName::new(&workspace.branch)?));
        tip.ok().flatten().map(|commit| commit.to_string())
    }

    /// Turns a failure of git into a report. The agent has to fix only failures about its own files.
    pub(super) fn git_failure_report(&self, error: &Error) -> HookReport {
        let said = explain_git_error(error);
        match error {
            Error::Cancelled { .. } => HookOutcome::Cancelled.into(),
            _ if self.control.is_cancelled() => HookOutcome::Cancelled.into(),
            Error::Unfinished { .. } | Error::Markers { .. } | Error::Strayed { .. } | Error::Dirty { .. } => {
                HookReport { feedback: Some(said.clone()), ..report_with_message(HookOutcome::Block, said) }
            }
            // The server has looked at the work, and its reason is for the agent.
            Error::Rejected { remote, branch, why } => {
                let message = format!("{remote} refuses {branch}: {}", clean_output(why));
                let feedback = format!(
                    "The server {remote} refuses the branch {branch}.\n\nIt says:\n{}\n\n\
                     Fix what it names, and commit. If it names something in an earlier commit of this branch, \
                     remove it from that commit too.",
                    clean_output(why)
                );
                HookReport { feedback: Some(feedback), ..report_with_message(HookOutcome::Block, message) }
            }
            // Only a person knows what to do with it.
            Error::Foreign { .. } => report_with_message(HookOutcome::Escalate, said),
            Error::TimedOut { .. } => report_with_message(HookOutcome::TimedOut, said),
            // The current commit is not the judged one.
            Error::Moved { .. } => report_with_message(HookOutcome::Again, said),
            _ => report_with_message(HookOutcome::Failure, said),
        }
    }

    /// Rebases the work onto the newest base.
    fn rebase_on_base(&self, workspace: &Workspace, below: &[ParentStackTask]) -> DeliveryStepResult {
        self.with_git(|git| {
            let base = self.recent_base(git)?;
            if let Some(below) = first_unmerged(git, workspace, below, &base.commit)? {
                return Ok(report_with_message(HookOutcome::Skip, below.describe_state()));
            }
            self.rebase_work_onto(git, workspace, &base).map(|brought| match brought {
                RebaseOutcome::UpToDate => {
                    report_with_message(HookOutcome::Skip, format!("it is on top of {} already", base.branch))
                }
                RebaseOutcome::Rebased => report_with_message(
                    HookOutcome::Success,
                    format!("rebased onto {} ({})", base.branch, base.commit.short_id()),
                ),
                RebaseOutcome::Conflict(conflict) => *conflict,
            })
        })
    }

    fn rebase_work_onto(
        &self,
        git: &GitClient<'_>,
        workspace: &Workspace,
        base: &windlass_vcs::git::BaseBranch,
    ) -> Result<RebaseOutcome, Error> {
        let worktree = self.task_worktree(workspace)?;
        Ok(match git.rebase_after(&worktree, own_work_start(workspace)?.as_ref(), &base.commit)? {
            BranchRebaseOutcome::UpToDate => RebaseOutcome::UpToDate,
            BranchRebaseOutcome::Done { .. } => RebaseOutcome::Rebased,
            BranchRebaseOutcome::Conflict { files, why } => {
                let feedback = conflict_feedback(git, &worktree, base, &files, &why)?;
                let message = format!("conflicts with {} in {}", base.display_name(), count_files(files.len()));
                RebaseOutcome::Conflict(Box::new(HookReport {
                    feedback: Some(feedback),
                    ..report_with_message(HookOutcome::Block, message)
                }))
            }
        })
    }
}

/// Outcome of a rebase onto a base.
enum RebaseOutcome {
    UpToDate,
    Rebased,
    Conflict(Box<HookReport>),
}

/// Returns the session and the worktree of a step.
fn session_and_worktree<'r>(run: &'r HookRun<'_>) -> Option<(&'r Session, &'r Workspace)> {
    let session = run.subject.session.as_ref()?;
    Some((session, session.workspace.as_ref()?))
}

fn count_files(files: usize) -> String {
    if files == 1 { "one file".to_owned() } else { format!("{files} files") }
}
