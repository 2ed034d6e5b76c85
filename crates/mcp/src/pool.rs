//! The desks that calls are taken to.
//!
//! A quick call is answered where it is read. One that may run programs takes its desk to a thread of its own, so that
//! everybody else is answered meanwhile.
//!
//! Invariants:
//! - A desk is in one call at a time; no lock is held during a call.
//! - No more than [`SLOW`] calls run programs at a time; one more is refused.
//! - A call that nobody waits for any more is called off.
//! - A desk in which something went wrong by our own fault is not used again. After a failure of the store or the machine no
//!   desk is: a store that could not give its lock back keeps it until it is closed, and would be busy for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task;
use tokio_util::sync::CancellationToken;
use windlass_tools::{Code, Control, ToolError};

use crate::server::{Desk, Said};

/// So many calls may run programs at a time: each has a thread, and up to five programs.
pub(crate) const SLOW: usize = 8;

type Open<D> = dyn Fn() -> Result<D, ToolError> + Send + Sync;

pub(crate) struct Pool<D> {
    shared: Arc<Shared<D>>,
    control: Control,
}

struct Shared<D> {
    open: Box<Open<D>>,
    /// Desks that are free.
    free: Mutex<Vec<Box<D>>>,
    slow: Arc<Semaphore>,
}

impl<D> Clone for Pool<D> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), control: self.control.clone() }
    }
}

impl<D: Desk> Pool<D> {
    pub fn new(open: impl Fn() -> Result<D, ToolError> + Send + Sync + 'static, control: Control) -> Self {
        let slow = Arc::new(Semaphore::new(SLOW));
        Self { shared: Arc::new(Shared { open: Box::new(open), free: Mutex::default(), slow }), control }
    }

    /// Calls a tool, if that runs no program; else gives the arguments back, and the desk that was asked.
    fn call_now(&self, tool: &str, arguments: Value) -> Result<Said, (Value, Box<D>)> {
        let mut desk = match self.shared.take() {
            Ok(desk) => desk,
            Err(error) => return Ok(Err(error)),
        };
        match catch_unwind(AssertUnwindSafe(|| desk.say_at_once(tool, arguments, &self.control))) {
            Ok(Ok(said)) => {
                self.shared.put_back_after(&said, desk);
                Ok(said)
            }
            Ok(Err(arguments)) => Err((arguments, desk)),
            Err(_) => Ok(Err(defect())),
        }
    }

    /// Calls a tool; `cancelled` calls it off.
    pub async fn call(&self, tool: &str, arguments: Value, cancelled: &CancellationToken) -> Said {
        let (arguments, desk) = match self.call_now(tool, arguments) {
            Ok(done) => return done,
            Err(slow) => slow,
        };
        let (permit, desk) = match self.shared.slow.clone().try_acquire_owned() {
            Ok(permit) => (permit, desk),
            Err(_) => {
                // Others come first. Whoever waits holds nothing meanwhile.
                self.shared.put_back(desk);
                let permit = tokio::select! {
                    permit = self.shared.slow.clone().acquire_owned() => permit.map_err(|_| defect())?,
                    () = cancelled.cancelled() => return Err(called_off()),
                };
                (permit, self.shared.take()?)
            }
        };
        let control = self.control.apart();
        let shared = self.shared.clone();
        let leaving = CallOff(control.clone());
        let tool = tool.to_owned();
        let work = task::spawn_blocking(move || {
            // Given back when the programs have ended, however long the answer was waited for.
            let _permit: OwnedSemaphorePermit = permit;
            shared.call(desk, &tool, arguments, &control)
        });
        let done = tokio::select! {
            done = work => done.unwrap_or_else(|_| Err(defect())),
            () = cancelled.cancelled() => Err(called_off()),
        };
        drop(leaving);
        done
    }

    /// Returns when no call runs programs any more.
    pub async fn rest(&self) {
        let all = u32::try_from(SLOW).expect("it is small");
        // The semaphore is never closed.
        let _ = self.shared.slow.acquire_many(all).await;
    }
}

impl<D: Desk> Shared<D> {
    fn take(&self) -> Result<Box<D>, ToolError> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match free {
            Some(desk) => Ok(desk),
            None => (self.open)().map(Box::new),
        }
    }

    fn put_back(&self, desk: Box<D>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(desk);
    }

    /// The same after a call, unless its failure was one of the store or the machine.
    fn put_back_after(&self, said: &Said, desk: Box<D>) {
        match said {
            Err(ToolError { code: Code::Store | Code::System, .. }) => {
                self.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            _ => self.put_back(desk),
        }
    }

    fn call(&self, mut desk: Box<D>, tool: &str, arguments: Value, control: &Control) -> Said {
        let said = catch_unwind(AssertUnwindSafe(|| desk.say(tool, arguments, control))).map_err(|_| defect())?;
        self.put_back_after(&said, desk);
        said
    }
}

/// Calls off what runs with a control when nobody waits for it any more.
struct CallOff(Control);

impl Drop for CallOff {
    fn drop(&mut self) {
        self.0.call_off();
    }
}

fn called_off() -> ToolError {
    ToolError::new(Code::Interrupted, "the call was cancelled")
}

fn defect() -> ToolError {
    ToolError::new(Code::System, "the call failed by a defect of Windlass")
        .hint("`windlass doctor` looks the project over")
}
