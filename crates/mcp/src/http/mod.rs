//! Server for clients over streamable HTTP, several at a time.
//!
//! ```text
//! accept ─► path and token (`admission`) ─► body (`request_body`) ─► rmcp: Host, Origin, session, revision ─► handler
//! ```
//!
//! Invariants:
//! - Only this machine can connect, and only requests with the token are served.
//! - No client waits for a slow one: each connection is its own task, and each has time limits.

mod admission;
mod request_body;

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use admission::{AccessToken, AccessTokenError};

use crate::handler::McpHandler;
use crate::message::{self, ClientMessage, MAX_MESSAGE_BYTES};
use crate::server::{AgentDriverKind, StopHandle, ToolCaller, ToolServer, build_runtime};

/// Path of the endpoint.
pub const ENDPOINT_PATH: &str = "/mcp";
/// Maximum number of connections. Further ones wait until one of these is closed.
const MAX_CONNECTIONS: usize = 256;
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Maximum number of sessions and requests at a time. Further ones are refused.
const MAX_SESSIONS: usize = 256;
/// Idle timeout of a session whose agent Windlass does not drive. Without it, clients that leave without notice would use up
/// [`MAX_SESSIONS`].
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Maximum time for the head of a request, and between requests.
const HEAD: Duration = Duration::from_secs(30);
/// Maximum time for connections to end when the server stops.
const CONNECTION_SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;
type McpHttpService<D> = StreamableHttpService<McpHandler<D>, LocalSessionManager>;

/// Error of an address to listen at.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` is not an address")]
    Malformed(String),
    #[error("`{0}` can be reached from other machines")]
    NotLoopback(IpAddr),
    #[error("cannot listen at {address}")]
    Taken {
        address: SocketAddr,
        #[source]
        cause: io::Error,
    },
}

/// A bound address of this machine.
#[derive(Debug)]
pub struct BoundAddress {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundAddress {
    /// Binds `HOST:PORT`, `:PORT` or `PORT`, with a loopback host. Port 0 is any free port.
    pub fn bind_loopback(written: &str) -> Result<Self, AddressError> {
        let wanted = parse_loopback_address(written)?;
        let taken = |cause| AddressError::Taken { address: wanted, cause };
        let listener = TcpListener::bind(wanted).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(Self { listener, address })
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}{ENDPOINT_PATH}", self.address)
    }
}

fn parse_loopback_address(written: &str) -> Result<SocketAddr, AddressError> {
    let malformed = || AddressError::Malformed(message::excerpt_name(written));
    let (host, port) = match written.rsplit_once(':') {
        Some((host, port)) => (host, port),
        None => ("", written),
    };
    let port = port.parse().map_err(|_| malformed())?;
    let host = match host.trim_start_matches('[').trim_end_matches(']') {
        "" | "localhost" => IpAddr::from(Ipv4Addr::LOCALHOST),
        host => host.parse().map_err(|_| malformed())?,
    };
    if !host.is_loopback() {
        return Err(AddressError::NotLoopback(host));
    }
    Ok(SocketAddr::new(host, port))
}

impl<D: ToolCaller> ToolServer<D> {
    /// Serves all clients with the token, until the server is stopped.
    pub fn serve_http(self, listening: BoundAddress, token: AccessToken) -> io::Result<()> {
        let runtime = build_runtime()?;
        let served = runtime.block_on(self.accept_connections(listening.listener, token));
        runtime.shutdown_background();
        served
    }

    async fn accept_connections(self, listener: TcpListener, token: AccessToken) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let hosts = LOOPBACK_NAMES.map(str::to_owned).to_vec();
        let origins = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:*")).to_vec();
        let site =
            Arc::new(HttpEndpoint { service: http_service(&self, hosts, origins), token, stop: self.stop.clone() });
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let room = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // An error of one connection, or too many open files: both pass.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
                () = self.stop.token.cancelled() => break,
            };
            // Answers are short, so a delay for more data would only slow them down.
            let _ = stream.set_nodelay(true);
            let site = site.clone();
            connections.spawn(async move {
                site.serve_connection(TokioIo::new(stream)).await;
                drop(room);
            });
            while connections.try_join_next().is_some() {}
        }
        let _ = timeout(CONNECTION_SHUTDOWN_GRACE, async { while connections.join_next().await.is_some() {} }).await;
        self.pool.wait_until_idle().await;
        Ok(())
    }
}

fn http_service<D: ToolCaller>(server: &ToolServer<D>, hosts: Vec<String>, origins: Vec<String>) -> McpHttpService<D> {
    let handler = McpHandler::new(server);
    let served = Arc::new(());
    let make = move || match Arc::strong_count(&served) <= MAX_SESSIONS {
        true => Ok(handler.clone().with_count(served.clone())),
        false => Err(io::Error::other("too many sessions; end one of them, or wait")),
    };
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_json_response(true)
        .with_cancellation_token(server.stop.token.child_token());
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config(server.driven);
    StreamableHttpService::new(make, Arc::new(sessions), config)
}

