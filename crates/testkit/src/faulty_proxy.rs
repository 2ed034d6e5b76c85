//! A TCP proxy between a client and a server of this machine. A test breaks the connections through it, and heals them.
//!
//! ```text
//!   client ──► reader ── queue, delay ──► writer ──► server
//!   client ◄── writer ◄── delay, queue ── reader ◄── server
//! ```

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Scope};
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 64 * 1024;

/// What happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyMode {
    Open,
    /// A new connection ends at once.
    Refusing,
    /// Connections are accepted, and no byte passes.
    Silent,
}

/// A connection through the proxy.
struct ProxyConnection {
    ends: [TcpStream; 2],
    /// The directions in which bytes may pass.
    open_directions: u8,
}

struct ProxyState {
    mode: ProxyMode,
    delay: Duration,
    connections: BTreeMap<u64, ProxyConnection>,
    accepted: u64,
    /// The bytes to the server after which all connections are cut.
    bytes_until_cut: Option<usize>,
    is_over: bool,
}

struct ProxyControl {
    target: SocketAddr,
    state: Mutex<ProxyState>,
    changed: Condvar,
}

/// A proxy in front of a port of this machine. Dropping it ends all its connections.
pub struct FaultyProxy {
    port: u16,
    control: Arc<ProxyControl>,
    acceptor: Option<JoinHandle<()>>,
}

