//! Commands about work that is owed.

use serde_json::Value;

use super::lineage::Line;
use super::{Causing, Deciding};
use crate::command::HookReport;
use crate::command::limits::{Limits, check_bytes, check_text, check_value, gist};
use crate::command::refusal::Refusal;
use crate::delivery::Gate;
use crate::effects::hook_point::HookPoint;
use crate::effects::outbox::{Debt, Effect, HookClass, HookOutcome, Recovery, sibling};
use crate::evaluation::NewCheckpoint;
use crate::log::event::{Event, Node, payload};
use crate::log::id::{DebtId, OwnerName, SessionName};
use crate::session::usage::Usage;
use crate::session::voice::Voice;
use crate::session::{Ending, Session, Verdict};
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn begin_effect(&mut self, id: DebtId, owner: &OwnerName) -> Result<(), Refusal> {
        let debt = self.owed(id)?;
        if debt.attempts > 0 {
            return Err(Refusal::IllegalEffect { debt: id, why: "has begun already" });
        }
        belongs_to(&debt, owner)?;
        if self.is_needless(&debt)? || self.is_to_wait(&debt)? {
            let why = "is for work that has been decided on, or is somebody else's now";
            return Err(Refusal::IllegalEffect { debt: id, why });
        }
        self.begin(&debt, owner, None)
    }

    /// Whether a hook stands at a gate that is decided without it, or nobody's any more.
    fn is_needless(&self, debt: &Debt) -> Result<bool, Refusal> {
        let session = debt.session.as_ref().map(|name| self.draft.session(name)).transpose()?.flatten();
        Ok(session.is_some_and(|session| session.needs_no(debt.id)))
    }

    /// Whether a hook that has not begun stands at a gate before which a person is to be heard.
    fn is_to_wait(&self, debt: &Debt) -> Result<bool, Refusal> {
        let session = debt.session.as_ref().map(|name| self.draft.session(name)).transpose()?.flatten();
        Ok(debt.attempts == 0 && session.is_some_and(|session| session.need_not_begin(debt.id)))
    }

    /// Records that an attempt is over before its hook waits for the next one: a crash meanwhile interrupts nothing.
    pub(super) fn rest_effect(&mut self, id: DebtId, owner: &OwnerName, error: &str) -> Result<(), Refusal> {
        check_bytes("the failure", error, Limits::REASON)?;
        let debt = self.begun(id, owner)?;
        if debt.resting.is_some() {
            return Err(Refusal::IllegalEffect { debt: id, why: "already waits to be tried again" });
        }
        let (hook, attempt, error) = (hook_name(&debt)?, debt.attempts, error.to_owned());
        self.begin_line(Line::beginning(&debt));
        self.because_of(&debt);
        self.emit_of(&debt, payload::HookRetrying { debt: id, hook, attempt, error })
    }

    pub(super) fn retry_effect(&mut self, id: DebtId, owner: &OwnerName, after: &str) -> Result<(), Refusal> {
        check_bytes("the failure", after, Limits::REASON)?;
        let debt = self.begun(id, owner)?;
        self.begin(&debt, owner, Some(after))
    }

    /// Says how it ended. Whoever was taken for dead meanwhile has no say any more.
    pub(super) fn finish_effect(&mut self, id: DebtId, owner: &OwnerName, report: &HookReport) -> Result<(), Refusal> {
        check_bytes("the message", report.message.as_deref().unwrap_or_default(), Limits::REASON)?;
        check_bytes("the record", report.record.as_deref().unwrap_or_default(), Limits::REASON)?;
        check_value("the context", &report.context.clone().into())?;
        if let Some(feedback) = &report.feedback {
            check_text("the feedback", feedback, Limits::FEEDBACK)?;
        }
        check_bytes("a commit", report.head.as_deref().unwrap_or_default(), Limits::LABEL)?;
        let debt = self.begun(id, owner)?;
        self.end(&debt, report)
    }

    /// A hook that its owner has begun.
    pub(super) fn begun(&self, id: DebtId, owner: &OwnerName) -> Result<Debt, Refusal> {
        let debt = self.owed(id)?;
        if debt.attempts == 0 {
            return Err(Refusal::IllegalEffect { debt: id, why: "has not begun" });
        }
        belongs_to(&debt, owner)?;
        Ok(debt)
    }

    /// Lets the session of a hook go on, with what the hook has to say to its agent.
    fn go_on_after(&mut self, debt: &Debt, report: &HookReport) -> Result<(), Refusal> {
        let Some(session) = self.listener(debt)? else { return Ok(()) };
        let hook = hook_name(debt)?;
        self.because_of(debt);
        if let Some(text) = report.feedback.as_ref().filter(|_| is_heard(&session, debt, report)) {
            let (source, text, passing) = (hook.clone(), text.clone(), is_passing(debt));
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
            self.emit_for(debt, &session, queued)?;
        }
        if debt.session.is_none() {
            return Ok(());
        }
        if self.stops.is_some() {
            let reason = Some(match &report.message {
                Some(message) => format!("`{hook}` asks for a person: {message}"),
                None => format!("`{hook}` asks for a person"),
            });
            self.emit_of(debt, payload::SessionStopping { ending: Ending::Escalated, reason, commits: vec![] })?;
        }
        self.advance(&session.name)
    }

    /// The session that hears what a hook has to say: that of its event, else the one that holds the task.
    fn listener(&self, debt: &Debt) -> Result<Option<Session>, Refusal> {
        let holder = || -> Result<Option<SessionName>, Refusal> {
            let task = debt.task.map(|id| self.draft.task(id)).transpose()?.flatten();
            Ok(task.and_then(|task| task.lease).and_then(|lease| lease.session))
        };
        let name = debt.session.clone().map_or_else(holder, |name| Ok(Some(name)))?;
        Ok(name.map(|name| self.draft.session(&name)).transpose()?.flatten())
    }

    /// Adds an event of a session about what the debt is about.
    fn emit_for(&mut self, debt: &Debt, session: &Session, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = debt.task.map_or(Node::System, Node::Task);
        let iteration =
            if debt.session.is_some() { debt.iteration } else { Some(session.iteration).filter(|n| *n > 0) };
        self.emit_in(node, Some(session.name.clone()), iteration, event.into()).map(drop)
    }

    /// Ends a hook that never began, because nobody waits for it any more.
    pub(super) fn skip_effect(&mut self, id: DebtId) -> Result<(), Refusal> {
        let debt = self.owed(id)?;
        self.finish(&debt, &HookOutcome::Skip.into())
    }

    /// Takes over what a dead owner left, as the table of interrupted effects says.
    pub(super) fn recover_effect(&mut self, id: DebtId, dead: &OwnerName, owner: &OwnerName) -> Result<(), Refusal> {
        let debt = self.owed(id)?;
        belongs_to(&debt, dead)?;
        match debt.recovery() {
            Recovery::EndIteration => self.recover_turn(&debt, owner),
            _ if self.is_in_vain(&debt)? || self.is_needless(&debt)? => self.interrupt(&debt),
            _ if self.is_to_wait(&debt)? => self.end(&debt, &HookOutcome::Skip.into()),
            Recovery::Record(_) => self.interrupt(&debt),
            Recovery::Run | Recovery::RunAgain | Recovery::GoOn | Recovery::LookThenAct | Recovery::SendAgain => {
                self.begin(&debt, owner, debt.resting.as_deref())
            }
        }
    }

    fn recover_turn(&mut self, debt: &Debt, owner: &OwnerName) -> Result<(), Refusal> {
        let refuse = |why| Err(Refusal::IllegalEffect { debt: debt.id, why });
        match &debt.effect {
            Effect::Hook(_) => refuse("is no turn"),
            // The next turn falls to whoever runs the session, and that must be somebody alive.
            Effect::Turn { session, .. } if self.session(session)?.owner != *owner => {
                refuse("is a turn of a session that has to be resumed first")
            }
            Effect::Turn { run, .. } => self.interrupt_turn(run, None, Usage::default()),
        }
    }

    /// Whether a hook belongs to a session that is about to end, which waits for no hook but those of its end.
    fn is_in_vain(&self, debt: &Debt) -> Result<bool, Refusal> {
        let Some(name) = &debt.session else { return Ok(false) };
        let session = self.draft.session(name)?;
        let ending = |session: &Session| session.stopping.is_some() && session.ended().is_none();
        Ok(session.is_some_and(|session| ending(&session) && session.owed.contains(&debt.id)))
    }

    /// Records that a hook was interrupted and will not run again.
    fn interrupt(&mut self, debt: &Debt) -> Result<(), Refusal> {
        self.end(debt, &HookOutcome::Interrupted.into())
    }

    fn end(&mut self, debt: &Debt, report: &HookReport) -> Result<(), Refusal> {
        let stops = |session: &Session| {
            asks_for_a_person(debt, report.outcome) && session.ended().is_none() && session.stopping.is_none()
        };
        self.stops = self.listener(debt)?.filter(|_| debt.session.is_some()).filter(stops).map(|session| session.name);
        self.finish(debt, report)?;
        self.go_on_after(debt, report)
    }

    /// What a debt leads to lies as deep as the debt.
    pub(super) fn because_of(&mut self, debt: &Debt) {
        (self.cause, self.depth) = (Some(Causing::At(debt.id.seq)), debt.depth);
    }

    /// Adds an event that belongs where the debt was made.
    pub(super) fn emit_of(&mut self, debt: &Debt, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = debt.task.map_or(Node::System, Node::Task);
        self.emit_in(node, debt.session.clone(), debt.iteration, event.into()).map(drop)
    }

    fn owed(&self, id: DebtId) -> Result<Debt, Refusal> {
        self.draft.debt(id)?.ok_or(Refusal::UnknownDebt(id))
    }

    fn begin(&mut self, debt: &Debt, owner: &OwnerName, after: Option<&str>) -> Result<(), Refusal> {
        let hook = hook_name(debt)?;
        self.begin_line(Line::beginning(debt));
        self.because_of(debt);
        let (owner, attempt, after) = (owner.clone(), debt.attempts + 1, after.map(str::to_owned));
        self.emit_of(debt, payload::HookStarted { debt: debt.id, hook, owner, attempt, after })
    }

    fn finish(&mut self, debt: &Debt, report: &HookReport) -> Result<(), Refusal> {
        let hook = hook_name(debt)?;
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
        let is_last = sibling(&self.draft, debt.id)?.is_none();
        self.begin_line(Line::ending(debt));
        self.because_of(debt);
        let heard = self.listener(debt)?.is_some_and(|session| is_heard(&session, debt, report));
        let feedback = report.feedback.clone().filter(|_| !heard);
        let failure = failure(&hook, debt.id, report);
        let (id, wanted) = (debt.id, actions.clone());
        let finished = payload::HookFinished {
            debt: id,
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
        self.emit_of(debt, finished)?;
        let finished = self.entries.len() - 1;
        if report.change.is_some() {
            let line = self.line;
            self.cause = Some(Causing::Entry(finished));
            if !is_last {
                self.begin_line(Line::beginning(debt));
            }
            self.ended = Some(debt.id);
            self.record_change(debt, report)?;
            (self.line, self.ended) = (line, None);
        }
        if let Some(failure) = failure {
            self.cause = Some(Causing::Entry(finished));
            self.emit_of(debt, failure)?;
        }
        if let Some(data) = checkpoint.filter(|_| outcome == HookOutcome::Continue) {
            self.cause = Some(Causing::Entry(finished));
            self.keep_checkpoint(debt, report, &data)?;
        }
        if !is_last {
            return Ok(());
        }
        self.place = debt.session.clone().map(|session| (session, debt.iteration));
        debt.carried.iter().chain(&wanted).try_for_each(|request| self.act_on(finished, request))
    }

    /// Makes the checkpoint that a hook asks for with `continue`. One that cannot be made is an error of the hook.
    fn keep_checkpoint(&mut self, debt: &Debt, report: &HookReport, data: &Value) -> Result<(), Refusal> {
        let session = debt.session.as_ref().map(|name| self.draft.session(name)).transpose()?.flatten();
        let Some(task) = debt.task.or(session.and_then(|session| session.task)) else { return Ok(()) };
        let mut new = NewCheckpoint::of_hook(data);
        new.execution_step = new.execution_step.or(debt.iteration.map(u64::from));
        match self.create_checkpoint(task, &new) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                let (hook_name, error) = (hook_name(debt)?, format!("checkpointData: {refusal}"));
                let original_event = report.event.clone().unwrap_or_default();
                self.emit_of(debt, payload::HookError { hook_name, error, original_event, debt: Some(debt.id) })
            }
        }
    }
}

