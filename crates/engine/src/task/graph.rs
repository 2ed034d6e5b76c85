//! Who waits for whom.
//!
//! Two kinds of edges make a task wait: `depends_on`, and `blocks` read backwards. A task that is named by both waits
//! once.

use std::collections::{BTreeMap, VecDeque};

use crate::log::id::TaskId;
use crate::view::{Direction, Looked, View};

/// The different tasks at the other end of the waiting edges of a task.
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

/// The tasks that a task waits for, completed ones included.
pub fn awaited(view: &dyn View, id: TaskId) -> Looked<Vec<TaskId>> {
    neighbours(view, id, |wait| wait)
}

/// The tasks that wait for a task.
pub fn waiters(view: &dyn View, id: TaskId) -> Looked<Vec<TaskId>> {
    neighbours(view, id, |(waiter, awaited)| (awaited, waiter))
}

/// One side of a search that grows from both ends.
struct Front {
    next: VecDeque<TaskId>,
    /// Where each task was reached from.
    reached: BTreeMap<TaskId, TaskId>,
    step: fn(&dyn View, TaskId) -> Looked<Vec<TaskId>>,
}

impl Front {
    fn new(start: TaskId, step: fn(&dyn View, TaskId) -> Looked<Vec<TaskId>>) -> Self {
        Self { next: VecDeque::from([start]), reached: BTreeMap::from([(start, start)]), step }
    }

    /// Takes one task further. Answers a task that the other side knows as well.
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

    /// From a reached task back to the start.
    fn way_back(&self, mut task: TaskId) -> Vec<TaskId> {
        let mut way = vec![task];
        while self.reached[&task] != task {
            task = self.reached[&task];
            way.push(task);
        }
        way
    }
}

/// The circle that would close if `waiter` waited for `awaited`: it begins and ends with `waiter`.
///
/// The search grows from both ends at once and stops when either has nowhere to go, so a new task, for which nobody
/// waits yet, costs one look-up however large the graph is.
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
