//! A connection of a client or of a server, over TCP or a Unix socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The size of the buffer that a connection is copied with, in bytes.
const COPY_BUFFER_SIZE: usize = 16 * 1024;

/// A socket that several threads share. It closes when the last of them drops it.
#[derive(Debug, Clone)]
pub(crate) struct ProxyStream(Arc<SocketKind>);

#[derive(Debug)]
enum SocketKind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ProxyStream {
    pub(crate) fn shutdown(&self, how: Shutdown) {
        // The other end may have closed the connection before.
        _ = match &*self.0 {
            SocketKind::Tcp(stream) => stream.shutdown(how),
            SocketKind::Unix(stream) => stream.shutdown(how),
        };
    }

    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &*self.0 {
            SocketKind::Tcp(stream) => stream.set_read_timeout(timeout),
            SocketKind::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &*self.0 {
            SocketKind::Tcp(stream) => stream.set_write_timeout(timeout),
            SocketKind::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Makes the next read fail once a deadline has passed. Without a deadline, reads wait for as long as it takes.
    pub(crate) fn limit_read(&self, deadline: Option<Instant>) -> io::Result<()> {
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match timeout {
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            timeout => self.set_read_timeout(timeout),
        }
    }
}

impl TryFrom<TcpStream> for ProxyStream {
    type Error = io::Error;

    fn try_from(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        Ok(Self(Arc::new(SocketKind::Tcp(stream))))
    }
}

impl TryFrom<UnixStream> for ProxyStream {
    type Error = io::Error;

    fn try_from(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        Ok(Self(Arc::new(SocketKind::Unix(stream))))
    }
}

impl Read for ProxyStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &*self.0 {
            SocketKind::Tcp(stream) => (&*stream).read(buffer),
            SocketKind::Unix(stream) => (&*stream).read(buffer),
        }
    }
}

impl Write for ProxyStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &*self.0 {
            SocketKind::Tcp(stream) => (&*stream).write(bytes),
            SocketKind::Unix(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A tunnel to the internal host, for the caller of the proxy. Clones share the connection, and the unread bytes stay with the
/// original.
#[derive(Debug)]
pub struct RelayStream(BufReader<ProxyStream>);

impl RelayStream {
    pub(super) fn new(client: BufReader<ProxyStream>) -> Self {
        Self(client)
    }

    /// Returns the connection again, for a thread that writes. Only the original may read.
    pub fn writer(&self) -> impl Write + Send + use<> {
        self.0.get_ref().clone()
    }

    pub fn shutdown(&self, how: Shutdown) {
        self.0.get_ref().shutdown(how);
    }

    /// Makes reads fail that wait for longer than this.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.get_ref().set_read_timeout(timeout)
    }
}

impl Read for RelayStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl BufRead for RelayStream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

impl Write for RelayStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies both ways until both ends have closed. `first` is what the client has to do before its bytes are copied; an error of it
/// ends both connections.
pub(crate) fn join_streams(
    client: &ProxyStream,
    server: &ProxyStream,
    first: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let close = || [client, server].into_iter().for_each(|stream| stream.shutdown(Shutdown::Both));
    thread::scope(|scope| {
        let backward = move || copy_to_end(server, client);
        let started = thread::Builder::new().name("proxy-backward".into()).spawn_scoped(scope, backward);
        let outcome = started.map(drop).and_then(|()| first());
        match outcome.is_ok() {
            true => copy_to_end(client, server),
            false => close(),
        }
        outcome
    })
}

/// Copies until the source ends, and then ends the other side too. After an error, both sides end both ways.
fn copy_to_end(from: &ProxyStream, to: &ProxyStream) {
    match copy_stream(&mut from.clone(), &mut to.clone()) {
        Ok(()) => to.shutdown(Shutdown::Write),
        Err(_) => [from, to].into_iter().for_each(|stream| stream.shutdown(Shutdown::Both)),
    }
}

fn copy_stream(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BUFFER_SIZE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