/// Returns the lifetime of sessions. An agent that Windlass drives may work for hours without a call, and does not begin another
/// session after its own has expired. So its session lasts as long as the server, which ends with the agent.
fn session_config(driven: AgentDriverKind) -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = match driven {
        AgentDriverKind::ByWindlass => None,
        AgentDriverKind::ByItself => Some(SESSION_IDLE_TIMEOUT),
    };
    config
}

/// State that all connections share.
struct HttpEndpoint<D> {
    service: McpHttpService<D>,
    token: AccessToken,
    stop: StopHandle,
}

impl<D: ToolCaller> HttpEndpoint<D> {
    /// Answers the requests of one connection.
    async fn serve_connection(&self, stream: TokioIo<tokio::net::TcpStream>) {
        let answer = service_fn(async |request| Ok::<_, Infallible>(self.answer(request).await));
        let mut connection = std::pin::pin!(
            http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(HEAD).serve_connection(stream, answer)
        );
        // An error of the connection concerns only its client.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = self.stop.token.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> HttpAnswer {
        if let Err(refused) = admission::admit_request(&request, &self.token) {
            return refused.answer();
        }
        answer_admitted(&self.service, request).await
    }
}

/// The tools as a route of another server, which has admitted the requests.
pub struct McpRoute<D> {
    service: McpHttpService<D>,
}

impl<D: ToolCaller> ToolServer<D> {
    /// Returns the route for clients that name one of these hosts.
    pub fn into_route(self, hosts: Vec<String>) -> McpRoute<D> {
        let origins = hosts.iter().flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:*")));
        let origins = origins.collect();
        McpRoute { service: http_service(&self, hosts, origins) }
    }
}

impl<D: ToolCaller> McpRoute<D> {
    pub async fn answer_request<B>(&self, request: Request<B>) -> HttpAnswer
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>> + Display,
    {
        answer_admitted(&self.service, request).await
    }
}

/// Answers a request whose token was checked.
async fn answer_admitted<D, B>(service: &McpHttpService<D>, request: Request<B>) -> HttpAnswer
where
    D: ToolCaller,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>> + Display,
{
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        let ends_session = head.method == Method::DELETE;
        let mut answer = service.handle(Request::from_parts(head, body)).await;
        // The official SDKs expect 200 or 204 for an ended session, and warn about 202.
        if ends_session && answer.status() == StatusCode::ACCEPTED {
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        return answer;
    }
    let bytes = match request_body::read_body(body).await {
        Ok(bytes) => bytes,
        Err(answer) => return answer,
    };
    match message::parse_message(&bytes) {
        ClientMessage::Request(..) | ClientMessage::Notification(_) => {
            service.handle(Request::from_parts(head, Full::new(bytes))).await
        }
        ClientMessage::Refused(error) => protocol_error_answer(StatusCode::BAD_REQUEST, &error),
        ClientMessage::Ignored => answer(StatusCode::ACCEPTED, ""),
    }
}

/// Returns an answer with a protocol error.
fn protocol_error_answer(status: StatusCode, error: &ServerJsonRpcMessage) -> HttpAnswer {
    let mut answer = answer(status, serde_json::to_vec(error).expect("a message has string keys"));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn answer(status: StatusCode, text: impl Into<Bytes>) -> HttpAnswer {
    let mut answer = Response::new(Full::new(text.into()).boxed());
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_of_driven_agent_has_no_idle_timeout() {
        assert_eq!(session_config(AgentDriverKind::ByWindlass).keep_alive, None);
        assert_eq!(session_config(AgentDriverKind::ByItself).keep_alive, Some(SESSION_IDLE_TIMEOUT));
    }

    #[test]
    fn only_loopback_addresses_are_accepted() {
        let read = |written| {
            parse_loopback_address(written).map(|address| address.to_string()).map_err(|error| error.to_string())
        };
        let local = |text: &str| Ok(text.to_owned());
        assert_eq!(read("127.0.0.1:8137"), local("127.0.0.1:8137"));
        assert_eq!(read("127.1.2.3:0"), local("127.1.2.3:0"));
        assert_eq!(read("localhost:1"), local("127.0.0.1:1"));
        assert_eq!(read("[::1]:9"), local("[::1]:9"));
        assert_eq!(read(":0"), local("127.0.0.1:0"));
        assert_eq!(read("8137"), local("127.0.0.1:8137"));
        for other in ["0.0.0.0:1", "[::]:1", "192.168.1.1:80"] {
            assert!(read(other).unwrap_err().ends_with("can be reached from other machines"), "{other}");
        }
        for none in ["", "x", "example.com:80", "127.0.0.1", "127.0.0.1:99999", "http://localhost:1", "a\nb:1"] {
            assert!(read(none).unwrap_err().contains("is not "), "{none}");
        }
    }
}
