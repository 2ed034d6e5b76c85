//! Commands about pending effects.

use serde_json::Value;

use super::cascade_budget::CascadeBudget;
use super::{CauseRef, DecisionContext};
use crate::command::HookReport;
use crate::command::limits::{
    EngineLimits, check_json_value, check_nonblank_text, check_text_size, extract_summary_line,
};
use crate::command::refusal::Refusal;
use crate::delivery::DeliveryGate;
use crate::effects::hook_outcome::{HookClass, HookOutcome};
use crate::effects::hook_point::HookPoint;
use crate::effects::outbox::{EffectKind, PendingEffect, RecoveryAction};
use crate::effects::share::find_sibling_effect;
use crate::evaluation::NewCheckpoint;
use crate::log::event::{Event, EventSubject, payload};
use crate::log::id::{EffectId, OwnerName, SessionName};
use crate::session::message_author::MessageAuthor;
use crate::session::usage::AgentUsage;
use crate::session::{GateVerdict, Session, SessionEndKind};
use crate::view::StateView;

impl DecisionContext<'_, '_> {
    pub(super) fn begin_effect(&mut self, id: EffectId, owner: &OwnerName) -> Result<(), Refusal> {
        let effect = self.require_effect(id)?;
        if effect.attempts > 0 {
            return Err(Refusal::IllegalEffect { effect: id, why: "has begun already" });
        }
        check_effect_owner(&effect, owner)?;
        if self.is_hook_needless(&effect)? || self.must_wait_for_person(&effect)? {
            let why = "is for work that is decided already, or belongs to another session now";
            return Err(Refusal::IllegalEffect { effect: id, why });
        }
        self.start_hook_attempt(&effect, owner, None)
    }

    /// Returns whether a hook belongs to a gate that no longer needs it, or that is gone.
    fn is_hook_needless(&self, effect: &PendingEffect) -> Result<bool, Refusal> {
        let session = effect.session.as_ref().map(|name| self.draft.find_session(name)).transpose()?.flatten();
        Ok(session.is_some_and(|session| session.may_skip_hook(effect.id)))
    }

    /// Returns whether a hook that has not begun belongs to a gate that waits for the agent to read a person's message.
    fn must_wait_for_person(&self, effect: &PendingEffect) -> Result<bool, Refusal> {
        let session = effect.session.as_ref().map(|name| self.draft.find_session(name)).transpose()?.flatten();
        Ok(effect.attempts == 0 && session.is_some_and(|session| session.may_skip_unstarted_hook(effect.id)))
    }

    /// Records the end of an attempt before its hook waits for the next one: a crash during the wait interrupts nothing.
    pub(super) fn rest_effect(&mut self, id: EffectId, owner: &OwnerName, error: &str) -> Result<(), Refusal> {
        check_text_size("the failure", error, EngineLimits::REASON_BYTES)?;
        let effect = self.require_begun_effect(id, owner)?;
        if effect.resting.is_some() {
            return Err(Refusal::IllegalEffect { effect: id, why: "already waits for its next attempt" });
        }
        let (hook, attempt, error) = (require_hook_name(&effect)?, effect.attempts, error.to_owned());
        self.begin_budget(CascadeBudget::for_hook_start(&effect));
        self.set_effect_cause(&effect);
        self.emit_effect_event(&effect, payload::HookRetrying { effect: id, hook, attempt, error })
    }

    pub(super) fn retry_effect(&mut self, id: EffectId, owner: &OwnerName, after: &str) -> Result<(), Refusal> {
        check_text_size("the failure", after, EngineLimits::REASON_BYTES)?;
        let effect = self.require_begun_effect(id, owner)?;
        self.start_hook_attempt(&effect, owner, Some(after))
    }

