//! Server for one client over the standard streams: one message per line.
//!
//! This thread uses the streams itself: a thread that hands on each line would cost more than the rest of a call. So it opens a pipe
//! once more, to set it to non-blocking without an effect on other processes that have it.
//!
//! Invariants:
//! - A line is written whole, or the stream is broken.
//! - At most [`UNDER_WAY`] requests are unanswered. Then no more is read until one of them is answered.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, serve_directly_with_ct};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::handler::Handler;
use crate::lines::{Line, Lines};
use crate::message::{self, Heard};
use crate::server::{Server, ToolRouter, runtime};

/// Maximum number of unanswered requests: enough for every client, with little memory.
const UNDER_WAY: usize = 64;

/// Maximum time for a client to read the last answers after it has closed its end.
const PARTING: Duration = Duration::from_secs(5);

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

impl<D: ToolRouter> Server<D> {
    /// Serves the client at the standard streams, until it closes its end or the server is stopped.
    pub fn serve_stdio(self) -> io::Result<()> {
        let runtime = runtime()?;
        let _entered = runtime.enter();
        let (input, output) = streams()?;
        runtime.block_on(self.serve(input, output));
        // A thread may still wait for a file or a terminal that is not needed any more.
        runtime.shutdown_background();
        Ok(())
    }

    pub(crate) async fn serve(self, input: Reader, output: Writer) {
        let handler = Handler::new(&self);
        let transport = StdioTransport::new(input, output, self.stop.token.clone());
        // Each request has its revision, or `initialize` sets it.
        let service = serve_directly_with_ct(handler, transport, None, self.stop.token.clone());
        // The service ends at the end of the input. The closed streams report its errors.
        let _ = service.waiting().await;
        self.pool.rest().await;
    }
}

/// Opens the standard streams in the cheapest way.
fn streams() -> io::Result<(Reader, Writer)> {
    let reader: Reader = match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => match Other::new(io::stdin().as_fd())? {
            Other::Socket(socket) => Box::new(socket),
            Other::File(file) => Box::new(file),
        },
    };
    let writer: Writer = match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => match Other::new(io::stdout().as_fd())? {
            Other::Socket(socket) => Box::new(socket),
            Other::File(file) => Box::new(file),
        },
    };
    Ok((reader, writer))
}

/// A standard stream that is no pipe.
enum Other {
    /// A socket, which some clients use as a pipe. Its two ends are separate, so no other process has this one.
    Socket(UnixStream),
    /// A file or a terminal, with a thread that waits for it.
    File(tokio::fs::File),
}

impl Other {
    fn new(stream: BorrowedFd<'_>) -> io::Result<Self> {
        let file = File::from(stream.try_clone_to_owned()?);
        if !file.metadata()?.file_type().is_socket() {
            return Ok(Self::File(file.into()));
        }
        let socket = StdUnixStream::from(OwnedFd::from(file));
        socket.set_nonblocking(true)?;
        Ok(Self::Socket(UnixStream::from_std(socket)?))
    }
}

/// Transport of messages over the two streams, for rmcp.
struct StdioTransport {
    lines: Lines<Reader>,
    output: Arc<Mutex<Writer>>,
    /// Permits for unanswered requests.
    room: Arc<Semaphore>,
    /// Permit for the next request.
    next: Option<OwnedSemaphorePermit>,
    under_way: HashMap<RequestId, OwnedSemaphorePermit>,
    /// Cancelled when the client no longer reads the output.
    gone: CancellationToken,
}

impl StdioTransport {
    fn new(input: Reader, output: Writer, gone: CancellationToken) -> Self {
        Self {
            lines: Lines::new(input),
            output: Arc::new(Mutex::new(output)),
            room: Arc::new(Semaphore::new(UNDER_WAY)),
            next: None,
            under_way: HashMap::new(),
            gone,
        }
    }

    async fn heard(&mut self) -> Option<Heard> {
        if self.next.is_none() {
            self.next = Some(self.room.clone().acquire_owned().await.ok()?);
        }
        match self.lines.next().await {
            Line::Whole => Some(message::read(self.lines.line())),
            Line::TooLong => Some(Heard::Refused(message::too_long())),
            Line::End => None,
        }
    }

    /// Writes a message as a line, and then releases the permit of its request.
    fn write(
        &self,
        message: &ServerJsonRpcMessage,
        room: Option<OwnedSemaphorePermit>,
    ) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let mut line = serde_json::to_vec(message).expect("a message has string keys");
        line.push(b'\n');
        let (output, gone) = (self.output.clone(), self.gone.clone());
        async move {
            let mut output = output.lock().await;
            let written = async {
                output.write_all(&line).await?;
                output.flush().await
            };
            let written = written.await.inspect_err(|_| gone.cancel());
            drop(room);
            written
        }
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let room = answered.and_then(|id| self.under_way.remove(id));
        self.write(&message, room)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.heard().await? {
                Heard::Request(id, _) if self.under_way.contains_key(&id) => {
                    let room = self.next.take();
                    tokio::spawn(self.write(&message::taken(&id), room));
                }
                Heard::Request(id, message) => {
                    self.under_way.extend(self.next.take().map(|room| (id, room)));
                    return Some(message);
                }
                Heard::Notification(message) => {
                    if let Some(cancelled) = cancelled(&message) {
                        // A cancelled request gets no answer.
                        self.under_way.remove(cancelled);
                    }
                    return Some(message);
                }
                Heard::Refused(answer) => {
                    let room = self.next.take();
                    tokio::spawn(self.write(&answer, room));
                }
                Heard::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Only messages that are being written still have permits.
        self.next = None;
        self.under_way.clear();
        let all = u32::try_from(UNDER_WAY).expect("it is small");
        let written = timeout(PARTING, self.room.acquire_many(all)).await;
        written.map(drop).map_err(|_| io::ErrorKind::TimedOut.into())
    }
}

/// Returns the ID of the request that a client has cancelled.
fn cancelled(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}
