//! Logs of services, behind [`Backend`]. Each handle is another machine.

use std::sync::atomic::{AtomicU32, Ordering};

use windlass_fleet::{FleetAccess, FleetService as _, LogSettings, NatsService, PostgresService};
use windlass_testkit::nats_cluster::NatsCluster;
use windlass_testkit::nats_server::NatsServer;
use windlass_testkit::postgres_server::PostgresServer;

use crate::handles::{Backend, ReplicaHandle};

fn access_log(address: &str) -> FleetAccess {
    FleetAccess { address: address.parse().unwrap(), credentials: None, certificates: None }
}

/// Copies of a log in JetStream, on one server.
pub struct NatsBackend {
    server: NatsServer,
    machines: AtomicU32,
}

impl NatsBackend {
    fn connect(&self) -> NatsService {
        NatsService::new(access_log(&self.server.log_address("pump"))).unwrap()
    }
}

impl Backend for NatsBackend {
    type Handle = ReplicaHandle;

    fn new() -> Self {
        let server = NatsServer::start().expect("`scripts/clients` installs nats-server");
        let backend = Self { server, machines: AtomicU32::new(0) };
        backend.connect().create_log(LogSettings { replicas: 1, syncs_always: false }).unwrap();
        backend
    }

    fn open(&self) -> ReplicaHandle {
        ReplicaHandle::join_log(self.connect(), self.machines.fetch_add(1, Ordering::Relaxed))
    }
}

/// Copies of a log in JetStream, on three servers.
pub struct ClusterBackend {
    cluster: NatsCluster,
    machines: AtomicU32,
}

impl ClusterBackend {
    fn connect(&self) -> NatsService {
        NatsService::new(access_log(&self.cluster.log_address("pump"))).unwrap()
    }
}

impl Backend for ClusterBackend {
    type Handle = ReplicaHandle;

    fn new() -> Self {
        let cluster = NatsCluster::start().expect("`scripts/clients` installs nats-server");
        let backend = Self { cluster, machines: AtomicU32::new(0) };
        backend.connect().create_log(LogSettings { replicas: 3, syncs_always: true }).unwrap();
        backend
    }

    fn open(&self) -> ReplicaHandle {
        ReplicaHandle::join_log(self.connect(), self.machines.fetch_add(1, Ordering::Relaxed))
    }
}

/// Copies of a log in PostgreSQL.
pub struct PostgresBackend {
    server: PostgresServer,
    machines: AtomicU32,
}

impl PostgresBackend {
    fn connect(&self) -> PostgresService {
        PostgresService::new(access_log(&self.server.log_address("pump"))).unwrap()
    }
}

impl Backend for PostgresBackend {
    type Handle = ReplicaHandle;

    fn new() -> Self {
        let server = PostgresServer::start().expect("`scripts/setup` installs postgresql");
        let backend = Self { server, machines: AtomicU32::new(0) };
        backend.connect().create_log(LogSettings { replicas: 1, syncs_always: false }).unwrap();
        backend
    }

    fn open(&self) -> ReplicaHandle {
        ReplicaHandle::join_log(self.connect(), self.machines.fetch_add(1, Ordering::Relaxed))
    }
}
