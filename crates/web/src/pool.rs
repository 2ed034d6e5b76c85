//! Open stores for requests, which run on threads of their own.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, FailureCode};
use windlass_store::Lifetime;

use crate::error::RequestError;

/// The most open stores that wait for the next request.
const MAX_IDLE_STORES: usize = 8;

/// An open store, and the file that it was opened from.
struct IdleStore {
    opened: OpenedProject,
    identity: (u64, u64),
}

/// Runs some work on a thread where it may block.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RequestError> + Send + 'static,
) -> Result<T, RequestError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or_else(|_| {
        Err(Failure::new(FailureCode::System, "the request ended with a defect of the server").into())
    })
}

/// Open stores of one project.
pub struct StorePool {
    context: CommandContext,
    idle: Mutex<Vec<IdleStore>>,
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
        self: &Arc<Self>,
        work: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let pool = self.clone();
        run_blocking(move || pool.run_with_store(work)).await
    }

    fn run_with_store<T>(
        &self,
        work: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let idle = self.lock_idle().pop();
        let current = |store: &IdleStore| self.file_identity().is_some_and(|identity| identity == store.identity);
        let mut store = match idle.filter(current) {
            Some(store) => store,
            None => IdleStore { opened: self.open_project()?, identity: self.file_identity().unwrap_or_default() },
        };
        let done = work(&mut store.opened);
        store.opened.person = None;
        // A store that failed may have been replaced: the next request opens it again.
        let is_sound = !matches!(&done, Err(error) if error.is_about_store());
        let mut idle = self.lock_idle();
        if is_sound && idle.len() < MAX_IDLE_STORES {
            idle.push(store);
        }
        done
    }

    /// Returns the device and the number of the store's file. A restored store has another one.
    pub fn file_identity(&self) -> Option<(u64, u64)> {
        let file = self.context.find_project().ok()?.store_file();
        std::fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<IdleStore>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