    /// Records how a hook ended. An owner that was taken for dead meanwhile is refused.
    pub(super) fn finish_effect(
        &mut self,
        id: EffectId,
        owner: &OwnerName,
        report: &HookReport,
    ) -> Result<(), Refusal> {
        check_text_size("the message", report.message.as_deref().unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        check_text_size("the record", report.record.as_deref().unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        check_json_value("the context", &report.context.clone().into())?;
        if let Some(feedback) = &report.feedback {
            check_nonblank_text("the feedback", feedback, EngineLimits::FEEDBACK_BYTES)?;
        }
        check_text_size("a commit", report.head.as_deref().unwrap_or_default(), EngineLimits::LABEL_BYTES)?;
        let effect = self.require_begun_effect(id, owner)?;
        self.end_hook(&effect, report)
    }

    /// Returns a hook that its owner has begun.
    pub(super) fn require_begun_effect(&self, id: EffectId, owner: &OwnerName) -> Result<PendingEffect, Refusal> {
        let effect = self.require_effect(id)?;
        if effect.attempts == 0 {
            return Err(Refusal::IllegalEffect { effect: id, why: "has not begun" });
        }
        check_effect_owner(&effect, owner)?;
        Ok(effect)
    }

    /// Continues the session of a hook, with the hook's feedback to its agent.
    fn continue_session_after(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let Some(session) = self.find_listening_session(effect)? else { return Ok(()) };
        let hook = require_hook_name(effect)?;
        self.set_effect_cause(effect);
        if let Some(text) = report.feedback.as_ref().filter(|_| is_feedback_heard(&session, effect, report)) {
            let (source, text, passing) = (hook.clone(), text.clone(), is_passing_feedback(effect));
            let blocks = report.outcome == HookOutcome::Block;
            let reason = blocks.then(|| extract_summary_line(report.message.as_deref().unwrap_or(&text)));
            let queued = payload::FeedbackQueued {
                source,
                text,
                reason,
                own: report.own.as_deref().copied(),
                passing,
                voice: MessageAuthor::Hook,
            };
            self.emit_for_session(effect, &session, queued)?;
        }
        if effect.session.is_none() {
            return Ok(());
        }
        if self.stopping_session.is_some() {
            let reason = Some(match &report.message {
                Some(message) => format!("`{hook}` asks for a person: {message}"),
                None => format!("`{hook}` asks for a person"),
            });
            self.emit_effect_event(
                effect,
                payload::SessionStopping { ending: SessionEndKind::Escalated, reason, commits: vec![] },
            )?;
        }
        self.decide_next_steps(&session.name)
    }

    /// Returns the session that receives a hook's feedback: that of its event, else the one that holds the task.
    fn find_listening_session(&self, effect: &PendingEffect) -> Result<Option<Session>, Refusal> {
        let holder = || -> Result<Option<SessionName>, Refusal> {
            let task = effect.task.map(|id| self.draft.find_task(id)).transpose()?.flatten();
            Ok(task.and_then(|task| task.lease).and_then(|lease| lease.session))
        };
        let name = effect.session.clone().map_or_else(holder, |name| Ok(Some(name)))?;
        Ok(name.map(|name| self.draft.find_session(&name)).transpose()?.flatten())
    }

    /// Emits an event of a session about the node of the effect.
    fn emit_for_session(
        &mut self,
        effect: &PendingEffect,
        session: &Session,
        event: impl Into<Event>,
    ) -> Result<(), Refusal> {
        let node = effect.task.map_or(EventSubject::System, EventSubject::Task);
        let iteration =
            if effect.session.is_some() { effect.iteration } else { Some(session.iteration).filter(|n| *n > 0) };
        self.emit_event_in(node, Some(session.name.clone()), iteration, event.into()).map(drop)
    }

    /// Ends a hook that never began, because nothing waits for it any more.
    pub(super) fn skip_effect(&mut self, id: EffectId) -> Result<(), Refusal> {
        let effect = self.require_effect(id)?;
        self.finish_hook(&effect, &HookOutcome::Skip.into())
    }

    /// Takes over an effect of a dead owner, by the table of interrupted effects.
    pub(super) fn recover_effect(&mut self, id: EffectId, dead: &OwnerName, owner: &OwnerName) -> Result<(), Refusal> {
        let effect = self.require_effect(id)?;
        check_effect_owner(&effect, dead)?;
        match effect.recovery_action() {
            RecoveryAction::EndIteration => self.recover_turn(&effect, owner),
            _ if self.is_for_ending_session(&effect)? || self.is_hook_needless(&effect)? => {
                self.interrupt_hook(&effect)
            }
            _ if self.must_wait_for_person(&effect)? => self.end_hook(&effect, &HookOutcome::Skip.into()),
            RecoveryAction::Record(_) => self.interrupt_hook(&effect),
            RecoveryAction::Run
            | RecoveryAction::RunAgain
            | RecoveryAction::Continue
            | RecoveryAction::CheckThenRun
            | RecoveryAction::SendAgain => self.start_hook_attempt(&effect, owner, effect.resting.as_deref()),
        }
    }

    fn recover_turn(&mut self, effect: &PendingEffect, owner: &OwnerName) -> Result<(), Refusal> {
        let refuse = |why| Err(Refusal::IllegalEffect { effect: effect.id, why });
        match &effect.kind {
            EffectKind::Hook(_) => refuse("is not a turn"),
            // The session's owner runs the next turn, so it has to be alive.
            EffectKind::Turn { session, .. } if self.require_session(session)?.owner != *owner => {
                refuse("is a turn of a session that has to be resumed first")
            }
            EffectKind::Turn { run, .. } => self.interrupt_turn(run, None, AgentUsage::default()),
        }
    }

    /// Returns whether a hook belongs to a session that is about to end. Such a session waits only for the hooks of its
    /// end.
    fn is_for_ending_session(&self, effect: &PendingEffect) -> Result<bool, Refusal> {
        let Some(name) = &effect.session else { return Ok(false) };
        let session = self.draft.find_session(name)?;
        let ending = |session: &Session| session.stopping.is_some() && session.ending_kind().is_none();
        Ok(session.is_some_and(|session| ending(&session) && session.pending_hooks.contains(&effect.id)))
    }

    /// Records that a hook was interrupted and will not run again.
    fn interrupt_hook(&mut self, effect: &PendingEffect) -> Result<(), Refusal> {
        self.end_hook(effect, &HookOutcome::Interrupted.into())
    }

    fn end_hook(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let stops = |session: &Session| {
            asks_for_person(effect, report.outcome) && session.ending_kind().is_none() && session.stopping.is_none()
        };
        self.stopping_session = self
            .find_listening_session(effect)?
            .filter(|_| effect.session.is_some())
            .filter(stops)
            .map(|session| session.name);
        self.finish_hook(effect, report)?;
        self.continue_session_after(effect, report)
    }

    /// Sets the effect as the cause of the next events, at the depth of the effect.
    pub(super) fn set_effect_cause(&mut self, effect: &PendingEffect) {
        (self.cause, self.depth) = (Some(CauseRef::At(effect.id.seq)), effect.depth);
    }

    /// Emits an event in the place where the effect was created.
    pub(super) fn emit_effect_event(&mut self, effect: &PendingEffect, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = effect.task.map_or(EventSubject::System, EventSubject::Task);
        self.emit_event_in(node, effect.session.clone(), effect.iteration, event.into()).map(drop)
    }

    fn require_effect(&self, id: EffectId) -> Result<PendingEffect, Refusal> {
        self.draft.find_effect(id)?.ok_or(Refusal::UnknownEffect(id))
    }

    fn start_hook_attempt(
        &mut self,
        effect: &PendingEffect,
        owner: &OwnerName,
        after: Option<&str>,
    ) -> Result<(), Refusal> {
        let hook = require_hook_name(effect)?;
        self.begin_budget(CascadeBudget::for_hook_start(effect));
        self.set_effect_cause(effect);
        let (owner, attempt, after) = (owner.clone(), effect.attempts + 1, after.map(str::to_owned));
        self.emit_effect_event(effect, payload::HookStarted { effect: effect.id, hook, owner, attempt, after })
    }

    fn finish_hook(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let hook = require_hook_name(effect)?;
        let HookReport {
            outcome,
            message,
            record,
            took,
            actions,
            context,
            approved,
            used,
            head,
            unstarted,
            results,
            checkpoint,
            ..
        } = report.clone();
        let duration_ms = took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        let is_last = find_sibling_effect(&self.draft, effect.id)?.is_none();
        self.begin_budget(CascadeBudget::for_hook_end(effect));
        self.set_effect_cause(effect);
        let heard =
            self.find_listening_session(effect)?.is_some_and(|session| is_feedback_heard(&session, effect, report));
        let feedback = report.feedback.clone().filter(|_| !heard);
        let failure = build_failure_event(&hook, effect.id, report);
        let (id, wanted) = (effect.id, actions.clone());
        let finished = payload::HookFinished {
            effect: id,
            hook,
            outcome,
            message,
            feedback,
            duration_ms,
            record,
            actions,
            context,
            approved,
            used,
            head,
            unstarted,
            results,
        };
        self.emit_effect_event(effect, finished)?;
        let finished = self.entries.len() - 1;
        if report.change.is_some() {
            let line = self.budget_index;
            self.cause = Some(CauseRef::Entry(finished));
            if !is_last {
                self.begin_budget(CascadeBudget::for_hook_start(effect));
            }
            self.ended_hook = Some(effect.id);
            self.record_task_change(effect, report)?;
            (self.budget_index, self.ended_hook) = (line, None);
        }
        if let Some(failure) = failure {
            self.cause = Some(CauseRef::Entry(finished));
            self.emit_effect_event(effect, failure)?;
        }
        if let Some(data) = checkpoint.filter(|_| outcome == HookOutcome::Continue) {
            self.cause = Some(CauseRef::Entry(finished));
            self.create_hook_checkpoint(effect, report, &data)?;
        }
        if !is_last {
            return Ok(());
        }
        self.session_scope = effect.session.clone().map(|session| (session, effect.iteration));
        effect.carried.iter().chain(&wanted).try_for_each(|request| self.perform_hook_request(finished, request))
    }

    /// Creates the checkpoint that a hook asks for with `continue`. A failure to create it is an error of the hook.
    fn create_hook_checkpoint(
        &mut self,
        effect: &PendingEffect,
        report: &HookReport,
        data: &Value,
    ) -> Result<(), Refusal> {
        let session = effect.session.as_ref().map(|name| self.draft.find_session(name)).transpose()?.flatten();
        let Some(task) = effect.task.or(session.and_then(|session| session.task)) else { return Ok(()) };
        let mut new = NewCheckpoint::from_hook_data(data);
        new.execution_step = new.execution_step.or(effect.iteration.map(u64::from));
        match self.create_checkpoint(task, &new) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                let (hook_name, error) = (require_hook_name(effect)?, format!("checkpointData: {refusal}"));
                let original_event = report.event.clone().unwrap_or_default();
                self.emit_effect_event(
                    effect,
                    payload::HookError { hook_name, error, original_event, effect: Some(effect.id) },
                )
            }
        }
    }
}

