//! Commands about sessions, and the decisions that a session makes by itself.

use super::cascade_budget::CascadeBudget;
use super::{CauseRef, DecisionContext};
use crate::command::NewSession;
use crate::command::limits::{EngineLimits, check_text_size};
use crate::command::refusal::Refusal;
use crate::log::event::{Event, EventRecord, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{OwnerName, RunId, SessionName};
use crate::session::usage::AgentUsage;
use crate::session::{
    GateDecision, NextAction, Session, SessionEnd, SessionEndKind, SessionStep, SessionTerms, TurnPurpose,
};
use crate::task::TaskState;
use crate::view::StateView;

impl DecisionContext<'_, '_> {
    pub(super) fn start_session(&mut self, new: &NewSession) -> Result<(), Refusal> {
        let NewSession { name, task, goal, work, workspace_mode, config, protected, agent, terms, owner, nonce, fresh } =
            new;
        if self.draft.find_session(name)?.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "exists already" });
        }
        check_text_size("the goal", goal.as_deref().unwrap_or_default(), EngineLimits::GOAL_BYTES)?;
        check_text_size("the agent", agent, EngineLimits::GOAL_BYTES)?;
        check_text_size("the configuration", config, EngineLimits::CONFIG_BYTES)?;
        if let Some(task) = task
            && self.require_task(*task)?.state == TaskState::Deleted
        {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "cannot work on a deleted task" });
        }
        check_text_size("the protected files", protected.as_deref().unwrap_or_default(), EngineLimits::CONFIG_BYTES)?;
        let config = self.record_config_text(config)?;
        let protected = protected.as_deref().map(|files| self.record_config_text(files)).transpose()?;
        let started = payload::SessionStarted {
            config,
            protected,
            goal: goal.clone(),
            work: *work,
            workspace_mode: *workspace_mode,
            agent: agent.clone(),
            terms: terms.clone(),
            owner: owner.clone(),
            nonce: *nonce,
            keeps_feedback: true,
            fresh: *fresh,
        };
        self.emit_event_in(
            task.map_or(EventSubject::System, EventSubject::Task),
            Some(name.clone()),
            None,
            started.into(),
        )?;
        self.assign_first_task(new)?;
        self.decide_next_steps(name)
    }

    pub(super) fn resume_session(
        &mut self,
        name: &SessionName,
        dead: &OwnerName,
        owner: &OwnerName,
        max_iterations: Option<u32>,
    ) -> Result<(), Refusal> {
        let session = self.require_session(name)?;
        if session.is_over() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" });
        }
        if session.owner != *dead {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "belongs to another process" });
        }
        let max_iterations = max_iterations.unwrap_or(session.terms.max_iterations);
        let terms = SessionTerms { max_iterations, ..session.terms.clone() };
        self.emit_session_event(&session, payload::SessionResumed { owner: owner.clone(), terms })?;
        // Under these terms a session that waits between iterations may have reached its limit.
        match session.next_action() {
            NextAction::Workspace | NextAction::Work | NextAction::WaitUntil(_) => self.decide_next_steps(name),
            _ => Ok(()),
        }
    }

    pub(super) fn stop_session(
        &mut self,
        name: &SessionName,
        ending: SessionEndKind,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        check_text_size("the reason", reason.unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        let session = self.require_session(name)?;
        if session.ending_kind().is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" });
        }
        if session.stopping.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is about to end" });
        }
        self.emit_session_event(
            &session,
            payload::SessionStopping { ending, reason: reason.map(str::to_owned), commits: vec![] },
        )?;
        self.decide_next_steps(name)
    }

    /// Continues a session after an event from outside its loop, or after a wait.
    pub(super) fn advance_session(&mut self, name: &SessionName) -> Result<(), Refusal> {
        self.decide_next_steps(name)?;
        match self.entries.is_empty() {
            true => Err(Refusal::IllegalSession { name: name.clone(), why: "waits for something else" }),
            false => Ok(()),
        }
    }

    /// Decides the next steps of a session, until it needs something from outside.
    pub(super) fn decide_next_steps(&mut self, name: &SessionName) -> Result<(), Refusal> {
        self.begin_budget(CascadeBudget::for_session(&self.require_session(name)?));
        let line = self.budget_index;
        loop {
            // A decision of the loop has the depth of a person's command, independent of its cause.
            let moved = self.entries.iter().rposition(|entry| moves_session(name, &entry.record));
            self.cause = moved.map(CauseRef::Entry);
            self.depth = 0;
            self.budget_index = line;
            let session = self.require_session(name)?;
            self.session_scope = Some((name.clone(), Some(session.iteration).filter(|iteration| *iteration > 0)));
            match session.next_step_at(Some(self.origin.at)) {
                SessionStep::Wait(_) => return Ok(()),
                SessionStep::SkipHook(effect) => {
                    match self.draft.find_effect(effect)?.is_some_and(|effect| effect.attempts == 0) {
                        true => {
                            let here = (self.cause, self.depth);
                            self.skip_effect(effect)?;
                            (self.cause, self.depth) = here;
                        }
                        // Its owner still has to report how it ended.
                        false => return Ok(()),
                    }
                }
                SessionStep::StartIteration => {
                    self.advance_series_with_loop(&session)?;
                    let run = session.run_id_for(session.iteration + 1);
                    let session = Session { iteration: run.iteration, ..session };
                    self.emit_session_event(&session, payload::IterationStarted { run })?;
                }
                // Pure hooks that have not run yet may make another task ready.
                SessionStep::TakeTask if self.dispatched_entries < self.entries.len() => {
                    self.waiting_session = Some(name.clone());
                    return Ok(());
                }
                SessionStep::TakeTask => self.take_next_task(&session)?,
                SessionStep::LeaveTask(leave) => self.leave_task(&session, leave)?,
                SessionStep::Submit(closing) => self.submit_in_place(&session, &closing)?,
                SessionStep::PassSubmission => self.pass_submission(&session)?,
                SessionStep::StartMerge => self.start_merge(&session)?,
                SessionStep::FailGate => self.fail_gate(&session)?,
                SessionStep::DeliverMessageFirst => self.return_for_message(&session)?,
                SessionStep::EndWithoutTask(closing) => self.end_session_without_task(&session, closing)?,
                SessionStep::StartTurn(run, purpose) => self.start_turn(&session, run, purpose)?,
                SessionStep::DecideGate(run, decision) => {
                    let decision = self.guard_series(&session, decision)?;
                    let retries = session.retries + u32::from(decision == GateDecision::SendBack);
                    let (verdict, reason, max_retries) =
                        (session.verdict, session.block_reason(), session.max_send_backs());
                    let decided = payload::GateDecided { run, verdict, decision, retries, max_retries, reason };
                    self.emit_session_event(&session, decided)?;
                }
                SessionStep::CompleteIteration(run) => {
                    let used = session.watch.used_in_iteration;
                    self.emit_session_event(&session, payload::IterationCompleted { run, used })?;
                }
                SessionStep::InterruptIteration(run) => {
                    let (record, usage) = (None, AgentUsage::default());
                    self.emit_session_event(&session, payload::IterationInterrupted { run, record, usage })?;
                }
                SessionStep::End(closing) => self.end_session(&session, closing)?,
            }
        }
    }

    pub(super) fn start_turn(&mut self, session: &Session, run: RunId, purpose: TurnPurpose) -> Result<(), Refusal> {
        let feedback = session.pending.len().try_into().expect("each piece is an event of its own");
        let owner = session.owner.clone();
        self.emit_session_event(session, payload::TurnStarted { run, owner, purpose, feedback })
    }

    pub(super) fn end_session(&mut self, session: &Session, closing: SessionEnd) -> Result<(), Refusal> {
        let SessionEnd { ending, reason } = closing;
        let reasons: Vec<String> = reason.into_iter().chain(session.waivers.iter().cloned()).collect();
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        let unchecked = session.unchecked;
        self.emit_session_event(session, payload::SessionEnded { ending, reason, unchecked })
    }

    pub(super) fn require_session(&self, name: &SessionName) -> Result<Session, Refusal> {
        self.draft.find_session(name)?.ok_or_else(|| Refusal::UnknownSession(name.clone()))
    }

    pub(super) fn emit_session_event(&mut self, session: &Session, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = session.task.map_or(EventSubject::System, EventSubject::Task);
        let iteration = Some(session.iteration).filter(|iteration| *iteration > 0);
        self.emit_event_in(node, Some(session.name.clone()), iteration, event.into()).map(drop)
    }
}

/// Returns whether such an event lets a session continue. Events of a hook's actions may lie between it and the next step.
fn moves_session(name: &SessionName, record: &EventRecord) -> bool {
    use EventType as E;
    let kind = record.kind();
    let of_task = matches!(
        kind,
        E::TaskStarted
            | E::TaskSubmitted
            | E::TaskRejected
            | E::TaskCompleted
            | E::TaskBlocked
            | E::TaskNeedsContinuation
            | E::TaskReleased
    );
    if of_task {
        return record.envelope.session.as_ref() == Some(name) && record.envelope.metadata.depth == 0;
    }
    matches!(
        kind,
        E::SessionStarted
            | E::SessionStopping
            | E::IterationStarted
            | E::TurnStarted
            | E::TurnFinished
            | E::PromiseDetected
            | E::GateDecided
            | E::GateAnswered
            | E::IterationCompleted
            | E::IterationFailed
            | E::IterationInterrupted
            | E::IterationPostponed
            | E::DeliveryFinished
            | E::DeliveryFailed
            | E::DeliveryInterrupted
            | E::FeedbackQueued
            | E::WorkspaceOpened
            | E::SubmissionStarted
            | E::MergeStarted
            | E::PipelineFailed
            | E::HookFinished
    )
}
