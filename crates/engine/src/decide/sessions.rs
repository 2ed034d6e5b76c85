//! Commands about sessions, and the decisions that a session makes by itself.

use super::lineage::Line;
use super::{Causing, Deciding};
use crate::command::NewSession;
use crate::command::limits::{Limits, check_bytes};
use crate::command::refusal::Refusal;
use crate::log::event::{Event, Node, Record, payload};
use crate::log::event_type::EventType;
use crate::log::id::{OwnerName, RunId, SessionName};
use crate::session::usage::Usage;
use crate::session::{Closing, Decision, Ending, Purpose, Session, Step, Terms, Wanted};
use crate::task::State;
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn start_session(&mut self, new: &NewSession) -> Result<(), Refusal> {
        let NewSession { name, task, goal, work, grounds, config, protected, agent, terms, owner, nonce, fresh } = new;
        if self.draft.session(name)?.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "exists already" });
        }
        check_bytes("the goal", goal.as_deref().unwrap_or_default(), Limits::GOAL)?;
        check_bytes("the agent", agent, Limits::GOAL)?;
        check_bytes("the configuration", config, Limits::CONFIG)?;
        if let Some(task) = task
            && self.task(*task)?.state == State::Deleted
        {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "cannot work on a deleted task" });
        }
        check_bytes("the protected files", protected.as_deref().unwrap_or_default(), Limits::CONFIG)?;
        let config = self.record_config(config)?;
        let protected = protected.as_deref().map(|files| self.record_config(files)).transpose()?;
        let started = payload::SessionStarted {
            config,
            protected,
            goal: goal.clone(),
            work: *work,
            grounds: *grounds,
            agent: agent.clone(),
            terms: terms.clone(),
            owner: owner.clone(),
            nonce: *nonce,
            keeps_feedback: true,
            fresh: *fresh,
        };
        self.emit_in(task.map_or(Node::System, Node::Task), Some(name.clone()), None, started.into())?;
        self.give_work(new)?;
        self.advance(name)
    }

    pub(super) fn resume_session(
        &mut self,
        name: &SessionName,
        dead: &OwnerName,
        owner: &OwnerName,
        max_iterations: Option<u32>,
    ) -> Result<(), Refusal> {
        let session = self.session(name)?;
        if session.is_over() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" });
        }
        if session.owner != *dead {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is in other hands" });
        }
        let max_iterations = max_iterations.unwrap_or(session.terms.max_iterations);
        let terms = Terms { max_iterations, ..session.terms.clone() };
        self.emit_session(&session, payload::SessionResumed { owner: owner.clone(), terms })?;
        // Under these terms a session that waits between iterations may have reached its limit.
        match session.wanted() {
            Wanted::Workspace | Wanted::Work | Wanted::Moment(_) => self.advance(name),
            _ => Ok(()),
        }
    }

    pub(super) fn stop_session(
        &mut self,
        name: &SessionName,
        ending: Ending,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        check_bytes("the reason", reason.unwrap_or_default(), Limits::REASON)?;
        let session = self.session(name)?;
        if session.ended().is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" });
        }
        if session.stopping.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is about to end" });
        }
        self.emit_session(
            &session,
            payload::SessionStopping { ending, reason: reason.map(str::to_owned), commits: vec![] },
        )?;
        self.advance(name)
    }

    /// Continues a session after an event from outside its loop, or after a wait.
    pub(super) fn advance_session(&mut self, name: &SessionName) -> Result<(), Refusal> {
        self.advance(name)?;
        match self.entries.is_empty() {
            true => Err(Refusal::IllegalSession { name: name.clone(), why: "waits for something else" }),
            false => Ok(()),
        }
    }

    /// Decides the next steps of a session, until it needs something from outside.
    pub(super) fn advance(&mut self, name: &SessionName) -> Result<(), Refusal> {
        self.begin_line(Line::of(&self.session(name)?));
        let line = self.line;
        loop {
            // A decision of the loop has the depth of a person's command, independent of its cause.
            let moved = self.entries.iter().rposition(|entry| moves(name, &entry.record));
            self.cause = moved.map(Causing::Entry);
            self.depth = 0;
            self.line = line;
            let session = self.session(name)?;
            self.place = Some((name.clone(), Some(session.iteration).filter(|iteration| *iteration > 0)));
            match session.step_at(Some(self.origin.at)) {
                Step::Wait(_) => return Ok(()),
                Step::SkipHook(effect) => match self.draft.effect(effect)?.is_some_and(|effect| effect.attempts == 0) {
                    true => {
                        let here = (self.cause, self.depth);
                        self.skip_effect(effect)?;
                        (self.cause, self.depth) = here;
                    }
                    // Its owner still has to report how it ended.
                    false => return Ok(()),
                },
                Step::StartIteration => {
                    self.advance_series_with_loop(&session)?;
                    let run = session.run(session.iteration + 1);
                    let session = Session { iteration: run.iteration, ..session };
                    self.emit_session(&session, payload::IterationStarted { run })?;
                }
                // Pure hooks that have not run yet may make another task ready.
                Step::TakeTask if self.heard < self.entries.len() => {
                    self.waiting = Some(name.clone());
                    return Ok(());
                }
                Step::TakeTask => self.take_task(&session)?,
                Step::LeaveTask(leave) => self.leave_task(&session, leave)?,
                Step::Submit(closing) => self.submit_in_place(&session, &closing)?,
                Step::PassSubmission => self.pass_submission(&session)?,
                Step::StartMerge => self.start_merge(&session)?,
                Step::FailGate => self.fail_gate(&session)?,
                Step::HearFirst => self.hear_first(&session)?,
                Step::EndWithout(closing) => self.end_without(&session, closing)?,
                Step::StartTurn(run, purpose) => self.start_turn(&session, run, purpose)?,
                Step::DecideGate(run, decision) => {
                    let decision = self.guard_series(&session, decision)?;
                    let retries = session.retries + u32::from(decision == Decision::SendBack);
                    let (verdict, reason, max_retries) =
                        (session.verdict, session.block_reason(), session.most_send_backs());
                    let decided = payload::GateDecided { run, verdict, decision, retries, max_retries, reason };
                    self.emit_session(&session, decided)?;
                }
                Step::CompleteIteration(run) => {
                    let used = session.watch.used_in_iteration;
                    self.emit_session(&session, payload::IterationCompleted { run, used })?;
                }
                Step::InterruptIteration(run) => {
                    let (record, usage) = (None, Usage::default());
                    self.emit_session(&session, payload::IterationInterrupted { run, record, usage })?;
                }
                Step::End(closing) => self.end_session(&session, closing)?,
            }
        }
    }

    pub(super) fn start_turn(&mut self, session: &Session, run: RunId, purpose: Purpose) -> Result<(), Refusal> {
        let feedback = session.pending.len().try_into().expect("each piece is an event of its own");
        let owner = session.owner.clone();
        self.emit_session(session, payload::TurnStarted { run, owner, purpose, feedback })
    }

    pub(super) fn end_session(&mut self, session: &Session, closing: Closing) -> Result<(), Refusal> {
        let Closing { ending, reason } = closing;
        let reasons: Vec<String> = reason.into_iter().chain(session.waivers.iter().cloned()).collect();
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        let unchecked = session.unchecked;
        self.emit_session(session, payload::SessionEnded { ending, reason, unchecked })
    }

    pub(super) fn session(&self, name: &SessionName) -> Result<Session, Refusal> {
        self.draft.session(name)?.ok_or_else(|| Refusal::UnknownSession(name.clone()))
    }

    pub(super) fn emit_session(&mut self, session: &Session, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = session.task.map_or(Node::System, Node::Task);
        let iteration = Some(session.iteration).filter(|iteration| *iteration > 0);
        self.emit_in(node, Some(session.name.clone()), iteration, event.into()).map(drop)
    }
}

/// Returns whether such an event lets a session continue. Events of a hook's actions may lie between it and the next step.
fn moves(name: &SessionName, record: &Record) -> bool {
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
