//! The continuation of stalled work: its author, and whether the hooks of a session have judged it.

use super::{DeliveryGate, StalledWork};
use crate::session::Session;
use crate::task::Task;

impl StalledWork {
    /// Keeps the author and the claim of the task's earlier stalled work: a session that has only asked a gate again
    /// has not done the work.
    pub(crate) fn with_author_of(self, task: &Task) -> Self {
        match task.stalled.clone() {
            // The hooks of the agent that did the work may differ, and have not judged it.
            Some(Self { agent, claim, .. }) if agent != self.agent => {
                Self { agent, claim, gate: DeliveryGate::BeforeSubmit, rejudged: true, ..self }
            }
            Some(Self { claim, .. }) => Self { claim, ..self },
            None => Self { claim: task.claim.clone(), ..self },
        }
    }

    /// Returns whether the hooks of a session are the ones that have let the work pass so far.
    pub(crate) fn matches_session_hooks(&self, session: &Session) -> bool {
        self.config == session.config && self.agent == session.agent
    }
}
