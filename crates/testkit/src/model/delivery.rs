//! The authority for commands about worktrees, gates and changes.

use windlass_engine::{Command, WorkSource};

use super::{CommandAttempt, TaskPhase};
use crate::task_histories::read_task_histories;

impl CommandAttempt<'_> {
    pub(super) fn run_delivery_command(&mut self, command: &Command) -> Option<()> {
        use Command as C;
        match command {
            C::OpenWorkspace { name, .. } => {
                let session = self.session(name)?;
                (session.holds() && session.is_in_worktrees()).then_some(())
            }
            C::LeaveToPerson { name, .. } => {
                let session = self.session(name)?;
                // A session with a given task ends together with the task.
                let ends = session.work == WorkSource::Given && session.stopping.is_some();
                (session.holds() && !ends).then_some(())
            }
            C::SubmitWork { name, .. } => self.session(name)?.wants_work().then_some(()),
            C::RecordMerge { id, .. } => {
                // Only a person merges by hand.
                (self.origin.run.is_none() && self.origin.via.is_none()).then_some(())?;
                self.state(*id)?;
                read_task_histories(self.log).get(id)?.has_open_change().then_some(())
            }
            C::ExpireLease { id, epoch } => {
                let node = self.node(*id)?;
                node.lease.filter(|(held, _)| held == epoch)?;
                (node.lease, node.phase) = (None, TaskPhase::Waiting);
                Some(())
            }
            _ => unreachable!("the other commands are about something else"),
        }
    }
}
