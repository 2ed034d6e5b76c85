//! The events: every fact that Windlass knows.
//!
//! The set is closed. A new event is one line in `event_type.rs`, its payload in [`error_payload`], and its meaning in `apply`. The
//! event types of a project (`review.passed`) are values of one event, `fact_logged`; hooks and people see their own names.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::effects::hook_batch::HookBatch;
use crate::log::event_type::{EventType, for_each_event};
use crate::log::id::{EffectId, ParseIdError, Seq, SessionName, TaskId, as_text};
use crate::log::time::Timestamp;
use crate::session::usage::AgentUsage;

mod field_names;
pub mod payload;
mod positions;

/// Declares one variant of `Event` per event type, with the payload of the same name.
macro_rules! events {
    ($($variant:ident = $name:literal,)+) => {
        /// A fact in the log. The log stores the payload under `data`.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Event {
            $($variant(payload::$variant),)+
        }

        impl Event {
            pub fn kind(&self) -> EventType {
                match self {
                    $(Self::$variant(_) => EventType::$variant,)+
                }
            }

            /// Decodes a payload of a known event type.
            pub(crate) fn decode(kind: EventType, data: &RawValue) -> Result<Self, serde_json::Error> {
                Ok(match kind {
                    $(EventType::$variant => Self::$variant(serde_json::from_str(data.get())?),)+
                })
            }

            /// Returns the field names of the payload of an event type; `None` where only a value has them.
            pub(crate) fn payload_fields(kind: EventType) -> Option<&'static [&'static str]> {
                match kind {
                    $(EventType::$variant => fields::names_of::<payload::$variant>(),)+
                }
            }

            /// Reads a payload that comes from outside the log.
            pub(crate) fn read(kind: EventType, data: &Value) -> Result<Self, serde_json::Error> {
                Ok(match kind {
                    $(EventType::$variant => Self::$variant(Deserialize::deserialize(data)?),)+
                })
            }
        }

        $(impl From<payload::$variant> for Event {
            fn from(payload: payload::$variant) -> Self {
                Self::$variant(payload)
            }
        })+
    };
}

for_each_event!(events);

impl EventType {
    /// Returns the names of the fields of `event.data`; `None` where any name is possible.
    pub fn data_field_names(self) -> Option<&'static [&'static str]> {
        if self == Self::FactLogged { None } else { Event::payload_fields(self) }
    }
}

/// The subject of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventSubject {
    Task(TaskId),
    System,
}

impl EventSubject {
    pub fn task_id(self) -> Option<TaskId> {
        match self {
            Self::Task(id) => Some(id),
            Self::System => None,
        }
    }
}

impl Display for EventSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => id.fmt(f),
            Self::System => f.write_str("system"),
        }
    }
}

impl FromStr for EventSubject {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text == "system" { Ok(Self::System) } else { text.parse().map(Self::Task) }
    }
}

as_text!(EventSubject);

/// The event that led to another one.
///
/// Within a commit the positions are unknown until the store assigns them, so such a cause counts backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventCause {
    At(Seq),
    /// The number of events back, within the same commit.
    Back(u32),
}

impl Serialize for EventCause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(seq) => to.serialize_u64(seq.0),
            Self::Back(steps) => to.serialize_i64(-i64::from(*steps)),
        }
    }
}

impl<'de> Deserialize<'de> for EventCause {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(from)?;
        if number >= 0 {
            return Ok(Self::At(Seq(number.unsigned_abs())));
        }
        u32::try_from(number.unsigned_abs()).map(Self::Back).map_err(serde::de::Error::custom)
    }
}

