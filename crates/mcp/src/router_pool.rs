//! Pool of the routers that run calls.
//!
//! A tool that only reads runs where its call is read. Every other call gets a thread: it may run programs, and the server answers
//! other calls meanwhile.
//!
//! Invariants:
//! - A router runs one call at a time; no lock is held during a call.
//! - At most [`MAX_THREADED_CALLS`] calls have threads; further ones wait.
//! - A call is cancelled when its client no longer waits for it.
//! - After a failure of the store or the machine no router is used again: a store that could not release its lock keeps it until
//!   it is closed, and would be busy for ever. A call that panics drops its router; in a release build it ends the server.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task;
use tokio_util::sync::CancellationToken;
use windlass_tools::{CallerHint, RunControl, ToolEffect, ToolError, ToolErrorCode};

use crate::server::{ToolCaller, ToolReply};

/// Maximum number of calls with threads at a time, each with up to five programs.
pub(crate) const MAX_THREADED_CALLS: usize = 8;

type RouterFactory<D> = dyn Fn() -> Result<D, ToolError> + Send + Sync;

pub(crate) struct RouterPool<D> {
    shared: Arc<PoolState<D>>,
    control: RunControl,
}

struct PoolState<D> {
    open: Box<RouterFactory<D>>,
    /// Idle routers.
    free: Mutex<Vec<Box<D>>>,
    slow: Arc<Semaphore>,
}

impl<D> Clone for RouterPool<D> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), control: self.control.clone() }
    }
}

impl<D: ToolCaller> RouterPool<D> {
    pub fn new(open: impl Fn() -> Result<D, ToolError> + Send + Sync + 'static, control: RunControl) -> Self {
        let slow = Arc::new(Semaphore::new(MAX_THREADED_CALLS));
        Self { shared: Arc::new(PoolState { open: Box::new(open), free: Mutex::default(), slow }), control }
    }

    /// Calls a tool. `cancelled` cancels the call.
    pub async fn call_tool(
        &self,
        tool: &str,
        effect: ToolEffect,
        arguments: Value,
        cancelled: &CancellationToken,
    ) -> ToolReply {
        if effect == ToolEffect::ReadOnly {
            return self.shared.call_idle_router(tool, arguments, &self.control);
        }
        let permit = tokio::select! {
            permit = self.shared.slow.clone().acquire_owned() => permit.map_err(|_| defect_error())?,
            () = cancelled.cancelled() => return Err(cancelled_error()),
        };
        let control = self.control.with_own_cancel();
        let shared = self.shared.clone();
        let leaving = CancelOnDrop(control.clone());
        let tool = tool.to_owned();
        let work = task::spawn_blocking(move || {
            // Released when the programs have ended, even if the client left earlier.
            let _permit: OwnedSemaphorePermit = permit;
            shared.call_idle_router(&tool, arguments, &control)
        });
        let done = tokio::select! {
            done = work => done.unwrap_or_else(|_| Err(defect_error())),
            () = cancelled.cancelled() => Err(cancelled_error()),
        };
        drop(leaving);
        done
    }

    /// Waits until no call runs programs any more.
    pub async fn wait_until_idle(&self) {
        let all = u32::try_from(MAX_THREADED_CALLS).expect("it is small");
        // The semaphore is never closed.
        let _ = self.shared.slow.acquire_many(all).await;
    }
}

impl<D: ToolCaller> PoolState<D> {
    fn take_router(&self) -> Result<Box<D>, ToolError> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match free {
            Some(router) => Ok(router),
            None => (self.open)().map(Box::new),
        }
    }

    /// Calls a tool on an idle router. The router is reused, unless the store or the machine has failed.
    fn call_idle_router(&self, tool: &str, arguments: Value, control: &RunControl) -> ToolReply {
        let mut router = self.take_router()?;
        let said = router.call_tool_as_json(tool, arguments, control);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match said {
            Err(ToolError { code: ToolErrorCode::Store | ToolErrorCode::System, .. }) => free.clear(),
            _ => free.push(router),
        }
        said
    }
}

/// Guard that cancels a call when its client no longer waits for it.
struct CancelOnDrop(RunControl);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel_own_runs();
    }
}

fn cancelled_error() -> ToolError {
    ToolError::new(ToolErrorCode::Interrupted, "the call was cancelled")
}

fn defect_error() -> ToolError {
    ToolError::new(ToolErrorCode::System, "the call failed by a defect of Windlass")
        .with_hint(CallerHint::command("windlass doctor", "checks the project"))
}