/// Returns whether the agent receives a hook's feedback. It does not if the session has ended, if the hook asks for a person, if
/// a person wants the hook ignored, if a gate could not run, or if the agent's own hook system called: that is answered at once.
fn is_feedback_heard(session: &Session, effect: &PendingEffect, report: &HookReport) -> bool {
    let EffectKind::Hook(hook) = &effect.kind else { return false };
    let outcome = report.outcome;
    let is_broken_gate = report.unstarted && hook.class == HookClass::Gate;
    // A gate's objection is told later, when it is known who has to fix the work.
    let judged =
        DeliveryGate::of_hook_effect(hook).is_some() && !matches!(outcome, HookOutcome::Success | HookOutcome::Skip);
    let unheard = hook.class == HookClass::Bridge || judged || session.ignores_hook_result(hook, outcome);
    session.ending_kind().is_none() && outcome != HookOutcome::Escalate && !is_broken_gate && !unheard
}

/// Returns the record of a hook's own failure.
fn build_failure_event(hook: &str, effect: EffectId, report: &HookReport) -> Option<payload::HookError> {
    let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut);
    let original_event = report.event.clone().filter(|_| failed)?;
    let error = report.message.clone().unwrap_or_else(|| "it failed".to_owned());
    Some(payload::HookError { hook_name: hook.to_owned(), error, original_event, effect: Some(effect) })
}

