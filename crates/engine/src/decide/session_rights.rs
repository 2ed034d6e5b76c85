//! Restrictions on the tasks that an agent inside a turn, and a hook of its session, may change.
//!
//! Invariants:
//! - No agent and no hook changes the basis of its own evaluation: a task's text, its type and its labels, which choose the
//!   hooks of its gates.
//! - The gates or a person complete the task of a session, never its agent.
//! - An agent completes no task that another session or another worker holds: that would overwrite the claim of the holder.
//! - An agent starts and completes no other task whose type has gates of its own, or implementers without that agent: it
//!   could not finish what it starts, and no session takes up an active task.
//! - A hook of a session may run programs that the agent wrote, such as its tests: it completes no task that a session holds
//!   and no task whose type has gates of its own, and changes no type. It may label tasks.
//!
//! Not here: moves that are refused to all others while a task is held (`check_lease_holder`); the agent's own evaluation
//! (`evaluation`).

use super::DecisionContext;
use super::tasks::labels_after_patch;
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command, TaskPatch};
use crate::log::id::{RunId, SessionName};
use crate::session::promise::Promise;
use crate::task::{Lease, Task};
use crate::view::StateView;

impl DecisionContext<'_, '_> {
    /// Refuses commands that only a person or the gates may give, from an agent inside a turn and from a hook of its
    /// session.
    pub(super) fn check_session_rights(&self, command: &Command) -> Result<(), Refusal> {
        let agent = self.turn.as_ref().filter(|_| self.via.is_none());
        let hook = self.session_scope.as_ref().map(|(session, _)| session).filter(|_| self.via.is_some());
        // Commands that only a person may give check that themselves, and an agent's completion is only a claim.
        let own_word = matches!(command, Command::AnswerTask { .. } | Command::RecordMerge { .. })
            || matches!(command, Command::CompleteTask { .. } if agent.is_some())
            || command.is_runner_command();
        if self.origin.authority == Authority::Forced && (agent.is_some() || hook.is_some()) && !own_word {
            return Err(Refusal::NoPerson { what: "override" });
        }
        agent.map_or(Ok(()), |run| self.check_agent_rights(run, command))?;
        hook.map_or(Ok(()), |session| self.check_hook_rights(session, command))
    }

    /// Returns whether the command comes from an agent inside a turn, or from a hook of its session.
    pub(super) fn is_inside_session(&self) -> bool {
        self.turn.is_some() || self.via.is_some() && self.session_scope.is_some()
    }

    /// Refuses an agent's command that would change or bypass the evaluation of its work.
    fn check_agent_rights(&self, run: &RunId, command: &Command) -> Result<(), Refusal> {
        let Some(id) = command.subject_task() else { return Ok(()) };
        let Some(task) = self.draft.find_task(id)? else { return Ok(()) };
        let own = self.draft.find_session(&run.session)?.is_some_and(|session| session.has_worked_on(id));
        let of_session = |lease: &&Lease| lease.session.is_some();
        let refused = || Err(Refusal::OwnTask { id, session: run.session.clone() });
        match (command, task.lease.as_ref().filter(of_session)) {
            (Command::UpdateTask { .. }, _) if own => refused(),
            (Command::UpdateTask { .. }, Some(lease)) => Err(Refusal::Held { id, lease: Box::new(lease.clone()) }),
            (Command::UpdateTask { patch, .. }, None) if changes_judging_hooks(patch, &task) => {
                Err(Refusal::Rejudged { id })
            }
            // An agent's completion of a task that its session holds is only a claim.
            (Command::CompleteTask { .. }, None) if own => self.running_turn().and_then(|_| refused()),
            (_, None) if own => refused(),
            _ => Ok(()),
        }
    }

    /// Refuses a hook's command that would take a task past its gates.
    fn check_hook_rights(&self, session: &SessionName, command: &Command) -> Result<(), Refusal> {
        let Some(id) = command.subject_task() else { return Ok(()) };
        let Some(task) = self.draft.find_task(id)? else { return Ok(()) };
        match (command, task.lease.as_ref().filter(|lease| lease.session.is_some())) {
            (Command::UpdateTask { patch, .. }, _) if changes_type(patch, &task) => Err(Refusal::Rejudged { id }),
            (command, _) if !completes_task(command) => Ok(()),
            (_, Some(lease)) if lease.session.as_ref() == Some(session) => {
                Err(Refusal::OwnTask { id, session: session.clone() })
            }
            (_, Some(lease)) => Err(Refusal::Held { id, lease: Box::new(lease.clone()) }),
            (_, None) => self.refuse_gated_move("complete", &task),
        }
    }

    /// Refuses to start or complete a task past the gates of its type, or a task for other agents.
    pub(super) fn refuse_gated_move(&self, verb: &'static str, task: &Task) -> Result<(), Refusal> {
        let Some(kind) = &task.kind else { return Ok(()) };
        if let Some(agent) = self.agent_of_turn()? {
            self.rules.types.check_agent_allowed(task, &agent)?;
        }
        let gates = self.rules.effects.as_ref().map(|effects| effects.gates_of_type(kind)).unwrap_or_default();
        if gates.is_empty() {
            return Ok(());
        }
        Err(Refusal::GatedTask { verb, id: task.id, kind: kind.clone(), gates })
    }
}

/// Returns whether other hooks may judge the task after this change.
fn changes_judging_hooks(patch: &TaskPatch, task: &Task) -> bool {
    let wanted = labels_after_patch(task, patch);
    let relabels = wanted.len() != task.labels.len() || !wanted.iter().all(|label| task.has_label(label));
    relabels || changes_type(patch, task)
}

fn completes_task(command: &Command) -> bool {
    matches!(command, Command::CompleteTask { .. } | Command::CompleteSeries { promise: Promise::Complete, .. })
}

fn changes_type(patch: &TaskPatch, task: &Task) -> bool {
    patch.kind.as_ref().is_some_and(|kind| *kind != task.kind)
}
