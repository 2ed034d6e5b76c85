//! How stalled work is taken up again: who did it, and whether the hooks of a session have judged it.

use super::{Gate, Stalled};
use crate::session::Session;
use crate::task::Task;

impl Stalled {
    /// The same, with who did the work on a task and what was said about it: a session that has only asked again has not done
    /// the work.
    pub(crate) fn after(self, task: &Task) -> Self {
        match task.stalled.clone() {
            // The hooks of the agent that did the work may be others, and have not judged it.
            Some(Self { agent, claim, .. }) if agent != self.agent => {
                Self { agent, claim, gate: Gate::BeforeSubmit, rejudged: true, ..self }
            }
            Some(Self { claim, .. }) => Self { claim, ..self },
            None => Self { claim: task.claim.clone(), ..self },
        }
    }

    /// Whether the hooks of a session are those that have let it pass so far.
    pub(crate) fn is_judged_for(&self, session: &Session) -> bool {
        self.config == session.config && self.agent == session.agent
    }
}
