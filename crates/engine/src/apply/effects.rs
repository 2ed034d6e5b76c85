//! The outbox: an event creates its effects, and the event that finishes an effect removes it.

use super::{ApplyError, Changes, Fold};
use crate::command::limits::gist;
use crate::effects::hook_batch::HookBatch;
use crate::effects::hook_outcome::{HookClass, HookOutcome};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::effects::share::{payer, sibling};
use crate::log::event::payload;
use crate::log::event_type::EventType;
use crate::log::id::{ConfigDigest, EffectId, OwnerName, SessionName};
use crate::session::{Blocker, Phase, Session, Verdict};
use crate::view::Change;

impl Fold<'_> {
    /// Returns an effect that this event creates.
    pub(super) fn made(&self, index: u32, kind: EffectKind, config: ConfigDigest, owner: &OwnerName) -> PendingEffect {
        PendingEffect {
            id: EffectId { seq: self.seq, index },
            attempts: u32::from(matches!(kind, EffectKind::Turn { .. })),
            kind,
            config,
            owner: owner.clone(),
            depth: self.envelope.metadata.depth.saturating_add(1),
            share: 0,
            nesting: 0,
            carried: Vec::new(),
            progress: None,
            task: self.envelope.node.task(),
            session: self.envelope.session.clone(),
            iteration: self.envelope.iteration,
            resting: None,
            version: self.seq,
        }
    }

    /// Adds the hooks of this event to the outbox. The loop of the session waits for those that its owner runs.
    pub(super) fn enqueue(&self, owed: &HookBatch, changes: &mut Vec<Change>) -> Result<(), ApplyError> {
        // A turn is the first effect of the event that begins it.
        let first = u32::from(self.envelope.event.kind() == EventType::TurnStarted);
        let kinds = owed.hooks.iter().map(|hook| EffectKind::Hook(hook.clone()));
        let made = |(index, kind)| {
            let made = self.made(index, kind, owed.config, &owed.owner);
            PendingEffect { share: owed.share, nesting: owed.nesting, ..made }
        };
        let effects: Vec<PendingEffect> = (first..).zip(kinds).map(made).collect();
        if let Some(name) = &self.envelope.session {
            self.with_session(name, changes, |session| {
                if session.owner == owed.owner {
                    session.owed.extend(effects.iter().map(|effect| effect.id));
                }
            })?;
        }
        changes.extend(effects.into_iter().map(|effect| Change::PutEffect(Box::new(effect))));
        Ok(())
    }

    /// Returns how many nested calls of `windlass` surround this event.
    pub(super) fn nesting(&self) -> Result<u8, ApplyError> {
        let around = self.envelope.metadata.via.map(|via| self.effect(via)).transpose()?;
        Ok(around.map_or(0, |effect| effect.nesting.saturating_add(1)))
    }

    /// Returns how many events the hooks of this event may use, each hook itself included.
    fn given(&self) -> u32 {
        self.envelope.metadata.owes.as_ref().map_or(0, |owed| {
            u32::try_from(owed.hooks.len()).unwrap_or(u32::MAX).saturating_mul(owed.share.saturating_add(1))
        })
    }

    /// Charges the events of a command to the hook that gave it, together with the share that the command's own hooks get.
    pub(super) fn spend(&self, via: EffectId, changes: &mut Vec<Change>) -> Result<(), ApplyError> {
        let given = self.given();
        // The next hook of the same event pays for a change that a finished hook reports. Without a next hook the change is
        // free.
        let told = matches!(self.envelope.event.kind(), EventType::ChangeOpened | EventType::ChangeMerged);
        let effect = match payer(self.view, via)?.filter(|payer| told || payer.id == via) {
            Some(effect) => effect,
            None if told => return Ok(()),
            None => return Err(self.unfit(format!("nothing is owed under {via}"))),
        };
        let share = effect.share.saturating_sub(given.saturating_add(1));
        changes.push(Change::PutEffect(Box::new(PendingEffect { share, version: self.seq, ..effect })));
        Ok(())
    }

    /// Changes a session. `changes` may hold a new row of it already.
    pub(super) fn with_session(
        &self,
        name: &SessionName,
        changes: &mut Vec<Change>,
        change: impl FnOnce(&mut Session),
    ) -> Result<(), ApplyError> {
        let put = changes.iter_mut().find_map(|change| match change {
            Change::PutSession(session) if session.name == *name => Some(session),
            _ => None,
        });
        if let Some(session) = put {
            change(session);
            self.pass_time(session);
        } else if let Some(mut session) = self.view.session(name)? {
            change(&mut session);
            self.pass_time(&mut session);
            session.version = self.seq;
            changes.push(Change::PutSession(Box::new(session)));
        }
        Ok(())
    }

    pub(super) fn hook_started(&self, started: &payload::HookStarted) -> Changes {
        let effect = self.effect(started.effect)?;
        if started.attempt != effect.attempts + 1 {
            return Err(self.unfit(format!("{} was begun {} times", effect.id, effect.attempts)));
        }
        Ok(vec![Change::PutEffect(Box::new(PendingEffect {
            attempts: started.attempt,
            owner: started.owner.clone(),
            share: effect.share.saturating_sub(self.given()),
            // A retry after a failure starts the workflow from its beginning.
            progress: effect.progress.filter(|_| started.after.is_none()),
            resting: None,
            version: self.seq,
            ..effect
        }))])
    }

    pub(super) fn hook_retrying(&self, retrying: &payload::HookRetrying) -> Changes {
        let effect = self.effect(retrying.effect)?;
        if effect.attempts == 0 || retrying.attempt != effect.attempts || effect.resting.is_some() {
            return Err(self.unfit(format!("{} was begun {} times", effect.id, effect.attempts)));
        }
        let share = effect.share.saturating_sub(self.given());
        let resting = Some(retrying.error.clone());
        Ok(vec![Change::PutEffect(Box::new(PendingEffect { resting, share, version: self.seq, ..effect }))])
    }

    pub(super) fn hook_finished(&self, finished: &payload::HookFinished) -> Changes {
        let effect = self.effect(finished.effect)?;
        let mut changes = vec![Change::DropEffect(effect.id)];
        if let Some(mut next) = sibling(self.view, effect.id)? {
            next.carried = [&next.carried[..], &effect.carried, &finished.actions].concat();
            // The hook's actions, which the next hook carries, may use the rest of its share.
            if self.envelope.metadata.owes.is_none() {
                next.share = next.share.saturating_add(effect.share);
            }
            next.version = self.seq;
            changes.push(Change::PutEffect(Box::new(next)));
        }
        if let Some(name) = &effect.session {
            self.with_session(name, &mut changes, |session| {
                let waited_for = session.owed.iter().position(|id| *id == effect.id);
                let Some(place) = waited_for else { return };
                session.owed.remove(place);
                session.watch.used = session.watch.used.plus(finished.used);
                session.checked |= is_check(&effect.kind) && finished.outcome == HookOutcome::Success;
                Self::passed_gate(session, &effect, finished);
                // Only hooks that the end of the turn itself enqueued judge the turn.
                if let (Phase::Judging(..), EffectKind::Hook(hook)) = (&session.phase, &effect.kind)
                    && hook.class == HookClass::Gate
                    && session.last_turn == Some(effect.id.seq)
                {
                    let mut verdict = Verdict::of_stop_hook(finished.outcome, hook.on_failure, finished.unstarted);
                    if session.overlooks(hook, finished.outcome) {
                        // A failure that does not block needs no waiver of a person.
                        if verdict != Verdict::Fail || session.terms.strict {
                            session.overlooked.push(hook.hook.clone());
                        }
                        verdict = Verdict::Pass;
                    }
                    session.broken_gate |= finished.unstarted && verdict == Verdict::Escalate;
                    session.watch.hook(&hook.hook, verdict);
                    session.verdict = session.verdict.max(verdict);
                    if verdict == Verdict::Escalate && session.asking.is_none() {
                        let why = finished.message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                        let asks = if finished.unstarted { "judged nothing" } else { "asks for a person" };
                        session.asking = Some(format!("`{}` {asks}{why}", hook.hook));
                    }
                    // A person can ignore a hook that could not run, as one that failed.
                    let is_broken = finished.unstarted && finished.outcome != HookOutcome::Escalate;
                    if verdict == Verdict::Block || (is_broken && verdict == Verdict::Escalate) {
                        let reason = finished.message.as_deref().map(gist);
                        session.blocking.push(Blocker { hook: hook.hook.clone(), most: hook.send_backs, reason });
                    }
                }
            })?;
        }
        changes.extend(self.judged(finished)?);
        Ok(changes)
    }

    pub(super) fn effect(&self, id: EffectId) -> Result<PendingEffect, ApplyError> {
        self.view.effect(id)?.ok_or_else(|| self.unfit(format!("nothing is owed under {id}")))
    }
}

fn is_check(kind: &EffectKind) -> bool {
    matches!(kind, EffectKind::Hook(hook) if hook.is_check())
}
