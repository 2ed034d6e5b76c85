//! The encoding of events.
//!
//! Invariants:
//! - Canonical: an event has one encoding, byte for byte, so that its digest identifies it.
//! - Versioned: every encoding names its format. The decoder upcasts older formats step by step and refuses newer ones by
//!   number. Stored bytes are never rewritten.
//!
//! An encoding is a JSON object on one line: `v`, `type`, `timestamp`, `nodeId`, `session`, `iteration`, `data`,
//! `metadata`, in this order, without spaces, absent fields left out.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::log::event::{Event, EventEnvelope, EventMetadata, EventSubject};
use crate::log::event_type::EventType;
use crate::log::id::SessionName;
use crate::log::time::Timestamp;

/// The format of newly encoded events.
pub const CURRENT_FORMAT: u32 = 1;

/// A function that lifts an encoded event from one format to the next.
pub type FormatUpcast = fn(&mut Value);

/// The upcasts from format `n` to format `n + 1`, starting with format 1.
const FORMAT_UPCASTS: &[FormatUpcast] = &[];

/// The reason why bytes are not an event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("not an event")]
    Malformed(#[from] serde_json::Error),
    #[error("it is a `{0}`, which this version does not know")]
    UnknownType(String),
    #[error("written in format {found}, and this version reads up to {known}")]
    Newer { found: u32, known: u32 },
}

/// An encoded event, before its payload is decoded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EncodedEvent<'a> {
    v: u32,
    #[serde(rename = "type")]
    kind: EventType,
    timestamp: Timestamp,
    node_id: EventSubject,
    #[serde(default)]
    session: Option<SessionName>,
    #[serde(default)]
    iteration: Option<u32>,
    #[serde(borrow)]
    data: &'a RawValue,
    metadata: EventMetadata,
}

/// Returns the canonical bytes of an event.
pub fn encode_event(envelope: &EventEnvelope) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    encode_event_into(&mut bytes, envelope);
    bytes
}

