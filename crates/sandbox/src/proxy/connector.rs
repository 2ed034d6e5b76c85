//! Connections to servers: a name is resolved, its addresses are checked, and one of them is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::registry::MAX_CONNECTIONS;
use super::stream::ProxyStream;
use super::target::HostTarget;
use super::{DenialReason, ProxyContext};
use crate::HostPattern;

/// How long it may take to resolve a name and to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

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
    let (target, resolver, connectors) = (target.clone(), context.resolver, context.connectors.clone());
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    // Neither a lookup nor an attempt to connect can be interrupted, so a thread of its own does both.
    thread::Builder::new().name("proxy-connector".into()).spawn(move || {
        let _connectors = connectors;
        // A client that has gone does not need the connection.
        _ = sender.send(connect_allowed(&target, resolver, &hosts, deadline));
    })?;
    match receiver.recv_timeout(CONNECT_TIMEOUT) {
        Ok(outcome) => Ok(outcome?.try_into()?),
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

fn connect_allowed(
    target: &HostTarget,
    resolver: super::HostResolver,
    hosts: &[HostPattern],
    deadline: Instant,
) -> Result<TcpStream, ConnectError> {
    if let Some(address) = target.address() {
        return connect_address(address, target.port, deadline).map_err(ConnectError::Failed);
    }
    let addresses = resolver(&target.host)?;
    let denied = addresses.iter().find(|address| !target.may_resolve_to(**address, hosts)).copied();
    let allowed: Vec<IpAddr> = addresses.into_iter().filter(|address| target.may_resolve_to(*address, hosts)).collect();
    let mut error = match denied {
        Some(address) => ConnectError::Denied(DenialReason::LocalAddress(address)),
        None => io::Error::new(io::ErrorKind::NotFound, "the host has no address").into(),
    };
    for (index, address) in allowed.iter().enumerate() {
        // An address that does not answer leaves time for the others.
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(allowed.len() - index).unwrap_or(u32::MAX);
        match connect_address(*address, target.port, Instant::now() + share) {
            Ok(stream) if leads_to_itself(&stream, *address) && !is_local_intended(target, *address, hosts) => {
                error = ConnectError::Denied(DenialReason::LocalAddress(*address));
            }
            Ok(stream) => return Ok(stream),
            Err(failure) => error = failure.into(),
        }
    }
    Err(error)
}

fn connect_address(address: IpAddr, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let timeout = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    TcpStream::connect_timeout(&SocketAddr::new(address, port), timeout)
}

/// Returns whether both ends of a connection have the same address: a public address of this machine.
fn leads_to_itself(stream: &TcpStream, address: IpAddr) -> bool {
    stream.local_addr().is_ok_and(|local| local.ip() == address)
}

fn is_local_intended(target: &HostTarget, address: IpAddr, hosts: &[HostPattern]) -> bool {
    let literal = HostTarget { host: address.to_string(), port: target.port };
    target.host == "localhost" || literal.is_allowed(hosts)
}
