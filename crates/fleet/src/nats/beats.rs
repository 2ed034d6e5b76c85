//! Heartbeats of owners: one message per owner, which the server forgets by itself.
//!
//! The stream is in memory. A restart of all its servers loses it, and the next heartbeat creates it again.

use std::time::Duration;

use async_nats::{HeaderMap, Message, header};
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_store::SequencerError;

use super::connection::{JetStreamError, NatsConnection};
use super::names::ProjectSubjects;
use super::report::read_time;
use crate::failure::unreachable;
use crate::service::{HeartbeatList, OwnerHeartbeat};

impl NatsConnection {
    pub async fn create_beats(&self, subjects: &ProjectSubjects, replicas: usize) -> Result<(), SequencerError> {
        let stream = subjects.beat_stream();
        let beats = json!({
            "name": stream,
            "subjects": [subjects.all_beats()],
            "storage": "memory",
            "num_replicas": replicas,
            "retention": "limits",
            "discard": "old",
            "max_msgs": -1,
            "max_bytes": -1,
            "max_msgs_per_subject": 1,
            "allow_direct": true,
            "allow_msg_ttl": true,
        });
        let call = if self.find_stream(&stream).await?.is_some() { "STREAM.UPDATE" } else { "STREAM.CREATE" };
        self.call_api(call, &stream, Some(&beats)).await.map(drop).map_err(JetStreamError::of_request)
    }

    pub async fn record_heartbeat(
        &self,
        subjects: &ProjectSubjects,
        heartbeat: &OwnerHeartbeat,
        lifetime: Duration,
    ) -> Result<(), SequencerError> {
        let subject = subjects.beat_subject(&heartbeat.machine, &heartbeat.owner);
        let body = serde_json::to_vec(heartbeat).expect("a heartbeat has string keys");
        let mut headers = HeaderMap::new();
        // The server takes whole seconds, and at least one.
        let seconds = lifetime.as_millis().div_ceil(1000).max(1);
        headers.insert(header::NATS_MESSAGE_TTL, format!("{seconds}s"));
        match self.ask_stream(&subject, headers, body).await {
            Ok(_) => Ok(()),
            Err(error @ JetStreamError::NoLeader { .. }) => {
                // The servers elect a leader, or have lost the stream.
                if self.find_stream(&subjects.beat_stream()).await?.is_none()
                    && let Some(log) = self.find_stream(&subjects.log_stream()).await?
                {
                    let replicas = log["config"]["num_replicas"].as_u64().and_then(|count| count.try_into().ok());
                    self.create_beats(subjects, replicas.unwrap_or(1)).await?;
                }
                // The caller calls again.
                Err(unreachable(error))
            }
            Err(error) => Err(error.of_request()),
        }
    }

    pub async fn list_heartbeats(&self, subjects: &ProjectSubjects) -> Result<HeartbeatList, SequencerError> {
        let stream = subjects.beat_stream();
        let Some(info) = self.find_stream(&stream).await? else { return Ok(HeartbeatList::default()) };
        let now = read_time(&info["ts"])?;
        // The stream is in memory, so it is as old as its messages can be.
        let kept_for = Duration::try_from(now.duration_since(read_time(&info["created"])?)).unwrap_or(Duration::ZERO);
        let stored = self.get_stored(&stream, &json!({ "multi_last": [subjects.all_beats()] })).await?;
        let heartbeats = stored.iter().filter_map(|message| read_heartbeat(message, now)).collect();
        Ok(HeartbeatList { heartbeats, kept_for })
    }

    pub async fn remove_heartbeat(
        &self,
        subjects: &ProjectSubjects,
        machine: &str,
        owner: &str,
    ) -> Result<(), SequencerError> {
        let request = json!({ "filter": subjects.beat_subject(machine, owner) });
        match self.call_api("STREAM.PURGE", &subjects.beat_stream(), Some(&request)).await {
            Err(error) if !error.is_stream_not_found() => Err(error.of_request()),
            _ => Ok(()),
        }
    }
}

/// Returns a stored heartbeat with its age. Another version of the program may have written one that this one does not know.
fn read_heartbeat(message: &Message, now: Timestamp) -> Option<(OwnerHeartbeat, Duration)> {
    let heartbeat = serde_json::from_slice(&message.payload).ok()?;
    let stored_at = Value::from(message.headers.as_ref()?.get(header::NATS_TIME_STAMP)?.as_str());
    let age = now.duration_since(read_time(&stored_at).ok()?);
    // It may have come after the question for the time.
    Some((heartbeat, Duration::try_from(age).unwrap_or(Duration::ZERO)))
}
