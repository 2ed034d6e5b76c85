//! Reviews by gatekeepers: agents that judge a change before it is merged.
//!
//! ```text
//! approved before? ── no ──► own checkout ─► prompt ─── invalid answer ──► second prompt ─── invalid again ─────┐
//!        │ yes                                        │ approved                                               │
//!        ▼                                            ▼                                                        ▼
//!    next brief ◄─────────────────────────────── next brief        not approved: back to the next agent or person
//! ```
//!
//! Invariants:
//! - A gatekeeper that cannot answer has rejected nothing: the hook fails.
//! - An approval holds for these lines, under this configuration, and for nothing else.
//! - No checkout outlives its question. The next question removes one that a crash has left.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use windlass_agents::TurnEnd;
use windlass_engine::{
    AgentUsage, ChangeApproval, Digest, HookOutcome, HookReport, ReviewAnswerError, ReviewJudgement, ReviewRequest,
    Session, Task, Workspace, duration_in_words,
};
use windlass_hooks::{clean_output, excerpt_text};
use windlass_vcs::git::{BranchName, CheckoutAccess, DiffText, GitClient, GitCommitId};

use super::DeliveryStepResult;
use crate::consultation::AgentConsultation;
use crate::hook::HookRun;
use crate::stacked_branches::{ParentStackTask, own_work_base};
use crate::wording::report_with_message;
use crate::{EffectRunner, RunError};

/// Maximum size of a diff in a prompt.
const MAX_DIFF_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of commit subjects in a prompt.
const MAX_COMMIT_SUBJECTS: usize = 100;
/// Maximum size of a recorded summary, beside the feedback to the agent.
const MAX_SUMMARY_BYTES: usize = 1024;

/// The change or report under review.
struct ReviewCase {
    head: GitCommitId,
    patch: Digest,
    commits: Vec<String>,
    diff: DiffText,
    /// Report of the task, if there is no change to judge.
    report: Option<String>,
}

impl ReviewCase {
    /// Returns the case for the report of a task, without a change.
    fn for_task_report(self, task: Option<&Task>) -> Self {
        let report = task.and_then(|task| task.claim.as_ref()?.result.clone()).unwrap_or_default();
        let diff = DiffText { text: String::new(), cut: false };
        Self { patch: Digest::of_bytes(report.as_bytes()), commits: Vec::new(), diff, report: Some(report), ..self }
    }
}

/// Results of a review so far.
struct ReviewProgress {
    approved: ChangeApproval,
    messages: Vec<String>,
    reviews: Vec<Value>,
    used: AgentUsage,
    record: Option<String>,
    began: Instant,
}

impl ReviewProgress {
    /// Adds the results so far to a report.
    fn into_report(self, outcome: HookReport) -> HookReport {
        let used = if self.used.is_nothing() { String::new() } else { format!(" ({})", self.used) };
        let context = [("reviews".to_owned(), self.reviews.into())].into_iter().collect();
        HookReport {
            message: outcome.message.map(|message| message + &used),
            approved: Some(self.approved),
            used: self.used,
            took: Some(self.began.elapsed()),
            record: self.record,
            context,
            ..outcome
        }
    }
}

/// A question to a gatekeeper: the brief, and its index among those of the hook.
struct ReviewQuestion<'a> {
    run: &'a HookRun<'a>,
    session: &'a Session,
    case: &'a ReviewCase,
    index: usize,
    brief: &'a str,
}

impl ReviewQuestion<'_> {
    fn reviewed_task(&self) -> Option<&Task> {
        self.run.subject.task.as_ref()
    }
}

