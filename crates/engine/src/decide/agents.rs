//! What an agent inside a turn, and a hook of its session, may not do to tasks.
//!
//! Invariants:
//! - Nobody changes what their own work is judged by: what a task says, its type and its labels, which choose the hooks of
//!   its gates.
//! - What a session has taken up is completed by its gates or by a person, never by its agent.
//! - An agent completes no task that another session or another worker holds: that would overwrite the claim of the holder.
//! - An agent starts and completes no other task whose type has gates of its own, or implementers of which it is none: it
//!   could not finish what it starts, and no session takes up what is active.
//! - A hook of a session may run what the agent wrote, such as its tests: it completes no task that a session holds and no
//!   task whose type has gates of its own, and changes no type. It may label tasks.
//!
//! Not here: what is refused to everybody while somebody holds a task (`may_touch`); what an agent drives itself with
//! (`evaluation`).

use super::Deciding;
use super::tasks::relabelled;
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command, TaskPatch};
use crate::log::id::{RunId, SessionName};
use crate::session::promise::Promise;
use crate::task::{Lease, Task};
use crate::view::View;

impl Deciding<'_, '_> {
    /// Refuses an agent inside a turn, and a hook of its session, what only a person or the gates may do.
    pub(super) fn keep_session_to_its_rights(&self, command: &Command) -> Result<(), Refusal> {
        let agent = self.turn.as_ref().filter(|_| self.via.is_none());
        let hook = self.place.as_ref().map(|(session, _)| session).filter(|_| self.via.is_some());
        // Those that only a person may give say so themselves, and what an agent completes is a claim.
        let own_word = matches!(command, Command::AnswerTask { .. } | Command::RecordMerge { .. })
            || matches!(command, Command::CompleteTask { .. } if agent.is_some())
            || command.is_of_a_runner();
        if self.origin.authority == Authority::Forced && (agent.is_some() || hook.is_some()) && !own_word {
            return Err(Refusal::NoPerson { what: "override" });
        }
        agent.map_or(Ok(()), |run| self.holds_to_its_task(run, command))?;
        hook.map_or(Ok(()), |session| self.leaves_to_gates(session, command))
    }

    /// Whether the command comes from an agent inside a turn, or from a hook of its session.
    pub(super) fn is_inside_session(&self) -> bool {
        self.turn.is_some() || self.via.is_some() && self.place.is_some()
    }

    /// Refuses an agent what would change how its work is judged, or go past that.
    fn holds_to_its_task(&self, run: &RunId, command: &Command) -> Result<(), Refusal> {
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

    /// Refuses a hook of a session what would take a task past its gates.
    fn leaves_to_gates(&self, session: &SessionName, command: &Command) -> Result<(), Refusal> {
        let Some(id) = command.subject() else { return Ok(()) };
        let Some(task) = self.draft.task(id)? else { return Ok(()) };
        match (command, task.lease.as_ref().filter(|lease| lease.session.is_some())) {
            (Command::UpdateTask { patch, .. }, _) if changes_type(patch, &task) => Err(Refusal::Rejudged { id }),
            (command, _) if !completes(command) => Ok(()),
            (_, Some(lease)) if lease.session.as_ref() == Some(session) => {
                Err(Refusal::OwnTask { id, session: session.clone() })
            }
            (_, Some(lease)) => Err(Refusal::Held { id, lease: Box::new(lease.clone()) }),
            (_, None) => self.refuse_gated_move("complete", &task),
        }
    }

    /// Refuses to start or complete a task past the gates of its type, or one that is for other agents.
    pub(super) fn refuse_gated_move(&self, verb: &'static str, task: &Task) -> Result<(), Refusal> {
        let Some(kind) = &task.kind else { return Ok(()) };
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
    relabels || changes_type(patch, task)
}

fn completes(command: &Command) -> bool {
    matches!(command, Command::CompleteTask { .. } | Command::CompleteSeries { promise: Promise::Complete, .. })
}

fn changes_type(patch: &TaskPatch, task: &Task) -> bool {
    patch.kind.as_ref().is_some_and(|kind| *kind != task.kind)
}
