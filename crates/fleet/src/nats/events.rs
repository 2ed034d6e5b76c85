//! Accepted events for other programs. The sequence of a message in its stream is the position of its event.

use async_nats::{HeaderMap, header};
use futures_util::StreamExt as _;
use serde_json::json;
use windlass_store::SequencerError;

use super::connection::{JetStreamError, NatsConnection};
use super::names::ProjectSubjects;
use crate::failure::{refused, unreachable};
use crate::service::PublishedEvent;

/// How many events are on their way at once.
const MAX_EVENTS_IN_FLIGHT: usize = 128;
/// The longest body of an event. A longer one is left out, so that its position stays.
const MAX_EVENT_BYTES: usize = 900 * 1024;
/// The header of an event without its body: the length of the body.
const OMITTED_HEADER: &str = "Windlass-Omitted-Bytes";

impl NatsConnection {
    pub async fn last_published_event(&self, subjects: &ProjectSubjects) -> Result<u64, SequencerError> {
        let info = self.find_stream(&subjects.event_stream()).await?;
        Ok(info.and_then(|info| info["state"]["last_seq"].as_u64()).unwrap_or_default())
    }

    pub async fn publish_events(
        &self,
        subjects: &ProjectSubjects,
        events: &[PublishedEvent],
    ) -> Result<(), SequencerError> {
        let Some(last) = events.last() else { return Ok(()) };
        if events.windows(2).any(|pair| pair[0].position + 1 != pair[1].position) {
            return Err(refused("the positions of published events have a gap"));
        }
        if self.find_stream(&subjects.event_stream()).await?.is_none() {
            self.create_events(subjects, events[0].position).await?;
        }
        let published = self.last_published_event(subjects).await?;
        if published + 1 < events[0].position {
            return Err(refused(format!("the last published event is {published}, so others have to come first")));
        }
        let rest = events.iter().filter(|event| event.position > published);
        let mut sent = futures_util::stream::iter(rest.map(|event| self.publish_event(subjects, event)))
            .buffered(MAX_EVENTS_IN_FLIGHT);
        while let Some(outcome) = sent.next().await {
            outcome?;
        }
        match self.last_published_event(subjects).await? {
            published if published >= last.position => Ok(()),
            // The caller calls again.
            published => Err(unreachable(format!("only the events up to {published} are published"))),
        }
    }

    /// Publishes an event at its position. Another process may have published it.
    async fn publish_event(&self, subjects: &ProjectSubjects, event: &PublishedEvent) -> Result<(), SequencerError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_EXPECTED_LAST_SEQUENCE, (event.position - 1).to_string());
        let mut body = event.body.clone();
        if body.len() > MAX_EVENT_BYTES {
            headers.insert(OMITTED_HEADER, body.len().to_string());
            body.clear();
        }
        let subject = subjects.event_subject(event.session.as_deref(), &event.event_type);
        match self.ask_stream(&subject, headers, body).await {
            Ok(_) => Ok(()),
            Err(JetStreamError::Refusal {
                code: JetStreamError::WRONG_LAST_SEQUENCE | JetStreamError::WRONG_LAST_SEQUENCE_CONSTANT,
                ..
            }) => Ok(()),
            Err(error) => Err(error.of_request()),
        }
    }

    /// Creates the stream for events from a position on.
    async fn create_events(&self, subjects: &ProjectSubjects, first: u64) -> Result<(), SequencerError> {
        let stream = subjects.event_stream();
        let log = self.find_stream(&subjects.log_stream()).await?;
        let replicas = log.and_then(|log| log["config"]["num_replicas"].as_u64()).unwrap_or(1);
        let events = json!({
            "name": stream,
            "subjects": [subjects.all_events()],
            "storage": "file",
            "num_replicas": replicas,
            "retention": "limits",
            "discard": "old",
            "max_msgs": -1,
            "max_bytes": -1,
            "allow_direct": true,
            "first_seq": first,
        });
        match self.call_api("STREAM.CREATE", &stream, Some(&events)).await {
            // Another process has created it.
            Err(JetStreamError::Refusal { code: JetStreamError::STREAM_EXISTS, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error.of_request()),
        }
    }
}
