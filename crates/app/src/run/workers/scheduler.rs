//! The scheduler of a worker pool: which worker has which task or session, what is left alone, and when the run is over.
//!
//! ```text
//!   worker ─ take_job ─► a job, or waits ◄─ wake_workers: a worker is done, the log has grown, a signal came
//!          ─ finish_session ─► wakes the others
//! ```
//!
//! Invariants:
//! - No two workers have the same task or session.
//! - A waiting worker is woken; no worker polls.
//! - The run is over when no worker works and none can take anything, or when the scheduler is closed and no worker works.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use windlass_engine::{AgentUsage, OwnerName, Session, SessionName, TaskId};
use windlass_process::RunControl;

/// After this many failed agent starts in a row, the run takes nothing more.
const MAX_FAILED_STARTS: u32 = 2;

/// The state that all workers of a run share.
#[derive(Default)]
pub struct SessionScheduler {
    state: Mutex<SchedulerState>,
    changed: Condvar,
}

#[derive(Default)]
struct SchedulerState {
    wakes: u64,
    /// The number of workers with a job.
    working: usize,
    /// Tasks that a worker has, or is about to have.
    busy: BTreeSet<TaskId>,
    /// Tasks that this run does not take again.
    left_alone: BTreeSet<TaskId>,
    /// Sessions of dead owners.
    resumable: VecDeque<Session>,
    /// The sessions that were offered so far, by name and dead owner.
    offered: BTreeSet<(SessionName, OwnerName)>,
    running: BTreeMap<SessionName, RunControl>,
    failed_starts: u32,
    failed: BTreeMap<TaskId, u32>,
    /// Whether a thread watches the log.
    watched: bool,
    /// Whether workers take nothing more.
    closed: bool,
    over: bool,
    totals: RunTotals,
}

impl SchedulerState {
    fn release_task(&mut self, task: Option<TaskId>) {
        if let Some(task) = task {
            self.busy.remove(&task);
        }
    }
}

/// The totals of a run with several workers.
#[derive(Debug, Default, Clone)]
pub struct RunTotals {
    pub done: Vec<TaskId>,
    /// Tasks left for a later run.
    pub left: BTreeSet<TaskId>,
    /// Tasks that were taken from this run while a worker had them, and how.
    pub lost: BTreeMap<TaskId, String>,
    /// Tasks left to a person.
    pub people: BTreeSet<TaskId>,
    /// Completed tasks for which a hook still asks for a person, each with the reason.
    pub objections: BTreeMap<TaskId, String>,
    /// The number of sessions.
    pub sessions: usize,
    /// The number of completed tasks whose work nothing checked.
    pub unchecked: u32,
    /// A skipped check, if the work of some task was not checked.
    pub skipped_check: Option<String>,
    pub turns: u32,
    pub used: AgentUsage,
    /// Why the run stopped taking tasks: agents could not be started, or stop hooks could not judge.
    pub paused: Option<String>,
    /// Whether everything was ended at once.
    pub killed: bool,
}

/// The result of one session of a worker.
pub struct SessionResult {
    /// The task that the session began with.
    pub task: Option<TaskId>,
    pub done: Vec<TaskId>,
    pub left: Vec<TaskId>,
    pub people: Vec<TaskId>,
    /// A completed task for which a hook still asks for a person, with the reason.
    pub objection: Option<(TaskId, String)>,
    pub lost: Vec<(TaskId, String)>,
    /// The number of completed tasks whose work nothing checked.
    pub unchecked: u32,
    /// A skipped check, if the work of some task was not checked.
    pub skipped_check: Option<String>,
    pub turns: u32,
    pub used: AgentUsage,
    /// Why the session could not work: the agent or a gatekeeper could not be started or authenticated, or a stop hook is broken.
    pub not_started: Option<String>,
    pub killed: bool,
}

/// The next job of a worker.
pub enum NextJob<T> {
    Do(T),
    /// Nothing can be taken now. A worker waits with this number of wake-ups.
    Nothing(u64),
    Over,
}

impl SessionScheduler {
    pub fn new(left: Vec<Session>) -> Self {
        let scheduler = Self::default();
        scheduler.offer_sessions(left);
        scheduler
    }

