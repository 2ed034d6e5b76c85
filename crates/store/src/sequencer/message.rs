//! A commit on its way through a sequencer, and its bytes.
//!
//! The bytes are JSON of one line. Events travel as their canonical bytes, so that every copy has the same digests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_engine::{Digest, Seq};

/// The format of messages that this program writes and reads.
pub const MESSAGE_FORMAT: u32 = 1;

/// A commit, with everything that a copy needs to judge it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// The machine that published it.
    pub by: String,
    /// The last event that its decision saw.
    pub after: Seq,
    /// The link of the chain at that event.
    pub chain: Digest,
    /// Distinguishes this attempt from every other one.
    pub nonce: u128,
    /// The scopes that its decision read, with the versions that it saw.
    pub reads: BTreeMap<String, u64>,
    /// The scopes that it changes, each with the index of the event that becomes its version. A scope without an index is gone. The name
    /// of an effect that it enqueues has the index of an event in place of the position: `effect/+3.0`.
    pub moves: BTreeMap<String, Option<u32>>,
    /// The canonical bytes of its events.
    pub events: Vec<Vec<u8>>,
}

/// The JSON of a message.
#[derive(Serialize, Deserialize)]
struct MessageBody<'a> {
    v: u32,
    by: String,
    after: Seq,
    chain: Digest,
    nonce: String,
    reads: BTreeMap<String, u64>,
    moves: BTreeMap<String, Option<u32>>,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

/// The part of a message that every format has.
#[derive(Deserialize)]
struct MessageHead {
    v: u32,
}

/// Bytes that are no message for this program.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error(
        "a message of the fleet's log has format {found}, and this version of Windlass knows format {MESSAGE_FORMAT}"
    )]
    OtherFormat { found: u32 },
    #[error("cannot read a message of the fleet's log")]
    Malformed { source: serde_json::Error },
}

impl LogMessage {
    /// Returns the bytes of the message.
    ///
    /// # Panics
    /// If the bytes of an event are not JSON.
    pub fn encode(&self) -> Vec<u8> {
        let event = |bytes| serde_json::from_slice::<&RawValue>(bytes).expect("canonical bytes of an event are JSON");
        let body = MessageBody {
            v: MESSAGE_FORMAT,
            by: self.by.clone(),
            after: self.after,
            chain: self.chain,
            nonce: format!("{:032x}", self.nonce),
            reads: self.reads.clone(),
            moves: self.moves.clone(),
            events: self.events.iter().map(|bytes| event(bytes)).collect(),
        };
        serde_json::to_vec(&body).expect("a message has string keys")
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let malformed = |source| MessageError::Malformed { source };
        let head: MessageHead = serde_json::from_slice(bytes).map_err(malformed)?;
        if head.v != MESSAGE_FORMAT {
            return Err(MessageError::OtherFormat { found: head.v });
        }
        let body: MessageBody<'_> = serde_json::from_slice(bytes).map_err(malformed)?;
        let nonce = u128::from_str_radix(&body.nonce, 16)
            .map_err(|error| malformed(serde::de::Error::custom(format!("`nonce`: {error}"))))?;
        let invalid = |what: &str| Err(malformed(serde::de::Error::custom(what)));
        if body.events.is_empty() {
            return invalid("it has no events");
        }
        if body.moves.values().flatten().any(|index| *index as usize >= body.events.len()) {
            return invalid("`moves` names an event that it does not have");
        }
        Ok(Self {
            by: body.by,
            after: body.after,
            chain: body.chain,
            nonce,
            reads: body.reads,
            moves: body.moves,
            events: body.events.into_iter().map(|event| event.get().as_bytes().to_owned()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_message() -> LogMessage {
        LogMessage {
            by: "mill".to_owned(),
            after: Seq(7),
            chain: Digest::ZERO,
            nonce: 0x2a,
            reads: [("task/1".to_owned(), 7)].into(),
            moves: [("effect/3.0".to_owned(), None), ("task/1".to_owned(), Some(1))].into(),
            events: vec![br#"{"v":1,"n":[1, 2]}"#.to_vec(), b"{}".to_vec()],
        }
    }

    #[test]
    fn message_bytes_stay_as_they_are() {
        let zeros = "0".repeat(64);
        let expected = format!(
            r#"{{"v":1,"by":"mill","after":7,"chain":"{zeros}","nonce":"0000000000000000000000000000002a","reads":{{"task/1":7}},"moves":{{"effect/3.0":null,"task/1":1}},"events":[{{"v":1,"n":[1, 2]}},{{}}]}}"#
        );
        assert_eq!(String::from_utf8(sample_message().encode()).unwrap(), expected);
        assert_eq!(LogMessage::decode(expected.as_bytes()).unwrap(), sample_message());
    }

    #[track_caller]
    fn check_refusal(bytes: &str, expected: &str) {
        let error = LogMessage::decode(bytes.as_bytes()).unwrap_err();
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        assert_eq!(format!("{error}{source}"), expected);
    }

    #[test]
    fn bytes_that_are_no_message_are_refused_with_reason() {
        check_refusal(
            r#"{"v":2,"anything":[]}"#,
            "a message of the fleet's log has format 2, and this version of Windlass knows format 1",
        );
        let text = String::from_utf8(sample_message().encode()).unwrap();
        check_refusal(
            &text.replace(r#""task/1":1}"#, r#""task/1":2}"#),
            "cannot read a message of the fleet's log: `moves` names an event that it does not have",
        );
        let events = text.find(r#""events":"#).unwrap();
        check_refusal(
            &format!("{}\"events\":[]}}", &text[..events]),
            "cannot read a message of the fleet's log: it has no events",
        );
        check_refusal(
            &text.replace("2a\"", "x\""),
            "cannot read a message of the fleet's log: `nonce`: invalid digit found in string",
        );
    }
}
