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

use super::DecisionContext;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::effects::outbox::PendingEffect;
use crate::effects::share::find_paying_effect;
use crate::log::event::Event;
use crate::log::id::EffectId;
use crate::session::Session;

/// The index of the budget of a command's own events.
pub(super) const COMMAND_BUDGET: usize = 0;

/// The budget of one cause within a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct CascadeBudget {
    /// How many events hooks may add to it, in this commit and after it.
    max_events: u32,
    /// How many they have added.
    used_events: u32,
    /// How many calls of `windlass` are nested.
    nesting: u8,
    /// How many known stages its hook has after this commit. The hook keeps half of the rest for them, and each stage gives
    /// away the same part of the other half.
    later_stages: u32,
}

impl CascadeBudget {
    /// Returns the budget of a person's command.
    pub(super) fn for_command() -> Self {
        Self { max_events: EngineLimits::CASCADE_EVENTS, used_events: 0, nesting: 0, later_stages: 0 }
    }

    /// Returns the budget of a session's own decisions.
    pub(super) fn for_session(session: &Session) -> Self {
        Self { nesting: session.nesting, ..Self::for_command() }
    }

    /// Returns the budget of the hooks that run at the start of a hook.
    pub(super) fn for_hook_start(effect: &PendingEffect) -> Self {
        Self::for_workflow_step(effect, 1)
    }

    /// Returns the budget of a workflow step that has `ahead` steps after it.
    pub(super) fn for_workflow_step(effect: &PendingEffect, ahead: u32) -> Self {
        Self { max_events: effect.share, used_events: 0, nesting: effect.nesting, later_stages: ahead.max(1) }
    }

    /// Returns the budget of the actions that a hook asks for at its end.
    pub(super) fn for_hook_end(effect: &PendingEffect) -> Self {
        Self { max_events: effect.share, used_events: 0, nesting: effect.nesting, later_stages: 0 }
    }

    /// Returns the budget of a command from inside a hook.
    pub(super) fn for_command_of_hook(effect: &PendingEffect) -> Result<Self, Refusal> {
        if effect.nesting >= EngineLimits::NESTED_CALLS {
            return Err(Refusal::CascadeLimit { limit: format!("{} nested calls", EngineLimits::NESTED_CALLS) });
        }
        Ok(Self { max_events: effect.share, used_events: 0, nesting: effect.nesting + 1, later_stages: 1 })
    }

    pub(super) fn charge_events(&mut self, events: usize) {
        self.used_events = self.used_events.saturating_add(u32::try_from(events).unwrap_or(u32::MAX));
    }

    /// Replaces an estimated charge by the real number of events.
    pub(super) fn correct_charge(&mut self, thought: usize, events: usize) {
        self.used_events = self.used_events.saturating_sub(u32::try_from(thought).unwrap_or(u32::MAX));
        self.charge_events(events);
    }

    pub(super) fn remaining_events(&self) -> u32 {
        self.max_events.saturating_sub(self.used_events)
    }

    pub(super) fn nesting(&self) -> u8 {
        self.nesting
    }

    /// Returns the share of each of so many hooks.
    fn share_per_hook(&self, hooks: u32) -> u32 {
        let left = if self.later_stages == 0 {
            self.remaining_events()
        } else {
            self.remaining_events() / self.later_stages.saturating_mul(2)
        };
        left / hooks.max(1)
    }
}

impl DecisionContext<'_, '_> {
    pub(super) fn current_budget(&mut self) -> &mut CascadeBudget {
        &mut self.budgets[self.budget_index]
    }

    /// Starts a new budget, which the next events use.
    pub(super) fn begin_budget(&mut self, line: CascadeBudget) {
        self.budgets.push(line);
        self.budget_index = self.budgets.len() - 1;
    }

    /// Charges a command from inside a hook to the hook's share. Refuses the command if the share is too small.
    pub(super) fn charge_calling_hook(&mut self) -> Result<(), Refusal> {
        if self.via.is_none() {
            return Ok(());
        }
        let events = self.entry_budgets.iter().filter(|line| **line == COMMAND_BUDGET).count();
        let line = &mut self.budgets[COMMAND_BUDGET];
        if usize::try_from(line.remaining_events()).is_ok_and(|left| left < events) {
            return Err(Refusal::CascadeLimit { limit: format!("{} events", EngineLimits::CASCADE_EVENTS) });
        }
        line.charge_events(events);
        Ok(())
    }

    /// Allocates a share to every hook that this commit enqueues. Only now is their number known.
    pub(super) fn allocate_shares(&mut self) -> Result<(), Refusal> {
        let mut owed = vec![0; self.budgets.len()];
        for (entry, line) in self.entries.iter().zip(&self.entry_budgets) {
            let hooks = entry.record.envelope.metadata.owes.as_ref().map_or(0, |owes| owes.hooks.len());
            owed[*line] += u32::try_from(hooks).expect("a configuration is small");
        }
        for (entry, line) in self.entries.iter_mut().zip(&self.entry_budgets) {
            let seq = entry.record.seq;
            let Some(owes) = &mut entry.record.envelope.metadata.owes else { continue };
            let share = self.budgets[*line].share_per_hook(owed[*line]);
            owes.share = share;
            for index in 0..=owes.hooks.len() {
                let id = EffectId { seq, index: u32::try_from(index).expect("a configuration is small") };
                self.draft.update_effect_share(id, |_| share);
            }
            let giver = match (&entry.record.envelope.event, entry.record.envelope.metadata.via) {
                (Event::HookStarted(started), _) => Some(started.effect),
                (Event::HookRetrying(retrying), _) => Some(retrying.effect),
                (_, Some(via)) => find_paying_effect(&self.draft, via)?.map(|effect| effect.id),
                (_, None) => None,
            };
            if let Some(giver) = giver {
                let given = share.saturating_mul(u32::try_from(owes.hooks.len()).unwrap_or(u32::MAX));
                self.draft.update_effect_share(giver, |left| left.saturating_sub(given));
            }
        }
        Ok(())
    }
}
