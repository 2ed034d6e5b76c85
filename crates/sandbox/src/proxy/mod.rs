//! The only way out of a sandbox whose network is a list of hosts.
//!
//! ```text
//!   client ─► accept thread ─► request ─► is the host allowed? ─► resolve ─► is the address allowed? ─► connect
//!                                 │                                                                        │
//!                                 └─► `windlass.internal:1`: the caller              TLS: is it the same host? ─► tunnel
//! ```
//!
//! A client asks with `CONNECT host:port`, or with the address of plain HTTP. After one response of plain HTTP, the connection ends,
//! so that each request is checked.
//!
//! Invariants:
//! - No byte of a client gets to a host that no pattern allows. The host that is checked is the one that is connected to: its name is
//!   resolved once, and a TLS handshake names the same host.
//! - A name that is allowed does not lead to this machine or to a local network.
//! - Nothing outlives the proxy: when it is dropped, all connections end.
//!
//! Not here: what a client sends to a host that is allowed. Inside a tunnel without TLS, nothing is checked.

pub(crate) mod body;
pub(crate) mod client_hello;
mod connection;
mod connector;
mod environment;
pub(crate) mod head;
mod registry;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod stream;
mod target;
#[cfg(test)]
mod tests;

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::HostPattern;
use connection::serve_connection;
pub use environment::proxy_environment;
use registry::ConnectionRegistry;
use stream::ProxyStream;
pub use stream::RelayStream;

/// The host whose tunnels the caller serves, and its port.
pub const INTERNAL_HOST: &str = "windlass.internal";
pub const INTERNAL_PORT: u16 = 1;

/// The name that a client sends with the token.
const PROXY_USER: &str = "windlass";

/// How long a client may take for a request or for a TLS handshake.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the accept thread waits after an error, as when there are too many open files.
const ACCEPT_RETRY_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How long a client that is too much may take for its response.
const OVERLOAD_WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// A function that returns the addresses of a name.
pub type HostResolver = fn(&str) -> io::Result<Vec<IpAddr>>;

/// A function that serves a tunnel to the internal host. It has to return when the stream ends.
pub type RelayHandler = Box<dyn Fn(RelayStream) + Send + Sync>;

type ServerConnector = Arc<dyn Fn(SocketAddr, Duration) -> io::Result<TcpStream> + Send + Sync>;

/// What a proxy allows, and where it listens.
pub struct ProxySettings {
    pub hosts: Vec<HostPattern>,
    pub listen: ProxyListener,
    /// A secret that clients send over TCP, because other users of this machine reach the port too. It has letters, digits, `-`, `.`,
    /// `_` and `~`.
    pub token: String,
    pub resolver: HostResolver,
    /// Serves `CONNECT windlass.internal:1`. Without it, that host is denied.
    pub relay: Option<RelayHandler>,
}

/// Where a proxy listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyListener {
    /// A Unix socket at a path that does not exist, in a directory that other users cannot write to.
    UnixSocket(PathBuf),
    /// A free port of 127.0.0.1.
    Loopback,
}

/// Where a proxy can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyAddress {
    UnixSocket(PathBuf),
    Loopback(SocketAddr),
}

/// A connection that a proxy has allowed or denied. Each connection of a client causes at most one of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyEvent {
    Allowed { host: String, port: u16 },
    Denied { host: String, port: u16, reason: DenialReason },
}

/// Why a connection is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DenialReason {
    #[error("the host is not allowed")]
    HostNotAllowed,
    #[error("its address {0} belongs to this machine or to a local network")]
    LocalAddress(IpAddr),
    #[error("the client does not use TLS on port 443")]
    NotTls,
    #[error("the TLS handshake is malformed")]
    MalformedHandshake,
    #[error("the TLS handshake names no host")]
    ServerNameMissing,
    #[error("the TLS handshake names the host {0}")]
    ServerNameMismatch(String),
}

/// A proxy that runs until it is dropped.
pub struct NetworkProxy {
    address: ProxyAddress,
    context: Arc<ProxyContext>,
    /// The accept thread, and the stream whose end makes it return.
    accept_thread: Option<(JoinHandle<()>, UnixStream)>,
}

/// What the threads of a proxy share.
struct ProxyContext {
    hosts: RwLock<Vec<HostPattern>>,
    /// The encoded credentials that a client has to send, if any.
    credentials: Option<String>,
    resolver: HostResolver,
    relay: Option<RelayHandler>,
    observe: Box<dyn Fn(ProxyEvent) + Send + Sync>,
    registry: Arc<ConnectionRegistry>,
    /// Connects to an address within a time. Tests lead public addresses to this machine.
    connect: ServerConnector,
    /// How long a client may take for a request or for a TLS handshake.
    head_timeout: Duration,
    /// Each thread that resolves a name and connects holds a copy. Such a thread cannot be interrupted.
    connectors: Arc<()>,
}