impl FaultyProxy {
    /// Starts a proxy on a free port.
    pub fn start(target_port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let state = ProxyState {
            mode: ProxyMode::Open,
            delay: Duration::ZERO,
            connections: BTreeMap::new(),
            accepted: 0,
            bytes_until_cut: None,
            is_over: false,
        };
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, target_port));
        let control = Arc::new(ProxyControl { target, state: Mutex::new(state), changed: Condvar::new() });
        let acceptor = thread::spawn({
            let control = Arc::clone(&control);
            move || control.accept_connections(&listener)
        });
        Ok(Self { port, control, acceptor: Some(acceptor) })
    }

    /// Returns the port on which the proxy listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Delays all bytes from now on, in each direction.
    pub fn set_delay(&self, delay: Duration) {
        self.control.lock_state().delay = delay;
    }

    /// Ends all connections. New ones pass.
    pub fn cut_connections(&self) {
        self.control.lock_state().cut_connections();
        self.control.changed.notify_all();
    }

    /// Ends all connections when so many more bytes have reached the server. New ones pass.
    pub fn cut_connections_after(&self, bytes: usize) {
        self.control.lock_state().bytes_until_cut = Some(bytes);
    }

    /// Ends all connections, and each new one at once, until [`heal`](Self::heal).
    pub fn refuse_connections(&self) {
        let mut state = self.control.lock_state();
        state.mode = ProxyMode::Refusing;
        state.cut_connections();
        self.control.changed.notify_all();
    }

    /// Holds all bytes back until [`heal`](Self::heal). Connections stay open, and new ones are accepted.
    pub fn hold_bytes(&self) {
        self.control.lock_state().mode = ProxyMode::Silent;
    }

    /// Lets connections and bytes pass. The delay stays.
    pub fn heal(&self) {
        self.control.lock_state().mode = ProxyMode::Open;
        self.control.changed.notify_all();
    }

    /// Returns how many connections were accepted so far.
    pub fn accepted_count(&self) -> u64 {
        self.control.lock_state().accepted
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        let mut state = self.control.lock_state();
        state.is_over = true;
        state.cut_connections();
        drop(state);
        self.control.changed.notify_all();
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl ProxyState {
    fn cut_connections(&mut self) {
        for connection in std::mem::take(&mut self.connections).into_values() {
            connection.ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
        }
    }
}

/// Bytes on their way, and when they arrive.
struct DelayedBytes {
    bytes: Vec<u8>,
    arrives_at: Instant,
}

impl ProxyControl {
    fn lock_state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept_connections(&self, listener: &TcpListener) {
        thread::scope(|scope| {
            for client in listener.incoming() {
                if self.lock_state().is_over {
                    return;
                }
                // A connection that cannot be forwarded ends.
                let _ = client.and_then(|client| self.forward_connection(scope, client));
            }
        });
    }

    fn forward_connection<'s>(&'s self, scope: &'s Scope<'s, '_>, client: TcpStream) -> io::Result<()> {
        if self.lock_state().mode == ProxyMode::Refusing {
            return Ok(());
        }
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ends = [client.try_clone()?, server.try_clone()?];
        let mut state = self.lock_state();
        if state.is_over || state.mode == ProxyMode::Refusing {
            return Ok(());
        }
        state.accepted += 1;
        let id = state.accepted;
        state.connections.insert(id, ProxyConnection { ends, open_directions: 2 });
        drop(state);
        let directions = [(client.try_clone()?, server.try_clone()?, true), (server, client, false)];
        for (from, to, is_request) in directions {
            let (sender, receiver) = mpsc::channel();
            scope.spawn(move || self.read_bytes(from, &sender));
            scope.spawn(move || {
                self.write_bytes(id, &to, is_request, &receiver);
                self.end_direction(id, &to);
            });
        }
        Ok(())
    }

    /// Reads from one end until it ends.
    fn read_bytes(&self, mut from: TcpStream, queue: &Sender<DelayedBytes>) {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let arrives_at = Instant::now() + self.lock_state().delay;
            if queue.send(DelayedBytes { bytes: buffer[..length].to_vec(), arrives_at }).is_err() {
                return;
            }
        }
    }

    /// Writes to the other end when the bytes arrive.
    fn write_bytes(&self, id: u64, mut to: &TcpStream, is_request: bool, queue: &Receiver<DelayedBytes>) {
        while let Ok(delayed) = queue.recv() {
            if !self.wait_for_arrival(id, delayed.arrives_at) {
                return;
            }
            let allowed = if is_request { self.count_request_bytes(delayed.bytes.len()) } else { None };
            let bytes = &delayed.bytes[..allowed.unwrap_or(delayed.bytes.len())];
            let written = to.write_all(bytes);
            if allowed.is_some() {
                self.lock_state().cut_connections();
                self.changed.notify_all();
            }
            if written.is_err() || allowed.is_some() {
                return;
            }
        }
    }

    /// Counts bytes to the server. If connections are to be cut within them, returns how many pass before.
    fn count_request_bytes(&self, length: usize) -> Option<usize> {
        let mut state = self.lock_state();
        let left = state.bytes_until_cut?;
        state.bytes_until_cut = left.checked_sub(length).filter(|left| *left > 0);
        (left <= length).then_some(left)
    }

    /// Ends a direction after its last bytes, and forgets a connection without directions.
    fn end_direction(&self, id: u64, to: &TcpStream) {
        let _ = to.shutdown(Shutdown::Write);
        let mut state = self.lock_state();
        if let Some(connection) = state.connections.get_mut(&id) {
            connection.open_directions -= 1;
            if connection.open_directions == 0 {
                state.connections.remove(&id);
            }
        }
    }

    /// Waits until bytes may arrive. Returns false if the connection was cut.
    fn wait_for_arrival(&self, id: u64, arrives_at: Instant) -> bool {
        let mut state = self.lock_state();
        loop {
            if !state.connections.contains_key(&id) {
                return false;
            }
            let left = arrives_at.saturating_duration_since(Instant::now());
            state = match (state.mode, left.is_zero()) {
                (ProxyMode::Silent, _) => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                (_, false) => {
                    self.changed.wait_timeout(state, left).map_or_else(|error| error.into_inner().0, |(state, _)| state)
                }
                (_, true) => return true,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that sends back what it gets, and returns its port.
    fn start_echo_server() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || io::copy(&mut &stream, &mut &stream));
            }
        });
        port
    }

    fn start_proxy() -> FaultyProxy {
        FaultyProxy::start(start_echo_server()).unwrap()
    }

    fn connect(proxy: &FaultyProxy) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap()
    }

    fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(bytes)?;
        let mut answer = vec![0; bytes.len()];
        stream.read_exact(&mut answer).map(|()| answer)
    }

    #[test]
    fn bytes_and_end_pass_in_both_directions() {
        let proxy = start_proxy();
        let mut stream = connect(&proxy);
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let mut writer = stream.try_clone().unwrap();
        let answer = thread::scope(|scope| {
            scope.spawn(|| {
                writer.write_all(&sent).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            answer
        });
        assert!(answer == sent);
    }

    #[test]
    fn cut_ends_open_connections_and_lets_new_ones_pass() {
        let proxy = start_proxy();
        let mut stream = connect(&proxy);
        assert_eq!(exchange(&mut stream, b"before").unwrap(), b"before");
        proxy.cut_connections();
        assert!(exchange(&mut stream, b"after").is_err());
        assert_eq!(exchange(&mut connect(&proxy), b"again").unwrap(), b"again");
        assert_eq!(proxy.accepted_count(), 2);
    }

    #[test]
    fn cut_after_bytes_lets_exactly_these_pass() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = FaultyProxy::start(listener.local_addr().unwrap().port()).unwrap();
        proxy.cut_connections_after(5);
        let mut stream = connect(&proxy);
        let (mut server, _) = listener.accept().unwrap();
        stream.write_all(b"before and after").unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"befor");
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }

    #[test]
    fn refusal_ends_connections_until_healed() {
        let proxy = start_proxy();
        let mut stream = connect(&proxy);
        assert_eq!(exchange(&mut stream, b"before").unwrap(), b"before");
        proxy.refuse_connections();
        assert!(exchange(&mut stream, b"during").is_err());
        assert!(exchange(&mut connect(&proxy), b"during").is_err());
        proxy.heal();
        assert_eq!(exchange(&mut connect(&proxy), b"after").unwrap(), b"after");
    }

    #[test]
    fn held_bytes_arrive_after_healing() {
        let proxy = start_proxy();
        let mut old = connect(&proxy);
        assert_eq!(exchange(&mut old, b"before").unwrap(), b"before");
        proxy.hold_bytes();
        let mut new = connect(&proxy);
        for stream in [&mut old, &mut new] {
            stream.write_all(b"held").unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let error = stream.read(&mut [0; 4]).unwrap_err();
            assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
            stream.set_read_timeout(None).unwrap();
        }
        proxy.heal();
        for stream in [&mut old, &mut new] {
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"held");
        }
    }

    #[test]
    fn delay_holds_bytes_in_each_direction() {
        let proxy = start_proxy();
        let delay = Duration::from_millis(30);
        proxy.set_delay(delay);
        let mut stream = connect(&proxy);
        let began = Instant::now();
        assert_eq!(exchange(&mut stream, b"slow").unwrap(), b"slow");
        assert!(began.elapsed() >= 2 * delay);
    }

    #[test]
    fn dropped_proxy_ends_its_connections() {
        let proxy = start_proxy();
        let mut stream = connect(&proxy);
        proxy.hold_bytes();
        stream.write_all(b"held").unwrap();
        drop(proxy);
        assert_eq!(stream.read(&mut [0; 4]).unwrap_or(0), 0);
    }
}
