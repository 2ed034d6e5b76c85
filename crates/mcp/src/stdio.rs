//! Server for one client over the standard streams: one message per line.
//!
//! This thread uses the streams itself: a thread that hands on each line would cost more than the rest of a call. So it opens a pipe
//! once more, to set it to non-blocking without an effect on other processes that have it.
//!
//! Invariants:
//! - A line is written whole, or the stream is broken.
//! - At most [`MAX_UNANSWERED_REQUESTS`] requests are unanswered. Then no more is read until one of them is answered.

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

use crate::bounded_lines::{LineRead, LineReader};
use crate::handler::McpHandler;
use crate::message::{self, ClientMessage};
use crate::server::{ToolCaller, ToolServer, build_runtime};

/// Maximum number of unanswered requests: enough for every client, with little memory.
const MAX_UNANSWERED_REQUESTS: usize = 64;

/// Maximum time for a client to read the last answers after it has closed its end.
const OUTPUT_SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

type InputStream = Box<dyn AsyncRead + Send + Unpin>;
type OutputStream = Box<dyn AsyncWrite + Send + Unpin>;

impl<D: ToolCaller> ToolServer<D> {
    /// Serves the client at the standard streams, until it closes its end or the server is stopped.
    pub fn serve_stdio(self) -> io::Result<()> {
        let runtime = build_runtime()?;
        let _entered = runtime.enter();
        let (input, output) = open_standard_streams()?;
        runtime.block_on(self.serve_streams(input, output));
        // A thread may still wait for a file or a terminal that is not needed any more.
        runtime.shutdown_background();
        Ok(())
    }

    pub(crate) async fn serve_streams(self, input: InputStream, output: OutputStream) {
        let handler = McpHandler::new(&self);
        let transport = StdioTransport::new(input, output, self.stop.token.clone());
        // Each request has its revision, or `initialize` sets it.
        let service = serve_directly_with_ct(handler, transport, None, self.stop.token.clone());
        // The service ends at the end of the input. The closed streams report its errors.
        let _ = service.waiting().await;
        self.pool.wait_until_idle().await;
    }
}

/// Opens the standard streams in the cheapest way.
fn open_standard_streams() -> io::Result<(InputStream, OutputStream)> {
    let reader: InputStream = match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => match NonPipeStream::new(io::stdin().as_fd())? {
            NonPipeStream::Socket(socket) => Box::new(socket),
            NonPipeStream::File(file) => Box::new(file),
        },
    };
    let writer: OutputStream = match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => match NonPipeStream::new(io::stdout().as_fd())? {
            NonPipeStream::Socket(socket) => Box::new(socket),
            NonPipeStream::File(file) => Box::new(file),
        },
    };
    Ok((reader, writer))
}

/// A standard stream that is no pipe.
enum NonPipeStream {
    /// A socket, which some clients use as a pipe. Its two ends are separate, so no other process has this one.
    Socket(UnixStream),
    /// A file or a terminal, with a thread that waits for it.
    File(tokio::fs::File),
}

impl NonPipeStream {
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
    lines: LineReader<InputStream>,
    output: Arc<Mutex<OutputStream>>,
    /// Permits for unanswered requests.
    permits: Arc<Semaphore>,
    /// Permit for the next request.
    next_permit: Option<OwnedSemaphorePermit>,
    unanswered: HashMap<RequestId, OwnedSemaphorePermit>,
    /// Cancelled when the client no longer reads the output.
    gone: CancellationToken,
}

impl StdioTransport {
    fn new(input: InputStream, output: OutputStream, gone: CancellationToken) -> Self {
        Self {
            lines: LineReader::new(input),
            output: Arc::new(Mutex::new(output)),
            permits: Arc::new(Semaphore::new(MAX_UNANSWERED_REQUESTS)),
            next_permit: None,
            unanswered: HashMap::new(),
            gone,
        }
    }

    async fn receive_message(&mut self) -> Option<ClientMessage> {
        if self.next_permit.is_none() {
            self.next_permit = Some(self.permits.clone().acquire_owned().await.ok()?);
        }
        match self.lines.next().await {
            LineRead::Whole => Some(message::parse_message(self.lines.line())),
            LineRead::TooLong => Some(ClientMessage::Refused(message::too_long_error())),
            LineRead::End => None,
        }
    }

    /// Writes a message as a line, and then releases the permit of its request.
    fn write_message(
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
        let room = answered.and_then(|id| self.unanswered.remove(id));
        self.write_message(&message, room)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.receive_message().await? {
                ClientMessage::Request(id, _) if self.unanswered.contains_key(&id) => {
                    let room = self.next_permit.take();
                    tokio::spawn(self.write_message(&message::id_in_use_error(&id), room));
                }
                ClientMessage::Request(id, message) => {
                    self.unanswered.extend(self.next_permit.take().map(|room| (id, room)));
                    return Some(message);
                }
                ClientMessage::Notification(message) => {
                    if let Some(cancelled) = cancelled_request_id(&message) {
                        // A cancelled request gets no answer.
                        self.unanswered.remove(cancelled);
                    }
                    return Some(message);
                }
                ClientMessage::Refused(answer) => {
                    let room = self.next_permit.take();
                    tokio::spawn(self.write_message(&answer, room));
                }
                ClientMessage::Ignored => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Only messages that are being written still have permits.
        self.next_permit = None;
        self.unanswered.clear();
        let all = u32::try_from(MAX_UNANSWERED_REQUESTS).expect("it is small");
        let written = timeout(OUTPUT_SHUTDOWN_GRACE, self.permits.acquire_many(all)).await;
        written.map(drop).map_err(|_| io::ErrorKind::TimedOut.into())
    }
}

/// Returns the ID of the request that a client has cancelled.
fn cancelled_request_id(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}
