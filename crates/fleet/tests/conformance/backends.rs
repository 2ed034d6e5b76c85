//! A log in JetStream, behind [`Backend`].

use std::sync::atomic::{AtomicU32, Ordering};

use windlass_fleet::{FleetAccess, FleetService as _, LogSettings, NatsService};
use windlass_testkit::nats_server::NatsServer;

use crate::handles::{Backend, ReplicaHandle};

/// Copies of a log in JetStream. Each handle is another machine.
pub struct NatsBackend {
    server: NatsServer,
    machines: AtomicU32,
}

impl NatsBackend {
    fn connect(&self) -> NatsService {
        let address = self.server.log_address("pump").parse().unwrap();
        NatsService::new(FleetAccess { address, credentials: None, certificates: None }).unwrap()
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
