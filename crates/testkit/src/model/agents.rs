//! Commands that the model refuses to agents: changes of their own checks, and ways around them.

use std::collections::BTreeSet;

use windlass_engine::{Command, Event, Promise, TaskId, TaskPatch};

use super::{CommandAttempt, ModelTask};
use crate::rules::GATED_TYPE;

impl CommandAttempt<'_> {
    pub(super) fn violates_agent_limits(&self, command: &Command) -> bool {
        let Some(session) = self.surrounding_session() else { return false };
        let Some(id) = task_of_command(command) else { return false };
        let Some(node) = self.model.tasks.get(&id) else { return false };
        let (own, held) = (session.has_taken_up(id), node.lease.is_some_and(|(_, until)| until.is_none()));
        let completes = matches!(
            command,
            Command::CompleteTask { .. } | Command::CompleteSeries { promise: Promise::Complete, .. }
        );
        match command {
            // A hook must leave held or gated tasks to their gates.
            _ if self.origin.via.is_some() => completes && (held || self.is_gated(id)),
            Command::UpdateTask { patch, .. } => own || held || patched_labels(node, patch) != node.labels,
            _ => own && !held,
        }
    }

    /// Returns whether the task may be started. An agent starts no gated task.
    pub(super) fn may_start(&self, id: TaskId) -> bool {
        self.hook || !self.is_agent() || !self.is_gated(id)
    }

    /// Returns whether the type of a task has a gate of its own, by the rules of random histories.
    pub(super) fn is_gated(&self, id: TaskId) -> bool {
        self.log.iter().any(|record| match &record.envelope.event {
            Event::TaskCreated(created) if record.envelope.node.task_id() == Some(id) => {
                created.kind.as_ref().is_some_and(|kind| kind.as_str() == GATED_TYPE)
            }
            _ => false,
        })
    }
}

fn task_of_command(command: &Command) -> Option<TaskId> {
    use Command as C;
    match command {
        C::UpdateTask { id, .. } | C::CompleteTask { id, .. } | C::DeleteTask { id, .. } => Some(*id),
        C::StartTask { id, .. } | C::SubmitTask { id } | C::UnblockTask { id } => Some(*id),
        C::ReleaseTask { id, .. } | C::FailTask { id, .. } | C::ReopenTask { id, .. } => Some(*id),
        C::ClaimTask { id, .. } => *id,
        C::CompleteSeries { task, .. } => Some(*task),
        _ => None,
    }
}

/// Returns the labels after a change.
pub(super) fn patched_labels(node: &ModelTask, patch: &TaskPatch) -> BTreeSet<String> {
    let kept = patch.labels.as_ref().map_or_else(|| node.labels.clone(), |labels| labels.iter().cloned().collect());
    let all = kept.into_iter().chain(patch.add_labels.iter().cloned());
    all.filter(|label| !patch.remove_labels.contains(label)).collect()
}

/// Returns whether a command is about tasks, and not about the work of a session's runner.
pub(super) fn is_about_tasks(command: &Command) -> bool {
    use Command as C;
    !matches!(
        command,
        C::ResumeSession { .. }
            | C::StopSession { .. }
            | C::AdvanceSession { .. }
            | C::OpenWorkspace { .. }
            | C::LeaveToPerson { .. }
            | C::SubmitWork { .. }
            | C::OpenConversation { .. }
            | C::FinishTurn { .. }
            | C::FailTurn { .. }
            | C::PostponeTurn { .. }
            | C::InterruptTurn { .. }
            | C::BeginEffect { .. }
            | C::RestEffect { .. }
            | C::RetryEffect { .. }
            | C::FinishEffect { .. }
            | C::StartWorkflow { .. }
            | C::BeginStep { .. }
            | C::EndStep { .. }
            | C::AbandonWorkflow { .. }
            | C::RecoverEffect { .. }
    )
}
