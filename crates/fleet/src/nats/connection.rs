//! A connection to a server of NATS: how it opens, how it fails, and requests to JetStream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, RequestErrorKind, ServerError};
use serde_json::Value;
use tokio::sync::watch;
use windlass_process::file::read_bounded;
use windlass_store::SequencerError;

use super::subscription::LogSubscription;
use crate::failure::{FailureSource, is_tls_failure, refused, unknown_outcome, unreachable};
use crate::service::FleetAccess;

/// The oldest server with atomic batches. Older ones accept messages that they should refuse.
const MIN_SERVER_VERSION: (u32, u32) = (2, 12);
/// How long a request may take, and how long connecting may take with all servers.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long connecting to one server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The most messages of one subscription that wait in this process. An answer has fewer.
const MAX_WAITING_DELIVERIES: usize = 2048;
/// The largest body of one message, unless the server takes less. A longer message is published in parts, which the server stores
/// together.
const MAX_PART_BYTES: usize = 900 * 1024;
/// The most bytes of a file with credentials.
const MAX_CREDENTIAL_BYTES: u64 = 64 * 1024;

/// A connection that was opened.
pub struct NatsConnection {
    pub client: Client,
    pub version: String,
    /// The largest body of one message.
    pub most_part_bytes: usize,
    /// Whether the stream of the log is known to exist.
    pub has_seen_log: bool,
    /// The messages of the log that the server sends.
    pub subscription: Option<LogSubscription>,
    /// Becomes true when the connection breaks.
    loss: watch::Receiver<bool>,
    /// The last denial of a right, in the words of the server, which quotes the subject.
    denial: watch::Receiver<String>,
    /// A request was not answered in time, or was denied: answers to it may come yet.
    is_spoilt: AtomicBool,
}

/// A request to JetStream that failed.
#[derive(Debug, thiserror::Error)]
pub enum JetStreamError {
    /// The request reached no stream: there is none, or its servers elect a leader. It had no effect.
    #[error("no server takes `{subject}`: the stream does not exist, or its servers elect a leader")]
    NoLeader { subject: String },
    /// The server refuses the request. It had no effect.
    #[error("the server answers: {description} ({code})")]
    Refusal { code: u64, status: u64, description: String },
    /// The user has no right to send it. It had no effect.
    #[error("the server answers: {0}")]
    Denied(String),
    #[error("the server does not answer: {source}")]
    NoAnswer { source: FailureSource },
}

/// Why a call has ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum CallInterruption {
    #[error("the connection is broken")]
    Broken,
    #[error("nothing came in {0:?}")]
    Silent(Duration),
    #[error("the server answers: {0}")]
    Denied(String),
}

impl CallInterruption {
    /// Returns the error of a call that had no effect, or may have it twice.
    pub fn of_request(self) -> SequencerError {
        if matches!(self, Self::Denied(_)) { refused(self) } else { unreachable(self) }
    }
}

impl JetStreamError {
    /// Error codes of JetStream.
    pub const NO_PEERS: u64 = 10005;
    pub const STREAM_EXISTS: u64 = 10058;
    pub const STREAM_NOT_FOUND: u64 = 10059;
    pub const WRONG_LAST_SEQUENCE: u64 = 10071;
    pub const WRONG_LAST_SEQUENCE_CONSTANT: u64 = 10164;
    pub const BATCHES_DISABLED: u64 = 10174;

    pub fn is_stream_not_found(&self) -> bool {
        matches!(self, Self::Refusal { code: Self::STREAM_NOT_FOUND, .. })
    }

    /// Returns the error of a request that a caller may repeat.
    pub fn of_request(self) -> SequencerError {
        match self {
            // The servers of a cluster find each other.
            Self::Refusal { code: Self::NO_PEERS, .. } => unreachable(self),
            // 503: JetStream is starting, or has no leader.
            Self::Refusal { status, .. } if status < 500 => refused(self),
            Self::Denied(_) => refused(self),
            _ => unreachable(self),
        }
    }

