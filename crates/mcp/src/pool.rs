//! Pool of the routers that run calls.
//!
//! A tool that only reads runs where its call is read. Every other call gets a thread: it may run programs, and the server answers
//! other calls meanwhile.
//!
//! Invariants:
//! - A router runs one call at a time; no lock is held during a call.
//! - At most [`SLOW`] calls have threads; further ones wait.
//! - A call is cancelled when its client no longer waits for it.
//! - After a failure of the store or the machine no router is used again: a store that could not release its lock keeps it until
//!   it is closed, and would be busy for ever. A call that panics drops its router; in a release build it ends the server.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task;
use tokio_util::sync::CancellationToken;
use windlass_tools::{CallerHint, Code, Control, Effect, ToolError};

use crate::server::{Said, ToolRouter};

/// Maximum number of calls with threads at a time, each with up to five programs.
pub(crate) const SLOW: usize = 8;

type Open<D> = dyn Fn() -> Result<D, ToolError> + Send + Sync;

pub(crate) struct Pool<D> {
    shared: Arc<Shared<D>>,
    control: Control,
}

struct Shared<D> {
    open: Box<Open<D>>,
    /// Idle routers.
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

    /// Calls a tool. `cancelled` cancels the call.
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
            // Released when the programs have ended, even if the client left earlier.
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

    /// Waits until no call runs programs any more.
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

    /// Calls a tool on an idle router. The router is reused, unless the store or the machine has failed.
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

/// Guard that cancels a call when its client no longer waits for it.
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
