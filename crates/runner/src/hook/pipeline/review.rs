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
    Approved, Digest, HookOutcome, HookReport, Judgement, Review, Session, Task, Unfit, Usage, Workspace, in_words,
};
use windlass_hooks::{clean, cut};
use windlass_vcs::git::{Branch, CheckoutAccess, Commit, Diff, Git};

use super::Ended;
use crate::consultation::Consultation;
use crate::hook::HookRun;
use crate::stacked_branches::{LowerTask, own_base};
use crate::wording::report;
use crate::{EffectRunner, RunError};

/// Maximum size of a diff in a prompt.
const DIFF: usize = 4 * 1024 * 1024;
/// Maximum number of commit subjects in a prompt.
const COMMITS: usize = 100;
/// Maximum size of a recorded summary, beside the feedback to the agent.
const SUMMARY: usize = 1024;

/// The change or report under review.
struct Case {
    head: Commit,
    patch: Digest,
    commits: Vec<String>,
    diff: Diff,
    /// Report of the task, if there is no change to judge.
    report: Option<String>,
}

impl Case {
    /// Returns the case for the report of a task, without a change.
    fn of_report(self, task: Option<&Task>) -> Self {
        let report = task.and_then(|task| task.claim.as_ref()?.result.clone()).unwrap_or_default();
        let diff = Diff { text: String::new(), cut: false };
        Self { patch: Digest::of(report.as_bytes()), commits: Vec::new(), diff, report: Some(report), ..self }
    }
}

/// Results of a review so far.
struct Sum {
    approved: Approved,
    told: Vec<String>,
    reviews: Vec<Value>,
    used: Usage,
    record: Option<String>,
    began: Instant,
}

impl Sum {
    /// Adds the results so far to a report.
    fn with(self, outcome: HookReport) -> HookReport {
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
struct Asking<'a> {
    run: &'a HookRun<'a>,
    session: &'a Session,
    case: &'a Case,
    index: usize,
    brief: &'a str,
}

impl Asking<'_> {
    fn task(&self) -> Option<&Task> {
        self.run.subject.task.as_ref()
    }
}

