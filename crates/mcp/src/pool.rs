//! The desks that calls are taken to.
//!
//! A tool that only reads is answered where its call is read. Every other call gets a thread: it may run programs, and the
//! server answers others meanwhile.
//!
//! Invariants:
//! - A desk is in one call at a time; no lock is held during a call.
//! - No more than [`SLOW`] calls have threads; one more waits.
//! - A call that nobody waits for any more is called off.
//! - After a failure of the store or the machine no desk is used again: a store that could not give its lock back keeps it until
//!   it is closed, and would be busy for ever. A call that panics drops its desk; in a release build it ends the server.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task;
use tokio_util::sync::CancellationToken;
use windlass_tools::{CallerHint, Code, Control, Effect, ToolError};

use crate::server::{Said, ToolRouter};

/// So many calls have threads at a time, each with up to five programs.
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

impl<D: ToolRouter> Pool<D> {
    pub fn new(open: impl Fn() -> Result<D, ToolError> + Send + Sync + 'static, control: Control) -> Self {
        let slow = Arc::new(Semaphore::new(SLOW));
        Self { shared: Arc::new(Shared { open: Box::new(open), free: Mutex::default(), slow }), control }
    }

    /// Calls a tool; `cancelled` calls it off.
    pub async fn call(&self, tool: &str, effect: Effect, arguments: Value, cancelled: &CancellationToken) -> Said {
        if effect == Effect::ReadOnly {
            return self.shared.call(tool, arguments, &self.control);
        }
        let permit = tokio::select! {
            permit = self.shared.slow.clone().acquire_owned() => permit.map_err(|_| defect())?,
            () = cancelled.cancelled() => return Err(called_off()),
        };
        let control = self.control.apart();
        let shared = self.shared.clone();
        let leaving = CallOff(control.clone());
        let tool = tool.to_owned();
        let work = task::spawn_blocking(move || {
            // Given back when the programs have ended, however long the answer was waited for.
            let _permit: OwnedSemaphorePermit = permit;
            shared.call(&tool, arguments, &control)
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

impl<D: ToolRouter> Shared<D> {
    fn take(&self) -> Result<Box<D>, ToolError> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match free {
            Some(desk) => Ok(desk),
            None => (self.open)().map(Box::new),
        }
    }

    /// Calls a tool at a desk that is free, which goes back unless its failure was one of the store or the machine.
    fn call(&self, tool: &str, arguments: Value, control: &Control) -> Said {
        let mut desk = self.take()?;
        let said = desk.say(tool, arguments, control);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match said {
            Err(ToolError { code: Code::Store | Code::System, .. }) => free.clear(),
            _ => free.push(desk),
        }
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
        .hint(CallerHint::command("windlass doctor", "looks the project over"))
}
