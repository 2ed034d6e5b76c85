//! The messages of a log in a stream.
//!
//! Messages are read by batches of direct gets, so a short command leaves nothing behind on the server.

use std::time::Duration;

use async_nats::{HeaderMap, Message, header};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use windlass_engine::Digest;
use windlass_store::{SequencedMessage, SequencerError};

use super::connection::{CallInterruption, JetStreamError, NatsConnection, REQUEST_TIMEOUT};
use super::names::ProjectSubjects;
use crate::failure::{FailureSource, refused, unknown_outcome, unreachable};

/// The most bytes of one batch of direct gets.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The header of a part: its number, and the number of parts.
const PART_HEADER: &str = "Windlass-Part";
/// How long the first call looks whether the log exists, when no server takes it.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(1);

impl NatsConnection {
    pub async fn publish_message(&mut self, subjects: &ProjectSubjects, body: &[u8]) -> Result<u64, SequencerError> {
        let published = match body.len() > self.most_part_bytes {
            true => self.publish_parts(subjects.log_subject(), body).await,
            false => self.publish_whole(subjects.log_subject(), body).await,
        };
        self.look_for_log(subjects, published).await
    }

    /// Remembers that the log exists when a call succeeds, and looks for the log when the first call reaches no server of it.
    async fn look_for_log<T>(
        &mut self,
        subjects: &ProjectSubjects,
        outcome: Result<T, SequencerError>,
    ) -> Result<T, SequencerError> {
        match &outcome {
            Ok(_) => self.has_seen_log = true,
            Err(SequencerError::Unreachable { .. }) if !self.has_seen_log && self.is_open() => {
                let stream = subjects.log_stream();
                if let Ok(Ok(None)) = tokio::time::timeout(LOOKUP_PATIENCE, self.find_stream(&stream)).await {
                    return Err(refused(format!("the servers have no log of the project `{}`", subjects.project())));
                }
            }
            Err(_) => {}
        }
        outcome
    }

    async fn publish_whole(&self, subject: String, body: &[u8]) -> Result<u64, SequencerError> {
        let mut headers = HeaderMap::new();
        // The server ignores a repeated message.
        headers.insert(header::NATS_MESSAGE_ID, Digest::of_bytes(body).to_string());
        let answer = self.ask_stream(&subject, headers, body.to_vec()).await.map_err(JetStreamError::of_message)?;
        read_acknowledgement(&answer)
    }

    /// Publishes a long message as one atomic batch: the server stores all parts or none.
    async fn publish_parts(&self, subject: String, body: &[u8]) -> Result<u64, SequencerError> {
        let inbox = self.client.new_inbox();
        let batch = inbox.rsplit('.').next().unwrap_or_default().to_owned();
        let parts: Vec<&[u8]> = body.chunks(self.most_part_bytes).collect();
        let (last, first) = parts.split_last().expect("a long message has parts");
        let head = |number: usize| {
            let mut headers = HeaderMap::new();
            headers.insert(header::NATS_BATCH_ID, batch.as_str());
            headers.insert(header::NATS_BATCH_SEQUENCE, number.to_string());
            headers.insert(PART_HEADER, format!("{number}/{}", parts.len()));
            headers
        };
        for (number, part) in (1..).zip(first) {
            let send = self.client.publish_with_headers(subject.clone(), head(number), part.to_vec().into());
            let send = self.run_while_open(REQUEST_TIMEOUT, send);
            let sent = self.run_request(&subject, send).await.flatten().map_err(CallInterruption::of_request)?;
            sent.map_err(unreachable)?;
        }
        let mut headers = head(parts.len());
        headers.insert(header::NATS_BATCH_COMMIT, header::NATS_BATCH_COMMIT_FINAL);
        match self.ask_stream(&subject, headers, last.to_vec()).await {
            Ok(answer) => read_acknowledgement(&answer),
            Err(
                error @ (JetStreamError::Denied(_)
                | JetStreamError::Refusal { code: JetStreamError::BATCHES_DISABLED, .. }),
            ) => Err(refused(error)),
            Err(error @ JetStreamError::NoLeader { .. }) => Err(unreachable(error)),
            // A new leader does not know the parts that came before.
            Err(error) => Err(unknown_outcome(error)),
        }
    }

    /// Reads whole messages: the parts of a long one are joined, and the last part gives it its place.
    pub async fn read_messages(
        &mut self,
        subjects: &ProjectSubjects,
        after: u64,
        most: usize,
    ) -> Result<Vec<SequencedMessage>, SequencerError> {
        let (mut messages, mut last, mut parts) = (Vec::new(), after, Vec::new());
        // A message that goes on after the end of an answer is read to its end.
        while messages.is_empty() || !parts.is_empty() {
            let request = json!({
                "seq": last + 1, "next_by_subj": subjects.log_subject(), "batch": most, "max_bytes": MAX_BATCH_BYTES
            });
            let read = self.get_stored(&subjects.log_stream(), &request).await;
            let read = self.look_for_log(subjects, read).await?;
            let read: Vec<_> =
                read.into_iter().map(StoredPart::from_answer).collect::<Result<_, _>>().map_err(refused)?;
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

    /// Gets stored messages in one request.
    pub async fn get_stored(&self, stream: &str, request: &Value) -> Result<Vec<Message>, SequencerError> {
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let get = self.run_while_open(REQUEST_TIMEOUT, self.get_stored_batch(&subject, request));
        self.run_request(&subject, get).await.flatten().map_err(CallInterruption::of_request)?
    }

    async fn get_stored_batch(&self, subject: &str, request: &Value) -> Result<Vec<Message>, SequencerError> {
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(unreachable)?;
        let asked = self.client.publish_with_reply(subject.to_owned(), inbox, request.to_string().into());
        asked.await.map_err(unreachable)?;
        let mut stored = Vec::new();
        while let Some(answer) = answers.next().await {
            match answer.status.map(|status| status.as_u16()) {
                None => stored.push(answer),
                // The end of the batch, or no message.
                Some(204 | 404) => return Ok(stored),
                Some(503) => return Err(self.describe_no_responders(subject).of_request()),
                Some(status) => {
                    let text = answer.description.unwrap_or_default();
                    return Err(refused(format!("the server answers {status}: {text}")));
                }
            }
        }
        Err(unreachable("the connection is closed"))
    }
}

/// Returns the place that an acknowledgement names.
fn read_acknowledgement(answer: &Value) -> Result<u64, SequencerError> {
    answer["seq"].as_u64().ok_or_else(|| unknown_outcome("the server's answer is no acknowledgement"))
}

/// A stored message, or a part of one.
pub struct StoredPart {
    sequence: u64,
    body: Vec<u8>,
    /// Whether it ends a message.
    is_last: bool,
}

impl StoredPart {
    fn from_answer(answer: Message) -> Result<Self, FailureSource> {
        let headers = answer.headers.as_ref().ok_or("a stored message has no headers")?;
        let sequence = headers.get(header::NATS_SEQUENCE).and_then(|value| value.as_str().parse().ok());
        let is_last = Self::is_last_of_message(Some(headers));
        Ok(Self { sequence: sequence.ok_or("a stored message has no sequence")?, body: answer.payload.into(), is_last })
    }

    /// Returns whether a stored message with these headers ends a message of the log.
    pub fn is_last_of_message(headers: Option<&HeaderMap>) -> bool {
        match headers.and_then(|headers| headers.get(PART_HEADER)) {
            Some(part) => part.as_str().split_once('/').is_some_and(|(number, count)| number == count),
            None => true,
        }
    }
}
