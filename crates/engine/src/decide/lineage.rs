//! How far hooks may lead: every command begins a line of descent, whose depth and number of events are bounded.
//!
//! ```text
//! command ─► events ─► owed hooks, each with its share of what is left ─► their actions, and the commands that they give
//! ```
//!
//! Invariants:
//! - All that descends from one command, across all the commits that it takes, is bounded: what a line has left is shared
//!   out among the hooks that it makes owed, and a share is never given twice.
//! - What a session decides by itself is as near to a person's command as its beginning, and has a line of its own. Only
//!   how many calls lie around it stays with it: a hook may start a session, but not one within another without end.

use super::Deciding;
use crate::command::limits::Limits;
use crate::command::refusal::Refusal;
use crate::effects::outbox::PendingEffect;
use crate::effects::share::payer;
use crate::log::event::Event;
use crate::log::id::EffectId;
use crate::session::Session;

/// The place of the line that a command's own events belong to.
pub(super) const COMMAND: usize = 0;

/// One line of descent within a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// How many events hooks may add to it, in this commit and after it.
    most: u32,
    /// How many they have added.
    added: u32,
    /// How many calls of `windlass` lie within each other.
    nesting: u8,
    /// How often its hook goes on after this commit, as far as is known. For all of that it keeps half of what is left, and
    /// each time the same part of the other half is given away.
    later: u32,
}

impl Line {
    /// What a person begins.
    pub(super) fn begun() -> Self {
        Self { most: Limits::EVENTS, added: 0, nesting: 0, later: 0 }
    }

    /// What a session does by itself.
    pub(super) fn of(session: &Session) -> Self {
        Self { nesting: session.nesting, ..Self::begun() }
    }

    /// What listens to the beginning of a hook.
    pub(super) fn beginning(effect: &PendingEffect) -> Self {
        Self::step(effect, 1)
    }

    /// What a step of a workflow leads to that has so many of them ahead.
    pub(super) fn step(effect: &PendingEffect, ahead: u32) -> Self {
        Self { most: effect.share, added: 0, nesting: effect.nesting, later: ahead.max(1) }
    }

    /// What a hook asks for at its end.
    pub(super) fn ending(effect: &PendingEffect) -> Self {
        Self { most: effect.share, added: 0, nesting: effect.nesting, later: 0 }
    }

    /// A command that is given from inside a hook.
    pub(super) fn inside(effect: &PendingEffect) -> Result<Self, Refusal> {
        if effect.nesting >= Limits::NESTED {
            return Err(Refusal::CascadeLimit { limit: format!("{} calls within each other", Limits::NESTED) });
        }
        Ok(Self { most: effect.share, added: 0, nesting: effect.nesting + 1, later: 1 })
    }

    pub(super) fn add(&mut self, events: usize) {
        self.added = self.added.saturating_add(u32::try_from(events).unwrap_or(u32::MAX));
    }

    /// What was thought to be added turned out to be so many events.
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

    /// What each of so many hooks may lead to.
    fn share(&self, hooks: u32) -> u32 {
        let left = if self.later == 0 { self.left() } else { self.left() / self.later.saturating_mul(2) };
        left / hooks.max(1)
    }
}

impl Deciding<'_, '_> {
    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.lines[self.line]
    }

    /// From here on events descend from something else.
    pub(super) fn begin_line(&mut self, line: Line) {
        self.lines.push(line);
        self.line = self.lines.len() - 1;
    }

    /// A command from inside a hook is taken from the hook's share, and refused where that does not suffice.
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

    /// Gives every hook that this commit makes owed its share. Only now is it known how many there are.
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