/// Replaces the content of a buffer with the canonical bytes of an event.
pub fn encode_event_into(bytes: &mut Vec<u8>, envelope: &EventEnvelope) {
    let EventEnvelope { timestamp, node, session, iteration, event, metadata } = envelope;
    bytes.clear();
    // Names, numbers and timestamps need no escaping, and most events consist of little else: plain writes are faster
    // here.
    bytes.extend_from_slice(br#"{"v":"#);
    write_json(bytes, &CURRENT_FORMAT);
    bytes.extend_from_slice(br#","type":""#);
    bytes.extend_from_slice(event.kind().name().as_bytes());
    bytes.extend_from_slice(br#"","timestamp":""#);
    bytes.extend_from_slice(&timestamp.format_digits());
    bytes.extend_from_slice(br#"","nodeId":""#);
    match node {
        EventSubject::Task(id) => {
            bytes.push(b'T');
            write_json(bytes, &id.0);
        }
        EventSubject::System => bytes.extend_from_slice(b"system"),
    }
    bytes.push(b'"');
    if let Some(session) = session {
        bytes.extend_from_slice(br#","session":""#);
        bytes.extend_from_slice(session.as_str().as_bytes());
        bytes.push(b'"');
    }
    if let Some(iteration) = iteration {
        bytes.extend_from_slice(br#","iteration":"#);
        write_json(bytes, iteration);
    }
    bytes.extend_from_slice(br#","data":"#);
    write_json(bytes, event);
    bytes.extend_from_slice(br#","metadata":"#);
    write_json(bytes, metadata);
    bytes.push(b'}');
}

fn write_json(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value).expect("an event and what is said around it have string keys only");
}

/// Decodes an event of the current or any older format.
pub fn decode_event(bytes: &[u8]) -> Result<EventEnvelope, DecodeError> {
    decode_event_with(bytes, FORMAT_UPCASTS)
}

/// Decodes an event when the current format is the one that `upcasts` lead to.
pub fn decode_event_with(bytes: &[u8], upcasts: &[FormatUpcast]) -> Result<EventEnvelope, DecodeError> {
    let present = u32::try_from(upcasts.len()).expect("few formats") + 1;
    // The common case first: an event of the current format needs one pass.
    if let Ok(written) = serde_json::from_slice::<EncodedEvent<'_>>(bytes)
        && written.v == present
    {
        return build_envelope(written);
    }
    let mut value: Value = serde_json::from_slice(bytes)?;
    let found = value.get("v").and_then(Value::as_u64).and_then(|v| u32::try_from(v).ok()).unwrap_or(0);
    if found == 0 {
        return Err(DecodeError::Malformed(serde::de::Error::custom("it names no format")));
    }
    if found > present {
        return Err(DecodeError::Newer { found, known: present });
    }
    for upcast in upcasts.iter().skip(found as usize - 1) {
        upcast(&mut value);
    }
    if let Some(name) = value["type"].as_str().filter(|name| name.parse::<EventType>().is_err()) {
        return Err(DecodeError::UnknownType(name.to_owned()));
    }
    let lifted = serde_json::to_vec(&value)?;
    build_envelope(serde_json::from_slice(&lifted)?)
}

fn build_envelope(written: EncodedEvent<'_>) -> Result<EventEnvelope, DecodeError> {
    Ok(EventEnvelope {
        timestamp: written.timestamp,
        node: written.node_id,
        session: written.session,
        iteration: written.iteration,
        event: Event::decode(written.kind, written.data)?,
        metadata: written.metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::payload;
    use crate::log::id::TaskId;
    use crate::task::TaskPriority;

    fn sample_envelope() -> EventEnvelope {
        EventEnvelope {
            timestamp: Timestamp::from_millis(1_768_644_000_000),
            node: EventSubject::Task(TaskId(1)),
            session: None,
            iteration: None,
            event: Event::TaskCreated(payload::TaskCreated {
                goal: "say \"hi\"\n".to_owned(),
                body: None,
                deliverables: vec![],
                labels: vec!["agent".to_owned()],
                priority: TaskPriority::default(),
                kind: None,
                report: None,
            }),
            metadata: EventMetadata {
                triggered_by: "ada".to_owned(),
                cause: None,
                depth: 0,
                via: None,
                forced: false,
                owes: None,
            },
        }
    }

    /// Existing logs hold these bytes: they never change within a format.
    #[test]
    fn encoding_of_known_event_never_changes() {
        let bytes = r#"{"v":1,"type":"task_created","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"T1","data":{"goal":"say \"hi\"\n","deliverables":[],"labels":["agent"],"priority":2},"metadata":{"triggeredBy":"ada","depth":0}}"#;
        assert_eq!(String::from_utf8(encode(&event())).unwrap(), bytes);
        assert_eq!(decode(bytes.as_bytes()).unwrap(), event());
    }

    #[test]
    fn older_format_is_upcast_when_decoded() {
        // Assume that format 2 renamed `title` to `goal`.
        let lift: FormatUpcast = |value| {
            let data = value["data"].as_object_mut().expect("data is an object");
            let title = data.remove("title").expect("format 1 has a title");
            data.insert("goal".to_owned(), title);
        };
        let old = String::from_utf8(encode_event(&sample_envelope())).unwrap().replace("\"goal\"", "\"title\"");
        assert_eq!(decode_with(old.as_bytes(), &[lift]).unwrap(), event());
    }

    #[test]
    fn newer_format_is_refused_with_its_number() {
        let newer = String::from_utf8(encode_event(&sample_envelope())).unwrap().replace("\"v\":1", "\"v\":7");
        let error = decode_event(newer.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "written in format 7, and this version reads up to 1");
    }

    /// An event type of a newer version is not damage.
    #[test]
    fn unknown_event_type_is_named_in_error() {
        let other =
            String::from_utf8(encode_event(&sample_envelope())).unwrap().replace("task_created", "task_juggled");
        let error = decode_event(other.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "it is a `task_juggled`, which this version does not know");
    }

    #[test]
    fn bytes_without_format_are_malformed() {
        for format in ["\"v\":0", "\"v\":-1", "\"v\":\"1\"", "\"w\":1"] {
            let bytes = String::from_utf8(encode_event(&sample_envelope())).unwrap().replace("\"v\":1", format);
            assert!(matches!(decode(bytes.as_bytes()), Err(DecodeError::Malformed(_))), "{format}");
        }
    }

    #[test]
    fn truncated_bytes_are_refused() {
        let bytes = encode_event(&sample_envelope());
        for cut in 0..bytes.len() {
            assert!(decode_event(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
