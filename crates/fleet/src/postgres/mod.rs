//! A fleet on PostgreSQL.
//!
//! ```text
//!   PostgresService ── runtime thread ──► tokio-postgres ──┬─► windlass_projects   which logs exist
//!                                                          ├─► windlass_log        messages    (log.rs)
//!                                                          └─► windlass_beats      heartbeats  (beats.rs)
//! ```
//!
//! Invariants:
//! - Messages of a project are committed one after the other, so a reader never sees a message before the one that precedes it.
//! - No transaction spans two requests: a client that stops in the middle holds no lock.
//! - A connection that breaks or stays silent is not used again: the next call opens another one.

mod beats;
mod connection;
mod log;
mod password_file;
mod permissions;
mod report;
mod tls;

use std::time::{Duration, Instant};

use windlass_store::{SequencedMessage, Sequencer, SequencerError};

pub use self::permissions::list_grants;

use self::connection::PostgresConnection;
use crate::failure::refused;
use crate::runtime_thread::RuntimeThread;
use crate::service::{
    FleetAccess, FleetService, HeartbeatList, LogSettings, OwnerHeartbeat, PublishedEvent, ServiceReport,
};

/// How long a call goes on when its connection breaks or the server ends it.
const CALL_PATIENCE: Duration = Duration::from_secs(5);
const CALL_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Why there are no published events.
const NO_EVENTS: &str = "PostgreSQL has no stream of events; other programs read the table `windlass_log`";

/// The log of a project in a table of PostgreSQL.
pub struct PostgresService {
    access: FleetAccess,
    connection: Option<PostgresConnection>,
    runtime: RuntimeThread,
}

impl PostgresService {
    /// Prepares a connection. The first call opens it.
    pub fn new(access: FleetAccess) -> std::io::Result<Self> {
        Ok(Self { access, connection: None, runtime: RuntimeThread::start()? })
    }

    /// Calls the service, again when the connection breaks. `call` has no effect when it fails with `Unreachable`, or may have it
    /// twice.
    fn call_service<T>(
        &mut self,
        call: impl AsyncFn(&mut PostgresConnection, &str) -> Result<T, SequencerError>,
    ) -> Result<T, SequencerError> {
        let until = Instant::now() + CALL_PATIENCE;
        loop {
            self.runtime.update_connections();
            self.connection = self.connection.take().filter(PostgresConnection::is_open);
            let connection = match &mut self.connection {
                Some(connection) => connection,
                empty => empty.insert(self.runtime.block_on(PostgresConnection::open(&self.access))?),
            };
            match self.runtime.block_on(call(connection, self.access.address.project())) {
                Err(SequencerError::Unreachable { .. }) if Instant::now() < until => {
                    self.runtime.block_on(async { tokio::time::sleep(CALL_RETRY_PAUSE).await });
                }
                outcome => return outcome,
            }
        }
    }
}

impl Sequencer for PostgresService {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        self.call_service(async |connection, project| connection.publish_message(project, body).await)
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        self.call_service(async |connection, project| connection.read_messages(project, sequence, most).await)
    }

    fn subscribe_after(&mut self, _sequence: u64) -> Result<(), SequencerError> {
        self.call_service(async |connection, _| connection.listen_for_news().await)
    }

    fn receive_after(
        &mut self,
        sequence: u64,
        patience: Duration,
    ) -> Result<Option<Vec<SequencedMessage>>, SequencerError> {
        // The next read opens a connection.
        if self.connection.is_none() {
            return Ok(None);
        }
        self.call_service(async |connection, project| connection.receive_messages(project, sequence, patience).await)
    }
}

impl FleetService for PostgresService {
    fn inspect_service(&mut self) -> Result<ServiceReport, SequencerError> {
        self.call_service(async |connection, project| connection.inspect_service(project).await)
    }

    fn create_log(&mut self, _settings: LogSettings) -> Result<(), SequencerError> {
        self.call_service(async |connection, project| connection.create_log(project).await)
    }

    fn record_heartbeat(&mut self, heartbeat: &OwnerHeartbeat, lifetime: Duration) -> Result<(), SequencerError> {
        self.call_service(async |connection, project| connection.record_heartbeat(project, heartbeat, lifetime).await)
    }

    fn list_heartbeats(&mut self) -> Result<HeartbeatList, SequencerError> {
        self.call_service(async |connection, project| connection.list_heartbeats(project).await)
    }

    fn remove_heartbeat(&mut self, machine: &str, owner: &str) -> Result<(), SequencerError> {
        self.call_service(async |connection, project| connection.remove_heartbeat(project, machine, owner).await)
    }

    fn last_published_event(&mut self) -> Result<u64, SequencerError> {
        Err(refused(NO_EVENTS))
    }

    fn publish_events(&mut self, _events: &[PublishedEvent]) -> Result<(), SequencerError> {
        Err(refused(NO_EVENTS))
    }
}
