//! Orders to runs in progress: cancel, kill, pause, resume.
//!
//! Invariants:
//! - An order is never taken back: a cancelled control stays cancelled, also for runs that have not begun.
//! - Every order wakes every run that listens; no run polls.
//! - `pause_runs` returns when the process trees of all runs are stopped.
//!
//! Not here: what a run does on an order (`run_state`), where orders come from (`signals`).

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::os::LoopWaker;

/// How long `pause_runs` waits for runs that are busy elsewhere, for example in an observer.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Cancels, kills, pauses and resumes the runs that listen to it. Clones share one state.
#[derive(Clone, Default)]
pub struct RunControl {
    shared: Arc<SharedControl>,
    /// Whether runs that are started with this clone ignore a cancel.
    ignores_cancel: bool,
    /// Set when the runs that are started with this clone alone are cancelled.
    own_cancel: Option<Arc<AtomicBool>>,
}

#[derive(Default)]
struct SharedControl {
    state: Mutex<ControlState>,
    changed: Condvar,
}

#[derive(Default)]
struct ControlState {
    order: ControlOrder,
    paused: bool,
    /// One for each run.
    wakers: Vec<Arc<LoopWaker>>,
    /// Wakers of finished runs, for reuse.
    spare: Vec<Arc<LoopWaker>>,
    /// Number of runs whose process tree is stopped.
    stopped_runs: usize,
}

/// An order, mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ControlOrder {
    #[default]
    Continue,
    Cancel,
    Kill,
}

impl RunControl {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends SIGTERM to all runs, and SIGKILL after their grace. Runs that have not begun will not start.
    pub fn cancel_runs(&self) {
        self.update_state(|state| state.order = state.order.max(ControlOrder::Cancel));
    }

    /// Sends SIGKILL to all runs at once.
    pub fn kill_runs(&self) {
        self.update_state(|state| state.order = ControlOrder::Kill);
    }

    /// Stops the process trees of all runs, and their deadlines. Runs that have not begun wait.
    pub fn pause_runs(&self) {
        self.update_state(|state| state.paused = true);
        let busy = |state: &mut ControlState| state.paused && state.stopped_runs < state.wakers.len();
        let _ = self.shared.changed.wait_timeout_while(self.lock_state(), PAUSE_TIMEOUT, busy);
    }

    pub fn resume_runs(&self) {
        self.update_state(|state| state.paused = false);
    }

    /// Returns whether a cancel or a kill applies to runs of this clone.
    pub fn is_cancelled(&self) -> bool {
        self.effective_order(self.lock_state().order) >= ControlOrder::Cancel
    }

    /// Waits for some time, or until a cancel or a kill. Returns whether the whole time passed.
    pub fn wait_unless_cancelled(&self, time: Duration) -> bool {
        let quiet = |state: &mut ControlState| self.effective_order(state.order) == ControlOrder::Continue;
        let waited = self.shared.changed.wait_timeout_while(self.lock_state(), time, quiet);
        waited.expect("nothing panics while it holds the control").1.timed_out()
    }

    /// Returns the same control for work that continues after a cancel: only a kill ends it.
    pub fn ignoring_cancel(&self) -> Self {
        Self { ignores_cancel: true, ..self.clone() }
    }

    /// Returns the same control for runs that can be cancelled separately from the others.
    pub fn with_own_cancel(&self) -> Self {
        Self { own_cancel: Some(Arc::default()), ..self.clone() }
    }

    /// Cancels only the runs that were started with this clone, or a clone of it. Without an earlier [`Self::with_own_cancel`] this does
    /// nothing. An observer may cancel its own run.
    pub fn cancel_own_runs(&self) {
        if let Some(called_off) = &self.own_cancel {
            called_off.store(true, Ordering::Relaxed);
            self.update_state(|_| {});
        }
    }