    /// Returns an unfinished session, or what `find` finds besides the unavailable tasks.
    pub fn take_job<T, E>(
        &self,
        resume: impl FnOnce(Session) -> T,
        find: impl FnOnce(&BTreeSet<TaskId>, &BTreeSet<TaskId>) -> Result<Option<(TaskId, T)>, E>,
    ) -> Result<NextJob<T>, E> {
        let mut state = self.lock_state();
        if state.over || state.closed {
            return Ok(NextJob::Over);
        }
        if let Some(session) = state.resumable.pop_front() {
            state.working += 1;
            state.busy.extend(session.task);
            return Ok(NextJob::Do(resume(session)));
        }
        match find(&state.busy, &state.left_alone)? {
            Some((task, found)) => {
                state.working += 1;
                state.busy.insert(task);
                Ok(NextJob::Do(found))
            }
            None => Ok(NextJob::Nothing(state.wakes)),
        }
    }

    /// Offers sessions to the workers. Returns whether any of them is new: a session is offered once per dead owner.
    pub fn offer_sessions(&self, sessions: Vec<Session>) -> bool {
        let mut state = self.lock_state();
        let before = state.resumable.len();
        for session in sessions {
            if state.offered.insert((session.name.clone(), session.owner.clone())) {
                state.resumable.push_back(session);
            }
        }
        state.resumable.len() > before
    }

    /// Waits until the number of wake-ups has changed. Returns whether there may be something to do then.
    pub fn wait_for_wake(&self, wakes: u64) -> bool {
        let mut state = self.lock_state();
        if state.wakes == wakes && state.working == 0 {
            state.over = true;
            self.changed.notify_all();
        }
        let quiet = |state: &mut SchedulerState| state.wakes == wakes && !state.over && !state.closed;
        let state = self.changed.wait_while(state, quiet).unwrap_or_else(PoisonError::into_inner);
        !state.over && !state.closed
    }

    /// Returns the tasks that a worker has, and those that this run does not take again.
    pub fn unavailable_tasks(&self) -> BTreeSet<TaskId> {
        let state = self.lock_state();
        state.busy.union(&state.left_alone).copied().collect()
    }

    /// Wakes the waiting workers: there may be new work.
    pub fn wake_workers(&self) {
        self.lock_state().wakes += 1;
        self.changed.notify_all();
    }

    /// Marks the log as watched. Returns whether it was not watched before.
    pub fn claim_log_watch(&self) -> bool {
        !std::mem::replace(&mut self.lock_state().watched, true)
    }

    /// Makes workers take nothing more.
    pub fn close_for_new_jobs(&self) {
        self.lock_state().closed = true;
        self.changed.notify_all();
    }

    pub fn is_over(&self) -> bool {
        let state = self.lock_state();
        state.over || (state.closed && state.working == 0)
    }

    /// Records the begin of a session, with its control.
    pub fn begin_session(&self, name: &SessionName, control: &RunControl) {
        self.lock_state().running.insert(name.clone(), control.clone());
    }

    pub fn running_sessions(&self) -> Vec<(SessionName, RunControl)> {
        self.lock_state().running.iter().map(|(name, control)| (name.clone(), control.clone())).collect()
    }

    /// Releases a job that another process took first.
    pub fn release_job(&self, task: Option<TaskId>) {
        let mut state = self.lock_state();
        state.working -= 1;
        state.release_task(task);
        state.wakes += 1;
        self.changed.notify_all();
    }

    /// Records the result of a session.
    pub fn finish_session(&self, name: &SessionName, result: SessionResult) {
        let mut state = self.lock_state();
        state.running.remove(name);
        state.working -= 1;
        state.release_task(result.task);
        state.left_alone.extend(result.left.iter().chain(&result.people));
        match (&result.not_started, result.task) {
            (Some(why), task) => {
                state.failed_starts += 1;
                let times = task.map(|task| {
                    let times = state.failed.entry(task).or_default();
                    *times += 1;
                    (task, *times)
                });
                // Other tasks go on; a task that fails again and again is left for the next run.
                state.left_alone.extend(times.filter(|(_, times)| *times >= MAX_FAILED_STARTS).map(|(task, _)| task));
                if state.failed_starts >= MAX_FAILED_STARTS {
                    state.closed = true;
                    state.totals.paused.get_or_insert_with(|| why.clone());
                }
            }
            (None, _) if result.turns > 0 || !result.done.is_empty() => state.failed_starts = 0,
            (None, _) => {}
        }
        let totals = &mut state.totals;
        totals.sessions += 1;
        totals.done.extend(&result.done);
        totals.left.extend(&result.left);
        totals.people.extend(&result.people);
        totals.objections.extend(result.objection);
        totals.lost.extend(result.lost);
        (totals.turns, totals.used) = (totals.turns + result.turns, totals.used.saturating_add(result.used));
        totals.unchecked += result.unchecked;
        totals.skipped_check = result.skipped_check.or(totals.skipped_check.take());
        totals.killed |= result.killed;
        state.wakes += 1;
        self.changed.notify_all();
    }

