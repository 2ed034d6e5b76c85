//! A log in a stream of NATS JetStream.
//!
//! Messages are read by batches of direct gets, so a short command leaves nothing behind on the server. A process that waits
//! subscribes to the subject of the log: the server sends each new message to it, and the process then reads the stream.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{Context, ContextBuilder};
use async_nats::{Client, ConnectOptions, HeaderMap, Message, Subscriber, header};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use windlass_engine::Digest;
use windlass_store::{SequencedMessage, Sequencer, SequencerError};

use crate::address::FleetAddress;
use crate::runtime_thread::RuntimeThread;

/// The oldest server with atomic batches. Older ones accept messages that they should refuse.
const MIN_SERVER_VERSION: (u32, u32) = (2, 12);
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest body of one message. A longer message is published in parts, which the server stores together.
const MAX_PART_BYTES: usize = 900 * 1024;
/// The most bytes of one batch of direct gets.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The time in which the server forgets no message that it could get again.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The header of a part: its number, and the number of parts.
const PART_HEADER: &str = "Windlass-Part";
/// A message reaches subscribers before the stream has it. How long, and how often, it is looked for.
const STORE_PATIENCE: Duration = Duration::from_secs(1);
const STORE_POLL_INTERVAL: Duration = Duration::from_millis(2);

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// How to reach the servers of a log.
#[derive(Debug, Clone)]
pub struct NatsAccess {
    pub address: FleetAddress,
    /// A file with the credentials of a user.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates that sign those of the servers.
    pub certificates: Option<PathBuf>,
}

/// The settings of the stream of a new log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStreamSettings {
    pub replicas: usize,
}

/// The log of a project in JetStream.
pub struct NatsSequencer {
    access: NatsAccess,
    connection: Option<NatsConnection>,
    runtime: RuntimeThread,
}

/// An open connection.
struct NatsConnection {
    client: Client,
    context: Context,
    /// The messages of the log as they are published, from the first wait on.
    news: Option<Subscriber>,
    /// Until then, the stream may not have a message that subscribers have seen.
    late_until: Option<Instant>,
}

impl NatsSequencer {
    /// Prepares a connection. The first call opens it.
    pub fn new(access: NatsAccess) -> std::io::Result<Self> {
        Ok(Self { access, connection: None, runtime: RuntimeThread::start()? })
    }

    /// Creates the stream of the log. A stream that exists with other settings is an error.
    pub fn create_stream(&mut self, settings: LogStreamSettings) -> Result<(), SequencerError> {
        let config = Config {
            name: self.stream_name(),
            subjects: vec![self.subject()],
            storage: StorageType::File,
            num_replicas: settings.replicas,
            discard: DiscardPolicy::New,
            duplicate_window: DUPLICATE_WINDOW,
            allow_direct: true,
            allow_atomic_publish: true,
            deny_delete: true,
            deny_purge: true,
            ..Config::default()
        };
        self.connect()?;
        let connection = self.connection.as_ref().expect("it was connected");
        let created = self.runtime.block_on(connection.context.create_stream(config));
        created.map(drop).map_err(|error| SequencerError::Refused { source: error.into() })
    }

    fn stream_name(&self) -> String {
        format!("WL_{}_LOG", self.access.address.project())
    }

    fn subject(&self) -> String {
        format!("windlass.{}.log", self.access.address.project())
    }

    /// Connects to a server, unless a connection is open.
    fn connect(&mut self) -> Result<&mut NatsConnection, SequencerError> {
        if self.connection.is_none() {
            self.connection = Some(self.runtime.block_on(open_connection(&self.access))?);
        }
        Ok(self.connection.as_mut().expect("it was just opened"))
    }
}

