//! What a service offers to a fleet besides the order of its messages.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use windlass_store::{Sequencer, SequencerError};

use crate::address::{FleetAddress, ServiceKind};
use crate::nats::{NatsService, list_rights};
use crate::postgres::{PostgresService, list_grants};

/// With fewer copies, the loss of one server can lose messages, or stop the fleet.
const SAFE_REPLICAS: usize = 3;

/// How to reach the service of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetAccess {
    pub address: FleetAddress,
    /// A file with the credentials of a user. NATS: a `.creds` file, a seed of an NKey, or `user:password`. PostgreSQL: a
    /// password file (`host:port:database:user:password`).
    pub credentials: Option<PathBuf>,
    /// A file with the certificates that sign those of the servers; else those that the system trusts.
    pub certificates: Option<PathBuf>,
}

/// A service that keeps the log of a fleet, and knows which owners are alive.
///
/// Every call connects when no connection is open.
pub trait FleetService: Sequencer {
    /// Describes the service, and what of it could lose acknowledged messages.
    fn inspect_service(&mut self) -> Result<ServiceReport, SequencerError>;

    /// Creates an empty log. A log that exists is an error, unless it is empty.
    fn create_log(&mut self, settings: LogSettings) -> Result<(), SequencerError>;

    /// Records that an owner is alive. The service forgets a heartbeat after `lifetime`, in whole seconds.
    fn record_heartbeat(&mut self, heartbeat: &OwnerHeartbeat, lifetime: Duration) -> Result<(), SequencerError>;

    /// Returns the last heartbeat of each owner, with its age by the clock of the service.
    fn list_heartbeats(&mut self) -> Result<HeartbeatList, SequencerError>;

    /// Forgets the heartbeats of an owner that ends.
    fn remove_heartbeat(&mut self, machine: &str, owner: &str) -> Result<(), SequencerError>;

    /// Returns the position of the last event that was published for other programs; 0 if there is none.
    fn last_published_event(&mut self) -> Result<u64, SequencerError>;

    /// Publishes events for other programs. They follow the last published event; another process may publish the same.
    fn publish_events(&mut self, events: &[PublishedEvent]) -> Result<(), SequencerError>;
}

/// The settings of a new log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// How many servers keep each message. PostgreSQL replicates by its own settings and ignores it.
    pub replicas: usize,
    /// Whether the person says that each server of NATS has `sync_interval: always`: a server does not tell its clients. The log
    /// remembers it. PostgreSQL tells, and ignores it.
    pub syncs_always: bool,
}

impl LogSettings {
    /// Returns why a log with these settings could lose acknowledged messages, in whole sentences. A service may have more reasons;
    /// [`FleetService::inspect_service`] tells them, and all of them once the log is there.
    pub fn list_weaknesses(self, service: ServiceKind) -> Vec<String> {
        if service == ServiceKind::Postgres {
            return Vec::new();
        }
        let mut weaknesses = Vec::new();
        if self.replicas < SAFE_REPLICAS {
            let servers = if self.replicas == 1 { "1 server keeps" } else { "2 servers keep" };
            weaknesses.push(format!(
                "{servers} the log. {SAFE_REPLICAS} are needed to survive the loss of one without losing messages."
            ));
        }
        if !self.syncs_always {
            let text = "The servers do not tell whether they sync each message. Without `jetstream { sync_interval: always }` in \
                        the configuration of each server, a power failure loses acknowledged messages.";
            weaknesses.push(text.to_owned());
        }
        weaknesses
    }
}

/// The state and the settings of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceReport {
    /// Its name and version, as in `NATS 2.15.1`.
    pub name: String,
    /// None before the log is created.
    pub log: Option<ServiceLog>,
    /// Why acknowledged messages could be lost, in whole sentences.
    pub weaknesses: Vec<String>,
    /// How far the clock of this machine is ahead of the clock of the service, in milliseconds.
    pub clock_skew_millis: i64,
    /// How long one request takes, in milliseconds.
    #[serde(rename = "roundTripMillis", serialize_with = "serialize_millis")]
    pub round_trip: Duration,
}

fn serialize_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() * 1000.0)
}

/// The log of a project in a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceLog {
    pub messages: u64,
    pub last_sequence: u64,
    /// None where the service does not tell.
    pub replicas: Option<usize>,
}

/// A sign of life of a process that works on tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerHeartbeat {
    /// The name of the machine, as its owners carry it.
    pub machine: String,
    pub owner: String,
    /// The version of the program.
    pub version: String,
    /// The digest of the project's configuration there.
    pub config: String,
    /// The last event of its copy.
    pub position: u64,
    /// The link of the chain at that event: copies with the same log have the same link.
    pub chain: String,
}

/// The heartbeats that a service has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeartbeatList {
    /// The last heartbeat of each owner, with its age.
    pub heartbeats: Vec<(OwnerHeartbeat, Duration)>,
    /// How long the service has kept them. A restart loses them, so a shorter silence says nothing.
    pub kept_for: Duration,
}

/// An event for other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedEvent {
    pub position: u64,
    pub session: Option<String>,
    pub event_type: String,
    /// Its canonical bytes.
    pub body: Vec<u8>,
}

/// Prepares the connection to the service of a fleet. The first call opens it.
pub fn connect_service(access: FleetAccess) -> std::io::Result<Box<dyn FleetService>> {
    Ok(match access.address.service() {
        ServiceKind::Nats => Box::new(NatsService::new(access)?),
        ServiceKind::Postgres => Box::new(PostgresService::new(access)?),
    })
}

/// Returns the least rights of a user who works on a project, after its log was created: lines of the configuration of a server of
/// NATS, or statements for PostgreSQL. The rights of PostgreSQL are those for all logs of the database.
pub fn describe_permissions(address: &FleetAddress) -> String {
    match address.service() {
        ServiceKind::Nats => list_rights(address.project()),
        ServiceKind::Postgres => list_grants(address.user().unwrap_or("windlass")),
    }
}

/// Returns how far the clock of this machine is ahead of a service, in milliseconds. The service was asked for its time at
/// `asked`, and has just answered.
pub fn measure_clock_skew(service_time: Timestamp, asked: Instant) -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the clock itself is compared")]
    let now = Timestamp::try_from(SystemTime::now()).expect("the year is before 10000");
    let half_round_trip = asked.elapsed().as_millis() / 2;
    let answered_at = now.as_millisecond().saturating_sub_unsigned(half_round_trip as u64);
    answered_at.saturating_sub(service_time.as_millisecond())
}
