//! Open stores for requests, which run on threads of their own, and the position of the last event.

use std::sync::{Mutex, PoisonError};

use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, FailureCode};
use windlass_store::Lifetime;

use crate::error::RequestError;

/// The most open stores that wait for the next request.
const MAX_IDLE_STORES: usize = 8;

/// Open stores of one project.
pub struct StorePool {
    context: CommandContext,
    idle: Mutex<Vec<OpenedProject>>,
}

impl StorePool {
    pub fn new(context: CommandContext) -> Self {
        Self { context, idle: Mutex::new(Vec::new()) }
    }

    /// Opens a store of its own, for a thread that keeps it.
    pub fn open_project(&self) -> Result<OpenedProject, Failure> {
        self.context.open_project_for(Lifetime::Service)
    }

    /// Runs some work with an open store, on a thread where it may block.
    pub async fn run<T: Send + 'static>(
        self: &std::sync::Arc<Self>,
        work: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let pool = self.clone();
        let worked = tokio::task::spawn_blocking(move || pool.run_blocking(work)).await;
        worked.unwrap_or_else(|_| {
            Err(Failure::new(FailureCode::System, "the request ended with a defect of the server").into())
        })
    }

    fn run_blocking<T>(
        &self,
        work: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let idle = self.lock_idle().pop();
        let mut opened = match idle {
            Some(opened) => opened,
            None => self.open_project()?,
        };
        let done = work(&mut opened);
        opened.person = None;
        let mut idle = self.lock_idle();
        if idle.len() < MAX_IDLE_STORES {
            idle.push(opened);
        }
        done
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<OpenedProject>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
