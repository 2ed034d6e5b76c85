//! A fleet on NATS JetStream.
//!
//! ```text
//!   NatsService ── runtime thread ──► async-nats ──┬─► WL_<project>_LOG     messages         (log.rs, subscription.rs)
//!                                                  ├─► WL_<project>_BEATS   heartbeats       (beats.rs)
//!                                                  └─► WL_<project>_EVENTS  accepted events  (events.rs)
//! ```
//!
//! Invariants:
//! - A call that reaches no leader had no effect, so it is repeated while the servers elect one.
//! - A connection that breaks or stays silent is not used again: the next call opens another one, perhaps to another server.

mod beats;
mod connection;
mod events;
mod log;
mod names;
mod permissions;
mod report;
mod subscription;

use std::time::{Duration, Instant};

use windlass_store::{SequencedMessage, Sequencer, SequencerError};

pub use self::permissions::list_rights;

use self::connection::NatsConnection;
use self::names::ProjectSubjects;
use crate::runtime_thread::RuntimeThread;
use crate::service::{
    FleetAccess, FleetService, HeartbeatList, LogSettings, OwnerHeartbeat, PublishedEvent, ServiceReport,
};

/// How long a call waits for servers that elect a leader, and how often it asks.
const ELECTION_PATIENCE: Duration = Duration::from_secs(5);
const ELECTION_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The log of a project in JetStream.
pub struct NatsService {
    access: FleetAccess,
    subjects: ProjectSubjects,
    connection: Option<NatsConnection>,
    runtime: RuntimeThread,
}

impl NatsService {
    /// Prepares a connection. The first call opens it.
    pub fn new(access: FleetAccess) -> std::io::Result<Self> {
        let subjects = ProjectSubjects::new(access.address.project());
        Ok(Self { access, subjects, connection: None, runtime: RuntimeThread::start()? })
    }

    /// Calls the service, again while its servers elect a leader. `call` has no effect when it fails with `Unreachable`, or may
    /// have it twice.
    fn call_service<T>(
        &mut self,
        call: impl AsyncFn(&mut NatsConnection, &ProjectSubjects) -> Result<T, SequencerError>,
    ) -> Result<T, SequencerError> {
        let until = Instant::now() + ELECTION_PATIENCE;
        loop {
            self.runtime.update_connections();
            self.connection = self.connection.take().filter(NatsConnection::is_open);
            let connection = match &mut self.connection {
                Some(connection) => connection,
                empty => empty.insert(self.runtime.block_on(NatsConnection::open(&self.access))?),
            };
            match self.runtime.block_on(call(connection, &self.subjects)) {
                Err(SequencerError::Unreachable { .. }) if Instant::now() < until => {
                    self.runtime.block_on(async { tokio::time::sleep(ELECTION_POLL_INTERVAL).await });
                }
                outcome => return outcome,
            }
        }
    }
}

impl Sequencer for NatsService {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        self.call_service(async |connection, subjects| connection.publish_message(subjects, body).await)
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        self.call_service(async |connection, subjects| connection.read_messages(subjects, sequence, most).await)
    }

    fn subscribe_after(&mut self, sequence: u64) -> Result<(), SequencerError> {
        self.call_service(async |connection, subjects| connection.subscribe_after(subjects, sequence).await)
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
        self.call_service(async |connection, _| connection.receive_messages(sequence, patience).await)
    }
}

impl FleetService for NatsService {
    fn inspect_service(&mut self) -> Result<ServiceReport, SequencerError> {
        self.call_service(async |connection, subjects| connection.inspect_service(subjects).await)
    }

    fn create_log(&mut self, settings: LogSettings) -> Result<(), SequencerError> {
        self.call_service(async |connection, subjects| connection.create_log(subjects, settings).await)
    }

    fn record_heartbeat(&mut self, heartbeat: &OwnerHeartbeat, lifetime: Duration) -> Result<(), SequencerError> {
        self.call_service(async |connection, subjects| connection.record_heartbeat(subjects, heartbeat, lifetime).await)
    }

    fn list_heartbeats(&mut self) -> Result<HeartbeatList, SequencerError> {
        self.call_service(async |connection, subjects| connection.list_heartbeats(subjects).await)
    }

    fn remove_heartbeat(&mut self, machine: &str, owner: &str) -> Result<(), SequencerError> {
        self.call_service(async |connection, subjects| connection.remove_heartbeat(subjects, machine, owner).await)
    }

    fn last_published_event(&mut self) -> Result<u64, SequencerError> {
        self.call_service(async |connection, subjects| connection.last_published_event(subjects).await)
    }

    fn publish_events(&mut self, events: &[PublishedEvent]) -> Result<(), SequencerError> {
        self.call_service(async |connection, subjects| connection.publish_events(subjects, events).await)
    }
}
