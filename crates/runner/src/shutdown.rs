//! End of a cancelled session that no process runs: its owner is dead.
//!
//! Invariant: no agent is prompted. Pending feedback stays pending, and the log says that it was not delivered.

use windlass_engine::{Command, EffectId, Refusal, Session, SessionName, Task, TaskId, Usage, View, Wanted};
use windlass_store::ExecuteError;

use crate::{EffectRunner, RunError};

impl EffectRunner<'_> {
    /// Takes a cancelled session over from a dead owner, and runs it up to its last hook. Returns false if another process was
    /// quicker.
    pub fn close(&mut self, session: &Session) -> Result<bool, RunError> {
        let (name, owner) = (session.name.clone(), self.owner.clone());
        let resume = Command::ResumeSession { name, dead: session.owner.clone(), owner, max_iterations: None };
        match self.commit(&resume) {
            Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalSession { .. }))) => return Ok(false),
            resumed => resumed.map(drop)?,
        }
        loop {
            let session = self.session(&session.name)?;
            match session.wanted() {
                Wanted::Nothing => return Ok(true),
                Wanted::Turn(effect) => self.give_up_turn(&session, effect)?,
                Wanted::Hook(effect) => self.close_hook(&session, effect)?,
                Wanted::Decision => drop(self.commit(&Command::AdvanceSession { name: session.name.clone() })?),
                // A session that is to end neither asks nor waits.
                Wanted::Answer | Wanted::Moment(_) | Wanted::Workspace | Wanted::Work => {
                    return Err(RunError::Stuck(session.name));
                }
            }
        }
    }

    fn give_up_turn(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        let owed = self.store.snapshot()?.effect(effect)?;
        let (Some(owed), Some(turn)) = (owed, session.turn()) else {
            return Err(RunError::Stuck(session.name.clone()));
        };
        let run = turn.run.clone();
        let command = match owed.owner == self.owner {
            false => Command::RecoverEffect { effect, dead: owed.owner, owner: self.owner.clone() },
            true => Command::InterruptTurn { run, record: None, usage: Usage::default() },
        };
        self.commit(&command).map(drop)
    }

    fn close_hook(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        let owed = self.store.snapshot()?.effect(effect)?.ok_or_else(|| RunError::Stuck(session.name.clone()))?;
        let owner = self.owner.clone();
        let begin = match (owed.owner == owner, owed.attempts) {
            (false, _) => Command::RecoverEffect { effect, dead: owed.owner.clone(), owner: owner.clone() },
            (true, _) if session.ended().is_none() => {
                return self.commit(&Command::AdvanceSession { name: session.name.clone() }).map(drop);
            }
            (true, _) => Command::BeginEffect { effect, owner: owner.clone() },
        };
        self.commit(&begin)?;
        // A hook that may not run again was recorded as interrupted.
        let Some(owed) = self.store.snapshot()?.effect(effect)? else { return Ok(()) };
        let report = self.run_hook(&owed)?.report;
        self.commit(&Command::FinishEffect { effect, owner, report: report.into() }).map(drop)
    }

    /// Returns the current state of a task.
    pub fn task(&self, id: TaskId) -> Result<Option<Task>, RunError> {
        Ok(self.store.snapshot()?.task(id)?)
    }

    pub(crate) fn session(&self, name: &SessionName) -> Result<Session, RunError> {
        let session = self.store.snapshot()?.session(name)?;
        session.ok_or_else(|| RunError::Stuck(name.clone()))
    }
}
