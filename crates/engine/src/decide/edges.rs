//! Commands about the edges between tasks.

use super::DecisionContext;
use crate::command::refusal::Refusal;
use crate::log::event::{EventSubject, payload};
use crate::log::id::{EdgeId, TaskId};
use crate::task::graph::find_waiting_cycle;
use crate::task::{EdgeKind, TaskEdge, TaskState};
use crate::view::{EdgeDirection, StateView};

impl DecisionContext<'_, '_> {
    /// Adds an edge. An edge that exists already changes nothing.
    pub(super) fn add_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Result<(), Refusal> {
        for (one, other) in [(from, to), (to, from)] {
            if self.require_task(one)?.state == TaskState::Deleted {
                return Err(Refusal::LinkToDeleted { from: other, to: one });
            }
        }
        if from == to {
            return Err(Refusal::SelfDependency(from));
        }
        if self.find_edge(from, kind, to)?.is_some() {
            return Ok(());
        }
        let wait = TaskEdge { id: EdgeId(0), from_id: from, to_id: to, kind }.waiting_pair();
        if let Some((waiter, awaited)) = wait {
            // The decision depends on the whole graph: a cycle may close far away from both ends.
            self.draft.last_edge_id()?;
            if let Some(path) = find_waiting_cycle(&self.draft, waiter, awaited)? {
                return Err(Refusal::Cycle { path });
            }
        }
        self.emit_edge(from, kind, to)?;
        let Some((waiter, awaited)) = wait else { return Ok(()) };
        // The task that had blocked the waiter may be active again, or completed: the waiter waits for it like for any
        // other.
        if self.require_task(awaited)?.state != TaskState::Failed {
            self.unblock_after_dependency(waiter, awaited)?;
        }
        self.settle_task_state(waiter)
    }

    pub(super) fn remove_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Result<(), Refusal> {
        self.require_task(from)?;
        self.require_task(to)?;
        let edge = self.find_edge(from, kind, to)?.ok_or(Refusal::UnknownEdge { from, kind, to })?;
        let removed = payload::DependencyRemoved { edge_id: edge.id, from_id: from, to_id: to };
        self.emit_event(EventSubject::Task(from), removed)?;
        let Some((waiter, awaited)) = edge.waiting_pair() else { return Ok(()) };
        self.unblock_after_dependency(waiter, awaited)?;
        self.settle_task_state(waiter)
    }

    /// Emits an added edge. The caller has checked it.
    pub(super) fn emit_edge(&mut self, from_id: TaskId, edge_type: EdgeKind, to_id: TaskId) -> Result<(), Refusal> {
        self.emit_event(EventSubject::Task(from_id), payload::DependencyAdded { from_id, to_id, edge_type }).map(drop)
    }

    fn find_edge(&self, from: TaskId, kind: EdgeKind, to: TaskId) -> Result<Option<TaskEdge>, Refusal> {
        let edges = self.draft.find_edges(from, EdgeDirection::From)?;
        Ok(edges.into_iter().find(|edge| edge.to_id == to && edge.kind == kind))
    }
}
