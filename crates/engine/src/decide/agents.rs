//! What an agent inside a turn may not do to tasks.
//!
//! Invariants:
//! - Nobody changes what their own work is judged by: what a task says, its type and its labels, which choose the hooks of
//!   its gates.
//! - What a session has taken up is completed by its gates or by a person, never by its agent.
//! - An agent completes no task that another session or another worker holds: that would overwrite the claim of the holder.
//! - An agent starts and completes no other task whose type has gates of its own, or implementers of which it is none: it
//!   could not finish what it starts, and no session takes up what is active.
//!
//! Not here: what is refused to everybody while somebody holds a task (`may_touch`); what an agent drives itself with
//! (`drive`).

use super::Deciding;
use super::tasks::relabelled;
use crate::command::{Command, TaskPatch};
use crate::id::RunId;
use crate::refusal::Refusal;
use crate::task::{Lease, Task};
use crate::view::View;

impl Deciding<'_, '_> {
    /// Refuses an agent what would change how its work is judged, or go past that.
    pub(super) fn holds_to_its_task(&self, run: &RunId, command: &Command) -> Result<(), Refusal> {
        let Some(id) = command.subject() else { return Ok(()) };
        let Some(task) = self.draft.task(id)? else { return Ok(()) };
        let own = self.draft.session(&run.session)?.is_some_and(|session| session.has_taken_up(id));
        let of_session = |lease: &&Lease| lease.session.is_some();
        let refused = || Err(Refusal::OwnTask { id, session: run.session.clone() });
        match (command, task.lease.as_ref().filter(of_session)) {
            (Command::UpdateTask { .. }, _) if own => refused(),
            (Command::UpdateTask { .. }, Some(lease)) => Err(Refusal::Held { id, lease: Box::new(lease.clone()) }),
            (Command::UpdateTask { patch, .. }, None) if rejudges(patch, &task) => Err(Refusal::Rejudged { id }),
            // What it says of a task that its session holds is a claim.
            (Command::CompleteTask { .. }, None) if own => self.running_turn().and_then(|_| refused()),
            (_, None) if own => refused(),
            _ => Ok(()),
        }
    }

    /// Refuses an agent to start or complete a task past the gates of its type, or one that is for other agents.
    pub(super) fn refuse_gated_move(&self, verb: &'static str, task: &Task) -> Result<(), Refusal> {
        let (Some(kind), None) = (&task.kind, self.via) else { return Ok(()) };
        if let Some(agent) = self.agent_of_the_turn()? {
            self.rules.types.admit(task, &agent)?;
        }
        let gates = self.rules.effects.as_ref().map(|effects| effects.gates_of(kind)).unwrap_or_default();
        if gates.is_empty() {
            return Ok(());
        }
        Err(Refusal::GatedTask { verb, id: task.id, kind: kind.clone(), gates })
    }
}

/// Whether other hooks may judge a task after this.
fn rejudges(patch: &TaskPatch, task: &Task) -> bool {
    let wanted = relabelled(task, patch);
    let relabels = wanted.len() != task.labels.len() || !wanted.iter().all(|label| task.has_label(label));
    relabels || patch.kind.as_ref().is_some_and(|kind| *kind != task.kind)
}
