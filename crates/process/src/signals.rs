//! Signals to this process, as words to a [`Control`].
//!
//! The first SIGINT, SIGTERM or SIGHUP cancels, the second kills. SIGTSTP stops every tree, then this process; when it
//! is continued, it continues the trees.
//!
//! Invariants:
//! - A signal that whoever started us wants ignored stays ignored (`nohup`).
//! - SIGCONT needs no handler: the thread that stopped the process goes on after its `raise`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGSTOP, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use crate::Control;
use crate::spawn::is_ignored;

/// Which signal came first.
#[derive(Debug, Clone)]
pub struct Received(Arc<AtomicI32>);

impl Received {
    /// The first signal that asked this process to end.
    pub fn first(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

/// From now on, signals to this process drive the control. To be called once.
pub fn install(control: &Control) -> io::Result<Received> {
    let heeded = [SIGINT, SIGTERM, SIGHUP, SIGTSTP].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(heeded)?;
    let received = Received(Arc::default());
    let (control, first) = (control.clone(), received.0.clone());
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => stand_still(&control),
                _ if first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok() => control.cancel(),
                _ => control.kill(),
            }
        }
    })?;
    Ok(received)
}

fn stand_still(control: &Control) {
    control.pause();
    // Sent to this thread alone, so that it does not return before the process was continued.
    let _ = signal_hook::low_level::raise(SIGSTOP);
    control.resume();
}
