//! A thread that drives async work, so that callers can block on it.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime on a thread of its own. Dropping it ends the thread.
pub struct RuntimeThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RuntimeThread {
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let drive = move || {
            // Either a message or the end of the sender ends the thread.
            let _ = runtime.block_on(stopped);
        };
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(drive)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs async work to its end. The thread of the runtime drives its connections and timers.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
