//! The messages of a log as the server sends them to a consumer.
//!
//! Invariants:
//! - A message is given out only if all that precede it, from the place that the caller asks for, have come.
//! - The consumer lives in the memory of one server, as long as the connection. If it is silent or loses a message, the caller reads
//!   the stream and subscribes again.

use std::time::{Duration, Instant};

use async_nats::{Message, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;
use windlass_store::{SequencedMessage, SequencerError};

use super::connection::{CallInterruption, JetStreamError, NatsConnection};
use super::log::StoredPart;
use super::names::ProjectSubjects;
use crate::failure::unreachable;

/// How often the server tells that a consumer without messages is there.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a consumer may be silent.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// The header of a heartbeat: how many messages the consumer has sent.
const SENT_COUNT_HEADER: &str = "Nats-Last-Consumer";

/// A consumer, and the messages that have come from it.
pub struct LogSubscription {
    inbox: Subscriber,
    arrived: ArrivedMessages,
    /// The place from which on all messages have come, or will come.
    covered_after: u64,
    heard_at: Instant,
}

/// Messages that have come, and that no call has taken yet.
#[derive(Default)]
struct ArrivedMessages {
    messages: Vec<SequencedMessage>,
    /// The parts of a long message whose end has not come.
    parts: Vec<u8>,
    /// How many stored messages the consumer has sent.
    count: u64,
}

impl NatsConnection {
    /// Creates a consumer of the messages after a place, unless there is one that covers it.
    pub async fn subscribe_after(&mut self, subjects: &ProjectSubjects, sequence: u64) -> Result<(), SequencerError> {
        if self.subscription.as_ref().is_some_and(|subscription| subscription.covered_after <= sequence) {
            return Ok(());
        }
        self.subscription = None;
        let inbox = self.client.new_inbox();
        let subscriber = self.client.subscribe(inbox.clone()).await.map_err(unreachable)?;
        let name = inbox.rsplit('.').next().unwrap_or_default();
        let request = json!({
            "stream_name": subjects.log_stream(),
            "action": "create",
            "config": {
                "name": name,
                "deliver_subject": inbox,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": sequence + 1,
                "ack_policy": "none",
                "max_deliver": 1,
                "idle_heartbeat": u64::try_from(HEARTBEAT_INTERVAL.as_nanos()).unwrap_or(u64::MAX),
                "mem_storage": true,
                "num_replicas": 1,
            }
        });
        let call = format!("CONSUMER.CREATE.{}", subjects.log_stream());
        self.call_api(&call, name, Some(&request)).await.map_err(JetStreamError::of_request)?;
        self.subscription = Some(LogSubscription::new(subscriber, sequence));
        Ok(())
    }

    /// Returns the messages after a place that have come by now, or that come within `patience`. None without a consumer of all of them.
    pub async fn receive_messages(
        &mut self,
        after: u64,
        patience: Duration,
    ) -> Result<Option<Vec<SequencedMessage>>, SequencerError> {
        let Some(mut subscription) = self.subscription.take() else { return Ok(None) };
        let wait = subscription.receive_after(after, patience);
        let received = self.run_while_open(patience + MAX_SILENCE, wait).await.map_err(CallInterruption::of_request)?;
        if received.is_some() {
            self.subscription = Some(subscription);
        }
        Ok(received)
    }
}

impl LogSubscription {
    fn new(inbox: Subscriber, sequence: u64) -> Self {
        Self { inbox, arrived: ArrivedMessages::default(), covered_after: sequence, heard_at: Instant::now() }
    }

    async fn receive_after(&mut self, after: u64, patience: Duration) -> Option<Vec<SequencedMessage>> {
        let until = Instant::now() + patience;
        if after < self.covered_after {
            return None;
        }
        self.covered_after = after;
        loop {
            // A task may take only some items at once, unless it is unconstrained.
            while let Some(delivery) = tokio::task::unconstrained(self.inbox.next()).now_or_never() {
                self.take_delivery(&delivery?)?;
            }
            let messages = self.arrived.take_after(after);
            let left = until.saturating_duration_since(Instant::now());
            if let Some(last) = messages.last() {
                self.covered_after = last.sequence;
                return Some(messages);
            }
            let silence_left = MAX_SILENCE.saturating_sub(self.heard_at.elapsed());
            if silence_left.is_zero() {
                return None;
            }
            if left.is_zero() {
                return Some(Vec::new());
            }
            if let Ok(delivery) = tokio::time::timeout(left.min(silence_left), self.inbox.next()).await {
                self.take_delivery(&delivery?)?;
            }
        }
    }

    fn take_delivery(&mut self, delivery: &Message) -> Option<()> {
        self.heard_at = Instant::now();
        self.arrived.take_delivery(delivery)
    }
}

impl ArrivedMessages {
    /// Takes what the server has sent: a message, a part of one, or a heartbeat. None if something before it is missing.
    fn take_delivery(&mut self, delivery: &Message) -> Option<()> {
        let headers = delivery.headers.as_ref();
        if delivery.status.is_some() {
            let sent_count: u64 = headers?.get(SENT_COUNT_HEADER)?.as_str().parse().ok()?;
            return (sent_count == self.count).then_some(());
        }
        let place = PlaceOfDelivery::parse(delivery.reply.as_ref()?)?;
        self.count += 1;
        if place.number != self.count {
            return None;
        }
        self.parts.extend_from_slice(&delivery.payload);
        if StoredPart::is_last_of_message(headers) {
            let body = std::mem::take(&mut self.parts);
            self.messages.push(SequencedMessage { sequence: place.sequence, body });
        }
        Some(())
    }

    /// Takes the messages after a place. The others are known to the caller.
    fn take_after(&mut self, after: u64) -> Vec<SequencedMessage> {
        let messages = std::mem::take(&mut self.messages);
        messages.into_iter().filter(|message| message.sequence > after).collect()
    }
}

/// What the reply subject of a sent message says.
#[derive(Debug, PartialEq, Eq)]
struct PlaceOfDelivery {
    /// The place in the stream.
    sequence: u64,
    /// The place among the messages that the consumer has sent, from 1 on.
    number: u64,
}

impl PlaceOfDelivery {
    /// Reads `$JS.ACK.<stream>.<consumer>.<attempt>.<sequence>.<number>.<time>.<pending>`. With the name of a domain, two tokens more
    /// come before the stream, and more may follow at the end.
    fn parse(subject: &str) -> Option<Self> {
        let tokens: Vec<&str> = subject.strip_prefix("$JS.ACK.")?.split('.').collect();
        let first = match tokens.len() {
            7 => 0,
            9.. => 2,
            _ => return None,
        };
        Some(Self { sequence: tokens[first + 3].parse().ok()?, number: tokens[first + 4].parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use async_nats::{HeaderMap, StatusCode};

    use super::*;

    fn delivery(sequence: u64, number: u64, part: &str) -> Message {
        let mut headers = HeaderMap::new();
        headers.insert("Windlass-Part", part);
        Message {
            subject: "windlass.pump.log".into(),
            reply: Some(format!("$JS.ACK.WL_pump_LOG.x.1.{sequence}.{number}.1768644000000000000.0").into()),
            payload: format!("{sequence} ").into(),
            headers: Some(headers),
            status: None,
            description: None,
            length: 0,
        }
    }

    fn heartbeat(sent_count: u64) -> Message {
        let mut headers = HeaderMap::new();
        headers.insert(SENT_COUNT_HEADER, sent_count.to_string());
        Message { status: Some(StatusCode::IDLE_HEARTBEAT), headers: Some(headers), ..delivery(0, 0, "") }
    }

    #[test]
    fn long_message_arrives_with_its_last_part() {
        let mut arrived = ArrivedMessages::default();
        arrived.take_delivery(&delivery(5, 1, "1/2")).unwrap();
        arrived.take_delivery(&heartbeat(1)).unwrap();
        assert_eq!(arrived.take_after(4), []);
        arrived.take_delivery(&delivery(6, 2, "2/2")).unwrap();
        arrived.take_delivery(&delivery(9, 3, "1/1")).unwrap();
        let whole = |sequence: u64, body: &str| SequencedMessage { sequence, body: body.as_bytes().to_vec() };
        assert_eq!(arrived.take_after(4), [whole(6, "5 6 "), whole(9, "9 ")]);
    }

    #[test]
    fn subscription_ends_when_a_delivery_is_missing() {
        let mut arrived = ArrivedMessages::default();
        arrived.take_delivery(&delivery(5, 1, "1/1")).unwrap();
        assert_eq!(arrived.take_delivery(&delivery(7, 3, "1/1")), None);
        let mut arrived = ArrivedMessages::default();
        assert_eq!(arrived.take_delivery(&heartbeat(1)), None);
    }

    #[test]
    fn place_of_delivery_is_read_with_and_without_domain() {
        let place = Some(PlaceOfDelivery { sequence: 41, number: 7 });
        assert_eq!(PlaceOfDelivery::parse("$JS.ACK.WL_pump_LOG.x.1.41.7.1768644000000000000.0"), place);
        assert_eq!(PlaceOfDelivery::parse("$JS.ACK.hub.acc.WL_pump_LOG.x.1.41.7.1768644000000000000.0.r4nd"), place);
        assert_eq!(PlaceOfDelivery::parse("$JS.ACK.WL_pump_LOG.x.1.41"), None);
        assert_eq!(PlaceOfDelivery::parse("_INBOX.x"), None);
    }
}