impl EffectRunner<'_> {
    pub(super) fn review(
        &mut self,
        run: &HookRun<'_>,
        session: &Session,
        workspace: &Workspace,
        briefs: &[String],
    ) -> Result<Ended, RunError> {
        let below = self.below(workspace)?;
        let case = match self.with_git(|git| self.case(git, workspace, &below)) {
            Ok(case) if session.report => case.of_report(run.subject.task.as_ref()),
            Ok(case) => case,
            Err(error) => return Ok(Err(error)),
        };
        let patch = case.patch.chain(session.config);
        let before = run.subject.task.as_ref().and_then(|task| task.approved.clone());
        let before = before.filter(|before| before.patch == patch).map(|before| before.briefs).unwrap_or_default();
        let approved = Approved { patch, briefs: before };
        let (told, reviews) = (Vec::new(), Vec::new());
        let mut sum = Sum { approved, told, reviews, used: Usage::default(), record: None, began: Instant::now() };
        for (index, brief) in briefs.iter().enumerate() {
            if sum.approved.briefs.contains(brief) {
                sum.told.push(format!("{brief}: approved before, and the same since"));
                continue;
            }
            let asking = Asking { run, session, case: &case, index, brief };
            if let Some(end) = self.judged_by(&asking, &mut sum)? {
                return Ok(Ok(sum.with(end)));
            }
        }
        let told = sum.told.join("; ");
        Ok(Ok(sum.with(report(HookOutcome::Success, told))))
    }

    /// Reads the change to review.
    fn case(
        &self,
        git: &Git<'_>,
        workspace: &Workspace,
        below: &[LowerTask],
    ) -> Result<Case, windlass_vcs::git::Error> {
        let base = own_base(git, workspace, below, &self.known_base(git)?.commit)?;
        let branch = Branch::new(&workspace.branch)?;
        let work = git.work(&branch, &base)?;
        Ok(Case {
            patch: git.patch_id(&work.merge_base, &work.head)?,
            commits: git.subjects(&base, &work.head, COMMITS)?,
            diff: git.diff(&work.merge_base, &work.head, DIFF)?,
            head: work.head,
            report: None,
        })
    }

    /// Lets one gatekeeper judge by one brief. Returns the report of the hook if the review ends with it.
    fn judged_by(&mut self, asking: &Asking<'_>, sum: &mut Sum) -> Result<Option<HookReport>, RunError> {
        let brief = asking.brief;
        let gatekeepers = &self.settings.delivery.gatekeepers;
        // An agent that has only resumed a stalled review has not done the work.
        let author = asking.task().and_then(|task| task.stalled.as_ref()).map(|stalled| stalled.agent.as_str());
        let author = author.unwrap_or(&asking.session.agent);
        let Some(agent) = gatekeepers.pick(asking.task(), author, asking.index).cloned() else {
            let said =
                format!("no gatekeeper may judge it ({brief}); name an agent under `agents.gatekeeper` of its type");
            return Ok(Some(report(HookOutcome::Failure, said)));
        };
        let (text, silence) = (gatekeepers.brief(brief).to_owned(), gatekeepers.silence.filter(|_| agent.streams()));
        let path = self.checkout(asking);
        let checkout = match self.with_git(|git| git.check_out(&path, &asking.case.head, CheckoutAccess::Read)) {
            Ok(checkout) => checkout,
            Err(error) => return Ok(Some(self.troubled(&error))),
        };
        let review = Review {
            name: brief,
            brief: &text,
            task: asking.task(),
            commits: &asking.case.commits,
            diff: &asking.case.diff.text,
            more: asking.case.diff.cut,
            report: asking.case.report.as_deref(),
        };
        let file = self.settings.records.join(format!("{}.review-{}", asking.run.effect, asking.index + 1));
        let (time, task) = (asking.run.hook.timeout, asking.task().map(|task| task.id));
        let mut with = self.consultation(&agent, (&checkout.path, file), (time, silence), task);
        let answered = self.question(&review, &mut with, sum);
        with.end();
        // A checkout that stays now is removed before the next one is made.
        let _ = self.with_git(|git| git.remove_detached(checkout));
        let judgement = match answered? {
            Ok(judgement) => judgement,
            Err(end) => return Ok(Some(not_answered(&agent.name, brief, end, asking.run))),
        };
        sum.reviews.push(json!({
            "brief": brief,
            "agent": agent.name,
            "approved": judgement.approved,
            "summary": cut(&judgement.summary, SUMMARY),
            "findings": judgement.findings.len(),
        }));
        if !judgement.approved {
            let said = format!("`{}` does not approve ({brief}): {}", agent.name, judgement.summary.trim());
            let feedback = Some(judgement.feedback(brief));
            return Ok(Some(HookReport { feedback, ..report(HookOutcome::Block, said) }));
        }
        sum.approved.briefs.push(brief.to_owned());
        sum.told.push(format!("{brief}: approved by `{}`", agent.name));
        Ok(None)
    }

    /// Returns the checkout path of a gatekeeper.
    fn checkout(&self, asking: &Asking<'_>) -> PathBuf {
        let task = asking.task().map_or_else(|| "work".to_owned(), |task| task.id.to_string().to_ascii_lowercase());
        self.settings.delivery.checkouts.join(format!("review-{task}"))
    }

    /// Prompts the gatekeeper, and once more after an invalid answer.
    fn question(
        &mut self,
        review: &Review<'_>,
        with: &mut Consultation<'_>,
        sum: &mut Sum,
    ) -> Result<Result<Judgement, TurnEnd>, RunError> {
        let mut asked_so_far = String::new();
        let mut unfit_answer: Option<(Unfit, String)> = None;
        loop {
            let mut prompt = String::new();
            let asked = self.consult(with, &mut |remembers| {
                prompt = match &unfit_answer {
                    None => review.prompt(),
                    Some((unfit, said)) => review.again(unfit, said, remembers),
                };
                prompt.clone()
            })?;
            asked_so_far.push_str(&prompt);
            sum.used = sum.used.plus(asked.usage);
            sum.record = asked.record.or(sum.record.take());
            let said = match asked.end {
                TurnEnd::Said(said) => self.settings.mask.kept(&clean(&said)).into_owned(),
                end => return Ok(Err(end)),
            };
            let unfit = match Judgement::read(&said, &asked_so_far) {
                Ok(judgement) => return Ok(Ok(judgement)),
                Err(unfit) => unfit,
            };
            if unfit_answer.is_some() {
                let summary =
                    format!("the gatekeeper gave no answer that fits, twice, so nobody has approved it: {unfit}");
                return Ok(Ok(Judgement { approved: false, summary, findings: Vec::new() }));
            }
            unfit_answer = Some((unfit, said));
        }
    }
}

/// Reports a gatekeeper that gave no answer.
fn not_answered(agent: &str, brief: &str, end: TurnEnd, run: &HookRun<'_>) -> HookReport {
    let because = |why: &str| format!("`{agent}` could not judge it ({brief}): {why}");
    match end {
        TurnEnd::Cancelled => HookOutcome::Cancelled.into(),
        TurnEnd::TimedOut => {
            let time = in_words(run.hook.timeout);
            report(HookOutcome::TimedOut, because(&format!("it took longer than {time}; `timeout` gives it more")))
        }
        TurnEnd::Locked { said, remedy } => {
            let said = because(&format!("{said}; {remedy}"));
            HookReport { unstarted: true, ..report(HookOutcome::Failure, said) }
        }
        TurnEnd::Broken(said) | TurnEnd::Unanswered(said) => {
            HookReport { unstarted: true, ..report(HookOutcome::Failure, because(&said)) }
        }
        TurnEnd::Failed { why: said, .. } | TurnEnd::Limited { said, .. } | TurnEnd::Said(said) => {
            report(HookOutcome::Failure, because(&said))
        }
    }
}
