//! The messages of a log as the server sends them to a consumer.
//!
//! Invariants:
//! - A message is given out only if all that precede it, from the place that the caller asks for, have come.
//! - The consumer lives in the memory of one server, as long as the connection. If it is silent or loses a message, the caller reads
//!   the stream and subscribes again.

use std::collections::VecDeque;
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
    /// Messages that nobody has asked for yet.
    messages: VecDeque<SequencedMessage>,
    /// The place from which on all messages have come, or will come.
    covered_after: u64,
    /// The parts of a long message whose end has not come.
    parts: Vec<u8>,
    /// How many stored messages have come.
    received_count: u64,
    heard_at: Instant,
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
        Self {
            inbox,
            messages: VecDeque::new(),
            covered_after: sequence,
            parts: Vec::new(),
            received_count: 0,
            heard_at: Instant::now(),
        }
    }

    async fn receive_after(&mut self, after: u64, patience: Duration) -> Option<Vec<SequencedMessage>> {
        let until = Instant::now() + patience;
        if after < self.covered_after {
            return None;
        }
        self.covered_after = after;
        loop {
            while let Some(arrived) = self.inbox.next().now_or_never() {
                self.take_arrived(&arrived?)?;
            }
            while self.messages.front().is_some_and(|message| message.sequence <= after) {
                self.messages.pop_front();
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Some(last) = self.messages.back() {
                self.covered_after = last.sequence;
                return Some(self.messages.drain(..).collect());
            }
            let silence_left = MAX_SILENCE.saturating_sub(self.heard_at.elapsed());
            if silence_left.is_zero() {
                return None;
            }
            if left.is_zero() {
                return Some(Vec::new());
            }
            if let Ok(arrived) = tokio::time::timeout(left.min(silence_left), self.inbox.next()).await {
                self.take_arrived(&arrived?)?;
            }
        }
    }

    /// Takes what the server has sent: a message, a part of one, or a heartbeat. None if something before it is missing.
    fn take_arrived(&mut self, arrived: &Message) -> Option<()> {
        self.heard_at = Instant::now();
        let headers = arrived.headers.as_ref();
        if arrived.status.is_some() {
            let sent_count: u64 = headers?.get(SENT_COUNT_HEADER)?.as_str().parse().ok()?;
            return (sent_count == self.received_count).then_some(());
        }
        let place = PlaceOfDelivery::parse(arrived.reply.as_ref()?)?;
        self.received_count += 1;
        if place.number != self.received_count {
            return None;
        }
        self.parts.extend_from_slice(&arrived.payload);
        if StoredPart::is_last_of_message(headers) {
            let body = std::mem::take(&mut self.parts);
            self.messages.push_back(SequencedMessage { sequence: place.sequence, body });
        }
        Some(())
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
    use super::*;

    #[test]
    fn place_of_delivery_is_read_with_and_without_domain() {
        let place = Some(PlaceOfDelivery { sequence: 41, number: 7 });
        assert_eq!(PlaceOfDelivery::parse("$JS.ACK.WL_pump_LOG.x.1.41.7.1768644000000000000.0"), place);
        assert_eq!(PlaceOfDelivery::parse("$JS.ACK.hub.acc.WL_pump_LOG.x.1.41.7.1768644000000000000.0.r4nd"), place);
        assert_eq!(PlaceOfDelivery::parse("$JS.ACK.WL_pump_LOG.x.1.41"), None);
        assert_eq!(PlaceOfDelivery::parse("_INBOX.x"), None);
    }
}
