//! The word from outside to runs that are under way: cancel, kill, pause, resume.
//!
//! Invariants:
//! - What was ordered is never taken back: a cancelled control stays cancelled, for runs that have not begun too.
//! - Every run that listens is woken by every word; nothing polls.
//! - `pause` returns when the trees of all runs stand still.
//!
//! Not here: what a run does with the word (`course`), where it comes from (`signals`).

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::os::Waker;

/// How long `pause` waits for runs that are busy elsewhere, in an observer for example.
const PATIENCE: Duration = Duration::from_secs(1);

/// Cancels, kills, pauses and resumes the runs that listen to it. Clones are the same control.
#[derive(Clone, Default)]
pub struct Control {
    shared: Arc<Shared>,
    /// Whether a cancel reaches runs that are started with this clone.
    resolute: bool,
    /// Whether those that are started with this clone have been called off by themselves.
    called_off: Option<Arc<AtomicBool>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    order: Order,
    paused: bool,
    /// One for each run.
    wakers: Vec<Arc<Waker>>,
    /// Wakers of runs that are over, for the next ones.
    spare: Vec<Arc<Waker>>,
    /// How many of the runs have their tree standing still.
    still: usize,
}

/// Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    #[default]
    Continue,
    Cancel,
    Kill,
}

impl Control {
    pub fn new() -> Self {
        Self::default()
    }

    /// SIGTERM to all runs, SIGKILL after their grace. Runs that have not begun will not.
    pub fn cancel(&self) {
        self.change(|state| state.order = state.order.max(Order::Cancel));
    }

    /// SIGKILL to all runs, now.
    pub fn kill(&self) {
        self.change(|state| state.order = Order::Kill);
    }

    /// Stops all runs with their trees, and their deadlines. Runs that have not begun wait.
    pub fn pause(&self) {
        self.change(|state| state.paused = true);
        let busy = |state: &mut State| state.paused && state.still < state.wakers.len();
        let _ = self.shared.changed.wait_timeout_while(self.state(), PATIENCE, busy);
    }

    pub fn resume(&self) {
        self.change(|state| state.paused = false);
    }

    /// Whether `cancel` or `kill` was called, as far as that is heard here.
    pub fn is_cancelled(&self) -> bool {
        self.heard(self.state().order) >= Order::Cancel
    }

    /// Lets some time pass, unless it is cut short by `cancel` or `kill`. Says whether it has passed.
    pub fn wait(&self, time: Duration) -> bool {
        let quiet = |state: &mut State| self.heard(state.order) == Order::Continue;
        let waited = self.shared.changed.wait_timeout_while(self.state(), time, quiet);
        waited.expect("nothing panics while it holds the control").1.timed_out()
    }

    /// The same control for work that is done although the rest was cancelled: only `kill` ends it.
    pub fn resolute(&self) -> Self {
        Self { resolute: true, ..self.clone() }
    }

    /// The same control for runs that can be called off by themselves.
    pub fn apart(&self) -> Self {
        Self { called_off: Some(Arc::default()), ..self.clone() }
    }

    /// As `cancel`, but only for runs that were started with this clone, or a clone of it. One that never was apart hears
    /// nothing. An observer may call off its own run.
    pub fn call_off(&self) {
        if let Some(called_off) = &self.called_off {
            called_off.store(true, Ordering::Relaxed);
            self.change(|_| {});
        }
    }

    /// What an order means here.
    fn heard(&self, order: Order) -> Order {
        let called_off = self.called_off.as_ref().is_some_and(|called_off| called_off.load(Ordering::Relaxed));
        match order {
            Order::Kill => order,
            _ if called_off => Order::Cancel,
            Order::Cancel if self.resolute => Order::Continue,
            _ => order,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nothing panics while it holds the control")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        for waker in &state.wakers {
            waker.wake();
        }
        self.shared.changed.notify_all();
    }

    /// Tells whoever paused that a run stands still or is over. Nobody else waits for that.
    fn tell(&self, state: &State) {
        if state.paused {
            self.shared.changed.notify_all();
        }
    }

    pub(crate) fn listen(&self) -> std::io::Result<Listener> {
        let mut state = self.state();
        let waker = match state.spare.pop() {
            Some(waker) => waker,
            None => Arc::new(Waker::new()?),
        };
        state.wakers.push(waker.clone());
        drop(state);
        Ok(Listener { control: self.clone(), waker, still: false })
    }
}

/// A run's side of a control.
pub(crate) struct Listener {
    control: Control,
    waker: Arc<Waker>,
    still: bool,
}

impl Listener {
    /// What is ordered now, and whether runs are to stand still. An order that came is heard before a pause.
    pub fn word(&self) -> (Order, bool) {
        let state = self.control.state();
        let order = self.control.heard(state.order);
        (order, state.paused && order == Order::Continue)
    }

    /// Waits while everything is paused. Says whether the run may begin.
    pub fn may_begin(&self) -> bool {
        let paused = |state: &mut State| state.paused && self.control.heard(state.order) == Order::Continue;
        let mut state = self.control.state();
        // Under one guard with the end of the wait, so that no pause takes a run that is about to begin for a still one.
        state.still += 1;
        self.control.tell(&state);
        let waited = self.control.shared.changed.wait_while(state, paused);
        let mut state = waited.expect("nothing panics while it holds the control");
        state.still -= 1;
        self.control.heard(state.order) == Order::Continue
    }

    /// Tells whoever paused that this run's tree stands still, or no longer does.
    pub fn set_still(&mut self, still: bool) {
        if still != self.still {
            self.still = still;
            let mut state = self.control.state();
            state.still = if still { state.still + 1 } else { state.still - 1 };
            self.control.tell(&state);
        }
    }

    /// To be called when it is readable, before the word is read.
    pub fn clear(&self) {
        self.waker.clear();
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.set_still(false);
        let mut state = self.control.state();
        state.wakers.retain(|waker| !Arc::ptr_eq(waker, &self.waker));
        state.spare.push(self.waker.clone());
        self.control.tell(&state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// A run that does nothing but stand still when it is told to.
    fn live(control: &Control, begun: &AtomicUsize, over: &AtomicBool) {
        let mut listener = control.listen().expect("a waker");
        listener.may_begin();
        begun.fetch_add(1, Ordering::SeqCst);
        while !over.load(Ordering::SeqCst) {
            listener.set_still(listener.word().1);
            std::thread::yield_now();
        }
    }

    #[test]
    fn nothing_begins_after_a_pause_has_returned() {
        // Many, so that they are in each other's way when they wake up.
        const RUNS: usize = 8;
        for round in 0..100 {
            let (control, begun, over) = (Control::new(), AtomicUsize::new(0), AtomicBool::new(false));
            control.pause();
            std::thread::scope(|scope| {
                for _ in 0..RUNS {
                    scope.spawn(|| live(&control, &begun, &over));
                }
                while control.state().still < RUNS {
                    std::thread::yield_now();
                }
                control.resume();
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                control.pause();
                let before = begun.load(Ordering::SeqCst);
                for _ in 0..20 {
                    std::thread::yield_now();
                }
                let after = begun.load(Ordering::SeqCst);
                over.store(true, Ordering::SeqCst);
                control.resume();
                assert_eq!(before, after, "in round {round}");
            });
        }
    }
}
