//! Commands about the edges between tasks.

use super::Deciding;
use crate::command::refusal::Refusal;
use crate::log::event::{Node, payload};
use crate::log::id::{EdgeId, TaskId};
use crate::task::graph::circle;
use crate::task::{Edge, EdgeKind, State};
use crate::view::{Direction, View};

impl Deciding<'_, '_> {
    /// Adds an edge. An edge that exists already changes nothing.
    pub(super) fn add_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Result<(), Refusal> {
        for (one, other) in [(from, to), (to, from)] {
            if self.task(one)?.state == State::Deleted {
                return Err(Refusal::LinkToDeleted { from: other, to: one });
            }
        }
        if from == to {
            return Err(Refusal::SelfDependency(from));
        }
        if self.find(from, kind, to)?.is_some() {
            return Ok(());
        }
        let wait = Edge { id: EdgeId(0), from_id: from, to_id: to, kind }.wait();
        if let Some((waiter, awaited)) = wait {
            // The decision depends on the whole graph: a cycle may close far away from both ends.
            self.draft.last_edge()?;
            if let Some(path) = circle(&self.draft, waiter, awaited)? {
                return Err(Refusal::Cycle { path });
            }
        }
        self.emit_edge(from, kind, to)?;
        let Some((waiter, awaited)) = wait else { return Ok(()) };
        // The task that had blocked the waiter may be active again, or completed: the waiter waits for it like for any
        // other.
        if self.task(awaited)?.state != State::Failed {
            self.free(waiter, awaited)?;
        }
        self.settle(waiter)
    }

    pub(super) fn remove_edge(&mut self, from: TaskId, kind: EdgeKind, to: TaskId) -> Result<(), Refusal> {
        self.task(from)?;
        self.task(to)?;
        let edge = self.find(from, kind, to)?.ok_or(Refusal::UnknownEdge { from, kind, to })?;
        let removed = payload::DependencyRemoved { edge_id: edge.id, from_id: from, to_id: to };
        self.emit(Node::Task(from), removed)?;
        let Some((waiter, awaited)) = edge.wait() else { return Ok(()) };
        self.free(waiter, awaited)?;
        self.settle(waiter)
    }

    /// Emits an added edge. The caller has checked it.
    pub(super) fn emit_edge(&mut self, from_id: TaskId, edge_type: EdgeKind, to_id: TaskId) -> Result<(), Refusal> {
        self.emit(Node::Task(from_id), payload::DependencyAdded { from_id, to_id, edge_type }).map(drop)
    }

    fn find(&self, from: TaskId, kind: EdgeKind, to: TaskId) -> Result<Option<Edge>, Refusal> {
        let edges = self.draft.edges(from, Direction::From)?;
        Ok(edges.into_iter().find(|edge| edge.to_id == to && edge.kind == kind))
    }
}
