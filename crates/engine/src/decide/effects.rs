//! Commands about pending effects.

use serde_json::Value;

use super::lineage::Line;
use super::{Causing, Deciding};
use crate::command::HookReport;
use crate::command::limits::{Limits, check_bytes, check_text, check_value, gist};
use crate::command::refusal::Refusal;
use crate::delivery::Gate;
use crate::effects::hook_outcome::{HookClass, HookOutcome};
use crate::effects::hook_point::HookPoint;
use crate::effects::outbox::{EffectKind, PendingEffect, Recovery};
use crate::effects::share::sibling;
use crate::evaluation::NewCheckpoint;
use crate::log::event::{Event, Node, payload};
use crate::log::id::{EffectId, OwnerName, SessionName};
use crate::session::usage::Usage;
use crate::session::voice::Voice;
use crate::session::{Ending, Session, Verdict};
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn begin_effect(&mut self, id: EffectId, owner: &OwnerName) -> Result<(), Refusal> {
        let effect = self.pending(id)?;
        if effect.attempts > 0 {
            return Err(Refusal::IllegalEffect { effect: id, why: "has begun already" });
        }
        belongs_to(&effect, owner)?;
        if self.is_needless(&effect)? || self.is_to_wait(&effect)? {
            let why = "is for work that has been decided on, or is somebody else's now";
            return Err(Refusal::IllegalEffect { effect: id, why });
        }
        self.begin(&effect, owner, None)
    }

    /// Returns whether a hook belongs to a gate that no longer needs it, or that is gone.
    fn is_needless(&self, effect: &PendingEffect) -> Result<bool, Refusal> {
        let session = effect.session.as_ref().map(|name| self.draft.session(name)).transpose()?.flatten();
        Ok(session.is_some_and(|session| session.needs_no(effect.id)))
    }

    /// Returns whether a hook that has not begun belongs to a gate that waits for the agent to read a person's message.
    fn is_to_wait(&self, effect: &PendingEffect) -> Result<bool, Refusal> {
        let session = effect.session.as_ref().map(|name| self.draft.session(name)).transpose()?.flatten();
        Ok(effect.attempts == 0 && session.is_some_and(|session| session.need_not_begin(effect.id)))
    }

    /// Records the end of an attempt before its hook waits for the next one: a crash during the wait interrupts nothing.
    pub(super) fn rest_effect(&mut self, id: EffectId, owner: &OwnerName, error: &str) -> Result<(), Refusal> {
        check_bytes("the failure", error, Limits::REASON)?;
        let effect = self.begun(id, owner)?;
        if effect.resting.is_some() {
            return Err(Refusal::IllegalEffect { effect: id, why: "already waits to be tried again" });
        }
        let (hook, attempt, error) = (hook_name(&effect)?, effect.attempts, error.to_owned());
        self.begin_line(Line::beginning(&effect));
        self.because_of(&effect);
        self.emit_of(&effect, payload::HookRetrying { effect: id, hook, attempt, error })
    }

    pub(super) fn retry_effect(&mut self, id: EffectId, owner: &OwnerName, after: &str) -> Result<(), Refusal> {
        check_bytes("the failure", after, Limits::REASON)?;
        let effect = self.begun(id, owner)?;
        self.begin(&effect, owner, Some(after))
    }

    /// Records how a hook ended. An owner that was taken for dead meanwhile is refused.
    pub(super) fn finish_effect(
        &mut self,
        id: EffectId,
        owner: &OwnerName,
        report: &HookReport,
    ) -> Result<(), Refusal> {
        check_bytes("the message", report.message.as_deref().unwrap_or_default(), Limits::REASON)?;
        check_bytes("the record", report.record.as_deref().unwrap_or_default(), Limits::REASON)?;
        check_value("the context", &report.context.clone().into())?;
        if let Some(feedback) = &report.feedback {
            check_text("the feedback", feedback, Limits::FEEDBACK)?;
        }
        check_bytes("a commit", report.head.as_deref().unwrap_or_default(), Limits::LABEL)?;
        let effect = self.begun(id, owner)?;
        self.end(&effect, report)
    }

    /// Returns a hook that its owner has begun.
    pub(super) fn begun(&self, id: EffectId, owner: &OwnerName) -> Result<PendingEffect, Refusal> {
        let effect = self.pending(id)?;
        if effect.attempts == 0 {
            return Err(Refusal::IllegalEffect { effect: id, why: "has not begun" });
        }
        belongs_to(&effect, owner)?;
        Ok(effect)
    }

    /// Continues the session of a hook, with the hook's feedback to its agent.
    fn go_on_after(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let Some(session) = self.listener(effect)? else { return Ok(()) };
        let hook = hook_name(effect)?;
        self.because_of(effect);
        if let Some(text) = report.feedback.as_ref().filter(|_| is_heard(&session, effect, report)) {
            let (source, text, passing) = (hook.clone(), text.clone(), is_passing(effect));
            let blocks = report.outcome == HookOutcome::Block;
            let reason = blocks.then(|| gist(report.message.as_deref().unwrap_or(&text)));
            let queued = payload::FeedbackQueued {
                source,
                text,
                reason,
                own: report.own.as_deref().copied(),
                passing,
                voice: Voice::Hook,
            };
            self.emit_for(effect, &session, queued)?;
        }
        if effect.session.is_none() {
            return Ok(());
        }
        if self.stops.is_some() {
            let reason = Some(match &report.message {
                Some(message) => format!("`{hook}` asks for a person: {message}"),
                None => format!("`{hook}` asks for a person"),
            });
            self.emit_of(effect, payload::SessionStopping { ending: Ending::Escalated, reason, commits: vec![] })?;
        }
        self.advance(&session.name)
    }

    /// Returns the session that receives a hook's feedback: that of its event, else the one that holds the task.
    fn listener(&self, effect: &PendingEffect) -> Result<Option<Session>, Refusal> {
        let holder = || -> Result<Option<SessionName>, Refusal> {
            let task = effect.task.map(|id| self.draft.task(id)).transpose()?.flatten();
            Ok(task.and_then(|task| task.lease).and_then(|lease| lease.session))
        };
        let name = effect.session.clone().map_or_else(holder, |name| Ok(Some(name)))?;
        Ok(name.map(|name| self.draft.session(&name)).transpose()?.flatten())
    }

    /// Emits an event of a session about the node of the effect.
    fn emit_for(&mut self, effect: &PendingEffect, session: &Session, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = effect.task.map_or(Node::System, Node::Task);
        let iteration =
            if effect.session.is_some() { effect.iteration } else { Some(session.iteration).filter(|n| *n > 0) };
        self.emit_in(node, Some(session.name.clone()), iteration, event.into()).map(drop)
    }

    /// Ends a hook that never began, because nothing waits for it any more.
    pub(super) fn skip_effect(&mut self, id: EffectId) -> Result<(), Refusal> {
        let effect = self.pending(id)?;
        self.finish(&effect, &HookOutcome::Skip.into())
    }

    /// Takes over an effect of a dead owner, by the table of interrupted effects.
    pub(super) fn recover_effect(&mut self, id: EffectId, dead: &OwnerName, owner: &OwnerName) -> Result<(), Refusal> {
        let effect = self.pending(id)?;
        belongs_to(&effect, dead)?;
        match effect.recovery() {
            Recovery::EndIteration => self.recover_turn(&effect, owner),
            _ if self.is_in_vain(&effect)? || self.is_needless(&effect)? => self.interrupt(&effect),
            _ if self.is_to_wait(&effect)? => self.end(&effect, &HookOutcome::Skip.into()),
            Recovery::Record(_) => self.interrupt(&effect),
            Recovery::Run | Recovery::RunAgain | Recovery::GoOn | Recovery::LookThenAct | Recovery::SendAgain => {
                self.begin(&effect, owner, effect.resting.as_deref())
            }
        }
    }

    fn recover_turn(&mut self, effect: &PendingEffect, owner: &OwnerName) -> Result<(), Refusal> {
        let refuse = |why| Err(Refusal::IllegalEffect { effect: effect.id, why });
        match &effect.kind {
            EffectKind::Hook(_) => refuse("is no turn"),
            // The session's owner runs the next turn, so it has to be alive.
            EffectKind::Turn { session, .. } if self.session(session)?.owner != *owner => {
                refuse("is a turn of a session that has to be resumed first")
            }
            EffectKind::Turn { run, .. } => self.interrupt_turn(run, None, Usage::default()),
        }
    }

    /// Returns whether a hook belongs to a session that is about to end. Such a session waits only for the hooks of its
    /// end.
    fn is_in_vain(&self, effect: &PendingEffect) -> Result<bool, Refusal> {
        let Some(name) = &effect.session else { return Ok(false) };
        let session = self.draft.session(name)?;
        let ending = |session: &Session| session.stopping.is_some() && session.ended().is_none();
        Ok(session.is_some_and(|session| ending(&session) && session.owed.contains(&effect.id)))
    }

    /// Records that a hook was interrupted and will not run again.
    fn interrupt(&mut self, effect: &PendingEffect) -> Result<(), Refusal> {
        self.end(effect, &HookOutcome::Interrupted.into())
    }

    fn end(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let stops = |session: &Session| {
            asks_for_a_person(effect, report.outcome) && session.ended().is_none() && session.stopping.is_none()
        };
        self.stops =
            self.listener(effect)?.filter(|_| effect.session.is_some()).filter(stops).map(|session| session.name);
        self.finish(effect, report)?;
        self.go_on_after(effect, report)
    }

    /// Sets the effect as the cause of the next events, at the depth of the effect.
    pub(super) fn because_of(&mut self, effect: &PendingEffect) {
        (self.cause, self.depth) = (Some(Causing::At(effect.id.seq)), effect.depth);
    }

    /// Emits an event in the place where the effect was created.
    pub(super) fn emit_of(&mut self, effect: &PendingEffect, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = effect.task.map_or(Node::System, Node::Task);
        self.emit_in(node, effect.session.clone(), effect.iteration, event.into()).map(drop)
    }

    fn pending(&self, id: EffectId) -> Result<PendingEffect, Refusal> {
        self.draft.effect(id)?.ok_or(Refusal::UnknownEffect(id))
    }

    fn begin(&mut self, effect: &PendingEffect, owner: &OwnerName, after: Option<&str>) -> Result<(), Refusal> {
        let hook = hook_name(effect)?;
        self.begin_line(Line::beginning(effect));
        self.because_of(effect);
        let (owner, attempt, after) = (owner.clone(), effect.attempts + 1, after.map(str::to_owned));
        self.emit_of(effect, payload::HookStarted { effect: effect.id, hook, owner, attempt, after })
    }

    fn finish(&mut self, effect: &PendingEffect, report: &HookReport) -> Result<(), Refusal> {
        let hook = hook_name(effect)?;
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
        let is_last = sibling(&self.draft, effect.id)?.is_none();
        self.begin_line(Line::ending(effect));
        self.because_of(effect);
        let heard = self.listener(effect)?.is_some_and(|session| is_heard(&session, effect, report));
        let feedback = report.feedback.clone().filter(|_| !heard);
        let failure = failure(&hook, effect.id, report);
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
        self.emit_of(effect, finished)?;
        let finished = self.entries.len() - 1;
        if report.change.is_some() {
            let line = self.line;
            self.cause = Some(Causing::Entry(finished));
            if !is_last {
                self.begin_line(Line::beginning(effect));
            }
            self.ended = Some(effect.id);
            self.record_change(effect, report)?;
            (self.line, self.ended) = (line, None);
        }
        if let Some(failure) = failure {
            self.cause = Some(Causing::Entry(finished));
            self.emit_of(effect, failure)?;
        }
        if let Some(data) = checkpoint.filter(|_| outcome == HookOutcome::Continue) {
            self.cause = Some(Causing::Entry(finished));
            self.keep_checkpoint(effect, report, &data)?;
        }
        if !is_last {
            return Ok(());
        }
        self.place = effect.session.clone().map(|session| (session, effect.iteration));
        effect.carried.iter().chain(&wanted).try_for_each(|request| self.act_on(finished, request))
    }

    /// Creates the checkpoint that a hook asks for with `continue`. A failure to create it is an error of the hook.
    fn keep_checkpoint(&mut self, effect: &PendingEffect, report: &HookReport, data: &Value) -> Result<(), Refusal> {
        let session = effect.session.as_ref().map(|name| self.draft.session(name)).transpose()?.flatten();
        let Some(task) = effect.task.or(session.and_then(|session| session.task)) else { return Ok(()) };
        let mut new = NewCheckpoint::of_hook(data);
        new.execution_step = new.execution_step.or(effect.iteration.map(u64::from));
        match self.create_checkpoint(task, &new) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                let (hook_name, error) = (hook_name(effect)?, format!("checkpointData: {refusal}"));
                let original_event = report.event.clone().unwrap_or_default();
                self.emit_of(effect, payload::HookError { hook_name, error, original_event, effect: Some(effect.id) })
            }
        }
    }
}

