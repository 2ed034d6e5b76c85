//! Commands about work that is owed.

use super::{Causing, Deciding};
use crate::debt::{Debt, Effect, HookOutcome, Recovery};
use crate::event::{Node, payload};
use crate::id::{DebtId, OwnerName};
use crate::limits::{Limits, check_bytes};
use crate::refusal::Refusal;
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn begin_effect(&mut self, id: DebtId, owner: &OwnerName) -> Result<(), Refusal> {
        let debt = self.owed(id)?;
        if debt.attempts > 0 {
            return Err(Refusal::IllegalEffect { debt: id, why: "has begun already" });
        }
        belongs_to(&debt, owner)?;
        self.begin(&debt, owner)
    }

    /// Says how it ended. Whoever was taken for dead meanwhile has no say any more.
    pub(super) fn finish_effect(
        &mut self,
        id: DebtId,
        owner: &OwnerName,
        outcome: HookOutcome,
        message: Option<&str>,
    ) -> Result<(), Refusal> {
        check_bytes("the message", message.unwrap_or_default(), Limits::REASON)?;
        let debt = self.owed(id)?;
        if debt.attempts == 0 {
            return Err(Refusal::IllegalEffect { debt: id, why: "has not begun" });
        }
        belongs_to(&debt, owner)?;
        self.finish(&debt, outcome, message.map(str::to_owned))
    }

    /// Takes over what a dead owner left, as the table of interrupted effects says.
    pub(super) fn recover_effect(&mut self, id: DebtId, dead: &OwnerName, owner: &OwnerName) -> Result<(), Refusal> {
        let debt = self.owed(id)?;
        belongs_to(&debt, dead)?;
        match debt.recovery() {
            Recovery::Run | Recovery::RunAgain | Recovery::LookThenAct | Recovery::SendAgain => {
                self.begin(&debt, owner)
            }
            Recovery::Record(_) => self.finish(&debt, HookOutcome::Interrupted, None),
            Recovery::EndIteration => match &debt.effect {
                Effect::Turn { run, .. } => self.end_iteration(run, payload::IterationInterrupted { run: run.clone() }),
                Effect::Hook(_) => Err(Refusal::IllegalEffect { debt: id, why: "is no turn" }),
            },
        }
    }

    /// What a debt leads to lies as deep as the debt.
    fn because_of(&mut self, debt: &Debt) {
        (self.cause, self.depth) = (Some(Causing::At(debt.id.seq)), debt.depth);
    }

    fn owed(&self, id: DebtId) -> Result<Debt, Refusal> {
        self.draft.debt(id)?.ok_or(Refusal::UnknownDebt(id))
    }

    fn begin(&mut self, debt: &Debt, owner: &OwnerName) -> Result<(), Refusal> {
        let hook = hook_name(debt)?;
        self.because_of(debt);
        let started = payload::HookStarted { debt: debt.id, hook, owner: owner.clone(), attempt: debt.attempts + 1 };
        self.emit(node(debt), started).map(drop)
    }

    fn finish(&mut self, debt: &Debt, outcome: HookOutcome, message: Option<String>) -> Result<(), Refusal> {
        let hook = hook_name(debt)?;
        self.because_of(debt);
        self.emit(node(debt), payload::HookFinished { debt: debt.id, hook, outcome, message }).map(drop)
    }
}

fn belongs_to(debt: &Debt, owner: &OwnerName) -> Result<(), Refusal> {
    if debt.owner == *owner {
        return Ok(());
    }
    Err(Refusal::IllegalEffect { debt: debt.id, why: "is somebody else's" })
}

fn node(debt: &Debt) -> Node {
    debt.task.map_or(Node::System, Node::Task)
}

/// Turns are begun and ended with their iteration, not by the commands for hooks.
fn hook_name(debt: &Debt) -> Result<String, Refusal> {
    match &debt.effect {
        Effect::Hook(hook) => Ok(hook.hook.clone()),
        Effect::Turn { .. } => Err(Refusal::IllegalEffect { debt: debt.id, why: "is a turn, not a hook" }),
    }
}
