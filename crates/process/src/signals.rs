//! Signals to this process, as words to a [`Control`].
//!
//! The first SIGINT, SIGTERM or SIGHUP cancels, the second kills. A SIGHUP is never the second: a terminal that is closed
//! sends several, by way of the shell and by itself, and nobody has asked twice. SIGTSTP stops every tree, then this
//! process; when it is continued, it continues the trees.
//!
//! Invariants:
//! - A signal that whoever started us wants ignored stays ignored (`nohup`).
//! - Once [`Received`] is dropped, signals do to this process what they do to any.
//! - SIGCONT needs no handler: the thread that stopped the process goes on after its `raise`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGSTOP, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::Control;
use crate::spawn::is_ignored;

/// Which signal came first. Signals drive the control until it is dropped.
#[derive(Debug)]
#[must_use = "signals drive the control until it is dropped"]
pub struct Received {
    first: Arc<AtomicI32>,
    handle: Handle,
    /// From then on each signal has its usual effect.
    over: Arc<AtomicBool>,
}

impl Received {
    /// The first signal that asked this process to end.
    pub fn first(&self) -> Option<i32> {
        Some(self.first.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.handle.close();
    }
}

/// From now on, signals to this process drive the control. To be called once.
///
/// `told` gets the number of each signal that asks this process to end, 1 for the first, after it was heeded. It is
/// called in a thread of its own, which hears of the next signal when it returns.
pub fn install(control: &Control, told: impl Fn(u32) + Send + 'static) -> io::Result<Received> {
    let heeded = [SIGINT, SIGTERM, SIGHUP, SIGTSTP].into_iter().filter(|signal| !is_ignored(*signal));
    let heeded: Vec<i32> = heeded.collect();
    let over = Arc::<AtomicBool>::default();
    for signal in &heeded {
        // Handlers cannot be taken back, only told to do what would have been done without them.
        signal_hook::flag::register_conditional_default(*signal, over.clone())?;
    }
    let mut signals = Signals::new(&heeded)?;
    let received = Received { first: Arc::default(), handle: signals.handle(), over };
    let (control, first) = (control.clone(), received.first.clone());
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut count = 0;
        for signal in signals.forever() {
            if signal == SIGTSTP {
                stand_still(&control);
                continue;
            }
            if signal == SIGHUP && count > 0 {
                continue;
            }
            count += 1;
            if first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                control.cancel();
            } else {
                control.kill();
            }
            told(count);
        }
    })?;
    Ok(received)
}

/// Calls `heed` in a thread of its own whenever somebody has woken this process (`nudge`), until it is dropped.
#[derive(Debug)]
#[must_use = "nobody is heard after it is dropped"]
pub struct Nudges(Handle);

impl Drop for Nudges {
    fn drop(&mut self) {
        // The signal stays without effect: one that comes too late must not end the process.
        self.0.close();
    }
}

pub fn heed_nudges(heed: impl Fn() + Send + 'static) -> io::Result<Nudges> {
    let mut signals = Signals::new([SIGUSR1])?;
    let nudges = Nudges(signals.handle());
    thread::Builder::new().name("nudges".to_owned()).spawn(move || signals.forever().for_each(|_| heed()))?;
    Ok(nudges)
}

fn stand_still(control: &Control) {
    control.pause();
    // Sent to this thread alone, so that it does not return before the process was continued.
    let _ = signal_hook::low_level::raise(SIGSTOP);
    control.resume();
}
