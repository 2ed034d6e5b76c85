//! The outbox: an event creates its effects, and the event that finishes an effect removes it.

use super::{ApplyError, EventFold, FoldResult};
use crate::command::limits::extract_summary_line;
use crate::effects::hook_batch::HookBatch;
use crate::effects::hook_outcome::{HookClass, HookOutcome};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::effects::share::{find_paying_effect, find_sibling_effect};
use crate::log::event::payload;
use crate::log::event_type::EventType;
use crate::log::id::{ConfigDigest, EffectId, OwnerName, SessionName};
use crate::session::{BlockingHook, GateVerdict, Session, SessionPhase};
use crate::view::RowChange;

impl EventFold<'_> {
    /// Returns an effect that this event creates.
    pub(super) fn build_pending_effect(
        &self,
        index: u32,
        kind: EffectKind,
        config: ConfigDigest,
        owner: &OwnerName,
    ) -> PendingEffect {
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
            task: self.envelope.node.task_id(),
            session: self.envelope.session.clone(),
            iteration: self.envelope.iteration,
            resting: None,
            version: self.seq,
        }
    }

    /// Adds the hooks of this event to the outbox. The loop of the session waits for those that its owner runs.
    pub(super) fn enqueue_hooks(&self, owed: &HookBatch, changes: &mut Vec<RowChange>) -> Result<(), ApplyError> {
        // A turn is the first effect of the event that begins it.
        let first = u32::from(self.envelope.event.kind() == EventType::TurnStarted);
        let kinds = owed.hooks.iter().map(|hook| EffectKind::Hook(hook.clone()));
        let made = |(index, kind)| {
            let made = self.build_pending_effect(index, kind, owed.config, &owed.owner);
            PendingEffect { share: owed.share, nesting: owed.nesting, ..made }
        };
        let effects: Vec<PendingEffect> = (first..).zip(kinds).map(made).collect();
        if let Some(name) = &self.envelope.session {
            self.change_named_session(name, changes, |session| {
                if session.owner == owed.owner {
                    session.pending_hooks.extend(effects.iter().map(|effect| effect.id));
                }
            })?;
        }
        changes.extend(effects.into_iter().map(|effect| RowChange::PutEffect(Box::new(effect))));
        Ok(())
    }

    /// Returns how many nested calls of `windlass` surround this event.
    pub(super) fn nesting_depth(&self) -> Result<u8, ApplyError> {
        let around = self.envelope.metadata.via.map(|via| self.require_effect(via)).transpose()?;
        Ok(around.map_or(0, |effect| effect.nesting.saturating_add(1)))
    }

    /// Returns how many events the hooks of this event may use, each hook itself included.
    fn granted_events(&self) -> u32 {
        self.envelope.metadata.owes.as_ref().map_or(0, |owed| {
            u32::try_from(owed.hooks.len()).unwrap_or(u32::MAX).saturating_mul(owed.share.saturating_add(1))
        })
    }

    /// Charges the events of a command to the hook that gave it, together with the share that the command's own hooks get.
    pub(super) fn charge_share(&self, via: EffectId, changes: &mut Vec<RowChange>) -> Result<(), ApplyError> {
        let given = self.granted_events();
        // The next hook of the same event pays for a change that a finished hook reports. Without a next hook the change is
        // free.
        let is_change = matches!(self.envelope.event.kind(), EventType::ChangeOpened | EventType::ChangeMerged);
        let effect = match find_paying_effect(self.view, via)?.filter(|payer| is_change || payer.id == via) {
            Some(effect) => effect,
            None if is_change => return Ok(()),
            None => return Err(self.unfit_event_error(format!("there is no pending effect {via}"))),
        };
        let share = effect.share.saturating_sub(given.saturating_add(1));
        changes.push(RowChange::PutEffect(Box::new(PendingEffect { share, version: self.seq, ..effect })));
        Ok(())
    }

    /// Changes a session. `changes` may hold a new row of it already.
    pub(super) fn change_named_session(
        &self,
        name: &SessionName,
        changes: &mut Vec<RowChange>,
        change: impl FnOnce(&mut Session),
    ) -> Result<(), ApplyError> {
        let put = changes.iter_mut().find_map(|change| match change {
            RowChange::PutSession(session) if session.name == *name => Some(session),
            _ => None,
        });
        if let Some(session) = put {
            change(session);
            self.record_loop_activity(session);
        } else if let Some(mut session) = self.view.find_session(name)? {
            change(&mut session);
            self.record_loop_activity(&mut session);
            session.version = self.seq;
            changes.push(RowChange::PutSession(Box::new(session)));
        }
        Ok(())
    }

    pub(super) fn fold_hook_started(&self, started: &payload::HookStarted) -> FoldResult {
        let effect = self.require_effect(started.effect)?;
        if started.attempt != effect.attempts + 1 {
            return Err(self.unfit_event_error(format!("{} was begun {} times", effect.id, effect.attempts)));
        }
        Ok(vec![RowChange::PutEffect(Box::new(PendingEffect {
            attempts: started.attempt,
            owner: started.owner.clone(),
            share: effect.share.saturating_sub(self.granted_events()),
            // A retry after a failure starts the workflow from its beginning.
            progress: effect.progress.filter(|_| started.after.is_none()),
            resting: None,
            version: self.seq,
            ..effect
        }))])
    }

    pub(super) fn fold_hook_retrying(&self, retrying: &payload::HookRetrying) -> FoldResult {
        let effect = self.require_effect(retrying.effect)?;
        if effect.attempts == 0 || retrying.attempt != effect.attempts || effect.resting.is_some() {
            return Err(self.unfit_event_error(format!("{} was begun {} times", effect.id, effect.attempts)));
        }
        let share = effect.share.saturating_sub(self.granted_events());
        let resting = Some(retrying.error.clone());
        Ok(vec![RowChange::PutEffect(Box::new(PendingEffect { resting, share, version: self.seq, ..effect }))])
    }

    pub(super) fn fold_hook_finished(&self, finished: &payload::HookFinished) -> FoldResult {
        let effect = self.require_effect(finished.effect)?;
        let mut changes = vec![RowChange::DropEffect(effect.id)];
        if let Some(mut next) = find_sibling_effect(self.view, effect.id)? {
            next.carried = [&next.carried[..], &effect.carried, &finished.actions].concat();
            // The hook's actions, which the next hook carries, may use the rest of its share.
            if self.envelope.metadata.owes.is_none() {
                next.share = next.share.saturating_add(effect.share);
            }
            next.version = self.seq;
            changes.push(RowChange::PutEffect(Box::new(next)));
        }
        if let Some(name) = &effect.session {
            self.change_named_session(name, &mut changes, |session| {
                let waited_for = session.pending_hooks.iter().position(|id| *id == effect.id);
                let Some(place) = waited_for else { return };
                session.pending_hooks.remove(place);
                session.watch.used = session.watch.used.saturating_add(finished.used);
                session.checked |= is_check_effect(&effect.kind) && finished.outcome == HookOutcome::Success;
                Self::record_gate_result(session, &effect, finished);
                // Only hooks that the end of the turn itself enqueued judge the turn.
                if let (SessionPhase::Judging(..), EffectKind::Hook(hook)) = (&session.phase, &effect.kind)
                    && hook.class == HookClass::Gate
                    && session.last_turn == Some(effect.id.seq)
                {
                    let mut verdict =
                        GateVerdict::from_stop_hook(finished.outcome, hook.on_failure, finished.unstarted);
                    if session.ignores_hook_result(hook, finished.outcome) {
                        // A failure that does not block needs no waiver of a person.
                        if verdict != GateVerdict::Fail || session.terms.strict {
                            session.ignored_blocks.push(hook.hook.clone());
                        }
                        verdict = GateVerdict::Pass;
                    }
                    session.broken_gate |= finished.unstarted && verdict == GateVerdict::Escalate;
                    session.watch.record_hook_verdict(&hook.hook, verdict);
                    session.verdict = session.verdict.max(verdict);
                    if verdict == GateVerdict::Escalate && session.asking.is_none() {
                        let why = finished.message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                        let asks = if finished.unstarted { "judged nothing" } else { "asks for a person" };
                        session.asking = Some(format!("`{}` {asks}{why}", hook.hook));
                    }
                    // A person can ignore a hook that could not run, as one that failed.
                    let is_broken = finished.unstarted && finished.outcome != HookOutcome::Escalate;
                    if verdict == GateVerdict::Block || (is_broken && verdict == GateVerdict::Escalate) {
                        let reason = finished.message.as_deref().map(extract_summary_line);
                        session.blocking.push(BlockingHook { hook: hook.hook.clone(), most: hook.send_backs, reason });
                    }
                }
            })?;
        }
        changes.extend(self.record_gatekeeper_result(finished)?);
        Ok(changes)
    }

    pub(super) fn require_effect(&self, id: EffectId) -> Result<PendingEffect, ApplyError> {
        self.view.find_effect(id)?.ok_or_else(|| self.unfit_event_error(format!("there is no pending effect {id}")))
    }
}

fn is_check_effect(kind: &EffectKind) -> bool {
    matches!(kind, EffectKind::Hook(hook) if hook.is_check())
}
