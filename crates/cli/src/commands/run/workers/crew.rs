//! What the workers of one run know of each other: who has what, what is left alone, and when it is over.
//!
//! ```text
//!   worker ─ take ─► a job, or waits ◄─ ring: somebody is done, the log has grown, a signal came
//!          ─ done ─► rings
//! ```
//!
//! Invariants:
//! - No two workers have the same task or session.
//! - Whoever waits is woken; nobody looks again and again.
//! - It is over when nobody works and nothing can be taken, or when nothing more is to be taken and nobody works.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use windlass_engine::{OwnerName, Session, SessionName, TaskId, Usage};
use windlass_process::Control;

/// So many agents in a row that cannot be started are enough.
const FAILED_STARTS: u32 = 2;

#[derive(Default)]
pub struct Crew {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    rings: u64,
    /// How many have something to do.
    working: usize,
    /// Tasks that somebody has, or is about to have.
    busy: BTreeSet<TaskId>,
    /// Tasks that this run does not take again.
    left_alone: BTreeSet<TaskId>,
    /// Sessions that the dead have left.
    resumable: VecDeque<Session>,
    /// Those that were found so far, by name and dead owner.
    offered: BTreeSet<(SessionName, OwnerName)>,
    running: BTreeMap<SessionName, Control>,
    failed_starts: u32,
    failed: BTreeMap<TaskId, u32>,
    /// Somebody rings when the log has grown.
    watched: bool,
    /// Nothing more is taken.
    closed: bool,
    over: bool,
    sum: Sum,
}

impl State {
    fn free(&mut self, task: Option<TaskId>) {
        if let Some(task) = task {
            self.busy.remove(&task);
        }
    }
}

/// What a run of several workers has come to.
#[derive(Debug, Default, Clone)]
pub struct Sum {
    pub done: Vec<TaskId>,
    /// Left for a later run.
    pub left: BTreeSet<TaskId>,
    /// Taken from this run while somebody here worked on them, and how.
    pub lost: BTreeMap<TaskId, String>,
    /// Left to a person.
    pub people: BTreeSet<TaskId>,
    /// Completed although a hook asks for a person, and why it does.
    pub objections: BTreeMap<TaskId, String>,
    /// How many sessions there were.
    pub sessions: usize,
    /// How many tasks were completed whose work nothing checked.
    pub unchecked: u32,
    /// A check that was skipped, where nothing checked the work.
    pub skipped_check: Option<String>,
    pub turns: u32,
    pub used: Usage,
    /// Why nothing more was taken, if agents could not be started or stop hooks could not judge.
    pub paused: Option<String>,
    /// Everything was ended at once.
    pub killed: bool,
}

/// What came of one session.
pub struct Came {
    /// The one that it was begun with.
    pub task: Option<TaskId>,
    pub done: Vec<TaskId>,
    pub left: Vec<TaskId>,
    pub people: Vec<TaskId>,
    /// Why a hook asks for a person although the task is completed.
    pub objection: Option<(TaskId, String)>,
    pub lost: Vec<(TaskId, String)>,
    /// How many tasks it has completed whose work nothing checked.
    pub unchecked: u32,
    /// A check that was skipped, where nothing checked the work.
    pub skipped_check: Option<String>,
    pub turns: u32,
    pub used: Usage,
    /// The agent, or a gatekeeper, could not be started, or is not let in; or a stop hook is broken.
    pub not_started: Option<String>,
    pub killed: bool,
}

/// What a worker is to do next, as far as the crew knows.
pub enum Next<T> {
    Do(T),
    /// Nothing can be taken now. With this number it can be waited for what comes.
    Nothing(u64),
    Over,
}

impl Crew {
    pub fn new(left: Vec<Session>) -> Self {
        let crew = Self::default();
        crew.offer(left);
        crew
    }

