//! End of a cancelled session that no process runs: its owner is dead.
//!
//! Invariant: no agent is prompted. Pending feedback stays pending, and the log says that it was not delivered.

use windlass_engine::{
    AgentUsage, Command, EffectId, NextAction, Refusal, Session, SessionName, StateView, Task, TaskId,
};
use windlass_store::ExecuteError;

use crate::{EffectRunner, RunError};

impl EffectRunner<'_> {
    /// Takes a cancelled session over from a dead owner, and runs it up to its last hook. Returns false if another process was
    /// quicker.
    pub fn close_cancelled_session(&mut self, session: &Session) -> Result<bool, RunError> {
        let (name, owner) = (session.name.clone(), self.owner.clone());
        let resume = Command::ResumeSession { name, dead: session.owner.clone(), owner, max_iterations: None };
        match self.commit_command(&resume) {
            Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalSession { .. }))) => return Ok(false),
            resumed => resumed.map(drop)?,
        }
        loop {
            let session = self.load_session(&session.name)?;
            match session.next_action() {
                NextAction::Nothing => return Ok(true),
                NextAction::Turn(effect) => self.interrupt_turn(&session, effect)?,
                NextAction::Hook(effect) => self.run_closing_hook(&session, effect)?,
                NextAction::Decision => {
                    drop(self.commit_command(&Command::AdvanceSession { name: session.name.clone() })?)
                }
                // A session that is to end neither asks nor waits.
                NextAction::Answer | NextAction::WaitUntil(_) | NextAction::Workspace | NextAction::Work => {
                    return Err(RunError::Stuck(session.name));
                }
            }
        }
    }

    fn interrupt_turn(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        let owed = self.store.begin_snapshot()?.find_effect(effect)?;
        let (Some(owed), Some(turn)) = (owed, session.current_turn()) else {
            return Err(RunError::Stuck(session.name.clone()));
        };
        let run = turn.run.clone();
        let command = match owed.owner == self.owner {
            false => Command::RecoverEffect { effect, dead: owed.owner, owner: self.owner.clone() },
            true => Command::InterruptTurn { run, record: None, usage: AgentUsage::default() },
        };
        self.commit_command(&command).map(drop)
    }

    fn run_closing_hook(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        let owed =
            self.store.begin_snapshot()?.find_effect(effect)?.ok_or_else(|| RunError::Stuck(session.name.clone()))?;
        let owner = self.owner.clone();
        let begin = match (owed.owner == owner, owed.attempts) {
            (false, _) => Command::RecoverEffect { effect, dead: owed.owner.clone(), owner: owner.clone() },
            (true, _) if session.ending_kind().is_none() => {
                return self.commit_command(&Command::AdvanceSession { name: session.name.clone() }).map(drop);
            }
            (true, _) => Command::BeginEffect { effect, owner: owner.clone() },
        };
        self.commit_command(&begin)?;
        // A hook that may not run again was recorded as interrupted.
        let Some(owed) = self.store.begin_snapshot()?.find_effect(effect)? else { return Ok(()) };
        let report = self.run_hook(&owed)?.report;
        self.commit_command(&Command::FinishEffect { effect, owner, report: report.into() }).map(drop)
    }

    /// Returns the current state of a task.
    pub fn load_task(&self, id: TaskId) -> Result<Option<Task>, RunError> {
        Ok(self.store.begin_snapshot()?.find_task(id)?)
    }

    pub(crate) fn load_session(&self, name: &SessionName) -> Result<Session, RunError> {
        let session = self.store.begin_snapshot()?.find_session(name)?;
        session.ok_or_else(|| RunError::Stuck(name.clone()))
    }
}