async fn open_connection(access: &NatsAccess) -> Result<NatsConnection, SequencerError> {
    let refused = |source: BoxedError| SequencerError::Refused { source };
    let mut options = ConnectOptions::new()
        .name("windlass")
        .connection_timeout(REQUEST_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .require_tls(access.address.is_encrypted());
    if let Some(certificates) = &access.certificates {
        options = options.add_root_certificates(certificates.clone());
    }
    if let Some(credentials) = &access.credentials {
        options = options.credentials_file(credentials).await.map_err(|error| {
            refused(format!("cannot read the credentials {}: {error}", credentials.display()).into())
        })?;
    }
    let client = options.connect(access.address.server_urls()).await.map_err(|error| match error.kind() {
        async_nats::ConnectErrorKind::Authentication | async_nats::ConnectErrorKind::AuthorizationViolation => {
            refused(error.into())
        }
        _ => SequencerError::Unreachable { source: error.into() },
    })?;
    let version = client.server_info().version;
    if parse_version(&version).is_none_or(|version| version < MIN_SERVER_VERSION) {
        let (major, minor) = MIN_SERVER_VERSION;
        return Err(refused(format!("the server has version {version}; it has to be {major}.{minor} or newer").into()));
    }
    let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).ack_timeout(REQUEST_TIMEOUT).build(client.clone());
    Ok(NatsConnection { client, context, news: None, late_until: None })
}

/// Returns the first two numbers of a version.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

impl Sequencer for NatsSequencer {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        let subject = self.subject();
        self.connect()?;
        let connection = self.connection.as_ref().expect("it was connected");
        match body.len() {
            0..=MAX_PART_BYTES => self.runtime.block_on(connection.publish_message(subject, body)),
            _ => self.runtime.block_on(connection.publish_parts(subject, body)),
        }
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        let (stream, subject) = (self.stream_name(), self.subject());
        self.connect()?;
        let connection = self.connection.as_mut().expect("it was connected");
        let messages = self.runtime.block_on(connection.read_messages(&stream, &subject, sequence, most))?;
        if !messages.is_empty() {
            connection.late_until = None;
        }
        Ok(messages)
    }

    fn wait_after(&mut self, _sequence: u64, patience: Duration) -> Result<(), SequencerError> {
        let subject = self.subject();
        self.connect()?;
        let connection = self.connection.as_mut().expect("it was connected");
        self.runtime.block_on(connection.wait_for_news(subject, patience))
    }
}

impl NatsConnection {
    async fn publish_message(&self, subject: String, body: &[u8]) -> Result<u64, SequencerError> {
        let mut headers = HeaderMap::new();
        // The server ignores a repeated message.
        headers.insert(header::NATS_MESSAGE_ID, Digest::of_bytes(body).to_string());
        let sent = self.context.publish_with_headers(subject, headers, body.to_vec().into()).await;
        let outcome = match sent {
            Ok(acknowledged) => acknowledged.await,
            Err(error) => Err(error),
        };
        outcome.map(|acknowledged| acknowledged.sequence).map_err(|error| match error.kind() {
            // No stream has the subject, or its leader is away.
            PublishErrorKind::StreamNotFound => SequencerError::Unreachable { source: error.into() },
            _ => SequencerError::OutcomeUnknown { source: error.into() },
        })
    }

    /// Publishes a long message as one atomic batch: the server stores all parts or none.
    async fn publish_parts(&self, subject: String, body: &[u8]) -> Result<u64, SequencerError> {
        let unknown = |source: BoxedError| SequencerError::OutcomeUnknown { source };
        let inbox = self.client.new_inbox();
        let batch = inbox.rsplit('.').next().unwrap_or_default().to_owned();
        let parts: Vec<&[u8]> = body.chunks(MAX_PART_BYTES).collect();
        for (number, part) in (1..).zip(&parts) {
            let mut headers = HeaderMap::new();
            headers.insert(header::NATS_BATCH_ID, batch.as_str());
            headers.insert(header::NATS_BATCH_SEQUENCE, number.to_string());
            headers.insert(PART_HEADER, format!("{number}/{}", parts.len()));
            let payload = part.to_vec().into();
            if number < parts.len() {
                let sent = self.client.publish_with_headers(subject.clone(), headers, payload).await;
                sent.map_err(|error| SequencerError::Unreachable { source: error.into() })?;
                continue;
            }
            headers.insert(header::NATS_BATCH_COMMIT, header::NATS_BATCH_COMMIT_FINAL);
            let answer = self.client.request_with_headers(subject, headers, payload).await;
            let answer = answer.map_err(|error| unknown(error.into()))?;
            let answer: Value = serde_json::from_slice(&answer.payload).map_err(|error| unknown(error.into()))?;
            let text =
                || answer["error"]["description"].as_str().unwrap_or("the server's answer is no acknowledgement");
            return answer["seq"].as_u64().ok_or_else(|| unknown(text().into()));
        }
        unreachable!("a body that is too long for one part has parts")
    }