/// Whether the agent gets to hear what a hook has to say: while there is one, and unless it is meant for a person, a person
/// wants it ignored, it tells of a gate that could not run, or the agent's own hook system has asked, which is answered at once.
fn is_heard(session: &Session, debt: &Debt, report: &HookReport) -> bool {
    let Effect::Hook(hook) = &debt.effect else { return false };
    let outcome = report.outcome;
    let is_broken_gate = report.unstarted && hook.class == HookClass::Gate;
    // What a gate has against the work is told when it is known who mends it.
    let judged = Gate::of(hook).is_some() && !matches!(outcome, HookOutcome::Success | HookOutcome::Skip);
    let unheard = hook.class == HookClass::Bridge || judged || session.overlooks(hook, outcome);
    session.ended().is_none() && outcome != HookOutcome::Escalate && !is_broken_gate && !unheard
}

/// What is recorded about a hook that has failed by itself.
fn failure(hook: &str, debt: DebtId, report: &HookReport) -> Option<payload::HookError> {
    let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut);
    let original_event = report.event.clone().filter(|_| failed)?;
    let error = report.message.clone().unwrap_or_else(|| "it failed".to_owned());
    Some(payload::HookError { hook_name: hook.to_owned(), error, original_event, debt: Some(debt) })
}

/// Whether what a hook says is about the present iteration alone.
fn is_passing(debt: &Debt) -> bool {
    matches!(&debt.effect, Effect::Hook(hook) if hook.point == HookPoint::PreIteration)
}

fn belongs_to(debt: &Debt, owner: &OwnerName) -> Result<(), Refusal> {
    if debt.owner == *owner {
        return Ok(());
    }
    Err(Refusal::IllegalEffect { debt: debt.id, why: "is somebody else's" })
}

/// Whether a hook that judges no turn wants the session to end for a person.
fn asks_for_a_person(debt: &Debt, outcome: HookOutcome) -> bool {
    let Effect::Hook(hook) = &debt.effect else { return false };
    hook.class != HookClass::Gate
        && Gate::of(hook).is_none()
        && Verdict::of(outcome, hook.on_failure) == Verdict::Escalate
}

/// Turns are begun and ended with their iteration, not by the commands for hooks.
fn hook_name(debt: &Debt) -> Result<String, Refusal> {
    match &debt.effect {
        Effect::Hook(hook) => Ok(hook.hook.clone()),
        Effect::Turn { .. } => Err(Refusal::IllegalEffect { debt: debt.id, why: "is a turn, not a hook" }),
    }
}
