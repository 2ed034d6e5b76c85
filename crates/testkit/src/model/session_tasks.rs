//! The effects of sessions on tasks: the next task, and its outcome.
//!
//! The log says that a session claims or leaves a task, and the session oracle checks whether it may. This module computes
//! the outcome for the graph, and which task is the next one.

use windlass_engine::{
    Command, CommandOrigin, Epoch, Event, EventRecord, SessionName, TaskId, Timestamp, WorkSource, WorkspaceMode,
};

use super::{CommandAttempt, EngineModel, TaskPhase};
use crate::sessions::{SessionOracle, read_sessions};
use windlass_engine::TaskState::{NeedsContinuation, Ready};

/// Returns whether the session itself emitted the last event of a command, and not a hook. A session that a hook has started
/// begins at the depth of that hook.
pub fn is_session_event(command: &Command, entries: &[EventRecord]) -> bool {
    let depth = |record: &EventRecord| record.envelope.metadata.depth;
    let started = entries.iter().find(|record| matches!(record.envelope.event, Event::SessionStarted(_)));
    let last = entries.last().map_or(0, depth);
    may_continue_session(command) && (last == 0 || started.is_some_and(|started| depth(started) == last))
}

/// Returns whether a session can continue with a command.
fn may_continue_session(command: &Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::StartSession(_)
            | C::ResumeSession { .. }
            | C::StopSession { .. }
            | C::AdvanceSession { .. }
            | C::OpenWorkspace { .. }
            | C::LeaveToPerson { .. }
            | C::SubmitWork { .. }
            | C::FinishTurn { .. }
            | C::FailTurn { .. }
            | C::PostponeTurn { .. }
            | C::InterruptTurn { .. }
            | C::FinishEffect { .. }
            | C::RecoverEffect { .. }
    )
}

impl EngineModel {
    /// Returns whether a session may start with a task.
    pub(super) fn allows_session_claim(mut self, id: TaskId, now: Timestamp) -> bool {
        let Some(node) = self.tasks.get_mut(&id) else { return false };
        if node.lease.is_some_and(|(_, until)| until.is_some_and(|until| until < now)) {
            (node.lease, node.phase) = (None, TaskPhase::Waiting);
        }
        self.block_unreachable_waiters();
        matches!(self.state(id), Ready | NeedsContinuation)
    }

    /// Applies the last event of a log to the task of its session.
    pub(super) fn apply_session_event(
        &mut self,
        origin: &CommandOrigin,
        log: &[EventRecord],
        completed: &mut Vec<TaskId>,
    ) {
        let Some(last) = log.last() else { return };
        let (Some(id), Some(name)) = (last.envelope.node.task_id(), &last.envelope.session) else { return };
        match &last.envelope.event {
            Event::TaskCreated(created) => {
                self.add_task(created.priority, created.labels.iter().cloned().collect());
            }
            Event::LeaseExpired(_) | Event::TaskRejected(_) | Event::TaskReleased(_) => {
                self.release_to_phase(id, TaskPhase::Waiting)
            }
            Event::TaskSubmitted(_) | Event::MergeStarted(_) => self.set_phase(id, TaskPhase::Submitted),
            Event::PipelineFailed(_) => self.set_phase(id, TaskPhase::Active),
            Event::TaskClaimed(_) => {
                let completed = std::mem::take(completed);
                CommandAttempt { model: self, origin, log, hook: true, completed }.create_reviews();
                let next = self.next_session_task(log, name, id);
                let in_place = read_sessions(log)
                    .get(name)
                    .is_some_and(|session| session.workspace_mode == WorkspaceMode::InPlace);
                let node = self.tasks.get_mut(&next).expect("it can be claimed");
                node.epoch += 1;
                node.in_place = in_place;
                (node.phase, node.lease) = (TaskPhase::Active, Some((Epoch(node.epoch), None)));
            }
            // The loop advances a series.
            Event::GateDecided(_) => {
                let holds = read_sessions(log).get(name).is_some_and(|session| session.holds());
                let series = self.tasks.get_mut(&id).and_then(|node| node.series_record.series.as_mut());
                series.into_iter().for_each(|series_state| series_state.judged |= holds);
            }
            Event::IterationStarted(_) => {
                let takes_up = read_sessions(&log[..log.len() - 1]).get(name).is_some_and(SessionOracle::takes_up);
                let series = self.tasks.get_mut(&id).and_then(|node| node.series_record.series.as_mut());
                if let Some(series_state) = series.filter(|series_state| {
                    series_state.judged && !takes_up && series_state.iteration < series_state.max_iterations
                }) {
                    (series_state.iteration, series_state.complete, series_state.judged) =
                        (series_state.iteration + 1, false, false);
                }
            }
            Event::TaskCompleted(_) => {
                self.release_to_phase(id, TaskPhase::Completed);
                self.free_waiters(id);
                completed.push(id);
            }
            Event::TaskBlocked(blocked) if blocked.by.is_none() => self.release_to_phase(id, TaskPhase::Blocked(None)),
            Event::TaskNeedsContinuation(_) => self.release_to_phase(id, TaskPhase::NeedsContinuation),
            _ => return,
        }
        self.update_waiting_tasks();
    }

    /// Changes the phase of a task that its session keeps.
    fn set_phase(&mut self, id: TaskId, phase: TaskPhase) {
        self.tasks.get_mut(&id).expect("sessions work on tasks").phase = phase;
    }

    fn release_to_phase(&mut self, id: TaskId, phase: TaskPhase) {
        let node = self.tasks.get_mut(&id).expect("sessions work on tasks");
        (node.phase, node.lease) = (phase, None);
    }

    /// Returns the most urgent claimable task, for a session that works on the whole graph.
    fn next_session_task(&self, log: &[EventRecord], name: &SessionName, claimed: TaskId) -> TaskId {
        let session = read_sessions(log).remove(name).expect("it has started");
        let claimable = self
            .rows()
            .into_iter()
            .filter(|(id, row)| matches!(row.state, Ready | NeedsContinuation) && !session.released_tasks.contains(id))
            .filter(|(id, _)| session.workspace_mode == WorkspaceMode::InPlace || !self.tasks[id].in_place);
        let next = claimable.map(|(id, row)| (row.priority, id)).min().map(|(_, id)| id);
        match session.work {
            WorkSource::Graph => next.unwrap_or(claimed),
            WorkSource::Given => claimed,
        }
    }
}
