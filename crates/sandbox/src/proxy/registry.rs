//! The connections of a proxy, and how they end with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of connections at the same time.
pub(crate) const MAX_CONNECTIONS: usize = 512;

/// How long the end of a proxy waits for the threads of its connections.
pub(crate) const MAX_SHUTDOWN_WAIT: Duration = Duration::from_secs(5);

/// A function that makes a blocked thread go on, when the proxy ends.
type ConnectionCloser = Box<dyn Fn() + Send>;

/// All connections of a proxy.
#[derive(Default)]
pub(crate) struct ConnectionRegistry {
    state: Mutex<RegistryState>,
    is_idle: Condvar,
}

#[derive(Default)]
struct RegistryState {
    is_closed: bool,
    connections: usize,
    next_id: u64,
    closers: BTreeMap<u64, ConnectionCloser>,
}

impl ConnectionRegistry {
    /// Counts a connection, unless there are too many.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut state = self.state();
        if state.is_closed || state.connections >= MAX_CONNECTIONS {
            return None;
        }
        state.connections += 1;
        Some(ConnectionSlot(self.clone()))
    }

    /// Has a function called when the proxy ends, until the registration is dropped. If the proxy has ended, that is at once.
    pub(crate) fn on_close(&self, closer: impl Fn() + Send + 'static) -> CloserRegistration<'_> {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        if state.is_closed {
            closer();
        } else {
            state.closers.insert(id, Box::new(closer));
        }
        CloserRegistration { registry: self, id }
    }

    /// Ends all connections, and waits for their threads.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.closers.values().for_each(|closer| closer());
        let has_connections = |state: &mut RegistryState| state.connections > 0;
        _ = self.is_idle.wait_timeout_while(state, MAX_SHUTDOWN_WAIT, has_connections);
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the connections that a proxy may have at the same time.
pub(crate) struct ConnectionSlot(Arc<ConnectionRegistry>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.connections -= 1;
        if state.connections == 0 {
            self.0.is_idle.notify_all();
        }
    }
}

/// A function that is called when the proxy ends.
pub(crate) struct CloserRegistration<'a> {
    registry: &'a ConnectionRegistry,
    id: u64,
}

impl Drop for CloserRegistration<'_> {
    fn drop(&mut self) {
        let closer = self.registry.state().closers.remove(&self.id);
        // What the closer holds is dropped without the lock.
        drop(closer);
    }
}
