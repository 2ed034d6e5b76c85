//! The description of a service, and the creation of a log.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_store::SequencerError;

use super::connection::{JetStreamError, NatsConnection};
use super::names::ProjectSubjects;
use crate::address::ServiceKind;
use crate::failure::{refused, unreachable};
use crate::service::{LogSettings, ServiceLog, ServiceReport, measure_clock_skew};

/// The time in which the server forgets no message that it could get again.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The entry of a stream's metadata that says that the servers sync each message.
const SYNC_KEY: &str = "windlass.sync_interval";

impl NatsConnection {
    pub async fn create_log(&self, subjects: &ProjectSubjects, settings: LogSettings) -> Result<(), SequencerError> {
        let stream = subjects.log_stream();
        let call = match self.find_stream(&stream).await? {
            None => "STREAM.CREATE",
            Some(info) if info["state"]["last_seq"] == 0 => "STREAM.UPDATE",
            Some(info) => {
                return Err(refused(format!("the log exists already and has {} messages", info["state"]["last_seq"])));
            }
        };
        let sync = if settings.syncs_always { "always" } else { "unknown" };
        let log = json!({
            "name": stream,
            "subjects": [subjects.log_subject()],
            "storage": "file",
            "num_replicas": settings.replicas,
            "retention": "limits",
            "discard": "new",
            "max_msgs": -1,
            "max_bytes": -1,
            "duplicate_window": DUPLICATE_WINDOW.as_nanos() as u64,
            "allow_direct": true,
            "allow_atomic": true,
            "deny_delete": true,
            "deny_purge": true,
            "metadata": { SYNC_KEY: sync },
        });
        self.call_api(call, &stream, Some(&log)).await.map_err(JetStreamError::of_request)?;
        self.create_beats(subjects, settings.replicas).await
    }

    /// Returns the description of a stream, if it exists.
    pub async fn find_stream(&self, stream: &str) -> Result<Option<Value>, SequencerError> {
        match self.call_api("STREAM.INFO", stream, None).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is_stream_not_found() => Ok(None),
            Err(error) => Err(error.of_request()),
        }
    }

    pub async fn inspect_service(&self, subjects: &ProjectSubjects) -> Result<ServiceReport, SequencerError> {
        let mut asked = Instant::now();
        let info = self.find_stream(&subjects.log_stream()).await?;
        let mut round_trip = asked.elapsed();
        let time = match &info {
            Some(info) => read_time(&info["ts"])?,
            // Nothing of the project is there that has a time.
            None => {
                asked = Instant::now();
                let answer = self.ask_stream("$SYS.REQ.USER.INFO", HeaderMap::new(), Vec::new()).await;
                round_trip = asked.elapsed();
                read_time(&answer.map_err(JetStreamError::of_request)?["server"]["time"])?
            }
        };
        Ok(ServiceReport {
            name: format!("NATS {}", self.version),
            log: info.as_ref().map(describe_log),
            weaknesses: info.as_ref().map(list_weaknesses).unwrap_or_default(),
            clock_skew_millis: measure_clock_skew(time, asked),
            round_trip,
        })
    }
}

fn describe_log(info: &Value) -> ServiceLog {
    let state = |name: &str| info["state"][name].as_u64().unwrap_or_default();
    let replicas = info["config"]["num_replicas"].as_u64().and_then(|count| count.try_into().ok());
    ServiceLog { messages: state("messages"), last_sequence: state("last_seq"), replicas }
}

fn list_weaknesses(info: &Value) -> Vec<String> {
    let config = &info["config"];
    let replicas = describe_log(info).replicas.unwrap_or(1);
    let settings = LogSettings { replicas, syncs_always: config["metadata"][SYNC_KEY] == "always" };
    let mut weaknesses = settings.list_weaknesses(ServiceKind::Nats);
    let others = info["cluster"]["replicas"].as_array().map(Vec::as_slice).unwrap_or_default();
    let late: Vec<&str> =
        others.iter().filter(|other| other["current"] != true).filter_map(|other| other["name"].as_str()).collect();
    if !late.is_empty() {
        weaknesses.push(format!("These servers do not have the newest messages: {}.", late.join(", ")));
    }
    if config["storage"] != "file" {
        weaknesses.push("The servers keep the log in memory only, so a restart loses it.".to_owned());
    }
    let forgets = config["max_age"] != 0 || config["discard"] != "new" || config["retention"] != "limits";
    if forgets || config["deny_delete"] != true || config["deny_purge"] != true {
        weaknesses.push("The settings of the stream allow the removal of messages.".to_owned());
    }
    weaknesses
}

/// Returns a time stamp of the server.
pub fn read_time(value: &Value) -> Result<Timestamp, SequencerError> {
    let time = value.as_str().and_then(|text| text.parse().ok());
    time.ok_or_else(|| unreachable("the server does not tell its time"))
}