impl EffectRunner<'_> {
    pub(super) fn review_change(
        &mut self,
        run: &HookRun<'_>,
        session: &Session,
        workspace: &Workspace,
        briefs: &[String],
    ) -> Result<DeliveryStepResult, RunError> {
        let below = self.load_lower_tasks(workspace)?;
        let case = match self.with_git(|git| self.load_review_case(git, workspace, &below)) {
            Ok(case) if session.report => case.for_task_report(run.subject.task.as_ref()),
            Ok(case) => case,
            Err(error) => return Ok(Err(error)),
        };
        let patch = case.patch.chain_with(session.config);
        let before = run.subject.task.as_ref().and_then(|task| task.approved.clone());
        let before = before.filter(|before| before.patch == patch).map(|before| before.briefs).unwrap_or_default();
        let approved = ChangeApproval { patch, briefs: before };
        let (messages, reviews) = (Vec::new(), Vec::new());
        let mut sum = ReviewProgress {
            approved,
            messages,
            reviews,
            used: AgentUsage::default(),
            record: None,
            began: Instant::now(),
        };
        for (index, brief) in briefs.iter().enumerate() {
            if sum.approved.briefs.contains(brief) {
                sum.messages.push(format!("{brief}: approved earlier, unchanged since"));
                continue;
            }
            let asking = ReviewQuestion { run, session, case: &case, index, brief };
            if let Some(end) = self.ask_gatekeeper(&asking, &mut sum)? {
                return Ok(Ok(sum.into_report(end)));
            }
        }
        let messages = sum.messages.join("; ");
        Ok(Ok(sum.into_report(report_with_message(HookOutcome::Success, messages))))
    }

    /// Reads the change to review.
    fn load_review_case(
        &self,
        git: &GitClient<'_>,
        workspace: &Workspace,
        below: &[ParentStackTask],
    ) -> Result<ReviewCase, windlass_vcs::git::Error> {
        let base = own_work_base(git, workspace, below, &self.last_known_base(git)?.commit)?;
        let branch = BranchName::new(&workspace.branch)?;
        let work = git.read_branch_work(&branch, &base)?;
        Ok(ReviewCase {
            patch: git.patch_id(&work.merge_base, &work.head)?,
            commits: git.commit_subjects(&base, &work.head, MAX_COMMIT_SUBJECTS)?,
            diff: git.diff_commits(&work.merge_base, &work.head, MAX_DIFF_BYTES)?,
            head: work.head,
            report: None,
        })
    }

    /// Lets one gatekeeper judge by one brief. Returns the report of the hook if the review ends with it.
    fn ask_gatekeeper(
        &mut self,
        asking: &ReviewQuestion<'_>,
        sum: &mut ReviewProgress,
    ) -> Result<Option<HookReport>, RunError> {
        let brief = asking.brief;
        let gatekeepers = &self.settings.delivery.gatekeepers;
        // An agent that has only resumed a stalled review has not done the work.
        let author =
            asking.reviewed_task().and_then(|task| task.stalled.as_ref()).map(|stalled| stalled.agent.as_str());
        let author = author.unwrap_or(&asking.session.agent);
        let Some(agent) = gatekeepers.pick_gatekeeper(asking.reviewed_task(), author, asking.index).cloned() else {
            let said =
                format!("no gatekeeper may judge it ({brief}); name an agent under `agents.gatekeeper` of its type");
            return Ok(Some(report_with_message(HookOutcome::Failure, said)));
        };
        let (text, silence) =
            (gatekeepers.brief_text(brief).to_owned(), gatekeepers.idle_timeout.filter(|_| agent.streams_output()));
        let path = self.review_checkout_path(asking);
        let checkout = match self.with_git(|git| git.check_out(&path, &asking.case.head, CheckoutAccess::Read)) {
            Ok(checkout) => checkout,
            Err(error) => return Ok(Some(self.git_failure_report(&error))),
        };
        let review = ReviewRequest {
            name: brief,
            brief: &text,
            task: asking.reviewed_task(),
            commits: &asking.case.commits,
            diff: &asking.case.diff.text,
            is_truncated: asking.case.diff.cut,
            report: asking.case.report.as_deref(),
        };
        let file = self.settings.records.join(format!("{}.review-{}", asking.run.effect, asking.index + 1));
        let (time, task) = (asking.run.hook.timeout, asking.reviewed_task().map(|task| task.id));
        let mut with = self.prepare_consultation(&agent, (&checkout.path, file), (time, silence), task);
        let answered = self.ask_for_judgement(&review, &mut with, sum);
        with.close_agent();
        // A checkout that stays now is removed before the next one is made.
        let _ = self.with_git(|git| git.remove_detached(checkout));
        let judgement = match answered? {
            Ok(judgement) => judgement,
            Err(end) => return Ok(Some(unanswered_report(&agent.name, brief, end, asking.run))),
        };
        sum.reviews.push(json!({
            "brief": brief,
            "agent": agent.name,
            "approved": judgement.approved,
            "summary": excerpt_text(&judgement.summary, MAX_SUMMARY_BYTES),
            "findings": judgement.findings.len(),
        }));
        if !judgement.approved {
            let said = format!("`{}` does not approve ({brief}): {}", agent.name, judgement.summary.trim());
            let feedback = Some(judgement.render_feedback(brief));
            return Ok(Some(HookReport { feedback, ..report_with_message(HookOutcome::Block, said) }));
        }
        sum.approved.briefs.push(brief.to_owned());
        sum.messages.push(format!("{brief}: approved by `{}`", agent.name));
        Ok(None)
    }

    /// Returns the checkout path of a gatekeeper.
    fn review_checkout_path(&self, asking: &ReviewQuestion<'_>) -> PathBuf {
        let task =
            asking.reviewed_task().map_or_else(|| "work".to_owned(), |task| task.id.to_string().to_ascii_lowercase());
        self.settings.delivery.checkouts.join(format!("review-{task}"))
    }

    /// Prompts the gatekeeper, and once more after an invalid answer.
    fn ask_for_judgement(
        &mut self,
        review: &ReviewRequest<'_>,
        with: &mut AgentConsultation<'_>,
        sum: &mut ReviewProgress,
    ) -> Result<Result<ReviewJudgement, TurnEnd>, RunError> {
        let mut asked_so_far = String::new();
        let mut unfit_answer: Option<(ReviewAnswerError, String)> = None;
        loop {
            let mut prompt = String::new();
            let asked = self.prompt_consultant(with, &mut |remembers| {
                prompt = match &unfit_answer {
                    None => review.render_question(),
                    Some((unfit, said)) => review.render_repeated_question(unfit, said, remembers),
                };
                prompt.clone()
            })?;
            asked_so_far.push_str(&prompt);
            sum.used = sum.used.saturating_add(asked.usage);
            sum.record = asked.record.or(sum.record.take());
            let said = match asked.end {
                TurnEnd::Answered(said) => self.settings.mask.mask_excerpt(&clean_output(&said)).into_owned(),
                end => return Ok(Err(end)),
            };
            let unfit = match ReviewJudgement::parse_answer(&said, &asked_so_far) {
                Ok(judgement) => return Ok(Ok(judgement)),
                Err(unfit) => unfit,
            };
            if unfit_answer.is_some() {
                let summary =
                    format!("the gatekeeper gave no valid answer, twice, so the work is not approved: {unfit}");
                return Ok(Ok(ReviewJudgement { approved: false, summary, findings: Vec::new() }));
            }
            unfit_answer = Some((unfit, said));
        }
    }
}

/// Reports a gatekeeper that gave no answer.
fn unanswered_report(agent: &str, brief: &str, end: TurnEnd, run: &HookRun<'_>) -> HookReport {
    let because = |why: &str| format!("`{agent}` could not judge it ({brief}): {why}");
    match end {
        TurnEnd::Cancelled => HookOutcome::Cancelled.into(),
        TurnEnd::TimedOut => {
            let time = duration_in_words(run.hook.timeout);
            report_with_message(
                HookOutcome::TimedOut,
                because(&format!("it took longer than {time}; raise its `timeout`")),
            )
        }
        TurnEnd::AccessDenied { said, remedy } => {
            let said = because(&format!("{said}; {remedy}"));
            HookReport { unstarted: true, ..report_with_message(HookOutcome::Failure, said) }
        }
        TurnEnd::Broken(said) | TurnEnd::NoConversation(said) => {
            HookReport { unstarted: true, ..report_with_message(HookOutcome::Failure, because(&said)) }
        }
        TurnEnd::Failed { why: said, .. } | TurnEnd::RateLimited { said, .. } | TurnEnd::Answered(said) => {
            report_with_message(HookOutcome::Failure, because(&said))
        }
    }
}
