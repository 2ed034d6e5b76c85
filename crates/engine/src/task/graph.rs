//! The waiting relation between tasks.
//!
//! Two kinds of edges make a task wait: `depends_on`, and `blocks` read backwards. Two edges to the same task count as one
//! wait.

use std::collections::{BTreeMap, VecDeque};

use crate::log::id::TaskId;
use crate::view::{EdgeDirection, StateView, ViewResult};

/// Returns the distinct tasks at the other end of the waiting edges of a task.
fn waiting_neighbours(
    view: &dyn StateView,
    id: TaskId,
    pick: fn((TaskId, TaskId)) -> (TaskId, TaskId),
) -> ViewResult<Vec<TaskId>> {
    let mut edges = view.find_edges(id, EdgeDirection::From)?;
    edges.extend(view.find_edges(id, EdgeDirection::To)?);
    let mut found: Vec<_> = edges
        .iter()
        .filter_map(|edge| edge.waiting_pair().map(pick))
        .filter(|(one, _)| *one == id)
        .map(|(_, two)| two)
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the tasks that a task waits for, including completed ones.
pub fn awaited_tasks(view: &dyn StateView, id: TaskId) -> ViewResult<Vec<TaskId>> {
    waiting_neighbours(view, id, |wait| wait)
}

/// Returns the tasks that wait for a task.
pub fn waiting_tasks(view: &dyn StateView, id: TaskId) -> ViewResult<Vec<TaskId>> {
    waiting_neighbours(view, id, |(waiter, awaited)| (awaited, waiter))
}

/// One side of a bidirectional search.
struct SearchFrontier {
    next: VecDeque<TaskId>,
    /// For each reached task, the task that the search came from.
    reached: BTreeMap<TaskId, TaskId>,
    step: fn(&dyn StateView, TaskId) -> ViewResult<Vec<TaskId>>,
}

impl SearchFrontier {
    fn new(start: TaskId, step: fn(&dyn StateView, TaskId) -> ViewResult<Vec<TaskId>>) -> Self {
        Self { next: VecDeque::from([start]), reached: BTreeMap::from([(start, start)]), step }
    }

    /// Expands one task. Returns a task that the other side has reached too.
    fn advance_search(&mut self, view: &dyn StateView, other: &Self) -> ViewResult<Option<TaskId>> {
        let Some(task) = self.next.pop_front() else { return Ok(None) };
        for neighbour in (self.step)(view, task)? {
            if self.reached.contains_key(&neighbour) {
                continue;
            }
            self.reached.insert(neighbour, task);
            if other.reached.contains_key(&neighbour) {
                return Ok(Some(neighbour));
            }
            self.next.push_back(neighbour);
        }
        Ok(None)
    }

    /// Returns the path from a reached task back to the start.
    fn path_to_start(&self, mut task: TaskId) -> Vec<TaskId> {
        let mut way = vec![task];
        while self.reached[&task] != task {
            task = self.reached[&task];
            way.push(task);
        }
        way
    }
}

/// Returns the cycle that would close if `waiter` waited for `awaited_one`: it begins and ends with `waiter`.
///
/// The search grows from both ends at once and stops when either has no task left. So a new task, which no task waits for
/// yet, costs one look-up in a graph of any size.
pub(crate) fn find_waiting_cycle(
    view: &dyn StateView,
    waiter: TaskId,
    awaited_one: TaskId,
) -> ViewResult<Option<Vec<TaskId>>> {
    let mut below = SearchFrontier::new(awaited_one, awaited_tasks);
    let mut above = SearchFrontier::new(waiter, waiting_tasks);
    loop {
        let meeting = match above.advance_search(view, &below)? {
            None if above.next.is_empty() => return Ok(None),
            None => below.advance_search(view, &above)?,
            meeting => meeting,
        };
        if let Some(task) = meeting {
            let down = below.path_to_start(task).into_iter().rev();
            let up = above.path_to_start(task).into_iter().skip(1);
            return Ok(Some([waiter].into_iter().chain(down).chain(up).collect()));
        }
        if below.next.is_empty() {
            return Ok(None);
        }
    }
}