    /// A session that was left, or what can be found besides the tasks that are not to be taken.
    pub fn take<T, E>(
        &self,
        resume: impl FnOnce(Session) -> T,
        find: impl FnOnce(&BTreeSet<TaskId>, &BTreeSet<TaskId>) -> Result<Option<(TaskId, T)>, E>,
    ) -> Result<Next<T>, E> {
        let mut state = self.state();
        if state.over || state.closed {
            return Ok(Next::Over);
        }
        if let Some(session) = state.resumable.pop_front() {
            state.working += 1;
            state.busy.extend(session.task);
            return Ok(Next::Do(resume(session)));
        }
        match find(&state.busy, &state.left_alone)? {
            Some((task, found)) => {
                state.working += 1;
                state.busy.insert(task);
                Ok(Next::Do(found))
            }
            None => Ok(Next::Nothing(state.rings)),
        }
    }

    /// Has workers take these sessions up. Answers whether any of them is new: what nobody would go on with is not offered
    /// again.
    pub fn offer(&self, sessions: Vec<Session>) -> bool {
        let mut state = self.state();
        let before = state.resumable.len();
        for session in sessions {
            if state.offered.insert((session.name.clone(), session.owner.clone())) {
                state.resumable.push_back(session);
            }
        }
        state.resumable.len() > before
    }

    /// Waits until somebody rings after a number. Answers whether there may be something to do then.
    pub fn wait(&self, rings: u64) -> bool {
        let mut state = self.state();
        if state.rings == rings && state.working == 0 {
            state.over = true;
            self.changed.notify_all();
        }
        let quiet = |state: &mut State| state.rings == rings && !state.over && !state.closed;
        let state = self.changed.wait_while(state, quiet).unwrap_or_else(PoisonError::into_inner);
        !state.over && !state.closed
    }

    /// Tasks that somebody has, and those that this run does not take again.
    pub fn aside(&self) -> BTreeSet<TaskId> {
        let state = self.state();
        state.busy.union(&state.left_alone).copied().collect()
    }

    /// There may be something new.
    pub fn ring(&self) {
        self.state().rings += 1;
        self.changed.notify_all();
    }

    /// Whether nobody watches the log yet, which somebody does from now on.
    pub fn begin_to_watch(&self) -> bool {
        !std::mem::replace(&mut self.state().watched, true)
    }