impl ProxySettings {
    /// Returns settings with the resolver of the system and without an internal host.
    pub fn new(hosts: Vec<HostPattern>, listen: ProxyListener, token: String) -> Self {
        Self { hosts, listen, token, resolver: resolve_host, relay: None }
    }
}

impl NetworkProxy {
    /// Starts a proxy. `observe` hears of each connection, from several threads. Neither it nor the relay may drop the proxy.
    pub fn start(
        settings: ProxySettings,
        observe: impl Fn(ProxyEvent) + Send + Sync + 'static,
    ) -> io::Result<NetworkProxy> {
        let ProxySettings { hosts, listen, token, resolver, relay } = settings;
        let connect = |address: SocketAddr, timeout| TcpStream::connect_timeout(&address, timeout);
        let context = ProxyContext {
            hosts: RwLock::new(hosts),
            credentials: None,
            resolver,
            relay,
            observe: Box::new(observe),
            registry: Arc::default(),
            connect: Arc::new(connect),
            head_timeout: HEAD_TIMEOUT,
            connectors: Arc::default(),
        };
        Self::start_with(context, listen, &token)
    }

    fn start_with(mut context: ProxyContext, listen: ProxyListener, token: &str) -> io::Result<Self> {
        let is_sign = |sign: u8| sign.is_ascii_alphanumeric() || b"-._~".contains(&sign);
        if !token.bytes().all(is_sign) || (token.is_empty() && listen == ProxyListener::Loopback) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the token of a proxy is empty or malformed"));
        }
        let (listener, address) = match listen {
            ProxyListener::UnixSocket(path) => {
                let listener = UnixListener::bind(&path)?;
                fs::set_permissions(&path, Permissions::from_mode(0o600))?;
                (ListenSocket::Unix(listener), ProxyAddress::UnixSocket(path))
            }
            ProxyListener::Loopback => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let address = ProxyAddress::Loopback(listener.local_addr()?);
                context.credentials = Some(BASE64_STANDARD.encode(format!("{PROXY_USER}:{token}")));
                (ListenSocket::Tcp(listener), address)
            }
        };
        listener.set_nonblocking()?;
        let (wake_sender, wake_receiver) = UnixStream::pair()?;
        let context = Arc::new(context);
        let shared = context.clone();
        let accept = move || accept_connections(&shared, &listener, &wake_receiver);
        let thread = thread::Builder::new().name("proxy-accept".into()).spawn(accept)?;
        Ok(Self { address, context, accept_thread: Some((thread, wake_sender)) })
    }

    pub fn address(&self) -> &ProxyAddress {
        &self.address
    }

    /// Allows one more host, for new connections.
    pub fn allow_host(&self, pattern: HostPattern) {
        self.context.hosts.write().unwrap_or_else(PoisonError::into_inner).push(pattern);
    }
}

impl Drop for NetworkProxy {
    fn drop(&mut self) {
        if let Some((thread, wake)) = self.accept_thread.take() {
            drop(wake);
            _ = thread.join();
        }
        if let ProxyAddress::UnixSocket(path) = &self.address {
            _ = fs::remove_file(path);
        }
        self.context.registry.close();
    }
}

/// Returns the addresses of a name, as the system knows them.
pub fn resolve_host(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// A socket that clients connect to.
enum ListenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListenSocket {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.set_nonblocking(true),
            Self::Unix(listener) => listener.set_nonblocking(true),
        }
    }

    fn accept(&self) -> io::Result<ProxyStream> {
        match self {
            Self::Tcp(listener) => listener.accept()?.0.try_into(),
            Self::Unix(listener) => listener.accept()?.0.try_into(),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

/// Starts a thread for each connection, until the wake stream ends.
fn accept_connections(context: &Arc<ProxyContext>, listener: &ListenSocket, wake: &UnixStream) {
    loop {
        let mut events = [PollFd::new(wake, PollFlags::IN), PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        _ = poll(&mut events, None);
        if !events[0].revents().is_empty() {
            return;
        }
        match listener.accept() {
            Ok(stream) => start_connection(context, stream),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => _ = poll(&mut [PollFd::new(wake, PollFlags::IN)], Some(&ACCEPT_RETRY_INTERVAL)),
        }
    }
}

fn start_connection(context: &Arc<ProxyContext>, mut stream: ProxyStream) {
    let Some(slot) = context.registry.admit() else {
        let text = "The proxy of this sandbox has too many connections. Close some, and try again.";
        let response = response::proxy_response("503 Too many connections", text);
        _ = stream.set_write_timeout(Some(OVERLOAD_WRITE_TIMEOUT)).and_then(|()| stream.write_all(&response));
        return;
    };
    let context = context.clone();
    // If there is no thread, the connection closes.
    _ = thread::Builder::new().name("proxy-connection".into()).spawn(move || {
        let _slot = slot;
        serve_connection(&context, stream);
    });
}
