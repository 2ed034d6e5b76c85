//! Tunnels on port 443 and to public addresses, which lead to this machine here.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::messages::{hello_message, records, server_name};
use crate::proxy::registry::{ConnectionRegistry, MAX_CONNECTIONS, MAX_SHUTDOWN_WAIT};
use crate::proxy::{DenialReason, HEAD_TIMEOUT, HostResolver, NetworkProxy, ProxyContext, ProxyEvent, ProxyListener};

const PUBLIC_ADDRESS: &str = "203.0.113.7";

/// A proxy over a Unix socket. Its connections lead to a server that sends back what it gets.
struct TunnelSetup {
    proxy: Option<NetworkProxy>,
    events: Receiver<ProxyEvent>,
    connects: Arc<Mutex<Vec<SocketAddr>>>,
    directory: tempfile::TempDir,
}

impl TunnelSetup {
    fn start(patterns: &[&str], resolver: HostResolver, head_timeout: Duration) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        thread::spawn(move || server.incoming().for_each(|stream| _ = thread::spawn(|| echo(stream.unwrap()))));
        let connects = Arc::new(Mutex::new(Vec::new()));
        let known = connects.clone();
        let connect = move |asked, timeout| {
            known.lock().unwrap().push(asked);
            TcpStream::connect_timeout(&address, timeout)
        };
        let (sender, events) = mpsc::channel();
        let context = ProxyContext {
            hosts: patterns.iter().map(|pattern| pattern.parse().unwrap()).collect::<Vec<_>>().into(),
            credentials: None,
            resolver,
            relay: None,
            observe: Box::new(move |event| _ = sender.send(event)),
            registry: Arc::default(),
            connect: Arc::new(connect),
            head_timeout,
            connectors: Arc::default(),
        };
        let directory = tempfile::tempdir().unwrap();
        let listener = ProxyListener::UnixSocket(directory.path().join("proxy"));
        let proxy = Some(NetworkProxy::start_with(context, listener, "").unwrap());
        Self { proxy, events, connects, directory }
    }

    fn web(patterns: &[&str]) -> Self {
        Self::start(patterns, |_| Ok(vec![PUBLIC_ADDRESS.parse().unwrap()]), HEAD_TIMEOUT)
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.directory.path().join("proxy")).unwrap()
    }

    /// Opens a tunnel.
    fn tunnel(&self, authority: &str) -> UnixStream {
        let mut client = self.connect();
        write!(client, "CONNECT {authority} HTTP/1.1\r\n\r\n").unwrap();
        let mut response = [0; 39];
        client.read_exact(&mut response).unwrap();
        assert!(response.starts_with(b"HTTP/1.1 200 ") && response.ends_with(b"\r\n\r\n"), "{response:?}");
        client
    }

    /// Sends a request, and returns the response.
    fn ask(&self, request: &str) -> String {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).unwrap();
        response
    }
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        stream.write_all(&buffer[..length]).unwrap();
    }
}

fn hello(name: &str) -> Vec<u8> {
    records(&hello_message(&[server_name(name)]), 30)
}

fn event_of(host: &str, reason: Option<DenialReason>) -> ProxyEvent {
    let (host, port) = (host.to_owned(), 443);
    match reason {
        None => ProxyEvent::Allowed { host, port },
        Some(reason) => ProxyEvent::Denied { host, port, reason },
    }
}

/// Opens a tunnel to port 443 and checks what becomes of its first bytes.
#[track_caller]
fn check_first_bytes(host: &str, bytes: &[u8], reason: Option<DenialReason>) {
    let setup = TunnelSetup::web(&["web.example", PUBLIC_ADDRESS]);
    let mut client = setup.tunnel(&format!("{host}:443"));
    client.write_all(bytes).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut echoed = Vec::new();
    let outcome = client.read_to_end(&mut echoed);
    match &reason {
        None => assert_eq!(echoed, bytes),
        Some(_) => assert!(echoed.is_empty(), "{outcome:?} {echoed:?}"),
    }
    assert_eq!(setup.events.recv().unwrap(), event_of(host, reason));
    assert!(setup.events.try_recv().is_err(), "one event");
}

