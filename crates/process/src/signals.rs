//! Maps signals to this process to orders of a [`RunControl`].
//!
//! The first SIGINT, SIGTERM or SIGHUP cancels, the second kills. A SIGHUP is never the second: closing a terminal sends several,
//! through the shell and directly, and the user has not asked twice. SIGTSTP stops every tree, then this process; when it is
//! continued, it continues the trees. SIGWINCH is only passed on. SIGQUIT has its default effect, after a message.
//!
//! Invariants:
//! - A signal that the parent wants ignored stays ignored (`nohup`).
//! - Once every [`SignalHandlers`] is dropped, signals have their default effect.
//! - SIGCONT needs no handler: the thread that stopped the process continues after its `raise`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGUSR1, SIGWINCH, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};

use crate::RunControl;
use crate::spawn::is_signal_ignored;

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// This process must end. Holds the number of such signals so far, 1 for the first. Reported after the control got its order.
    End(u32),
    /// This process is about to stop, with everything that it has started.
    Stopping,
    /// This process continues.
    Continued,
    /// The terminal has another size now.
    Resized,
    /// This process is about to quit at once.
    Quitting,
}

/// Installed signal handlers. Signals drive the control until this is dropped.
#[derive(Debug)]
#[must_use = "signals drive the control until it is dropped"]
pub struct SignalHandlers {
    first: Arc<AtomicI32>,
    handle: Handle,
}

/// Number of existing [`SignalHandlers`] values.
static LISTENER_COUNT: Mutex<usize> = Mutex::new(0);
/// Whether there are none: each signal has its default effect then.
static HAS_NO_LISTENER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Updates the number of listeners.
fn update_listener_count(count: impl FnOnce(usize) -> usize) {
    let mut listeners = LISTENER_COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    *listeners = count(*listeners);
    HAS_NO_LISTENER.store(*listeners == 0, Ordering::SeqCst);
}

impl SignalHandlers {
    /// Returns the first signal that asked this process to end.
    pub fn first_signal(&self) -> Option<i32> {
        Some(self.first.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Restores the default effects, unless there is another listener. The first signal that came has its effect now.
    pub fn restore_default_actions(self) {
        let first = self.first_signal();
        drop(self);
        if let Some(signal) = first.filter(|_| HAS_NO_LISTENER.load(Ordering::SeqCst)) {
            let _ = signal_hook::low_level::raise(signal);
        }
    }
}

impl Drop for SignalHandlers {
    fn drop(&mut self) {
        update_listener_count(|listeners| listeners.saturating_sub(1));
        self.handle.close();
    }
}

/// Makes signals to this process drive the control, in addition to the controls of other existing [`SignalHandlers`] values.
///
/// `on_signal` is called in a thread of its own, which handles the next signal after it returns.
pub fn install_handlers(
    control: &RunControl,
    on_signal: impl Fn(SignalEvent) + Send + 'static,
) -> io::Result<SignalHandlers> {
    let heeded =
        [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH].into_iter().filter(|signal| !is_signal_ignored(*signal));
    let heeded: Vec<i32> = heeded.collect();
    for signal in &heeded {
        // Handlers cannot be removed, only told to imitate the default effect.
        signal_hook::flag::register_conditional_default(*signal, HAS_NO_LISTENER.clone())?;
    }
    let mut signals = Signals::new(&heeded)?;
    let received = SignalHandlers { first: Arc::default(), handle: signals.handle() };
    update_listener_count(|listeners| listeners + 1);
    let (control, first) = (control.clone(), received.first.clone());
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut count = 0;
        for signal in signals.forever() {
            match signal {
                SIGTSTP => {
                    on_signal(SignalEvent::Stopping);
                    stop_until_continued(&control);
                    on_signal(SignalEvent::Continued);
                    continue;
                }
                SIGWINCH => {
                    on_signal(SignalEvent::Resized);
                    continue;
                }
                SIGQUIT => {
                    on_signal(SignalEvent::Quitting);
                    // Not expected to return.
                    let _ = signal_hook::low_level::emulate_default_handler(SIGQUIT);
                    continue;
                }
                SIGHUP if count > 0 => continue,
                _ => count += 1,
            }
            if first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                control.cancel_runs();
            } else {
                control.kill_runs();
            }
            on_signal(SignalEvent::End(count));
        }
    })?;
    Ok(received)
}

/// Turns the file size limit into an error of the write, like a full disk, instead of the end of this process. Started programs
/// have the default again.
pub fn handle_file_size_signal() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Handler that calls `heed` in a thread of its own whenever `wake_owner` signals this process, until it is dropped.
#[derive(Debug)]
#[must_use = "wake signals are ignored after it is dropped"]
pub struct WakeHandler(Handle);

impl Drop for WakeHandler {
    fn drop(&mut self) {
        // The signal stays without effect: one that comes too late must not end the process.
        self.0.close();
    }
}

pub fn install_wake_handler(heed: impl Fn() + Send + 'static) -> io::Result<WakeHandler> {
    let mut signals = Signals::new([SIGUSR1])?;
    let nudges = WakeHandler(signals.handle());
    thread::Builder::new().name("nudges".to_owned()).spawn(move || signals.forever().for_each(|_| heed()))?;
    Ok(nudges)
}

fn stop_until_continued(control: &RunControl) {
    control.pause_runs();
    // Sent to this thread alone, so that it does not return before the process is continued.
    let _ = signal_hook::low_level::raise(SIGSTOP);
    control.resume_runs();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn second_listener_is_told_after_the_first_is_gone() {
        drop(install_handlers(&RunControl::new(), |_| {}).expect("handlers"));
        let control = RunControl::new();
        let received = install_handlers(&control, |_| {}).expect("handlers");
        signal_hook::low_level::raise(SIGTERM).expect("a signal");
        assert!(!control.wait_unless_cancelled(Duration::from_secs(20)), "the signal was not heard");
        assert_eq!(received.first_signal(), Some(SIGTERM));
    }
}
