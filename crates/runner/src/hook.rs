//! Running one hook that is owed.

use windlass_engine::{Command, DebtId, Effect, HookClass, HookOutcome, OwedHook, Session, View};
use windlass_hooks::{Answer, Call, Hook, Role, answer};
use windlass_store::failpoint;

use crate::{Resolve, RunError, Runner, Way};

impl Runner<'_> {
    /// Runs a hook, unless whoever owed it before us died in the middle of it and it may not run again.
    pub(crate) fn hook(&mut self, session: &Session, debt: DebtId) -> Result<(), RunError> {
        let ours = self.is_ours(debt)?;
        let Some(owed) = self.store.snapshot()?.debt(debt)? else { return Ok(()) };
        let Effect::Hook(hook) = owed.effect else { return Err(RunError::Stuck(session.name.clone())) };
        let begin = (ours && owed.attempts == 0).then(|| Command::BeginEffect { debt, owner: self.owner.clone() });
        // A test can have us say it too late, to see that its checks notice.
        let late = failpoint::pass("runner.begin").is_err();
        if let Some(begin) = begin.as_ref().filter(|_| !late) {
            self.give(begin)?;
        }
        let Answer { outcome, message, feedback } = self.run_hook(session, debt, &hook)?;
        if let Some(begin) = begin.as_ref().filter(|_| late) {
            self.give(begin)?;
        }
        if outcome == HookOutcome::Cancelled && session.ended().is_some() {
            return Err(RunError::Killed);
        }
        self.stop_if_cancelled(session.clone())?;
        self.give(&Command::FinishEffect { debt, owner: self.owner.clone(), outcome, message, feedback }).map(drop)
    }

    fn run_hook(&mut self, session: &Session, debt: DebtId, owed: &OwedHook) -> Result<Answer, RunError> {
        let Some(hook) = self.settings.hooks.get(&owed.hook).cloned() else {
            let message = Some("the session's configuration has no such hook".to_owned());
            return Ok(Answer { outcome: HookOutcome::Failure, message, feedback: None });
        };
        let (role, way) = match owed.class {
            HookClass::Gate => (Role::Gate, Way::Supervised),
            _ => (Role::Observer, Way::Direct),
        };
        let spec = self.call(session, debt, owed, &hook)?;
        // What comes after the end is done although the end was asked for.
        let resolve = if session.ended().is_some() { Resolve::Resolute } else { Resolve::Cancellable };
        let ran = self.start(&spec, way, resolve)?;
        Ok(answer(&hook, role, &ran))
    }

    fn call(
        &self,
        session: &Session,
        debt: DebtId,
        owed: &OwedHook,
        hook: &Hook,
    ) -> Result<windlass_process::Spec, RunError> {
        let event = self.event(debt.seq)?;
        let last_output = self.last_output(session)?;
        let spill = self.settings.records.join(format!("{debt}"));
        let call = Call {
            point: &owed.point,
            session,
            event: &event,
            last_output: last_output.as_deref(),
            project: &self.settings.directory,
            environment: &self.settings.environment,
            spill: &spill,
        };
        Ok(call.spec(hook))
    }
}
