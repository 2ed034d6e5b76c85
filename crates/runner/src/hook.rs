//! Running one hook that is owed.

use windlass_engine::{Command, DebtId, Effect, HookClass, HookOutcome, HookReport, OwedHook, Session, View};
use windlass_hooks::{Call, Hook, Role, answer};
use windlass_process::Spec;

use crate::{Resolve, RunError, Runner};

impl Runner<'_> {
    /// Runs a hook, unless whoever owed it before us died in the middle of it and it may not run again.
    pub(crate) fn hook(&mut self, session: &Session, debt: DebtId) -> Result<(), RunError> {
        let ours = self.is_ours(session, debt)?;
        let Some(owed) = self.store.snapshot()?.debt(debt)? else { return Ok(()) };
        let Effect::Hook(hook) = owed.effect else { return Err(RunError::Stuck(session.name.clone())) };
        if ours && owed.attempts == 0 {
            self.give(&Command::BeginEffect { debt, owner: self.owner.clone() })?;
        }
        let report = self.run_hook(session, debt, &hook)?;
        if report.outcome == HookOutcome::Cancelled && session.ended().is_some() {
            return Err(RunError::Killed);
        }
        self.stop_if_cancelled(session.clone())?;
        self.give(&Command::FinishEffect { debt, owner: self.owner.clone(), report }).map(drop)
    }

    fn run_hook(&mut self, session: &Session, debt: DebtId, owed: &OwedHook) -> Result<HookReport, RunError> {
        let Some(hook) = self.settings.hooks.get(&owed.hook).cloned() else {
            let message = Some("the session's configuration has no such hook".to_owned());
            return Ok(HookReport { message, ..HookOutcome::Failure.into() });
        };
        let role = if owed.class == HookClass::Gate { Role::Stop } else { Role::Observer };
        let spec = self.call(session, debt, owed, &hook)?;
        // What comes after the end is done although the end was asked for.
        let resolve = if session.ended().is_some() { Resolve::Resolute } else { Resolve::Cancellable };
        let ran = self.start(&spec, resolve)?;
        Ok(HookReport { record: ran.as_ref().ok().and_then(|ran| self.record(ran)), ..answer(&hook, role, &ran) })
    }

    fn call(&self, session: &Session, debt: DebtId, owed: &OwedHook, hook: &Hook) -> Result<Spec, RunError> {
        let _moment = self.store.snapshot()?;
        let event = self.event(debt.seq)?;
        let last_output = self.last_output(session)?;
        let call = Call {
            point: &owed.point,
            session,
            event: &event,
            last_output: last_output.as_deref(),
            project: &self.settings.directory,
            environment: &self.settings.environment,
            spill: &self.settings.records.join(debt.to_string()),
        };
        Ok(call.spec(hook))
    }
}
