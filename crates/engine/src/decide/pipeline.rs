//! Commands about worktrees, and about work that passes its gates.

use super::DecisionContext;
use super::cascade_budget::CascadeBudget;
use crate::command::HookReport;
use crate::command::limits::{
    EngineLimits, check_nonblank_text, check_text_list, check_text_size, extract_summary_line,
};
use crate::command::refusal::Refusal;
use crate::delivery::{
    ChangeFact, DeliveryGate, DeliveryPipeline, GateFailure, GateFailureKind, GateFinding, GateRemedy, SubmissionCheck,
    SubmittedWork, Workspace, WorkspaceMode,
};
use crate::effects::outbox::PendingEffect;
use crate::log::event::{EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Epoch, SessionName, TaskId};
use crate::session::message_author::MessageAuthor;
use crate::session::{
    AfterIteration, NextAction, Session, SessionEnd, SessionEndKind, SessionPhase, TaskExit, WorkSource,
};
use crate::task::Lease;
use crate::view::StateView;

impl DecisionContext<'_, '_> {
    pub(super) fn open_workspace(
        &mut self,
        name: &SessionName,
        (workspace, reused): (&Workspace, bool),
        protected: Option<&str>,
        feedback: Option<&GateFinding>,
    ) -> Result<(), Refusal> {
        for text in [&workspace.branch, &workspace.base, &workspace.start, &workspace.name] {
            check_nonblank_text("a worktree", text, EngineLimits::LABEL_BYTES)?;
        }
        check_text_size("the protected files", protected.unwrap_or_default(), EngineLimits::CONFIG_BYTES)?;
        let session = self.require_holding_session(name)?;
        if session.workspace_mode.is_in_place() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "works in place" });
        }
        let protected = protected.map(|files| self.record_config_text(files)).transpose()?.or(workspace.protected);
        let workspace = Workspace { protected, ..workspace.clone() };
        self.emit_session_event(&session, payload::WorkspaceOpened { workspace, reused })?;
        if let Some(finding) = feedback {
            self.queue_finding(&session, finding)?;
        }
        self.decide_next_steps(name)
    }

    /// Queues a finding for the agent of a session.
    fn queue_finding(&mut self, session: &Session, finding: &GateFinding) -> Result<(), Refusal> {
        let GateFinding { source, text } = finding.clone();
        check_nonblank_text("the source", &source, EngineLimits::LABEL_BYTES)?;
        check_nonblank_text("the feedback", &text, EngineLimits::FEEDBACK_BYTES)?;
        let queued = payload::FeedbackQueued {
            source,
            text,
            reason: None,
            own: None,
            passing: false,
            voice: MessageAuthor::Hook,
        };
        self.emit_session_event(session, queued)
    }

    /// Returns the session if it holds its task.
    fn require_holding_session(&self, name: &SessionName) -> Result<Session, Refusal> {
        let session = self.require_session(name)?;
        match session.held_epoch() {
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
        check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
        check_text_list("a commit", commits, EngineLimits::REPORTED_COMMITS, EngineLimits::LABEL_BYTES)?;
        let session = self.require_holding_session(name)?;
        if session.work == WorkSource::Given && session.stopping.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is about to end" });
        }
        self.escalate_task(&session, reason.to_owned(), commits)?;
        self.decide_next_steps(name)
    }

    /// Leaves the task of a session to a person. A session on the graph continues with other tasks, any other session ends.
    pub(super) fn escalate_task(
        &mut self,
        session: &Session,
        reason: String,
        commits: &[String],
    ) -> Result<(), Refusal> {
        match session.work {
            WorkSource::Given => {
                let (ending, reason, commits) = (SessionEndKind::Escalated, Some(reason), commits.to_vec());
                self.emit_session_event(session, payload::SessionStopping { ending, reason, commits })
            }
            WorkSource::Graph => {
                let iteration = Some(session.iteration).filter(|iteration| *iteration > 0);
                self.session_scope = Some((session.name.clone(), iteration));
                self.leave_task_blocked(session, reason, commits)
            }
        }
    }

    pub(super) fn submit_work(&mut self, name: &SessionName, check: &SubmissionCheck) -> Result<(), Refusal> {
        let session = self.require_holding_session(name)?;
        // A person may have sent a message meanwhile.
        if session.is_held_by_person() && session.next_action() == NextAction::Decision {
            return self.decide_next_steps(name);
        }
        if session.next_action() != NextAction::Work {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "has nothing to submit" });
        }
        self.begin_budget(CascadeBudget::for_session(&session));
        if let SubmissionCheck::Work(work) | SubmissionCheck::Unjudged(work) = check {
            check_nonblank_text("a commit", &work.head, EngineLimits::LABEL_BYTES)?;
        }
        if session.report {
            let text = if let SubmissionCheck::Report(text) = check { text.as_str() } else { "" };
            return self.submit_report(&session, text);
        }
        if session.resumes_at_gate {
            return self.resume_work(&session, check);
        }
        let broken = match check {
            SubmissionCheck::Work(work) | SubmissionCheck::Unjudged(work) if work.commits > 0 => {
                let (run, remediations) = (session.run_id_for(session.iteration), session.remediations);
                let (work, rejudged) = (Some(work.clone()), matches!(check, SubmissionCheck::Unjudged(_)));
                self.emit_session_event(&session, payload::SubmissionStarted { run, work, remediations, rejudged })?;
                return self.decide_next_steps(name);
            }
            SubmissionCheck::Work(_) | SubmissionCheck::Unjudged(_) | SubmissionCheck::Report(_) => GateFailure {
                hook: "no_changes".to_owned(),
                why: GateFailureKind::Failed,
                reason: "the last attempt ended as done, without commits and without uncommitted changes".to_owned(),
                feedback: None,
                unstarted: false,
            },
            SubmissionCheck::NotSubmittable { hook, reason, feedback } => {
                check_nonblank_text("the hook", hook, EngineLimits::LABEL_BYTES)?;
                check_nonblank_text("the reason", reason, EngineLimits::REASON_BYTES)?;
                check_nonblank_text("the feedback", feedback, EngineLimits::FEEDBACK_BYTES)?;
                let (reason, feedback) = (extract_summary_line(reason), Some(feedback.clone()));
                GateFailure { hook: hook.clone(), why: GateFailureKind::Conflicts, reason, feedback, unstarted: false }
            }
        };
        self.fail_at_gate(&session, DeliveryGate::BeforeSubmit, &broken)?;
        self.decide_next_steps(name)
    }

    /// Submits a report. It becomes the result of the task, unless the agent has given another result by a command in this
    /// iteration.
    fn submit_report(&mut self, session: &Session, text: &str) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        check_text_size("the report", text, EngineLimits::RESULT_BYTES)?;
        let given = self.require_task(id)?.claim.filter(|claim| claim.run == session.run_id_for(session.iteration));
        if given.as_ref().is_none_or(|claim| claim.result.is_none()) {
            if text.trim().is_empty() {
                self.fail_at_gate(session, DeliveryGate::BeforeSubmit, &missing_report_failure())?;
                return self.decide_next_steps(&session.name);
            }
            let artifacts = given.map(|claim| claim.artifacts).unwrap_or_default();
            let (run, result) = (session.run_id_for(session.iteration), Some(text.to_owned()));
            self.emit_session_event(session, payload::CompletionClaimed { run, result, artifacts })?;
        }
        let session = self.require_session(&session.name)?;
        match (session.workspace_mode, &session.phase) {
            (WorkspaceMode::InPlace, SessionPhase::Settled(AfterIteration::Close(closing))) => {
                let closing = closing.clone();
                self.submit_in_place(&session, &closing)?;
            }
            _ => {
                let (run, remediations) = (session.run_id_for(session.iteration), session.remediations);
                self.emit_session_event(
                    &session,
                    payload::SubmissionStarted { run, work: None, remediations, rejudged: false },
                )?;
            }
        }
        self.decide_next_steps(&session.name)
    }

    /// Resumes at the gate that could not be asked, if the work is still the same. Otherwise an agent works on it.
    fn resume_work(&mut self, session: &Session, check: &SubmissionCheck) -> Result<(), Refusal> {
        let stalled = session.task.map(|id| self.require_task(id)).transpose()?.and_then(|task| task.stalled);
        let same = |work: &&SubmittedWork| stalled.as_ref().is_some_and(|it| it.head == work.head) && work.commits > 0;
        let work = match check {
            SubmissionCheck::Work(work) => Some(work).filter(same),
            SubmissionCheck::Unjudged(work) => Some(work).filter(|work| work.commits > 0),
            SubmissionCheck::Report(_) | SubmissionCheck::NotSubmittable { .. } => None,
        };
        let is_unjudged = matches!(check, SubmissionCheck::Unjudged(_));
        let is_judged = stalled.as_ref().is_some_and(|stalled| stalled.matches_session_hooks(session)) && !is_unjudged;
        let run = session.run_id_for(session.iteration);
        match (work.cloned(), stalled) {
            (work @ Some(_), Some(stalled)) if is_judged && stalled.gate == DeliveryGate::BeforeMerge => {
                self.emit_session_event(session, payload::MergeStarted { run, work })?;
            }
            (work @ Some(_), _) => {
                self.emit_session_event(
                    session,
                    payload::SubmissionStarted { run, work, remediations: session.remediations, rejudged: !is_judged },
                )?;
            }
            (None, _) => {
                let session = Session { iteration: session.iteration + 1, ..session.clone() };
                let run = session.run_id_for(session.iteration);
                self.emit_session_event(&session, payload::IterationStarted { run })?;
            }
        }
        self.decide_next_steps(&session.name)
    }

    /// Submits work that was done in place: through the gates if there are any, else it is accepted as it is.
    pub(super) fn submit_in_place(&mut self, session: &Session, closing: &SessionEnd) -> Result<(), Refusal> {
        let gated = self.has_hooks_at(session, EventType::SubmissionStarted)?
            || self.has_hooks_at(session, EventType::MergeStarted)?;
        match (&session.stopping, gated) {
            (_, false) => self.leave_task(session, TaskExit::Completed),
            (Some(asked), true) => session.task_exit_for(asked).map_or(Ok(()), |leave| self.leave_task(session, leave)),
            (None, true) => {
                debug_assert_eq!(session.phase, SessionPhase::Settled(AfterIteration::Close(closing.clone())));
                let (run, remediations) = (session.run_id_for(session.iteration), session.remediations);
                self.emit_session_event(
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
            return self.emit_session_event(session, payload::TaskSubmitted {});
        }
        let (run, hook) = (session.run_id_for(session.iteration), "rebase_on_main".to_owned());
        let (reason, count, most) = ("the base has moved".to_owned(), session.rechecks + 1, EngineLimits::RECHECKS);
        let remedy = if session.rechecks < most { GateRemedy::Again } else { GateRemedy::GiveUp };
        let (gate, why) = (DeliveryGate::BeforeSubmit, GateFailureKind::Moved);
        let failed = payload::PipelineFailed { run, gate, hook, why, reason, feedback: None, remedy, count, most };
        self.emit_session_event(session, failed)
    }

    /// Starts the merge. Without hooks at that gate the work is accepted.
    pub(super) fn start_merge(&mut self, session: &Session) -> Result<(), Refusal> {
        match self.has_hooks_at(session, EventType::MergeStarted)? {
            true => self.emit_session_event(
                session,
                payload::MergeStarted { run: session.run_id_for(session.iteration), work: None },
            ),
            false => self.leave_task(session, TaskExit::Completed),
        }
    }

    pub(super) fn fail_gate(&mut self, session: &Session) -> Result<(), Refusal> {
        let SessionPhase::Pipeline(pipeline) = &session.phase else { return Ok(()) };
        let DeliveryPipeline { broken: Some(broken), .. } = &**pipeline else { return Ok(()) };
        self.fail_at_gate(session, pipeline.current_gate(), broken)
    }

    /// Returns the work to the agent, because a person has sent a message since the work was called done.
    pub(super) fn return_for_message(&mut self, session: &Session) -> Result<(), Refusal> {
        let SessionPhase::Pipeline(pipeline) = &session.phase else { return Ok(()) };
        let (hook, reason) = ("say".to_owned(), "a person has sent the agent a message".to_owned());
        let broken = GateFailure { hook, why: GateFailureKind::Said, reason, feedback: None, unstarted: false };
        self.fail_at_gate(session, pipeline.current_gate(), &broken)
    }

    fn fail_at_gate(&mut self, session: &Session, gate: DeliveryGate, broken: &GateFailure) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        let task = self.require_task(id)?;
        let (remedy, count, most) = session.choose_remedy(gate, broken, task.rejections);
        let GateFailure { hook, why, reason, feedback, .. } = broken.clone();
        let run = session.run_id_for(session.iteration);
        // The event of a hook's end has its feedback.
        let unsaid = feedback.clone().filter(|_| !matches!(session.phase, SessionPhase::Pipeline(_)));
        let failed = payload::PipelineFailed { run, gate, hook, why, reason, feedback: unsaid, remedy, count, most };
        self.emit_session_event(session, failed)?;
        match remedy {
            GateRemedy::Remediate => {
                let (source, reason) = (broken.hook.clone(), Some(broken.reason.clone()));
                let text = feedback.unwrap_or_else(|| broken.reason.clone());
                let queued = payload::FeedbackQueued {
                    source,
                    text,
                    reason,
                    own: None,
                    passing: false,
                    voice: MessageAuthor::Hook,
                };
                self.emit_session_event(session, queued)
            }
            GateRemedy::Reject => {
                let (by, reason) = (broken.hook.clone(), broken.reason.clone());
                self.emit_event(EventSubject::Task(id), payload::TaskRejected { by, reason })?;
                self.settle_task_state(id)
            }
            GateRemedy::GiveUp | GateRemedy::Escalate | GateRemedy::Again | GateRemedy::Hear => Ok(()),
        }
    }

    /// Records what a hook did to the change of its task. The same change again is no news.
    pub(super) fn record_task_change(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let (Some(id), Some(fact)) = (effect.task, &report.change) else { return Ok(()) };
        let known = self.require_task(id)?.change;
        match fact {
            ChangeFact::Opened(change) => {
                let texts = [&change.branch, &change.base, &change.url];
                texts
                    .into_iter()
                    .flatten()
                    .try_for_each(|text| check_nonblank_text("a change", text, EngineLimits::DELIVERABLE_BYTES))?;
                match known.is_some_and(|known| known.at == *change && known.merged.is_none()) {
                    true => Ok(()),
                    false => self.emit_effect_event(effect, change.clone()),
                }
            }
            ChangeFact::Merged(commit) => {
                check_nonblank_text("a commit", commit, EngineLimits::LABEL_BYTES)?;
                match known.is_none_or(|known| known.merged.is_some()) {
                    true => Ok(()),
                    false => {
                        self.emit_effect_event(effect, payload::ChangeMerged { commit: commit.clone(), seen: None })
                    }
                }
            }
        }
    }

    pub(super) fn record_merge(&mut self, id: TaskId, commit: &str, seen: Option<&str>) -> Result<(), Refusal> {
        if self.origin.run.is_some() || self.via.is_some() {
            return Err(Refusal::NoPerson { what: "merge" });
        }
        check_nonblank_text("a commit", commit, EngineLimits::LABEL_BYTES)?;
        check_text_size("how it was found", seen.unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        let change = self.require_task(id)?.change.ok_or(Refusal::NoChange { id })?;
        match change.merged {
            Some(_) => Err(Refusal::NoChange { id }),
            None => {
                let (commit, seen) = (commit.to_owned(), seen.map(str::to_owned));
                self.emit_event(EventSubject::Task(id), payload::ChangeMerged { commit, seen }).map(drop)
            }
        }
    }

    /// Takes a task from a session that was silent for too long. If the task has changed hands meanwhile, the command is
    /// refused.
    pub(super) fn expire_lease(&mut self, id: TaskId, epoch: Epoch) -> Result<(), Refusal> {
        let lease = self.require_task(id)?.lease;
        let current = lease.as_ref().map(|lease| lease.epoch);
        let Some(Lease { owner, epoch, .. }) = lease.filter(|lease| lease.epoch == epoch) else {
            return Err(Refusal::LeaseLost { id, epoch, current });
        };
        self.emit_event(EventSubject::Task(id), payload::LeaseExpired { owner, epoch, silent: true })?;
        self.settle_task_state(id)
    }

    /// Returns whether a session's task has hooks at an event, whatever their conditions say.
    fn has_hooks_at(&self, session: &Session, event: EventType) -> Result<bool, Refusal> {
        let Some(effects) = &self.rules.effects else { return Ok(false) };
        let Some(planned) = effects.hooks.get(&event) else { return Ok(false) };
        let task = session.task.map(|id| self.draft.find_task(id)).transpose()?.flatten();
        Ok(planned.iter().any(|planned| effects.applies_to_task(planned, task.as_ref(), Some(&session.agent))))
    }
}

/// Returns the failure of an agent whose final message is empty although its task asks for a report.
fn missing_report_failure() -> GateFailure {
    let feedback = "This task asks for a report, and your final message has none. Write the report in full in your final \
                    message.";
    GateFailure {
        hook: "report".to_owned(),
        why: GateFailureKind::Conflicts,
        reason: "the final message has no report".to_owned(),
        feedback: Some(feedback.to_owned()),
        unstarted: false,
    }
}