    pub fn copy_totals(&self) -> RunTotals {
        self.lock_state().totals.clone()
    }

    fn lock_state(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn result(task: u64, not_started: Option<&str>) -> SessionResult {
        SessionResult {
            task: Some(TaskId(task)),
            done: vec![],
            left: vec![],
            people: vec![],
            objection: None,
            lost: vec![],
            unchecked: 0,
            skipped_check: None,
            turns: u32::from(not_started.is_none()),
            used: AgentUsage::default(),
            not_started: not_started.map(str::to_owned),
            killed: false,
        }
    }

    /// Takes the first free one of these tasks.
    fn take(scheduler: &SessionScheduler, tasks: &[u64]) -> Option<u64> {
        let find = |busy: &BTreeSet<TaskId>, left: &BTreeSet<TaskId>| {
            let free = |id: &&u64| !busy.contains(&TaskId(**id)) && !left.contains(&TaskId(**id));
            Ok::<_, Infallible>(tasks.iter().find(free).map(|id| (TaskId(*id), *id)))
        };
        match scheduler.take_job(|_| 0, find).unwrap() {
            NextJob::Do(id) => Some(id),
            NextJob::Nothing(_) | NextJob::Over => None,
        }
    }

    fn name() -> SessionName {
        "a".parse().unwrap()
    }

    #[test]
    fn workers_never_share_a_task() {
        let scheduler = SessionScheduler::default();
        assert_eq!(
            (take(&scheduler, &[1, 2]), take(&scheduler, &[1, 2]), take(&scheduler, &[1, 2])),
            (Some(1), Some(2), None)
        );
        scheduler.release_job(Some(TaskId(1)));
        assert_eq!(take(&scheduler, &[1, 2]), Some(1));
        scheduler.finish_session(&name(), SessionResult { left: vec![TaskId(1)], ..result(1, None) });
        assert_eq!(take(&scheduler, &[1, 2]), None, "it is left for the next run");
    }

    /// A session that lost its task before a turn does not show that agents can be started.
    #[test]
    fn session_without_turn_does_not_reset_failed_starts() {
        let scheduler = SessionScheduler::default();
        take(&scheduler, &[1, 2, 3]);
        take(&scheduler, &[1, 2, 3]);
        scheduler.finish_session(&name(), result(1, Some("no such program")));
        scheduler.finish_session(&name(), SessionResult { turns: 0, ..result(2, None) });
        take(&scheduler, &[1, 2, 3]);
        scheduler.finish_session(&name(), result(1, Some("no such program")));
        assert_eq!(take(&scheduler, &[1, 2, 3]), None);
    }

    #[test]
    fn two_failed_starts_in_a_row_close_scheduler() {
        let scheduler = SessionScheduler::default();
        take(&scheduler, &[1, 2, 3]);
        scheduler.finish_session(&name(), result(1, Some("no such program")));
        assert_eq!(take(&scheduler, &[1, 2, 3]), Some(1), "one failed start is not enough");
        take(&scheduler, &[1, 2, 3]);
        scheduler.finish_session(&name(), result(2, None));
        scheduler.finish_session(&name(), result(1, Some("no such program")));
        assert_eq!(
            take(&scheduler, &[1, 2, 3]),
            Some(2),
            "another one has worked meanwhile, and this one is left alone"
        );
        scheduler.finish_session(&name(), result(2, Some("not let in")));
        assert_eq!(take(&scheduler, &[1, 2, 3]), None);
        assert_eq!(scheduler.totals().paused.as_deref(), Some("not let in"));
    }

    #[test]
    fn run_is_over_when_no_worker_works_and_no_job_is_left() {
        let scheduler = SessionScheduler::default();
        take(&scheduler, &[1]);
        let Ok(NextJob::Nothing(wakes)) = scheduler.take_job(|_| (), |_, _| Ok::<_, Infallible>(None)) else {
            panic!("nothing")
        };
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| scheduler.wait_for_wake(wakes));
            scheduler.finish_session(&name(), result(1, None));
            assert!(waits.join().unwrap(), "it looks again when another worker is done");
        });
        let Ok(NextJob::Nothing(wakes)) = scheduler.take_job(|_| (), |_, _| Ok::<_, Infallible>(None)) else {
            panic!("nothing")
        };
        assert!(!scheduler.wait_for_wake(wakes));
        assert!(scheduler.is_over());
    }
}