    /// Returns the error of a message that was published.
    pub fn of_message(self) -> SequencerError {
        match self {
            Self::NoLeader { .. } => unreachable(self),
            Self::Denied(_) | Self::Refusal { status: 400, .. } => refused(self),
            _ => unknown_outcome(self),
        }
    }
}

impl NatsConnection {
    pub async fn open(access: &FleetAccess) -> Result<Self, SequencerError> {
        let address = &access.address;
        if !address.is_encrypted() && !address.is_loopback() {
            return Err(refused(
                "cannot send a log to another machine without encryption: write `tls://` instead of `nats://`",
            ));
        }
        let (loss_sender, loss) = watch::channel(false);
        let (denial_sender, denial) = watch::channel(String::new());
        let mut options = ConnectOptions::new()
            .name("windlass")
            .connection_timeout(CONNECT_TIMEOUT)
            .request_timeout(Some(REQUEST_TIMEOUT))
            // A process may leave what is sent to it for hours.
            .subscription_capacity(MAX_WAITING_DELIVERIES)
            // The next call replaces a broken connection, with a server of the address.
            .max_reconnects(address.servers().len())
            .ignore_discovered_servers()
            .require_tls(address.is_encrypted())
            .event_callback(move |event| {
                match event {
                    Event::Disconnected | Event::Closed => drop(loss_sender.send_replace(true)),
                    Event::ServerError(ServerError::Other(text)) if is_denial(&text) => {
                        denial_sender.send_replace(text);
                    }
                    _ => {}
                }
                std::future::ready(())
            });
        if let Some(certificates) = &access.certificates {
            options = options.add_root_certificates(certificates.clone());
        }
        if let Some(path) = &access.credentials {
            let cannot_read =
                |cause: String| refused(format!("cannot read the credentials {}: {cause}", path.display()));
            let bytes = read_bounded(path, MAX_CREDENTIAL_BYTES).map_err(|error| cannot_read(error.to_string()))?;
            options = add_credentials(options, &String::from_utf8_lossy(&bytes)).map_err(cannot_read)?;
        }
        let connected = tokio::time::timeout(REQUEST_TIMEOUT, options.connect(address.server_urls())).await;
        let connected = connected.map_err(|_| unreachable("no server answers in time"))?;
        let client = connected.map_err(|error| match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                refused(format!("the server does not accept the credentials: {error}"))
            }
            ConnectErrorKind::Tls => refused(error),
            _ if is_tls_failure(&error) => refused(error),
            _ => unreachable(error),
        })?;
        let info = client.server_info();
        let (version, most_part_bytes) = (info.version, MAX_PART_BYTES.min(info.max_payload / 16 * 15));
        if parse_version(&version).is_none_or(|version| version < MIN_SERVER_VERSION) {
            let (major, minor) = MIN_SERVER_VERSION;
            return Err(refused(format!("the server has version {version}; it has to be {major}.{minor} or newer")));
        }
        Ok(Self {
            client,
            version,
            most_part_bytes,
            has_seen_log: false,
            subscription: None,
            loss,
            denial,
            is_spoilt: AtomicBool::new(false),
        })
    }

    /// Returns whether the connection can be used.
    pub fn is_open(&self) -> bool {
        !*self.loss.borrow() && !self.is_spoilt.load(Ordering::Relaxed)
    }

    /// Runs work until it ends, the connection breaks or the time is over.
    pub async fn run_while_open<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, CallInterruption> {
        match tokio::time::timeout(patience, self.run_until_broken(work)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.is_spoilt.store(true, Ordering::Relaxed);
                Err(CallInterruption::Silent(patience))
            }
        }
    }

    async fn run_until_broken<T>(&self, work: impl Future<Output = T>) -> Result<T, CallInterruption> {
        let mut loss = self.loss.clone();
        tokio::select! {
            biased;
            outcome = work => Ok(outcome),
            // An end of the channel is an end of the connection.
            _ = loss.wait_for(|is_lost| *is_lost) => Err(CallInterruption::Broken),
        }
    }

    /// Runs a request to a subject, which the server may also deny. The request has a time limit of its own.
    pub async fn run_request<T>(&self, subject: &str, work: impl Future<Output = T>) -> Result<T, CallInterruption> {
        let mut denial = self.denial.clone();
        let quoted_subject = format!("\"{subject}\"");
        tokio::select! {
            biased;
            outcome = self.run_until_broken(work) => outcome,
            Ok(said) = denial.wait_for(|said| said.contains(&quoted_subject)) => {
                self.is_spoilt.store(true, Ordering::Relaxed);
                Err(CallInterruption::Denied(said.clone()))
            }
        }
    }

    /// Sends a message and returns the answer to it.
    pub async fn send_request(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Vec<u8>,
    ) -> Result<Message, JetStreamError> {
        let request = self.client.request_with_headers(subject.to_owned(), headers, payload.into());
        let no_answer = |source| JetStreamError::NoAnswer { source };
        let answer = self.run_request(subject, request).await.map_err(|interruption| match interruption {
            CallInterruption::Denied(answer) => JetStreamError::Denied(answer),
            interruption => no_answer(interruption.into()),
        })?;
        answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => self.describe_no_responders(subject),
            RequestErrorKind::MaxPayloadExceeded | RequestErrorKind::InvalidSubject => {
                JetStreamError::Refusal { code: 0, status: 400, description: error.to_string() }
            }
            RequestErrorKind::TimedOut => {
                self.is_spoilt.store(true, Ordering::Relaxed);
                no_answer(error.into())
            }
            RequestErrorKind::Other => no_answer(error.into()),
        })
    }

    /// Returns the error of a request that no stream takes.
    pub fn describe_no_responders(&self, subject: &str) -> JetStreamError {
        let info = self.client.server_info();
        if info.jetstream || info.cluster.is_some() {
            return JetStreamError::NoLeader { subject: subject.to_owned() };
        }
        let description = "the server runs without JetStream; start it with `--jetstream`".to_owned();
        JetStreamError::Refusal { code: 0, status: 400, description }
    }

    /// Sends a message to a stream, or a request to the API of JetStream, and returns its answer.
    pub async fn ask_stream(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Vec<u8>,
    ) -> Result<Value, JetStreamError> {
        let answer = self.send_request(subject, headers, payload).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)
            .map_err(|error| JetStreamError::NoAnswer { source: error.into() })?;
        let Some(error) = answer.get("error") else { return Ok(answer) };
        Err(JetStreamError::Refusal {
            code: error["err_code"].as_u64().unwrap_or_default(),
            status: error["code"].as_u64().unwrap_or_default(),
            description: error["description"].as_str().unwrap_or("an error without a description").to_owned(),
        })
    }

    /// Sends a request to the API of JetStream.
    pub async fn call_api(&self, call: &str, stream: &str, request: Option<&Value>) -> Result<Value, JetStreamError> {
        let payload = request.map(Value::to_string).unwrap_or_default();
        self.ask_stream(&format!("$JS.API.{call}.{stream}"), HeaderMap::new(), payload.into_bytes()).await
    }
}

/// Returns whether an error of the server says that the user lacks a right.
fn is_denial(text: &str) -> bool {
    text.to_lowercase().starts_with("permissions violation")
}

/// Adds credentials: a file with a JWT, `user:password`, or the seed of an NKey.
fn add_credentials(options: ConnectOptions, text: &str) -> Result<ConnectOptions, String> {
    if text.contains("-----BEGIN NATS USER JWT-----") {
        return options.credentials(text).map_err(|error| error.to_string());
    }
    match text.trim().split_once(':') {
        Some((user, password)) => Ok(options.user_and_password(user.to_owned(), password.to_owned())),
        None if text.trim().starts_with("SU") => Ok(options.nkey(text.trim().to_owned())),
        None => Err("the file has neither a JWT, nor `user:password`, nor the seed of an NKey".to_owned()),
    }
}

/// Returns the first two numbers of a version.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
