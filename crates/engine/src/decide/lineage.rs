//! Budgets of hooks: every command starts a budget, which bounds the depth and the number of its consequences.
//!
//! ```text
//! command ─► events ─► pending hooks, each with its share of the rest ─► their actions, and the commands that they give
//! ```
//!
//! Invariants:
//! - All consequences of one command, across all the commits that they take, are bounded: the rest of a budget is divided
//!   among the hooks that it enqueues, and a share is never given twice.
//! - The decisions of a session itself have the depth of its first command, and a budget of their own. Only the number of
//!   nested calls stays with it: a hook may start a session, but sessions may not nest without end.

use super::Deciding;
use crate::command::limits::Limits;
use crate::command::refusal::Refusal;
use crate::effects::outbox::PendingEffect;
use crate::effects::share::payer;
use crate::log::event::Event;
use crate::log::id::EffectId;
use crate::session::Session;

/// The index of the budget of a command's own events.
pub(super) const COMMAND: usize = 0;

/// The budget of one cause within a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// How many events hooks may add to it, in this commit and after it.
    most: u32,
    /// How many they have added.
    added: u32,
    /// How many calls of `windlass` are nested.
    nesting: u8,
    /// How many known stages its hook has after this commit. The hook keeps half of the rest for them, and each stage gives
    /// away the same part of the other half.
    later: u32,
}

impl Line {
    /// Returns the budget of a person's command.
    pub(super) fn begun() -> Self {
        Self { most: Limits::EVENTS, added: 0, nesting: 0, later: 0 }
    }

    /// Returns the budget of a session's own decisions.
    pub(super) fn of(session: &Session) -> Self {
        Self { nesting: session.nesting, ..Self::begun() }
    }

    /// Returns the budget of the hooks that run at the start of a hook.
    pub(super) fn beginning(effect: &PendingEffect) -> Self {
        Self::step(effect, 1)
    }

    /// Returns the budget of a workflow step that has `ahead` steps after it.
    pub(super) fn step(effect: &PendingEffect, ahead: u32) -> Self {
        Self { most: effect.share, added: 0, nesting: effect.nesting, later: ahead.max(1) }
    }

    /// Returns the budget of the actions that a hook asks for at its end.
    pub(super) fn ending(effect: &PendingEffect) -> Self {
        Self { most: effect.share, added: 0, nesting: effect.nesting, later: 0 }
    }

    /// Returns the budget of a command from inside a hook.
    pub(super) fn inside(effect: &PendingEffect) -> Result<Self, Refusal> {
        if effect.nesting >= Limits::NESTED {
            return Err(Refusal::CascadeLimit { limit: format!("{} calls within each other", Limits::NESTED) });
        }
        Ok(Self { most: effect.share, added: 0, nesting: effect.nesting + 1, later: 1 })
    }

    pub(super) fn add(&mut self, events: usize) {
        self.added = self.added.saturating_add(u32::try_from(events).unwrap_or(u32::MAX));
    }

    /// Replaces an estimated charge by the real number of events.
    pub(super) fn correct(&mut self, thought: usize, events: usize) {
        self.added = self.added.saturating_sub(u32::try_from(thought).unwrap_or(u32::MAX));
        self.add(events);
    }

    pub(super) fn left(&self) -> u32 {
        self.most.saturating_sub(self.added)
    }

    pub(super) fn nesting(&self) -> u8 {
        self.nesting
    }

    /// Returns the share of each of so many hooks.
    fn share(&self, hooks: u32) -> u32 {
        let left = if self.later == 0 { self.left() } else { self.left() / self.later.saturating_mul(2) };
        left / hooks.max(1)
    }
}

impl Deciding<'_, '_> {
    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.lines[self.line]
    }

    /// Starts a new budget, which the next events use.
    pub(super) fn begin_line(&mut self, line: Line) {
        self.lines.push(line);
        self.line = self.lines.len() - 1;
    }

    /// Charges a command from inside a hook to the hook's share. Refuses the command if the share is too small.
    pub(super) fn charge_the_hook(&mut self) -> Result<(), Refusal> {
        if self.via.is_none() {
            return Ok(());
        }
        let events = self.descent.iter().filter(|line| **line == COMMAND).count();
        let line = &mut self.lines[COMMAND];
        if usize::try_from(line.left()).is_ok_and(|left| left < events) {
            return Err(Refusal::CascadeLimit { limit: format!("{} events", Limits::EVENTS) });
        }
        line.add(events);
        Ok(())
    }

    /// Allocates a share to every hook that this commit enqueues. Only now is their number known.
    pub(super) fn share_out(&mut self) -> Result<(), Refusal> {
        let mut owed = vec![0; self.lines.len()];
        for (entry, line) in self.entries.iter().zip(&self.descent) {
            let hooks = entry.record.envelope.metadata.owes.as_ref().map_or(0, |owes| owes.hooks.len());
            owed[*line] += u32::try_from(hooks).expect("a configuration is small");
        }
        for (entry, line) in self.entries.iter_mut().zip(&self.descent) {
            let seq = entry.record.seq;
            let Some(owes) = &mut entry.record.envelope.metadata.owes else { continue };
            let share = self.lines[*line].share(owed[*line]);
            owes.share = share;
            for index in 0..=owes.hooks.len() {
                let id = EffectId { seq, index: u32::try_from(index).expect("a configuration is small") };
                self.draft.change_share(id, |_| share);
            }
            let giver = match (&entry.record.envelope.event, entry.record.envelope.metadata.via) {
                (Event::HookStarted(started), _) => Some(started.effect),
                (Event::HookRetrying(retrying), _) => Some(retrying.effect),
                (_, Some(via)) => payer(&self.draft, via)?.map(|effect| effect.id),
                (_, None) => None,
            };
            if let Some(giver) = giver {
                let given = share.saturating_mul(u32::try_from(owes.hooks.len()).unwrap_or(u32::MAX));
                self.draft.change_share(giver, |left| left.saturating_sub(given));
            }
        }
        Ok(())
    }
}
