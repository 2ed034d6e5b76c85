//! The waiting relation, computed from the edges for each query.

use std::collections::BTreeSet;

use windlass_engine::{EdgeKind, TaskId};

use super::{Model, Phase};

impl Model {
    /// Returns the pairs of a waiting and an awaited task.
    pub(super) fn waits(&self) -> BTreeSet<(TaskId, TaskId)> {
        self.edges.iter().filter_map(|(from, kind, to)| wait(*from, *kind, *to)).collect()
    }

    pub(super) fn awaited(&self, id: TaskId) -> BTreeSet<TaskId> {
        self.waits().into_iter().filter(|(waiter, _)| *waiter == id).map(|(_, awaited)| awaited).collect()
    }

    pub(super) fn waiters(&self, id: TaskId) -> BTreeSet<TaskId> {
        self.waits().into_iter().filter(|(_, awaited)| *awaited == id).map(|(waiter, _)| waiter).collect()
    }

    pub(super) fn open(&self, id: TaskId) -> BTreeSet<TaskId> {
        self.awaited(id).into_iter().filter(|other| self.tasks[other].phase != Phase::Completed).collect()
    }

    /// Returns the task and all tasks that wait for it, directly or not.
    pub(super) fn above(&self, id: TaskId) -> BTreeSet<TaskId> {
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
    pub(super) fn open_above(&self, id: TaskId) -> BTreeSet<TaskId> {
        let open = |id: &TaskId| self.tasks[id].phase != Phase::Completed;
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
            if self.tasks[&id].phase == Phase::NeedsContinuation && !self.open(id).is_empty() {
                self.tasks.get_mut(&id).expect("it was listed").phase = Phase::Waiting;
            }
        }
        self.block_unreachable_waiters();
    }

    pub(super) fn block_unreachable_waiters(&mut self) {
        for id in self.tasks.keys().copied().collect::<Vec<_>>() {
            let failed = self.awaited(id).into_iter().find(|other| self.tasks[other].phase == Phase::Failed);
            let node = self.tasks.get_mut(&id).expect("it was listed");
            if node.phase == Phase::Waiting && failed.is_some() {
                node.phase = Phase::Blocked(failed);
            }
        }
    }

    /// Lets the tasks wait again that the end of a task had blocked.
    pub(super) fn free_waiters(&mut self, id: TaskId) {
        for waiter in self.waiters(id) {
            self.free(waiter, id);
        }
    }

    pub(super) fn free(&mut self, waiter: TaskId, by: TaskId) {
        let node = self.tasks.get_mut(&waiter).expect("edges end at tasks");
        if node.phase == Phase::Blocked(Some(by)) {
            node.phase = Phase::Waiting;
        }
    }
}

/// Returns the waiting and the awaited task of an edge.
pub(super) fn wait(from: TaskId, kind: EdgeKind, to: TaskId) -> Option<(TaskId, TaskId)> {
    match kind {
        EdgeKind::DependsOn => Some((from, to)),
        EdgeKind::Blocks => Some((to, from)),
        _ => None,
    }
}
