//! The effects of sessions on tasks: the next task, and its outcome.
//!
//! The log says that a session claims or leaves a task, and the session oracle checks whether it may. This module computes
//! the outcome for the graph, and which task is the next one.

use windlass_engine::{
    Command, CommandOrigin, Epoch, Event, EventRecord, SessionName, TaskId, Timestamp, WorkSource, WorkspaceMode,
};

use super::{Attempt, Model, Phase};
use crate::sessions::{SessionOracle, read_sessions};
use windlass_engine::TaskState::{NeedsContinuation, Ready};

/// Returns whether the session itself emitted the last event of a command, and not a hook. A session that a hook has started
/// begins at the depth of that hook.
pub fn is_of_a_session(command: &Command, entries: &[EventRecord]) -> bool {
    let depth = |record: &EventRecord| record.envelope.metadata.depth;
    let started = entries.iter().find(|record| matches!(record.envelope.event, Event::SessionStarted(_)));
    let last = entries.last().map_or(0, depth);
    may_go_on(command) && (last == 0 || started.is_some_and(|started| depth(started) == last))
}

/// Returns whether a session can continue with a command.
fn may_go_on(command: &Command) -> bool {
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

impl Model {
    /// Returns whether a session may start with a task.
    pub(super) fn may_be_taken(mut self, id: TaskId, now: Timestamp) -> bool {
        let Some(node) = self.tasks.get_mut(&id) else { return false };
        if node.lease.is_some_and(|(_, until)| until.is_some_and(|until| until < now)) {
            (node.lease, node.phase) = (None, Phase::Waiting);
        }
        self.block_unreachable_waiters();
        matches!(self.state(id), Ready | NeedsContinuation)
    }

    /// Applies the last event of a log to the task of its session.
    pub(super) fn follow(&mut self, origin: &CommandOrigin, log: &[EventRecord], completed: &mut Vec<TaskId>) {
        let Some(last) = log.last() else { return };
        let (Some(id), Some(name)) = (last.envelope.node.task_id(), &last.envelope.session) else { return };
        match &last.envelope.event {
            Event::TaskCreated(created) => {
                self.add(created.priority, created.labels.iter().cloned().collect());
            }
            Event::LeaseExpired(_) | Event::TaskRejected(_) | Event::TaskReleased(_) => self.put(id, Phase::Waiting),
            Event::TaskSubmitted(_) | Event::MergeStarted(_) => self.move_on(id, Phase::Submitted),
            Event::PipelineFailed(_) => self.move_on(id, Phase::Active),
            Event::TaskClaimed(_) => {
                let completed = std::mem::take(completed);
                Attempt { model: self, origin, log, hook: true, completed }.review();
                let next = self.next_for(log, name, id);
                let in_place =
                    read_sessions(log).get(name).is_some_and(|session| session.grounds == WorkspaceMode::InPlace);
                let node = self.tasks.get_mut(&next).expect("it can be claimed");
                node.epoch += 1;
                node.in_place = in_place;
                (node.phase, node.lease) = (Phase::Active, Some((Epoch(node.epoch), None)));
            }
            // The loop advances a series.
            Event::GateDecided(_) => {
                let holds = read_sessions(log).get(name).is_some_and(|session| session.holds());
                let series = self.tasks.get_mut(&id).and_then(|node| node.driven.series.as_mut());
                series.into_iter().for_each(|turns| turns.judged |= holds);
            }
            Event::IterationStarted(_) => {
                let takes_up = read_sessions(&log[..log.len() - 1]).get(name).is_some_and(SessionOracle::takes_up);
                let series = self.tasks.get_mut(&id).and_then(|node| node.driven.series.as_mut());
                if let Some(turns) = series.filter(|turns| turns.judged && !takes_up && turns.iteration < turns.most) {
                    (turns.iteration, turns.complete, turns.judged) = (turns.iteration + 1, false, false);
                }
            }
            Event::TaskCompleted(_) => {
                self.put(id, Phase::Completed);
                self.free_waiters(id);
                completed.push(id);
            }
            Event::TaskBlocked(blocked) if blocked.by.is_none() => self.put(id, Phase::Blocked(None)),
            Event::TaskNeedsContinuation(_) => self.put(id, Phase::NeedsContinuation),
            _ => return,
        }
        self.update_waiting_tasks();
    }

    /// Changes the phase of a task that its session keeps.
    fn move_on(&mut self, id: TaskId, phase: Phase) {
        self.tasks.get_mut(&id).expect("sessions work on tasks").phase = phase;
    }

    fn put(&mut self, id: TaskId, phase: Phase) {
        let node = self.tasks.get_mut(&id).expect("sessions work on tasks");
        (node.phase, node.lease) = (phase, None);
    }

    /// Returns the most urgent claimable task, for a session that works on the whole graph.
    fn next_for(&self, log: &[EventRecord], name: &SessionName, claimed: TaskId) -> TaskId {
        let session = read_sessions(log).remove(name).expect("it has started");
        let claimable = self
            .rows()
            .into_iter()
            .filter(|(id, row)| matches!(row.state, Ready | NeedsContinuation) && !session.left.contains(id))
            .filter(|(id, _)| session.grounds == WorkspaceMode::InPlace || !self.tasks[id].in_place);
        let next = claimable.map(|(id, row)| (row.priority, id)).min().map(|(_, id)| id);
        match session.work {
            WorkSource::Graph => next.unwrap_or(claimed),
            WorkSource::Given => claimed,
        }
    }
}
