//! The waiting relation, computed from the edges for each query.

use std::collections::BTreeSet;

use windlass_engine::{EdgeKind, TaskId};

use super::{EngineModel, TaskPhase};

impl EngineModel {
    /// Returns the pairs of a waiting and an awaited task.
    pub(super) fn waiting_pairs(&self) -> BTreeSet<(TaskId, TaskId)> {
        self.edges.iter().filter_map(|(from, kind, to)| waiting_pair(*from, *kind, *to)).collect()
    }

    pub(super) fn awaited(&self, id: TaskId) -> BTreeSet<TaskId> {
        self.waiting_pairs().into_iter().filter(|(waiter, _)| *waiter == id).map(|(_, awaited)| awaited).collect()
    }

    pub(super) fn waiters(&self, id: TaskId) -> BTreeSet<TaskId> {
        self.waiting_pairs().into_iter().filter(|(_, awaited)| *awaited == id).map(|(waiter, _)| waiter).collect()
    }

    pub(super) fn open_dependencies(&self, id: TaskId) -> BTreeSet<TaskId> {
        self.awaited(id).into_iter().filter(|other| self.tasks[other].phase != TaskPhase::Completed).collect()
    }

    /// Returns the task and all tasks that wait for it, directly or not.
    pub(super) fn tasks_waiting_on(&self, id: TaskId) -> BTreeSet<TaskId> {
        let mut found = BTreeSet::from([id]);
        loop {
            let more: BTreeSet<_> = found.iter().flat_map(|id| self.waiters(*id)).collect();
            if more.is_subset(&found) {
                return found;
            }
            found.extend(more);
        }
    }

    /// Returns the task and all tasks that still wait for it, directly or through other waiting tasks.
    pub(super) fn open_tasks_waiting_on(&self, id: TaskId) -> BTreeSet<TaskId> {
        let open = |id: &TaskId| self.tasks[id].phase != TaskPhase::Completed;
        let mut found = BTreeSet::from([id]);
        loop {
            let more = found.iter().filter(|id| open(id)).flat_map(|id| self.waiters(*id)).filter(open);
            let more: BTreeSet<_> = more.collect();
            if more.is_subset(&found) {
                return found;
            }
            found.extend(more);
        }
    }

    /// Makes tasks that need another attempt wait while a dependency is open.
    pub(super) fn update_waiting_tasks(&mut self) {
        for id in self.tasks.keys().copied().collect::<Vec<_>>() {
            if self.tasks[&id].phase == TaskPhase::NeedsContinuation && !self.open_dependencies(id).is_empty() {
                self.tasks.get_mut(&id).expect("it was listed").phase = TaskPhase::Waiting;
            }
        }
        self.block_unreachable_waiters();
    }

    pub(super) fn block_unreachable_waiters(&mut self) {
        for id in self.tasks.keys().copied().collect::<Vec<_>>() {
            let failed = self.awaited(id).into_iter().find(|other| self.tasks[other].phase == TaskPhase::Failed);
            let node = self.tasks.get_mut(&id).expect("it was listed");
            if node.phase == TaskPhase::Waiting && failed.is_some() {
                node.phase = TaskPhase::Blocked(failed);
            }
        }
    }

    /// Unblocks the tasks that the end of this task had blocked.
    pub(super) fn free_waiters(&mut self, id: TaskId) {
        for waiter in self.waiters(id) {
            self.unblock_waiter(waiter, id);
        }
    }

    pub(super) fn unblock_waiter(&mut self, waiter: TaskId, by: TaskId) {
        let node = self.tasks.get_mut(&waiter).expect("edges end at tasks");
        if node.phase == TaskPhase::Blocked(Some(by)) {
            node.phase = TaskPhase::Waiting;
        }
    }
}

/// Returns the waiting and the awaited task of an edge.
pub(super) fn waiting_pair(from: TaskId, kind: EdgeKind, to: TaskId) -> Option<(TaskId, TaskId)> {
    match kind {
        EdgeKind::DependsOn => Some((from, to)),
        EdgeKind::Blocks => Some((to, from)),
        _ => None,
    }
}
