//! Commands about worktrees, and about work that passes its gates.

use super::Deciding;
use super::lineage::Line;
use crate::command::HookReport;
use crate::command::limits::{Limits, check_bytes, check_list, check_text, gist};
use crate::command::refusal::Refusal;
use crate::delivery::{
    Broken, ChangeFact, Finding, Gate, Grounds, Pipeline, Readied, Remedy, Why, WorkDone, Workspace,
};
use crate::effects::outbox::PendingEffect;
use crate::log::event::{Node, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Epoch, SessionName, TaskId};
use crate::session::voice::Voice;
use crate::session::{Closing, Ending, Leave, Next, Phase, Session, Wanted, Work};
use crate::task::Lease;
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn open_workspace(
        &mut self,
        name: &SessionName,
        (workspace, reused): (&Workspace, bool),
        protected: Option<&str>,
        feedback: Option<&Finding>,
    ) -> Result<(), Refusal> {
        for text in [&workspace.branch, &workspace.base, &workspace.start, &workspace.name] {
            check_text("a worktree", text, Limits::LABEL)?;
        }
        check_bytes("the protected files", protected.unwrap_or_default(), Limits::CONFIG)?;
        let session = self.holding(name)?;
        if session.grounds.is_in_place() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "works in place" });
        }
        let protected = protected.map(|files| self.record_config(files)).transpose()?.or(workspace.protected);
        let workspace = Workspace { protected, ..workspace.clone() };
        self.emit_session(&session, payload::WorkspaceOpened { workspace, reused })?;
        if let Some(finding) = feedback {
            self.tell_finding(&session, finding)?;
        }
        self.advance(name)
    }

    /// Queues a finding for the agent of a session.
    fn tell_finding(&mut self, session: &Session, finding: &Finding) -> Result<(), Refusal> {
        let Finding { source, text } = finding.clone();
        check_text("the source", &source, Limits::LABEL)?;
        check_text("the feedback", &text, Limits::FEEDBACK)?;
        let queued =
            payload::FeedbackQueued { source, text, reason: None, own: None, passing: false, voice: Voice::Hook };
        self.emit_session(session, queued)
    }

    /// Returns the session if it holds its task.
    fn holding(&self, name: &SessionName) -> Result<Session, Refusal> {
        let session = self.session(name)?;
        match session.epoch() {
            Some(_) => Ok(session),
            None => Err(Refusal::IllegalSession { name: name.clone(), why: "has no task" }),
        }
    }

    pub(super) fn leave_to_person(
        &mut self,
        name: &SessionName,
        reason: &str,
        commits: &[String],
    ) -> Result<(), Refusal> {
        check_text("the reason", reason, Limits::REASON)?;
        check_list("a commit", commits, Limits::TOLD, Limits::LABEL)?;
        let session = self.holding(name)?;
        if session.work == Work::Given && session.stopping.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is about to end" });
        }
        self.escalate(&session, reason.to_owned(), commits)?;
        self.advance(name)
    }

    /// Leaves the task of a session to a person. A session on the graph continues with other tasks, any other session ends.
    pub(super) fn escalate(&mut self, session: &Session, reason: String, commits: &[String]) -> Result<(), Refusal> {
        match session.work {
            Work::Given => {
                let (ending, reason, commits) = (Ending::Escalated, Some(reason), commits.to_vec());
                self.emit_session(session, payload::SessionStopping { ending, reason, commits })
            }
            Work::Graph => {
                let iteration = Some(session.iteration).filter(|iteration| *iteration > 0);
                self.place = Some((session.name.clone(), iteration));
                self.leave_blocked(session, reason, commits)
            }
        }
    }

    pub(super) fn submit_work(&mut self, name: &SessionName, readied: &Readied) -> Result<(), Refusal> {
        let session = self.holding(name)?;
        // A person may have sent a message meanwhile.
        if session.is_held_back() && session.wanted() == Wanted::Decision {
            return self.advance(name);
        }
        if session.wanted() != Wanted::Work {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "has nothing to submit" });
        }
        self.begin_line(Line::of(&session));
        if let Readied::Work(work) | Readied::Unjudged(work) = readied {
            check_text("a commit", &work.head, Limits::LABEL)?;
        }
        if session.report {
            let text = if let Readied::Report(text) = readied { text.as_str() } else { "" };
            return self.submit_report(&session, text);
        }
        if session.resumes {
            return self.resume_work(&session, readied);
        }
        let broken = match readied {
            Readied::Work(work) | Readied::Unjudged(work) if work.commits > 0 => {
                let (run, remediations) = (session.run(session.iteration), session.remediations);
                let (work, rejudged) = (Some(work.clone()), matches!(readied, Readied::Unjudged(_)));
                self.emit_session(&session, payload::SubmissionStarted { run, work, remediations, rejudged })?;
                return self.advance(name);
            }
            Readied::Work(_) | Readied::Unjudged(_) | Readied::Report(_) => Broken {
                hook: "no_changes".to_owned(),
                why: Why::Failed,
                reason: "the last attempt was ended as done, and nothing was committed or left to be committed"
                    .to_owned(),
                feedback: None,
                unstarted: false,
            },
            Readied::Unfit { hook, reason, feedback } => {
                check_text("the hook", hook, Limits::LABEL)?;
                check_text("the reason", reason, Limits::REASON)?;
                check_text("the feedback", feedback, Limits::FEEDBACK)?;
                let (reason, feedback) = (gist(reason), Some(feedback.clone()));
                Broken { hook: hook.clone(), why: Why::Conflicts, reason, feedback, unstarted: false }
            }
        };
        self.fail_at(&session, Gate::BeforeSubmit, &broken)?;
        self.advance(name)
    }

    /// Submits a report. It becomes the result of the task, unless the agent has given another result by a command in this
    /// iteration.
    fn submit_report(&mut self, session: &Session, text: &str) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        check_bytes("the report", text, Limits::RESULT)?;
        let given = self.task(id)?.claim.filter(|claim| claim.run == session.run(session.iteration));
        if given.as_ref().is_none_or(|claim| claim.result.is_none()) {
            if text.trim().is_empty() {
                self.fail_at(session, Gate::BeforeSubmit, &no_report())?;
                return self.advance(&session.name);
            }
            let artifacts = given.map(|claim| claim.artifacts).unwrap_or_default();
            let (run, result) = (session.run(session.iteration), Some(text.to_owned()));
            self.emit_session(session, payload::CompletionClaimed { run, result, artifacts })?;
        }
        let session = self.session(&session.name)?;
        match (session.grounds, &session.phase) {
            (Grounds::InPlace, Phase::Settled(Next::Close(closing))) => {
                let closing = closing.clone();
                self.submit_in_place(&session, &closing)?;
            }
            _ => {
                let (run, remediations) = (session.run(session.iteration), session.remediations);
                self.emit_session(
                    &session,
                    payload::SubmissionStarted { run, work: None, remediations, rejudged: false },
                )?;
            }
        }
        self.advance(&session.name)
    }

    /// Resumes at the gate that could not be asked, if the work is still the same. Otherwise an agent works on it.
    fn resume_work(&mut self, session: &Session, readied: &Readied) -> Result<(), Refusal> {
        let stalled = session.task.map(|id| self.task(id)).transpose()?.and_then(|task| task.stalled);
        let same = |work: &&WorkDone| stalled.as_ref().is_some_and(|it| it.head == work.head) && work.commits > 0;
        let work = match readied {
            Readied::Work(work) => Some(work).filter(same),
            Readied::Unjudged(work) => Some(work).filter(|work| work.commits > 0),
            Readied::Report(_) | Readied::Unfit { .. } => None,
        };
        let is_unjudged = matches!(readied, Readied::Unjudged(_));
        let is_judged = stalled.as_ref().is_some_and(|stalled| stalled.is_judged_for(session)) && !is_unjudged;
        let run = session.run(session.iteration);
        match (work.cloned(), stalled) {
            (work @ Some(_), Some(stalled)) if is_judged && stalled.gate == Gate::BeforeMerge => {
                self.emit_session(session, payload::MergeStarted { run, work })?;
            }
            (work @ Some(_), _) => {
                self.emit_session(
                    session,
                    payload::SubmissionStarted { run, work, remediations: session.remediations, rejudged: !is_judged },
                )?;
            }
            (None, _) => {
                let session = Session { iteration: session.iteration + 1, ..session.clone() };
                let run = session.run(session.iteration);
                self.emit_session(&session, payload::IterationStarted { run })?;
            }
        }
        self.advance(&session.name)
    }

    /// Submits work that was done in place: through the gates if there are any, else it is accepted as it is.
    pub(super) fn submit_in_place(&mut self, session: &Session, closing: &Closing) -> Result<(), Refusal> {
        let gated = self.has_hooks(session, EventType::SubmissionStarted)?
            || self.has_hooks(session, EventType::MergeStarted)?;
        match (&session.stopping, gated) {
            (_, false) => self.leave_task(session, Leave::Completed),
            (Some(asked), true) => session.leaving(asked).map_or(Ok(()), |leave| self.leave_task(session, leave)),
            (None, true) => {
                debug_assert_eq!(session.phase, Phase::Settled(Next::Close(closing.clone())));
                let (run, remediations) = (session.run(session.iteration), session.remediations);
                self.emit_session(
                    session,
                    payload::SubmissionStarted { run, work: None, remediations, rejudged: false },
                )
            }
        }
    }

    /// Passes a submission. If a hook of the gate has moved the work onto another base, the stop hooks judge it there
    /// first.
    pub(super) fn pass_submission(&mut self, session: &Session) -> Result<(), Refusal> {
        if !session.rejudged || !self.has_stop_hooks(session)? {
            return self.emit_session(session, payload::TaskSubmitted {});
        }
        let (run, hook) = (session.run(session.iteration), "rebase_on_main".to_owned());
        let (reason, count, most) = ("the base has moved".to_owned(), session.rechecks + 1, Limits::RECHECKS);
        let remedy = if session.rechecks < most { Remedy::Again } else { Remedy::GiveUp };
        let (gate, why) = (Gate::BeforeSubmit, Why::Moved);
        let failed = payload::PipelineFailed { run, gate, hook, why, reason, feedback: None, remedy, count, most };
        self.emit_session(session, failed)
    }

    /// Starts the merge. Without hooks at that gate the work is accepted.
    pub(super) fn start_merge(&mut self, session: &Session) -> Result<(), Refusal> {
        match self.has_hooks(session, EventType::MergeStarted)? {
            true => {
                self.emit_session(session, payload::MergeStarted { run: session.run(session.iteration), work: None })
            }
            false => self.leave_task(session, Leave::Completed),
        }
    }

    pub(super) fn fail_gate(&mut self, session: &Session) -> Result<(), Refusal> {
        let Phase::Pipeline(pipeline) = &session.phase else { return Ok(()) };
        let Pipeline { broken: Some(broken), .. } = &**pipeline else { return Ok(()) };
        self.fail_at(session, pipeline.gate(), broken)
    }

    /// Returns the work to the agent, because a person has sent a message since the work was called done.
    pub(super) fn hear_first(&mut self, session: &Session) -> Result<(), Refusal> {
        let Phase::Pipeline(pipeline) = &session.phase else { return Ok(()) };
        let (hook, reason) = ("say".to_owned(), "a person has said something to the agent".to_owned());
        let broken = Broken { hook, why: Why::Said, reason, feedback: None, unstarted: false };
        self.fail_at(session, pipeline.gate(), &broken)
    }

    fn fail_at(&mut self, session: &Session, gate: Gate, broken: &Broken) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        let task = self.task(id)?;
        let (remedy, count, most) = session.remedy(gate, broken, task.rejections);
        let Broken { hook, why, reason, feedback, .. } = broken.clone();
        let run = session.run(session.iteration);
        // The event of a hook's end has its feedback.
        let unsaid = feedback.clone().filter(|_| !matches!(session.phase, Phase::Pipeline(_)));
        let failed = payload::PipelineFailed { run, gate, hook, why, reason, feedback: unsaid, remedy, count, most };
        self.emit_session(session, failed)?;
        match remedy {
            Remedy::Remediate => {
                let (source, reason) = (broken.hook.clone(), Some(broken.reason.clone()));
                let text = feedback.unwrap_or_else(|| broken.reason.clone());
                let queued =
                    payload::FeedbackQueued { source, text, reason, own: None, passing: false, voice: Voice::Hook };
                self.emit_session(session, queued)
            }
            Remedy::Reject => {
                let (by, reason) = (broken.hook.clone(), broken.reason.clone());
                self.emit(Node::Task(id), payload::TaskRejected { by, reason })?;
                self.settle(id)
            }
            Remedy::GiveUp | Remedy::Escalate | Remedy::Again | Remedy::Hear => Ok(()),
        }
    }

    /// Records what a hook did to the change of its task. The same change again is no news.
    pub(super) fn record_change(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let (Some(id), Some(fact)) = (effect.task, &report.change) else { return Ok(()) };
        let known = self.task(id)?.change;
        match fact {
            ChangeFact::Opened(change) => {
                let texts = [&change.branch, &change.base, &change.url];
                texts.into_iter().flatten().try_for_each(|text| check_text("a change", text, Limits::DELIVERABLE))?;
                match known.is_some_and(|known| known.at == *change && known.merged.is_none()) {
                    true => Ok(()),
                    false => self.emit_of(effect, change.clone()),
                }
            }
            ChangeFact::Merged(commit) => {
                check_text("a commit", commit, Limits::LABEL)?;
                match known.is_none_or(|known| known.merged.is_some()) {
                    true => Ok(()),
                    false => self.emit_of(effect, payload::ChangeMerged { commit: commit.clone(), seen: None }),
                }
            }
        }
    }

    pub(super) fn record_merge(&mut self, id: TaskId, commit: &str, seen: Option<&str>) -> Result<(), Refusal> {
        if self.origin.run.is_some() || self.via.is_some() {
            return Err(Refusal::NoPerson { what: "merge" });
        }
        check_text("a commit", commit, Limits::LABEL)?;
        check_bytes("how it was found", seen.unwrap_or_default(), Limits::REASON)?;
        let change = self.task(id)?.change.ok_or(Refusal::NoChange { id })?;
        match change.merged {
            Some(_) => Err(Refusal::NoChange { id }),
            None => {
                let (commit, seen) = (commit.to_owned(), seen.map(str::to_owned));
                self.emit(Node::Task(id), payload::ChangeMerged { commit, seen }).map(drop)
            }
        }
    }

    /// Takes a task from a session that was silent for too long. If the task has changed hands meanwhile, the command is
    /// refused.
    pub(super) fn expire_lease(&mut self, id: TaskId, epoch: Epoch) -> Result<(), Refusal> {
        let lease = self.task(id)?.lease;
        let current = lease.as_ref().map(|lease| lease.epoch);
        let Some(Lease { owner, epoch, .. }) = lease.filter(|lease| lease.epoch == epoch) else {
            return Err(Refusal::LeaseLost { id, epoch, current });
        };
        self.emit(Node::Task(id), payload::LeaseExpired { owner, epoch, silent: true })?;
        self.settle(id)
    }

    /// Returns whether a session's task has hooks at an event, whatever their conditions say.
    fn has_hooks(&self, session: &Session, event: EventType) -> Result<bool, Refusal> {
        let Some(effects) = &self.rules.effects else { return Ok(false) };
        let Some(planned) = effects.hooks.get(&event) else { return Ok(false) };
        let task = session.task.map(|id| self.draft.task(id)).transpose()?.flatten();
        Ok(planned.iter().any(|planned| effects.is_for(planned, task.as_ref(), Some(&session.agent))))
    }
}

/// Returns the failure of an agent whose final message is empty although its task asks for a report.
fn no_report() -> Broken {
    let feedback = "This task asks for a report, and your final message has none. Write the report in full in your final \
                    message.";
    Broken {
        hook: "report".to_owned(),
        why: Why::Conflicts,
        reason: "the final message has no report".to_owned(),
        feedback: Some(feedback.to_owned()),
        unstarted: false,
    }
}
