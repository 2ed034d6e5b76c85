//! A fleet on PostgreSQL.

use std::time::Duration;

use windlass_store::{SequencedMessage, Sequencer, SequencerError};

use crate::failure::refused;
use crate::runtime_thread::RuntimeThread;
use crate::service::{FleetAccess, FleetService, LogSettings, OwnerHeartbeat, PublishedEvent, ServiceReport};

/// The log of a project in a table of PostgreSQL.
pub struct PostgresService {
    _access: FleetAccess,
    _runtime: RuntimeThread,
}

impl PostgresService {
    /// Prepares a connection. The first call opens it.
    pub fn new(access: FleetAccess) -> std::io::Result<Self> {
        Ok(Self { _access: access, _runtime: RuntimeThread::start()? })
    }
}

fn no_support<T>() -> Result<T, SequencerError> {
    Err(refused("this version has no support for PostgreSQL"))
}

impl Sequencer for PostgresService {
    fn publish(&mut self, _body: &[u8]) -> Result<u64, SequencerError> {
        no_support()
    }

    fn read_after(&mut self, _sequence: u64, _most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        no_support()
    }

    fn wait_after(&mut self, _sequence: u64, _patience: Duration) -> Result<(), SequencerError> {
        no_support()
    }
}

impl FleetService for PostgresService {
    fn inspect_service(&mut self) -> Result<ServiceReport, SequencerError> {
        no_support()
    }

    fn create_log(&mut self, _settings: LogSettings) -> Result<(), SequencerError> {
        no_support()
    }

    fn record_heartbeat(&mut self, _heartbeat: &OwnerHeartbeat, _lifetime: Duration) -> Result<(), SequencerError> {
        no_support()
    }

    fn list_heartbeats(&mut self) -> Result<Vec<(OwnerHeartbeat, Duration)>, SequencerError> {
        no_support()
    }

    fn remove_heartbeat(&mut self, _machine: &str, _owner: &str) -> Result<(), SequencerError> {
        no_support()
    }

    fn last_published_event(&mut self) -> Result<u64, SequencerError> {
        no_support()
    }

    fn publish_events(&mut self, _events: &[PublishedEvent]) -> Result<(), SequencerError> {
        no_support()
    }
}