    /// Reads whole messages: the parts of a long one are joined, and the last part gives it its place.
    async fn read_messages(
        &self,
        stream: &str,
        subject: &str,
        after: u64,
        most: usize,
    ) -> Result<Vec<SequencedMessage>, SequencerError> {
        let (mut messages, mut last, mut parts) = (Vec::new(), after, Vec::new());
        while messages.is_empty() {
            let read = self.read_batch(stream, subject, last, most).await?;
            let Some(end) = read.last() else { break };
            last = end.sequence;
            for part in read {
                parts.extend(part.body);
                if part.is_last {
                    messages.push(SequencedMessage { sequence: part.sequence, body: std::mem::take(&mut parts) });
                }
            }
        }
        Ok(messages)
    }

    /// Reads stored messages in one request.
    async fn read_batch(
        &self,
        stream: &str,
        subject: &str,
        after: u64,
        most: usize,
    ) -> Result<Vec<StoredPart>, SequencerError> {
        let unreachable = |source: BoxedError| SequencerError::Unreachable { source };
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(|error| unreachable(error.into()))?;
        let request = json!({
            "seq": after + 1, "next_by_subj": subject, "batch": most, "max_bytes": MAX_BATCH_BYTES
        });
        let asked =
            self.client.publish_with_reply(format!("$JS.API.DIRECT.GET.{stream}"), inbox, request.to_string().into());
        asked.await.map_err(|error| unreachable(error.into()))?;
        let mut parts = Vec::new();
        loop {
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answers.next()).await;
            let Ok(Some(answer)) = answer else { return Err(unreachable("the server does not answer".into())) };
            match answer.status.map(|status| status.as_u16()) {
                None => parts.push(StoredPart::from_answer(answer).map_err(unreachable)?),
                // The end of the batch, or no message.
                Some(204 | 404) => return Ok(parts),
                Some(status) => {
                    let text = answer.description.unwrap_or_default();
                    return Err(unreachable(format!("the server answers {status}: {text}").into()));
                }
            }
        }
    }

    /// Waits until the server sends a message of the log, or until `patience` ends.
    async fn wait_for_news(&mut self, subject: String, patience: Duration) -> Result<(), SequencerError> {
        if self.late_until.is_some_and(|until| Instant::now() < until) {
            tokio::time::sleep(STORE_POLL_INTERVAL.min(patience)).await;
            return Ok(());
        }
        let Some(news) = &mut self.news else {
            let subscribed = self.client.subscribe(subject).await;
            self.news = Some(subscribed.map_err(|error| SequencerError::Unreachable { source: error.into() })?);
            let flushed = self.client.flush().await;
            // What came before the subscription is read now.
            return flushed.map_err(|error| SequencerError::Unreachable { source: error.into() });
        };
        if let Ok(Some(_)) = tokio::time::timeout(patience, news.next()).await {
            while let Some(Some(_)) = news.next().now_or_never() {}
            self.late_until = Some(Instant::now() + STORE_PATIENCE);
        }
        Ok(())
    }
}

/// A stored message, or a part of one.
struct StoredPart {
    sequence: u64,
    body: Vec<u8>,
    /// Whether it ends a message.
    is_last: bool,
}

impl StoredPart {
    fn from_answer(answer: Message) -> Result<Self, BoxedError> {
        let headers = answer.headers.as_ref().ok_or("a stored message has no headers")?;
        let sequence = headers.get(header::NATS_SEQUENCE).and_then(|value| value.as_str().parse().ok());
        let is_last = match headers.get(PART_HEADER) {
            Some(part) => part.as_str().split_once('/').is_some_and(|(number, count)| number == count),
            None => true,
        };
        Ok(Self { sequence: sequence.ok_or("a stored message has no sequence")?, body: answer.payload.into(), is_last })
    }
}