/// Returns whether the agent receives a hook's feedback. It does not if the session has ended, if the hook asks for a person, if
/// a person wants the hook ignored, if a gate could not run, or if the agent's own hook system called: that is answered at once.
fn is_heard(session: &Session, effect: &PendingEffect, report: &HookReport) -> bool {
    let EffectKind::Hook(hook) = &effect.kind else { return false };
    let outcome = report.outcome;
    let is_broken_gate = report.unstarted && hook.class == HookClass::Gate;
    // A gate's objection is told later, when it is known who has to fix the work.
    let judged = Gate::of(hook).is_some() && !matches!(outcome, HookOutcome::Success | HookOutcome::Skip);
    let unheard = hook.class == HookClass::Bridge || judged || session.overlooks(hook, outcome);
    session.ended().is_none() && outcome != HookOutcome::Escalate && !is_broken_gate && !unheard
}

/// Returns the record of a hook's own failure.
fn failure(hook: &str, effect: EffectId, report: &HookReport) -> Option<payload::HookError> {
    let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut);
    let original_event = report.event.clone().filter(|_| failed)?;
    let error = report.message.clone().unwrap_or_else(|| "it failed".to_owned());
    Some(payload::HookError { hook_name: hook.to_owned(), error, original_event, effect: Some(effect) })
}