    /// Nothing more is taken.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.over || (state.closed && state.working == 0)
    }

    /// A session begins, which can be called off.
    pub fn begin(&self, name: &SessionName, control: &Control) {
        self.state().running.insert(name.clone(), control.clone());
    }

    pub fn running(&self) -> Vec<(SessionName, Control)> {
        self.state().running.iter().map(|(name, control)| (name.clone(), control.clone())).collect()
    }

    /// Somebody else was quicker with a task.
    pub fn missed(&self, task: Option<TaskId>) {
        let mut state = self.state();
        state.working -= 1;
        state.free(task);
        state.rings += 1;
        self.changed.notify_all();
    }

    /// A session is over.
    pub fn done(&self, name: &SessionName, came: Came) {
        let mut state = self.state();
        state.running.remove(name);
        state.working -= 1;
        state.free(came.task);
        state.left_alone.extend(came.left.iter().chain(&came.people));
        match (&came.not_started, came.task) {
            (Some(why), task) => {
                state.failed_starts += 1;
                let times = task.map(|task| {
                    let times = state.failed.entry(task).or_default();
                    *times += 1;
                    (task, *times)
                });
                // Others go on; what fails again and again is for the next run.
                state.left_alone.extend(times.filter(|(_, times)| *times >= FAILED_STARTS).map(|(task, _)| task));
                if state.failed_starts >= FAILED_STARTS {
                    state.closed = true;
                    state.sum.paused.get_or_insert_with(|| why.clone());
                }
            }
            (None, _) if came.turns > 0 || !came.done.is_empty() => state.failed_starts = 0,
            (None, _) => {}
        }
        let sum = &mut state.sum;
        sum.sessions += 1;
        sum.done.extend(&came.done);
        sum.left.extend(&came.left);
        sum.people.extend(&came.people);
        sum.objections.extend(came.objection);
        sum.lost.extend(came.lost);
        (sum.turns, sum.used) = (sum.turns + came.turns, sum.used.plus(came.used));
        sum.unchecked += came.unchecked;
        sum.skipped_check = came.skipped_check.or(sum.skipped_check.take());
        sum.killed |= came.killed;
        state.rings += 1;
        self.changed.notify_all();
    }

    pub fn sum(&self) -> Sum {
        self.state().sum.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn came(task: u64, not_started: Option<&str>) -> Came {
        Came {
            task: Some(TaskId(task)),
            done: vec![],
            left: vec![],
            people: vec![],
            objection: None,
            lost: vec![],
            unchecked: 0,
            skipped_check: None,
            turns: u32::from(not_started.is_none()),
            used: Usage::default(),
            not_started: not_started.map(str::to_owned),
            killed: false,
        }
    }

    /// The first of these that nobody has and that is not left alone.
    fn take(crew: &Crew, tasks: &[u64]) -> Option<u64> {
        let find = |busy: &BTreeSet<TaskId>, left: &BTreeSet<TaskId>| {
            let free = |id: &&u64| !busy.contains(&TaskId(**id)) && !left.contains(&TaskId(**id));
            Ok::<_, Infallible>(tasks.iter().find(free).map(|id| (TaskId(*id), *id)))
        };
        match crew.take(|_| 0, find).unwrap() {
            Next::Do(id) => Some(id),
            Next::Nothing(_) | Next::Over => None,
        }
    }

    fn name() -> SessionName {
        "a".parse().unwrap()
    }

    #[test]
    fn no_two_have_the_same_task() {
        let crew = Crew::default();
        assert_eq!((take(&crew, &[1, 2]), take(&crew, &[1, 2]), take(&crew, &[1, 2])), (Some(1), Some(2), None));
        crew.missed(Some(TaskId(1)));
        assert_eq!(take(&crew, &[1, 2]), Some(1));
        crew.done(&name(), Came { left: vec![TaskId(1)], ..came(1, None) });
        assert_eq!(take(&crew, &[1, 2]), None, "it is left for the next run");
    }

    /// Whoever has lost a task before a turn has not shown that agents can be started.
    #[test]
    fn a_session_without_a_turn_is_no_start() {
        let crew = Crew::default();
        take(&crew, &[1, 2, 3]);
        take(&crew, &[1, 2, 3]);
        crew.done(&name(), came(1, Some("no such program")));
        crew.done(&name(), Came { turns: 0, ..came(2, None) });
        take(&crew, &[1, 2, 3]);
        crew.done(&name(), came(1, Some("no such program")));
        assert_eq!(take(&crew, &[1, 2, 3]), None);
    }

    #[test]
    fn agents_that_cannot_be_started_twice_in_a_row_are_enough() {
        let crew = Crew::default();
        take(&crew, &[1, 2, 3]);
        crew.done(&name(), came(1, Some("no such program")));
        assert_eq!(take(&crew, &[1, 2, 3]), Some(1), "it is nobody's fault yet");
        take(&crew, &[1, 2, 3]);
        crew.done(&name(), came(2, None));
        crew.done(&name(), came(1, Some("no such program")));
        assert_eq!(take(&crew, &[1, 2, 3]), Some(2), "another one has worked meanwhile, and this one is left alone");
        crew.done(&name(), came(2, Some("not let in")));
        assert_eq!(take(&crew, &[1, 2, 3]), None);
        assert_eq!(crew.sum().paused.as_deref(), Some("not let in"));
    }

    #[test]
    fn it_is_over_when_nobody_works_and_nothing_can_be_taken() {
        let crew = Crew::default();
        take(&crew, &[1]);
        let Ok(Next::Nothing(rings)) = crew.take(|_| (), |_, _| Ok::<_, Infallible>(None)) else { panic!("nothing") };
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| crew.wait(rings));
            crew.done(&name(), came(1, None));
            assert!(waits.join().unwrap(), "it looks again when somebody is done");
        });
        let Ok(Next::Nothing(rings)) = crew.take(|_| (), |_, _| Ok::<_, Infallible>(None)) else { panic!("nothing") };
        assert!(!crew.wait(rings));
        assert!(crew.is_over());
    }
}