/// Returns whether a hook's feedback is about the present iteration alone.
fn is_passing_feedback(effect: &PendingEffect) -> bool {
    matches!(&effect.kind, EffectKind::Hook(hook) if hook.point == HookPoint::PreIteration)
}

fn check_effect_owner(effect: &PendingEffect, owner: &OwnerName) -> Result<(), Refusal> {
    if effect.owner == *owner {
        return Ok(());
    }
    Err(Refusal::IllegalEffect { effect: effect.id, why: "belongs to another process" })
}

/// Returns whether a hook that judges no turn asks to end the session for a person.
fn asks_for_person(effect: &PendingEffect, outcome: HookOutcome) -> bool {
    let EffectKind::Hook(hook) = &effect.kind else { return false };
    hook.class != HookClass::Gate
        && DeliveryGate::of_hook_effect(hook).is_none()
        && GateVerdict::from_hook_outcome(outcome, hook.on_failure) == GateVerdict::Escalate
}

/// Returns the name of a hook. Turns begin and end with their iteration, not by the commands for hooks.
fn require_hook_name(effect: &PendingEffect) -> Result<String, Refusal> {
    match &effect.kind {
        EffectKind::Hook(hook) => Ok(hook.hook.clone()),
        EffectKind::Turn { .. } => Err(Refusal::IllegalEffect { effect: effect.id, why: "is a turn, not a hook" }),
    }
}
