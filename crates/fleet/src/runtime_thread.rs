//! A runtime for async work, on which callers block.
//!
//! A caller drives the runtime itself while it waits, so an answer needs no other thread. Between two calls, a thread drives it now
//! and then: it answers the pings of a server, and sees that a connection breaks.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

/// How often connections are looked after between calls.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// After a call, connections are up to date for this long.
const FRESH_INTERVAL: Duration = Duration::from_millis(10);
/// How often tasks may wake each other until all of them have done what there is to do.
const IDLE_TURNS: usize = 8;

/// A runtime with a thread that looks after it. Dropping it ends the thread.
pub struct RuntimeThread {
    /// The thread drops it last, because an async caller must not.
    runtime: Option<Arc<Mutex<Runtime>>>,
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    last_call: Cell<Instant>,
}

impl RuntimeThread {
    pub fn start() -> io::Result<Self> {
        let runtime = Arc::new(Mutex::new(Builder::new_current_thread().enable_all().build()?));
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let drive = {
            let (runtime, end) = (Arc::clone(&runtime), Arc::clone(&end));
            move || {
                let mut has_ended = lock(&end.0);
                while !*has_ended {
                    let waited = end.1.wait_timeout(has_ended, IDLE_INTERVAL);
                    has_ended = waited.unwrap_or_else(PoisonError::into_inner).0;
                    // A caller that has it drives it.
                    if let Ok(runtime) = runtime.try_lock() {
                        runtime.block_on(run_pending_tasks());
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(drive)?;
        Ok(Self { runtime: Some(runtime), end, thread: Some(thread), last_call: Cell::new(Instant::now()) })
    }

    /// Runs async work to its end.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        let runtime = self.runtime.as_ref().expect("only the end takes it away");
        let outcome = lock(runtime).block_on(work);
        self.last_call.set(Instant::now());
        outcome
    }

    /// Lets connections see what has arrived for them since the last call.
    pub fn update_connections(&self) {
        if self.last_call.get().elapsed() > FRESH_INTERVAL {
            self.block_on(run_pending_tasks());
        }
    }
}

async fn run_pending_tasks() {
    for _ in 0..IDLE_TURNS {
        tokio::task::yield_now().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        drop(self.runtime.take());
        *lock(&self.end.0) = true;
        self.end.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_of_a_call_goes_on_between_calls() {
        let thread = RuntimeThread::start().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        thread.block_on(async {
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                sender.send(7).unwrap();
            });
        });
        assert_eq!(receiver.recv_timeout(IDLE_INTERVAL * 30), Ok(7));
    }
}