/// Returns whether a hook's feedback is about the present iteration alone.
fn is_passing(effect: &PendingEffect) -> bool {
    matches!(&effect.kind, EffectKind::Hook(hook) if hook.point == HookPoint::PreIteration)
}

fn belongs_to(effect: &PendingEffect, owner: &OwnerName) -> Result<(), Refusal> {
    if effect.owner == *owner {
        return Ok(());
    }
    Err(Refusal::IllegalEffect { effect: effect.id, why: "is somebody else's" })
}

/// Returns whether a hook that judges no turn asks to end the session for a person.
fn asks_for_a_person(effect: &PendingEffect, outcome: HookOutcome) -> bool {
    let EffectKind::Hook(hook) = &effect.kind else { return false };
    hook.class != HookClass::Gate
        && Gate::of(hook).is_none()
        && Verdict::of(outcome, hook.on_failure) == Verdict::Escalate
}

/// Returns the name of a hook. Turns begin and end with their iteration, not by the commands for hooks.
fn hook_name(effect: &PendingEffect) -> Result<String, Refusal> {
    match &effect.kind {
        EffectKind::Hook(hook) => Ok(hook.hook.clone()),
        EffectKind::Turn { .. } => Err(Refusal::IllegalEffect { effect: effect.id, why: "is a turn, not a hook" }),
    }
}