    /// Returns what an order means for runs of this clone.
    fn effective_order(&self, order: ControlOrder) -> ControlOrder {
        let called_off = self.own_cancel.as_ref().is_some_and(|called_off| called_off.load(Ordering::Relaxed));
        match order {
            ControlOrder::Kill => order,
            _ if called_off => ControlOrder::Cancel,
            ControlOrder::Cancel if self.ignores_cancel => ControlOrder::Continue,
            _ => order,
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, ControlState> {
        self.shared.state.lock().expect("nothing panics while it holds the control")
    }

    fn update_state(&self, change: impl FnOnce(&mut ControlState)) {
        let mut state = self.lock_state();
        change(&mut state);
        for waker in &state.wakers {
            waker.wake_loop();
        }
        self.shared.changed.notify_all();
    }

    /// Notifies a caller that waits in `pause_runs` that a run is stopped or over.
    fn notify_pauser(&self, state: &ControlState) {
        if state.paused {
            self.shared.changed.notify_all();
        }
    }

    pub(crate) fn add_listener(&self) -> std::io::Result<ControlListener> {
        let mut state = self.lock_state();
        let waker = match state.spare.pop() {
            Some(waker) => waker,
            None => Arc::new(LoopWaker::new()?),
        };
        state.wakers.push(waker.clone());
        drop(state);
        Ok(ControlListener { control: self.clone(), waker, still: false })
    }
}

/// The side of a control that one run holds.
pub(crate) struct ControlListener {
    control: RunControl,
    waker: Arc<LoopWaker>,
    still: bool,
}

impl ControlListener {
    /// Returns the present order, and whether runs must be stopped. An order takes precedence over a pause.
    pub fn current_order(&self) -> (ControlOrder, bool) {
        let state = self.control.lock_state();
        let order = self.control.effective_order(state.order);
        (order, state.paused && order == ControlOrder::Continue)
    }

    /// Waits while the control is paused. Returns whether the run may begin.
    pub fn wait_while_paused(&self) -> bool {
        let paused = |state: &mut ControlState| {
            state.paused && self.control.effective_order(state.order) == ControlOrder::Continue
        };
        let mut state = self.control.lock_state();
        // The count changes under the same guard as the end of the wait, so that a pause never counts a starting run as stopped.
        state.stopped_runs += 1;
        self.control.notify_pauser(&state);
        let waited = self.control.shared.changed.wait_while(state, paused);
        let mut state = waited.expect("nothing panics while it holds the control");
        state.stopped_runs -= 1;
        self.control.effective_order(state.order) == ControlOrder::Continue
    }

    /// Records whether the process tree of this run is stopped.
    pub fn set_tree_stopped(&mut self, still: bool) {
        if still != self.still {
            self.still = still;
            let mut state = self.control.lock_state();
            state.stopped_runs = if still { state.stopped_runs + 1 } else { state.stopped_runs - 1 };
            self.control.notify_pauser(&state);
        }
    }

    /// Clears the wake-up. Call this when the descriptor is readable, before the order is read.
    pub fn clear_wakeup(&self) {
        self.waker.clear_wakeups();
    }
}

impl AsFd for ControlListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        self.set_tree_stopped(false);
        let mut state = self.control.lock_state();
        state.wakers.retain(|waker| !Arc::ptr_eq(waker, &self.waker));
        state.spare.push(self.waker.clone());
        self.control.notify_pauser(&state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// Simulates a run that only stops and continues as ordered.
    fn live(control: &RunControl, begun: &AtomicUsize, over: &AtomicBool) {
        let mut listener = control.add_listener().expect("a waker");
        listener.wait_while_paused();
        begun.fetch_add(1, Ordering::SeqCst);
        while !over.load(Ordering::SeqCst) {
            listener.set_tree_stopped(listener.current_order().1);
            std::thread::yield_now();
        }
    }

    #[test]
    fn control_starts_no_run_after_pause_returns() {
        // Enough threads that they contend for the lock when they wake up.
        const RUNS: usize = 8;
        for round in 0..100 {
            let (control, begun, over) = (RunControl::new(), AtomicUsize::new(0), AtomicBool::new(false));
            control.pause_runs();
            std::thread::scope(|scope| {
                for _ in 0..RUNS {
                    scope.spawn(|| live(&control, &begun, &over));
                }
                while control.lock_state().stopped_runs < RUNS {
                    std::thread::yield_now();
                }
                control.resume_runs();
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                control.pause_runs();
                let before = begun.load(Ordering::SeqCst);
                for _ in 0..20 {
                    std::thread::yield_now();
                }
                let after = begun.load(Ordering::SeqCst);
                over.store(true, Ordering::SeqCst);
                control.resume_runs();
                assert_eq!(before, after, "in round {round}");
            });
        }
    }
}
