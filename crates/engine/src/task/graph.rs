//! The waiting relation between tasks.
//!
//! Two kinds of edges make a task wait: `depends_on`, and `blocks` read backwards. Two edges to the same task count as one
//! wait.

use std::collections::{BTreeMap, VecDeque};

use crate::log::id::TaskId;
use crate::view::{Direction, Looked, View};

/// Returns the distinct tasks at the other end of the waiting edges of a task.
fn neighbours(view: &dyn View, id: TaskId, pick: fn((TaskId, TaskId)) -> (TaskId, TaskId)) -> Looked<Vec<TaskId>> {
    let mut edges = view.edges(id, Direction::From)?;
    edges.extend(view.edges(id, Direction::To)?);
    let mut found: Vec<_> = edges
        .iter()
        .filter_map(|edge| edge.wait().map(pick))
        .filter(|(one, _)| *one == id)
        .map(|(_, two)| two)
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the tasks that a task waits for, including completed ones.
pub fn awaited(view: &dyn View, id: TaskId) -> Looked<Vec<TaskId>> {
    neighbours(view, id, |wait| wait)
}

/// Returns the tasks that wait for a task.
pub fn waiters(view: &dyn View, id: TaskId) -> Looked<Vec<TaskId>> {
    neighbours(view, id, |(waiter, awaited)| (awaited, waiter))
}

/// One side of a bidirectional search.
struct Front {
    next: VecDeque<TaskId>,
    /// For each reached task, the task that the search came from.
    reached: BTreeMap<TaskId, TaskId>,
    step: fn(&dyn View, TaskId) -> Looked<Vec<TaskId>>,
}

impl Front {
    fn new(start: TaskId, step: fn(&dyn View, TaskId) -> Looked<Vec<TaskId>>) -> Self {
        Self { next: VecDeque::from([start]), reached: BTreeMap::from([(start, start)]), step }
    }

    /// Expands one task. Returns a task that the other side has reached too.
    fn advance(&mut self, view: &dyn View, other: &Self) -> Looked<Option<TaskId>> {
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
    fn way_back(&self, mut task: TaskId) -> Vec<TaskId> {
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
pub(crate) fn circle(view: &dyn View, waiter: TaskId, awaited_one: TaskId) -> Looked<Option<Vec<TaskId>>> {
    let mut below = Front::new(awaited_one, awaited);
    let mut above = Front::new(waiter, waiters);
    loop {
        let meeting = match above.advance(view, &below)? {
            None if above.next.is_empty() => return Ok(None),
            None => below.advance(view, &above)?,
            meeting => meeting,
        };
        if let Some(task) = meeting {
            let down = below.way_back(task).into_iter().rev();
            let up = above.way_back(task).into_iter().skip(1);
            return Ok(Some([waiter].into_iter().chain(down).chain(up).collect()));
        }
        if below.next.is_empty() {
            return Ok(None);
        }
    }
}