#[test]
fn handshake_with_name_of_tunnel_reaches_server() {
    check_first_bytes("web.example", &hello("WEB.example"), None);
}

#[test]
fn handshake_with_other_name_ends_tunnel() {
    let reason = DenialReason::ServerNameMismatch("evil.example".into());
    check_first_bytes("web.example", &hello("evil.example"), Some(reason.clone()));
    check_first_bytes(PUBLIC_ADDRESS, &hello("evil.example"), Some(reason));
}

#[test]
fn handshake_without_name_reaches_addresses_only() {
    let nameless = records(&hello_message(&[]), 999);
    check_first_bytes("web.example", &nameless, Some(DenialReason::ServerNameMissing));
    check_first_bytes(PUBLIC_ADDRESS, &nameless, None);
}

#[test]
fn bytes_without_handshake_end_tunnel_to_port_443() {
    check_first_bytes("web.example", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", Some(DenialReason::NotTls));
    check_first_bytes("web.example", b"SSH-2.0-client\r\n", Some(DenialReason::NotTls));
    let part = &hello("web.example")[..20];
    check_first_bytes("web.example", part, Some(DenialReason::MalformedHandshake));
    check_first_bytes("web.example", &[22, 3, 1, 0, 4, 2, 0, 0, 0], Some(DenialReason::MalformedHandshake));
}

#[test]
fn handshake_that_arrives_byte_by_byte_is_checked_before_server_gets_it() {
    let setup = TunnelSetup::web(&["web.example"]);
    let mut client = setup.tunnel("web.example:443");
    let bytes = hello("web.example");
    bytes.iter().for_each(|byte| client.write_all(&[*byte]).unwrap());
    let mut echoed = vec![0; bytes.len()];
    client.read_exact(&mut echoed).unwrap();
    assert_eq!(echoed, bytes);
}

#[test]
fn handshake_is_checked_on_other_ports_too() {
    let setup = TunnelSetup::web(&["web.example:8443"]);
    let mut client = setup.tunnel("web.example:8443");
    client.write_all(&hello("evil.example")).unwrap();
    assert!(matches!(client.read(&mut [0; 9]), Ok(0) | Err(_)));
    assert!(matches!(setup.events.recv().unwrap(), ProxyEvent::Allowed { .. }));
    assert!(matches!(setup.events.recv().unwrap(), ProxyEvent::Denied { .. }));
    let mut client = setup.tunnel("web.example:8443");
    client.write_all(b"\x16plain").unwrap();
    let mut echoed = [0; 6];
    client.read_exact(&mut echoed).unwrap();
    assert_eq!(&echoed, b"\x16plain");
}

#[test]
fn plain_http_on_port_443_is_denied() {
    let setup = TunnelSetup::web(&["web.example"]);
    let response = setup.ask("GET http://web.example:443/ HTTP/1.1\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
    assert_eq!(setup.events.recv().unwrap(), event_of("web.example", Some(DenialReason::NotTls)));
    assert!(setup.connects.lock().unwrap().is_empty());
}

#[test]
fn name_of_local_address_is_denied() {
    for (address, resolver) in [
        ("127.0.0.1", (|_| Ok(vec!["127.0.0.1".parse().unwrap()])) as HostResolver),
        ("169.254.169.254", |_| Ok(vec!["169.254.169.254".parse().unwrap()])),
        ("::ffff:10.0.0.1", |_| Ok(vec!["::ffff:10.0.0.1".parse().unwrap()])),
        ("::1", |_| Ok(vec!["::1".parse().unwrap()])),
    ] {
        let setup = TunnelSetup::start(&["web.example"], resolver, HEAD_TIMEOUT);
        let address: IpAddr = address.parse().unwrap();
        let response = setup.ask("CONNECT web.example:443 HTTP/1.1\r\n\r\n");
        assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
        assert!(response.contains(&format!("its address {address} belongs to this machine")), "{response}");
        let reason = DenialReason::LocalAddress(address);
        assert_eq!(setup.events.recv().unwrap(), event_of("web.example", Some(reason)));
        assert!(setup.connects.lock().unwrap().is_empty(), "no connection to {address}");
    }
}

#[test]
fn connection_leads_to_checked_address() {
    // The second lookup of a rebinding server would return another address.
    static LOOKUPS: Mutex<usize> = Mutex::new(0);
    let resolver: HostResolver = |_| {
        *LOOKUPS.lock().unwrap() += 1;
        Ok(["127.0.0.1", PUBLIC_ADDRESS].map(|address| address.parse().unwrap()).to_vec())
    };
    let setup = TunnelSetup::start(&["web.example:8080"], resolver, HEAD_TIMEOUT);
    setup.tunnel("web.example:8080");
    assert_eq!(*LOOKUPS.lock().unwrap(), 1);
    assert_eq!(*setup.connects.lock().unwrap(), [SocketAddr::new(PUBLIC_ADDRESS.parse().unwrap(), 8080)]);
}

#[test]
fn public_address_of_this_machine_is_denied() {
    let attempt = |patterns: &[&str]| {
        let address = "127.0.0.1".parse().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let attempt = crate::proxy::connector::ConnectAttempt {
            target: crate::proxy::target::HostTarget { host: "web.example".into(), port: 443 },
            hosts: patterns.iter().map(|pattern| pattern.parse().unwrap()).collect(),
            resolver: |_| Ok(Vec::new()),
            connect: Arc::new(|_, _| unreachable!()),
        };
        attempt.leads_to_this_machine(&stream, address)
    };
    assert!(attempt(&["web.example"]));
    assert!(!attempt(&["web.example", "127.0.0.1"]));
}

#[test]
fn slow_client_gets_timeout() {
    let setup = TunnelSetup::start(&["*.example"], |_| Ok(vec![PUBLIC_ADDRESS.parse().unwrap()]), Duration::ZERO);
    let response = setup.ask("GET http://a.example/");
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
}

#[test]
fn tunnel_without_handshake_ends_after_timeout() {
    let setup =
        TunnelSetup::start(&["*.example"], |_| Ok(vec![PUBLIC_ADDRESS.parse().unwrap()]), Duration::from_secs(2));
    let mut client = setup.tunnel("a.example:443");
    client.write_all(&[22, 3]).unwrap();
    assert!(matches!(client.read(&mut [0; 9]), Ok(0) | Err(_)));
}

#[test]
fn drop_does_not_wait_for_name_server() {
    static LOOKUP_STARTED: Barrier = Barrier::new(2);
    let resolver: HostResolver = |_| {
        LOOKUP_STARTED.wait();
        loop {
            thread::park();
        }
    };
    let mut setup = TunnelSetup::start(&["web.example"], resolver, HEAD_TIMEOUT);
    let mut client = setup.connect();
    client.write_all(b"CONNECT web.example:443 HTTP/1.1\r\n\r\n").unwrap();
    LOOKUP_STARTED.wait();
    let start = Instant::now();
    drop(setup.proxy.take());
    assert!(start.elapsed() < MAX_SHUTDOWN_WAIT, "the thread of the connection ended");
    client.read_to_end(&mut Vec::new()).unwrap();
    assert!(!setup.directory.path().join("proxy").exists());
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let registry = Arc::new(ConnectionRegistry::default());
    let mut slots: Vec<_> = (0..MAX_CONNECTIONS).map(|_| registry.admit().unwrap()).collect();
    assert!(registry.admit().is_none());
    slots.pop();
    assert!(registry.admit().is_some());
    slots.clear();
    registry.close();
    assert!(registry.admit().is_none());
}
