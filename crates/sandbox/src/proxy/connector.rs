//! Connections to servers: a name is resolved, its addresses are checked, and one of them is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::registry::MAX_CONNECTIONS;
use super::stream::ProxyStream;
use super::target::{HostTarget, LOCALHOST};
use super::{DenialReason, HostResolver, ProxyContext, ServerConnector};
use crate::HostPattern;

/// How long it may take to resolve a name and to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The least time for an attempt to connect.
const MIN_ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1);

/// Why there is no connection to a server.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Denied(DenialReason),
    Failed(io::Error),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Connects to a server, if its host is allowed. It returns early when the proxy ends.
pub(crate) fn connect_server(context: &Arc<ProxyContext>, target: &HostTarget) -> Result<ProxyStream, ConnectError> {
    let hosts = context.hosts.read().unwrap_or_else(PoisonError::into_inner).clone();
    if !target.is_allowed(&hosts) {
        return Err(ConnectError::Denied(DenialReason::HostNotAllowed));
    }
    if Arc::strong_count(&context.connectors) > MAX_CONNECTIONS {
        return Err(io::Error::other("too many names are being resolved").into());
    }
    let (sender, receiver) = mpsc::channel();
    let interrupt = sender.clone();
    let interrupted = || Err(ConnectError::Failed(io::ErrorKind::ConnectionAborted.into()));
    let _registration = context.registry.on_close(move || _ = interrupt.send(interrupted()));
    let connectors = context.connectors.clone();
    let attempt =
        ConnectAttempt { target: target.clone(), hosts, resolver: context.resolver, connect: context.connect.clone() };
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    // Neither a lookup nor an attempt to connect can be interrupted, so a thread of its own does both.
    thread::Builder::new().name("proxy-connector".into()).spawn(move || {
        let _connectors = connectors;
        // A client that has gone does not need the connection.
        _ = sender.send(attempt.run(deadline));
    })?;
    match receiver.recv_timeout(CONNECT_TIMEOUT) {
        Ok(outcome) => Ok(outcome?.try_into()?),
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

/// What a thread needs to connect to a server.
pub(super) struct ConnectAttempt {
    pub(super) target: HostTarget,
    pub(super) hosts: Vec<HostPattern>,
    pub(super) resolver: HostResolver,
    pub(super) connect: ServerConnector,
}

impl ConnectAttempt {
    fn run(&self, deadline: Instant) -> Result<TcpStream, ConnectError> {
        if let Some(address) = self.target.address() {
            return self.connect_address(address, deadline).map_err(ConnectError::Failed);
        }
        let (allowed, denied): (Vec<IpAddr>, Vec<IpAddr>) =
            (self.resolver)(&self.target.host)?.into_iter().partition(|address| self.is_address_allowed(*address));
        let mut error = match denied.first() {
            Some(address) => ConnectError::Denied(DenialReason::LocalAddress(*address)),
            None => io::Error::new(io::ErrorKind::NotFound, "the host has no address").into(),
        };
        for (index, address) in allowed.iter().enumerate() {
            // An address that does not answer leaves time for the others.
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(allowed.len() - index).unwrap_or(u32::MAX);
            match self.connect_address(*address, Instant::now() + share) {
                Ok(stream) if self.leads_to_this_machine(&stream, *address) => {
                    error = ConnectError::Denied(DenialReason::LocalAddress(*address));
                }
                Ok(stream) => return Ok(stream),
                Err(failure) => error = failure.into(),
            }
        }
        Err(error)
    }

    fn connect_address(&self, address: IpAddr, deadline: Instant) -> io::Result<TcpStream> {
        let timeout = deadline.saturating_duration_since(Instant::now()).max(MIN_ATTEMPT_TIMEOUT);
        (self.connect)(SocketAddr::new(address, self.target.port), timeout)
    }

    fn is_address_allowed(&self, address: IpAddr) -> bool {
        self.target.may_resolve_to(address, &self.hosts)
    }

    /// Returns whether a connection has the same address at both ends, a public address of this machine, and no pattern names it.
    pub(super) fn leads_to_this_machine(&self, stream: &TcpStream, address: IpAddr) -> bool {
        let is_own_address = stream.local_addr().is_ok_and(|local| local.ip() == address);
        let literal = HostTarget { host: address.to_string(), port: self.target.port };
        is_own_address && self.target.host != LOCALHOST && !literal.is_allowed(&self.hosts)
    }
}