/// The person or program and the cause that led to an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventMetadata {
    pub triggered_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EventCause>,
    /// The number of hooks and actions between a person's command and this event.
    pub depth: u8,
    /// The hook that ran the command that led to this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<EffectId>,
    /// Whether this event is an audited override of the rules.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forced: bool,
    /// The effectful hooks that this event enqueued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owes: Option<HookBatch>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Event {
    /// Returns the event type as hooks and people see it: for a fact, the project's own type.
    pub fn shown_type_name(&self) -> &str {
        match self {
            Self::FactLogged(fact) => fact.kind.as_str(),
            other => other.kind().name(),
        }
    }

    /// Returns the data as hooks and people see it: for a fact, the data that the hook logged.
    pub fn shown_data(&self) -> Value {
        match self {
            Self::FactLogged(fact) => Value::Object(fact.data.clone()),
            other => serde_json::to_value(other).expect("a payload has string keys"),
        }
    }

    /// Returns the usage of the turn, or of the agents that a hook asked, which this event ends.
    pub fn usage(&self) -> AgentUsage {
        match self {
            Self::TurnFinished(payload::TurnFinished { usage, .. })
            | Self::DeliveryFinished(payload::DeliveryFinished { usage, .. })
            | Self::IterationFailed(payload::IterationFailed { usage, .. })
            | Self::IterationPostponed(payload::IterationPostponed { usage, .. })
            | Self::IterationInterrupted(payload::IterationInterrupted { usage, .. })
            | Self::DeliveryFailed(payload::DeliveryFailed { usage, .. })
            | Self::HookFinished(payload::HookFinished { used: usage, .. }) => *usage,
            _ => AgentUsage::default(),
        }
    }
}

/// An event with its metadata, without its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventEnvelope {
    pub timestamp: Timestamp,
    pub node: EventSubject,
    pub session: Option<SessionName>,
    pub iteration: Option<u32>,
    pub event: Event,
    pub metadata: EventMetadata,
}

impl EventEnvelope {
    /// Returns an envelope without an author, for an event that is not decided yet.
    pub(crate) fn with_default_metadata(event: Event) -> Self {
        let metadata =
            EventMetadata { triggered_by: String::new(), cause: None, depth: 0, via: None, forced: false, owes: None };
        Self {
            timestamp: Timestamp::from_millis(0),
            node: EventSubject::System,
            session: None,
            iteration: None,
            event,
            metadata,
        }
    }
}

/// An event at its position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    pub seq: Seq,
    pub envelope: EventEnvelope,
}

impl EventRecord {
    pub fn kind(&self) -> EventType {
        self.envelope.event.kind()
    }

    /// Returns the event as a failure of its hook records it. The positions within a commit are unknown until the store
    /// assigns them, so they are left out; the failure names its cause separately. The enqueued hooks are internal and
    /// left out too.
    pub fn original_event(&self) -> Value {
        let mut shown = serde_json::to_value(self).expect("a record has string keys");
        shown.as_object_mut().expect("a record is an object").remove("seq");
        let metadata = shown["metadata"].as_object_mut().expect("metadata is an object");
        ["cause", "owes", "via"].iter().for_each(|name| drop(metadata.remove(*name)));
        shown
    }

    /// Returns the position of the event that led to this one.
    pub fn cause_position(&self) -> Option<Seq> {
        self.envelope.metadata.cause.map(|cause| match cause {
            EventCause::At(seq) => seq,
            EventCause::Back(steps) => Seq(self.seq.0.saturating_sub(u64::from(steps))),
        })
    }
}

/// The JSON of a record for people and programs outside.
impl Serialize for EventRecord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct RecordJson<'a> {
            seq: Seq,
            timestamp: Timestamp,
            #[serde(rename = "type")]
            kind: &'a str,
            node_id: EventSubject,
            #[serde(skip_serializing_if = "Option::is_none")]
            session: &'a Option<SessionName>,
            #[serde(skip_serializing_if = "Option::is_none")]
            iteration: Option<u32>,
            data: RecordJsonData<'a>,
            metadata: EventMetadata,
        }

        #[derive(Serialize)]
        #[serde(untagged)]
        enum RecordJsonData<'a> {
            Fact(&'a Map<String, Value>),
            Event(&'a Event),
        }
        let EventEnvelope { timestamp, node, session, iteration, event, metadata } = &self.envelope;
        let metadata = EventMetadata { cause: self.cause_position().map(EventCause::At), ..metadata.clone() };
        RecordJson {
            seq: self.seq,
            timestamp: *timestamp,
            kind: event.shown_type_name(),
            node_id: *node,
            session,
            iteration: *iteration,
            data: match event {
                Event::FactLogged(fact) => RecordJsonData::Fact(&fact.data),
                other => RecordJsonData::Event(other),
            },
            metadata,
        }
        .serialize(to)
    }
}
