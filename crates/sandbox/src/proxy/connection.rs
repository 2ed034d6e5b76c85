//! One connection of a client, from its request to its end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;

use super::body::copy_body;
use super::client_hello::{HelloInspection, inspect_client_hello};
use super::connector::{ConnectError, connect_server};
use super::head::{HeadError, HeadReadError, HttpHead, read_head};
use super::request::{ForwardRequest, ProxyRequest};
use super::response::{ForwardResponse, denial_response, proxy_response};
use super::stream::{ProxyStream, RelayStream, join_streams};
use super::target::HostTarget;
use super::{DenialReason, INTERNAL_HOST, INTERNAL_PORT, ProxyContext, ProxyEvent};

/// How long a client may block the write of a short response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take to close the connection after its last response, and how much it may send until then. A connection that
/// closes with unread bytes would take the response from the client.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_DRAINED_BYTES: u64 = 8 * 1024 * 1024;

/// The maximum number of responses like `100 Continue` to a request.
const MAX_INTERIM_RESPONSES: usize = 16;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Why a connection of a client ends early.
enum ConnectionEnd {
    /// The client gets a last response.
    Refused(Vec<u8>),
    Broken,
}

impl From<io::Error> for ConnectionEnd {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl From<HeadError> for ConnectionEnd {
    fn from(error: HeadError) -> Self {
        Self::Refused(proxy_response("400 Bad request", &format!("The proxy of this sandbox refuses it: {error}.")))
    }
}

/// Serves one connection of a client.
pub(crate) fn serve_connection(context: &Arc<ProxyContext>, stream: ProxyStream) {
    let closed = stream.clone();
    let _registration = context.registry.on_close(move || closed.shutdown(Shutdown::Both));
    let mut client = BufReader::new(stream.clone());
    let outcome = stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(ConnectionEnd::from);
    if let Err(ConnectionEnd::Refused(response)) = outcome.and_then(|()| serve_request(context, &mut client)) {
        _ = send_last_response(&mut client, &response);
    }
    stream.shutdown(Shutdown::Both);
}

fn serve_request(context: &Arc<ProxyContext>, client: &mut BufReader<ProxyStream>) -> Result<(), ConnectionEnd> {
    let deadline = Some(Instant::now() + context.head_timeout);
    let stream = client.get_ref().clone();
    let head = read_head(client, || stream.limit_read(deadline));
    stream.set_read_timeout(None)?;
    let refuse = |status, text| Err(ConnectionEnd::Refused(proxy_response(status, text)));
    let head = match head {
        Ok(Some(head)) => head,
        Ok(None) => return Ok(()),
        Err(HeadReadError::TooLong) => {
            return refuse("431 Request header too large", "The request header is too large.");
        }
        Err(HeadReadError::Malformed) => return refuse("400 Bad request", "This is a proxy for HTTP/1.1."),
        Err(HeadReadError::Io(error)) if is_timeout(&error) => {
            return refuse("408 Request timeout", "The request took too long.");
        }
        Err(HeadReadError::Io(error)) => return Err(error.into()),
    };
    let message = HttpHead::parse(&head)?;
    if !is_authorized(context, &message)? {
        let text = "The proxy needs the credentials of this sandbox, which the variable HTTPS_PROXY contains.";
        return refuse("407 Proxy authentication required", text);
    }
    let request = ProxyRequest::parse(&message)?;
    match request {
        ProxyRequest::Tunnel(target) => serve_tunnel(context, client, &target),
        ProxyRequest::Forward(request) => serve_forward(context, client, &request),
    }
}

/// Returns whether a request has the token, if it needs one.
fn is_authorized(context: &ProxyContext, message: &HttpHead<'_>) -> Result<bool, HeadError> {
    let Some(expected) = &context.credentials else { return Ok(true) };
    let Some(value) = message.single_value("proxy-authorization")? else { return Ok(false) };
    let Some((scheme, credentials)) = value.split_at_checked(b"Basic ".len()) else { return Ok(false) };
    let is_equal = credentials.trim_ascii().ct_eq(expected.as_bytes());
    Ok(scheme.eq_ignore_ascii_case(b"Basic ") && bool::from(is_equal))
}

fn serve_tunnel(
    context: &Arc<ProxyContext>,
    client: &mut BufReader<ProxyStream>,
    target: &HostTarget,
) -> Result<(), ConnectionEnd> {
    let mut stream = client.get_ref().clone();
    if target.host == INTERNAL_HOST {
        let Some(relay) = context.relay.as_ref().filter(|_| target.port == INTERNAL_PORT) else {
            return Err(deny_request(context, target, DenialReason::HostNotAllowed));
        };
        stream.write_all(ESTABLISHED)?;
        stream.set_write_timeout(None)?;
        relay(RelayStream::new(std::mem::replace(client, BufReader::new(stream))));
        return Ok(());
    }
    let server = open_server(context, target)?;
    let closed = server.clone();
    let _registration = context.registry.on_close(move || closed.shutdown(Shutdown::Both));
    stream.write_all(ESTABLISHED)?;
    stream.set_write_timeout(None)?;
    let allowed = || observe_allowed(context, target);
    let mut writer = server.clone();
    if target.port == 443 {
        let bytes = admit_first_bytes(context, client, target)?;
        allowed();
        join_streams(&stream, &server, || writer.write_all(&bytes))?;
    } else {
        // The server may be the first to speak.
        allowed();
        join_streams(&stream, &server, || writer.write_all(&admit_first_bytes(context, client, target)?))?;
    }
    Ok(())
}

/// Reads the first bytes of a tunnel and checks the TLS handshake in them. Returns what the server gets.
fn admit_first_bytes(
    context: &ProxyContext,
    client: &mut BufReader<ProxyStream>,
    target: &HostTarget,
) -> io::Result<Vec<u8>> {
    let is_tls_required = target.port == 443;
    let stream = client.get_ref().clone();
    let mut deadline = is_tls_required.then(|| Instant::now() + context.head_timeout);
    let mut bytes = Vec::new();
    let verdict = loop {
        stream.limit_read(deadline)?;
        let available = match client.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        let length = available.len();
        bytes.extend_from_slice(available);
        client.consume(length);
        let inspection = inspect_client_hello(&bytes);
        if inspection == HelloInspection::Incomplete && length > 0 {
            deadline = deadline.or_else(|| Some(Instant::now() + context.head_timeout));
            continue;
        }
        break match inspection {
            // The client has ended the stream.
            HelloInspection::Incomplete if bytes.is_empty() && !is_tls_required => Ok(()),
            HelloInspection::Incomplete if bytes.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            HelloInspection::Incomplete | HelloInspection::Malformed => Err(DenialReason::MalformedHandshake),
            HelloInspection::NotTls if is_tls_required => Err(DenialReason::NotTls),
            HelloInspection::NotTls => Ok(()),
            HelloInspection::Complete { server_name } => check_server_name(target, server_name),
        };
    };
    stream.set_read_timeout(None)?;
    verdict.map(|()| bytes).map_err(|reason| {
        observe_denied(context, target, reason);
        io::ErrorKind::PermissionDenied.into()
    })
}

fn check_server_name(target: &HostTarget, server_name: Option<String>) -> Result<(), DenialReason> {
    match server_name {
        Some(name) if name == target.host => Ok(()),
        Some(name) => Err(DenialReason::ServerNameMismatch(name)),
        None if target.address().is_some() => Ok(()),
        None => Err(DenialReason::ServerNameMissing),
    }
}

fn serve_forward(
    context: &Arc<ProxyContext>,
    client: &mut BufReader<ProxyStream>,
    request: &ForwardRequest,
) -> Result<(), ConnectionEnd> {
    let ForwardRequest { target, .. } = request;
    if target.host == INTERNAL_HOST {
        return Err(deny_request(context, target, DenialReason::HostNotAllowed));
    }
    if target.port == 443 {
        return Err(deny_request(context, target, DenialReason::NotTls));
    }
    let mut server = open_server(context, target)?;
    let closed = server.clone();
    let _registration = context.registry.on_close(move || closed.shutdown(Shutdown::Both));
    observe_allowed(context, target);
    let mut stream = client.get_ref().clone();
    stream.set_write_timeout(None)?;
    server.write_all(&request.head).map_err(|error| bad_gateway(target, &error))?;
    thread::scope(|scope| {
        let (sender, finished) = mpsc::channel::<()>();
        let (uploaded, body) = (server.clone(), request.body);
        thread::Builder::new().name("proxy-upload".into()).spawn_scoped(scope, move || {
            let _sender = sender;
            let outcome = copy_body(client, &mut uploaded.clone(), body);
            if outcome.is_err_and(|error| is_client_fault(&error)) {
                [client.get_ref(), &uploaded].into_iter().for_each(|stream| stream.shutdown(Shutdown::Both));
            }
            // Further requests are not read. A client that goes away does not wait for the response.
            _ = io::copy(client, &mut io::sink());
            uploaded.shutdown(Shutdown::Both);
        })?;
        let outcome = match copy_response(&server, &mut stream, request) {
            Err(ConnectionEnd::Refused(response)) => stream.write_all(&response).map_err(ConnectionEnd::from),
            outcome => outcome,
        };
        server.shutdown(Shutdown::Both);
        stream.shutdown(Shutdown::Write);
        _ = finished.recv_timeout(DRAIN_TIMEOUT);
        stream.shutdown(Shutdown::Both);
        outcome
    })
}

/// Returns whether an upload failed because of what the client sent, not because the server stopped reading.
fn is_client_fault(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Copies the response of a server to the client.
fn copy_response(
    server: &ProxyStream,
    client: &mut ProxyStream,
    request: &ForwardRequest,
) -> Result<(), ConnectionEnd> {
    let mut server = BufReader::new(server.clone());
    for _ in 0..MAX_INTERIM_RESPONSES {
        let head = match read_head(&mut server, || Ok(())) {
            Ok(Some(head)) => head,
            Ok(None) => return Err(bad_gateway(&request.target, &"the server sends no response")),
            Err(HeadReadError::Io(error)) => return Err(bad_gateway(&request.target, &error)),
            Err(_) => return Err(bad_gateway(&request.target, &"the response is malformed or too large")),
        };
        let response = ForwardResponse::parse(&head, request.is_head_only);
        let response = response.map_err(|error| bad_gateway(&request.target, &error))?;
        client.write_all(&response.head)?;
        if !response.is_interim {
            return Ok(copy_body(&mut server, client, response.body)?);
        }
    }
    Err(ConnectionEnd::Broken)
}

fn open_server(context: &Arc<ProxyContext>, target: &HostTarget) -> Result<ProxyStream, ConnectionEnd> {
    connect_server(context, target).map_err(|error| match error {
        ConnectError::Denied(reason) => deny_request(context, target, reason),
        ConnectError::Failed(error) => bad_gateway(target, &error),
    })
}

fn bad_gateway(target: &HostTarget, error: &dyn std::fmt::Display) -> ConnectionEnd {
    let text = format!("The sandbox allows {target}, but there is no connection: {error}.");
    ConnectionEnd::Refused(proxy_response("502 Bad gateway", &text))
}

fn deny_request(context: &ProxyContext, target: &HostTarget, reason: DenialReason) -> ConnectionEnd {
    let response = denial_response(target, &reason);
    observe_denied(context, target, reason);
    ConnectionEnd::Refused(response)
}

fn observe_denied(context: &ProxyContext, target: &HostTarget, reason: DenialReason) {
    (context.observe)(ProxyEvent::Denied { host: target.host.clone(), port: target.port, reason });
}

fn observe_allowed(context: &ProxyContext, target: &HostTarget) {
    (context.observe)(ProxyEvent::Allowed { host: target.host.clone(), port: target.port });
}

/// Sends a response, and reads what the client still sends, so that the response arrives.
fn send_last_response(client: &mut BufReader<ProxyStream>, response: &[u8]) -> io::Result<()> {
    client.get_mut().write_all(response)?;
    client.get_ref().shutdown(Shutdown::Write);
    let (deadline, stream) = (Instant::now() + DRAIN_TIMEOUT, client.get_ref().clone());
    let (mut drained, mut buffer) = (0, [0; 4096]);
    while drained < MAX_DRAINED_BYTES {
        stream.limit_read(Some(deadline))?;
        match client.read(&mut buffer)? {
            0 => break,
            length => drained += length as u64,
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}
